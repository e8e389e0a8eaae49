#!/usr/bin/python3
"""Two nodes without a way to each other, while both reach all others and etcd: hosts of loadtest/fleet/network.py. Its status is 77 where there are no namespaces.

  pairs_test.py BUILD
"""

import json
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "fleet"))
import network  # noqa: E402

# Until it is seen that nothing comes, the lease of 3 s and a second, and what it takes to plan, to open ways and to fill a window of 2 s; of a machine
# that has other things to do.
ELSEWHERE, PATIENCE = 8, 2


class Pairs(unittest.TestCase):
    def streams(self, trial, owner):
        """The node that computes, by camera of that owner."""
        plan = trial.observer.registry.get(f"/vigil/city/plan/{owner}")
        return {camera: entry.get("stream") for camera, entry in json.loads(plan)["cameras"].items()} if plan else {}

    def record(self, trial, node):
        return json.loads(trial.observer.registry[f"/vigil/city/nodes/{node}"])

    def test_what_a_pair_cannot_do_a_third_does(self):
        from trial import Trial
        with Trial(BUILD, 6, 2, 2, 1, patience=PATIENCE) as trial:
            held = lambda condition, seconds, what: self.assertTrue(trial.wait(condition, seconds, what), f"{what}\n{trial.fleet.logs()}")  # noqa: E731
            held(lambda: {*self.streams(trial, "c1").values()} == {*self.streams(trial, "c2").values()} == {"v1", "v2"}, 30, "each computes for each")
            cameras = [camera for camera, stream in self.streams(trial, "c1").items() if stream == "v1"]
            owners = trial.observer.owners()
            with trial.network.cut_between(trial.machine("c1").host, trial.machine("v1").host):
                cut = time.monotonic()
                held(lambda: "v1" not in self.streams(trial, "c1").values(), ELSEWHERE, "others compute for it")
                moved = time.monotonic()
                held(lambda: all(trial.told(camera) > moved for camera in cameras), ELSEWHERE, "windows of all of them are told again")
                print(f"moved after {moved - cut:.1f} s, told again after {time.monotonic() - cut:.1f} s")
                self.assertEqual(trial.observer.owners(), owners, "owners stay")
                self.assertIn("v1", self.streams(trial, "c2").values(), "it computes for others")
                self.assertEqual(self.record(trial, "c1").get("unreachable"), ["v1"])
            held(lambda: "unreachable" not in self.record(trial, "c1"), 30, "the way stands again, and it says so")
            found, _ = trial.finish()
            self.assertEqual([str(each) for each in found], [])


if __name__ == "__main__":
    network.enter()
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=1, warnings="ignore")
