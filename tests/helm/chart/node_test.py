"""The program with what the chart gives it: node_test.py VIGIL MODEL

Its configurations are checked, and nodes of them started beside a real etcd, with the arguments that pods have."""

import contextlib
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

from kube_tools import ROOT, Helm, one, programs, sets

sys.path.append(os.path.join(ROOT, "tests"))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60
VIGIL, MODEL = (os.path.abspath(each) for each in sys.argv[1:3]) if len(sys.argv) > 2 else (None, None)


class Node(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.helm = Helm(folder.name)
        # What is mounted, as the page makes it.
        with open(os.path.join(ROOT, "docs", "deploy.md"), encoding="utf-8") as page:
            commands = re.search(r"^```sh certificates\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)[1]
        # The page names a release and a namespace, and the sets of values are of others.
        commands = commands.replace("vigil-$of.vigil.svc", "fleet-vigil-$of.video.svc")
        subprocess.run(["bash", "-ec", commands], cwd=cls.folder, check=True, capture_output=True)
        for name in ("tls", "etcd-tls"):
            shutil.copytree(f"{cls.folder}/nodes", f"{cls.folder}/etc/{name}")
            shutil.copy(f"{cls.folder}/ca.crt", f"{cls.folder}/etc/{name}/ca.crt")
            # As Secrets are.
            os.chmod(f"{cls.folder}/etc/{name}/tls.key", 0o440)
        os.makedirs(f"{cls.folder}/etc/curve")
        subprocess.run([VIGIL, "keygen", f"{cls.folder}/etc/curve/server.key"], check=True, capture_output=True)
        cls.environment = {**os.environ, "POD_NAME": "fleet-vigil-node-0", "GATE_PASSWORD": "secret", "VIGIL_ETCD_USERNAME": "fleet",
                           "VIGIL_ETCD_PASSWORD": "secret", "VIGIL_MAX_CAMERAS": "200", "VIGIL_MAX_STREAMS": "28", "OMP_WAIT_POLICY": "passive"}

    def configuration(self, objects, name, changes=()):
        """vigil.yaml of a set of values as a file, with folders of this machine."""
        text = one(objects, "ConfigMap", "")["data"]["vigil.yaml"]
        text = re.sub(r"^model: .*$", f"model: {MODEL}", text, flags=re.MULTILINE)
        for old, new in (("/etc/vigil", f"{self.folder}/etc"), ("/var/lib/vigil", f"{self.folder}/var-{name}"), ("/usr/share/vigil", ROOT), *changes):
            text = text.replace(old, new)
        path = os.path.join(self.folder, f"{name}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.makedirs(f"{self.folder}/var-{name}", exist_ok=True)
        return path

    def test_configurations_of_all_sets_are_taken(self):
        for name in sets():
            with self.subTest(values=name):
                path = self.configuration(self.helm.render(name), name)
                done = subprocess.run([VIGIL, "check-config", path], env=self.environment, capture_output=True, text=True, check=False, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""))

    def run_node(self, name, *arguments, encrypted, cameras=None):
        """Starts etcd and a node of a set of values with all roles, waits until it is ready, and ends it as Kubernetes does. `cameras` are put into the
        registry, as the page has it."""
        objects = self.helm.render(name, *arguments)
        etcd = one(objects, "StatefulSet", "-etcd")["spec"]["template"]["spec"]["containers"][0]
        pod = next(each for each in objects if each["kind"] == "StatefulSet" and "vigil.dev/role-stream" in each["spec"]["template"]["metadata"]["labels"])
        pod = pod["spec"]["template"]["spec"]
        ports = (2379, 2380, 2381, 7400, 7401, 9464, 9465, 5556, 5557)
        free = dict(zip(ports, free_ports(len(ports))))
        changes = [("0.0.0.0", "127.0.0.1"), ("/etc/etcd/tls/ca.crt", f"{self.folder}/ca.crt"),
                   ("/etc/etcd/tls", f"{self.folder}/etcd"), ("/var/lib/etcd", f"{self.folder}/etcd-{self.id()}"), ("$(POD_NAME)", "fleet-vigil-etcd-0"),
                   ("{POD_NAME}.fleet-vigil-nodes.video.svc", "localhost"), ("fleet-vigil-nodes.video.svc", "localhost"),
                   ("fleet-vigil-etcd-0.fleet-vigil-etcd.video.svc", "localhost"), *((f":{port}", f":{other}") for port, other in free.items())]

        def here(text):
            for old, new in changes:
                text = text.replace(old, new)
            return text

        path = self.configuration(objects, name, changes)
        with contextlib.ExitStack() as stack:
            def start(command):
                log = stack.enter_context(open(f"{self.folder}/{os.path.basename(command[0])}-{name}.log", "w+", encoding="utf-8"))
                process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
                stack.callback(process.wait)
                stack.callback(process.kill)
                return process, log

            start([os.path.join(programs(), "etcd"), *map(here, etcd["args"])])
            words = [path if word == "/etc/vigil/vigil.yaml" else word for word in pod["containers"][0]["args"]]
            words[words.index("--roles") + 1] = "camera,vision,stream,generate,gateway"
            node, log = start([VIGIL, *words])

            def said():
                log.seek(0)
                return log.read()

            def status(path):
                with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{free[9465]}{path}", timeout=5) as answer:
                    return answer.status
                return None

            if cameras:
                end = time.monotonic() + PATIENCE
                while "waits for a configuration in the registry" not in said():
                    self.assertIsNone(node.poll(), said())
                    self.assertLess(time.monotonic(), end, said())
                    time.sleep(0.1)
                done = subprocess.run([VIGIL, "config", "put", "/dev/stdin", "--config", path], input=cameras, env=self.environment, capture_output=True,
                                      text=True, check=False, timeout=PATIENCE)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                end = time.monotonic() + PATIENCE
                while status(pod["containers"][0][probe]["httpGet"]["path"]) != 200:
                    self.assertIsNone(node.poll(), said())
                    self.assertLess(time.monotonic(), end, f"{probe}: {said()}")
                    time.sleep(0.1)
            # Ready is also who waits for etcd; who has a camera has it by the plan, which lies there.
            trusted = ssl.create_default_context(cafile=f"{self.folder}/ca.crt")

            def has_camera():
                with contextlib.suppress(OSError), urllib.request.urlopen(f"{'https' if encrypted else 'http'}://localhost:{free[9464]}/metrics", timeout=5,
                                                                          context=trusted if encrypted else None) as answer:
                    return re.search(r"^vigil_camera_up\{camera=\"(table|gate)\"", answer.read().decode(), re.MULTILINE)
                return None

            end = time.monotonic() + PATIENCE
            while not has_camera():
                self.assertLess(time.monotonic(), end, said())
                time.sleep(0.1)
            scheme, trust = ("https", ["--ca-file", f"{self.folder}/ca.crt"]) if encrypted else ("http", [])
            shown = subprocess.run([VIGIL, "status", "--endpoint", f"{scheme}://localhost:{free[9464]}", *trust], capture_output=True, text=True, check=False,
                                   timeout=PATIENCE)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            self.assertEqual(self.helm_test(objects, free[9465]), 0, said())
            node.send_signal(signal.SIGTERM)
            self.assertEqual(node.wait(timeout=pod["terminationGracePeriodSeconds"] - 5), 0, said())
            self.assertEqual(self.helm_test(objects, free[9465]), 1, "nobody is there any more")

    def helm_test(self, objects, port):
        """What the pod of `helm test` runs, of a node of this machine."""
        command = one(objects, "Pod", "-readyz")["spec"]["containers"][0]["command"]
        words = [word for word in command if not word.startswith("http://")]
        self.assertLess(len(words), len(command))
        return subprocess.run([*words, f"http://127.0.0.1:{port}/readyz"], env={**self.environment, "ASK_SECONDS": "1", "no_proxy": "*"}, capture_output=True,
                              check=False, timeout=PATIENCE).returncode

    def test_a_node_of_the_trial(self):
        self.run_node("trial", encrypted=False)

    def test_a_node_whose_cameras_are_in_the_registry(self):
        cameras = f'cameras: {{table: {{url: "{ROOT}/tests/videos/bottle-detection.mp4", rules: [{{name: person, prompt: "Is there a person in the room?"}}]}}}}\n'
        self.run_node("trial", "--set", "config.cluster.configuration=registry,config.cameras=null,pools.node.maxStreams=4", encrypted=False, cameras=cameras)

    def test_a_node_with_certificates(self):
        self.run_node("airgapped", "--set", "etcd.replicas=1,config.engine.device=cpu", encrypted=True)


if __name__ == "__main__":
    programs()
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
