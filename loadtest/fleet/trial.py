"""One run of a fleet with its subscribers: brought up, hurt, and looked at."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import check
import figures
from machines import COMPUTE, EVENTS, REPLAY, STAGES, Fleet, Journal
from network import Network
from observer import Observer

HERE = os.path.dirname(os.path.abspath(__file__))
PULSE = "alert/default/{}/pulse/"


class Recorder:
    """recorder.py on a gateway's host."""

    def __init__(self, fleet, node, path):
        self.node = node
        self.process = subprocess.Popen(
            node.host.command(sys.executable, os.path.join(HERE, "recorder.py"), node.name, node.host.address, str(EVENTS), str(REPLAY),
                              fleet.public(fleet.server_key), fleet.client_key, path),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.answers = []
        self.last = {}  # when an event came live, and how old it was by its own time, by topic
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "live":
                self.last[words[1]] = float(words[2]), float(words[3])
            else:
                self.answers.append(words)

    def read(self, tag):
        self.process.stdin.write(f"whole {tag}\n")
        self.process.stdin.flush()

    def answer(self, tag):
        """(outbox, count) once it has read everything, or nothing."""
        return next(((words[2], int(words[3])) for words in self.answers if words[:2] == ["whole", tag]), None)


def knows_gateways(vigil):
    told = subprocess.run([vigil, "node", "--roles", "gateway", "--config", "/dev/null"], capture_output=True, text=True, check=False)
    return "nothing to do yet" not in told.stderr + told.stdout


class Trial(contextlib.ExitStack):
    """The fleet is up, and every camera has told something, when this is there. Nodes: c1 ..., v1 ..., g1 ....

    apart: how many nodes encode, have streams, and generate, instead of computing nodes that do all of it: v1 ..., s1 ..., x1 ...; some cameras have alerts to be explained then.
    folder: where everything is written, which stays; without, in one that goes. patience: a factor for all waiting, of machines that have other things to do.
    """

    def __init__(self, build, cameras=12, camera_nodes=3, compute_nodes=2, gateways=2, apart=None, folder=None, patience=1.0, order=None, log=print,
                 **fleet):
        super().__init__()
        self.patience, self.log, self.problems, self.snapshot = patience, log, [], None
        self.folder = folder or self.enter_context(tempfile.TemporaryDirectory(prefix="vigil-fleet-"))
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        self.journal = Journal(os.path.join(self.folder, "journal.jsonl"))
        self.network = Network()
        self.fleet = Fleet(self.network, self.folder, self.journal, build, cameras, **{"explains": bool(apart), **fleet})
        if gateways and not knows_gateways(self.fleet.vigil):
            gateways = 0
        for number in range(camera_nodes):
            self.fleet.node(f"c{number + 1}", "camera", disk=128)
        computing = zip(STAGES.items(), apart) if apart else [(("v", COMPUTE), compute_nodes)]
        for (letter, roles), count in computing:
            for number in range(count):
                self.fleet.node(f"{letter}{number + 1}", roles)
        for number in range(gateways):
            self.fleet.node(f"g{number + 1}", "gateway", disk=256)
        self.fleet.write_config()
        self.journal.say("fleet", gateways=gateways > 0, cameras=self.fleet.cameras, window=self.fleet.window, lease=self.fleet.lease,
                         nodes={node.name: sorted(node.roles) for node in self.fleet.nodes.values()})
        self.observer = Observer(self.fleet, os.path.join(self.folder, "samples.jsonl"))
        self.recorders = [Recorder(self.fleet, node, os.path.join(self.folder, f"seen-{node.name}.jsonl")) for node in self.fleet.endpoints()]
        self.callback(self.close_all)
        for name in order or ["etcd", *self.fleet.nodes]:
            self.machine(name).start()
        self.observer.start()
        began = time.monotonic()
        self.settle("the fleet is up", 60)
        self.log(f"up after {time.monotonic() - began:.1f} s: {', '.join(self.fleet.nodes)}, {cameras} cameras")

    def close_all(self):
        for machine in [self.fleet.etcd, *self.fleet.nodes.values()]:
            if machine.runs():
                machine.process.kill()
                machine.process.wait()
        self.observer.stop()
        for recorder in self.recorders:
            recorder.process.kill()
            recorder.process.wait()
        for node in self.fleet.nodes.values():
            if node.disk:
                subprocess.run(["umount", node.home], check=False)

    def machine(self, name):
        return self.fleet.etcd if name == "etcd" else self.fleet.nodes[name]

    def require(self, holds, what):
        """Not the end of the run: it is told at its end, and makes it fail."""
        if not holds:
            self.problems.append(what)
            self.journal.say("problem", text=what)
            self.log(f"problem: {what}")
        return holds

    def wait(self, condition, seconds, what):
        end = time.monotonic() + seconds * self.patience
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.1)
        return self.require(False, f"{what}: not within {seconds * self.patience:g} s")

    def settled(self, since):
        """Every node runs, every camera is up where the plan has it, and has told something since then, at an endpoint of subscribers."""
        owners = self.observer.owners()
        up = lambda camera: self.observer.cameras(self.fleet.nodes[owners[camera]]).get(camera) == "up"  # noqa: E731
        return (all(node.runs() and self.observer.serves(node) for node in self.fleet.nodes.values()) and
                all(camera in owners and up(camera) and self.told(camera) > since for camera in self.fleet.cameras))

    def told(self, camera):
        """When a subscriber has heard of a window of this camera last."""
        return max((recorder.last.get(PULSE.format(camera), (0.0,))[0] for recorder in self.recorders), default=0.0)

    def age(self, camera):
        """How old that was by the time that it has, which is its node's."""
        return max((recorder.last.get(PULSE.format(camera), (0.0, 0.0)) for recorder in self.recorders), default=(0.0, 0.0))[1]

    def settle(self, what, seconds=45):
        """Waits until all of it is as it should be. A node that ended by itself is a problem, and started again."""
        dead = [node.name for node in self.fleet.nodes.values() if not node.runs()]
        if dead:
            self.require(False, f"{what}: {', '.join(dead)} ended by itself")
            for name in dead:
                self.machine(name).start()
        began = time.monotonic()
        held = self.wait(lambda: self.settled(began), seconds, what)
        self.journal.say("settled" if held else "unsettled", text=what, seconds=round(time.monotonic() - began, 2))
        return held

    def take_snapshot(self):
        self.snapshot = os.path.join(self.folder, "etcd-snapshot")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.snapshot)
        self.fleet.etcd.snapshot(self.snapshot)

    def finish(self):
        """Reads all that every endpoint has, as one who comes new, and gives (violations, figures). Everything has to run."""
        self.settle("all is well again at the end", 60)
        # What is under way is told.
        time.sleep(4)
        began = self.journal.say("reading", reading="end")["t"]
        for recorder in self.recorders:
            recorder.read("end")
        self.wait(lambda: all(recorder.answer("end") for recorder in self.recorders), 90, "all endpoints are read to their end")
        # Events go on meanwhile: what was seen until now has to be there.
        self.journal.say("final", gateways=[recorder.node.name for recorder in self.recorders], reading="end", began=began)
        log = check.Log.of(self.folder)
        found = [check.Violation("problem", text) for text in self.problems] + check.violations(log)
        return found, figures.of(log)
