#!/usr/bin/env python3
"""A fleet remembers: a camera that moves keeps one history, which any gateway tells, and an erasure is acknowledged when every node has done it.

  past_test.py BUILD      (exit status 77: no etcd)
"""

import datetime
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))

from free_ports import free_ports  # noqa: E402
from processes import COMPUTE, Fleet, have_etcd, wait_for  # noqa: E402

PATIENCE = 90
QUESTION = "Is there a person?"
# Behind what the nodes' and this process's clocks have in common.
SECOND = datetime.timedelta(seconds=1)


def check(holds, what):
    if not holds:
        raise AssertionError(what)


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def told(time_of):
    return time_of.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Trial:
    def __init__(self, fleet):
        self.fleet = fleet
        self.asks = {}
        self.gpus = {name: self.node(name, COMPUTE) for name in ("gpu-1", "gpu-2")}
        self.camera, self.gateways = self.node("c1", "camera"), [self.node("g1", "gateway"), self.node("g2", "gateway")]
        self.fleet.edit(lambda text: text + f'memory: {{enabled: true, dir: "{fleet.folder}/memory-{{NODE}}", host: {{budget: 64MiB}}}}\n'
                                             'asks: {bind: "tcp://127.0.0.1:{ASKS}"}\n'
                                             f'evidence: {{enabled: true, dir: "{fleet.folder}/evidence-{{NODE}}", pre_roll: 0s, post_roll: 0s}}\n')

    def node(self, name, roles):
        self.asks[name], = free_ports(1)
        return self.fleet.node(name, roles)

    def start(self, node):
        node.start(ASKS=str(self.asks[node.name]))

    def run(self, gateway, *arguments):
        return subprocess.run([self.fleet.vigil, *arguments, "--connect", f"tcp://127.0.0.1:{self.asks[gateway]}", "--output", "json"],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)

    def answer(self, gateway, *arguments):
        done = self.run(gateway, *arguments)
        check(done.returncode == 0, f"{arguments} at {gateway}: {done}")
        return json.loads(done.stdout)

    def nobody_knows(self, gateway, camera, since, until):
        done = self.run(gateway, "ask", "--camera", camera, QUESTION, "--since", told(since), "--until", told(until))
        check(done.returncode == 3 and "is remembered between" in done.stderr, f"{camera} at {gateway}: {done}")
        return json.loads(done.stdout)

    def row(self, gateway, camera):
        done = self.run(gateway, "memory", "list")
        rows = json.loads(done.stdout)["cameras"] if done.returncode == 0 else []
        return next((each for each in rows if each["camera"] == camera), None)

    def ask(self, gateway, camera, since, until):
        return self.answer(gateway, "ask", "--camera", camera, QUESTION, "--since", told(since), "--until", told(until))

    def stream_of(self, camera):
        cameras = self.fleet.plan().get("c1", {})
        entry = cameras.get(camera) if isinstance(cameras, dict) else next((each for each in cameras if each.get("camera") == camera), None)
        return entry and entry.get("stream")

    def done(self):
        """Nodes that have done some erasure."""
        return {key.rsplit("/", 1)[1] for key in self.fleet.etcd.get("/vigil/city/past/erased/")}

    def erasures(self):
        return self.fleet.etcd.get("/vigil/city/past/erasures/")


def remembers(trial, gateway, camera, node, since):
    """Whether that node has pages of it that are as late as that."""
    row = trial.row(gateway, camera)
    return row and row["pages"] > 0 and node in row["nodes"] and row["to"] and when(row["to"]) > since


def check_clips(trial, camera, answer):
    """The node that reads the camera has the clips, and neither the one that remembers nor the one that is asked."""
    folder = os.path.join(trial.fleet.folder, "evidence-c1")
    clips = {each["clip"] for each in answer["evidence"] if each["clip"]}
    check(clips, f"no clip is named: {answer}, of {[name for _, _, names in os.walk(folder) for name in names]}")
    for clip in clips:
        check(os.path.getsize(os.path.join(folder, clip)) > 0, f"{clip} is not there")


def one_history(trial):
    camera = trial.fleet.cameras[0]
    begin = now()

    def is_remembered():
        # A fleet that has just begun may move its stream once more.
        node = trial.stream_of(camera)
        return node and remembers(trial, "g1", camera, node, begin + 8 * SECOND)

    wait_for(is_remembered, PATIENCE, lambda: f"who has its stream remembers it: {trial.stream_of(camera)}, {trial.row('g1', camera)}")
    first = trial.stream_of(camera)
    other = next(name for name in trial.gpus if name != first)
    moved = now()
    check(trial.gpus[first].terminate(60) == 0, f"{first} did not end well")
    wait_for(lambda: remembers(trial, "g2", camera, other, moved + 8 * SECOND), PATIENCE, lambda: f"{other} remembers: {trial.row('g2', camera)}")
    end = now()
    away = trial.ask("g2", camera, begin, end)
    check(away["silent"] == [first], f"who is away is not named: {away}")
    check(any(gap["why"] == "unreachable" for gap in away["coverage"]["gaps"]), f"what is there is not unreachable: {away}")
    line = subprocess.run([trial.fleet.vigil, "ask", "--camera", camera, QUESTION, "--since", told(begin), "--until", told(end), "--connect",
                           f"tcp://127.0.0.1:{trial.asks['g2']}"], capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    check(f"{first} does not answer" in line, f"people are not told who is away: {line}")

    trial.start(trial.gpus[first])
    wait_for(lambda: set((trial.row("g1", camera) or {"nodes": []})["nodes"]) == {first, other}, PATIENCE, "both nodes to answer")
    for gateway in ("g1", "g2"):
        nobody = trial.run(gateway, "memory", "list", "--tenant", "nort")
        check(nobody.returncode == 1 and nobody.stderr == "vigil: bad_request: nothing is remembered of a tenant nort\n", f"a tenant that nobody knows: {nobody}")
        back = trial.ask(gateway, camera, begin, end)
        check(back["silent"] == [], f"who is back is silent: {back}")
        check(back["coverage"]["share"] > away["coverage"]["share"], f"what it has is not remembered: {away} {back}")
        check(not any(gap["why"] == "unreachable" for gap in back["coverage"]["gaps"]), f"what is here is unreachable: {back}")
        check(back["bytes"]["disk"] > 0, f"nothing came from the disk of {first}: {back}")
        check_clips(trial, camera, back)
        check({each["node"] for each in back["evidence"]} <= {first, other} and back["evidence"], f"nothing was looked at: {back}")
    return camera, first, other


def erasures(trial, camera, first, other):
    # One that is away: it is told, and stays ordered.
    check(trial.gpus[first].terminate(60) == 0, f"{first} did not end well")
    until = now()
    refused = trial.run("g1", "memory", "erase", "--camera", camera, "--to", told(until), "--timeout", "6s")
    check(refused.returncode != 0 and first in refused.stderr + refused.stdout and "at its return" in refused.stderr + refused.stdout,
          f"an erasure is acknowledged that {first} has not done: {refused}")
    check(len(trial.erasures()) == 1 and trial.done() == {other}, f"it is not ordered any more, or {first} has done it: {trial.erasures()}")
    row = trial.row("g2", camera)
    check(not row or not row["from"] or when(row["from"]) > until - 5 * SECOND, f"{other} has not erased: {row}")
    check(trial.gateways[0].metric("vigil_past_erasures_waiting") == 1, "nobody is told that an erasure waits")

    trial.start(trial.gpus[first])
    wait_for(lambda: first in trial.done(), PATIENCE, lambda: f"{first} does it at its return: {trial.done()}")
    wait_for(lambda: trial.gateways[0].metric("vigil_past_erasures_waiting") == 0, PATIENCE, "it waits no more")
    row = trial.row("g2", camera)
    check(not row or not row["from"] or when(row["from"]) > until - 5 * SECOND, f"{first} has not erased: {row}")
    gone = trial.nobody_knows("g1", camera, until - 20 * SECOND, until - 10 * SECOND)
    check(gone["coverage"]["share"] == 0 and {gap["why"] for gap in gone["coverage"]["gaps"]} <= {"erased", "down"}, f"it can be asked about: {gone}")

    # All are there.
    wait_for(lambda: set((trial.row("g1", trial.fleet.cameras[1]) or {"nodes": []})["nodes"]), PATIENCE, "the other camera is remembered")
    done = trial.answer("g2", "memory", "erase", "--camera", trial.fleet.cameras[1], "--all")
    check(done["finished"] and done["pages"] > 0, f"nothing was erased: {done}")
    check(len(trial.erasures()) == 2, f"what was ordered is not told to who may come back: {trial.erasures()}")


def main():
    if not have_etcd():
        print("skipped: no etcd (scripts/dependencies)")
        sys.exit(77)
    with Fleet(os.path.abspath(sys.argv[1]), cameras=2) as fleet:
        trial = Trial(fleet)
        fleet.etcd.start()
        for node in fleet.nodes:
            trial.start(node)
        begun = time.monotonic()
        try:
            wait_for(lambda: fleet.watched([trial.camera]), PATIENCE, "the cameras are up")
            camera, first, other = one_history(trial)
            erasures(trial, camera, first, other)
            for node in (trial.camera, *trial.gpus.values(), *trial.gateways):
                check(node.terminate(60) == 0, f"{node.name} did not end well")
        except Exception:
            print(fleet.logs())
            raise
        print(f"one history on two nodes, and erasures: {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
