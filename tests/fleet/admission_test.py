"""A fleet that has no room for all of its cameras, as an operator sees it: real processes, a real etcd, real sockets.

  admission_test.py BUILD
"""

import json
import re
import sys
import unittest
import urllib.request

from processes import COMPUTE, Fleet, have_etcd, wait_for


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Admission(unittest.TestCase):
    def setUp(self):
        # Each takes 1.02 of the standard camera; with fewer frames 0.52, with more pruning 0.27.
        self.fleet = Fleet(BUILD, cameras=4)
        self.addCleanup(self.fleet.close)

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def compute(self, name, streams):
        node = self.fleet.node(name, COMPUTE)
        node.own_config()
        node.edit(lambda text: text.replace("  lease: 3s\n", f"  lease: 3s\n  max_streams: {streams}\n"))
        return node

    def rungs(self):
        """Cameras by rung."""
        found = {}
        for cameras in self.fleet.plan().values():
            for name, camera in cameras.items():
                found.setdefault(camera.get("rung", ""), []).append(name)
        return {rung: sorted(names) for rung, names in found.items()}

    def told(self, camera):
        return self.fleet.command("status", "--fleet", "--camera", camera, "--endpoint", f"http://127.0.0.1:{self.c1.metrics}").stdout

    def frames_are(self, rates):
        return lambda: all(abs(self.c1.metric("vigil_camera_fps", camera=camera) - rate) < 0.3 for camera, rate in rates.items())

    def in_time(self, node, more):
        """Windows are answered by it, none is overtaken by the next one."""
        before, overtaken = node.windows(), node.metric("vigil_windows_total", outcome="overtaken")
        self.wait_for(lambda: node.windows() >= before + more, 25, f"{more} windows are answered")
        self.assertEqual(node.metric("vigil_windows_total", outcome="overtaken"), overtaken)

    def test_cameras_are_lowered_in_order_and_more_of_them_without_a_node(self):
        self.c1 = self.fleet.node("c1", "camera")
        g1, g2 = self.compute("g1", 2), self.compute("g2", 2)
        self.fleet.etcd.start()
        for node in (g1, g2, self.c1):
            node.start()
        # No node has room for two as they are.
        self.wait_for(lambda: self.rungs() == {"": ["cam-0", "cam-1"], "fewer frames": ["cam-2", "cam-3"]}, 20, "two are lowered")
        self.wait_for(lambda: self.fleet.watched([self.c1]), 20, "all cameras are up")
        self.wait_for(self.frames_are({"cam-0": 2, "cam-1": 2, "cam-2": 1, "cam-3": 1}), 15, "they are sampled by their rungs")
        self.assertIn("There is less of it than its settings say: fewer frames: the fleet has room for", self.told("cam-3"))
        self.assertNotIn("There is less of it", self.told("cam-0"))
        planner = next(node for node in (self.c1, g1, g2) if node.metric("vigil_fleet_planner"))
        self.assertEqual(planner.metric("vigil_fleet_cameras", state="degraded"), 2)
        self.assertEqual(planner.metric("vigil_fleet_cameras", state="refused"), 0)

        g2.kill()
        # Three of four at half of the frames, and one of them pruned harder, too.
        self.wait_for(lambda: self.rungs() == {"fewer frames": ["cam-0", "cam-1", "cam-2"], "more pruning": ["cam-3"]}, 12,
                      "what is left of the fleet has room for all of them")
        self.assertEqual({camera["stream"] for camera in self.fleet.plan()["c1"].values()}, {"g1"})
        self.wait_for(lambda: self.fleet.watched([self.c1]), 12, "all cameras are up again")
        self.wait_for(self.frames_are(dict.fromkeys(self.fleet.cameras, 1)), 15, "all are sampled less often")
        self.in_time(g1, 8)

        g2.start()
        self.wait_for(lambda: self.rungs() == {"": ["cam-0", "cam-1"], "fewer frames": ["cam-2", "cam-3"]}, 15, "as before")
        self.wait_for(self.frames_are({"cam-0": 2, "cam-3": 1}), 15, "they are sampled by their rungs again")

    def lower_none(self):
        with open(self.fleet.config) as file:
            text = file.read()
        with open(self.fleet.config, "w") as file:
            file.write(text.replace("defaults: {", "defaults: {degrade: [], ").replace("  cam-0: {", "  cam-0: {priority: -1, "))

    def up(self):
        return sorted(name for name, state in self.c1.cameras().items() if state == "up")

    def guests(self, node):
        """Cameras that a node computes for others."""
        with urllib.request.urlopen(f"http://127.0.0.1:{node.metrics}/metrics", timeout=2) as answer:
            return sorted(set(re.findall(r'camera="(cam-\d)"', answer.read().decode())))

    def test_one_that_is_refused_while_it_runs_is_computed_again_when_it_is_admitted(self):
        self.lower_none()
        self.c1 = self.fleet.node("c1", "camera")
        # Each has room for two of these, and not for a third one.
        g1, g2 = self.compute("g1", 3), self.compute("g2", 3)
        self.fleet.etcd.start()
        for node in (g1, g2, self.c1):
            node.start()
        self.wait_for(lambda: self.fleet.watched([self.c1]), 25, "all cameras are up")
        for round in range(2):
            g2.kill()
            self.wait_for(lambda: self.rungs() == {"": ["cam-1", "cam-2"], "refused": ["cam-0", "cam-3"]}, 12, "two are refused")
            self.wait_for(lambda: self.up() == ["cam-1", "cam-2"], 12, "the others are up")
            reasons = {camera["camera"]: camera["reason"] for camera in self.c1.status()["cameras"]}
            for camera in ("cam-0", "cam-3"):
                self.assertIn("refused: the fleet has room for 3 of 4.075", reasons[camera])
            self.wait_for(lambda: self.guests(g1) == ["cam-1", "cam-2"], 12, "what is left of them is let go")
            self.in_time(g1, 4)
            g2.start()
            self.wait_for(lambda: self.fleet.watched([self.c1]), 25, "all cameras are up again")
            self.wait_for(lambda: sorted(self.guests(g1) + self.guests(g2)) == self.fleet.cameras, 12, "each is computed once")
            self.wait_for(self.frames_are(dict.fromkeys(self.fleet.cameras, 2)), 15, "all are sampled")
            for node in (g1, g2):
                self.in_time(node, 4)
        self.assertNotIn("ERROR", self.c1.said())

    def test_one_that_may_not_be_lowered_is_refused(self):
        self.lower_none()
        self.c1 = self.fleet.node("c1", "camera")
        g1 = self.compute("g1", 4)
        self.fleet.etcd.start()
        for node in (g1, self.c1):
            node.start()
        self.wait_for(lambda: self.rungs() == {"": ["cam-1", "cam-2", "cam-3"], "refused": ["cam-0"]}, 20, "that of the smallest priority is refused")
        self.wait_for(lambda: self.up() == ["cam-1", "cam-2", "cam-3"], 20, "the others are up")
        self.assertEqual(self.c1.cameras()["cam-0"], "down")
        self.wait_for(lambda: "so that it is not watched: refused: the fleet has room for 4 of 4.075" in self.told("cam-0"), 5, self.told("cam-0"))
        listed = json.loads(self.fleet.command("status", "--fleet", "--cameras", "--output", "json", "--endpoint", f"http://127.0.0.1:{self.c1.metrics}").stdout)
        self.assertEqual([camera["rung"] for camera in listed["list"]], ["refused", "full", "full", "full"])


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
