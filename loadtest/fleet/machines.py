"""A fleet on hosts of its own (network.py): etcd, nodes, their certificates, keys and cameras."""

import argparse
import base64
import json
import os
import shutil
import signal
import struct
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
COMPUTE = "vision,stream,generate"
# Computing nodes that do one thing each, by the letter of their names.
STAGES = {"v": "vision", "s": "stream", "x": "generate"}
WORDS = "words"
FLEET = "city"
EVENTS, REPLAY, CONTROL, BULK, METRICS = 5556, 5557, 7400, 7401, 9464
# Someone walks through the room, and nobody does: seconds of the clip. Small pictures, since decoding is not what is looked at.
CLIP = ("one-by-one-person-detection.mp4", ((20, 26), (0, 6)))


def sizes(*least, example):
    """Of argparse: as many whole numbers, separated by commas, and none smaller than the one that stands here in its place."""
    def parse(text):
        words = text.split(",")
        found = [int(each) for each in words if each.isascii() and each.isdecimal()]
        if len(found) != len(words) or len(found) != len(least) or any(each < one for each, one in zip(found, least)):
            joined = [",".join(str(each) for each in numbers) for numbers in (example, least)]
            raise argparse.ArgumentTypeError(f"expected {len(least)} whole numbers such as {joined[0]}, the smallest {joined[1]}, not '{text}'")
        return found
    return parse


def add_sizes(parser):
    """--cameras, --nodes and --apart: what a fleet is to have."""
    parser.add_argument("--cameras", type=int, default=12)
    parser.add_argument("--nodes", type=sizes(1, 1, 0, example=(3, 2, 2)), default=[3, 2, 2], help="camera nodes, computing nodes, gateways [3,2,2]")
    parser.add_argument("--apart", type=sizes(1, 1, 0, example=(2, 2, 1)), metavar="V,S,X", help="instead of computing nodes that do all three: so many that encode, that have "
                        "streams, and that generate; every third camera has alerts to be explained then")


def program_of(build, name):
    return os.path.join(os.path.abspath(build), "bin", name)


def missing_program(build, *more):
    """Why a fleet of that build cannot be started, in a line; nothing if all programs are there, and those that are named besides."""
    for path in (program_of(build, name) for name in ("vigil", "clock_offset.so", *more)):
        if not os.path.exists(path):
            return f"{path} is missing: scripts/build release"
    return None


class Certificates:
    """A throw-away issuer; a folder as `tls_dir` wants it for each address."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder)
        self.ca = os.path.join(folder, "ca.crt")
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=issuer",
                      "-keyout", os.path.join(folder, "ca.key"), "-out", self.ca)

    def _openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")

    def of(self, name, address):
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        key, request, certificate = (os.path.join(folder, each) for each in ("tls.key", "request", "tls.crt"))
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        extensions = os.path.join(folder, "extensions")
        with open(extensions, "w", encoding="utf-8") as file:
            file.write(f"subjectAltName=IP:{address},IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", os.path.join(self.folder, "ca.key"), "-CAcreateserial", "-days", "30",
                      "-extfile", extensions, "-out", certificate)
        shutil.copy(self.ca, folder)
        os.chmod(key, 0o600)
        return folder


class Machine:
    """A process on a host of its own, what it says, and whether it is there."""

    def __init__(self, fleet, name):
        self.fleet, self.name, self.process = fleet, name, None
        self.host = fleet.network.host(name)
        self.tls = fleet.certificates.of(name, self.host.address)
        self.log = os.path.join(fleet.folder, f"{name}.log")
        self.starts = 0

    def launch(self, command, environment=None):
        self.starts += 1
        with open(self.log, "a", encoding="utf-8") as out:
            self.process = subprocess.Popen(self.host.command(*command), env={**os.environ, **(environment or {})}, stdout=out, stderr=out,
                                            stdin=subprocess.DEVNULL)
        self.fleet.journal.say("start", node=self.name, pid=self.process.pid)

    def runs(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        """SIGKILL, and it is gone."""
        if self.runs():
            self.fleet.journal.say("kill", node=self.name)
            self.process.kill()
        return self.process.wait() if self.process else None

    def terminate(self, seconds=30):
        """SIGTERM; the exit status."""
        self.fleet.journal.say("terminate", node=self.name)
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "killed, since it did not end"
        self.fleet.journal.say("ended", node=self.name, status=status)
        return status

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


class Etcd(Machine):
    def __init__(self, fleet, name="etcd"):
        super().__init__(fleet, name)
        self.data = os.path.join(fleet.folder, "etcd-data")
        self.endpoint = f"{self.host.address}:2379"

    def start(self):
        peer = f"http://{self.host.address}:2380"
        at = lambda name: os.path.join(self.tls, name)  # noqa: E731
        self.launch(["etcd", "--data-dir", self.data, "--listen-client-urls", f"https://{self.endpoint}",
                     "--advertise-client-urls", f"https://{self.endpoint}", "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                     "--initial-cluster", f"default={peer}", "--cert-file", at("tls.crt"), "--key-file", at("tls.key"),
                     "--trusted-ca-file", at("ca.crt"), "--client-cert-auth"])

    def command(self, *arguments):
        """etcdctl, on etcd's own host, so that no fault lies between."""
        at = lambda name: os.path.join(self.tls, name)  # noqa: E731
        return self.host.command("etcdctl", "--endpoints", self.endpoint, "--cacert", at("ca.crt"), "--cert", at("tls.crt"), "--key", at("tls.key"),
                                 *arguments)

    def get(self, prefix):
        """Values by key; nothing while it does not answer."""
        out = subprocess.run(self.command("get", "--prefix", prefix, "-w", "json"), env={**os.environ, "ETCDCTL_API": "3"}, capture_output=True,
                             text=True, check=False)
        decode = lambda text: base64.b64decode(text).decode()  # noqa: E731
        entries = json.loads(out.stdout or "{}").get("kvs", []) if out.returncode == 0 else []
        return {decode(entry["key"]): decode(entry.get("value", "")) for entry in entries}

    def snapshot(self, path):
        subprocess.run(self.command("snapshot", "save", path), env={**os.environ, "ETCDCTL_API": "3"}, check=True, capture_output=True)

    def restore(self, path):
        """What it knew when the snapshot was made. It must not run."""
        shutil.rmtree(self.data, ignore_errors=True)
        peer = f"http://{self.host.address}:2380"
        subprocess.run(["etcdctl", "snapshot", "restore", path, "--data-dir", self.data, "--name", "default", "--initial-cluster", f"default={peer}",
                        "--initial-advertise-peer-urls", peer], env={**os.environ, "ETCDCTL_API": "3"}, check=True, capture_output=True)


class Clock:
    """What a process takes for the time of day: the machine's, and so many seconds more (loadtest/faults/clock_offset.cpp)."""

    def __init__(self, fleet, name):
        path = os.path.join(fleet.folder, f"{name}.clock")
        self._file = open(path, "wb", buffering=0)  # pylint: disable=consider-using-with
        self.set(0)
        self.environment = {"LD_PRELOAD": fleet.program("clock_offset.so"), "CLOCK_OFFSET": path}

    def set(self, seconds):
        self._file.seek(0)
        self._file.write(struct.pack("=q", seconds))


class Node(Machine):
    def __init__(self, fleet, name, roles, disk=False):
        """disk: what it keeps lies on a disk of its own, which can be filled: a MiB of a tmpfs for each that it may have."""
        super().__init__(fleet, name)
        self.roles = set(roles.split(","))
        self.clock = Clock(fleet, name)
        self.home = os.path.join(fleet.folder, name)
        self.vigil, self.disk = fleet.vigil, disk
        os.makedirs(self.home)
        if disk:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={disk}m,mode=0755", "none", self.home], check=True)

    def start(self, *arguments, vigil=None):
        """vigil: another build than the one that it had last."""
        self.vigil = vigil or self.vigil
        environment = {"NODE": self.name, "ADDRESS": self.host.address, "HOME_OF": self.home, "TLS": self.tls, "OMP_WAIT_POLICY": "passive",
                       "OMP_NUM_THREADS": "1", **self.clock.environment}
        self.launch([self.vigil, "node", "--roles", ",".join(sorted(self.roles)), "--config", self.fleet.config, *arguments], environment)

    def serves_events(self):
        """Whether subscribers find it: gateways do, and camera nodes where there are none."""
        return ("gateway" if self.fleet.has_gateways() else "camera") in self.roles


class Fleet:
    """cameras: how many. explains: whether every third one has a rule besides (`words`), whose alerts come with words. Everything is in `folder`, and every
    process ends with this one (network.py)."""

    def __init__(self, network, folder, journal, build, cameras, lease="3s", window="2s", stride="1s", explains=False):
        self.network, self.folder, self.journal, self.build = network, folder, journal, os.path.abspath(build)
        self.vigil = self.program("vigil")
        self.certificates = Certificates(os.path.join(folder, "tls"))
        self.cameras = [f"cam-{number:02}" for number in range(cameras)]
        self.lease, self.window, self.stride, self.explains = lease, window, stride, explains
        self.nodes = {}
        self.etcd = Etcd(self)
        self.config = os.path.join(folder, "fleet.yaml")
        self.server_key, self.client_key = (self._key(name) for name in ("server.key", "client.key"))
        self.clip = self._clip()

    def program(self, name):
        return program_of(self.build, name)

    def _key(self, name):
        path = os.path.join(self.folder, name)
        subprocess.run([self.vigil, "keygen", path], check=True, capture_output=True)
        return path

    def public(self, key):
        with open(f"{key}.pub", encoding="utf-8") as file:
            return file.read().strip()

    def _clip(self):
        name, parts = CLIP
        path = os.path.join(self.folder, "clip.mp4")
        video = os.path.join(SOURCE, "tests", "videos", name)
        pieces = "".join(f"[0:v]trim={begin}:{end},setpts=PTS-STARTPTS,fps=4,scale=384:216[p{number}];" for number, (begin, end) in enumerate(parts))
        joined = "".join(f"[p{number}]" for number in range(len(parts)))
        subprocess.run(["ffmpeg", "-v", "error", "-i", video, "-filter_complex", f"{pieces}{joined}concat=n={len(parts)}:v=1[v]", "-map", "[v]",
                        "-g", "4", "-y", path], check=True)
        return path

    def node(self, name, roles, disk=False):
        self.nodes[name] = Node(self, name, roles, disk)
        return self.nodes[name]

    def has_gateways(self):
        return any("gateway" in node.roles for node in self.nodes.values())

    def endpoints(self):
        """The nodes at which subscribers are."""
        return [node for node in self.nodes.values() if node.serves_events()]

    def write_config(self):
        """Every window tells an event (`pulse`, which always counts), so that subscribers see what is answered; `person` comes and goes. Texts are work, so that
        but some cameras have alerts with words, of every window."""
        seeds = ", ".join(f'"{node.host.address}:{CONTROL}"' for node in self.nodes.values())
        each = "threshold: 0, confirm: 1/1, cooldown: 0s, max_per_hour: 10000"
        words = f', rules: [{{name: {WORDS}, prompt: "Is there a person? Explain.", explain: true, {each}}}]'
        more = {name: words for name in self.cameras[::3]} if self.explains else {}
        text = f"""name: "{{NODE}}"
model: {SOURCE}/models/demo
defaults: {{fps: 2, window: {{length: {self.window}, stride: {self.stride}}}, reconnect: {{min: 1s, max: 2s}}}}
cameras:
{"".join(f"  {name}: {{url: {self.clip}{more.get(name, '')}}}{os.linesep}" for name in self.cameras)}rules:
  - {{name: pulse, prompt: "Is there a person?", {each}}}
  - {{name: person, prompt: "Is there a person in the room?", confirm: 1/1, cooldown: 0s, max_per_hour: 10000, topics: [staff]}}
alerts:
  bind: "tcp://{{ADDRESS}}:{EVENTS}"
  replay: "tcp://{{ADDRESS}}:{REPLAY}"
  outbox: "{{HOME_OF}}/outbox"
  curve: {{secret_key_file: {self.server_key}, allow: ['{self.public(self.client_key)}']}}
metrics: {{listen: "127.0.0.1:{METRICS}"}}
cluster:
  name: {FLEET}
  listen: "{{ADDRESS}}:{CONTROL}"
  bulk: "{{ADDRESS}}:{BULK}"
  seeds: [{seeds}]
  tls_dir: "{{TLS}}"
  lease: {self.lease}
  registry:
    endpoints: ["{self.etcd.endpoint}"]
    ca_file: {self.certificates.ca}
    certificate: {{cert_file: "{{TLS}}/tls.crt", key_file: "{{TLS}}/tls.key"}}
log: {{level: info}}
shutdown_grace: 8s
"""
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(text)

    def plan(self):
        """Cameras by node, as etcd has it; nothing while it does not answer."""
        found = self.etcd.get(f"/vigil/{FLEET}/plan/")
        return {key.rsplit("/", 1)[1]: json.loads(value)["cameras"] for key, value in found.items()}

    def logs(self):
        return "\n".join(f"--- {machine.name}\n{machine.said()[-6000:]}" for machine in [self.etcd, *self.nodes.values()] if machine.starts)


class Lines:
    """A file of lines of JSON, each with its time by the monotonic clock, which all processes of the machine share. From any thread."""

    def __init__(self, path):
        self._file, self._lock = open(path, "a", encoding="utf-8"), threading.Lock()  # pylint: disable=consider-using-with

    def say(self, **line):
        line = {"t": round(time.monotonic(), 4), **line}
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        return line


class Journal(Lines):
    """What was done to the fleet, and when."""

    def say(self, what, **more):
        return super().say(what=what, **more)
