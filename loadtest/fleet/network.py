"""A network of this program's own: a switch, and hosts with addresses of their own, which can be cut off, slowed down and made to lose.

Everything is in namespaces of the kernel (network, mounts, processes), which a user without rights gets, too, where the machine lets him; nothing of
it is left when the program ends, however it ends.
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
TOOLS = ("unshare", "nsenter", "ip", "tc", "nft", "iptables", "etcd", "etcdctl", "openssl", "ffmpeg")
INSIDE = "VIGIL_FLEET_NAMESPACES"
UNSHARE = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
CLONE_NEWNET = 0x40000000
PREFIX = "10.77.0."
BRIDGE_FILTER = "/proc/sys/net/bridge/bridge-nf-call-iptables"


def missing():
    """Why no such network can be made here, in a line; empty if it can."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    if lacking:
        return f"{', '.join(lacking)} not found (scripts/dependencies installs them)"
    if not os.path.exists(BRIDGE_FILTER) and os.geteuid() == 0:
        subprocess.run(["modprobe", "br_netfilter"], check=False, stderr=subprocess.DEVNULL)
    if not os.path.exists(BRIDGE_FILTER):
        return "the kernel does not have br_netfilter"
    tried = subprocess.run([*_unshare(), "sh", "-c", "mount -t tmpfs none /run && mkdir /run/netns && ip netns add a && ip link add s type bridge && "
                            "nft add table bridge t"], capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"no namespaces for this user: {tried.stderr.strip().splitlines()[-1:]}"


def _unshare():
    return UNSHARE if os.geteuid() == 0 else [*UNSHARE, "--map-root-user"]


def enter():
    """Goes on in namespaces of its own; ends the program with status 77 where there are none. To be called first."""
    if os.environ.get(INSIDE) == "1":
        return
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        sys.exit(77)
    os.environ[INSIDE] = "1"
    sys.stdout.flush()
    command = [*_unshare(), sys.executable, *sys.argv]
    os.execvp(command[0], command)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def go_into(namespace):
    """This thread is on that host from now on: the sockets that it makes are. Network namespaces are a thread's, not a process's."""
    file = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(file, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns {namespace}")
    finally:
        os.close(file)


class Host:
    def __init__(self, network, name, number):
        self.network, self.name, self.address = network, name, f"{PREFIX}{number}"
        self.namespace = f"/run/netns/{name}"
        self.port = f"p-{name}"

    def command(self, *command):
        """What runs a program on this host, in the process that is started."""
        return ["nsenter", f"--net={self.namespace}", "--", *command]

    def run(self, *command):
        return run(*self.command(*command))

    @contextlib.contextmanager
    def inside(self):
        before = f"/proc/self/task/{threading.get_native_id()}/ns/net"
        back = os.open(before, os.O_RDONLY | os.O_CLOEXEC)
        try:
            go_into(self.namespace)
            yield
        finally:
            ctypes.CDLL(None, use_errno=True).setns(back, CLONE_NEWNET)
            os.close(back)


class Network:
    """The program itself stands on the switch, as 10.77.0.1. Faults are rules there, so that a host does not see why nothing comes."""

    def __init__(self):
        if os.environ.get(INSIDE) != "1":
            raise RuntimeError("network.enter() was not called")
        self.hosts = {}
        self._lock = threading.Lock()
        run("mount", "-t", "tmpfs", "none", "/run")
        os.makedirs("/run/netns")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "switch", "type", "bridge")
        run("ip", "link", "set", "switch", "up")
        run("ip", "address", "add", f"{PREFIX}1/24", "dev", "switch")
        run("nft", "add table bridge vigil; add chain bridge vigil faults; " +
            "; ".join(f"add chain bridge vigil {hook} {{ type filter hook {hook} priority 0; }}; add rule bridge vigil {hook} jump faults"
                      for hook in ("forward", "input", "output")))

    def host(self, name):
        """Names have 13 characters at most, with the two of the port one of the switch's interfaces."""
        with self._lock:
            host = Host(self, name, 10 + len(self.hosts))
            self.hosts[name] = host
        run("ip", "netns", "add", name)
        run("ip", "link", "add", host.port, "type", "veth", "peer", "name", "eth0", "netns", name)
        # Packets of the size that a wire would have: one that is lost is not forty.
        run("ip", "link", "set", host.port, "gso_max_segs", "1", "master", "switch", "up")
        host.run("ip", "link", "set", "eth0", "gso_max_segs", "1", "up")
        host.run("ip", "link", "set", "lo", "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        return host

    @contextlib.contextmanager
    def _rules(self, *rules):
        handles = []
        try:
            for rule in rules:
                told = run("nft", "--echo", "--handle", f"add rule bridge vigil faults {rule}")
                handles.append(re.search(r"# handle (\d+)", told).group(1))
            yield
        finally:
            for handle in handles:
                run("nft", f"delete rule bridge vigil faults handle {handle}")

    def cut(self, host, side="both"):
        """Nothing reaches the host (in), nothing comes from it (out), or both, while the block runs."""
        rules = {"in": [f"oifname {host.port} drop"], "out": [f"iifname {host.port} drop"]}
        return self._rules(*(rules["in"] + rules["out"] if side == "both" else rules[side]))

    def cut_between(self, host, other, side="both"):
        """As cut, of these two hosts alone; in: what the other sends to this one."""
        rules = {"in": [f"iifname {other.port} oifname {host.port} drop"], "out": [f"iifname {host.port} oifname {other.port} drop"]}
        return self._rules(*(rules["in"] + rules["out"] if side == "both" else rules[side]))

    def lose(self, host, percent):
        """So many of a hundred packets are lost, each way, at random."""
        return self._rules(*(f"{way} {host.port} numgen random mod 100 < {percent} drop" for way in ("iifname", "oifname")))

    @contextlib.contextmanager
    def slow(self, host, rate="10mbit"):
        """A link of that rate each way, with a queue of 100 ms before it (tc's token bucket)."""
        bucket = ("root", "tbf", "rate", rate, "burst", "32kb", "latency", "100ms")
        ends = (lambda *command: run(*command), host.port), (host.run, "eth0")
        try:
            for at, device in ends:
                at("tc", "qdisc", "replace", "dev", device, *bucket)
            yield
        finally:
            for at, device in ends:
                at("tc", "qdisc", "del", "dev", device, "root")

    @contextlib.contextmanager
    def delay(self, host, milliseconds):
        """Each way takes that much longer. Without netem: the kernel's queue for user space, and a program that lets go later (holdback.py).

        On the switch too: a packet that waits on its sender's host counts as one that was not sent yet, and TCP sends next to nothing behind it.
        """
        queue = host.address.rsplit(".", 1)[1]
        rules = [("FORWARD", "-m", "physdev", way, host.port, "-j", "NFQUEUE", "--queue-num", queue, "--queue-bypass")
                 for way in ("--physdev-in", "--physdev-out")]
        with open(BRIDGE_FILTER, "w", encoding="ascii") as file:
            file.write("1")
        # When it ends everything passes: queue-bypass.
        with subprocess.Popen([sys.executable, os.path.join(HERE, "holdback.py"), queue, str(milliseconds)], stdout=subprocess.PIPE) as process:
            try:
                if process.stdout.readline() != b"ready\n":
                    raise RuntimeError("holdback.py did not start")
                for rule in rules:
                    run("iptables", "-A", *rule)
                yield
            finally:
                for rule in rules:
                    subprocess.run(["iptables", "-D", *rule], check=False, stderr=subprocess.DEVNULL)
                process.kill()
