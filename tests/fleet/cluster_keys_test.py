"""What keys of the section `cluster` do, in real processes: one test for each that nodes_test.py has none of.

  cluster_keys_test.py BUILD
"""

import json
import os
import shutil
import socket
import ssl
import sys
import threading
import unittest

from certificates import Authority
from processes import COMPUTE, Fleet, have_etcd, wait_for


class KeysTest(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD, cameras=self.CAMERAS)
        self.addCleanup(self.fleet.close)

    CAMERAS = 3

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def node(self, name, roles, more=""):
        """With these lines of the section `cluster` of its own."""
        node = self.fleet.node(name, roles)
        node.own_config()
        node.edit(lambda text: text.replace("  name: city\n", "  name: city\n" + "".join(f"  {line}\n" for line in more.splitlines())))
        return node

    def records(self):
        return {key.rsplit("/", 1)[1]: json.loads(value) for key, value in self.fleet.etcd.get("/vigil/city/nodes/").items()}

    def counts(self):
        """How many cameras each node is the owner of."""
        return {node: sum("hand_to" not in camera for camera in cameras.values()) for node, cameras in self.fleet.plan().items()}


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Placement(KeysTest):
    CAMERAS = 8

    def test_weight(self):
        self.fleet.etcd.start()
        for node in (self.node("c1", "camera", "weight: 3"), self.node("c2", "camera", "weight: 1")):
            node.start()
        self.wait_for(lambda: self.counts() == {"c1": 6, "c2": 2}, 20, "three times the weight has three times the cameras")

    def test_max_cameras(self):
        self.fleet.etcd.start()
        for node in (self.node("c1", "camera", "max_cameras: 2"), self.node("c2", "camera", "max_cameras: 5")):
            node.start()
        self.wait_for(lambda: self.counts() == {"c1": 2, "c2": 5}, 20, "no node has more than it takes")
        third = self.node("c3", "camera")
        third.start()
        self.wait_for(lambda: sum(self.counts().values()) == 8 and self.counts()["c1"] <= 2, 20, "who has no bound takes the rest")

    def test_max_streams(self):
        self.fleet.etcd.start()
        for node in (self.node("gpu", COMPUTE, "max_streams: 1"), self.node("c1", "camera")):
            node.start()
        streams = lambda: sorted(camera.get("stream", "") for cameras in self.fleet.plan().values() for camera in cameras.values())
        # A quarter of the standard camera is the least of each of these.
        self.wait_for(lambda: streams() == [""] * 5 + ["gpu"] * 3, 30, "it computes the least of three, and the others are refused")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Membership(KeysTest):
    def test_name(self):
        self.fleet.etcd.start()
        # Both are called c1.
        own, other = self.node("c1", "camera"), self.node("c1", "camera")
        other.config = own.config + ".harbour"
        with open(own.config) as file:
            text = file.read()
        with open(other.config, "w") as file:
            file.write(text.replace("  name: city\n", "  name: harbour\n").replace("outbox-{NODE}", "outbox-harbour"))
        other.log += ".harbour"
        own.start()
        other.start()
        for fleet in ("city", "harbour"):
            self.wait_for(lambda: len(json.loads(self.fleet.etcd.get(f"/vigil/{fleet}/plan/").get(f"/vigil/{fleet}/plan/c1", "{}"))
                                      .get("cameras", [])) == 8, 20, f"each of fleet {fleet} has all cameras, whatever the other fleet has")
        self.assertEqual((own.process.poll(), other.process.poll()), (None, None))

    CAMERAS = 8

    def test_lease(self):
        self.fleet.etcd.start()
        short, long = self.node("c1", "camera"), self.node("c2", "camera")
        for node, lease in ((short, "2s"), (long, "9s")):
            node.edit(lambda text, lease=lease: text.replace("  lease: 3s\n", f"  lease: {lease}\n"))
            node.start()
        self.wait_for(lambda: sorted(self.records()) == ["c1", "c2"], 20, "both are there")
        short.kill()
        long.kill()
        self.wait_for(lambda: sorted(self.records()) == ["c2"], 20, "the one with the shorter lease is gone first")
        self.wait_for(lambda: not self.records(), 20, "then the other one")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Addresses(KeysTest):
    def test_allow_plain_text(self):
        self.fleet.etcd.start()
        gpu, c1 = self.node("gpu", COMPUTE, "allow_plain_text: true\nadvertise: 127.0.0.1"), self.node("c1", "camera")
        gpu.edit(lambda text: text.replace('listen: "127.0.0.1:{CONTROL}"', 'listen: "0.0.0.0:{CONTROL}"').replace('"127.0.0.1:{BULK}"', '"0.0.0.0:{BULK}"'))
        gpu.start()
        c1.start()
        self.wait_for(lambda: self.fleet.watched([c1]) and gpu.windows() > 2, 40, "it listens beyond this machine, and they work together")
        for port in (gpu.control, gpu.bulk):
            # By another address of this machine than the one that it tells.
            with socket.create_connection(("127.0.0.2", port), timeout=5):
                pass

    def test_an_address_that_is_taken_is_told_with_its_key(self):
        self.fleet.etcd.start()
        for key, port in (("listen", "control"), ("bulk", "bulk")):
            node = self.node(f"c-{key}", "camera")
            with socket.create_server(("127.0.0.1", getattr(node, port))):
                node.start()
                self.assertEqual(node.process.wait(20), 1)
            self.assertRegex(node.said(), rf"cluster\.{key}: [^\n]*127\.0\.0\.1:{getattr(node, port)}: (bind: )?Address already in use")

    def test_a_grace_in_which_no_window_fits_is_told_by_those_that_compute(self):
        self.fleet.etcd.start()
        gpu, c1 = self.node("gpu", COMPUTE), self.node("c1", "camera")
        for node in (gpu, c1):
            node.edit(lambda text: text.replace("shutdown_grace: 6s", "shutdown_grace: 4s"))
            with socket.create_server(("127.0.0.1", node.bulk)):
                node.start()
                self.assertEqual(node.process.wait(20), 1)
        short = "vigil: shutdown_grace: 4s is not longer than the window of camera `cam-0`, 4s: "
        self.assertEqual((gpu.said().count(short), c1.said().count(short)), (1, 0), gpu.said() + c1.said())

    def test_advertise(self):
        self.fleet.etcd.start()
        gpu, c1 = self.node("gpu", COMPUTE, "advertise: localhost"), self.node("c1", "camera")
        gpu.start()
        c1.start()
        self.wait_for(lambda: self.fleet.watched([c1]), 30, "it is reached under that name")
        record = self.records()["gpu"]
        self.assertEqual((record["control"], record["bulk"]), (f"localhost:{gpu.control}", f"localhost:{gpu.bulk}"))
        self.assertEqual(self.records()["c1"]["control"], f"127.0.0.1:{c1.control}")

    def test_an_address_that_nobody_reaches(self):
        self.fleet.etcd.start()
        gpu, c1, c2 = self.node("gpu", COMPUTE), self.node("c1", "camera"), self.node("c2", "camera", "advertise: 127.0.0.9")
        gpu.start()
        c1.start()
        self.wait_for(lambda: self.fleet.watched([c1]), 30, "they work together")
        before = self.fleet.plan()["c1"]
        c2.start()
        self.wait_for(lambda: self.records().get("c2", {}).get("apart"), 20, "it is a member, and says that nobody reaches it")
        answered = gpu.windows()
        # Whoever plans gives a new node its share within a second or two.
        self.wait_for(lambda: gpu.windows() > answered + 9, 30, "windows are answered as before")
        self.assertEqual(self.fleet.plan(), {"c1": before}, "nothing has moved")
        self.assertIn(f"node gpu does not reach this one at 127.0.0.9:{c2.control}: no connection to 127.0.0.9:{c2.control}: Connection refused",
                      c2.said())
        self.assertIn(f"no node with which it deals has come to it at 127.0.0.9:{c2.control} (cluster.advertise)", c2.said())

    def test_seeds(self):
        self.fleet.etcd.start()
        gpu = self.node("gpu", COMPUTE)
        gpu.start()
        self.wait_for(lambda: "gpu" in self.records(), 20, "it is there")
        with socket.create_server(("127.0.0.1", 0)) as mute:
            asked = threading.Event()

            def answer():
                mute.accept()[0].close()
                asked.set()
            threading.Thread(target=answer, daemon=True).start()
            # One that is there, one that is no node, and one that nobody listens at.
            c1 = self.node("c1", "camera", f'seeds: ["127.0.0.1:{gpu.control}", "127.0.0.1:{mute.getsockname()[1]}", "127.0.0.1:9"]')
            c1.start()
            self.assertTrue(asked.wait(20), "it is asked")
            self.wait_for(lambda: self.fleet.watched([c1]), 30, "and none of them keeps it from joining")


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Certificates(KeysTest):
    def setUp(self):
        super().setUp()
        self.site = Authority(self.fleet.folder, "site")

    def connect(self, port, paths):
        """Whether a node's port lets a client in; one that it does not, it cuts off."""
        context = ssl.create_default_context(cafile=self.site.certificate)
        if paths:
            context.load_cert_chain(paths["tls.crt"], paths["tls.key"])
        with socket.create_connection(("127.0.0.1", port), timeout=5) as raw:
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as connection:
                connection.settimeout(1)
                try:
                    return connection.recv(1) != b""
                except TimeoutError:
                    return True
                except (ssl.SSLError, ConnectionError):
                    return False

    def test_tls_dir(self):
        self.fleet.etcd.start()
        folder = os.path.join(self.fleet.folder, "tls")
        gpu, c1, other = (self.node(name, roles, f"tls_dir: {folder}/{name}")
                          for name, roles in (("gpu", COMPUTE), ("c1", "camera"), ("stranger", COMPUTE)))
        for node in (gpu, c1):
            self.site.issue(os.path.join(folder, node.name))
            node.start()
        self.wait_for(lambda: self.fleet.watched([c1]) and gpu.windows() > 2, 40, "they work together")
        self.assertNotEqual(self.records()["gpu"]["bulk_key"], "", "pixels are encrypted, too")
        self.assertTrue(self.connect(gpu.control, self.site.issue(os.path.join(folder, "client"))))
        self.assertFalse(self.connect(gpu.control, None), "nobody without a certificate is let in")
        # One of another authority.
        Authority(self.fleet.folder, "others").issue(os.path.join(folder, "stranger"))
        other.start()
        self.wait_for(lambda: "no way to node stranger" in c1.said() + gpu.said() or "no way to node" in other.said(), 30, "it is refused")
        self.assertEqual(other.windows(), 0)

    def test_a_certificate_for_another_address_is_told_at_the_start(self):
        folder = os.path.join(self.fleet.folder, "tls")
        own, told = self.node("c1", "camera", f"tls_dir: {folder}/c1"), self.node("c2", "camera", f"tls_dir: {folder}/c2\nadvertise: c2.example")
        for node, host in ((own, "127.0.0.1"), (told, "c2.example")):
            self.site.issue(os.path.join(folder, node.name), "DNS:other.example,IP:127.0.0.2")
            node.start()
            self.assertEqual(node.process.wait(20), 1)
            self.assertIn(f"{folder}/{node.name}/tls.crt: is for other.example, 127.0.0.2, and not for {host}, where other nodes are to reach this one",
                          node.said())
            self.assertEqual(len(node.said().splitlines()), 1, node.said())

    def test_a_certificate_of_another_authority_is_told_at_the_start_and_not_taken_up_later(self):
        self.fleet.etcd.start()
        folder = os.path.join(self.fleet.folder, "tls")
        others = Authority(self.fleet.folder, "others")
        gpu, c1 = self.node("gpu", COMPUTE, f"tls_dir: {folder}/gpu"), self.node("c1", "camera", f"tls_dir: {folder}/c1")
        for node in (gpu, c1):
            self.site.issue(os.path.join(folder, node.name))
        shutil.copy(others.certificate, os.path.join(folder, "c1", "ca.crt"))
        c1.start()
        self.assertEqual(c1.process.wait(20), 1)
        wrong = f"{folder}/c1/tls.crt: is not of {folder}/c1/ca.crt: unable to get local issuer certificate"
        self.assertIn(wrong, c1.said())
        self.assertEqual(len(c1.said().splitlines()), 1, c1.said())
        shutil.copy(self.site.certificate, os.path.join(folder, "c1", "ca.crt"))
        for node in (gpu, c1):
            node.start()
        self.wait_for(lambda: self.fleet.watched([c1]) and gpu.windows() > 2, 40, "they work together")
        before = len(c1.said())
        others.issue(os.path.join(folder, "c1"))
        shutil.copy(self.site.certificate, os.path.join(folder, "c1", "ca.crt"))
        # It looks at them when it has to do with another node anew.
        gpu.kill()
        gpu.start()
        self.wait_for(lambda: "the certificates from before go on to be used: " + wrong in c1.said()[before:], 40, "they are refused, and told")
        self.wait_for(lambda: gpu.windows() > 2, 40, "and what it had before goes on")

    def test_nodes_of_another_authority_are_given_nothing_and_hurt_nobody(self):
        self.fleet.etcd.start()
        folder = os.path.join(self.fleet.folder, "tls")
        made = {name: self.node(name, roles, f"tls_dir: {folder}/{name}")
                for name, roles in (("gpu", COMPUTE), ("c1", "camera"), ("strange-gpu", COMPUTE), ("strange-c", "camera"))}
        others = Authority(self.fleet.folder, "others")
        for name in made:
            (others if name.startswith("strange") else self.site).issue(os.path.join(folder, name))
        for name in ("gpu", "c1"):
            made[name].start()
        c1, gpu = made["c1"], made["gpu"]
        self.wait_for(lambda: self.fleet.watched([c1]) and gpu.windows() > 2, 40, "they work together")
        before = self.fleet.plan()["c1"]
        # One after the other: by themselves they would fit each other.
        for name in ("strange-gpu", "strange-c"):
            made[name].start()
            self.wait_for(lambda: self.records().get(name, {}).get("apart"), 20, "it is a member, and says that it reaches nobody")
            answered = gpu.windows()
            # Whoever plans gives a new node its share within a second or two.
            self.wait_for(lambda: gpu.windows() > answered + 6, 30, "windows are answered as before")
            self.assertTrue(self.fleet.watched([c1]))
            self.assertEqual(self.fleet.plan()["c1"], before, "nothing has moved")
            self.assertEqual(self.counts().get(name, 0), 0)
            self.assertIn("has found no way to any node with which it deals", made[name].said())
            made[name].kill()
            self.wait_for(lambda: name not in self.records(), 20, "its lease ends")

    def test_registry_certificate(self):
        server = self.site.issue(os.path.join(self.fleet.folder, "etcd-tls"))
        client = self.site.issue(os.path.join(self.fleet.folder, "client-tls"))
        etcd = self.fleet.etcd
        etcd.scheme = "https"
        etcd.more = ["--cert-file", server["tls.crt"], "--key-file", server["tls.key"], "--trusted-ca-file", server["ca.crt"],
                     "--client-cert-auth"]
        etcd.client = ["--cacert", client["ca.crt"], "--cert", client["tls.crt"], "--key", client["tls.key"]]
        etcd.start()

        def secured(node, certificate):
            return lambda text: text.replace(f'endpoints: ["{etcd.endpoint}"]',
                                             f'endpoints: ["{etcd.endpoint}"], ca_file: {client["ca.crt"]}{certificate}')
        known, unknown = self.node("c1", "camera"), self.node("c2", "camera")
        known.edit(secured(known, f', certificate: {{cert_file: {client["tls.crt"]}, key_file: {client["tls.key"]}}}'))
        unknown.edit(secured(unknown, ""))
        for node in (known, unknown):
            node.start()
        self.wait_for(lambda: self.counts() == {"c1": 3}, 20, "one with a certificate is let in")
        self.wait_for(lambda: "registry: " in unknown.said(), 20, "one without is not, and says so")
        self.assertNotIn("c2", self.records())

    def test_registry_username_and_password(self):
        etcd = self.fleet.etcd
        etcd.start()
        self.wait_for(lambda: etcd.ctl("endpoint", "health", check=False).returncode == 0, 10, "etcd is there")
        for arguments in (("user", "add", "root:r00t"), ("role", "add", "root"), ("user", "grant-role", "root", "root"),
                          ("user", "add", "vigil:h0rse"), ("role", "add", "vigil"),
                          ("role", "grant-permission", "vigil", "--prefix=true", "readwrite", "/vigil/city/"),
                          ("user", "grant-role", "vigil", "vigil"), ("auth", "enable")):
            etcd.ctl(*arguments, check=arguments[:2] != ("role", "add"))
        etcd.client = ["--user", "root:r00t"]
        as_user = lambda text: text.replace(f'endpoints: ["{etcd.endpoint}"]',
                                            f'endpoints: ["{etcd.endpoint}"], username: vigil, password: "{{ETCD_PASSWORD}}"')
        good, wrong, missing = (self.node(name, "camera") for name in ("c1", "c2", "c3"))
        for node, secret in ((good, {"ETCD_PASSWORD": "h0rse"}), (wrong, {"ETCD_PASSWORD": "d0nkey"}), (missing, {})):
            node.edit(as_user)
            node.start(**secret)
        self.wait_for(lambda: self.counts() == {"c1": 3}, 20, "one with the password is let in")
        self.wait_for(lambda: "registry: " in wrong.said(), 20, "one with another is not, and says so")
        self.assertEqual(missing.process.wait(20), 1)
        self.assertIn("cluster.registry.password: the environment variable ETCD_PASSWORD is not set", missing.said())
        self.assertEqual(sorted(self.records()), ["c1"])
        for secret in ("h0rse", "d0nkey"):
            self.assertNotIn(secret, self.fleet.logs())


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
