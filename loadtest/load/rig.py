"""What a load runs on: one process or a fleet of nodes on hosts of their own, its cameras, its subscribers, and what is written down of it.

Hosts, etcd, certificates and the subscriber are those of loadtest/fleet/. Nodes run without its clock_offset.so, so that what is measured is the program alone.
"""

import contextlib
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FLEET_PROGRAMS = os.path.join(os.path.dirname(HERE), "fleet")
sys.path.append(FLEET_PROGRAMS)
import machines  # noqa: E402
import trial  # noqa: E402
from network import Network  # noqa: E402
from observer import Observer  # noqa: E402

from cameras import Cameras  # noqa: E402
from measure import PERSON, PULSE  # noqa: E402
from sampler import Sampler  # noqa: E402
from scenario import PROCESS  # noqa: E402

STARTS = 90.0
CATCHES_UP = 5.0


class Node(machines.Machine):
    """A node, or the one process (`vigil run`)."""

    def __init__(self, fleet, name, roles):
        super().__init__(fleet, name)
        self.roles = set(roles)
        self.home = os.path.join(fleet.folder, name)
        os.makedirs(self.home)

    def start(self):
        command = ["run"] if self.fleet.process else ["node", "--roles", ",".join(sorted(self.roles))]
        self.launch([self.fleet.vigil, *command, "--config", self.fleet.config],
                    {"NODE": self.name, "ADDRESS": self.host.address, "HOME_OF": self.home, "TLS": self.tls, "OMP_WAIT_POLICY": "passive",
                     "OMP_NUM_THREADS": "1"})


class Fleet(machines.Fleet):
    """The scenario's nodes; what is configured are its first so many cameras."""

    def __init__(self, network, folder, journal, build, scenario, cameras):
        self.scenario, self.process = scenario, scenario["fleet"]["process"]
        super().__init__(network, folder, journal, build, 0, lease=f"{scenario['fleet']['lease'] or 3:g}s")
        self.sources, self.cameras = cameras, cameras.names
        for name, roles in scenario["fleet"]["nodes"].items():
            self.nodes[name] = Node(self, name, roles)

    def _clip(self):
        """Cameras are cameras.py's."""

    def endpoints(self):
        return [node for node in self.nodes.values() if "gateway" in node.roles]

    def use(self, cameras):
        """From now on these are configured: what runs follows its file."""
        self.cameras = list(cameras)
        self.write_config()

    def write_config(self):
        settings, milli = self.scenario["cameras"], lambda seconds: f"{round(1000 * seconds)}ms"  # noqa: E731
        always = "threshold: 0, confirm: 1/1, cooldown: 0s, max_per_hour: 10000"
        names = [PULSE, *(f"{PULSE}-{i + 2}" for i in range(settings["rules"] - 1))]
        rules = [f'  - {{name: {name}, prompt: "Is there a person?", {always}}}' for name in names]
        rules.append(f'  - {{name: {PERSON}, prompt: "Is there a person in the room?", confirm: 1/1, cooldown: 0s, max_per_hour: 10000}}')
        lines = ['name: "{NODE}"', f"model: {machines.SOURCE}/models/demo",
                 f"defaults: {{fps: {settings['fps']:g}, window: {{length: {milli(settings['window'])}, stride: {milli(settings['stride'])}}}, "
                 f"pruning: {settings['pruning']}, reconnect: {{min: 1s, max: 2s}}}}",
                 "cameras:", *(f"  {name}: {{url: {json.dumps(self.sources.urls[name])}}}" for name in self.cameras), "rules:", *rules,
                 "alerts:", f'  bind: "tcp://{{ADDRESS}}:{machines.EVENTS}"', f'  replay: "tcp://{{ADDRESS}}:{machines.REPLAY}"',
                 '  outbox: "{HOME_OF}/outbox"',
                 f"  high_water_mark: {self.scenario['fleet']['high_water_mark']}",
                 f"  curve: {{secret_key_file: {self.server_key}, allow: ['{self.public(self.client_key)}']}}",
                 f'metrics: {{listen: "127.0.0.1:{machines.METRICS}"}}']
        if not self.process:
            seeds = ", ".join(f'"{node.host.address}:{machines.CONTROL}"' for node in self.nodes.values())
            lines += ["cluster:", f"  name: {machines.FLEET}", f'  listen: "{{ADDRESS}}:{machines.CONTROL}"',
                      f'  bulk: "{{ADDRESS}}:{machines.BULK}"',
                      f"  seeds: [{seeds}]", '  tls_dir: "{TLS}"', f"  lease: {self.lease}", "  registry:",
                      f'    endpoints: ["{self.etcd.endpoint}"]',
                      f"    ca_file: {self.certificates.ca}", '    certificate: {cert_file: "{TLS}/tls.crt", key_file: "{TLS}/tls.key"}']
        lines += ["log: {level: info}", "shutdown_grace: 8s", ""]
        # Whole or not at all: who follows the file must not read half of it.
        with open(f"{self.config}.new", "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        os.replace(f"{self.config}.new", self.config)


class Rig(contextlib.ExitStack):
    """All of it is up, and every configured camera has told something, when this is there; nothing is left when it ends.

    journal: also what fleet_faults.py writes to.
    """

    def __init__(self, scenario, count, build, folder, say, patience=1.0):
        super().__init__()
        self.scenario, self.folder, self.say, self.patience = scenario, folder, say, patience
        self.problems = []
        self.journal = machines.Journal(os.path.join(folder, "journal.jsonl"))
        network = Network()
        self.cameras = Cameras(scenario["cameras"], count, folder, network.host("cams"))
        self.fleet = Fleet(network, folder, self.journal, build, scenario, self.cameras)
        self.network = network
        self.journal.say("fleet", gateways=not self.fleet.process, cameras=self.cameras.names,
                         nodes={node.name: sorted(node.roles) for node in self.fleet.nodes.values()})
        self.fleet.use(self.first(scenario["phases"][0]["cameras"]))
        self.callback(self._close)
        self.observer, self.sampler, self.recorders, self.slow = None, None, [], []
        self.cameras.start_server(os.path.join(folder, "cams.log"))
        if not self.fleet.process:
            self.fleet.etcd.start()
        for node in self.fleet.nodes.values():
            node.start()
        self.recorders = [trial.Recorder(self.fleet, node, os.path.join(folder, f"seen-{node.name}.jsonl")) for node in self.fleet.endpoints()]
        if not self.fleet.process:
            self.observer = Observer(self.fleet, os.path.join(folder, "samples.jsonl"))
            self.observer.start()
        self.sampler = Sampler(self, os.path.join(folder, "measures.jsonl"))
        self.sampler.start()
        began = time.monotonic()
        if not self.wait(lambda: self.told_since(began) or self.ended(), STARTS, "every camera tells of a window") or self.ended():
            dead = self.ended()
            raise RuntimeError(f"{', '.join(node.name for node in dead)} ended at once\n{dead[0].said()[-2000:]}" if dead else
                               f"{self.problems[-1]}\n{self.fleet.logs()}")
        self.started = time.monotonic() - began

    def _close(self):
        processes = [machine.process for machine in [self.fleet.etcd, *self.fleet.nodes.values()] if machine.runs()]
        processes += [recorder.process for recorder in self.recorders] + [slow.process for slow in self.slow]
        for process in processes:
            process.kill()
            process.wait()
        self.cameras.stop()
        for each in (self.observer, self.sampler):
            if each:
                each.stop()

    def first(self, share):
        """The cameras that are there while only a share of them is; they join and leave at the end of the list."""
        return self.cameras.names[:max(1, round(share * len(self.cameras.names)))]

    def own_processes(self):
        """Process ids by name: nodes, and what the load takes itself."""
        found = {machine.name: machine.process.pid for machine in [self.fleet.etcd, *self.fleet.nodes.values()] if machine.runs()}
        found.update({f"subscriber of {recorder.node.name}": recorder.process.pid for recorder in self.recorders})
        if self.cameras.server:
            found["cams"] = self.cameras.server.pid
        return found

    def told(self, camera):
        """When a subscriber has heard of a window of this camera last."""
        return max((recorder.last.get(f"alert/default/{camera}/{PULSE}/", (0.0,))[0] for recorder in self.recorders), default=0.0)

    def ended(self):
        """Nodes that do not run."""
        return [node for node in self.fleet.nodes.values() if not node.runs()]

    def told_since(self, t):
        return not self.ended() and all(self.told(camera) > t for camera in self.fleet.cameras)

    def problem(self, text):
        """It makes the run fail, at its end."""
        self.problems.append(text)
        self.journal.say("problem", text=text)
        self.say(f"problem: {text}")

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds * self.patience
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.05)
        self.problem(f"{what}: not within {seconds * self.patience:g} s")
        return False

    def busiest(self, role):
        """The node of a name, or the one of a role that has most cameras by the plan."""
        if role in self.fleet.nodes:
            return self.fleet.nodes[role]
        wanted = "stream" if role == "compute" else role
        has = dict.fromkeys((node.name for node in self.fleet.nodes.values() if wanted in node.roles), 0)
        for owner, cameras in self.fleet.plan().items():
            for planned in cameras.values():
                name = planned.get("stream") if role == "compute" else owner
                if name in has:
                    has[name] += 1
        return self.fleet.nodes[max(has, key=has.get)]

    def read_all(self):
        """What every endpoint has, as one who comes new."""
        began = self.journal.say("reading", reading="end")["t"]
        for recorder in self.recorders:
            recorder.read("end")
        self.wait(lambda: all(recorder.answer("end") for recorder in self.recorders), 90, "all endpoints are read to their end")
        self.journal.say("final", gateways=[recorder.node.name for recorder in self.recorders], reading="end", began=began)


class SlowSubscriber:
    """slow_subscriber.py on a host of its own; what it read is in its file."""

    def __init__(self, rig, number, rate):
        self.path = os.path.join(rig.folder, f"slow-{number}.jsonl")
        endpoint = rig.fleet.endpoints()[number % len(rig.fleet.endpoints())]
        self.process = subprocess.Popen(
            endpoint.host.command(sys.executable, os.path.join(HERE, "slow_subscriber.py"), f"tcp://{endpoint.host.address}:{machines.EVENTS}",
                                  rig.fleet.public(rig.fleet.server_key), rig.fleet.client_key, str(rate), self.path),
            stdin=subprocess.PIPE)
        self.gateway = endpoint.name

    def stop(self):
        """It reads what waits for it first, for some seconds at most: events go on meanwhile."""
        self.process.stdin.close()
        try:
            self.process.wait(CATCHES_UP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
