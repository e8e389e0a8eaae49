#!/usr/bin/python3
"""`vigil watch` with two gateways of a fleet, which have the same events in orders of their own: it goes on with the other one when one is killed, misses
nothing, shows nothing twice, and does not read again what it has seen. While nothing happens, it stays where it is.

  gateways_test.py VIGIL
"""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time

import zmq

PATIENCE = 60
OLD = 300


def check(holds, what):
    if not holds:
        sys.exit(f"gateways_test: {what}")


def event(topic, number):
    """As docs/event.schema.json has it, of a camera's state."""
    camera = topic.split("/")[2]
    return {"specversion": "1.0", "id": f"status-{number:016x}-{number}", "source": f"/site/north/camera/{camera}", "type": "dev.vigil.status.v1",
            "subject": "camera", "time": "2026-08-01T10:00:00.000Z", "datacontenttype": "application/json",
            "data": {"seq": number, "camera": camera, "tenant": "north", "labels": {}, "state": "up", "reason": ""}}


def gateway(folder, name, orders, counter, asked):
    """Publishes and replays (docs/topics.md); commits what comes as (topic, number) from `orders`."""
    context = zmq.Context()
    events, replay = context.socket(zmq.XPUB), context.socket(zmq.ROUTER)
    events.setsockopt(zmq.XPUB_VERBOSE, 1)
    events.bind(f"ipc://{folder}/{name}")
    replay.bind(f"ipc://{folder}/{name}-replay")
    log, last = [], {}
    poller = zmq.Poller()
    for socket in events, replay:
        poller.register(socket, zmq.POLLIN)
    while True:
        ready = dict(poller.poll(5))
        while orders.poll(0):
            topic, number = orders.recv()
            body = json.dumps(event(topic, number)).encode()
            message = [topic.encode(), b"%d" % number, b"%d" % (len(log) + 1), body]
            log.append((topic, number, message))
            last[topic] = message
            events.send_multipart(message)
        if events in ready:
            wanted = events.recv()
            for topic, message in sorted(last.items()):
                if wanted[:1] == b"\x01" and topic.encode().startswith(wanted[1:]):
                    events.send_multipart(message)
        if replay in ready:
            client, tag, text = replay.recv_multipart()
            query = json.loads(text)
            asked.value += 1
            after = query.get("after", 0)
            after = len(log) if after == "latest" else after
            if "from" in query:
                found = [i for i, (topic, number, _) in enumerate(log) if topic == query["topics"][0] and number >= query["from"]]
                after = found[0] if found else len(log)
            page = [(i + 1, message) for i, (topic, number, message) in enumerate(log)
                    if i >= after and any(topic.startswith(each) for each in query["topics"])][:50]
            cursor = page[-1][0] if len(page) == 50 else len(log)
            header = {"outbox": name, "events": len(page), "cursor": cursor, "more": cursor < len(log), "newest": len(log)}
            replay.send_multipart([client, tag, json.dumps(header).encode()] + [part for _, message in page for part in message])
            counter.value += len(page)


class Gateway:
    def __init__(self, folder, name, committed):
        self.orders, there = multiprocessing.Pipe()
        self.replayed = multiprocessing.Value("i", 0)
        self.asked = multiprocessing.Value("i", 0)
        self.process = multiprocessing.Process(target=gateway, args=(folder, name, there, self.replayed, self.asked), daemon=True)
        self.process.start()
        for each in committed:
            self.orders.send(each)

    def kill(self):
        self.process.kill()
        self.process.join()


def main():
    vigil = os.path.abspath(sys.argv[1])
    folder = tempfile.mkdtemp(prefix="vigil-gateways-")
    err = open(os.path.join(folder, "err"), "w+b")
    out = os.path.join(folder, "out")
    watch = None
    gateways = {}

    def seen():
        with open(out, encoding="utf-8") as file:
            return [(f"status/north/{data['camera']}/", data["seq"]) for data in (json.loads(line)["data"] for line in file.read().split("\n")[:-1])]

    def eventually(condition, what):
        until = time.monotonic() + PATIENCE
        while not condition():
            check(time.monotonic() < until and watch.poll() is None, f"{what}: {seen()[-5:]}")
            time.sleep(0.02)

    def commit(name, *events):
        for each in events:
            gateways[name].orders.send(each)

    gate = lambda number: ("status/north/gate/", number)  # noqa: E731
    yard = lambda number: ("status/north/yard/", number)  # noqa: E731
    try:
        old = [("status/north/old/", number) for number in range(1, OLD + 1)]
        for name in "a", "b":
            gateways[name] = Gateway(folder, name, old)
        with open(out, "wb") as file:
            watch = subprocess.Popen([vigil, "watch", "status/", "--output", "json", "--endpoint", f"ipc://{folder}/a", "--replay", f"ipc://{folder}/a-replay",
                                      "--endpoint", f"ipc://{folder}/b", "--replay", f"ipc://{folder}/b-replay"], stdout=file, stderr=err)
        eventually(lambda: seen() == [old[-1]], "the last event did not come")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([vigil, "watch", "status/", "--endpoint", f"ipc://{folder}/a", "--replay", f"ipc://{folder}/a-replay"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=20, check=False)
        check(done.returncode == 1 and len(done.stderr.splitlines()) == 1, f"a disk that is full: {done}")
        commit("a", gate(1), yard(1), gate(2))
        commit("b", yard(1), gate(1), gate(2))
        eventually(lambda: gate(2) in seen(), "what is live did not come")
        # Every five seconds it asks whether it missed anything, and that is all.
        asked = gateways["a"].asked.value
        eventually(lambda: gateways["a"].asked.value >= asked + 2, "it does not ask the quiet one")
        check(gateways["b"].asked.value == 0, "the quiet one was left")
        # Committed, and published by the other one alone.
        commit("b", yard(2), gate(3), gate(4), ("status/north/new/", 1), ("status/north/new/", 2))
        gateways["a"].kill()
        eventually(lambda: {gate(4), yard(2), ("status/north/new/", 2)} <= set(seen()), "what the other one has did not come")
        commit("b", gate(5))
        eventually(lambda: gate(5) in seen(), "the other one is not followed")
        # It lost its disk, and has all again.
        everything = sorted(set(seen()) | set(old), reverse=True)
        everything.sort(key=lambda each: each[1])
        gateways["a"] = Gateway(folder, "a", everything)
        gateways["b"].kill()
        commit("a", gate(6), yard(3))
        eventually(lambda: {gate(6), yard(3)} <= set(seen()), "it did not come back to the first one")
        by_topic = {}
        for topic, number in seen():
            by_topic.setdefault(topic.split("/")[2], []).append(number)
        check(by_topic == {"old": [OLD], "gate": [1, 2, 3, 4, 5, 6], "yard": [1, 2, 3], "new": [1, 2]}, f"not each once, in order: {by_topic}")
        replayed = sum(each.replayed.value for each in gateways.values())
        check(replayed < 50, f"{replayed} events were read again")
        err.flush()
        err.seek(0)
        told = err.read().decode()
        check("missing" not in told and "another outbox" not in told, f"told: {told}")
        print(f"{len(seen())} events, each once; {replayed} were replayed")
    finally:
        for each in gateways.values():
            each.kill()
        if watch:
            watch.kill()
            watch.wait()
        err.seek(0)
        sys.stderr.write(err.read().decode())
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
