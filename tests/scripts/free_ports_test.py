"""Ports of tests (tests/free_ports.py): nobody is given one that another one has or is about to take."""

import os
import socket
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
import free_ports  # noqa: E402

# Of this process alone: others take even ones, and those above.
FEW = range(10001 + os.getpid() % 200 * 40, 10041 + os.getpid() % 200 * 40, 2)


class FreePorts(unittest.TestCase):
    def tearDown(self):
        while free_ports._marks:
            free_ports._marks.pop().close()

    def test_none_is_given_twice_although_nobody_listens_on_it(self):
        given = [port for _ in range(len(FEW) // 4) for port in free_ports.free_ports(4, FEW)]
        self.assertEqual(sorted(given), list(FEW))
        with self.assertRaisesRegex(RuntimeError, f"no 1 ports are free from {FEW[0]} to {FEW[-1]}"):
            free_ports.free_ports(1, FEW)

    def test_another_process_is_not_given_it_before_this_one_has_ended(self):
        ask = f"import sys; sys.path.insert(0, {os.path.join(ROOT, 'tests')!r}); import free_ports; "
        two = FEW[:2]
        other = subprocess.Popen([sys.executable, "-c", ask + f"print(free_ports.free_ports(1, {two!r})[0], flush=True); sys.stdin.read()"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        theirs = int(other.stdout.readline())
        own = free_ports.free_ports(1, two)[0]
        self.assertEqual(sorted((own, theirs)), list(two))
        with self.assertRaises(RuntimeError):
            free_ports.free_ports(1, two)
        other.communicate()
        self.assertEqual(free_ports.free_ports(1, two), [theirs], "it ended")

    def test_neither_it_nor_the_next_one_has_a_listener(self):
        for taken in (FEW[0], FEW[0] + 1):
            with socket.create_server(("127.0.0.1", taken)):
                with self.assertRaises(RuntimeError):
                    free_ports.free_ports(1, FEW[:1])
        self.assertEqual(free_ports.free_ports(1, FEW[:1]), [FEW[0]])

    def test_the_system_gives_none_of_them_to_whoever_asks_for_any(self):
        with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
            first, last = map(int, file.read().split())
        for port in free_ports.free_ports(20):
            self.assertFalse(first <= port <= last or first <= port + 1 <= last, (port, first))
            self.assertGreaterEqual(port, 1024)


if __name__ == "__main__":
    unittest.main(verbosity=2)
