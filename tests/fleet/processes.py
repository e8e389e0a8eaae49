"""A fleet of real processes: etcd and nodes of `vigil node` on free ports of this machine. VIGIL_TEST_ENGINE is their section `engine`, as '{device: cuda}'."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(SOURCE, "tests"))
from free_ports import free_ports  # noqa: E402

COMPUTE = "vision,stream,generate"


def wait_for(condition, seconds, what):
    """What the condition gives once it is true. At the end of the patience, `what` may be a text or give one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)  # between looks at processes that run by themselves
    raise AssertionError(f"{what() if callable(what) else what}: not within {seconds} s")


class Etcd:
    def __init__(self, folder):
        self.folder, self.process = folder, None
        # Of etcdctl, and of etcd: arguments beside the usual ones, and how clients come.
        self.client, self.more, self.scheme = [], [], "http"
        self.port, self.peer_port = free_ports(2)

    @property
    def endpoint(self):
        return f"127.0.0.1:{self.port}"

    def start(self):
        with open(os.path.join(self.folder, "etcd.log"), "a") as log:
            self.process = subprocess.Popen(
                ["etcd", "--data-dir", os.path.join(self.folder, "etcd"), "--listen-client-urls", f"{self.scheme}://{self.endpoint}",
                 "--advertise-client-urls", f"{self.scheme}://{self.endpoint}", *self.more, "--listen-peer-urls", f"http://127.0.0.1:{self.peer_port}",
                 "--initial-advertise-peer-urls", f"http://127.0.0.1:{self.peer_port}",
                 "--initial-cluster", f"default=http://127.0.0.1:{self.peer_port}"], stdout=log, stderr=log)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def ctl(self, *arguments, check=True):
        return subprocess.run(["etcdctl", "--endpoints", self.endpoint, *self.client, *arguments],
                              env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True, text=True, timeout=10, check=check)

    def get(self, prefix):
        """Values by key."""
        out = self.ctl("get", "--prefix", prefix, "-w", "json", check=False)
        import base64
        decode = lambda text: base64.b64decode(text).decode()
        entries = json.loads(out.stdout or "{}").get("kvs", []) if out.returncode == 0 else []
        return {decode(entry["key"]): decode(entry["value"]) for entry in entries}


class Node:
    def __init__(self, fleet, name, roles):
        self.fleet, self.name, self.roles, self.process = fleet, name, roles, None
        # The replay is at the port behind that of events.
        self.control, self.bulk, self.events, self.metrics = free_ports(4)
        self.log = os.path.join(fleet.folder, f"{name}.log")
        self.config = fleet.config

    def start(self, *arguments, **more):
        environment = {**os.environ, "NODE": self.name, "CONTROL": str(self.control), "BULK": str(self.bulk),
                       "EVENTS": str(self.events), "METRICS": str(self.metrics), "OMP_WAIT_POLICY": "passive", **more}
        with open(self.log, "a") as out:
            self.process = subprocess.Popen([self.fleet.vigil, "node", "--roles", self.roles, "--config", self.config, *arguments],
                                            env=environment, stdout=out, stderr=out)

    def own_config(self):
        """From now on, a copy of the fleet's file."""
        self.config = os.path.join(self.fleet.folder, f"{self.name}.yaml")
        shutil.copy(self.fleet.config, self.config)

    def edit(self, change):
        """Replaces its file by what `change` makes of its text, as editors do."""
        with open(self.config) as file:
            text = file.read()
        with open(self.config + ".new", "w") as file:
            file.write(change(text))
        os.replace(self.config + ".new", self.config)

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def terminate(self, seconds=20):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def said(self):
        with open(self.log) as file:
            return file.read()

    def status(self):
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/status", timeout=2) as answer:
                return json.load(answer)
        return {}

    def readiness(self):
        """What /readyz answers; nothing, if nobody does."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/readyz", timeout=2) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def cameras(self):
        """State by camera."""
        return {camera["camera"]: camera["state"] for camera in self.status().get("cameras", [])}

    def page(self):
        """Its metrics; nothing, if it is not there."""
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=2) as answer:
                return answer.read().decode()
        return ""

    def metric(self, name, **labels):
        """The sum of the series that have these labels."""
        wanted = [f'{label}="{value}"' for label, value in labels.items()]
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.page().splitlines()
                   if line.split("{")[0].split(" ")[0] == name and all(each in line for each in wanted))

    def windows(self):
        return self.status().get("windows", {}).get("answered", 0)


class Fleet(contextlib.ExitStack):
    def __init__(self, build, cameras=3, lease="3s"):
        super().__init__()
        self.vigil = os.path.join(build, "bin", "vigil")
        self.folder = self.enter_context(tempfile.TemporaryDirectory())
        self.etcd = Etcd(self.folder)
        self.callback(self.etcd.stop)
        self.nodes = []
        self.callback(self.stop)
        self.config = os.path.join(self.folder, "fleet.yaml")
        clips = sorted(name for name in os.listdir(os.path.join(SOURCE, "tests", "videos")) if name.endswith(".mp4"))
        self.cameras = [f"cam-{i}" for i in range(cameras)]
        with open(self.config, "w") as file:
            file.write('name: "{NODE}"\n'
                       f"model: {SOURCE}/models/demo\n"
                       f"engine: {os.environ.get('VIGIL_TEST_ENGINE', '{}')}\n"
                       "defaults: {fps: 2, window: {length: 4s, stride: 2s}}\n"
                       "cameras:\n" +
                       "".join(f"  {name}: {{inputs: [{{url: {SOURCE}/tests/videos/{clips[i % len(clips)]}}}]}}\n"
                               for i, name in enumerate(self.cameras)) +
                       'rules: [{name: person, prompt: "Is there a person?"}]\n'
                       f'alerts: {{bind: "tcp://127.0.0.1:{{EVENTS}}", outbox: "{self.folder}/outbox-{{NODE}}"}}\n'
                       'metrics: {listen: "127.0.0.1:{METRICS}"}\n'
                       "cluster:\n"
                       "  name: city\n"
                       '  listen: "127.0.0.1:{CONTROL}"\n'
                       '  bulk: "127.0.0.1:{BULK}"\n'
                       f"  lease: {lease}\n"
                       f'  registry: {{endpoints: ["{self.etcd.endpoint}"]}}\n'
                       "log: {level: info}\n"
                       "shutdown_grace: 6s\n")

    def edit(self, change):
        """Its file, before nodes read it, as `change` makes it of its text."""
        with open(self.config) as file:
            text = file.read()
        with open(self.config, "w") as file:
            file.write(change(text))

    def command(self, *arguments):
        return subprocess.run([self.vigil, *arguments], capture_output=True, text=True, timeout=30, check=False)

    def node(self, name, roles):
        node = Node(self, name, roles)
        self.nodes.append(node)
        return node

    def stop(self):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.kill()

    def watched(self, nodes):
        """Whether each camera is up at one of these nodes at least."""
        up = {camera for node in nodes for camera, state in node.cameras().items() if state == "up"}
        return up == set(self.cameras)

    def plan(self):
        """Cameras by node."""
        plans = self.etcd.get("/vigil/city/plan/")
        return {key.rsplit("/", 1)[1]: json.loads(value)["cameras"] for key, value in plans.items()}

    def dropped(self):
        """What nodes that are there say of frames that no window showed, and of windows that were overtaken."""
        return "\n".join(f"{node.name}: {line}" for node in self.nodes for line in node.page().splitlines()
                         if line.startswith(("vigil_frames_dropped", "vigil_windows_total")))

    def logs(self):
        return "\n".join(f"--- {node.name}\n{node.said()}" for node in self.nodes if os.path.exists(node.log))


def have_etcd():
    return shutil.which("etcd") is not None and shutil.which("etcdctl") is not None
