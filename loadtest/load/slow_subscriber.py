#!/usr/bin/python3
"""A subscriber that reads little: so many events a second, whatever comes, with buffers as small as ZeroMQ and the kernel allow.

  slow_subscriber.py ENDPOINT SERVER_PUBLIC_KEY CLIENT_KEY_FILE EVENTS_PER_SECOND OUTPUT

Writes a line of JSON for each event that it read: {"t": by the monotonic clock, "topic", "seq"}. With 0 it subscribes, and never reads.
"""

import json
import sys
import time

import zmq


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
    rate, turn = float(rate), time.monotonic()
    with open(output, "w", encoding="utf-8") as file:
        while True:
            if rate == 0:
                time.sleep(3600)
            topic, sequence, *_ = bell.recv_multipart()
            file.write(json.dumps({"t": round(time.monotonic(), 4), "topic": topic.decode(), "seq": int(sequence)}) + "\n")
            file.flush()
            # Not faster after a rest, either.
            turn = max(turn + 1 / rate, time.monotonic())
            time.sleep(max(0.0, turn - time.monotonic()))


if __name__ == "__main__":
    main()
