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

    def __init__(self, node):
        self.lines, self.errors = [], []
        self.process = subprocess.Popen(
            [node.fleet.vigil, "watch", "alert/", "status/", "process/", "--endpoint", f"tcp://127.0.0.1:{node.events}", "--since", "1h", "--output", "json"],
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


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Gateways(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
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
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def start(self, *names):
        for name in names:
            self.made[name].start()

    def watch(self, name):
        watch = Watch(self.made[name])
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

    def test_gateways_show_the_same_whatever_is_killed(self):
        self.start("g1", "g2", "gpu", "c1", "c2")
        self.wait_for(lambda: self.fleet.watched([self.made["c1"], self.made["c2"]]), 30, "all cameras are up")
        one, other = self.watch("g1"), self.watch("g2")
        self.told(one, 6, alerts=1)
        self.same(one, other)
        # A camera node: others go on with its series where it ended.
        self.made["c1"].kill()
        self.wait_for(lambda: self.fleet.watched([self.made["c2"]]), 12, "the other one has all of them")
        self.told(one, 3, alerts=1)
        self.same(one, other)
        # A gateway: the other one goes on once its lease has ended.
        self.made["g1"].kill()
        one.close()
        self.told(other, 2, alerts=1)
        # It comes again, and has all.
        self.made["g1"].start()
        self.start("c1")
        one = self.watch("g1")
        self.wait_for(lambda: "gateway: serves" in self.made["g1"].said().rsplit("node g1 of fleet", 1)[1], 20, "it serves again")
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
        self.wait_for(lambda: one.status()["ready"], 5, "and is ready")
        self.assertEqual(one.status()["fleet"]["gateway"], "")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
