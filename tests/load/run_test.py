#!/usr/bin/python3
"""loadtest/load/run from end to end, small: one process, and a fleet that loses a node, at once; and that an interrupted run leaves nothing.

  run_test.py BUILD

77 where there are no namespaces, or a package lacks.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import results

import needs  # noqa: E402  (loadtest/load)

RUN = os.path.join(results.LOAD, "run")
PATIENCE = 60
PROCESS = """
name: small
about: one process
fleet: {process: true}
cameras: {kinds: {file: 1, rtsp: 1, synthetic: 1}, rules: 2, window: 6s}
loads: [3]
warmup: 3s
phases:
  - {name: still, lasts: 8s, moving: 0}
  - {name: moving, lasts: 8s, moving: 1, slow_subscribers: {count: 1, events_per_second: 1}}
limits: {lost: 0, violations: 0, latency_p50: 1ms}
"""
FLEET = """
name: small-fleet
about: a fleet that loses a node, and cameras that go
fleet:
  nodes: {c1: camera, c2: camera, g1: "gateway,vision,stream,generate"}
  lease: 2s
cameras: {kinds: {file: 1, rtsp: 1}}
loads: [4]
warmup: 3s
phases:
  - {name: lost, lasts: 15s, lose: {node: camera, at: 2s, back: 10s}}
  - {name: flapping, lasts: 10s, cameras: 0.5, flapping: {share: 1, gone: 3s, there: 4s}}
limits: {lost: 0, violations: 0}
"""


def named(folder):
    """Processes of the machine whose command or namespace has to do with this folder."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                command = file.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if folder in command and int(pid) != os.getpid():
            found.append((int(pid), command))
    return found


class Run(unittest.TestCase):
    build = "build/release"

    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="vigil-load-test-"))
        cls.started = {}
        for name, text in (("process", PROCESS), ("fleet", FLEET)):
            scenario = results.write(cls.folder, f"{name}.yaml", text)
            cls.started[name] = subprocess.Popen([RUN, scenario, "--build", cls.build, "--patience", "2", "--folder",
                                                  os.path.join(cls.folder, f"seen-{name}"),
                                                  "--out", os.path.join(cls.folder, f"{name}.json")], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                                 text=True)
        cls.done = {name: (*process.communicate(), process.returncode) for name, process in cls.started.items()}

    def result(self, name):
        with open(os.path.join(self.folder, f"{name}.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_one_process(self):
        out, err, status = self.done["process"]
        # The limit of a millisecond is there to be broken.
        self.assertEqual(status, 1, err)
        self.assertRegex(err, r"failed: 3 cameras, still: latency_p50 0\.\d+ s, 0\.001 s at most")
        found = self.result("process")
        self.assertEqual(found["failed"], [line.removeprefix("failed: ") for line in err.splitlines() if line.startswith("failed: ")])
        self.assertTrue(all("latency_p50" in text for text in found["failed"]), found["failed"])
        self.assertEqual((found["schema"], found["seed"], found["scenario"]["content"]["name"]), ("vigil-load/1", 1, "small"))
        self.assertTrue(found["machine"]["cores"] > 0 and found["machine"]["kernel"] and found["vigil"].startswith("vigil ") and found["date"])
        (step,) = found["steps"]
        self.assertEqual(step["kinds"], {"file": 1, "rtsp": 1, "synthetic": 1})
        still, moving = step["phases"]
        for phase in (still, moving):
            self.assertTrue(16 <= phase["windows"]["seen"] <= 30 and phase["windows"]["answered_share"] > 0.7, phase)
            self.assertTrue(0 < phase["latency"]["p50"] <= phase["latency"]["p95"] <= phase["latency"]["max"] < 30, phase)
            self.assertLessEqual(phase["said"]["p50"], phase["latency"]["p50"] + 0.002)
            self.assertTrue(phase["windows"]["answered"] > 0 and phase["processes"]["process"]["cores"] > 0 and phase["processes"]["process"]["rss_mib"] > 10, phase)
        # What does not move is not computed again.
        self.assertLess(moving["groups_spared"], still["groups_spared"])
        self.assertGreater(moving["visual_tokens"], 0)
        (slow,) = step["slow_subscribers"]
        self.assertTrue(slow["phase"] == "moving" and slow["read"] > 0 and slow["missed_and_not_replayed"] == 0, slow)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line.get("phase") for line in lines], ["still", "moving", None, "all"])
        self.assertEqual(lines[2]["missed"], slow["missed"])
        self.assertTrue(all(line["bench"] == "load" and line["commit"] == found["commit"] for line in lines))

    def test_a_fleet_that_loses_a_node(self):
        _, err, status = self.done["fleet"]
        self.assertEqual(status, 0, err)
        (step,) = self.result("fleet")["steps"]
        (loss,) = step["losses"]
        self.assertIn(loss["node"], ("c1", "c2"))
        self.assertTrue(loss["cameras"] >= 1 and 7 < loss["gone"] < 12, loss)
        # The lease has to end first, in which nothing is told of its cameras.
        self.assertTrue(0 < loss["detected"] < 10 and loss["silence"] >= loss["detected"] - 1.5, loss)
        self.assertTrue("sampled_again" in loss and "answered_again" in loss, loss)
        lost, flapping = step["phases"]
        self.assertTrue(lost["windows"]["expected"] >= 52 and lost["windows"]["seen"] < lost["windows"]["expected"], lost)
        self.assertEqual((lost["cameras"], flapping["cameras"]), (4, 2))
        # One of the two is a file, and is there all the time: 10 or 11 ends. The other goes at a random moment, once or twice, and comes back with an end of its own.
        self.assertTrue(10 <= flapping["windows"]["expected"] <= 24 and flapping["windows"]["seen"] >= 6, flapping)
        self.assertTrue({"c1", "c2", "g1", "etcd", "cams"} <= set(flapping["processes"]), flapping)
        said = {}
        for name in ("cams", "c1", "c2"):
            with open(os.path.join(self.folder, "seen-fleet", "small-fleet-4", f"{name}.log"), encoding="utf-8") as file:
                said[name] = file.read()
        self.assertNotIn("Traceback", said["cams"])
        self.assertRegex(said["c1"] + said["c2"], r"camera cam-\d+: down: .*404 Not Found")

    def test_results_are_compared_and_drawn(self):
        path = os.path.join(self.folder, "fleet.json")
        same = subprocess.run([os.path.join(results.LOAD, "compare"), path, path], capture_output=True, text=True, check=False)
        self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
        drawn = subprocess.run([os.path.join(results.LOAD, "plot"), path, "--out", self.folder], capture_output=True, text=True, check=False)
        self.assertIn(drawn.returncode, (0, 77), drawn.stderr)

    def test_what_was_kept_is_not_written_over(self):
        done = subprocess.run([RUN, os.path.join(self.folder, "process.yaml"), "--build", self.build, "--folder", os.path.join(self.folder, "seen-process")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Arun: .*small-3: File exists\n\Z")

    def started_in(self, folder):
        """A run that is under way, with its own folder in this one."""
        scenario = results.write(folder, "long.yaml", PROCESS.replace("8s", "300s"))
        return subprocess.Popen([RUN, scenario, "--build", self.build, "--patience", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "TMPDIR": folder})

    def test_an_interrupted_run_leaves_nothing(self):
        with contextlib.ExitStack() as stack:
            runs = []
            for how, status in ((signal.SIGINT, 130), (signal.SIGTERM, 130), (signal.SIGKILL, -signal.SIGKILL)):
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vigil-load-test-"))
                runs.append((how, status, folder, self.started_in(folder)))
            for how, status, folder, process in runs:
                with self.subTest(how=how):
                    self.interrupt(how, status, folder, process)

    def interrupt(self, how, status, folder, process):
        for line in process.stderr:
            if "up after" in line:
                break
        self.assertTrue([command for _, command in named(folder) if "vigil run" in command])
        process.send_signal(how)
        self.assertEqual(process.wait(PATIENCE), status)
        # Its children have our pipe still, so that none ends for the want of it.
        end = time.monotonic() + PATIENCE / 4
        while named(folder) and time.monotonic() < end:
            time.sleep(0.05)  # between looks at processes that run by themselves
        left = named(folder)
        for pid, _ in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.stderr.close()
        self.assertEqual(left, [])
        # Who is killed cannot remove its folder.
        if how != signal.SIGKILL:
            self.assertEqual(os.listdir(folder), ["long.yaml"])


if __name__ == "__main__":
    Run.build = os.path.abspath(sys.argv.pop(1))
    reason = needs.missing(("rtsp",))
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    unittest.main()
