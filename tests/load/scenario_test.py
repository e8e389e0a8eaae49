#!/usr/bin/python3
"""Scenario files of loadtest/load: what is filled in, what the command line changes, and that whatever is wrong is refused in a line."""

import copy
import glob
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "load")
sys.path.insert(0, LOAD)
import scenario  # noqa: E402

GOOD = {"name": "one", "fleet": {"nodes": {"c1": "camera, gateway", "v1": "vision,stream,generate"}}, "cameras": {"kinds": {"file": 1, "rtsp": 1}},
        "loads": [4, 2],
        "phases": [{"name": "all", "lasts": "10s"}]}


def changed(path, value):
    """GOOD with another value at phases.0.lasts, say."""
    whole = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    at = whole
    for key in way:
        at = at[int(key)] if isinstance(at, list) else at.setdefault(key, {})
    if value is None:
        del at[last]
    else:
        at[last] = value
    return whole


class Scenario(unittest.TestCase):
    def refused(self, path, value, text):
        with self.assertRaises(scenario.Fault) as caught:
            scenario.checked(changed(path, value))
        self.assertIn(text, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_what_is_left_out_is_filled_in(self):
        found = scenario.checked(copy.deepcopy(GOOD))
        self.assertEqual(found["cameras"], {"kinds": {"file": 1, "rtsp": 1}, "fps": 2, "window": 2.0, "stride": 1.0, "size": "384x216",
                                            "pruning": "balanced", "rules": 1})
        self.assertEqual((found["seed"], found["warmup"], found["limits"], found["loads"]), (1, 10.0, {}, [2, 4]))
        self.assertEqual(found["fleet"], {"nodes": {"c1": ["camera", "gateway"], "v1": ["vision", "stream", "generate"]}, "process": False,
                                          "lease": 3.0, "high_water_mark": 1000})
        self.assertEqual(found["phases"], [{"name": "all", "lasts": 10.0, "cameras": 1, "moving": None, "flapping": None, "slow_subscribers": None,
                                            "lose": None}])

    def test_every_field_arrives(self):
        whole = changed("cameras", {"kinds": {"file": 0, "rtsp": 3}, "fps": 4, "window": "4s", "stride": "500ms", "size": "640x360",
                                    "pruning": "exact", "rules": 3})
        whole.update(seed=7, about="words", warmup="1m", limits={"latency_p95": "250ms", "answered": 0.5, "lost": 2, "violations": 3,
                                                                 "answered_again": "9s"})
        whole["fleet"].update(lease="5s", high_water_mark=9)
        whole["phases"][0].update(cameras=0.5, moving=0.25, flapping={"share": 0.5, "gone": "2s", "there": "3s"},
                                  slow_subscribers={"count": 2, "events_per_second": 0.5},
                                  lose={"node": "compute", "at": "2s", "back": "4s"})
        found = scenario.checked(whole)
        self.assertEqual(found["cameras"], {"kinds": {"rtsp": 3}, "fps": 4, "window": 4.0, "stride": 0.5, "size": "640x360", "pruning": "exact",
                                            "rules": 3})
        self.assertEqual((found["seed"], found["about"], found["warmup"], found["fleet"]["lease"], found["fleet"]["high_water_mark"]),
                         (7, "words", 60.0, 5.0, 9))
        self.assertEqual(found["limits"], {"latency_p95": 0.25, "answered": 0.5, "lost": 2, "violations": 3, "answered_again": 9.0})
        self.assertEqual(found["phases"][0], {"name": "all", "lasts": 10.0, "cameras": 0.5, "moving": 0.25,
                                              "flapping": {"share": 0.5, "gone": 2.0, "there": 3.0},
                                              "slow_subscribers": {"count": 2, "events_per_second": 0.5},
                                              "lose": {"node": "compute", "at": 2.0, "back": 4.0}})

    def test_one_process(self):
        for written in ("process", {"process": True}):
            found = scenario.checked(changed("fleet", written))["fleet"]
            self.assertEqual((list(found["nodes"]), found["process"], found["lease"]), (["process"], True, None))
        self.assertEqual(scenario.checked(changed("fleet", {"process": True, "high_water_mark": 5}))["fleet"]["high_water_mark"], 5)

    def test_unknown_fields(self):
        for path in ("loops", "fleet.size", "cameras.kind", "cameras.kinds.usb", "phases.0.duration", "limits.latency_p90", "phases.0.lose.who",
                     "phases.0.flapping.times"):
            self.refused(path, 1, "there is no such field")

    def test_missing_fields(self):
        for path in ("name", "fleet", "loads", "phases", "phases.0.lasts", "phases.0.name"):
            self.refused(path, None, "is missing")

    def test_values(self):
        for path, values in {
                "name": ("", "A", "x" * 41, 7, ["a"]), "seed": (-1, 1.5, True, "1"), "warmup": ("10", 10, "-1s", "1h"),
                "loads": ([], [0], [201], [2, 2], 4, ["4"], [1.5], [True]),
                "cameras.fps": (0, 11, "2"), "cameras.window": ("500ms", 2), "cameras.stride": ("3s", "100ms"),
                "cameras.size": ("640", "641x360", "10x10", 640), "cameras.pruning": ("none",),
                "cameras.rules": (0, 33, 1.0), "cameras.kinds": ({}, {"file": 0}, {"file": -1}, ["file"]),
                "fleet": ("two", {"nodes": {}}, {"nodes": ["c1"]}, {"process": "yes"}, {"process": True, "lease": "3s"}),
                "fleet.nodes": ({"c1": "camera"}, {"c1": "camera,vision,stream"}, {"c1": "camera,gateway,vision,cook"},
                                {"etcd": "camera,gateway,vision,stream"}, {"C": "camera"}, {"c1": ""}),
                "fleet.lease": ("0s", 3), "phases": ([], {}, "all"), "phases.0.cameras": (0, 1.1, "half"), "phases.0.moving": (-0.1, 2),
                "limits.answered": (1.1, "all"), "limits.lost": (-1, 0.5),
                "limits.latency_p95": (1, "fast"), "phases.0.slow_subscribers": ({"count": 1}, {"count": 0, "events_per_second": 1}, 3),
                "phases.0.flapping": ({"share": 0, "gone": "1s", "there": "1s"}, True),
                "phases.0.lose": ({"node": "g9", "at": "1s", "back": "2s"}, {"node": "c1", "at": "3s", "back": "2s"},
                                  {"node": "c1", "at": "3s", "back": "10s"}, "c1")}.items():
            for value in values:
                with self.subTest(path=path, value=value):
                    if value is not None:
                        self.refused(path, value, path.split(".")[0])

    def test_only_rtsp_cameras_move_and_flap(self):
        for key, value in (("moving", 0.5), ("flapping", {"share": 0.5, "gone": "1s", "there": "1s"})):
            whole = changed("cameras", {"kinds": {"file": 1}})
            whole["phases"][0][key] = value
            with self.assertRaisesRegex(scenario.Fault, f"phases.0..{key}: only RTSP cameras can"):
                scenario.checked(whole)

    def test_two_phases_of_one_name(self):
        self.refused("phases", GOOD["phases"] * 2, "two have the same name")

    def test_a_file_that_is_none(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.yaml")
            for content in (b"", b"name: [", b"- 1\n", b"\xff\xfe", b"name: a\nname: b: c\n"):
                with open(path, "wb") as file:
                    file.write(content)
                with self.subTest(content=content), self.assertRaises(scenario.Fault) as caught:
                    scenario.read(path)
                self.assertTrue(str(caught.exception).startswith(path) and "\n" not in str(caught.exception))
            whole = b"name: a\nfleet: process\nloads: [1]\nphases: [{name: all, lasts: 9s}]\n"
            for content, good in ((whole, True), (whole + b"loads: [2]\n", False), (whole.replace(b"lasts", b"name: b, lasts"), False)):
                with open(path, "wb") as file:
                    file.write(content)
                if good:
                    self.assertEqual(scenario.read(path)["loads"], [1])
                else:
                    with self.assertRaisesRegex(scenario.Fault, "twice"):
                        scenario.read(path)
            with self.assertRaisesRegex(scenario.Fault, "No such file"):
                scenario.read(os.path.join(folder, "none.yaml"))

    def test_the_command_line_counts(self):
        path = os.path.join(LOAD, "scenarios", "node-loss.yaml")
        found = scenario.read(path, nodes="1,2,1", loads=[3], minutes=0.5)
        self.assertEqual(list(found["fleet"]["nodes"]), ["c1", "v1", "v2", "g1"])
        self.assertEqual(found["loads"], [3])
        self.assertAlmostEqual(sum(phase["lasts"] for phase in found["phases"]), 30)
        before = scenario.read(path)["phases"][1]
        self.assertAlmostEqual(found["phases"][1]["lose"]["at"] / found["phases"][1]["lasts"], before["lose"]["at"] / before["lasts"])
        slow = os.path.join(LOAD, "scenarios", "slow-subscriber.yaml")
        self.assertEqual(scenario.read(slow, nodes="process")["fleet"]["high_water_mark"], scenario.read(slow)["fleet"]["high_water_mark"])
        for wrong in ({"nodes": "1,1"}, {"nodes": "0,1,1"}, {"minutes": 0}, {"minutes": 0.01}, {"loads": [0]}, {"nodes": "process"}):
            with self.subTest(**wrong), self.assertRaises(scenario.Fault):
                scenario.read(path, **wrong)

    def test_the_files_that_are_there(self):
        files = sorted(glob.glob(os.path.join(LOAD, "scenarios", "*.yaml")))
        self.assertEqual([os.path.basename(path) for path in files], ["flapping-cameras.yaml", "node-loss.yaml", "rush-hour.yaml",
                                                                      "slow-subscriber.yaml", "steady.yaml"])
        for path in files:
            found = scenario.read(path)
            self.assertEqual(f"{found['name']}.yaml", os.path.basename(path))
            self.assertTrue(found["limits"] and found["about"])

    def test_run_refuses_with_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("name: x\nfleet: process\nloads: [1]\nphases: [{name: a, lasts: 5s, loses: c1}]\n")
            done = subprocess.run([os.path.join(LOAD, "run"), path], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertRegex(done.stderr, r"\Arun: .*x\.yaml: phases\[0\]\.loses: there is no such field \(known: .*\)\n\Z")
            for arguments in (["--cameras", "two"], ["--cameras", "0"], ["--build", folder], ["--out", os.path.join(folder, "no", "x.json")]):
                done = subprocess.run([os.path.join(LOAD, "run"), os.path.join(LOAD, "scenarios", "steady.yaml"), *arguments], capture_output=True,
                                      text=True, check=False)
                self.assertEqual(done.returncode, 2, arguments)


if __name__ == "__main__":
    unittest.main()
