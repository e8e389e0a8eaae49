#!/usr/bin/python3
"""A subscriber that reads little: so many events a second, whatever comes, with buffers as small as ZeroMQ and the kernel allow.

  slow_subscriber.py ENDPOINT SERVER_PUBLIC_KEY CLIENT_KEY_FILE EVENTS_PER_SECOND OUTPUT

Writes a line of JSON for each event that it read: {"t": by the monotonic clock, "topic", "seq"}. When its standard input ends, it reads what still waits for it as
fast as it can, until nothing comes for a second, and ends: so its last numbers show what it missed.
"""

import json
import sys
import threading
import time

import zmq

LAST = 1000


def main():
    endpoint, server_key, client_key, rate, output = sys.argv[1:]
    with open(client_key, encoding="utf-8") as secret, open(f"{client_key}.pub", encoding="utf-8") as public:
        keys = public.read().strip().encode(), secret.read().strip().encode()
    bell = zmq.Context().socket(zmq.SUB)
    bell.curve_serverkey = server_key.encode()
    bell.curve_publickey, bell.curve_secretkey = keys
    bell.setsockopt(zmq.RCVHWM, 1)
    bell.setsockopt(zmq.RCVBUF, 4096)
    bell.setsockopt(zmq.SUBSCRIBE, b"")
    bell.connect(endpoint)
    hurry = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), hurry.set()), daemon=True).start()
    rate, turn = float(rate), time.monotonic()
    with open(output, "w", encoding="utf-8") as file:
        while True:
            # Not faster after a rest, either.
            turn = max(turn + 1 / rate, time.monotonic()) if rate else float("inf")
            hurry.wait(min(3600.0, max(0.0, turn - time.monotonic())))
            if hurry.is_set() and not bell.poll(LAST):
                return
            topic, sequence, *_ = bell.recv_multipart()
            file.write(json.dumps({"t": round(time.monotonic(), 4), "topic": topic.decode(), "seq": int(sequence)}) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
