"""One configuration for all nodes: a change is applied by all or by none; secrets stay with the camera's node. Real processes, a real etcd.

  config_test.py BUILD
"""

import json
import os
import re
import signal
import sys
import unittest

from processes import COMPUTE, Fleet, have_etcd, wait_for


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Configuration(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
        self.addCleanup(self.fleet.close)

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def start(self, **cameras_of):
        """A node that computes and two with cameras, each with a copy of the file of its own, as mounted ConfigMaps are."""
        if not self.fleet.etcd.process:
            self.fleet.etcd.start()
        nodes = [self.fleet.node("gpu", COMPUTE), self.fleet.node("c1", "camera"), self.fleet.node("c2", "camera")]
        for node in nodes:
            node.own_config()
            node.start(**cameras_of.get(node.name, {}))
        return nodes

    def settled(self, nodes):
        self.wait_for(lambda: self.fleet.watched(nodes), 30, "all cameras are up")

    def records(self):
        return {key.rsplit("/", 1)[1]: json.loads(value) for key, value in self.fleet.etcd.get("/vigil/city/nodes/").items()}

    def versions(self):
        return sorted(record["config_version"] for record in self.records().values())

    def status(self):
        out = self.fleet.command("config", "status", "--config", self.fleet.config)
        return out.returncode, out.stdout + out.stderr

    def without(self, camera):
        return lambda text: re.sub(rf"  {camera}: .*\n", "", text)

    def test_a_change_is_applied_when_all_have_read_it_and_not_before(self):
        nodes = gpu, c1, c2 = self.start()
        self.settled(nodes[1:])
        self.wait_for(lambda: self.versions() == [1, 1, 1], 5, "all run by the first version")
        self.assertEqual(self.status()[0], 0, self.status())
        c1.process.send_signal(signal.SIGHUP)
        self.wait_for(lambda: "configuration: applied: nothing" in c1.said(), 5, "it reads its file when it is asked to")
        for node in (gpu, c1):
            node.edit(self.without("cam-2"))
        self.wait_for(lambda: "is not applied: not read by c2" in self.status()[1], 5, "the status says who is behind")
        self.assertEqual(self.status()[0], 1)
        self.assertIn("c1: version 1; has read ", self.status()[1])
        self.wait_for(lambda: all("is not applied: not read by c2" in node.said() for node in nodes), 5, "all say who is behind")
        self.assertEqual(self.versions(), [1, 1, 1])
        self.settled(nodes[1:])
        c2.edit(self.without("cam-2"))
        self.wait_for(lambda: self.versions() == [2, 2, 2], 5, "all run by the second one")
        self.wait_for(lambda: sorted([*c1.cameras(), *c2.cameras()]) == ["cam-0", "cam-1"], 10, "the camera has ended")
        for node in nodes:
            self.assertIn("configuration: applied: version 2", node.said())
            self.assertIn("removed cam-2", node.said())
        self.assertIn("version 2", self.status()[1])
        self.assertEqual(self.status()[0], 0, self.status())
        # What cannot be read is named, and holds nothing up.
        self.fleet.etcd.ctl("put", "/vigil/city/nodes/ghost", "garbage")
        status, said = self.status()
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^vigil: /vigil/city/nodes/ghost: no record of a node: ")
        self.assertIn("version 2", said)
        self.wait_for(lambda: all("registry: /vigil/city/nodes/ghost: " in node.said() for node in nodes), 5, "all say so")
        for node in nodes:
            self.assertNotRegex(node.said(), r"registry: (the )?registry:")
        self.assertEqual(sorted([*c1.cameras(), *c2.cameras()]), ["cam-0", "cam-1"])

    def test_a_fault_on_one_node_holds_it_up_for_all(self):
        nodes = gpu, c1, c2 = self.start()
        self.settled(nodes[1:])
        self.wait_for(lambda: self.versions() == [1, 1, 1], 10, "all have a say")
        for node in (gpu, c1):
            node.edit(lambda text: text.replace("fps: 2", "fps: 1"))
        c2.edit(lambda text: text.replace("fps: 2", "fps: fast"))
        line = "c2 cannot take it: "
        self.wait_for(lambda: all(line in node.said() for node in nodes), 8, "all name it")
        self.assertIn("defaults.fps: expected a number from 0.01 to 120, not `fast`", self.status()[1])
        self.assertIn("configuration: not applied, what ran goes on unchanged", c2.said())
        self.assertEqual(self.versions(), [1, 1, 1])
        self.settled(nodes[1:])
        c2.edit(lambda text: text.replace("fps: fast", "fps: 1"))
        self.wait_for(lambda: self.versions() == [2, 2, 2], 5, "all run by it once it is mended")
        self.assertIn("restarted cam-0, cam-1, cam-2", c2.said())

    def test_a_node_with_an_old_file_waits_and_one_that_is_gone_holds_nothing_up(self):
        nodes = gpu, c1, c2 = self.start()
        self.settled(nodes[1:])
        c2.kill()
        self.wait_for(lambda: "c2" not in self.records(), 8, "its lease has ended")
        for node in (gpu, c1):
            node.edit(self.without("cam-2"))
        self.wait_for(lambda: self.versions() == [2, 2], 5, "the others run by the second one")
        c2.start()
        self.wait_for(lambda: "this node waits: the fleet's is " in c2.said(), 20, "it says why it waits")
        self.assertEqual(self.records()["c2"]["state"], "joining")
        self.assertIn("which the fleet had before: it waits for a newer file", c2.said())
        self.assertIn("c2: none yet; has read ", self.status()[1])
        self.assertEqual(sorted(c1.cameras()), ["cam-0", "cam-1"])
        c2.edit(self.without("cam-2"))
        self.wait_for(lambda: self.versions() == [2, 2, 2], 5, "it takes part")
        self.wait_for(lambda: "up" in c2.cameras().values(), 20, "and has its share")

    def test_what_needs_a_restart_is_told_and_the_log_level_is_the_nodes_own(self):
        nodes = gpu, c1, c2 = self.start()
        self.settled(nodes[1:])
        c1.edit(lambda text: text.replace("shutdown_grace: 6s", "shutdown_grace: 7s").replace("level: info", "level: error"))
        self.wait_for(lambda: "shutdown_grace: cannot change while running; it takes effect when this node starts again" in c1.said(),
                      5, "it is told")
        for node in nodes:
            node.edit(self.without("cam-2"))
        self.wait_for(lambda: self.versions() == [2, 2, 2], 5, "and keeps nothing else from being applied")
        self.assertNotIn("applied: version 2", c1.said(), "which is no error")
        self.assertIn("applied: version 2", c2.said())

    def test_secrets_stay_with_the_cameras_node(self):
        secrets = ["s3cr3t-of-an-environment", "s3cr3t-of-a-file"]
        path = os.path.join(self.fleet.folder, "gate.password")
        with open(path, "w") as file:
            file.write(secrets[1] + "\n")
        with open(self.fleet.config) as file:
            text = file.read()
        hidden = ('  by-name: {inputs: [{url: "rtsp://127.0.0.1:9/live"}], username: viewer, password: "{GATE_PASSWORD}"}\n'
                  f'  by-file: {{inputs: [{{url: "rtsp://127.0.0.1:9/live"}}], username: viewer, password_file: {path}}}\n')
        with open(self.fleet.config, "w") as file:
            file.write(text.replace("cameras:\n", "cameras:\n" + hidden))
        self.fleet.etcd.start()
        gpu, c1, c2 = self.fleet.node("gpu", COMPUTE), self.fleet.node("c1", "camera"), self.fleet.node("c2", "camera")
        # Only one node may read cameras at first, and it alone has the variable.
        gpu.start()
        c1.start(GATE_PASSWORD=secrets[0])
        tried = lambda node: {name for name, state in node.cameras().items() if state == "down"}
        self.wait_for(lambda: tried(c1) == {"by-name", "by-file"}, 30, "both are tried in vain: nobody listens there")
        self.assertNotIn("is not set", c1.said())
        self.assertNotIn("is not set", gpu.said())
        c2.start()
        self.wait_for(lambda: self.versions() == [1, 1, 1], 20, "it starts without the variable")
        c1.kill()
        self.wait_for(lambda: "by-file" in c2.cameras() and "by-name" in c2.cameras(), 20, "the other one has both")
        self.wait_for(lambda: "camera by-name: password: the environment variable GATE_PASSWORD is not set" in c2.said(), 20,
                      "it is told where the camera is to be opened")
        reason = lambda: [camera["reason"] for camera in c2.status().get("cameras", []) if camera["camera"] == "by-name"]
        self.wait_for(lambda: reason() == ["password: the environment variable GATE_PASSWORD is not set"], 10, "the status says so")
        snapshot = os.path.join(self.fleet.folder, "snapshot.db")
        self.fleet.etcd.ctl("snapshot", "save", snapshot)
        with open(snapshot, "rb") as file:
            kept = file.read()
        self.assertIn(b"/vigil/city/config/current", kept)
        self.assertIn(b"by-name", kept, "the plan is in it")
        logs = self.fleet.logs() + json.dumps(c2.status())
        for secret in secrets:
            self.assertNotIn(secret.encode(), kept)
            self.assertNotIn(secret, logs)
        # A change that the camera's node could not open is held up by that node.
        os.rename(path, path + ".moved")
        with open(self.fleet.config) as file:
            text = file.read()
        with open(self.fleet.config, "w") as file:
            file.write(text.replace(path, path + ".none"))
        self.wait_for(lambda: f"c2 cannot take it: cameras.by-file.password_file: {path}.none: no such file" in gpu.said(), 10,
                      "a secret that is missing is a fault of the node that needs it")
        self.assertEqual(self.versions(), [1, 1])

    def test_a_snooze_reaches_the_cameras_node(self):
        with open(self.fleet.config) as file:
            text = file.read()
        with open(self.fleet.config, "w") as file:
            file.write(text.replace('prompt: "Is there a person?"',
                                    'prompt: "Is there a person?", threshold: 0, confirm: 1/1, cooldown: 0s, max_per_hour: 10000'))
        self.fleet.etcd.start()
        snooze = lambda *arguments: self.fleet.command("snooze", *arguments, "--config", self.fleet.config)
        self.wait_for(lambda: snooze("--list").stdout == "nothing is snoozed\n", 20, "etcd answers")
        self.assertIn("has no camera `cam-9`; did you mean `cam-", snooze("cam-9", "30m").stderr)
        done = snooze("cam-0", "30m")
        self.assertEqual((done.returncode, done.stdout[:12]), (0, "cam-0 until "), done)
        self.assertIn("cam-0 until ", snooze("--list").stdout)
        self.assertFalse(os.path.exists(self.fleet.config + ".snoozes"), "a fleet's is in its registry")

        # Without one that keeps them, events wait.
        self.fleet.node("gateway", "gateway").start()
        nodes = gpu, c1, c2 = self.start()
        owner = lambda: next((node for node in (c1, c2) if "cam-0" in node.cameras()), None)
        held = lambda node: node.metric("vigil_alerts_held_total", reason="snoozed")
        told = lambda camera: sum(node.metric("vigil_alerts_total", topic=f"alert/default/{camera}/person/") for node in (c1, c2))
        self.wait_for(lambda: told("cam-1") and told("cam-2") and owner() and held(owner()), 30, "others are told, and its own are held")
        self.assertEqual(told("cam-0"), 0)
        # Who gets the camera knows it, too.
        first = owner()
        first.kill()
        other = next(node for node in (c1, c2) if node is not first)
        self.wait_for(lambda: owner() is other and held(other), 30, "the next owner holds them, too")
        self.assertEqual(told("cam-0"), 0)
        self.assertIn("cam-0 is not snoozed any more", snooze("cam-0", "--clear").stdout)
        self.wait_for(lambda: told("cam-0"), 25, "and tells them once they are wanted again")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class InTheRegistry(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
        self.addCleanup(self.fleet.close)
        with open(self.fleet.config) as file:
            text = file.read()
        own = "cameras", "rules", "defaults"
        parts = re.split(r"(?m)^(?=\S)", text)
        self.shared = os.path.join(self.fleet.folder, "cameras.yaml")
        with open(self.shared, "w") as file:
            file.write("# a comment with s3cr3t\n" + "".join(part for part in parts if part.startswith(own)))
        with open(self.fleet.config, "w") as file:
            file.write("".join(part for part in parts if not part.startswith(own)).replace(
                "  name: city\n", "  name: city\n  configuration: registry\n"))
        self.fleet.etcd.start()

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{what}")

    def config(self, *arguments):
        return self.fleet.command("config", *arguments, "--config", self.fleet.config)

    def put(self):
        return self.config("put", self.shared)

    def edit(self, change):
        with open(self.shared) as file:
            text = file.read()
        with open(self.shared, "w") as file:
            file.write(change(text))

    def test_nodes_have_their_cameras_from_there(self):
        gpu, c1 = self.fleet.node("gpu", COMPUTE), self.fleet.node("c1", "camera")
        self.wait_for(lambda: self.config("show").stderr == "vigil: the fleet has no configuration yet\n", 10, "it is empty")
        c1.start()
        self.wait_for(lambda: "waits for a configuration in the registry" in c1.said(), 10, "a node waits for one")
        done = self.put()
        self.assertEqual(done.returncode, 0, done)
        gpu.start()
        self.wait_for(lambda: self.fleet.watched([c1]), 30, "all cameras are up")
        shown = self.config("show")
        self.assertIn("cam-2", shown.stdout)
        self.assertNotIn("s3cr3t", shown.stdout, "comments may say anything")
        first = shown.stdout
        self.edit(lambda text: re.sub(r"  cam-2: .*\n", "", text))
        self.assertEqual(self.put().returncode, 0)
        self.wait_for(lambda: self.config("status").returncode == 0 and "version 2" in self.config("status").stdout, 10, "all run by it")
        self.wait_for(lambda: sorted(c1.cameras()) == ["cam-0", "cam-1"], 10, "the camera has ended")
        self.assertNotIn("cam-2", self.config("show").stdout)
        hashes = json.loads(self.fleet.etcd.get("/vigil/city/config/current")["/vigil/city/config/current"])
        self.assertEqual(self.config("show", "--hash", hashes["before"][0][:12]).stdout, first)
        # One that comes later has it, too.
        c2 = self.fleet.node("c2", "camera")
        c2.start()
        self.wait_for(lambda: "up" in c2.cameras().values(), 30, "it takes its share")

    def test_a_secret_is_a_reference_in_the_registry_and_what_it_stands_for_is_not_there(self):
        secret = "s3cr3t-of-an-environment"
        hidden = '  by-name: {inputs: [{url: "rtsp://127.0.0.1:9/live"}], username: viewer, password: "{GATE_PASSWORD}"}\n'
        self.edit(lambda text: text.replace("cameras:\n", "cameras:\n" + hidden))
        # Whoever puts it there may have the variable, too.
        os.environ["GATE_PASSWORD"] = secret
        self.addCleanup(os.environ.pop, "GATE_PASSWORD")
        self.assertEqual(self.put().returncode, 0)
        gpu, c1 = self.fleet.node("gpu", COMPUTE), self.fleet.node("c1", "camera")
        gpu.start()
        c1.start()
        self.wait_for(lambda: c1.cameras().get("by-name") == "down", 30, "it is tried in vain: nobody listens there")
        self.assertNotIn("is not set", c1.said())
        snapshot = os.path.join(self.fleet.folder, "snapshot.db")
        self.fleet.etcd.ctl("snapshot", "save", snapshot)
        with open(snapshot, "rb") as file:
            kept = file.read()
        self.assertIn(b"{GATE_PASSWORD}", kept)
        for secret in (secret, "s3cr3t"):
            self.assertNotIn(secret.encode(), kept)
            self.assertNotIn(secret, self.fleet.logs() + json.dumps(c1.status()) + self.config("show").stdout)

    def test_what_must_not_be_put_is_refused(self):
        for change, expected in (
                (lambda text: text.replace("cameras:\n", "cameras:\n  gate: {url: 'rtsp://h/live', username: u, password: hunter2}\n"),
                 r"cameras.yaml:\d+:\d+: cameras.gate.password: a password stands here as it is"),
                (lambda text: text.replace("password: hunter2", "password: '{X}'").replace("rtsp://h", "rtsp://u:hunter2@h"),
                 r"cameras.yaml:\d+:\d+: cameras.gate.url: a password, or what looks like one"),
                (lambda text: text.replace("rtsp://u:hunter2@h", "rtsp://h").replace("fps: 2", "fps: fast"),
                 r"cameras.yaml:\d+:\d+: defaults.fps: expected a number"),
                (lambda text: text + "colour: red\n", r"cameras.yaml:\d+:\d+: colour: unknown key"),
                (lambda text: text.replace("colour: red", "colour: [red"), r"^\S*cameras.yaml:\d+:\d+: not YAML: [^\n]*\n$")):
            self.edit(change)
            done = self.put()
            self.assertEqual(done.returncode, 1, done)
            self.assertRegex(done.stderr, expected)
            self.assertNotIn("hunter2", done.stderr)
        self.assertEqual(self.fleet.etcd.get("/vigil/city/config/"), {})
        with open(self.fleet.config, "a") as file:
            file.write("rules: []\n")
        node = self.fleet.node("c1", "camera")
        self.edit(lambda text: text.replace("fps: fast", "fps: 2").replace("colour: [red\n", ""))
        self.assertRegex(self.put().stderr, r"fleet.yaml:\d+:\d+: rules: is the fleet's, whose configuration is in the registry")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
