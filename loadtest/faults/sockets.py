#!/usr/bin/python3
"""Attacks on the sockets of a real `vigil run` from its own machine, one process an attack, with an honest subscriber beside it. Prints a JSON line
for each: what was sent, what it cost, and whether everything held; ends with 1 if something did not. Needs python3-zmq.

  loadtest/faults/sockets.py [--build build/release | --vigil PROGRAM] [--seconds 15] [ATTACK ...]
"""

import argparse
import json
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import zmq

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MIB = 1 << 20
# What may not be exceeded while a process is attacked: memory above what it had, descriptors, and how much later events come.
MEMORY = 256 * MIB
DESCRIPTORS = 3 * 256 + 64
LATENESS = 5

CONFIGURATION = """
model: {source}/models/demo
defaults: {{window: {{length: 2s, stride: 1s}}}}
cameras:
  room:
    url: {source}/tests/videos/one-by-one-person-detection.mp4
    rules: [{{name: person, prompt: "Is there a person in the room?", cooldown: 0s, confirm: 1/1, max_per_hour: 10000}}]
  lot:
    url: {source}/tests/videos/car-detection.mp4
    rules: [{{name: car, prompt: "Is there a car?", cooldown: 0s, confirm: 1/1, max_per_hour: 10000}}]
alerts: {{bind: "tcp://127.0.0.1:{events}", replay: "tcp://127.0.0.1:{replay}", outbox: outbox}}
metrics: {{listen: ""}}
shutdown_grace: 5s
"""

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def frame(body, flags=0):
    if len(body) < 256:
        return struct.pack("BB", flags, len(body)) + body
    return struct.pack(">BQ", flags | 2, len(body)) + body


def ready(kind):
    return frame(b"\5READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind, 4)


def few_descriptors():
    """As shells and init systems have it: 1,024, which a process may raise."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Peer:
    """A raw client; what it sends ends where the other side closes."""

    def __init__(self, port, kind=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        if kind is None:
            return
        self.socket.sendall(GREETING + ready(kind))
        seen = b""
        while b"READY" not in seen:
            more = self.socket.recv(4096)
            if not more:
                raise OSError("closed in the handshake")
            seen += more

    def send(self, data):
        self.socket.sendall(data)
        return len(data)


class Vigil:
    """A process on a folder of its own."""

    def __init__(self, program, folder):
        self.events, self.replay = free_ports(2)
        configuration = os.path.join(folder, "vigil.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(source=SOURCE, events=self.events, replay=self.replay))
        self.log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        self.process = subprocess.Popen([program, "run", "--config", configuration], stdout=self.log, stderr=self.log, cwd=folder,
                                        preexec_fn=few_descriptors, env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"})

    def status(self, key):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(key + ":"))

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="utf-8") as file:
            file.write("5")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None


class Honest(threading.Thread):
    """Reads all alerts, and knows how late each came and which never did."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket = zmq.Context.instance().socket(zmq.SUB)
        self.socket.connect(f"tcp://127.0.0.1:{port}")
        self.socket.subscribe(b"alert/")
        self.arrivals, self.missed, self.last, self.stopping = [], 0, {}, False

    def run(self):
        while not self.stopping:
            if not self.socket.poll(100):
                continue
            topic, sequence, _, event = self.socket.recv_multipart()
            now, sequence = time.time(), int(sequence)
            if sequence <= self.last.get(topic, 0):
                continue
            self.missed += max(0, sequence - self.last.get(topic, sequence - 1) - 1)
            self.last[topic] = sequence
            said = json.loads(event)["time"]
            shown = time.mktime(time.strptime(said[:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone + float("0" + said[19:].rstrip("Z"))
            self.arrivals.append((now, now - shown))

    def late(self, begin, end):
        return max((late for at, late in self.arrivals if begin <= at < end), default=None)


def again_and_again(until, attempt):
    """(bytes sent, connections that were closed); `attempt` yields how much it sent."""
    sent = closed = 0
    while time.monotonic() < until:
        try:
            for more in attempt():
                sent += more
                if time.monotonic() >= until:
                    break
        except OSError:
            closed += 1
    return sent, closed


def connects(vigil, until):
    """1,000 connections to each socket that say nothing."""
    peers = []
    for port in (vigil.events, vigil.replay):
        for _ in range(1000):
            try:
                peers.append(Peer(port))
            except OSError:
                pass
    time.sleep(max(0, until - time.monotonic()))
    return 0, len(peers)


def multipart(vigil, until):
    """A message whose parts never end, on each socket in turn."""
    def attempt():
        for port, kind in ((vigil.events, b"SUB"), (vigil.replay, b"DEALER")):
            peer = Peer(port, kind)
            part = frame(bytes(1000), 1) * 64
            try:
                end = time.monotonic() + 5
                while time.monotonic() < min(end, until):
                    yield peer.send(part)
            except OSError:
                pass
    return again_and_again(until, attempt)


def subscriptions(vigil, until):
    """Subscriptions of which no two are alike."""
    def attempt():
        peer = Peer(vigil.events, b"SUB")
        for _ in range(11_000):
            yield peer.send(frame(b"\1" + random.randbytes(900)) * 1)
    return again_and_again(until, attempt)


def queries(vigil, until):
    """Queries from 32 connections, as fast as they are read, each of which looks at as many events as one may."""
    query = json.dumps({"topics": ["nothing/" + str(i) for i in range(64)], "after": 0}).encode()
    request = frame(b"1", 1) + frame(query)
    peers = [Peer(vigil.replay, b"DEALER") for _ in range(32)]
    for each in peers:
        each.socket.setblocking(False)
    sent = closed = 0
    while time.monotonic() < until and peers:
        for each in list(peers):
            try:
                sent += each.socket.send(request)
                each.socket.recv(1 << 16)
            except BlockingIOError:
                pass
            except OSError:
                closed += 1
                peers.remove(each)
        time.sleep(0.001)
    return sent, closed


def idle(vigil, until):
    """60 subscribers of everything and 60 that ask for everything, and none of them reads."""
    peers = []
    for _ in range(60):
        peers.append(Peer(vigil.events, b"SUB"))
        peers[-1].send(frame(b"\1"))
        peers.append(Peer(vigil.replay, b"DEALER"))
        peers[-1].send((frame(b"1", 1) + frame(b'{"topics": [""]}')) * 100)
    time.sleep(max(0, until - time.monotonic()))
    return 0, len(peers)


def garbage(vigil, until):
    """Random bytes, with and without a greeting, half greetings, other protocols, frames that claim to be huge."""
    def attempt():
        port = random.choice((vigil.events, vigil.replay))
        peer = Peer(port)
        yield peer.send(random.choice((
            random.randbytes(random.randrange(1, 2000)), GREETING[:random.randrange(64)], GREETING + random.randbytes(500),
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", GREETING + ready(b"SUB") + b"\2" + b"\xff" * 8)))
        peer.socket.settimeout(0.02)
        peer.socket.recv(1000)
        raise OSError("the next one")
    return again_and_again(until, attempt)


ATTACKS = [connects, multipart, subscriptions, queries, idle, garbage]


def fill_outbox(event_source, folder):
    """Thousands of events, so that a query that finds nothing has much to look at."""
    process = subprocess.Popen([event_source, folder, "1", "run"])
    time.sleep(8)
    process.kill()
    process.wait()
    with open(os.path.join(folder, "committed"), encoding="utf-8") as file:
        return sum(1 for _ in file)


def try_attack(program, event_source, attack, seconds):
    with tempfile.TemporaryDirectory() as folder:
        kept = fill_outbox(event_source, folder) if attack is queries else 0
        vigil = Vigil(program, folder)
        try:
            honest = Honest(vigil.events)
            honest.start()
            began = time.monotonic()
            while len(honest.arrivals) < 5:
                if time.monotonic() - began > 120 or vigil.process.poll() is not None:
                    vigil.log.seek(0)
                    sys.exit(f"sockets.py: no events: {vigil.log.read()}")
                time.sleep(0.1)
            calm = time.time()
            time.sleep(seconds / 2)
            before, descriptors = vigil.status("VmRSS"), vigil.descriptors()
            vigil.forget_peak()
            begin, most, done = time.time(), [0], threading.Event()

            def watch():
                while not done.wait(0.05):
                    try:
                        most[0] = max(most[0], vigil.descriptors())
                    except OSError:
                        return
            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            sent, connections = attack(vigil, time.monotonic() + seconds)
            # A subscriber that comes under attack is served, too.
            late_one = Honest(vigil.events)
            late_one.start()
            time.sleep(5)
            done.set()
            alive = vigil.process.poll() is None
            memory = vigil.status("VmHWM") - before if alive else None
            end = time.time()
            honest.stopping = late_one.stopping = True
            lateness, calm_lateness = honest.late(begin, end), honest.late(calm, begin)
            outcome = vigil.stop()
            if outcome != 0:
                vigil.log.seek(0)
                print(f"{attack.__name__}: {outcome}: {vigil.log.read()}", file=sys.stderr)
            faults = [what for what, holds in (
                ("the process ended", alive), ("it did not stop well", outcome == 0),
                ("memory", alive and memory < MEMORY), ("descriptors", most[0] < DESCRIPTORS),
                ("no event came", lateness is not None),
                ("events came late", lateness is not None and lateness < (calm_lateness or 0) + LATENESS),
                ("events were missed", honest.missed == 0), ("nobody else was served", bool(late_one.arrivals))) if not holds]
            return {"attack": attack.__name__, "what": attack.__doc__, "seconds": seconds, "bytes": sent, "connections": connections, "events_kept": kept,
                    "memory_before": before, "memory_more": memory, "descriptors_before": descriptors, "descriptors_most": most[0],
                    "events": len(honest.arrivals), "missed": honest.missed,
                    "latest_before_s": calm_lateness and round(calm_lateness, 2), "latest_s": lateness and round(lateness, 2),
                    "holds": not faults, "faults": faults}
        finally:
            vigil.process.kill()
            vigil.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build/release"))
    parser.add_argument("--vigil", help="another program than the build's")
    parser.add_argument("--seconds", type=float, default=15, help="of each attack [15]")
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(each.__name__ for each in ATTACKS))
    options = parser.parse_args()
    names = {each.__name__: each for each in ATTACKS}
    unknown = [name for name in options.attacks if name not in names]
    if unknown:
        parser.error(f"{unknown[0]}: no such attack; there are {', '.join(names)}")
    program = os.path.abspath(options.vigil or os.path.join(options.build, "bin/vigil"))
    event_source = os.path.join(os.path.abspath(options.build), "bin/event_source")
    for path in (program, event_source):
        if not os.path.exists(path):
            print(f"sockets: {path} is missing: scripts/build release", file=sys.stderr)
            sys.exit(2)
    held = True
    for name in options.attacks or names:
        result = try_attack(program, event_source, names[name], options.seconds)
        print(json.dumps(result), flush=True)
        held = held and result["holds"]
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
