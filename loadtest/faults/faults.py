"""What the fault programs have in common: processes, a subscriber of its own, and what may never happen to events."""

import argparse
import collections
import contextlib
import ctypes
import json
import os
import signal
import shutil
import subprocess
import sys
import tempfile
import threading
import time

try:
    import zmq
except ImportError:
    print("skipped: python3-zmq is not installed (scripts/dependencies --faults)")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
PATIENCE = 60

Event = collections.namedtuple("Event", "topic sequence position body")


def arguments(text, **defaults):
    """The options of every fault program; `defaults` are those of its own, by name."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=os.path.join(SOURCE, "build/release"), help="the build whose programs run [build/release]")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; a round's seed is its number after that [1]")
    for name, (value, what) in defaults.items():
        kind = {} if value is None else {"type": type(value)}
        parser.add_argument(f"--{name.replace('_', '-')}", default=value, help=f"{what} [{value}]", **kind)
    return parser.parse_args()


def program(options, name):
    path = os.path.join(os.path.abspath(options.build), "bin", name)
    if not os.path.exists(path):
        sys.exit(f"{path} is missing: scripts/build release")
    return path


def skip(reason):
    """The status by which ctest knows that a test could not run here."""
    print(f"skipped: {reason}")
    sys.exit(77)


def say(**figures):
    print(json.dumps(figures), flush=True)


@contextlib.contextmanager
def scratch(in_memory=True):
    """A folder that goes; in memory, where syncing costs nothing."""
    place = "/dev/shm" if in_memory and os.path.isdir("/dev/shm") else None
    folder = tempfile.mkdtemp(prefix="vigil-faults-", dir=place)
    try:
        yield os.path.realpath(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Process(subprocess.Popen):
    """Is killed when the block ends, and when this program does. What it says goes to a file, its output to another if there is one."""

    def __init__(self, command, log, environment=None, limit=None, output=None):
        self.log = log
        with open(log, "a", encoding="utf-8") as file, open(output or log, "a", encoding="utf-8") as shown:
            super().__init__(command, stdout=shown, stderr=file, stdin=subprocess.DEVNULL, env={**os.environ, **(environment or {})},
                             preexec_fn=lambda: (die_with_parent(), limit and limit()))

    def __exit__(self, *what):
        self.kill()
        return super().__exit__(*what)

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()


def eventually(condition, patience=PATIENCE, what=None):
    until = time.monotonic() + patience
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > until:
            if what:
                raise Failure(f"{what} did not happen within {patience} s")
            return None
        time.sleep(0.005)


class Failure(Exception):
    """What must not be, in one line."""


class Subscriber:
    """Writes down every message that comes, in a thread of its own; connects again and again at once."""

    def __init__(self, endpoint, prefix=b""):
        self.seen = []
        self.last_at = time.monotonic()
        self.longest_silence = 0.0
        self.bad = []
        self._stop = False
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.SUB)
        self._socket.setsockopt(zmq.RECONNECT_IVL, 1)
        self._socket.setsockopt(zmq.RCVHWM, 0)
        self._socket.setsockopt(zmq.LINGER, 0)
        self._socket.setsockopt(zmq.SUBSCRIBE, prefix)
        self._socket.connect(endpoint)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._stop:
            if self._socket.poll(20):
                parts = self._socket.recv_multipart()
                if len(parts) != 4:
                    self.bad.append(parts)
                    continue
                topic, sequence, position, body = parts
                now = time.monotonic()
                self.longest_silence, self.last_at = max(self.longest_silence, now - self.last_at), now
                self.seen.append(Event(topic.decode(), int(sequence), int(position), body))

    def drain(self, quiet=0.03):
        """Waits until nothing has come for so long."""
        count = -1
        while count != len(self.seen):
            count = len(self.seen)
            time.sleep(quiet)
        return self.seen

    def close(self):
        self._stop = True
        self._thread.join()
        if self.bad:
            raise Failure(f"a message of {len(self.bad[0])} parts was published")
        self._context.destroy(linger=0)


def replay(endpoint, patience=PATIENCE, after=0):
    """(identity of the outbox, every event that it replays)."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RECONNECT_IVL, 1)
    socket.connect(endpoint)
    try:
        events, identity, more, tag = [], None, True, 0
        until = time.monotonic() + patience
        while more:
            tag += 1
            socket.send_multipart([str(tag).encode(), json.dumps({"topics": [""], "after": after}).encode()])
            parts = None
            while parts is None or parts[0] != str(tag).encode():
                if not socket.poll(max(0, int((until - time.monotonic()) * 1000))):
                    raise Failure(f"no replay within {patience} s")
                parts = socket.recv_multipart()
            header = json.loads(parts[1])
            if "error" in header:
                if time.monotonic() > until:
                    raise Failure(f"replay: {header['error']['message']}")
                time.sleep(0.02)
                continue
            identity, after, more = header["outbox"], header["cursor"], header["more"]
            for at in range(2, len(parts), 4):
                topic, sequence, position, body = parts[at:at + 4]
                events.append(Event(topic.decode(), int(sequence), int(position), body))
        return identity, events
    finally:
        context.destroy(linger=0)


class Truth:
    """What was shown to somebody, and what was promised: it may not change any more."""

    def __init__(self):
        self.identity = None
        self.bodies = {}     # (topic, sequence): body
        self.ids = {}        # (topic, source, id): body
        self.promised = set()

    def shown(self, events):
        """Throws Failure where one contradicts what was shown before."""
        for event in events:
            place = (event.topic, event.sequence)
            if self.bodies.setdefault(place, event.body) != event.body:
                raise Failure(f"{event.topic} {event.sequence} was shown with another content")
            told = json.loads(event.body)
            if told["data"].get("seq", event.sequence) != event.sequence:
                raise Failure(f"{event.topic} {event.sequence} says that it is {told['data']['seq']}")
            name = (event.topic, told["source"], told["id"])
            if self.ids.setdefault(name, (event.sequence, event.body))[0] != event.sequence:
                raise Failure(f"{event.topic} {event.sequence} has the id of another event, {told['id']}")

    def promise(self, lines):
        for line in lines:
            topic, sequence = line.rsplit(" ", 1)
            self.promised.add((topic, int(sequence)))

    def check(self, identity, kept):
        """Throws Failure unless all of it is in what an outbox replays. What else is there was shown to nobody yet."""
        found = {(event.topic, event.sequence): event.body for event in kept}
        lost = sorted((self.promised | set(self.bodies)) - set(found))
        if self.identity is not None and identity != self.identity:
            raise Failure(f"the outbox is another one: {self.identity} became {identity}")
        if lost:
            shown = sum(place in self.bodies for place in lost)
            raise Failure(f"{len(lost)} events are lost, {shown} of them were shown; the first is {lost[0][0]} {lost[0][1]}")
        copy = Truth()
        copy.bodies, copy.ids = dict(self.bodies), dict(self.ids)
        copy.shown(kept)
        check_order(kept)
        if self.bodies or self.promised:
            self.identity = identity


def check_order(kept):
    """Throws Failure unless positions ascend and no topic's numbers have a gap."""
    last = {}
    position = 0
    for event in kept:
        if event.position <= position:
            raise Failure(f"position {event.position} comes after {position}")
        position = event.position
        if event.topic in last and event.sequence != last[event.topic] + 1:
            raise Failure(f"{event.topic} {event.sequence} comes after {last[event.topic]}")
        last[event.topic] = event.sequence


def lines_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return [line.rstrip("\n") for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
