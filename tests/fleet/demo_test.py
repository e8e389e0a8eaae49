"""What `scripts/demo --fleet` shows is so: its fleet is looked at from here, too, with subscribers of three gateways after docs/topics.md and with /fleet of
all nodes. And it fails, in one line, when what it shows does not happen.

  demo_test.py BUILD
"""

import contextlib
import copy
import datetime
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

try:
    import zmq
except ImportError:
    zmq = None

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
DEMO = os.path.join(SOURCE, "scripts", "demo")
NODES = ("1", "2", "3")
TOPIC = "alert/demo/parking-lot/car/"
PATIENCE = 300
PORTS = [2389, 2390] + [int(port) for node in NODES for port in (f"5{node}56", f"5{node}57", f"5{node}58", f"7{node}00", f"7{node}01", f"9{node}64")]


class Subscriber(threading.Thread):
    """Of one gateway, as long as it is there: live, and all that it keeps."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node, self.over = node, threading.Event()
        # (seconds since 1970, outbox or "" for live, topic, number, event)
        self.seen = []
        self.start()

    def ask(self, desk, tag, after):
        try:
            desk.send_multipart([b"%d" % tag, json.dumps({"topics": [""], "after": after}).encode()])
        except zmq.Again:
            return None
        while desk.poll(2000):
            answer, header, *parts = desk.recv_multipart()
            header = json.loads(header)
            if int(answer) == tag and "error" not in header:
                return header, parts
        return None

    def keep(self, outbox, parts):
        for topic, number, _, event in zip(*[iter(parts)] * 4):
            self.seen.append((time.time(), outbox, topic.decode(), int(number), json.loads(event)))

    def run(self):
        context = zmq.Context()
        bell, desk = context.socket(zmq.SUB), context.socket(zmq.DEALER)
        desk.setsockopt(zmq.IMMEDIATE, 1)
        desk.setsockopt(zmq.SNDTIMEO, 0)
        for made, port in (bell, f"5{self.node}56"), (desk, f"5{self.node}57"):
            made.setsockopt(zmq.LINGER, 0)
            made.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
            made.connect(f"tcp://127.0.0.1:{port}")
        bell.subscribe("")
        outbox, cursor, tag = None, 0, 0
        while not self.over.is_set():
            if bell.poll(500):
                self.keep("", bell.recv_multipart())
                while bell.poll(0):
                    self.keep("", bell.recv_multipart())
            more = True
            while more and not self.over.is_set():
                tag += 1
                answer = self.ask(desk, tag, cursor)
                if answer is None:
                    break
                header, parts = answer
                if header["outbox"] != outbox:
                    known, outbox, cursor = cursor, header["outbox"], 0
                    if known != 0:
                        continue
                self.keep(outbox, parts)
                cursor, more = header["cursor"], header["more"]
        context.destroy()


class Looker(threading.Thread):
    """Who has which camera, as each node tells, every half second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.seen = []  # (seconds since 1970, node that was asked, {camera: (owner, state)})
        self.start()

    def run(self):
        while not self.over.wait(0.5):
            for node in NODES:
                with contextlib.suppress(OSError, ValueError, KeyError):
                    with urllib.request.urlopen(f"http://127.0.0.1:9{node}64/fleet?cameras", timeout=5) as answer:
                        told = json.load(answer)
                    self.seen.append((time.time(), node, {each["camera"]: (each["owner"], each["state"]) for each in told["list"]}))


class Demo:
    """The script as it runs, its lines with the time at which they came."""

    def __init__(self, *arguments):
        self.process = subprocess.Popen([DEMO, "--fleet", "--built", BUILD, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.lines, self.errors = [], []
        self.threads = [threading.Thread(target=self.read, args=each, daemon=True)
                        for each in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def read(stream, into):
        for line in stream:
            into.append((time.time(), line.rstrip("\n")))

    def text(self):
        return "\n".join(line for _, line in list(self.lines) + list(self.errors))

    def wait_for(self, pattern, count=1):
        """The last of so many lines that are like this."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found = [found for _, line in list(self.lines) if (found := re.search(pattern, line))]
            if len(found) >= count:
                return found[count - 1]
            if self.process.poll() is not None:
                break
            time.sleep(0.05)  # between looks at a process that runs by itself
        raise AssertionError(f"no line {pattern!r}\n{self.text()}")

    def end(self):
        status = self.process.wait(PATIENCE)
        for thread in self.threads:
            thread.join()
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.end()
        self.process.stdout.close()
        self.process.stderr.close()


def left():
    """What still runs of what a demo starts."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode(errors="replace").split("\0")
            own = {"config/demo-fleet.yaml", "build/demo-fleet/etcd/data", *(f"tcp://127.0.0.1:5{node}56" for node in NODES)}
            if not own.isdisjoint(words):
                found.append(" ".join(words))
    return found


def time_of(event):
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def faults(status, lines, seen, looks):
    """What is wrong with a run that should have gone well. seen: of the subscribers, by node; looks: of the looker."""
    wrong = []
    if status != 0:
        wrong.append(f"it ended with {status}")
    conclusion = re.fullmatch(r"node-(\d) was killed: node-(\d) had parking-lot after ([\d.]+) s, its next alert came after ([\d.]+) s, "
                              r"numbers 1 to (\d+) have no gap, and node-\1 is back with (.+)\.", lines[-1][1] if lines else "")
    started = [(at, found[1], int(found[2])) for at, line in lines if (found := re.match(r"\$ N=(\d) vigil node .*# process (\d+)$", line))]
    killed = [(at, int(found[1])) for at, line in lines if (found := re.match(r"\$ kill -KILL (\d+)$", line))]
    first = [int(found[1]) for _, line in lines if (found := re.match(r"The next alert of parking-lot is number (\d+)", line))]
    if not conclusion or [each[1] for each in started[:3]] != list(NODES) or len(started) != 4 or len(killed) != 1 or len(first) != 1:
        return wrong + [f"no conclusion, or not three nodes that are started, one that is killed and one that is started again: {started} {killed} {first}"]
    victim, owner, newest, share = conclusion[1], conclusion[2], int(conclusion[5]), conclusion[6].split(", ")
    at, pid = killed[0]
    again = started[3][0]
    if pid != dict((node, each) for _, node, each in started[:3])[victim] or started[3][1] != victim or started[3][2] == pid:
        wrong.append(f"node-{victim} was not killed and started again: {started} {killed}")

    before = [cameras["parking-lot"][0] for when, _, cameras in looks if when < at and "parking-lot" in cameras]
    if before[-1:] != [f"node-{victim}"]:
        wrong.append(f"before the kill parking-lot was not at node-{victim}, but at {before[-1:]}")
    if not any(at < when < again + 1 and cameras.get("parking-lot") == (f"node-{owner}", "up") for when, _, cameras in looks):
        wrong.append(f"after the kill parking-lot was not up at node-{owner}")
    if not any(when > again and all(cameras.get(camera) == (f"node-{victim}", "up") for camera in share) for when, _, cameras in looks):
        wrong.append(f"node-{victim} did not get {share}")

    ids, places = {}, {}
    for node, events in seen.items():
        outboxes = {}
        for _, outbox, topic, number, event in events:
            if ids.setdefault((topic, number), event["id"]) != event["id"]:
                wrong.append(f"number {number} of {topic} is {ids[topic, number]} and, at node-{node}, {event['id']}")
            if topic.startswith("alert/") and places.setdefault(event["id"], (topic, number)) != (topic, number):
                wrong.append(f"{event['id']} is number {number} of {topic} and, at node-{node}, {places[event['id']]}")
            if outbox:
                outboxes.setdefault(outbox, {}).setdefault(topic, set()).add(number)
        for topics in outboxes.values():
            for topic, numbers in topics.items():
                if numbers != set(range(1, len(numbers) + 1)):
                    wrong.append(f"gateway of node-{node}: numbers of {topic} have a gap: {sorted(numbers)}")
        kept = {number for _, _, topic, number, _ in events if topic == TOPIC}
        # The one that was away has them once it is there again.
        if not set(range(1, newest + 1)) <= kept:
            wrong.append(f"gateway of node-{node}: not all of the numbers 1 to {newest} of {TOPIC}, but {sorted(kept)}")

    for node in set(NODES) - {victim}:
        live = {number: event for _, outbox, topic, number, event in seen[node] if not outbox and topic == TOPIC}
        after = [number for number, event in live.items() if time_of(event) > at]
        if not (len(after) >= 3 and min(after) == first[0] and max(after) >= newest):
            wrong.append(f"gateway of node-{node}: after the kill the alerts {sorted(after)} of {TOPIC} came; the demo says {first[0]} to {newest}")
        if sum(when > at and not outbox and topic == TOPIC and time_of(event) > at and when < again for when, outbox, topic, _, event in seen[node]) < 2:
            wrong.append(f"gateway of node-{node}: no two alerts of {TOPIC} came while node-{victim} was away")
    return wrong


def why_not():
    if zmq is None:
        return "python3-zmq is not installed"
    missing = [program for program in ("etcd", "openssl", "setpriv") if not shutil.which(program)]
    return f"there is no {', '.join(missing)}" if missing else None


class DemoOfAFleet(unittest.TestCase):
    def demo(self, *arguments):
        demo = Demo(*arguments)
        self.addCleanup(demo.close)
        return demo

    def wait_until(self, condition):
        end = time.monotonic() + 10
        while not condition() and time.monotonic() < end:
            time.sleep(0.05)  # between looks at processes that run by themselves
        self.assertTrue(condition(), left())

    def nothing_is_left(self):
        self.wait_until(lambda: not left())

    def test_what_it_shows_is_so(self):
        subscribers, looker = {node: Subscriber(node) for node in NODES}, Looker()
        demo = self.demo()
        status = demo.end()
        for each in [*subscribers.values(), looker]:
            each.over.set()
        for each in [*subscribers.values(), looker]:
            each.join()
        seen = {node: subscriber.seen for node, subscriber in subscribers.items()}
        self.assertEqual([*demo.errors, *faults(status, demo.lines, seen, looker.seen)], [], demo.text())
        self.nothing_is_left()
        self.each_fault_is_found(status, demo.lines, seen, looker.seen)

    def each_fault_is_found(self, status, lines, seen, looks):
        """What a fleet that does not do it would have shown."""
        victim = lines[-1][1][len("node-")]
        node = next(node for node in NODES if node != victim)
        newest = int(re.search(r"1 to (\d+)", lines[-1][1])[1])
        killed = next(at for at, line in lines if line.startswith("$ kill -KILL"))

        def found(reason, **changed):
            given = {"status": status, "lines": lines, "seen": seen, "looks": looks, **changed}
            wrong = faults(**given)
            self.assertTrue(any(reason in each for each in wrong), f"{reason}: {wrong}")
        without = lambda keep: {**seen, node: [each for each in seen[node] if keep(*each)]}  # noqa: E731
        found("have a gap", seen=without(lambda at, outbox, topic, number, event: (topic, number) != (TOPIC, newest - 1)))
        found("after the kill the alerts []", seen=without(lambda at, outbox, topic, number, event: topic != TOPIC or time_of(event) < killed))
        found("while node-", seen=without(lambda at, outbox, topic, number, event: topic != TOPIC or bool(outbox)))
        other = copy.deepcopy(seen)
        next(each for each in other[node] if each[2:4] == (TOPIC, newest))[4]["id"] = "another"
        found(f"number {newest} of {TOPIC} is", seen=other)
        twice = copy.deepcopy(seen)
        events = {each[3]: each[4] for each in twice[node] if each[2] == TOPIC}
        events[newest]["id"] = events[newest - 1]["id"]
        found(f"{events[newest]['id']} is number", seen=twice)
        found(f"gateway of node-{victim}: not all", seen={**seen, victim: [each for each in seen[victim] if each[0] < killed]})
        found("was not up at", looks=[each for each in looks if each[0] < killed])
        found("did not get", looks=[each for each in looks if each[0] < killed + 1])
        found("before the kill", looks=[(at, asked, {"parking-lot": ("node-9", "up")}) for at, asked, _ in looks])
        found("no conclusion", lines=lines[:-1])
        found("no conclusion", lines=[each for each in lines if not re.match(r"\$ N=\d vigil node", each[1])])
        found("ended with 1", status=1)

    def test_two_that_are_lost_are_told(self):
        demo = self.demo()
        nodes = {(found := demo.wait_for(r"^\$ N=(\d) vigil node .*# process (\d+)$", number))[1]: int(found[2]) for number in (1, 2, 3)}
        victim = int(demo.wait_for(r"^\$ kill -KILL (\d+)$")[1])
        name, other = next((name, pid) for name, pid in nodes.items() if pid != victim)
        os.kill(other, signal.SIGKILL)
        self.assertEqual(demo.end(), 1, demo.text())
        self.assertRegex(demo.errors[-1][1], rf"^scripts/demo: node-{name} ended by itself, with -9; what it said is in build/demo-fleet/node-{name}\.log$")
        self.assertNotRegex(demo.text(), "was killed: .* have no gap")
        self.nothing_is_left()

    def test_all_ends_with_it_however_it_ends(self):
        for number, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
            with self.subTest(number):
                demo = self.demo()
                try:
                    demo.wait_for(r"^\$ N=3 vigil node")
                    # One that is just becoming its program has no words for a moment.
                    self.wait_until(lambda: len(left()) == 4)
                    demo.process.send_signal(number)
                    self.assertEqual(demo.end(), status, demo.text())
                    self.nothing_is_left()
                finally:
                    # Or the next one would find its ports taken.
                    demo.close()

    def test_a_port_that_is_taken_is_told(self):
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", 7201))
            taken.listen()
            demo = self.demo()
            self.assertEqual(demo.end(), 1)
        self.assertEqual([line for _, line in demo.errors], ["scripts/demo: another program has port 7201 of 127.0.0.1; is this demo running already?"])
        self.nothing_is_left()

    def test_arguments_that_make_no_sense_are_refused_in_a_line(self):
        for arguments, reason in ((["--fleets"], "unknown argument '--fleets'"), (["--fleet", "3"], "unknown argument '3'"),
                                  (["--built"], "--built needs a folder"), (["--built", "/nowhere"], "there is no program /nowhere/bin/vigil")):
            done = subprocess.run([DEMO, *arguments], capture_output=True, text=True, timeout=30, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), arguments)
            self.assertIn(reason, done.stderr)
        done = subprocess.run([DEMO, "--help"], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(done.returncode, 0)
        self.assertIn("--fleet", done.stdout)


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    REASON = why_not()
    if REASON:
        print(f"skipped: {REASON} (scripts/dependencies installs it)")
        sys.exit(77)
    unittest.main(verbosity=2)
