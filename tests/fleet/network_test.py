#!/usr/bin/python3
"""That faults are what they are called: hosts of loadtest/fleet/network.py, and what comes through between them. Its status is 77 where there are no namespaces."""

import os
import socket
import sys
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "fleet"))
import network  # noqa: E402


def echo(wire):
    while True:
        data, sender = wire.recvfrom(2000)
        wire.sendto(data, sender)


class Sink:
    """Takes what comes on its connections, and counts it."""

    def __init__(self, server):
        self.server, self.bytes = server, 0
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        connection, _ = self.server.accept()
        while data := connection.recv(65536):
            self.bytes += len(data)


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.network = network.Network()
        cls.here, cls.there, cls.third = (cls.network.host(name) for name in ("here", "there", "third"))
        cls.wires = {}
        for host in (cls.there, cls.third):
            with host.inside():
                cls.wires[host] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                cls.wires[host].bind((host.address, 5000))
                if host is cls.there:
                    cls.sink = Sink(socket.create_server((host.address, 5001)))
            threading.Thread(target=echo, args=(cls.wires[host],), daemon=True).start()
        with cls.here.inside():
            cls.asks = {}
            for host in (cls.there, cls.third):
                cls.asks[host] = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                cls.asks[host].connect((host.address, 5000))
            cls.stream = socket.create_connection((cls.there.address, 5001))

    def ask(self, host, times=5, patience=0.3):
        """(how many were answered, the median of how long it took)."""
        wire, took = self.asks[host], []
        wire.settimeout(patience)
        for number in range(times):
            began = time.monotonic()
            word = b"%d %f" % (number, began)
            wire.send(word)
            try:
                while wire.recv(2000) != word:
                    pass
                took.append(time.monotonic() - began)
            except TimeoutError:
                pass
        return len(took), sorted(took)[len(took) // 2] if took else None

    def rate(self, seconds):
        """Mbit/s of a connection that sends what it can."""
        before, until = self.sink.bytes, time.monotonic() + seconds
        self.stream.settimeout(0.2)
        while time.monotonic() < until:
            try:
                self.stream.send(bytes(16384))
            except TimeoutError:
                pass
        return (self.sink.bytes - before) * 8 / seconds / 1e6

    def tearDown(self):
        # Who has an address is asked once a second while nobody answers; what is sent meanwhile waits for that.
        self.ask(self.there, times=1, patience=2)
        self.assertEqual(self.ask(self.there)[0], 5, "a fault leaves nothing behind")

    def test_hosts_reach_each_other(self):
        self.assertEqual(self.ask(self.there)[0], 5)
        self.assertEqual(self.ask(self.third)[0], 5)
        self.assertGreater(self.rate(1), 50)

    def test_a_cut_is_of_one_host_whichever_side(self):
        for side in ("both", "in", "out"):
            with self.network.cut(self.there, side):
                self.assertEqual(self.ask(self.there)[0], 0, side)
                self.assertEqual(self.ask(self.third)[0], 5, side)

    def test_a_one_sided_cut_lets_the_other_side_pass(self):
        heard = []
        with self.there.inside():
            wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            wire.bind((self.there.address, 5002))
        wire.settimeout(0.5)
        with self.here.inside():
            sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for side in ("out", "in"):
            with self.network.cut(self.there, side):
                # What is known of the neighbour's address holds for a while.
                sender.sendto(b"x", (self.there.address, 5002))
                try:
                    heard.append(wire.recv(10))
                except TimeoutError:
                    heard.append(None)
        self.assertEqual(heard, [b"x", None])

    def test_a_cut_between_two_is_of_no_third(self):
        for side in ("both", "in", "out"):
            with self.network.cut_between(self.there, self.here, side):
                self.assertEqual(self.ask(self.there)[0], 0, side)
                self.assertEqual(self.ask(self.third)[0], 5, side)

    def test_of_those_that_are_to_be_lost_so_many_are(self):
        with self.network.lose(self.there, 30):
            answered, _ = self.ask(self.there, times=300, patience=0.02)
        # Each way seven of ten: 147 are expected, and four deviations are 35.
        self.assertTrue(112 <= answered <= 182, answered)

    def test_a_slow_link_has_its_rate(self):
        with self.network.slow(self.there, "10mbit"):
            self.rate(1)  # what is in buffers from before
            rate = self.rate(3)
        self.assertTrue(7 < rate < 11, rate)
        self.assertGreater(self.rate(1), 50)

    def test_what_is_delayed_takes_longer_each_way(self):
        with self.network.delay(self.there, 50):
            answered, took = self.ask(self.there, times=10, patience=1)
            rate = self.rate(3)
        self.assertEqual(answered, 10)
        self.assertGreater(rate, 2, "and no less comes for it")
        self.assertTrue(0.1 <= took < 0.3, took)


if __name__ == "__main__":
    network.enter()
    unittest.main(verbosity=1, warnings="ignore")
