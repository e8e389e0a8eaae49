#!/usr/bin/python3
"""A subscriber of one gateway after docs/topics.md, with code of its own: writes down all that it sees, and when.

  recorder.py GATEWAY ADDRESS EVENTS_PORT REPLAY_PORT SERVER_PUBLIC_KEY CLIENT_KEY_FILE OUTPUT

It runs on the gateway's own host, so that it sees what the gateway publishes while that is cut off. Lines of JSON, `t` by the monotonic clock:

  {"t", "gateway", "saw": "live" | "replay", "topic", "seq", "pos", "event": the text as it came, "outbox": of replay}
  {"t", "gateway", "saw": "connected" | "disconnected"}       of the socket of events
  {"t", "gateway", "saw": "whole", "outbox", "cursor"}        it has read all that there is at this moment

By a line on its standard input (`whole TAG`) it reads all from the beginning, as one who comes new, and answers `whole TAG OUTBOX COUNT` (`whole TAG - 0` if the
gateway does not answer). A whole reading is in the output with `"reading": TAG`. Each live event that is new, and no end, is a line `live TOPIC T AGE` on its standard
output; AGE is in seconds, since the time that the event has.
"""

import datetime
import json
import sys
import threading
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

PATIENCE = 5.0
EVERY = 2.0


class Recorder:
    def __init__(self, gateway, address, events, replay, server_key, client_key, output):
        self.gateway = gateway
        self.at = {"events": f"tcp://{address}:{events}", "replay": f"tcp://{address}:{replay}"}
        self.server_key = server_key.encode()
        with open(client_key, encoding="utf-8") as secret, open(f"{client_key}.pub", encoding="utf-8") as public:
            self.client_keys = public.read().strip().encode(), secret.read().strip().encode()
        self.output = open(output, "a", encoding="utf-8")  # pylint: disable=consider-using-with
        self.lock = threading.Lock()
        self.context = zmq.Context()
        self.tag = 0
        self.newest = {}  # number by topic, of what came live
        self.outbox, self.cursor = None, 0

    def say(self, saw, **more):
        line = json.dumps({"t": round(time.monotonic(), 4), "gateway": self.gateway, "saw": saw, **more})
        with self.lock:
            self.output.write(line + "\n")
            self.output.flush()

    def socket(self, kind, endpoint):
        made = self.context.socket(kind)
        made.curve_serverkey = self.server_key
        made.curve_publickey, made.curve_secretkey = self.client_keys
        made.setsockopt(zmq.LINGER, 0)
        made.setsockopt(zmq.RECONNECT_IVL, 100)
        made.setsockopt(zmq.RECONNECT_IVL_MAX, 500)
        made.setsockopt(zmq.RCVHWM, 0)
        if kind == zmq.DEALER:
            made.setsockopt(zmq.IMMEDIATE, 1)
            made.setsockopt(zmq.SNDTIMEO, 0)
        else:
            made.setsockopt(zmq.HEARTBEAT_IVL, 5000)
            made.setsockopt(zmq.SUBSCRIBE, b"")
            monitor = made.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
            threading.Thread(target=self.watch_connection, args=(monitor,), daemon=True).start()
        made.connect(endpoint)
        return made

    def watch_connection(self, monitor):
        while True:
            what = recv_monitor_message(monitor)["event"]
            self.say("connected" if what == zmq.EVENT_HANDSHAKE_SUCCEEDED else "disconnected")

    def tell(self, saw, parts, **more):
        topic, sequence, position, event = parts
        self.say(saw, topic=topic.decode(), seq=int(sequence), pos=int(position), event=event.decode(), **more)
        # The last event of each topic comes again with every connection.
        if saw == "live" and int(sequence) > self.newest.get(topic, 0):
            self.newest[topic] = int(sequence)
            told = json.loads(event)
            age = time.time() - datetime.datetime.fromisoformat(told["time"].replace("Z", "+00:00")).timestamp()
            # An end may be of a start, which ends what a kill has left open, and of no window.
            if told["data"].get("phase") != "end":
                print(f"live {topic.decode()} {time.monotonic():.3f} {age:.3f}", flush=True)

    def ask(self, desk, after):
        """The header and the events of an answer; nothing if none comes."""
        self.tag += 1
        try:
            desk.send_multipart([b"%d" % self.tag, json.dumps({"topics": [""], "after": after}).encode()])
        except zmq.Again:
            return None
        until = time.monotonic() + PATIENCE
        while desk.poll(max(0, int((until - time.monotonic()) * 1000))):
            tag, header, *parts = desk.recv_multipart()
            if int(tag) == self.tag:
                header = json.loads(header)
                return None if "error" in header else (header, [parts[at:at + 4] for at in range(0, len(parts), 4)])
        return None

    def follow(self, desk):
        """Reads what is new by replay."""
        more = True
        while more:
            answer = self.ask(desk, self.cursor)
            if answer is None:
                return
            header, events = answer
            if header["outbox"] != self.outbox:
                known, self.outbox, self.cursor = self.cursor, header["outbox"], 0
                if known != 0:
                    continue
            for parts in events:
                self.tell("replay", parts, outbox=self.outbox)
            self.cursor, more = header["cursor"], header["more"]
        self.say("whole", outbox=self.outbox, cursor=self.cursor)

    def read_all(self, tag):
        desk = self.socket(zmq.DEALER, self.at["replay"])
        after, more, outbox, count = 0, True, None, 0
        until = time.monotonic() + 4 * PATIENCE
        while more:
            answer = self.ask(desk, after)
            if answer is None or (outbox is not None and answer[0]["outbox"] != outbox):
                if time.monotonic() > until:
                    outbox = None
                    break
                time.sleep(0.1)
                continue
            header, events = answer
            outbox, after, more = header["outbox"], header["cursor"], header["more"]
            for parts in events:
                self.tell("replay", parts, outbox=outbox, reading=tag)
            count += len(events)
        desk.close()
        if outbox is None:
            count = 0
        self.say("read", reading=tag, outbox=outbox, count=count)
        print(f"whole {tag} {outbox or '-'} {count}", flush=True)

    def run(self):
        commands = []
        threading.Thread(target=lambda: [commands.append(line) for line in sys.stdin] + [commands.append("end")], daemon=True).start()
        bell, desk = self.socket(zmq.SUB, self.at["events"]), self.socket(zmq.DEALER, self.at["replay"])
        again = time.monotonic()
        while True:
            if bell.poll(100):
                self.tell("live", bell.recv_multipart())
                while bell.poll(0):
                    self.tell("live", bell.recv_multipart())
            while commands:
                command = commands.pop(0).split()
                if command == ["end"]:
                    return
                self.read_all(command[1])
            if time.monotonic() >= again:
                self.follow(desk)
                again = time.monotonic() + EVERY


if __name__ == "__main__":
    Recorder(*sys.argv[1:]).run()
