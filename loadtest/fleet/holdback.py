#!/usr/bin/python3
"""Holds back each packet that the kernel puts into a queue for user space (NFQUEUE), and then lets it go.

  holdback.py QUEUE MILLISECONDS

Packets stay in the kernel: only their numbers come here, and go back. Says `ready` when it has the queue.
"""

import collections
import select
import socket
import struct
import sys
import time

NETFILTER, QUEUE = 12, 3  # of netlink; of its subsystems
PACKET, CONFIG, VERDICT_BATCH = 0, 2, 3
ACCEPT = 1
MOST = 20000  # packets held; those beyond pass at once


def attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + b"\0" * (-len(data) % 4)


def message(kind, queue, attributes, flags=1):
    body = struct.pack("=BB", 0, 0) + struct.pack(">H", queue) + attributes
    return struct.pack("=IHHII", 16 + len(body), QUEUE << 8 | kind, flags, 0, 0) + body


def numbers(data):
    """The numbers of the packets that one datagram of the kernel's tells of."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if kind == QUEUE << 8 | PACKET:
            inner = at + 20
            while inner < at + length:
                size, name = struct.unpack_from("=HH", data, inner)
                if name == 1:  # the packet's header: its number first
                    yield struct.unpack_from(">I", data, inner + 4)[0]
                inner += size + 3 & ~3
        elif kind == 2 and struct.unpack_from("=i", data, at + 16)[0] != 0:
            sys.exit(f"holdback: the kernel refuses: error {-struct.unpack_from('=i', data, at + 16)[0]}")
        at += length + 3 & ~3


def main():
    queue, pause = int(sys.argv[1]), float(sys.argv[2]) / 1000
    wire = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER)
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    wire.bind((0, 0))
    wire.send(message(CONFIG, queue, attribute(1, struct.pack("=BBH", 1, 0, 0)), flags=5))  # bind, and answer
    list(numbers(wire.recv(65536)))
    wire.send(message(CONFIG, queue, attribute(2, struct.pack(">IB", 0, 1))))  # no bytes of the packet
    wire.send(message(CONFIG, queue, attribute(3, struct.pack(">I", MOST))))
    wire.send(message(CONFIG, queue, attribute(4, struct.pack(">I", 1)) + attribute(5, struct.pack(">I", 1))))  # when full, let pass
    print("ready", flush=True)
    held = collections.deque()
    while True:
        patience = max(0.0, held[0][0] - time.monotonic()) if held else None
        if select.select([wire], [], [], patience)[0]:
            until = time.monotonic() + pause
            held.extend((until, number) for number in numbers(wire.recv(1 << 20)))
        now, last = time.monotonic(), None
        while held and held[0][0] <= now:
            last = held.popleft()[1]
        if last is not None:
            wire.send(message(VERDICT_BATCH, queue, attribute(2, struct.pack(">II", ACCEPT, last))))


if __name__ == "__main__":
    main()
