"""`vigil node`, as an operator starts it: real processes, a real etcd, real sockets.

  nodes_test.py BUILD
"""

import sys
import unittest

from processes import COMPUTE, Fleet, have_etcd, wait_for


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Nodes(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
        self.addCleanup(self.fleet.close)

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{self.fleet.plan()}\n{what}")

    def start(self, order=("etcd", "gpu", "c1", "c2", "g1")):
        # Without a gateway a node that ends has news that nobody takes.
        made = {"g1": self.fleet.node("g1", "gateway"), "gpu": self.fleet.node("gpu", COMPUTE), "c1": self.fleet.node("c1", "camera"),
                "c2": self.fleet.node("c2", "camera")}
        for name in order:
            (self.fleet.etcd if name == "etcd" else made[name]).start()
        return made["gpu"], made["c1"], made["c2"]

    def settled(self, nodes):
        self.wait_for(lambda: self.fleet.watched(nodes), 30, "all cameras are up")

    def answered(self, gpu, more=3):
        before = gpu.windows()
        self.wait_for(lambda: gpu.windows() >= before + more, 20, "windows are answered")

    def test_start_in_any_order_and_share_the_cameras(self):
        gpu, c1, c2 = self.start(("g1", "c2", "c1", "gpu", "etcd"))
        self.settled([c1, c2])
        self.answered(gpu)
        self.wait_for(lambda: len(self.fleet.plan()) == 2, 10, "both have cameras")
        plan = self.fleet.plan()
        self.assertEqual(sorted(camera for cameras in plan.values() for camera in cameras), self.fleet.cameras)
        self.assertTrue(all(len(cameras) in (1, 2) for cameras in plan.values()), plan)

    def test_the_cameras_of_a_node_that_is_killed_go_to_another(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.wait_for(lambda: c1.cameras() and c2.cameras(), 15, "both have cameras")
        c1.kill()
        # Its lease of 3 s, etcd's second, and 5 s for the others.
        self.wait_for(lambda: self.fleet.watched([c2]), 9, "the other one has all of them")
        self.answered(gpu)
        c1.start()
        self.wait_for(lambda: "up" in c1.cameras().values(), 20, "it gets its share again")
        self.settled([c1, c2])

    def test_a_node_that_ends_hands_over_first(self):
        # Without a gateway, what it could not number would be lost with it, and it would say so.
        gateway = self.fleet.node("g1", "gateway")
        gateway.start()
        gpu, c1, c2 = self.start()
        self.wait_for(lambda: "gateway: serves" in gateway.said(), 15, "the gateway serves")
        self.settled([c1, c2])
        self.assertEqual(c1.terminate(), 0, c1.said())
        self.wait_for(lambda: self.fleet.watched([c2]), 2, "the other one has them, before any lease has ended")
        self.assertNotIn("were not handed over", c1.said())

    def test_streams_of_a_node_that_is_killed_are_computed_by_another(self):
        gpu, c1, c2 = self.start()
        other = self.fleet.node("gpu2", COMPUTE)
        other.start()
        self.settled([c1, c2])
        gpu.kill()
        self.answered(other, 6)
        self.settled([c1, c2])

    def test_all_go_on_when_etcd_is_gone(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        self.fleet.etcd.stop()
        self.wait_for(lambda: "registry: does not answer: nothing moves until it does" in c1.said(), 20, "it is told")
        # For longer than the leases.
        self.answered(gpu, 12)
        self.assertTrue(self.fleet.watched([c1, c2]))
        self.fleet.etcd.start()
        self.wait_for(lambda: "registry: answers again" in c1.said(), 20, "it is told again")
        self.answered(gpu, 3)
        self.settled([c1, c2])

    def test_the_older_of_two_of_one_name_ends(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        other = self.fleet.node("other", "camera")
        other.start("--name", "c1")
        self.assertEqual(self.wait_for(lambda: c1.process.poll(), 20, "the first one ends"), 1)
        self.assertIn("another node is called c1 now: the one at 127.0.0.1:", c1.said())
        self.settled([other, c2])


    def test_a_node_that_does_not_fit_is_refused_on_both_sides(self):
        gpu, c1, c2 = self.start()
        self.settled([c1, c2])
        with open(self.fleet.config) as file:
            text = file.read()
        with open(self.fleet.config, "w") as file:
            file.write(text.replace("  name: city\n", f'  name: harbour\n  seeds: ["127.0.0.1:{gpu.control}"]\n'))
        other = self.fleet.node("stranger", "camera")
        other.start()
        self.assertEqual(self.wait_for(lambda: other.process.poll(), 20, "it ends"), 1)
        self.assertIn("another fleet: gpu has city, stranger has harbour", other.said())
        self.wait_for(lambda: "refused node stranger" in gpu.said(), 5, "the other side says so, too")


class Mistakes(unittest.TestCase):
    def test_roles_that_make_no_sense_are_told(self):
        with Fleet(BUILD) as fleet:
            for roles, expected in (("chef", "unknown role 'chef' (known: camera, vision, stream, generate, cache, gateway)"),
                                    ("cache", "'cache' has nothing to do yet"),
                                    ("vision,stream", "stream and generate go together")):
                node = fleet.node("c1", roles)
                node.start()
                self.assertEqual(node.process.wait(20), 2)
                self.assertIn(expected, node.said())

    def test_each_has_a_line(self):
        with Fleet(BUILD) as fleet:
            cases = [(lambda text: text.replace("name: city", "lease: 4s").replace("  lease: 3s\n", ""), "cluster.name: is missing"),
                     (lambda text: text.replace(f'endpoints: ["{fleet.etcd.endpoint}"]', "endpoints: []"),
                      "cluster.registry.endpoints: is missing"),
                     (lambda text: text.replace('listen: "127.0.0.1:{CONTROL}"', 'listen: "0.0.0.0:{CONTROL}"'), "is beyond this machine and not encrypted"),
                     (lambda text: text.replace("  lease: 3s\n", '  lease: 3s\n  seeds: ["::1:7400"]\n'), "'::1:7400' is no HOST:PORT")]
            with open(fleet.config) as file:
                good = file.read()
            for spoil, expected in cases:
                with open(fleet.config, "w") as file:
                    file.write(spoil(good))
                node = fleet.node("c1", "camera")
                node.start()
                self.assertEqual(node.process.wait(20), 1)
                self.assertIn(expected, node.said())


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
