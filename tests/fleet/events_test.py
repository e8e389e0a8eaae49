"""Gateways of a fleet, as subscribers see them: real processes, a real etcd, real sockets.

  events_test.py BUILD
"""

import json
import os
import subprocess
import sys
import threading
import unittest

from processes import COMPUTE, Fleet, have_etcd, wait_for


class Watch:
    """`vigil watch` at one node, with all that it keeps, until it is closed."""

    def __init__(self, *nodes):
        self.lines, self.errors = [], []
        self.process = subprocess.Popen(
            [nodes[0].fleet.vigil, "watch", "alert/", "status/", "process/", *(word for node in nodes for word in ("--endpoint", f"tcp://127.0.0.1:{node.events}")),
             "--since", "1h", "--output", "json"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for stream, into in ((self.process.stdout, self.lines), (self.process.stderr, self.errors)):
            threading.Thread(target=lambda stream=stream, into=into: into.extend(iter(stream.readline, "")), daemon=True).start()

    def events(self):
        """Ids by series and number; the same number twice has to be the same event."""
        found = {}
        for line in list(self.lines):
            event = json.loads(line)
            key = (event["type"], event["source"], event["subject"], event["data"]["seq"])
            assert found.setdefault(key, event["id"]) == event["id"], (key, found[key], event["id"])
        return found

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()


def gaps(events):
    """Numbers that are missing of what is there from 1 on."""
    series = {}
    for *name, number in events:
        series.setdefault(tuple(name), set()).add(number)
    return {name: set(range(1, max(numbers) + 1)) - numbers for name, numbers in series.items()
            if len(numbers) != max(numbers)}


class Nodes(unittest.TestCase):
    CAMERAS = 3

    def setUp(self):
        self.fleet = Fleet(BUILD, cameras=self.CAMERAS)
        self.addCleanup(self.fleet.close)
        # An episode that goes on has news every second or so.
        with open(self.fleet.config) as file:
            text = file.read()
        with open(self.fleet.config, "w") as file:
            file.write(text.replace('"Is there a person?"}', '"Is there a person?", threshold: 0, cooldown: 1s, max_per_hour: 3600}'))
        self.fleet.etcd.start()
        self.made = {name: self.fleet.node(name, roles) for name, roles in
                     (("g1", "gateway"), ("g2", "gateway"), ("gpu", COMPUTE), ("c1", "camera"), ("c2", "camera"))}

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what() if callable(what) else what}")

    def start(self, *names):
        for name in names:
            self.made[name].start()

    def watch(self, *names):
        """One subscriber of all of these gateways."""
        watch = Watch(*(self.made[name] for name in names))
        self.addCleanup(watch.close)
        return watch

    def told(self, watch, more, alerts=0, seconds=30):
        """Waits until so many more events are there."""
        of = lambda: sum(key[0] == "dev.vigil.alert.v1" for key in watch.events())
        before, alerts_before = len(watch.events()), of()
        self.wait_for(lambda: len(watch.events()) >= before + more and of() >= alerts_before + alerts, seconds,
                      lambda: f"{more} events: {watch.events()} {watch.errors}")

    def same(self, *watches):
        """What one of them shows, the others do, at the same number, and none is missing."""
        def agree():
            shown = [watch.events() for watch in watches]
            return all(each == shown[0] for each in shown) and not gaps(shown[0])
        self.wait_for(agree, 20, lambda: [sorted(watch.events().items()) for watch in watches])

    def since_start(self, name):
        return self.made[name].said().rsplit(f"node {name} of fleet", 1)[1]

    def serves(self, name, seconds=20):
        self.wait_for(lambda: "gateway: serves" in self.since_start(name), seconds, f"{name} serves")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Gateways(Nodes):
    def test_gateways_show_the_same_whatever_is_killed(self):
        self.start("g1", "g2", "gpu", "c1", "c2")
        self.wait_for(lambda: self.fleet.watched([self.made["c1"], self.made["c2"]]), 30, "all cameras are up")
        one, other, both = self.watch("g1"), self.watch("g2"), self.watch("g1", "g2")
        self.told(one, 6, alerts=1)
        self.same(one, other, both)
        # A camera node: others go on with its series where it ended.
        self.made["c1"].kill()
        self.wait_for(lambda: self.fleet.watched([self.made["c2"]]), 12, "the other one has all of them")
        self.told(one, 3, alerts=1)
        self.same(one, other)
        # A gateway: the other one goes on once its lease has ended.
        self.made["g1"].kill()
        seen = one.events()
        one.close()
        self.told(other, 2, alerts=1)
        # Its subscriber goes there: what it has, and what it is told again, is the same by its number and id, and all there is.
        changed = self.watch("g2")
        self.wait_for(lambda: set(seen) <= set(changed.events()) and len(changed.events()) > len(seen), 10, lambda: f"{seen} {changed.events()}")
        again = changed.events()
        self.assertEqual(seen, {key: again[key] for key in seen})
        self.assertFalse(gaps(again))
        # One that has both goes on by itself, and shows each once.
        self.same(both, other)
        self.assertEqual(len(both.lines), len(both.events()), "nothing is shown twice")
        # It comes again, and has all.
        self.made["g1"].start()
        self.start("c1")
        one = self.watch("g1")
        self.serves("g1")
        self.same(one, other)
        self.told(one, 2, alerts=1)
        self.same(one, other)

    def test_what_is_made_while_there_is_no_gateway_comes_later(self):
        self.start("gpu", "c1", "c2")
        cameras = [self.made["c1"], self.made["c2"]]
        self.wait_for(lambda: self.fleet.watched(cameras), 30, "all cameras are up")
        self.wait_for(lambda: self.made["gpu"].windows() >= 6, 20, "windows are answered")
        self.wait_for(lambda: all("no gateway of this fleet serves" in node.said() for node in cameras), 5, "it is said")
        answered = self.made["gpu"].windows()
        self.start("g1")
        watch = self.watch("g1")
        self.told(watch, 4, alerts=1, seconds=20)
        self.assertFalse(gaps(watch.events()))
        self.wait_for(lambda: {key[1] for key in watch.events() if key[0] == "dev.vigil.process.v1"} == {"/process/c1", "/process/c2"}, 10,
                      lambda: f"the nodes' own news: {watch.events()}")
        # One that comes to it empty has what it has.
        self.start("g2")
        self.same(watch, self.watch("g2"))
        self.assertGreaterEqual(self.made["gpu"].windows(), answered)

    def test_what_a_camera_node_kept_comes_before_what_the_next_one_of_its_camera_tells(self):
        self.start("gpu", "c1")
        one, other = self.made["c1"], self.made["c2"]
        self.wait_for(lambda: self.fleet.watched([one]), 30, "it has all cameras")
        self.wait_for(lambda: self.made["gpu"].windows() >= 9, 20, "windows are answered")
        self.start("c2")
        moved = self.wait_for(lambda: [camera for camera, state in other.cameras().items() if state == "up"], 30, "some move")
        self.wait_for(lambda: "events: there are some here of cameras that are others' by now" in one.said(), 5, "it is said")
        self.start("g1")
        watch = self.watch("g1")
        def fences(kind):
            """Of each camera that moved, in the order of its numbers."""
            found = {}
            for line in list(watch.lines):
                event = json.loads(line)
                camera = event["source"].rsplit("/", 1)[1]
                if event["type"] == kind and camera in moved:
                    found.setdefault(camera, {})[event["data"]["seq"]] = event["data"]["fence"]
            return {camera: [fence for _, fence in sorted(numbers.items())] for camera, numbers in found.items()}
        self.wait_for(lambda: all(len(set(fences("dev.vigil.alert.v1").get(camera, []))) == 2 for camera in moved), 30,
                      lambda: f"both owners told: {moved} {fences('dev.vigil.alert.v1')}")
        # A state that is as the former owner told it last is no news.
        for kind in "dev.vigil.alert.v1", "dev.vigil.status.v1":
            for camera, told in fences(kind).items():
                self.assertEqual(told, sorted(told), f"{camera}: the former owner's come first")
        self.assertFalse(gaps(watch.events()))
        self.assertNotIn("are not told", self.fleet.logs())
        self.assertIn("there are none any more", one.said())

    def damage(self, outbox, what):
        files = sorted(os.listdir(outbox), key=lambda name: os.path.getsize(os.path.join(outbox, name)))
        path = lambda ending: os.path.join(outbox, [name for name in files if name.startswith(ending) or name.endswith(ending)][-1])
        if what == "bytes of a table":
            with open(path(".sst"), "r+b") as file:
                for part in 0.2, 0.4, 0.6:
                    file.seek(int(os.path.getsize(file.name) * part))
                    file.write(b"damage")
        elif what == "no manifest":
            os.remove(path("MANIFEST-"))
        elif what == "an empty CURRENT":
            os.truncate(path("CURRENT"), 0)
        elif what == "a torn log":
            os.truncate(path(".log"), os.path.getsize(path(".log")) // 2)

    def test_a_gateway_whose_outbox_was_damaged_says_so_and_gets_all_of_it_again(self):
        self.start("g1", "g2", "gpu", "c1")
        one = self.watch("g1")
        self.told(one, 12, alerts=3)
        broken, outbox = self.made["g2"], os.path.join(self.fleet.folder, "outbox-g2")
        # With its second start, what is in the log goes into a table.
        for what in "a torn log", "an empty CURRENT", "no manifest", "", "bytes of a table":
            broken.kill()
            self.damage(outbox, what)
            broken.start()
            self.wait_for(lambda: "node g2 of fleet" in broken.said(), 10, "it starts")
            self.serves("g2", 30)
            other = self.watch("g2")
            if what:
                # Some damage is met when somebody reads there.
                self.wait_for(lambda: "It goes on under a new identity" in self.since_start("g2"), 20, f"{what}: it is said")
                self.wait_for(lambda: "it begins anew, with all that g1 has" in self.since_start("g2"), 20, f"{what}: it begins anew")
                self.wait_for(lambda: self.since_start("g2").rsplit("it begins anew, with all", 1)[1].count("gateway: serves"), 20, "it serves")
                self.assertTrue(os.path.isdir(outbox + ".replaced"))
            self.same(one, other)
            other.close()
        self.assertNotIn("serves without", broken.said())

    def test_a_gateway_that_is_alone_says_that_it_serves_without_what_damage_took(self):
        self.start("g1", "gpu", "c1")
        watch = self.watch("g1")
        self.told(watch, 12, alerts=3)
        gateway = self.made["g1"]
        gateway.kill()
        self.damage(os.path.join(self.fleet.folder, "outbox-g1"), "a torn log")
        gateway.start()
        self.wait_for(lambda: "waits for another gateway, which may have what is missing here" in gateway.said(), 20, "it waits a while")
        self.serves("g1", 30)
        self.wait_for(lambda: "it serves without what could not be read of its outbox" in gateway.said(), 5, "it is said")
        self.assertEqual(gateway.metric("vigil_outbox_replaced_total", reason="behind"), 1)

    def test_a_gateway_whose_outbox_cannot_be_had_at_its_start_holds_nobody_up_and_serves_when_it_can(self):
        outbox = os.path.join(self.fleet.folder, "outbox-g1")
        with open(outbox, "w") as file:
            file.write("in the way")
        one, other = self.made["g1"], self.made["g2"]
        self.start("g1")
        self.wait_for(lambda: outbox in one.status().get("fleet", {}).get("gateway", ""), 20, "it says why it does not serve")
        self.wait_for(lambda: one.status()["fleet"]["membership"] == "member", 10, "its record is the oldest")
        self.assertFalse(one.status()["ready"])
        shown = self.fleet.command("status", "--endpoint", f"http://127.0.0.1:{one.metrics}").stdout
        self.assertIn("its gateway does not serve: ", shown)
        self.start("g2")
        self.wait_for(lambda: "gateway: serves" in other.said(), 30, "the other one begins without it")
        self.assertIsNone(one.process.poll())
        shown = self.fleet.command("status", "--fleet", "--endpoint", f"http://127.0.0.1:{other.metrics}").stdout
        self.assertRegex(shown, r"g1 .*its gateway does not serve: .*outbox-g1")
        os.remove(outbox)
        self.wait_for(lambda: "gateway: serves" in one.said(), 20, "it serves when it can")
        self.wait_for(lambda: one.status()["ready"] and not one.status()["fleet"]["gateway"], 5, "and is ready")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class OneCamera(Nodes):
    CAMERAS = 1

    def test_what_a_camera_node_left_on_its_disk_is_told_when_it_is_back_though_its_camera_is_elsewhere(self):
        self.start("g1", "gpu", "c1")
        one, other, gateway = (self.made[name] for name in ("c1", "c2", "g1"))
        watch = self.watch("g1")
        self.told(watch, 4, alerts=2)
        before = len(watch.events())
        gateway.kill()
        self.wait_for(lambda: one.metric("vigil_outbox_pending") >= 3, 20, "it keeps some")
        one.kill()
        self.start("c2")
        self.wait_for(lambda: self.fleet.watched([other]), 20, "the other one has the camera")
        one.start()
        self.wait_for(lambda: "events: there are some here of cameras that are others' by now" in one.said(), 20, "it says what it has")
        self.assertEqual(self.fleet.plan().get("c1", {}), {})
        gateway.start()
        self.wait_for(lambda: "there are none any more" in one.said(), 30, "it told them")
        again = self.watch("g1")
        def told():
            """Fences of the camera's alerts, in the order of their numbers."""
            events = [json.loads(line) for line in list(again.lines)]
            alerts = {event["data"]["seq"]: event["data"]["fence"] for event in events if event["type"] == "dev.vigil.alert.v1"}
            return [fence for _, fence in sorted(alerts.items())]
        self.wait_for(lambda: len(set(told())) == 2, 30, lambda: f"both owners told: {told()} {again.events()}")
        self.assertEqual(told(), sorted(told()))
        self.assertFalse(gaps(again.events()))
        self.assertGreaterEqual(len(again.events()), before + 3)
        self.assertNotIn("are not told", one.said())


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
