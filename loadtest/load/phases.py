"""What a load does with time: joins and leaves, scenes that move, cameras that flap, slow subscribers, a node that is lost."""

import contextlib
import os
import random
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))
from cameras import some  # noqa: E402
from fleet_faults import Kill  # noqa: E402
from rig import SlowSubscriber  # noqa: E402


def flaps(names, flapping, lasts, rng):
    """(second, camera, "gone" or "there") of a phase, in order: each camera by itself, the first time at a random moment, and all there at the end."""
    found = []
    for name in names:
        at = rng.uniform(0, flapping["there"])
        while at + flapping["gone"] < lasts:
            found += [(at, name, "gone"), (at + flapping["gone"], name, "there")]
            at += flapping["gone"] + flapping["there"]
    return sorted(found)


def gone_times(changes, began):
    """(from, to) in which each camera was gone."""
    found = {}
    for at, name, what in changes:
        found.setdefault(name, []).append(began + at)
    return {name: list(zip(times[::2], times[1::2])) for name, times in found.items()}


class Phases:
    def __init__(self, rig, scenario):
        self.rig, self.scenario, self.rng = rig, scenario, random.Random(scenario["seed"])
        self.slow = []  # (phase, gateway, file) of slow subscribers
        self.moving = None
        self.told = []

    def run(self):
        """The phases one after the other; what was done, with times."""
        for phase in self.scenario["phases"]:
            self.rig.say(f"phase {phase['name']}: {phase['lasts']:g} s")
            self.told.append(self._run(phase))
        return self.told

    def _run(self, phase):
        rig, active = self.rig, self.rig.first(phase["cameras"])
        began = time.monotonic()
        rig.journal.say("phase", name=phase["name"], cameras=active)
        if active != rig.fleet.cameras:
            rig.fleet.use(active)
        live = [name for name in active if name in rig.cameras.of["rtsp"]]
        if phase["moving"] is not None:
            self._move(some(live, phase["moving"]))
        changes = flaps(some(live, phase["flapping"]["share"]), phase["flapping"], phase["lasts"], self.rng) if phase["flapping"] else []
        with contextlib.ExitStack() as stack:
            if phase["slow_subscribers"]:
                for _ in range(phase["slow_subscribers"]["count"]):
                    one = SlowSubscriber(rig, len(self.slow), phase["slow_subscribers"]["events_per_second"])
                    rig.slow.append(one)
                    stack.callback(one.stop)
                    self.slow.append({"phase": phase["name"], "gateway": one.gateway, "path": one.path})
            self._until(began, phase, changes)
        return {"name": phase["name"], "begin": began, "end": began + phase["lasts"], "cameras": active, "gone": gone_times(changes, began)}

    def _move(self, names):
        for name in self.rig.cameras.of["rtsp"]:
            if self.moving is None or (name in names) != (name in self.moving):
                self.rig.cameras.tell("moving" if name in names else "still", name)
        self.moving = set(names)

    def _until(self, began, phase, changes):
        """All that has its second, in order, until the phase is over."""
        lose = phase["lose"]
        todo = [(at, lambda name=name, what=what: self._flap(name, what)) for at, name, what in changes]
        if lose:
            fault = []

            def begin():
                fault.append(Kill(self.rig, self.rig.busiest(lose["node"]), lose["back"] - lose["at"]))
                self.rig.say(f"{fault[0].machine.name} is killed")
                fault[0].__enter__()

            def end():
                fault[0].__exit__(None, None, None)
                self.rig.say(f"{fault[0].machine.name} is started again")

            todo += [(lose["at"], begin), (lose["back"], end)]
        for at, what in sorted(todo, key=lambda each: each[0]):
            time.sleep(max(0.0, began + at - time.monotonic()))
            what()
        time.sleep(max(0.0, began + phase["lasts"] - time.monotonic()))
        # Whoever was killed has been started again by now.
        for node in self.rig.ended():
            self.rig.problem(f"{node.name} ended by itself, with {node.process.returncode}")

    def _flap(self, name, what):
        self.rig.journal.say("flap", camera=name, edge=what)
        self.rig.cameras.tell(what, name)
