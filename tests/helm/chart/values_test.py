"""What values may be: what the schema refuses, and what does not fit together: values_test.py"""

import os
import re
import tempfile
import unittest

from kube_tools import CHART, Helm, configuration, one, programs, values


class Refused(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.helm = Helm(folder.name)

    def said(self, text, name="minimal", **options):
        """What is wrong with a set of values and these, a line each."""
        path = os.path.join(self.folder, "values.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = self.helm.template("--values", values(name), "--values", path, **options)
        self.assertEqual((done.returncode, done.stdout), (1, ""), text)
        return [line.strip() for line in done.stderr.splitlines() if re.match(r"  \S|- at ", line)]

    def test_what_the_schema_does_not_know(self):
        for text, line in (
                ("confg: {}", "- at '': additional properties 'confg' not allowed"),
                ("config: {modl: /models}", "- at '/config': additional properties 'modl' not allowed"),
                ("config: {cluster: {tsl_dir: /x}}", "- at '/config/cluster': additional properties 'tsl_dir' not allowed"),
                ("config: {cameras: {gate: {urls: x}}}", "- at '/config/cameras/gate': additional properties 'urls' not allowed"),
                ("config: {shutdown_grace: 30}", "- at '/config/shutdown_grace': got number, want string"),
                ("config: {shutdown_grace: soon}", "- at '/config/shutdown_grace': 'soon' does not match pattern '^[0-9]+(\\\\.[0-9]+)?(ms|s|m|h|d)$'"),
                ("pools: {camera: {replica: 3}}", "- at '/pools/camera': additional properties 'replica' not allowed"),
                ("pools: {camera: {replicas: three}}", "- at '/pools/camera/replicas': got string, want integer"),
                ("pools: {camera: {roles: [cameras]}}",
                 "- at '/pools/camera/roles/0': value must be one of 'camera', 'vision', 'stream', 'generate', 'cache', 'gateway'"),
                ("pools: {camera: {kind: Deployment}}", "- at '/pools/camera/kind': value must be 'StatefulSet'"),
                ("pools: {a_b: {roles: [cache]}}", "- at '/pools': additional properties 'a_b' not allowed"),
                ("config: {cameras: {a/b: {url: x}}}", "- at '/config/cameras': additional properties 'a/b' not allowed"),
                ("commonLabels: {app.kubernetes.io/name: x}", "- at '/commonLabels/app.kubernetes.io~1name': false schema"),
                ("etcd: {replicas: 2}", "- at '/etcd/replicas': value must be one of 1, 3, 5"),
                ("image: {digest: sha256:12}", "- at '/image/digest': 'sha256:12' does not match pattern '^(sha256:[0-9a-f]{64})?$'")):
            self.assertEqual(self.said(text), [line], text)

    def test_what_does_not_fit_together_is_said_in_a_line_each(self):
        for text, line in (
                ("etcd: {external: {endpoints: []}}",
                 "etcd: a fleet needs one; name yours in etcd.external.endpoints, or let the chart bring one with etcd.enabled: true"),
                ("etcd: {enabled: true, tls: {existingSecret: etcd}}",
                 "etcd: etcd.enabled brings one, and etcd.external or config.cluster.registry.endpoints names another; leave out one"),
                ("etcd: {enabled: true, external: {endpoints: []}}", "etcd.tls.existingSecret: etcd needs a certificate; name a Secret, or turn on tls.certManager"),
                ("pools: {camera: {terminationGracePeriodSeconds: 109}}",
                 "pools.camera.terminationGracePeriodSeconds: 109 is too short; its nodes need 110 (preStopSeconds, config.shutdown_grace one and a half times, and 15), or say 0"),
                ("config: {shutdown_grace: 1h}\npools: {compute: {terminationGracePeriodSeconds: 3600}}",
                 "pools.compute.terminationGracePeriodSeconds: 3600 is too short; its nodes need 3620 (preStopSeconds, config.shutdown_grace, and 15), or say 0"),
                ("topics: {curve: {existingSecret: ''}}",
                 "topics.curve.existingSecret: events leave a machine encrypted only; name a Secret with the key of `vigil keygen server.key`"),
                ("config: {alerts: {curve: {allow: []}}}",
                 "config.alerts.curve.allow: nobody could read events; list the public keys of clients, each from its `vigil keygen`"),
                ("config: {cameras: null}", 'config.cameras: no camera yet; for example {gate: {url: "rtsp://10.0.10.10:554/live", '
                 'rules: [{name: person, prompt: "Is there a person?"}]}}'),
                ("model: {volume: null}",
                 "model.volume: says nothing of where /models comes from; for example {persistentVolumeClaim: {claimName: models}}"),
                ("config: {metrics: {probes: '127.0.0.1:9465'}}", "config.metrics.probes: Kubernetes has to reach it, such as 0.0.0.0:9465"),
                ("pools: {camera: {replicas: 0}}", "pools: no node has the role camera"),
                ("pools: {gateway: null}", "pools: no node has the role gateway, and nobody else publishes events"),
                ("pools: {gateway: {enabled: false}}", "pools: no node has the role gateway, and nobody else publishes events"),
                ("pools: {gateway: {replicas: 0}}", "pools: no node has the role gateway, and nobody else publishes events"),
                ("pools: {cache: {enabled: true}}",
                 "pools.cache.roles: has cache, which has nothing to do yet: `vigil node` refuses it, too; leave it out"),
                ("pools: {compute: {roles: [vision, stream, generate, cache]}}",
                 "pools.compute.roles: has cache, which has nothing to do yet: `vigil node` refuses it, too; leave it out"),
                ("pools: {compute: {maxStreams: 8}}\nconfig: {cluster: {max_streams: 9}}",
                 "config.cluster.max_streams: is 9 for all nodes, and pools.compute.maxStreams says something else; leave out one"),
                ("config: {cluster: {configuration: registry}}",
                 "config.cameras: is in the registry, as config.cluster.configuration says; put it there (vigil config put), and leave it out here"),
                ("config: {cluster: {configuration: registry}, cameras: null, rules: [{name: r, prompt: p}]}",
                 "config.rules: is in the registry, as config.cluster.configuration says; put it there (vigil config put), and leave it out here"),
                ("config: {name: a}", "config.name: all nodes would have the one name; leave it out, and each has its pod's"),
                ("config: {cluster: {advertise: a.example}}",
                 "config.cluster.advertise: all nodes would have the one address; leave it out, or let {POD_NAME} stand in it"),
                ("pools: {spare: {replicas: 0}}", "pools.spare.roles: some of camera, vision, stream, generate, gateway"),
                ("pools: {etcd: {roles: [camera]}}", "pools.etcd: is the name of something else in the fleet; give it another"),
                ("config: {memory: {enabled: true, dir: /var/lib/vigil/memory}}",
                 "pools.compute.persistence: config.memory.dir is on a disk that goes with the pod, and erasures wait for its node for ever; "
                 "turn it on, or leave out dir"),
                ("pools: {compute: {gpu: {count: 0}}}", "pools.compute.gpu.count: is 0, and config.engine.device is cuda"),
                ("tls: {existingSecret: a, certManager: {enabled: true, issuerRef: {name: fleet}}}",
                 "tls: existingSecret and certManager.enabled both say where the certificate comes from; leave out one"),
                ("tls: {existingSecret: '', certManager: {enabled: true}}", "tls.certManager.issuerRef: which issuer? For example {name: fleet, kind: Issuer}"),
                ("pools: {compute: {autoscaling: {kind: keda}}}", "pools.compute.autoscaling.keda.serverAddress: where is Prometheus?"),
                ("pools: {compute: {autoscaling: {kind: hpa, minReplicas: 5}}}", "pools.compute.autoscaling: minReplicas is more than maxReplicas"),
                ("pools: {compute: {autoscaling: {kind: hpa, requestsWaiting: {target: 0}, windowLag: {target: 0}}}}",
                 "pools.compute.autoscaling: by what? Both targets are 0"),
                ("metrics: {serviceMonitor: {enabled: true}, podMonitor: {enabled: true}}",
                 "metrics: with serviceMonitor and podMonitor everything is counted twice; leave out one")):
            self.assertEqual(self.said(text), [line], text)

    def test_variables_that_nothing_gives(self):
        lacks = "nothing gives the variable %s to %s; name a Secret that has it in credentials.cameraSecrets, or give it by extraEnv of the pool"
        camera = "config: {cameras: {gate: {username: u, password: '{GATE_PASSWORD}'}}}\n"
        password = "config.cameras.gate.password: " + lacks % ("GATE_PASSWORD", "camera")
        everywhere = "config: {cluster: {advertise: '{POD_NAME}.{SITE}', max_streams: '{ROOM}'}}\n"
        given = "extraEnv: [{name: SITE, value: a}, {name: ROOM, value: '4'}]"
        for text, lines in (
                # Whoever opens the camera looks for it.
                (camera, [password]),
                (camera + "pools: {gateway: {extraEnvFrom: [{secretRef: {name: a}}]}}", [password]),
                (camera + "pools: {yard: {roles: [camera]}}", [password.replace("to camera", "to camera, yard")]),
                (everywhere, ["config.cluster.advertise: " + lacks % ("SITE", "camera, compute, gateway"),
                              "config.cluster.max_streams: " + lacks % ("ROOM", "camera, compute, gateway")]),
                (everywhere + f"pools: {{camera: {{{given}}}, gateway: {{{given}}}}}",
                 ["config.cluster.advertise: " + lacks % ("SITE", "compute"), "config.cluster.max_streams: " + lacks % ("ROOM", "compute")]),
                ("config: {cameras: {yard: {inputs: [{url: 'rtsp://{USER}:{KEY}@a/{USER}'}], rules: [{name: r, prompt: p}]}}}",
                 [f"config.cameras.yard.inputs[0].url: {lacks % (each, 'camera')}" for each in ("USER", "KEY")])):
            self.assertEqual(self.said(text), lines, text)
        for text in (
                camera + "credentials: {cameraSecrets: [a]}", camera + "pools: {camera: {extraEnvFrom: [{secretRef: {name: a}}]}}",
                camera + "pools: {camera: {extraEnv: [{name: GATE_PASSWORD, value: a}]}}", everywhere + f"poolDefaults: {{{given}}}",
                # What is nobody's variable: words, and keys of 40 characters that may have anything in them.
                "config: {cameras: {gate: {labels: {a: '{SITE}'}, rules: [{name: r, prompt: 'Is {THIS} there?'}]}}, rules: [{name: s, prompt: '{THIS}?'}]}",
                "config: {alerts: {curve: {allow: ['rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8}yf7']}}}",
                "config: {cameras: {gate: {username: '{lower}', password: '{1}{}'}}}"):
            path = os.path.join(self.folder, "values.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            done = self.helm.template("--values", values("minimal"), "--values", path)
            self.assertEqual((done.returncode, done.stderr), (0, ""), text)

    def test_plain_text_needs_a_word(self):
        said = self.said("tls: {existingSecret: ''}")
        self.assertEqual([line.split(":")[0] for line in said], ["tls", "config.metrics"])
        self.assertIn("nodes do not talk in plain text", said[0])
        # Each of them has its own word.
        self.assertEqual([line.split(":")[0] for line in self.said("tls: {existingSecret: ''}\nconfig: {cluster: {allow_plain_text: true}}")], ["config.metrics"])
        self.assertEqual([line.split(":")[0] for line in self.said("config: {cluster: {allow_plain_text: false}, metrics: {allow_plain_text: false}}", "trial")],
                         ["tls", "etcd.tls.existingSecret", "config.metrics"])

    def test_all_of_it_is_said_at_once(self):
        done = self.helm.template()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(re.findall(r"^  ([\w.]+): ", done.stderr, re.MULTILINE),
                         ["config.cameras", "model.volume", "tls", "etcd", "config.metrics", "topics.curve.existingSecret"])

    def test_kinds_that_the_cluster_does_not_know(self):
        for text, begin in (("metrics: {prometheusRule: {enabled: true}}", "metrics: the cluster does not know monitoring.coreos.com/v1"),
                            ("pools: {compute: {autoscaling: {kind: keda, keda: {serverAddress: 'http://p'}}}}",
                             "pools.compute.autoscaling: the cluster does not know keda.sh/v1alpha1"),
                            ("tls: {existingSecret: '', certManager: {enabled: true, issuerRef: {name: a}}}",
                             "tls.certManager: the cluster does not know cert-manager.io/v1")):
            line, = self.said(text, apis=())
            self.assertTrue(line.startswith(begin), line)

    def test_an_older_kubernetes_is_refused(self):
        done = self.helm.run("template", "fleet", CHART, "--kube-version", "1.29.0", "--values", values("minimal"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("chart requires kubeVersion: >=1.30.0-0", done.stderr)

    def test_what_is_empty_or_false_counts(self):
        # Not what the chart, or the defaults of pools, would fill in.
        done = self.helm.render("minimal", "--set", "pools.camera.persistence.enabled=false", "--set", "pools.camera.preStopSeconds=0",
                                "--set", "config.metrics.listen=", "--set", "poolDefaults.mountModel=false")
        camera = one(done, "StatefulSet", "-camera")
        self.assertNotIn("volumeClaimTemplates", camera["spec"])
        self.assertNotIn("lifecycle", camera["spec"]["template"]["spec"]["containers"][0])
        self.assertNotIn("model", [volume["name"] for volume in camera["spec"]["template"]["spec"]["volumes"]])
        self.assertEqual(configuration(done)["metrics"]["listen"], "")


if __name__ == "__main__":
    programs()
    unittest.main()
