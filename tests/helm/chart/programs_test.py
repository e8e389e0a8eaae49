"""What the chart starts, started here: the question of `helm test`, and its etcd, with certificates as docs/deploy.md makes them:
programs_test.py"""

import contextlib
import http.server
import os
import re
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

from kube_tools import ROOT, Helm, configuration, one, programs

sys.path.append(os.path.join(ROOT, "tests"))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60


class Node(http.server.BaseHTTPRequestHandler):
    """Is ready under /ready/…, never under /draining/…, and from the third question on under /loading/…"""
    asked = 0

    def do_GET(self):
        Node.asked += self.path.startswith("/loading")
        self.send_response(200 if self.path.startswith("/ready/") or (self.path.startswith("/loading/") and Node.asked > 2) else 503)
        self.end_headers()

    def log_message(self, *_):
        pass


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.helm = Helm(folder.name)

    def ask(self, *paths, seconds=1):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Node)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        base = f"http://127.0.0.1:{server.server_port}"
        command = one(self.helm.render("minimal"), "Pod", "-readyz")["spec"]["containers"][0]["command"]
        urls = [word for word in command if word.startswith("http://")]
        self.assertEqual(urls, [f"http://fleet-vigil-{pool}-0.fleet-vigil-nodes.video.svc:9465/readyz" for pool in ("camera", "compute", "gateway") ])
        done = subprocess.run([*command[:-len(urls)], *(f"{base}{path}" for path in paths)], env={**os.environ, "ASK_SECONDS": str(seconds), "no_proxy": "*"},
                              capture_output=True, text=True, check=False, timeout=PATIENCE)
        return done.returncode, done.stdout.replace(base, "").splitlines()

    def test_the_question_of_helm_test(self):
        self.assertEqual(self.ask("/ready/readyz", "/ready/readyz"), (0, ["ready      /ready/readyz"] * 2))
        self.assertEqual(self.ask("/ready/readyz", "/draining/readyz", "/ready/readyz"),
                         (1, ["ready      /ready/readyz", "not ready  /draining/readyz", "ready      /ready/readyz"]))
        # One that is not ready yet is waited for.
        self.assertEqual(self.ask("/loading/readyz", seconds=PATIENCE // 2), (0, ["ready      /loading/readyz"]))

    def test_nobody_is_asked_for_nothing(self):
        self.assertEqual(self.ask(), (2, []))

    def certificates(self):
        """What the page's commands leave in a folder."""
        with open(os.path.join(ROOT, "docs", "deploy.md"), encoding="utf-8") as page:
            commands = re.search(r"^```sh certificates\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)[1]
        folder = tempfile.mkdtemp(dir=self.folder)
        subprocess.run(["bash", "-ec", commands], cwd=folder, check=True, capture_output=True)
        return folder

    def test_certificates_of_the_page_have_the_names_that_are_verified(self):
        folder = self.certificates()
        done = self.helm.run("template", "vigil", os.path.join(ROOT, "helm", "vigil"), "--namespace", "vigil", "--kube-version", "1.36.0",
                             "--values", os.path.join(ROOT, "helm", "vigil", "ci", "airgapped-values.yaml"))
        hosts = {"nodes": set(re.findall(r"[\w.{}-]+\.vigil-nodes\.vigil\.svc", done.stdout)) | {"vigil-nodes.vigil.svc"},
                 "etcd": set(re.findall(r"vigil-etcd-\d\.vigil-etcd\.vigil\.svc", done.stdout))}
        self.assertEqual((len(hosts["nodes"]), len(hosts["etcd"])), (5, 3), hosts)
        for of, names in hosts.items():
            for name in (*names, "localhost"):
                for purpose in ("sslserver", "sslclient"):
                    verified = subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", "-purpose", purpose, "-verify_hostname",
                                               name.replace("{POD_NAME}", "vigil-camera-0"), f"{folder}/{of}/tls.crt"], capture_output=True, text=True, check=False)
                    self.assertEqual(verified.returncode, 0, f"{name}: {verified.stderr}")
        # And no others.
        self.assertNotEqual(subprocess.run(["openssl", "verify", "-CAfile", f"{folder}/ca.crt", "-verify_hostname", "vigil-etcd-0.vigil-etcd.other.svc",
                                            f"{folder}/etcd/tls.crt"], capture_output=True, check=False).returncode, 0)

    def test_the_values_of_the_page_are_an_installation(self):
        with open(os.path.join(ROOT, "docs", "deploy.md"), encoding="utf-8") as page:
            blocks = re.findall(r"^```yaml([^\n]*)\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)
        site, = [text for name, text in blocks if name == " site.yaml"]
        with open(os.path.join(ROOT, "helm", "vigil", "README.md"), encoding="utf-8") as page:
            pages = [site, *re.findall(r"^```yaml\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)]
        self.assertEqual(len(pages), 2)
        for text in pages:
            path = os.path.join(self.folder, "site.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.helm.template("--values", path)
            self.assertEqual(done.returncode, 0, done.stderr)
        # The others are parts: what each says is a value, and of the right kind.
        parts = [text for name, text in blocks if not name and "seriesQuery" not in text]
        self.assertEqual(len(parts), 8)
        for text in parts:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("sha256:...", "sha256:" + "0" * 64))
            done = self.helm.lint("--values", path)
            self.assertEqual(done.returncode, 0, f"{text}: {done.stdout}")

    def test_etcd_starts_with_its_arguments_and_lets_in_who_has_a_certificate(self):
        folder = self.certificates()
        clients, members, metrics = free_ports(3)
        objects = self.helm.render("airgapped", "--set", "etcd.replicas=1")
        spec = one(objects, "StatefulSet", "-etcd")["spec"]["template"]["spec"]
        container, = spec["containers"]
        host = "fleet-vigil-etcd-0.fleet-vigil-etcd.video.svc"
        arguments = []
        for argument in container["args"]:
            # As the cluster's DNS and ports would have it.
            argument = argument.replace("$(POD_NAME)", "fleet-vigil-etcd-0").replace("/etc/etcd/tls/ca.crt", f"{folder}/ca.crt").replace("/etc/etcd/tls", f"{folder}/etcd")
            argument = argument.replace("/var/lib/etcd", f"{folder}/disk").replace(host, "localhost").replace("0.0.0.0", "127.0.0.1")
            for port, free in ((2379, clients), (2380, members), (2381, metrics)):
                argument = argument.replace(f":{port}", f":{free}")
            arguments.append(argument)
        with open(f"{folder}/log", "w+", encoding="utf-8") as log, contextlib.ExitStack() as stack:
            etcd = subprocess.Popen([os.path.join(programs(), *container["command"]), *arguments], stdout=log, stderr=log)
            stack.callback(etcd.wait)
            stack.callback(etcd.kill)

            def status(path):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}{path}", timeout=5) as answer:
                        return answer.status
                except OSError:
                    return None

            end = time.monotonic() + PATIENCE
            while status(container["readinessProbe"]["httpGet"]["path"]) != 200:
                log.seek(0)
                self.assertIsNone(etcd.poll(), log.read())
                self.assertLess(time.monotonic(), end, "etcd is not ready")
                time.sleep(0.1)
            self.assertEqual(status(container["livenessProbe"]["httpGet"]["path"]), 200)
            # A node has to show its certificate.
            trust = ssl.create_default_context(cafile=f"{folder}/ca.crt")
            with self.assertRaises(OSError):
                urllib.request.urlopen(f"https://localhost:{clients}/version", context=trust, timeout=5).close()
            trust.load_cert_chain(f"{folder}/nodes/tls.crt", f"{folder}/nodes/tls.key")
            with urllib.request.urlopen(f"https://localhost:{clients}/version", context=trust, timeout=5) as answer:
                self.assertEqual(answer.status, 200)
        self.assertEqual(configuration(objects)["cluster"]["registry"]["endpoints"], [f"{host}:2379"])


if __name__ == "__main__":
    programs()
    unittest.main()
