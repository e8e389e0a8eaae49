"""`vigil node`, as an operator starts it: real processes, a real etcd, real sockets.

  nodes_test.py BUILD
"""

import json
import os
import queue
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest

from processes import COMPUTE, SOURCE, Fleet, have_etcd, wait_for


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Nodes(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
        self.addCleanup(self.fleet.close)

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def start(self, order=("etcd", "gpu", "c1", "c2", "g1")):
        # Without a gateway a node that ends has news that nobody takes.
        made = {"g1": self.fleet.node("g1", "gateway"), "gpu": self.fleet.node("gpu", COMPUTE), "c1": self.fleet.node("c1", "camera"),
                "c2": self.fleet.node("c2", "camera")}
        for name in order:
            (self.fleet.etcd if name == "etcd" else made[name]).start()
        return made["gpu"], made["c1"], made["c2"]

    def settled(self, nodes):
        self.wait_for(lambda: self.fleet.watched(nodes), 30, "all cameras are up")

    def answered(self, gpu, more=3):
        before = gpu.windows()
        self.wait_for(lambda: gpu.windows() >= before + more, 20, "windows are answered")

    def test_start_in_any_order_and_share_the_cameras(self):
        gpu, c1, c2 = self.start(("g1", "c2", "c1", "gpu", "etcd"))
        self.settled([c1, c2])
        self.answered(gpu)
        self.wait_for(lambda: len(self.fleet.plan()) == 2, 10, "both have cameras")
        plan = self.fleet.plan()
        self.assertEqual(sorted(camera for cameras in plan.values() for camera in cameras), self.fleet.cameras)
        self.assertTrue(all(len(cameras) in (1, 2) for cameras in plan.values()), plan)

    def test_the_cameras_of_a_node_that_is_killed_go_to_another(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.wait_for(lambda: c1.cameras() and c2.cameras(), 15, "both have cameras")
        c1.kill()
        # Its lease of 3 s, etcd's second, and 5 s for the others.
        self.wait_for(lambda: self.fleet.watched([c2]), 9, "the other one has all of them")
        self.answered(gpu)
        c1.start()
        self.wait_for(lambda: "up" in c1.cameras().values(), 20, "it gets its share again")
        self.settled([c1, c2])

    def test_a_node_that_ends_hands_over_first(self):
        # Without a gateway, what it could not number would be lost with it, and it would say so.
        gateway = self.fleet.node("g1", "gateway")
        gateway.start()
        gpu, c1, c2 = self.start()
        self.wait_for(lambda: "gateway: serves" in gateway.said(), 15, "the gateway serves")
        self.settled([c1, c2])
        self.assertEqual(c1.terminate(), 0, c1.said())
        self.wait_for(lambda: self.fleet.watched([c2]), 2, "the other one has them, before any lease has ended")
        self.assertNotIn("were not handed over", c1.said())

    def grace(self, seconds):
        self.fleet.edit(lambda text: text.replace("shutdown_grace: 6s", f"shutdown_grace: {seconds}s"))

    def lines(self, node):
        """What it says of its end, beside its log."""
        return [line for line in node.said().splitlines() if line.startswith("vigil: ")][1:]

    def test_a_node_that_ends_waits_for_those_alone_that_could_take_its_cameras(self):
        # Half of it is shorter than a lease, after which nobody is left who could take any.
        self.grace(3)
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.wait_for(lambda: all(node.readiness() == 200 and "up" in node.cameras().values() for node in (c1, c2)), 15, "both have cameras")
        # It would be given them, and tells nothing; its lease goes on for a while.
        c2.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        c1.process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: c1.readiness() == 503, 1.5, "it is not ready any more, and answers")
        self.assertEqual(c1.process.wait(20), 0, c1.said())
        took = time.monotonic() - began
        self.assertGreater(took, 1.5, "half of the grace is for handing over")
        self.assertLess(took, 6)
        self.assertEqual(self.lines(c1), ["vigil: some cameras were not handed over in time"])
        c2.process.send_signal(signal.SIGCONT)
        self.settled([c2])
        self.answered(gpu, 6)
        # Its ways were gone: what it has now is not to be told before it has them again.
        self.wait_for(lambda: c2.metric("vigil_outbox_pending") == 0, 10, "all of it is told")
        began = time.monotonic()
        self.assertEqual(c2.terminate(), 0, c2.said())
        self.assertLess(time.monotonic() - began, 1.5, "there is nobody else")
        self.assertEqual(self.lines(c2), [])

    def test_a_node_that_ends_while_etcd_is_gone_does_not_wait_for_it(self):
        self.grace(2)
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.etcd.stop()
        self.assertEqual(c1.terminate(8), 0, c1.said())
        self.assertEqual(self.lines(c1), ["vigil: some cameras were not handed over in time",
                                          "vigil: the registry does not let this node go: its lease ends by itself"])
        self.assertEqual(gpu.terminate(8), 0, gpu.said())

    def test_streams_of_a_node_that_is_killed_are_computed_by_another(self):
        gpu, c1, c2 = self.start()
        other = self.fleet.node("gpu2", COMPUTE)
        other.start()
        self.settled([c1, c2])
        gpu.kill()
        self.answered(other, 6)
        self.settled([c1, c2])

    def test_all_go_on_when_etcd_is_gone(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.etcd.stop()
        self.wait_for(lambda: "registry: does not answer: nothing moves until it does" in c1.said(), 20, "it is told")
        # For longer than the leases.
        self.answered(gpu, 12)
        self.assertTrue(self.fleet.watched([c1, c2]))
        self.fleet.etcd.start()
        self.wait_for(lambda: "registry: answers again" in c1.said(), 20, "it is told again")
        self.answered(gpu, 3)
        self.settled([c1, c2])

    def test_the_second_of_two_of_one_name_is_refused(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])

        def is_at_rest():
            plan = self.fleet.plan()
            entries = [camera for cameras in plan.values() for camera in cameras.values()]
            return len(plan) == 2 and c1.cameras() and c2.cameras() and all("stream" in e and "hand_to" not in e for e in entries)
        self.wait_for(is_at_rest, 20, "nothing moves any more")
        record = lambda: json.loads(self.fleet.etcd.get("/vigil/city/nodes/c1")["/vigil/city/nodes/c1"])  # noqa: E731
        before, ways, plan = record(), gpu.said().count("c1"), self.fleet.plan()
        other = self.fleet.node("other", "camera")
        other.start("--name", "c1")

        def ended():
            self.assertNotIn("down", {*c1.cameras().values()}, "the first one's links stand")
            return other.process.poll()
        self.assertEqual(self.wait_for(ended, 20, "the second one ends"), 1)
        self.assertIn(f"waits: a node is called c1 already, at 127.0.0.1:{c1.control}, until its lease ends", other.said())
        self.assertIn("another node is called c1, and goes on: the one at 127.0.0.1:", other.said())
        self.assertEqual([line for line in other.said().splitlines() if "ERROR" in line][1:], [], "one line says why")
        self.assertEqual(record()["incarnation"], before["incarnation"])
        self.assertEqual(self.fleet.plan(), plan)
        self.assertEqual(gpu.said().count("c1"), ways, "nobody has noticed")
        self.assertIsNone(c1.process.poll())
        self.settled([c1, c2])

    def test_a_node_that_is_killed_has_its_name_at_once_when_it_is_started_again(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        c1.kill()
        c1.start()
        self.wait_for(lambda: "up" in c1.cameras().values(), 8, "it has cameras again")
        self.assertNotIn("is called c1", c1.said())

    def test_a_node_that_speaks_another_protocol_is_refused_on_both_sides(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.edit(lambda text: text.replace("  name: city\n", f'  name: city\n  seeds: ["127.0.0.1:{gpu.control}"]\n'))
        self.fleet.vigil = os.path.join(BUILD, "bin", "vigil_next")
        other = self.fleet.node("c3", "camera")
        other.start(VIGIL_TEST_OLDEST="2")
        self.assertEqual(self.wait_for(lambda: other.process.poll(), 20, "it ends"), 1)
        self.assertRegex(other.said(), r"no protocol in common: gpu has 1 \(version [\d.]+\), c3 has 2 \(version")
        self.wait_for(lambda: "refused node c3" in gpu.said(), 5, "the other side says so, too")
        self.assertRegex(gpu.said(), r"refused node c3 at .*: no protocol in common: gpu has 1 ")
        self.settled([c1, c2])

    def test_a_node_that_does_not_fit_is_refused_on_both_sides(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.edit(lambda text: text.replace("  name: city\n", f'  name: harbour\n  seeds: ["127.0.0.1:{gpu.control}"]\n'))
        other = self.fleet.node("stranger", "camera")
        other.start()
        self.assertEqual(self.wait_for(lambda: other.process.poll(), 20, "it ends"), 1)
        self.assertIn("another fleet: gpu has city, stranger has harbour", other.said())
        self.wait_for(lambda: "refused node stranger" in gpu.said(), 5, "the other side says so, too")

    def test_a_node_with_another_model_is_refused_on_both_sides(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        model = os.path.join(self.fleet.folder, "model")
        shutil.copytree(os.path.join(SOURCE, "models", "demo"), model)
        with open(os.path.join(model, "config.json"), "a") as file:
            file.write("\n")
        self.fleet.edit(lambda text: text.replace("  name: city\n", f'  name: city\n  seeds: ["127.0.0.1:{gpu.control}"]\n')
                        .replace(f"model: {SOURCE}/models/demo\n", f"model: {model}\n"))
        other = self.fleet.node("gpu2", COMPUTE)
        other.start()
        self.assertEqual(self.wait_for(lambda: other.process.poll(), 20, "it ends"), 1)
        self.assertRegex(other.said(), r"another model: gpu has \w{16}, gpu2 has \w{16}")
        self.wait_for(lambda: "refused node gpu2" in gpu.said(), 5, "the other side says so, too")
        self.assertRegex(gpu.said(), r"refused node gpu2 at .*: another model: gpu has \w{16}, gpu2 has \w{16}")

    def test_a_node_whose_clock_is_off_is_refused_on_both_sides(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.edit(lambda text: text.replace("  name: city\n", f'  name: city\n  seeds: ["127.0.0.1:{gpu.control}"]\n'))
        offset = os.path.join(self.fleet.folder, "clock")
        with open(offset, "wb") as file:
            file.write(struct.pack("=q", 5))
        other = self.fleet.node("c3", "camera")
        other.start(LD_PRELOAD=os.path.join(BUILD, "bin", "clock_offset.so"), CLOCK_OFFSET=offset)
        self.assertEqual(self.wait_for(lambda: other.process.poll(), 20, "it ends"), 1)
        apart = r"clocks are apart: that of c3 is at least (4\d{3}ms|5s) ahead of that of gpu"
        self.assertRegex(other.said(), apart)
        self.wait_for(lambda: "refused node c3" in gpu.said(), 5, "the other side says so, too")
        self.assertRegex(gpu.said(), "refused node c3 at .*: " + apart)


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Streams(unittest.TestCase):
    """Every window of every camera has an event, so that one that is missing, or told twice, is seen."""

    def make(self, cameras):
        self.fleet = Fleet(BUILD, cameras)
        self.addCleanup(self.fleet.close)
        with open(self.fleet.config) as file:
            text = file.read()
        for old, new in (("window: {length: 4s, stride: 2s}", "window: {length: 4s, stride: 1s}"), ("shutdown_grace: 6s", "shutdown_grace: 30s"),
                         ('rules: [{name: person, prompt: "Is there a person?"}]',
                          'rules: [{name: any, prompt: "Is there a person?", threshold: 0, confirm: "1/1", cooldown: 0s, max_per_hour: 10000}]')):
            self.assertIn(old, text)
            text = text.replace(old, new)
        with open(self.fleet.config, "w") as file:
            file.write(text)
        self.told, self.since, self.heard = {}, {}, queue.Queue()

    def wait_for(self, condition, seconds, what):
        def look():
            self.listen()
            return condition()
        return wait_for(look, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{self.told}\n{what}")

    def listen(self):
        while not self.heard.empty():
            data = json.loads(self.heard.get())["data"]
            self.told.setdefault(data["camera"], []).append(data)

    def start(self, cameras, towers=(), names=("gpu1", "gpu2"), roles=COMPUTE):
        """With one computing node; when windows are full and another one is there, these two. towers: nodes that encode, if these do not."""
        self.make(cameras)
        gateway, self.camera_node, old, new = (self.fleet.node(name, of) for name, of in (
            ("g1", "gateway"), ("c1", "camera"), *((name, roles) for name in names)))
        self.towers = [self.fleet.node(name, "vision") for name in towers]
        self.fleet.etcd.start()
        for tower in self.towers:
            tower.start()
        gateway.start()
        wait_for(lambda: "gateway: serves" in gateway.said(), 15, gateway.said)
        watch = subprocess.Popen([self.fleet.vigil, "watch", "alert/", "--endpoint", f"tcp://127.0.0.1:{gateway.events}", "--output", "json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (watch.kill(), watch.communicate()))
        threading.Thread(target=lambda: [self.heard.put(line) for line in watch.stdout], daemon=True).start()
        self.camera_node.start()
        old.start()
        self.wait_for(lambda: self.full(2), 40, "windows are full")
        new.start()
        self.wait_for(lambda: f"node {new.name}" in new.said(), 20, "the other one is there")
        self.wait_for(lambda: self.full(4) and all(former == "" for former, _ in self.streams()), 40, "nothing moves any more")
        return old, new

    def full(self, more):
        """Whether so many full windows of each camera have come since the last call that was true."""
        full = lambda camera: sum(data["window"]["frames"] >= 8 for data in self.told.get(camera, [])[self.since.get(camera, 0):])  # noqa: E731
        if any(full(camera) < more for camera in self.fleet.cameras):
            return False
        self.since = {camera: len(all_of) for camera, all_of in self.told.items()}
        return True

    def streams(self):
        return {(each.get("former_stream", ""), each.get("stream", "")) for each in self.fleet.plan().get("c1", {}).values()}

    def check(self, episodes=1, frames=8):
        try:
            self.check_windows(episodes, frames)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.fleet.dropped()}\n{self.fleet.logs()}") from None

    def check_windows(self, episodes, frames):
        """Of each camera, no window is missing, comes twice or has less than so many frames, once it is full. An owner goes on with the windows of the one before, in an episode of its own."""
        for camera in self.fleet.cameras:
            all_of = [data for data in self.told[camera] if data["phase"] != "end"]
            begun = next(i for i, data in enumerate(all_of) if data["window"]["frames"] >= 8)
            self.assertEqual([data["window"] for data in all_of[begun:] if data["window"]["frames"] < frames], [], f"{camera}: windows are full")
            told = {}
            for data in all_of:
                told.setdefault(data["episode"], []).append(data["confirmations"])
            self.assertEqual(list(told.values()), [list(range(1, len(of) + 1)) for of in told.values()], f"{camera}: each window once, in order")
            self.assertLessEqual(len(told), episodes, f"{camera}: {told}")
            # A window ends with its last frame, and where owners change, their frames are not a stride apart.
            starts, ends = ([self.seconds(data["window"][at]) for data in all_of[begun:]] for at in ("start", "end"))
            for before, after in zip(starts, starts[1:]):
                self.assertAlmostEqual(after - before, 1, delta=0.5, msg=f"{camera}: a window is missing or comes twice: {starts}")
            for before, after in zip(ends, ends[1:]):
                self.assertTrue(0.3 < after - before < 3, f"{camera}: {ends}")

    @staticmethod
    def seconds(text):
        moment, fraction = text.rstrip("Z").split(".")
        return time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%S")) + float("0." + fraction)

    def test_a_computing_node_that_ends_loses_no_window(self):
        # One camera's stream evens out, in the same way; the other one's is what is drained.
        old, _ = self.start(cameras=2)
        self.assertEqual(self.streams(), {("", "gpu1"), ("", "gpu2")})
        self.assertEqual(old.terminate(30), 0, old.said())
        self.assertNotIn("in time", old.said())
        self.assertEqual(self.streams(), {("", "gpu2")})
        self.wait_for(lambda: self.full(4), 20, "windows go on")
        self.check()
        self.assertNotIn("ERROR", self.camera_node.said())

    def test_a_node_with_streams_alone_that_ends_loses_no_window(self):
        old, _ = self.start(1, towers=("v1", "v2"), names=("s1", "s2"), roles="stream,generate")
        self.assertEqual(self.streams(), {("", "s1")})
        tower = lambda: {each["vision"] for each in self.fleet.plan()["c1"].values()}  # noqa: E731
        before = tower()
        self.assertEqual(old.terminate(30), 0, old.said())
        self.assertNotIn("in time", old.said())
        self.assertEqual(self.streams(), {("", "s2")})
        self.assertNotEqual(tower(), before, "one tower encodes for one stream")
        self.wait_for(lambda: self.full(4), 20, "windows go on")
        self.check()

    def test_another_tower_encodes_for_a_stream_whose_tower_ends(self):
        self.start(1, towers=("v1", "v2"), names=("s1", "s2"), roles="stream,generate")
        tower = lambda: {each["vision"] for each in self.fleet.plan()["c1"].values()}  # noqa: E731
        before, streams = tower(), self.streams()
        ends = next(node for node in self.towers if {node.name} == before)
        self.assertEqual(ends.terminate(30), 0, ends.said())
        self.assertNotIn("in time", ends.said())
        self.assertNotEqual(tower(), before)
        self.assertEqual(self.streams(), streams, "the stream stays")
        self.wait_for(lambda: self.full(4), 20, "windows go on")
        # A patch of two may be under way just then.
        self.check(frames=6)

    def test_a_tower_that_ends_while_it_takes_over_leaves_its_streams_to_a_third(self):
        self.start(1, towers=("v1", "v2", "v3"), names=("s1", "s2"), roles="stream,generate")
        place = lambda: next(iter(self.fleet.plan()["c1"].values()))  # noqa: E731
        towers = {node.name: node for node in self.towers}
        for _ in range(2):
            before = place()["vision"]
            towers[before].process.send_signal(signal.SIGTERM)
            self.wait_for(lambda: place()["vision"] not in ("", before), 10, "another tower is to encode")  # noqa: B023
        self.wait_for(lambda: sum(node.process.poll() is None for node in self.towers) == 1, 30, "both have ended")
        self.wait_for(lambda: self.full(6), 20, "windows go on")
        self.assertEqual([node.process.returncode for node in self.towers if node.process.returncode is not None], [0, 0])
        self.check(frames=4)

    def test_a_camera_node_that_ends_loses_no_window(self):
        _, _ = self.start(cameras=1)
        other = self.fleet.node("c2", "camera")
        other.start()
        self.wait_for(lambda: other.readiness() == 200, 20, "the other one is there")
        self.assertEqual(self.camera_node.terminate(30), 0, self.camera_node.said())
        self.assertNotIn("in time", self.camera_node.said())
        self.assertEqual(set(other.cameras().values()), {"up"}, "before any lease has ended")
        self.wait_for(lambda: self.full(4), 20, "windows go on")
        self.check(episodes=2)

    def test_a_computing_node_that_ends_goes_on_where_the_other_one_is_killed(self):
        old, new = self.start(cameras=1)
        self.assertEqual(self.streams(), {("", "gpu1")})
        old.process.send_signal(signal.SIGTERM)
        self.wait_for(lambda: ("gpu1", "gpu2") in self.streams(), 10, "a stream moves")
        new.kill()
        third = self.fleet.node("gpu3", COMPUTE)
        third.start()
        self.wait_for(lambda: old.process.poll() is not None, 30, "the old one has ended")
        self.assertNotIn("in time", old.said())
        self.assertEqual(self.streams(), {("", "gpu3")})
        self.wait_for(lambda: self.full(4), 20, "windows go on")
        self.check()


class Mistakes(unittest.TestCase):
    def test_roles_that_make_no_sense_are_told(self):
        with Fleet(BUILD) as fleet:
            for roles, expected in (("chef", "unknown role 'chef' (known: camera, vision, stream, generate, gateway)"),
                                    ("cache", "'cache' has nothing to do yet"),
                                    ("vision,generate,stove", "unknown role 'stove'"),
                                    ("camera,,vision", "vigil: --roles: a comma with no role beside it in 'camera,,vision'"),
                                    ("camera,", "vigil: --roles: a comma with no role beside it in 'camera,'")):
                node = fleet.node("c1", roles)
                node.start()
                self.assertEqual(node.process.wait(20), 2)
                self.assertIn(expected, node.said())

    def test_a_name_that_is_none_is_told(self):
        with Fleet(BUILD) as fleet:
            node = fleet.node("c1", "camera")
            node.start("--name", "a b/c")
            self.assertEqual(node.process.wait(20), 2)
            self.assertIn("expected a name of letters, digits, '.', '_' and '-'", node.said())

    def test_each_has_a_line(self):
        with Fleet(BUILD) as fleet:
            cases = [(lambda text: text.replace("name: city", "lease: 4s").replace("  lease: 3s\n", ""), "cluster.name: is missing"),
                     (lambda text: text.replace(f'endpoints: ["{fleet.etcd.endpoint}"]', "endpoints: []"),
                      "cluster.registry.endpoints: is missing"),
                     (lambda text: text.replace('listen: "127.0.0.1:{CONTROL}"', 'listen: "0.0.0.0:{CONTROL}"'), "is beyond this machine and not encrypted"),
                     (lambda text: text.replace('listen: "127.0.0.1:{CONTROL}"', 'listen: "0.0.0.0:{CONTROL}"\n  tls_dir: /tls'),
                      "stands for all addresses of this machine"),
                     (lambda text: text.replace("  lease: 3s\n", '  lease: 3s\n  seeds: ["::1:7400"]\n'), "expected HOST:PORT ([HOST]:PORT for IPv6), not `::1:7400`")]
            with open(fleet.config) as file:
                good = file.read()
            for spoil, expected in cases:
                with open(fleet.config, "w") as file:
                    file.write(spoil(good))
                node = fleet.node("c1", "camera")
                node.start()
                self.assertEqual(node.process.wait(20), 1)
                self.assertIn(expected, node.said())


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
