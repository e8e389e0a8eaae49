"""What nodes of a fleet show: metrics, probes, the whole fleet and stills and clips through any of them. Real processes, a
real etcd, real sockets.

  shown_test.py BUILD
"""

import json
import os
import re
import subprocess
import sys
import threading
import unittest
import urllib.error
import urllib.request

from processes import COMPUTE, Fleet, have_etcd, wait_for

CLIP = "cam-0/2026-11-26/20261126T100012.480Z-person-0a1b.mp4"


def get(node, path, timeout=15):
    """(status, type, body); (0, …) if nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{node.metrics}{path}", timeout=timeout) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as answer:
        return answer.code, answer.headers["Content-Type"], answer.read()
    except OSError as error:
        return 0, "", str(error).encode()


def metrics(node):
    """Values by series."""
    lines = get(node, "/metrics")[2].decode().splitlines()
    return {series: float(value) for series, value in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}


@unittest.skipUnless(have_etcd(), "etcd is not installed (scripts/dependencies does it)")
class Shown(unittest.TestCase):
    def setUp(self):
        self.fleet = Fleet(BUILD)
        self.addCleanup(self.fleet.close)
        with open(self.fleet.config, "a") as file:
            file.write(f'evidence: {{enabled: true, dir: "{self.fleet.folder}/evidence-{{NODE}}"}}\n')
        self.gpu, self.c1, self.c2 = (self.fleet.node("gpu", COMPUTE), self.fleet.node("c1", "camera"), self.fleet.node("c2", "camera"))
        self.all = (self.gpu, self.c1, self.c2)

    def start(self):
        self.fleet.etcd.start()
        for node in self.all:
            node.start()
        self.wait_for(lambda: self.fleet.watched([self.c1, self.c2]) and len(self.fleet.plan()) == 2, 40, "all cameras are up")

    def wait_for(self, condition, seconds, what):
        return wait_for(condition, seconds, lambda: f"{self.fleet.logs()}\n{what}")

    def shown(self, node, *arguments):
        return subprocess.run([self.fleet.vigil, "status", "--fleet", "--endpoint", f"http://127.0.0.1:{node.metrics}", *arguments],
                              capture_output=True, text=True, timeout=30, check=False)

    def page(self, node, *arguments):
        done = self.shown(node, "--output", "json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_node_is_ready_when_etcd_has_let_it_in(self):
        for node in (self.gpu, self.c1):
            node.start()
        self.wait_for(lambda: all(get(node, "/healthz")[0] == 200 for node in (self.gpu, self.c1)), 20, "they run")
        # Long enough for all but etcd.
        self.wait_for(lambda: "registry: does not answer" in self.c1.said() and "registry: does not answer" in self.gpu.said(), 20, "they say so")
        for node in (self.gpu, self.c1):
            self.assertEqual(get(node, "/readyz")[0], 503)
            self.assertEqual(metrics(node)["vigil_fleet_registry_up"], 0)
            self.assertEqual(node.status()["fleet"]["membership"], "joining")
        self.fleet.etcd.start()
        self.wait_for(lambda: all(get(node, "/readyz")[0] == 200 and get(node, "/startupz")[0] == 200 for node in (self.gpu, self.c1)), 30, "they are ready")
        self.assertEqual(self.gpu.status()["fleet"]["roles"], ["vision", "stream", "generate"])
        # One that cannot reach it any more goes on, once it has what it needs.
        self.wait_for(lambda: self.fleet.watched([self.c1]), 30, "all cameras are up")
        self.fleet.etcd.stop()
        self.wait_for(lambda: self.c1.status()["fleet"]["membership"] == "cut off", 20, "its lease may have ended")
        self.assertEqual(get(self.c1, "/readyz")[0], 200)
        self.assertEqual(metrics(self.c1)["vigil_fleet_member"], 0)

    def test_metrics_tell_of_the_fleet_and_its_links(self):
        self.start()
        self.wait_for(lambda: all(metrics(node).get("vigil_fleet_nodes{state=\"ready\"}") == 3 for node in self.all), 10, "they see each other")
        told = [metrics(node) for node in self.all]
        self.assertEqual(sum(each["vigil_fleet_planner"] for each in told), 1)
        self.assertEqual([each["vigil_fleet_member"] for each in told], [1, 1, 1])
        self.wait_for(lambda: sum(metrics(node)['vigil_fleet_cameras{state="owned"}'] for node in self.all) == 3, 20, "each camera has one owner")
        self.assertEqual(max(metrics(node)['vigil_fleet_cameras{state="unplaced"}'] for node in self.all), 0)
        self.assertTrue(all(each["vigil_fleet_registry_seconds_count"] > 0 for each in told))
        self.wait_for(lambda: metrics(self.c1).get('vigil_link_up{node="gpu"}') == 1, 10, "the link is up")
        self.wait_for(lambda: metrics(self.c1).get('vigil_link_bytes_total{direction="outgoing",node="gpu"}', 0) > 0, 10, "pixels go there")
        self.wait_for(lambda: metrics(self.gpu).get('vigil_link_bytes_total{direction="incoming",node="c1"}', 0) > 0, 10, "and come there")
        self.gpu.kill()
        # Before its lease ends it is still there.
        self.wait_for(lambda: metrics(self.c1).get('vigil_link_up{node="gpu"}') == 0, 10, "the link is down")
        resets = 'vigil_link_resets_total{direction="outgoing",node="gpu",reason="connection"}'
        # Told by whoever sends, and not by whoever knows that a node is gone; no longer there when its lease has ended.
        self.wait_for(lambda: metrics(self.c1).get(resets, 1) >= 1, 10, "what was sent there is cut off")
        self.wait_for(lambda: 'vigil_link_up{node="gpu"}' not in metrics(self.c1), 15, "it is gone")
        self.assertEqual(metrics(self.c1)['vigil_fleet_nodes{state="ready"}'], 2)
        self.wait_for(lambda: max(metrics(node)['vigil_fleet_cameras{state="unplaced"}'] for node in (self.c1, self.c2)) == 3, 10,
                      "nobody computes them")

    def test_any_node_shows_the_fleet(self):
        self.start()
        for node in self.all:
            page = self.page(node, "--cameras")
            self.assertEqual(page["node"], node.name)
            self.assertEqual([each["node"] for each in page["nodes"]], ["c1", "c2", "gpu"])
            asked = [each for each in page["nodes"] if node is self.gpu or each["node"] in ("gpu", node.name)]
            self.assertTrue(all(each["answers"] and each["lease_seconds"] > 0 for each in asked), page)
            self.assertEqual({each["fault"] for each in page["nodes"] if each not in asked}, set() if node is self.gpu else {"not asked by this node: ask a gateway"})
            self.assertEqual(page["nodes_silent"], 0)
            states = page["cameras"]["states"]
            self.assertEqual(states["up"] if node is self.gpu else states["up"] + states["unknown"], 3)
            plan = self.fleet.plan()
            for camera in page["list"]:
                self.assertIn(camera["camera"], plan[camera["owner"]])
                self.assertEqual(camera["fence"], plan[camera["owner"]][camera["camera"]]["fence"])
                self.assertEqual(camera["stream"], "gpu")
        text = self.shown(self.gpu).stdout
        self.assertRegex(text, r"fleet city, as node gpu sees it; node \w+ plans\n")
        self.assertRegex(text, r"c1 +ready +camera +\d")
        self.assertIn("3 up\n", text)
        told = self.shown(self.gpu, "--camera", "cam-1").stdout
        self.assertRegex(told, r"^Node c\d was given cam-1, with the fence \d+: .+\.\nNode gpu computes its windows: .+\.\nNode c\d says that it is up, since .+\n$")
        unknown = self.shown(self.gpu, "--camera", "zoo")
        self.assertEqual(unknown.returncode, 1)
        self.assertEqual(unknown.stdout, "")
        self.assertRegex(unknown.stderr, r"^vigil: No node has zoo, and .+\n$")
        self.assertEqual(json.loads(self.shown(self.gpu, "--camera", "zoo", "--output", "json").stdout)["list"][0]["state"], "unknown")
        self.assertEqual(get(self.gpu, "/fleet?camera=zoo")[0], 404)
        self.assertEqual(get(self.gpu, "/fleet?camera=../zoo")[0], 400)

    def test_who_does_not_answer_is_named_and_etcd_may_be_gone(self):
        self.start()
        owner = next(name for name, cameras in self.fleet.plan().items() if "cam-1" in cameras)
        gone, other = (self.c1, self.c2) if owner == "c1" else (self.c2, self.c1)
        self.fleet.etcd.stop()
        gone.kill()
        page = self.wait_for(lambda: (lambda told: told if not told["registry"]["answers"] else None)(self.page(other, "--cameras")), 20,
                             "it knows that etcd is gone")
        silent = next(node for node in page["nodes"] if node["node"] == gone.name)
        self.assertFalse(silent["answers"])
        self.assertNotEqual(silent["fault"], "")
        text = self.shown(other).stdout
        self.assertIn("the registry does not answer, so that nothing moves", text)

    def test_stills_and_clips_come_through_any_node(self):
        self.start()
        gateway = self.fleet.node("g1", "gateway")
        gateway.start()
        clip = os.urandom(3_500_000)
        folder = os.path.join(self.fleet.folder, "evidence-c1", os.path.dirname(CLIP))
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(self.fleet.folder, "evidence-c1", CLIP), "wb") as file:
            file.write(clip)
        status, _, body = get(self.c2, f"/evidence/{CLIP}")
        self.assertEqual(status, 404)
        self.assertIn(b"1 other was not asked by this node: ask a gateway", body)
        self.wait_for(lambda: get(gateway, f"/evidence/{CLIP}")[0] == 200, 20, "one that is a gateway alone has to do with all")
        for node in (self.gpu, self.c1, gateway):
            status, kind, body = get(node, f"/evidence/{CLIP}")
            self.assertEqual((status, kind), (200, "video/mp4"), f"{node.name}: {body[:200]}")
            self.assertEqual(body, clip)
        for hostile in ("../evidence-c1/" + CLIP, "%2e%2e/%2e%2e/etc/passwd", "cam-0/2026-11-26/..", "cam-0//x.mp4", "x", ""):
            self.assertEqual(get(self.gpu, f"/evidence/{hostile}")[0], 400, hostile)
        status, _, body = get(self.gpu, f"/evidence/{CLIP.replace('0a1b', 'none')}")
        self.assertEqual(status, 404)
        self.assertIn(b"no node that is there has it", body)
        self.assertEqual(body.count(b"\n"), 1)
        self.c1.kill()
        status, _, body = get(self.gpu, f"/evidence/{CLIP}")
        self.assertEqual(status, 404)
        self.assertRegex(body.decode(), "c1 does not answer|its node is gone")

    def start_told(self, rolls):
        """With a gateway, and a rule that every window tells. It, and all events of alerts."""
        self.fleet.edit(lambda text: text.replace('"Is there a person?"}', '"Is there a person?", threshold: 0, confirm: "1/1"}').replace(
            "evidence: {enabled: true,", f"evidence: {{enabled: true, {rolls}"))
        gateway = self.fleet.node("g1", "gateway")
        self.all = (self.gpu, self.c1, self.c2, gateway)
        self.start()
        told = []
        watch = subprocess.Popen([self.fleet.vigil, "watch", "alert/", "--endpoint", f"tcp://127.0.0.1:{gateway.events}", "--since", "1h", "--output", "json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(lambda: (watch.kill(), watch.communicate()))
        threading.Thread(target=lambda: told.extend(map(json.loads, watch.stdout)), daemon=True).start()
        return gateway, told

    def test_the_clip_of_an_alert_is_had_through_a_gateway_and_gone_with_its_node(self):
        gateway, told = self.start_told("pre_roll: 1s, post_roll: 1s,")
        ready = lambda: [event["data"] for event in list(told) if event["data"].get("evidence", {}).get("clip_state") == "ready"]  # noqa: E731
        self.wait_for(ready, 40, lambda: f"a clip is ready: {told}")
        evidence = ready()[0]["evidence"]
        for name, kind, begins in ((evidence["clip"], "video/mp4", b"ftyp"), (evidence["thumb"], "image/jpeg", b"\xff\xd8")):
            self.wait_for(lambda name=name: get(gateway, f"/evidence/{name}")[0] == 200, 20, f"{name} comes through the gateway")
            status, told_kind, body = get(gateway, f"/evidence/{name}")
            self.assertEqual((status, told_kind), (200, kind))
            self.assertIn(begins, body[:16])
        self.assertEqual(len(get(gateway, f"/evidence/{evidence['clip']}")[2]), evidence["bytes"])
        owner = next(node for node in (self.c1, self.c2) if os.path.exists(os.path.join(self.fleet.folder, f"evidence-{node.name}", evidence["clip"])))
        owner.kill()
        self.wait_for(lambda: get(gateway, f"/evidence/{evidence['clip']}")[0] == 404, 20, "it is on one disk, whose node is gone")

    def test_an_alert_whose_node_is_lost_before_its_clip_is_there_says_that_there_is_none(self):
        gateway, told = self.start_told("pre_roll: 1s, post_roll: 15s,")
        of = lambda state: {event["data"]["camera"]: event["data"] for event in list(told)  # noqa: E731
                            if event["data"].get("evidence", {}).get("clip_state") == state}
        self.wait_for(lambda: of("pending"), 40, lambda: f"a clip is to come: {told}")
        camera, alert = next(iter(of("pending").items()))
        owner = next(node for node in (self.c1, self.c2) if camera in self.fleet.plan()[node.name])
        owner.kill()
        self.wait_for(lambda: camera in of("failed"), 30, lambda: f"who has {camera} now says so: {told}")
        self.assertEqual(of("failed")[camera]["episode"], alert["episode"], "of the same alert")


if __name__ == "__main__":
    BUILD = sys.argv.pop(1)
    unittest.main(verbosity=2)
