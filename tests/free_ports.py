"""Ports for programs that tests start."""

import contextlib
import random
import socket


def free_ports(count):
    """Different ports of this machine that nobody listens on: below those that the system gives to whoever asks for any (32768 and more), since a test
    beside this one could be given it before the program takes it."""
    ports = []
    with contextlib.ExitStack() as held:
        while len(ports) < count:
            probe = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", random.randrange(20000, 32768)))
                ports.append(probe.getsockname()[1])
    return ports
