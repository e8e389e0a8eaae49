"""What the chart makes of its sets of values (helm/vigil/ci), without a cluster: chart_test.py"""

import functools
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import yaml
from kube_tools import CHART, ROOT, TOOLS, Helm, configuration, one, pods, programs, sets, values

SCHEMAS = os.path.join(TOOLS, "kube-schemas", "{{ .ResourceKind }}{{ .KindSuffix }}.json")
DASHBOARD = '{"title": "Of {{camera}}", "panels": []}'
RULES = """groups:
  - name: cameras
    rules:
      - alert: CameraDown
        expr: vigil_camera_up == 0
        annotations: {summary: "{{ $labels.camera }} is down"}
"""


def selects(selector, labels):
    return all(labels.get(key) == value for key, value in selector.items())


def for_each_set(test):
    """The test of one set of values, of all of them."""
    @functools.wraps(test)
    def run(self):
        for name, objects in self.rendered.items():
            with self.subTest(values=name):
                test(self, name, objects)
    return run


class Charts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.helm = Helm(folder.name)
        cls.rendered = {name: cls.helm.render(name) for name in sets()}

    def put(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


class EverySet(Charts):
    """What holds whatever the values are."""

    def test_helm_finds_nothing_to_say(self):
        for arguments in ([], *(["--values", values(name)] for name in sets())):
            done = self.helm.lint(*arguments)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotRegex(done.stdout, r"\[(INFO|WARNING|ERROR)\]", arguments)

    def test_a_package_renders_what_its_folder_does(self):
        done = self.helm.run("package", CHART, "--destination", self.folder)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        package = done.stdout.split(": ", 1)[1].strip()
        with tarfile.open(package) as archive:
            names = archive.getnames()
        self.assertIn("vigil/values.schema.json", names)
        self.assertEqual([each for each in names if each.startswith("vigil/ci/")], [], "sets of values of tests stay here")
        self.assertEqual(self.helm.render(sets()[0], chart=package), self.rendered[sets()[0]])

    def test_kubernetes_knows_every_key(self):
        files = [self.put(f"{name}.yaml", yaml.safe_dump_all(objects)) for name, objects in self.rendered.items()]
        # There is no schema of cert-manager's.
        done = subprocess.run([os.path.join(programs(), "kubeconform"), "-strict", "-summary", "-skip", "Certificate", "-schema-location", SCHEMAS, *files],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"Valid: \d{3}, Invalid: 0, Errors: 0, Skipped: 2")

    @for_each_set
    def test_pods_have_no_rights(self, _name, objects):
        for owner, _, spec in pods(objects):
            self.assertEqual(spec["securityContext"], {
                "runAsNonRoot": True, "runAsUser": 65532, "runAsGroup": 65532, "fsGroup": 65532, "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"}}, owner)
            self.assertFalse(spec["automountServiceAccountToken"], owner)
            self.assertNotIn("hostNetwork", spec)
            for container in spec["containers"]:
                self.assertEqual(container["securityContext"], {
                    "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}, owner)
                self.assertIn("memory", container["resources"]["requests"], owner)

    @for_each_set
    def test_volumes_are_there_and_nothing_is_mounted_within_another(self, _name, objects):
        for owner, _, spec in pods(objects):
            claims = [claim["metadata"]["name"] for each in objects if each["kind"] == "StatefulSet" and each["metadata"]["name"] == owner
                      for claim in each["spec"].get("volumeClaimTemplates", [])]
            there = [volume["name"] for volume in spec.get("volumes", [])] + claims
            self.assertEqual(len(set(there)), len(there), owner)
            mounted = [mount for container in spec["containers"] for mount in container.get("volumeMounts", [])]
            self.assertLessEqual({mount["name"] for mount in mounted}, set(there), owner)
            paths = [mount["mountPath"].rstrip("/") + "/" for mount in mounted]
            self.assertEqual([(a, b) for a in paths for b in paths if a != b and b.startswith(a)], [], owner)

    @for_each_set
    def test_files_that_the_configuration_names_are_mounted(self, _name, objects):
        config = configuration(objects)
        named = set(re.findall(r"/etc/vigil/[^\s\"']+", yaml.safe_dump(config))) - {config["cluster"].get("tls_dir")}
        if config["cluster"].get("tls_dir"):
            named |= {f"/etc/vigil/tls/{name}" for name in ("ca.crt", "tls.crt", "tls.key")}
        for owner, metadata, spec in pods(objects):
            if metadata["labels"].get("vigil.dev/part") != "node":
                continue
            sources = next(volume for volume in spec["volumes"] if volume["name"] == "config")["projected"]["sources"]
            there = {"/etc/vigil/" + item["path"] for source in sources for item in next(iter(source.values()))["items"]}
            # The topics' key is for those alone who publish.
            wanted = named if "vigil.dev/role-gateway" in metadata["labels"] else {each for each in named if "curve" not in each}
            self.assertEqual(there, wanted | {"/etc/vigil/vigil.yaml"}, owner)
            self.assertTrue(config["alerts"]["outbox"].startswith("/var/lib/vigil/"))

    @for_each_set
    def test_everything_that_selects_pods_selects_some_and_names_ports_that_they_have(self, _name, objects):
        there = [(metadata["labels"], spec) for _, metadata, spec in pods(objects)]
        for each in objects:
            spec, name = each.get("spec", {}), (each["kind"], each["metadata"]["name"])
            selector = {"Service": lambda s: s["selector"], "NetworkPolicy": lambda s: s["podSelector"]["matchLabels"],
                        "PodDisruptionBudget": lambda s: s["selector"]["matchLabels"],
                        "StatefulSet": lambda s: s["selector"]["matchLabels"]}.get(each["kind"])
            if not selector:
                continue
            chosen = [pod for labels, pod in there if selects(selector(spec), labels)]
            self.assertTrue(chosen, name)
            if each["kind"] == "Service":
                for pod in chosen:
                    ports = {port["name"] for container in pod["containers"] for port in container["ports"]}
                    self.assertLessEqual({port["targetPort"] for port in spec["ports"]}, ports, name)

    @for_each_set
    def test_probes_ask_the_configured_port_and_leave_time(self, _name, objects):
        config = configuration(objects)
        grace = {"60s": 60, "1.5m": 90}[config["shutdown_grace"]]
        for owner, metadata, spec in pods(objects):
            if metadata["labels"].get("vigil.dev/part") != "node":
                continue
            container, = spec["containers"]
            ports = {port["name"]: port["containerPort"] for port in container["ports"]}
            self.assertEqual(ports["probes"], int(config["metrics"]["probes"].rsplit(":", 1)[1]), owner)
            self.assertEqual(ports["peers"], int(config["cluster"]["listen"].rsplit(":", 1)[1]), owner)
            self.assertEqual({kind: container[kind]["httpGet"] for kind in ("startupProbe", "readinessProbe", "livenessProbe")},
                             {kind: {"path": path, "port": "probes"} for kind, path in
                              (("startupProbe", "/startupz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/healthz"))}, owner)
            self.assertGreaterEqual(container["startupProbe"]["periodSeconds"] * container["startupProbe"]["failureThreshold"], 1800)
            # Whoever reads cameras hands them over first.
            ends = grace * 3 // 2 if "camera" in container["args"][2].split(",") else grace
            self.assertEqual(spec["terminationGracePeriodSeconds"], ends + 5 + 15, owner)
            self.assertEqual(container["lifecycle"]["preStop"], {"sleep": {"seconds": 5}})

    @for_each_set
    def test_nothing_of_a_version_is_where_it_would_roll_pods_or_cannot_change(self, name, objects):
        later = shutil.copytree(CHART, os.path.join(self.folder, "later", "vigil"), dirs_exist_ok=True)
        with open(os.path.join(later, "Chart.yaml"), encoding="utf-8") as file:
            text = file.read()
        with open(os.path.join(later, "Chart.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("\nversion: 0.1.0", "\nversion: 9.9.9"))
        for before, after in zip(objects, self.helm.render(name, chart=later)):
            if before["kind"] == "StatefulSet":
                self.assertEqual(before["spec"], after["spec"])
                self.assertNotEqual(before["metadata"], after["metadata"])

    @for_each_set
    def test_the_rendered_configuration_is_a_legal_one_and_the_chart_adds_nothing_more_to_it(self, name, objects):
        config = configuration(objects)
        # Which the program does only after it has put the pod's name in.
        self.assertEqual(config.pop("name"), "{POD_NAME}")
        self.assertEqual(config["cluster"]["advertise"], "{POD_NAME}.fleet-vigil-nodes.video.svc")
        self.assertEqual(config["cluster"]["seeds"], [f"fleet-vigil-nodes.video.svc:{config['cluster']['listen'].rsplit(':', 1)[1]}"])
        own_etcd = any(each["metadata"]["name"] == "fleet-vigil-etcd" for each in objects)
        again = {"config": config, "etcd": {"external": {"endpoints": []}}}
        if own_etcd:
            del config["cluster"]["registry"]["endpoints"]
        rendered = self.helm.render(name, "--values", self.put("again.yaml", yaml.safe_dump(again)))
        self.assertEqual(configuration(rendered), configuration(objects))


class EachSet(Charts):
    """What single sets of values are about."""

    def test_minimal(self):
        objects = self.rendered["minimal"]
        self.assertEqual({each["metadata"]["name"].removeprefix("fleet-vigil-"): each["spec"]["replicas"]
                          for each in objects if each["kind"] == "StatefulSet"}, {"camera": 2, "compute": 1, "gateway": 2})
        compute = one(objects, "StatefulSet", "-compute")["spec"]["template"]["spec"]["containers"][0]
        self.assertEqual(compute["args"], ["node", "--roles", "vision,stream,generate", "--config", "/etc/vigil/vigil.yaml"])
        self.assertEqual(compute["resources"]["limits"]["nvidia.com/gpu"], 1)
        camera = one(objects, "StatefulSet", "-camera")["spec"]
        self.assertEqual([claim["metadata"]["name"] for claim in camera["volumeClaimTemplates"]], ["data"])
        self.assertEqual(camera["persistentVolumeClaimRetentionPolicy"], {"whenDeleted": "Retain", "whenScaled": "Retain"})
        self.assertNotIn("volumeClaimTemplates", one(objects, "StatefulSet", "-compute")["spec"])
        nodes = one(objects, "Service", "-nodes")["spec"]
        self.assertEqual((nodes["clusterIP"], nodes["publishNotReadyAddresses"]), ("None", True))
        self.assertEqual(configuration(objects)["cluster"]["registry"]["endpoints"], ["etcd.site.example:2379"])

    def test_who_publishes(self):
        for name in ("minimal", "pools"):
            objects = self.rendered[name]
            self.assertEqual([each["spec"]["selector"] for each in objects if each["metadata"]["name"] == "fleet-vigil-topics" and each["kind"] == "Service"],
                             [{"app.kubernetes.io/name": "vigil", "app.kubernetes.io/instance": "fleet", "vigil.dev/role-gateway": "true"}])
            policy = one(objects, "NetworkPolicy", "-topics")["spec"]
            self.assertEqual([port["port"] for port in policy["ingress"][0]["ports"]], [5556, 5557])
            for owner, metadata, spec in pods(objects):
                publishes = "vigil.dev/role-gateway" in metadata["labels"]
                self.assertEqual(selects(policy["podSelector"]["matchLabels"], metadata["labels"]), publishes, owner)
                self.assertEqual({5556, 5557} <= {port["containerPort"] for port in spec["containers"][0].get("ports", [])}, publishes, owner)

    def test_airgapped(self):
        objects = self.rendered["airgapped"]
        images = {owner: spec["containers"][0]["image"] for owner, _, spec in pods(objects)}
        mirror = "mirror.site.example:5000"
        pinned = f"{mirror}/vigil@sha256:{'0123456789abcdef' * 4}"
        self.assertEqual(images, {
            "fleet-vigil-camera": pinned, "fleet-vigil-gateway": pinned, "fleet-vigil-compute": f"{mirror}/vigil-cuda:0.1.0",
            "fleet-vigil-etcd": f"{mirror}/coreos/etcd:v3.6.5", "fleet-vigil-readyz": f"{mirror}/library/busybox:1.37"})
        for owner, _, spec in pods(objects):
            self.assertEqual(spec["imagePullSecrets"], [{"name": "mirror"}], owner)
        camera = one(objects, "StatefulSet", "-camera")["spec"]["template"]["spec"]
        self.assertIn({"name": "model", "hostPath": {"path": "/srv/models", "type": "Directory"}}, camera["volumes"])
        self.assertIn({"name": "model", "mountPath": "/models", "readOnly": True}, camera["containers"][0]["volumeMounts"])

    def test_an_etcd_of_the_charts_own(self):
        objects = self.rendered["airgapped"]
        etcd = one(objects, "StatefulSet", "-etcd")["spec"]
        self.assertEqual((etcd["replicas"], etcd["podManagementPolicy"]), (3, "Parallel"))
        self.assertEqual(one(objects, "PodDisruptionBudget", "-etcd")["spec"]["maxUnavailable"], 1)
        registry = configuration(objects)["cluster"]["registry"]
        hosts = [f"fleet-vigil-etcd-{number}.fleet-vigil-etcd.video.svc" for number in range(3)]
        self.assertEqual(registry["endpoints"], [f"{host}:2379" for host in hosts])
        arguments = etcd["template"]["spec"]["containers"][0]["args"]
        self.assertIn("--initial-cluster=" + ",".join(f"{host.split('.')[0]}=https://{host}:2380" for host in hosts), arguments)
        self.assertLessEqual({"--client-cert-auth=true", "--peer-client-cert-auth=true"}, set(arguments))
        self.assertFalse([each for each in arguments if "http://" in each and "metrics" not in each])

    def test_ones_own_etcd(self):
        objects = self.rendered["etcd"]
        cluster = configuration(objects)["cluster"]
        self.assertEqual(cluster["name"], "north")
        self.assertEqual(cluster["registry"], {
            "endpoints": ["etcd-a.site.example:2379", "etcd-b.site.example:2379", "etcd-c.site.example:12379"], "ca_file": "/etc/vigil/etcd-tls/ca.crt",
            "username": "{VIGIL_ETCD_USERNAME}", "password": "{VIGIL_ETCD_PASSWORD}"})
        self.assertFalse([each for each in objects if each["metadata"]["name"].endswith("-etcd")])
        egress = one(objects, "NetworkPolicy", "-nodes")["spec"]["egress"]
        self.assertIn({"ports": [{"protocol": "TCP", "port": 2379}, {"protocol": "TCP", "port": 12379}], "to": [{"ipBlock": {"cidr": "10.1.0.0/24"}}]}, egress)
        for owner, metadata, spec in pods(objects):
            if metadata["labels"]["vigil.dev/part"] == "node":
                env = {each["name"]: each["valueFrom"].get("secretKeyRef") for each in spec["containers"][0]["env"]}
                self.assertEqual(env["VIGIL_ETCD_PASSWORD"], {"name": "site-etcd-user", "key": "password"}, owner)

    def test_pools_are_split_and_joined(self):
        objects = self.rendered["pools"]
        pools = {each["metadata"]["name"].removeprefix("fleet-vigil-"): each["spec"]["template"]["spec"] for each in objects if each["kind"] == "StatefulSet"}
        self.assertEqual({name: spec["containers"][0]["args"][2] for name, spec in pools.items()}, {
            "north": "camera", "south": "camera", "vision": "vision", "stream": "stream", "generate": "generate", "gateway": "gateway"})
        self.assertEqual(pools["north"]["nodeSelector"], {"site.example/building": "north"})
        self.assertEqual(pools["north"]["tolerations"], [{"key": "video", "operator": "Exists", "effect": "NoSchedule"}])
        self.assertNotIn("tolerations", pools["south"])
        self.assertEqual(pools["stream"]["runtimeClassName"], "nvidia")
        self.assertEqual(pools["stream"]["containers"][0]["resources"]["limits"], {"nvidia.com/gpu": 2})
        self.assertIn({"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "4Gi"}}, pools["stream"]["volumes"])
        budget = one(objects, "PodDisruptionBudget", "-generate")["spec"]
        self.assertEqual((budget["minAvailable"], budget.get("maxUnavailable")), ("50%", None))
        self.assertEqual(pools["north"]["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app.kubernetes.io/component"], "north")
        trial = [each["metadata"]["name"] for each in self.rendered["trial"] if each["kind"] == "StatefulSet"]
        self.assertEqual(trial, ["fleet-vigil-etcd", "fleet-vigil-node"])

    def test_what_a_pools_nodes_have_room_for(self):
        objects = self.rendered["registry"]
        cluster = configuration(objects)["cluster"]
        self.assertEqual((cluster["max_cameras"], cluster["max_streams"]), ("{VIGIL_MAX_CAMERAS}", "{VIGIL_MAX_STREAMS}"))

        def room(objects, pool):
            env = one(objects, "StatefulSet", f"-{pool}")["spec"]["template"]["spec"]["containers"][0]["env"]
            return {each["name"].removeprefix("VIGIL_MAX_"): each["value"] for each in env if each["name"].startswith("VIGIL_MAX_")}

        self.assertEqual({pool: room(objects, pool) for pool in ("camera", "large", "small", "gateway")}, {
            "camera": {"CAMERAS": "200", "STREAMS": "0"}, "large": {"CAMERAS": "0", "STREAMS": "28"}, "small": {"CAMERAS": "0", "STREAMS": "6"},
            "gateway": {"CAMERAS": "0", "STREAMS": "0"}})
        # One that changes starts its own pool's pods anew.
        later = self.helm.render("registry", "--set", "pools.small.maxStreams=1000000")
        self.assertEqual({each["metadata"]["name"] for each in objects if each not in later}, {"fleet-vigil-small"})
        self.assertEqual(room(later, "small")["STREAMS"], "1000000")
        # Where no pool has one, or the configuration has one for all, nothing is added.
        self.assertEqual(room(self.rendered["minimal"], "compute"), {})
        self.assertNotIn("max_streams", configuration(self.rendered["minimal"])["cluster"])
        for_all = self.helm.render("minimal", "--set", "config.cluster.max_streams=7")
        self.assertEqual((configuration(for_all)["cluster"]["max_streams"], room(for_all, "compute")), (7, {}))

    def test_cameras_in_the_registry(self):
        config = configuration(self.rendered["registry"])
        self.assertEqual(config["cluster"]["configuration"], "registry")
        self.assertEqual({"cameras", "defaults", "rules"} & set(config), set())

    def test_autoscaling(self):
        objects = self.rendered["keda"]
        self.assertNotIn("replicas", one(objects, "StatefulSet", "-compute")["spec"])
        scaled = one(objects, "ScaledObject", "-compute")["spec"]
        self.assertEqual((scaled["minReplicaCount"], scaled["maxReplicaCount"], scaled["scaleTargetRef"]["kind"]), (2, 8, "StatefulSet"))
        waiting, lag = scaled["triggers"]
        self.assertEqual(waiting["metadata"]["query"], 'sum(vigil_requests_waiting{namespace="video",pod=~"fleet-vigil-compute-[0-9]+"})')
        self.assertIn("rate(vigil_window_latency_seconds_bucket{", lag["metadata"]["query"])
        self.assertEqual((waiting["metricType"], lag["metricType"], waiting["authenticationRef"]), ("AverageValue", "Value", {"name": "prometheus"}))
        objects = self.rendered["hpa"]
        scaler = one(objects, "HorizontalPodAutoscaler", "-compute")["spec"]
        self.assertEqual([(each["pods"]["metric"]["name"], each["pods"]["target"]["averageValue"]) for each in scaler["metrics"]],
                         [("vigil_requests_waiting", "2.5"), ("window_lag_seconds", "4")])
        self.assertNotIn("replicas", one(objects, "StatefulSet", "-compute")["spec"])

    def test_metrics_that_it_scales_by_are_those_that_the_program_has(self):
        with open(os.path.join(ROOT, "docs", "metrics.md"), encoding="utf-8") as file:
            known = set(re.findall(r"^\| `(vigil_\w+)`", file.read(), re.MULTILINE))
        used = set(re.findall(r"vigil_\w+(?=\{)", json.dumps(one(self.rendered["keda"], "ScaledObject", "-compute"))))
        self.assertEqual({each.removesuffix("_bucket") for each in used} - known, set())
        self.assertEqual(len(used), 2)

    def test_secrets_are_those_that_are_there(self):
        objects = self.rendered["secrets"]
        self.assertFalse([each for each in objects if each["kind"] in ("Secret", "ServiceAccount")])
        camera = one(objects, "StatefulSet", "-camera")["spec"]["template"]["spec"]
        self.assertEqual(camera["serviceAccountName"], "fleet")
        self.assertEqual(camera["containers"][0]["envFrom"], [{"secretRef": {"name": "cameras-north"}}, {"secretRef": {"name": "cameras-south"}}])
        gateway = one(objects, "StatefulSet", "-gateway")["spec"]["template"]["spec"]
        # Every node reads all of the file.
        self.assertEqual(gateway["containers"][0]["envFrom"], camera["containers"][0]["envFrom"])
        sources = next(volume for volume in gateway["volumes"] if volume["name"] == "config")["projected"]
        self.assertIn({"secret": {"name": "site-topics", "items": [{"key": "curve.key", "path": "curve/server.key"}]}}, sources["sources"])
        self.assertEqual(sources["defaultMode"], 0o440)
        config = configuration(objects)
        self.assertEqual(config["cameras"]["gate"]["password"], "{GATE_PASSWORD}")
        self.assertEqual(config["cameras"]["gate"]["rules"][0]["prompt"], "Is there a {person} at the gate?")
        self.assertEqual(config["cluster"]["registry"]["certificate"]["key_file"], "/etc/vigil/etcd-tls/tls.key")

    def test_everything(self):
        objects = self.rendered["everything"]
        self.assertEqual(configuration(objects)["engine"]["kv_tokens"], 1000000)
        self.assertEqual(one(objects, "Service", "-topics")["spec"]["externalTrafficPolicy"], "Local")
        monitor = one(objects, "ServiceMonitor", "")
        self.assertEqual(monitor["metadata"]["labels"]["release"], "prometheus")
        endpoint, = monitor["spec"]["endpoints"]
        self.assertEqual((endpoint["scheme"], endpoint["tlsConfig"]["serverName"]), ("https", "fleet-vigil-nodes.video.svc"))
        self.assertEqual({each["targetLabel"] for each in endpoint["relabelings"]}, {"fleet", "instance", "pool"})
        self.assertEqual(endpoint["relabelings"][0]["replacement"], configuration(objects)["cluster"]["name"])
        service = one(objects, "Service", "-nodes")
        self.assertTrue(selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"]))
        self.assertFalse(selects(monitor["spec"]["selector"]["matchLabels"], one(objects, "Service", "-topics")["metadata"]["labels"]))
        pod_monitor = one(self.helm.render("minimal", "--set", "metrics.podMonitor.enabled=true"), "PodMonitor", "")["spec"]
        for owner, metadata, _ in pods(objects):
            self.assertEqual(selects({**pod_monitor["selector"]["matchLabels"]}, metadata["labels"]), "etcd" not in owner and "readyz" not in owner, owner)
        for each in objects:
            if each["metadata"]["name"] not in ("fleet-site", "fleet-vigil-note"):
                self.assertEqual(each["metadata"]["labels"]["site.example/team"], "video")
                self.assertEqual(each["metadata"]["annotations"]["site.example/contact"], "video@site.example")
        self.assertEqual({each["metadata"]["name"] for each in objects if each["kind"] == "Secret"}, {"fleet-vigil-note"})
        self.assertEqual(one(objects, "NetworkPolicy", "-cameras")["spec"]["egress"][0]["ports"], [{"protocol": "TCP", "port": 554}])

    def test_who_is_asked_about_the_past(self):
        objects = self.rendered["everything"]
        self.assertEqual({key: configuration(objects)["asks"][key] for key in ("bind", "secret_key_file")},
                         {"bind": "tcp://0.0.0.0:5558", "secret_key_file": "/etc/vigil/curve/server.key"})
        self.assertIn({"name": "asks", "port": 5558, "targetPort": "asks"}, one(objects, "Service", "-topics")["spec"]["ports"])
        self.assertEqual([port["port"] for port in one(objects, "NetworkPolicy", "-topics")["spec"]["ingress"][0]["ports"]], [6556, 6557, 5558])
        for owner, metadata, spec in pods(objects):
            ports = {port["containerPort"] for port in spec["containers"][0].get("ports", [])}
            self.assertEqual(5558 in ports, "vigil.dev/role-gateway" in metadata["labels"], owner)
        # Nobody can ask where nothing is remembered, where nobody is named, or where only the node itself is let in.
        for more in ({"memory": {"enabled": False}}, {"asks": {"askers": []}}, {"asks": {"askers": [], "bind": "tcp://127.0.0.1:5558"}}):
            some = self.helm.render("everything", "--values", self.put("some.yaml", yaml.safe_dump({"config": more})))
            self.assertNotIn("asks", [port["name"] for port in one(some, "Service", "-topics")["spec"]["ports"]], more)
            # Whoever is named is let in by a key, though nothing is remembered: without it the program refuses the file.
            if configuration(some)["asks"]["askers"]:
                self.assertEqual(configuration(some)["asks"]["secret_key_file"], "/etc/vigil/curve/server.key")

    def test_certificates_have_the_names_under_which_hosts_are_verified(self):
        objects = self.rendered["everything"]
        config = configuration(objects)
        endpoints = [endpoint.rsplit(":", 1)[0] for endpoint in config["cluster"]["registry"]["endpoints"]]
        hosts = {"-tls": [config["cluster"]["advertise"].replace("{POD_NAME}", "fleet-vigil-camera-0"), config["cluster"]["seeds"][0].rsplit(":", 1)[0], "localhost"],
                 "-etcd-tls": [*endpoints, *(f"{each}.cluster.local" for each in endpoints), "localhost"]}
        for name, wanted in hosts.items():
            spec = one(objects, "Certificate", name)["spec"]
            self.assertEqual(spec["secretName"], f"fleet-vigil{name}")
            self.assertLessEqual({"server auth", "client auth"}, set(spec["usages"]))
            for host in wanted:
                # A wildcard stands for one label.
                self.assertTrue({host, "*." + host.split(".", 1)[-1]} & set(spec["dnsNames"]), host)

    def test_dashboards_and_rules_are_taken_as_they_are(self):
        chart = shutil.copytree(CHART, os.path.join(self.folder, "files", "vigil"))
        for folder in ("dashboards", "rules"):
            shutil.rmtree(os.path.join(chart, folder), ignore_errors=True)
            os.makedirs(os.path.join(chart, folder))
        empty = self.helm.render("everything", chart=chart)
        self.assertFalse([each for each in empty if each["kind"] == "PrometheusRule" or "-dashboard-" in each["metadata"]["name"]])
        for name, text in (("dashboards/fleet.json", DASHBOARD), ("rules/cameras.yaml", RULES)):
            with open(os.path.join(chart, name), "w", encoding="utf-8") as file:
                file.write(text)
        objects = self.helm.render("everything", chart=chart)
        dashboard = one(objects, "ConfigMap", "-dashboard-fleet")
        self.assertEqual(dashboard["data"], {"fleet.json": DASHBOARD})
        self.assertEqual((dashboard["metadata"]["labels"]["grafana_dashboard"], dashboard["metadata"]["annotations"]["grafana_folder"]), ("1", "Vigil"))
        self.assertEqual(one(objects, "PrometheusRule", "-cameras")["spec"], yaml.safe_load(RULES))
        self.assertFalse([each for each in self.helm.render("minimal", chart=chart) if each["kind"] == "PrometheusRule"])


if __name__ == "__main__":
    programs()
    unittest.main()
