"""The chart in a Kubernetes control plane: installed, changed, rolled back, scaled, drained, removed. Its nodes and pods are played, so that none
of the program runs: cluster_test.py"""

import contextlib
import glob
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import yaml
from kube_tools import CHART, TOOLS, Helm, programs, sets, values

PATIENCE = 60
DISKS = 60
# A disk for whoever wants one: there is no provisioner.
STORAGE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: kubernetes.io/no-provisioner
"""
DISK = """
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk-%d}
spec: {capacity: {storage: 1Ti}, accessModes: [ReadWriteOnce, ReadOnlyMany], storageClassName: disks, hostPath: {path: /disk}}
"""
MODELS = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [ReadOnlyMany], resources: {requests: {storage: 1Gi}}}
"""
# What Kubernetes keeps in a namespace of its own accord.
KUBERNETES_OWN = ("events", "events.events.k8s.io", "serviceaccounts/default", "configmaps/kube-root-ca.crt")


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = os.path.join(folder.name, "kube")
        up = os.path.join(TOOLS, "kube-up")
        cls.addClassCleanup(cls.stop, up)
        subprocess.run([up, cls.folder], check=True, capture_output=True, timeout=120)
        cls.config = os.path.join(cls.folder, "kubeconfig")
        cls.kubectl_program = os.path.join(programs(), "kubectl")
        cls.helm = Helm(folder.name, cls.config)
        cls.kubectl("apply", "-f", "-", text=STORAGE + "".join(DISK % number for number in range(DISKS)))
        cls.count = 0

    @classmethod
    def stop(cls, up):
        """Ends the programs of this control plane. The API server, whose etcd ends with it, would wait for that for minutes."""
        def lives(process):
            with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", encoding="utf-8") as file:
                return cls.folder in file.read()
            return False

        processes = []
        for path in glob.glob(os.path.join(cls.folder, "*.pid")):
            with open(path, encoding="utf-8") as file:
                processes.append(int(file.read()))
        subprocess.run([up, "--stop", cls.folder], check=False, capture_output=True)
        end = time.monotonic() + 5
        while any(map(lives, processes)) and time.monotonic() < end:
            time.sleep(0.1)
        for process in filter(lives, processes):
            os.kill(process, signal.SIGKILL)

    @classmethod
    def kubectl(cls, *arguments, text=None, status=0):
        done = subprocess.run([cls.kubectl_program, "--kubeconfig", cls.config, *arguments], input=text, capture_output=True, text=True, check=False,
                              timeout=PATIENCE)
        assert status is None or done.returncode == status, f"kubectl {arguments}: {done.stderr}"
        return done

    def setUp(self):
        Cluster.count += 1
        self.namespace = f"fleet-{Cluster.count}"
        self.kubectl("create", "namespace", self.namespace)

    def release(self, verb, *arguments, status=0):
        """helm VERB, and waits until all is as it says."""
        chart = [] if verb in ("rollback", "uninstall") else [CHART]
        done = self.helm.run(verb, "fleet", *chart, "--namespace", self.namespace, "--wait", *(["--timeout", "60s"] if "--timeout" not in arguments else []), *arguments)
        self.assertEqual(done.returncode, status, done.stderr)
        return done

    def install(self, *arguments, name="minimal"):
        if name == "minimal":
            self.kubectl("apply", "--namespace", self.namespace, "-f", "-", text=MODELS)
        done = self.release("install", "--values", values(name), *arguments)
        self.addCleanup(self.helm.run, "uninstall", "fleet", "--namespace", self.namespace, "--ignore-not-found")
        return done

    def upgrade(self, *arguments, **options):
        return self.release("upgrade", "--reuse-values", *arguments, **options)

    def get(self, kind, *arguments):
        return json.loads(self.kubectl("get", kind, "--namespace", self.namespace, "--output", "json", *arguments).stdout)

    def pods(self, selector="vigil.dev/part=node"):
        """Name -> its id, those that are on their way out left out."""
        found = self.get("pods", "--selector", selector)["items"]
        return {each["metadata"]["name"]: each["metadata"]["uid"] for each in found if "deletionTimestamp" not in each["metadata"]}

    def configuration(self):
        return yaml.safe_load(self.get("configmap", "fleet-vigil")["data"]["vigil.yaml"])

    def names(self, kind):
        return {each["metadata"]["name"] for each in self.get(kind)["items"]}

    def until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.2)

    def everything(self):
        """KIND/NAME of all that is in the namespace, but for Kubernetes' own."""
        kinds = self.kubectl("api-resources", "--namespaced", "--verbs", "list", "--output", "name").stdout.split()
        kinds = [kind for kind in kinds if kind not in KUBERNETES_OWN]
        lines = self.kubectl("get", ",".join(kinds), "--namespace", self.namespace, "--no-headers", "--ignore-not-found",
                             "--output", "custom-columns=KIND:.kind,NAME:.metadata.name").stdout.splitlines()
        found = {"/".join(line.split()) for line in lines}
        return found - {"ServiceAccount/default", "ConfigMap/kube-root-ca.crt"}

    def asked(self, phase):
        """What `helm test` ends with when its pod does so."""
        done = []
        test = threading.Thread(target=lambda: done.append(self.helm.run("test", "fleet", "--namespace", self.namespace, "--timeout", "60s")))
        test.start()

        def has_ended():
            # Whoever plays pods says meanwhile that it runs.
            self.kubectl("patch", "pod", "fleet-vigil-readyz", "--namespace", self.namespace, "--subresource", "status", "--patch",
                         json.dumps({"status": {"phase": phase}}), status=None)
            return not test.is_alive()
        self.until(has_ended, "helm test goes on")
        return done[0]

    def test_helm_test_is_a_pod_that_is_gone_when_it_has_succeeded(self):
        self.install()
        done = self.asked("Succeeded")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.until(lambda: "fleet-vigil-readyz" not in self.names("pods"), "its pod is still there")
        # One that has failed stays, to be looked at, until the next one.
        done = self.asked("Failed")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("fleet-vigil-readyz", self.names("pods"))
        self.assertEqual(self.asked("Succeeded").returncode, 0)

    def test_the_server_takes_every_set_of_values(self):
        for account in ("fleet", "fleet-vigil"):
            self.kubectl("create", "serviceaccount", account, "--namespace", self.namespace)
        for name in sets():
            with self.subTest(values=name):
                # There is no cert-manager here.
                objects = [each for each in self.helm.render(name) if each["kind"] not in ("Certificate", "ServiceAccount")]
                for each in objects:
                    each["metadata"]["namespace"] = self.namespace
                done = self.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", text=yaml.safe_dump_all(objects))
                self.assertEqual(len(done.stdout.splitlines()), len(objects))
                self.assertNotIn("Warning", done.stderr)

    def test_an_installation_is_up_and_can_be_reached(self):
        done = self.install()
        self.assertIn("1 camera, and these pools of nodes", done.stdout)
        self.assertIn(f"Events are at fleet-vigil-topics.{self.namespace}.svc: topics on port 5556, replay on 5557.", done.stdout)
        self.assertEqual([line for line in done.stdout.splitlines() if line.startswith("Note: ")],
                         ["Note: pools.compute.maxStreams is 0: its nodes take any number of cameras, and are late with all of them where these are too many.",
                          "Note: one node computes windows: while it is gone, no camera is watched."])
        self.assertEqual(set(self.pods()), {"fleet-vigil-camera-0", "fleet-vigil-camera-1", "fleet-vigil-compute-0", "fleet-vigil-gateway-0", "fleet-vigil-gateway-1"})

        def reached(service):
            slices = self.get("endpointslices", "--selector", f"kubernetes.io/service-name={service}")["items"]
            return {end["targetRef"]["name"] for each in slices for end in each["endpoints"] or [] if end["conditions"]["ready"]}

        self.until(lambda: reached("fleet-vigil-nodes") == set(self.pods()), "not all nodes have names")
        self.until(lambda: reached("fleet-vigil-topics") == {"fleet-vigil-gateway-0", "fleet-vigil-gateway-1"}, "topics are not those of gateways")
        hosts = {end.get("hostname") for each in self.get("endpointslices", "--selector", "kubernetes.io/service-name=fleet-vigil-nodes")["items"]
                 for end in each["endpoints"]}
        self.assertEqual(hosts, set(self.pods()))

    def test_an_etcd_of_its_own_and_a_node_with_all_roles(self):
        done = self.install(name="trial")
        self.assertIn("Note: config.cluster.allow_plain_text: whoever is on the network", done.stdout)
        self.assertIn("Events are at fleet-vigil-topics", done.stdout)
        self.assertEqual(set(self.pods()), {"fleet-vigil-node-0"})
        self.assertEqual(set(self.pods("app.kubernetes.io/component=etcd")), {"fleet-vigil-etcd-0"})
        self.assertEqual(self.names("pvc"), {"data-fleet-vigil-etcd-0", "data-fleet-vigil-node-0"})

    def test_only_what_needs_it_starts_nodes_anew(self):
        self.install("--set", "followsConfig=true")
        before = self.pods()
        self.upgrade("--set", "config.cameras.yard.url=rtsp://10.0.10.11:554/live", "--set", "config.log.level=debug", "--set", "config.defaults.fps=1")
        self.assertEqual(self.pods(), before)
        self.assertEqual(set(self.configuration()["cameras"]), {"gate", "yard"})
        self.upgrade("--set", "config.engine.kv_tokens=65536")
        changed = self.pods()
        self.assertEqual(set(changed), set(before))
        self.assertFalse(set(changed.values()) & set(before.values()))
        self.assertEqual(self.configuration()["engine"]["kv_tokens"], 65536)

        self.release("rollback", "1")
        self.assertEqual(set(self.configuration()["cameras"]), {"gate"})
        self.assertNotIn("kv_tokens", self.configuration()["engine"])
        self.assertFalse(set(self.pods().values()) & set(changed.values()))

    def test_nodes_that_do_not_follow_their_file_are_started_anew(self):
        self.install()
        before = self.pods()
        self.upgrade("--set", "config.cameras.yard.url=rtsp://10.0.10.11:554/live")
        self.assertFalse(set(self.pods().values()) & set(before.values()))
        before = self.pods()
        # Nothing of this is a node's business.
        self.upgrade("--set", "networkPolicy.enabled=false", "--set", "pools.gateway.podDisruptionBudget.enabled=false", "--set", "metrics.podMonitor.enabled=true")
        self.assertEqual(self.pods(), before)

    def test_an_upgrade_that_does_not_come_up_is_taken_back(self):
        self.install()
        before = self.pods()
        # No machine has so many GPUs.
        done = self.upgrade("--set", "pools.compute.gpu.count=16", "--atomic", "--timeout", "6s", status=1)
        self.assertIn("rolled back", done.stderr)
        self.assertEqual(set(self.pods()), set(before))
        ready = self.get("statefulset", "fleet-vigil-compute")
        self.assertEqual((ready["status"]["readyReplicas"], ready["status"]["updatedReplicas"]), (1, 1))
        self.assertEqual(ready["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"], "1")
        # The other pools were left alone.
        self.assertEqual({name: uid for name, uid in self.pods().items() if "compute" not in name}, {name: uid for name, uid in before.items() if "compute" not in name})

    def test_pools_grow_and_shrink_and_keep_their_disks(self):
        self.install()
        self.upgrade("--set", "pools.gateway.replicas=3", "--set", "pools.compute.replicas=2")
        self.assertEqual({name.rsplit("-", 2)[1] + name[-1] for name in self.pods()}, {"camera0", "camera1", "compute0", "compute1", "gateway0", "gateway1", "gateway2"})
        before = self.pods()
        self.upgrade("--set", "pools.gateway.replicas=1", "--set", "pools.compute.replicas=1")
        self.until(lambda: len(self.pods()) == 4, "pools did not shrink")
        # Those that stay are the same.
        self.assertLessEqual(self.pods().items(), before.items())
        self.assertEqual(self.names("pvc"), {"models", *(f"data-fleet-vigil-{name}" for name in ("camera-0", "camera-1", "gateway-0", "gateway-1", "gateway-2"))})

    def test_draining_a_machine_waits_for_the_rest_of_a_pool(self):
        spread = "[{topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]"
        extra = os.path.join(self.folder, "spread.yaml")
        with open(extra, "w", encoding="utf-8") as file:
            file.write(f"pools: {{gateway: {{topologySpread: {spread}}}}}")
        self.install("--values", extra)
        machines = [self.get("pod", f"fleet-vigil-gateway-{number}")["spec"]["nodeName"] for number in (0, 1)]
        self.assertNotEqual(*machines)

        def drain(machine, **options):
            return self.kubectl("drain", machine, "--pod-selector", "app.kubernetes.io/component=gateway",
                                "--delete-emptydir-data", "--timeout", "6s", **options)

        self.addCleanup(self.kubectl, "uncordon", "--selector", "kubernetes.io/os=linux")
        self.kubectl("cordon", "--selector", "kubernetes.io/os=linux")
        first, second = self.pods("app.kubernetes.io/component=gateway").values()
        drain(machines[0])
        # It finds no other machine, so that one more would be one too many.
        self.until(lambda: self.pods("app.kubernetes.io/component=gateway").get("fleet-vigil-gateway-0") not in (first, None), "no other pod came")
        done = drain(machines[1], status=1)
        self.assertIn("disruption budget", done.stderr)
        self.assertEqual(self.pods("app.kubernetes.io/component=gateway")["fleet-vigil-gateway-1"], second)
        self.kubectl("uncordon", machines[0])
        self.until(lambda: self.get("statefulset", "fleet-vigil-gateway")["status"].get("readyReplicas") == 2, "the other pod did not come up")
        self.until(lambda: self.get("pdb", "fleet-vigil-gateway")["status"]["disruptionsAllowed"] == 1, "the budget allows nothing")
        drain(machines[1])
        self.assertNotEqual(self.pods("app.kubernetes.io/component=gateway").get("fleet-vigil-gateway-1"), second)

    def test_what_is_left_when_it_is_removed_are_disks(self):
        self.assertEqual(self.everything(), set())
        objects = self.helm.render("airgapped")
        self.release("install", "--values", values("airgapped"))
        there = self.everything()
        self.assertLessEqual({f"{each['kind']}/{each['metadata']['name']}" for each in objects if each["kind"] != "Pod"}, there)
        self.release("uninstall")
        disks = {f"PersistentVolumeClaim/data-fleet-vigil-{name}" for name in ("camera-0", "camera-1", "gateway-0", "gateway-1", "etcd-0", "etcd-1", "etcd-2")}
        self.until(lambda: self.everything() == disks, "more or less than the disks is left")
        # They are what the next installation goes on with.
        claimed = {each["metadata"]["uid"] for each in self.get("pvc")["items"]}
        self.install(name="airgapped")
        self.assertEqual({each["metadata"]["uid"] for each in self.get("pvc")["items"]}, claimed)


if __name__ == "__main__":
    programs()
    unittest.main()
