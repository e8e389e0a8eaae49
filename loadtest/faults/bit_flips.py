#!/usr/bin/python3
"""Flips bits, one at a time, in every kind of file that Vigil writes and reads again, and looks at what it makes of them: the files of an
outbox that was killed at work, at the next two starts; the file of `vigil snooze`; and the two of `vigil keygen`. (Stills and clips are
written, and never read again; the ages of evidence are flipped by tests/actors/evidence/evidence_ages_test.cpp.)

Each flip is told (the outbox is another one, damaged files were set aside, or a line on stderr says so) or changes nothing that anybody is
shown: all events are replayed byte for byte under their numbers, and the numbers go on. Never is an event shown under an old number with
another content, or one that nobody made; never does it not start.

The table has a row for each kind of file: `told`, `harmless`, `silent` (what was shown changed and nothing was said), `lying` (an event with
another content, told or not), `refused` (two starts ended by themselves, or a command crashed). The last three have to be 0. Each failure is printed with its
seed; `--seed S --flips 1` makes it again.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
import concurrent.futures

import faults

KINDS = (("log", r"\d+\.log"), ("sst", r"\d+\.sst"), ("manifest", r"MANIFEST-\d+"), ("current", r"CURRENT"), ("identity", r"IDENTITY"),
         ("options", r"OPTIONS-\d+"), ("watermark", r"WATERMARK"))
# Failures of one kind that are printed.
MOST_SHOWN = 5
VERDICTS = ("told", "harmless", "silent", "lying", "refused")


def kind_of(name):
    return next((kind for kind, pattern in KINDS if re.fullmatch(pattern, os.path.basename(name))), "other")


class State:
    """An outbox with several tables and a log, and what it tells when nothing is flipped."""

    def __init__(self, source, folder):
        self.source = source
        self.folder = os.path.join(folder, "base")
        os.mkdir(self.folder)
        outbox = os.path.join(self.folder, "outbox")
        log = os.path.join(folder, "log")
        committed = os.path.join(self.folder, "committed")
        for seed, mode, count in [(1, "hello", 1), *((seed, "run", 40) for seed in range(2, 9)), (9, "run", 150)]:
            before = len(faults.lines_of(committed))
            with faults.Process([source, self.folder, str(seed), mode, outbox], log):
                faults.eventually(lambda least=before + count: len(faults.lines_of(committed)) >= least, what="an event")
        self.outbox = outbox
        self.files = {}
        for path, _, names in os.walk(outbox):
            for name in names:
                full = os.path.join(path, name)
                if os.path.getsize(full):
                    self.files.setdefault(kind_of(name), []).append(os.path.relpath(full, outbox))
        # What a start adds differs from start to start: only what was there counts.
        self.count = len(faults.lines_of(committed))
        told = Dump(self, self.copy(folder, "unflipped"))
        if told.status != 0 or told.said or len(told.events) < self.count:
            raise faults.Failure(f"the outbox cannot be read before anything is flipped: {told.said}")
        self.identity = told.identity
        self.lines = told.lines[:self.count]
        self.bodies = {}
        self.last = {}
        for event in told.events[:self.count]:
            body = json.loads(event["body"])
            self.bodies[(event["topic"], body["id"])] = body
            self.last[event["topic"]] = event["sequence"]

    def copy(self, folder, name):
        made = os.path.join(folder, name)
        shutil.copytree(self.outbox, os.path.join(made, "outbox"))
        return made


class Dump:
    """One start on a copy, and everything that it reads."""

    def __init__(self, state, folder, patience=60):
        try:
            run = subprocess.run([state.source, folder, "0", "dump", os.path.join(folder, "outbox")], capture_output=True, timeout=patience,
                                 check=False)
            self.status, self.said = run.returncode, run.stderr.decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            self.status, self.said = None, "it hangs"
            return
        self.lines = [line for line in run.stdout.split(b"\n") if line.startswith(b'{"body"')]
        rest = [json.loads(line) for line in run.stdout.split(b"\n") if line and not line.startswith(b'{"body"')]
        self.complete = bool(rest) and rest[-1] == {"end": True}
        if not self.complete:
            self.status = self.status or 1
            return
        self.identity = rest[0]["outbox"]
        self.newest = rest[0]["last"]
        self.last = {each["topic"]: each["last"] for each in rest[1:-1] if "last" in each}
        self.set_aside = [name for name in os.listdir(os.path.join(folder, "outbox")) if name.startswith("damaged")]

    @property
    def events(self):
        return [json.loads(line) for line in self.lines]


def flip(path, rng):
    with open(path, "r+b") as file:
        data = file.read()
        at, bit = rng.randrange(len(data)), rng.randrange(8)
        file.seek(at)
        file.write(bytes([data[at] ^ 1 << bit]))
    return f"bit {bit} of byte {at} of {len(data)}"


def judge(state, dump):
    """(verdict, why) of a start that came to its end."""
    same = dump.identity == state.identity
    told = not same or bool(dump.said) or bool(dump.set_aside)
    kept = dump.lines[:state.count] == state.lines and same
    new = dump.lines[state.count:] if kept else dump.lines
    known = set() if kept else set(state.lines)
    last = dict(state.last) if kept else {}
    for line in new:
        if line in known and same:
            last[json.loads(line)["topic"]] = json.loads(line)["sequence"]
            continue
        event = json.loads(line)
        place = f"{event['topic']} {event['sequence']}"
        try:
            body = json.loads(event["body"])
            before = state.bodies.get((event["topic"], body["id"]))
            seq, fits = body["data"]["seq"], body["source"] and event["topic"].split("/")[-3:-1] != []
        except (ValueError, KeyError, TypeError):
            return "lying", f"{place} is no event"
        if before is not None:
            # In another outbox, the same event may have another number.
            comparable = {**body, "data": {**body["data"], "seq": before["data"]["seq"]}}
            if comparable != before:
                return "lying", f"{place} has another content than it was shown with"
            if same and seq != before["data"]["seq"]:
                return "lying", f"{place} was shown under the number {before['data']['seq']}"
        elif same and event["sequence"] <= state.last.get(event["topic"], 0):
            return "lying", f"{place} is an old number for a new event"
        if seq != event["sequence"] or not fits:
            return "lying", f"{place} says that it is {seq}"
        if event["topic"] in last and event["sequence"] != last[event["topic"]] + 1:
            return ("told", "") if told else ("silent", f"{place} comes after {last[event['topic']]}")
        last[event["topic"]] = event["sequence"]
        if event["found_at"] != event["position"]:
            return ("told", "") if told else ("silent", f"{place} is found at {event['found_at']}, not at {event['position']}")
    for topic, number in last.items():
        if dump.last.get(topic) != number:
            return ("told", "") if told else ("silent", f"the last number of {topic} is {dump.last.get(topic)}, not {number}")
    if told:
        return "told", ""
    if not kept:
        lost = len(set(state.lines) - set(dump.lines))
        return "silent", f"{lost} of {state.count} events are lost or changed, and nothing is said"
    return "harmless", ""


SITE = """
model: {source}/models/demo
cameras: {{gate: {{url: "rtsp://127.0.0.1:9/x", rules: [{{name: car, prompt: "Is there a car?"}}]}}}}
alerts: {{outbox: outbox, curve: {{secret_key_file: server.key, allow: ["{key}"]}}}}
"""


class CommandFiles:
    """What commands of `vigil` wrote, and what they say of it: each command's (status, output) when nothing is flipped."""

    KINDS = {"snoozes": "site.yaml.snoozes", "secret_key": "server.key", "public_key": "server.key.pub"}

    def __init__(self, vigil, folder):
        self.vigil = vigil
        self.folder = os.path.join(folder, "commands")
        os.mkdir(self.folder)
        self.site = "site.yaml"
        key = self.run(self.folder, "keygen", "server.key")[1].strip()
        with open(os.path.join(self.folder, self.site), "w", encoding="utf-8") as file:
            file.write(SITE.format(source=faults.SOURCE, key=key))
        for target in ("gate", "gate/car"):
            self.run(self.folder, "snooze", target, "20d", "--config", self.site)
        self.unflipped = self.look(self.folder)
        if any(status != 0 or said for status, _, said in self.unflipped):
            raise faults.Failure(f"the commands say something before anything is flipped: {self.unflipped}")

    def run(self, folder, *arguments):
        done = subprocess.run([self.vigil, *arguments], capture_output=True, cwd=folder, text=True, errors="replace", timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def look(self, folder):
        return [self.run(folder, "snooze", "--list", "--config", self.site), self.run(folder, "check-config", self.site)]

    def flip_once(self, folder, seed, kind, rng):
        work = os.path.join(folder, f"flip-{seed}")
        shutil.copytree(self.folder, work)
        try:
            where = flip(os.path.join(work, self.KINDS[kind]), rng)
            seen = self.look(work)
            told = any(said for _, _, said in seen)
            crashed = any(status not in (0, 1) for status, _, _ in seen)
            verdict = "refused" if crashed else "told" if told else "harmless" if seen == self.unflipped else "silent"
            return kind, verdict, f"{self.KINDS[kind]}: {where}: {seen}"
        finally:
            shutil.rmtree(work, ignore_errors=True)


def flip_once(state, commands, folder, seed):
    rng = random.Random(seed)
    kinds = sorted([*state.files, *commands.KINDS])
    kind = kinds[rng.randrange(len(kinds))]
    if kind in commands.KINDS:
        return commands.flip_once(folder, seed, kind, rng)
    name = rng.choice(state.files[kind])
    work = state.copy(folder, f"flip-{seed}")
    try:
        where = flip(os.path.join(work, "outbox", name), rng)
        dump = Dump(state, work)
        first = dump
        if dump.status != 0:
            dump = Dump(state, work)
        if dump.status != 0:
            return kind, "refused", f"{name}: {where}: {dump.status}: {(dump.said.splitlines() or ['nothing is said'])[-1]}"
        if first.status != 0:
            dump.said = dump.said or first.said
        verdict, why = judge(state, dump)
        if verdict in ("told", "harmless"):
            again = Dump(state, work)
            if again.status != 0:
                return kind, "refused", f"{name}: {where}: at the second start: {again.said}"
            if again.identity != dump.identity:
                verdict, why = "silent" if not again.said else verdict, "the second start has another outbox than the first"
            elif again.lines[:len(dump.lines)] != dump.lines:
                verdict, why = "lying", "the second start tells other events than the first"
        return kind, verdict, f"{name}: {where}: {why}"
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    options = faults.arguments(__doc__, flips=(10000, "bits"), jobs=(max(1, os.cpu_count() or 1), "starts at once"))
    began = time.monotonic()
    table = {}
    with faults.scratch() as folder:
        state = State(faults.program(options, "event_source"), folder)
        commands = CommandFiles(faults.program(options, "vigil"), folder)
        faults.say(fault="bit_flip", events=state.count,
                   files={kind: sum(os.path.getsize(os.path.join(state.outbox, name)) for name in names) for kind, names in state.files.items()})
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            flips = ((seed, pool.submit(flip_once, state, commands, folder, seed)) for seed in range(options.seed, options.seed + options.flips))
            for seed, flipped in list(flips):
                kind, verdict, why = flipped.result()
                row = table.setdefault(kind, dict.fromkeys(VERDICTS, 0))
                row[verdict] += 1
                if verdict not in ("told", "harmless") and row[verdict] <= MOST_SHOWN:
                    faults.say(fault="bit_flip", seed=seed, kind=kind, verdict=verdict, why=why)
    failures = sum(row["silent"] + row["lying"] + row["refused"] for row in table.values())
    for kind, row in sorted(table.items()):
        faults.say(fault="bit_flip", kind=kind, flips=sum(row.values()), **row)
    faults.say(fault="bit_flip", seconds=round(time.monotonic() - began, 1), failures=failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
