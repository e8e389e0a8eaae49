#!/usr/bin/python3
"""Cuts the power, again and again, and looks at what the next start finds.

A source of events (tests/services/event_source.cpp: the outbox, the alert desk and the sockets of `vigil run`) runs under the recorder
(power_cut/recorder.cpp) until the operation at which a seed cuts it; what a disk may have kept then is made by power_cut/disk.py, in both of
its models in turn, and a source starts on that. A subscriber, which nothing cuts, writes down what it saw.

Nothing that it saw, and nothing that an `append` promised, may be lost or changed, and numbers and identity go on. `--runs` does the same
to whole `vigil run`s with evidence: a clip that was told to be ready is there then. `--keys` does it to `vigil keygen`.

Each round prints its seed; `--seed S --cuts 1` makes the chain that begins there again.
"""

import hashlib
import json
import os
import random
import shutil
import sys
import time

import faults

sys.path.append(os.path.join(faults.HERE, "power_cut"))

import disk  # noqa: E402

# Cuts on the same outbox, one after the other.
CHAIN = 8
VIDEO = os.path.join(faults.SOURCE, "tests/videos/one-by-one-person-detection.mp4")
CONFIGURATION = """
model: {model}
cameras:
  room:
    url: {video}
    pace: fast
    window: {{length: 2s, stride: 1s}}
    rules:
      - {{name: person, prompt: "Is there a person in the room?", cooldown: 0s, confirm: 1/1, max_per_hour: 10000, topics: [staff, guards]}}
alerts: {{bind: "ipc://{folder}/events", replay: "ipc://{folder}/replay", outbox: {disk}/outbox}}
evidence: {{enabled: true, dir: {disk}/evidence, pre_roll: 1s, post_roll: 1s}}
metrics: {{listen: ""}}
log: {{level: warn}}
"""


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Bench:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.source = faults.program(options, "event_source")
        self.vigil = faults.program(options, "vigil")
        self.recorder = faults.program(options, "power_cut_recorder.so")
        self.log = os.path.join(folder, "log")

    def record(self, command, root, before, linger=3):
        """Runs a command until the cut. Returns whether it came to that."""
        journal = os.path.join(self.folder, "journal")
        if os.path.exists(journal):
            os.remove(journal)
        environment = {"LD_PRELOAD": self.recorder, "POWER_CUT_ROOT": root, "POWER_CUT_JOURNAL": journal,
                       "POWER_CUT_LINGER": str(linger), "OMP_WAIT_POLICY": "passive"}
        if before is not None:
            environment["POWER_CUT_BEFORE"] = str(before)
        with faults.Process(command, self.log, environment) as process:
            try:
                status = process.wait(timeout=self.options.patience)
            except faults.subprocess.TimeoutExpired:
                return journal, None
        return journal, status

    def kept(self, command):
        """(identity, events) that a start on what is left replays."""
        with faults.Process(command, self.log) as process:
            kept = None
            while kept is None:
                try:
                    kept = faults.replay(f"ipc://{self.folder}/replay", patience=10)
                except faults.Failure:
                    if process.poll() is not None:
                        raise faults.Failure(f"it does not start any more: {process.said().strip().splitlines()[-1:]}") from None
                    raise
            return kept


def cut_source(bench, root, truth, model, seed, row):
    """One cut; afterwards `root` is what the next one goes on with."""
    rng = random.Random(seed)
    before = rng.randrange(1, 90) if rng.random() < 0.4 else rng.randrange(1, 2500)
    committed = os.path.join(bench.folder, "committed")
    if os.path.exists(committed):
        os.remove(committed)
    plan = disk.Disk(root, model)
    subscriber = faults.Subscriber(f"ipc://{bench.folder}/events")
    try:
        outbox = os.path.join(root, "outbox")
        journal, status = bench.record([bench.source, bench.folder, str(seed), "run", outbox], root, before)
        seen = subscriber.drain()
    finally:
        subscriber.close()
    plan.replay(journal)
    if status != -9 or not plan.cut:
        raise faults.Failure(f"it ended by itself with {status}: {faults.lines_of(bench.log)[-1:]}")
    plan.check(root)
    truth.shown(seen)
    truth.promise(faults.lines_of(committed))
    row["seen"] += len(seen)
    row["promised"] += len(faults.lines_of(committed))
    after = f"{root}-next"
    for world in range(bench.options.disks):
        left = f"{root}-{world}"
        plan.leave(left, random.Random(f"{seed} {world}"))
        row["disks"] += 1
        shutil.rmtree(after, ignore_errors=True)
        shutil.copytree(left, after)
        try:
            identity, kept = bench.kept([bench.source, bench.folder, "0", "rest", os.path.join(left, "outbox")])
            truth.check(identity, kept)
        except faults.Failure as failure:
            raise faults.Failure(f"{failure} (disk {world}; not synced: {', '.join(plan.unsynced()[:6]) or 'nothing'})") from None
        finally:
            shutil.rmtree(left, ignore_errors=True)
    shutil.rmtree(root)
    os.rename(after, root)


def cut_sources(bench, first, cuts, table):
    """`cuts` cuts, in chains that each begin with an empty folder."""
    root = os.path.join(bench.folder, "disk")
    truth = None
    for seed in range(first, first + cuts):
        model = disk.MODELS[(seed // CHAIN) % 2]
        if truth is None or (seed - first) % CHAIN == 0:
            truth = faults.Truth()
            shutil.rmtree(root, ignore_errors=True)
            os.mkdir(root)
        row = table[model]
        row["cuts"] += 1
        try:
            cut_source(bench, root, truth, model, seed, row)
        except faults.Failure as failure:
            row["failures"] += 1
            faults.say(fault="power_cut", what="source", model=model, seed=seed, failure=str(failure))
            truth = None
        except disk.JournalError as failure:
            row["failures"] += 1
            faults.say(fault="power_cut", what="source", model=model, seed=seed, failure=f"not recorded: {failure}")
            truth = None


def clips_of(events):
    """Name of the file: of each still and clip that an event says is there."""
    named = {}
    for event in events:
        evidence = json.loads(event.body)["data"].get("evidence", {})
        if evidence.get("clip_state") == "ready":
            named[evidence["clip"]] = evidence["bytes"]
            if "thumb" in evidence:
                named[evidence["thumb"]] = None
    return named


def cut_run(bench, model, seed, row):
    """A whole `vigil run` with evidence, cut once."""
    rng = random.Random(seed)
    root = os.path.join(bench.folder, "run")
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    configuration = os.path.join(bench.folder, "vigil.yaml")
    with open(configuration, "w", encoding="utf-8") as file:
        file.write(CONFIGURATION.format(model=os.path.join(faults.SOURCE, "models/demo"), video=VIDEO, folder=bench.folder, disk=root))
    plan = disk.Disk(root, model)
    truth = faults.Truth()
    subscriber = faults.Subscriber(f"ipc://{bench.folder}/events")
    before = rng.randrange(60, bench.options.most_operations)
    try:
        journal, status = bench.record([bench.vigil, "run", "--config", configuration], root, before, linger=30)
        seen = subscriber.drain()
    finally:
        subscriber.close()
    plan.replay(journal)
    if status != -9 or not plan.cut:
        raise faults.Failure(f"it ended by itself with {status}: {faults.lines_of(bench.log)[-1:]}")
    plan.check(root)
    truth.shown(seen)
    ready = clips_of(seen)
    row["seen"] += len(seen)
    row["ready"] += len(ready)
    written = {name: digest(bytes(plan.root.at(f"evidence/{name}").now)) for name in ready}
    for world in range(bench.options.disks):
        left = f"{root}-{world}"
        plan.leave(left, random.Random(f"{seed} {world}"))
        row["disks"] += 1
        try:
            for name, size in ready.items():
                path = os.path.join(left, "evidence", name)
                if not os.path.exists(path):
                    raise faults.Failure(f"evidence that was ready is gone: {name}")
                with open(path, "rb") as file:
                    data = file.read()
                if digest(data) != written[name] or size not in (None, len(data)):
                    raise faults.Failure(f"evidence that was ready is damaged: {name}")
            identity, kept = bench.kept([bench.source, bench.folder, "0", "rest", os.path.join(left, "outbox")])
            truth.check(identity, kept)
        except faults.Failure as failure:
            raise faults.Failure(f"{failure} (disk {world}; not synced: {', '.join(plan.unsynced()[:6]) or 'nothing'})") from None
        finally:
            shutil.rmtree(left, ignore_errors=True)


def cut_keygen(bench, model, seed, row):
    """A key that was printed has its files."""
    root = os.path.join(bench.folder, "keys")
    shutil.rmtree(root, ignore_errors=True)
    os.mkdir(root)
    plan = disk.Disk(root, model)
    journal, status = bench.record([bench.vigil, "keygen", os.path.join(root, "server.key")], root, None)
    plan.replay(journal)
    if status != 0:
        raise faults.Failure(f"keygen ended with {status}")
    for world in range(20):
        left = f"{root}-{world}"
        shutil.rmtree(left, ignore_errors=True)
        plan.leave(left, random.Random(f"{seed} {world}"))
        row["disks"] += 1
        for name in ("server.key", "server.key.pub"):
            path = os.path.join(left, name)
            whole = os.path.exists(path) and os.path.getsize(path) == len(plan.root.at(name).now)
            if not whole:
                raise faults.Failure(f"{name} is {'cut' if os.path.exists(path) else 'gone'}; not synced: {', '.join(plan.unsynced())}")


def main():
    options = faults.arguments(__doc__, cuts=(1000, "cuts of the source of events"), runs=(20, "cuts of a whole vigil run"),
                               keys=(2, "cuts after vigil keygen"), disks=(2, "disks that are made of each cut"),
                               most_operations=(1200, "a run is cut before one of so many operations"),
                               patience=(120, "seconds until a cut has to come"))
    began = time.monotonic()
    failures = 0
    with faults.scratch() as folder:
        bench = Bench(options, folder)
        table = {model: {"cuts": 0, "disks": 0, "seen": 0, "promised": 0, "failures": 0} for model in disk.MODELS}
        cut_sources(bench, options.seed, options.cuts, table)
        for model, row in table.items():
            if row["cuts"]:
                faults.say(fault="power_cut", what="source", model=model, **row)
            failures += row["failures"]
        for what, count, cut in (("run", options.runs, cut_run), ("keygen", options.keys, cut_keygen)):
            for model in disk.MODELS:
                row = {"cuts": 0, "disks": 0, "seen": 0, "ready": 0, "failures": 0}
                for seed in range(options.seed, options.seed + count):
                    if disk.MODELS[seed % 2] != model:
                        continue
                    row["cuts"] += 1
                    try:
                        cut(bench, model, seed, row)
                    except (faults.Failure, disk.JournalError) as failure:
                        row["failures"] += 1
                        faults.say(fault="power_cut", what=what, model=model, seed=seed, failure=str(failure))
                if row["cuts"]:
                    faults.say(fault="power_cut", what=what, model=model, **row)
                failures += row["failures"]
    faults.say(fault="power_cut", seconds=round(time.monotonic() - began, 1), failures=failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
