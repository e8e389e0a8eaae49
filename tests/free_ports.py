"""Ports for programs that tests start."""

import random
import socket

# What says to other tests of this machine (of this network namespace, if there are several) that ports are taken. They end with this process.
_marks = []
# So many of them, in pairs.
_PORTS = 12768


def _first_that_is_given():
    """Of those that the system gives to whoever asks for any, or connects to somewhere."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        return int(file.read().split()[0])


def _claim(port):
    """Whether nobody has this port and the next one; from then on, they are this process's."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        # Abstract: no file is left, whatever becomes of this process.
        mark.bind(f"\0vigil-tests-port-{port}")
        for each in (port, port + 1):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", each))
    except OSError:
        mark.close()
        return False
    _marks.append(mark)
    return True


def free_ports(count, within=None):
    """Different ports of this machine that nobody listens on, and that no other test is given before this process has ended, although nobody listens on
    them yet. The one behind each is free, too: a replay is there by default. They are below those that the system gives to whoever asks for any: it could
    give one away before the program takes it. `within`: all that there are."""
    end = _first_that_is_given() // 2 * 2
    if end < 1024 + _PORTS:
        end = 32768
    ports = within or range(end - _PORTS, end, 2)
    found = []
    for port in random.sample(ports, len(ports)):
        if len(found) == count:
            break
        if _claim(port):
            found.append(port)
    if len(found) < count:
        raise RuntimeError(f"no {count} ports are free from {ports[0]} to {ports[-1]}")
    return found
