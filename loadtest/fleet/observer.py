"""What the nodes say of themselves, and what etcd holds: for figures, not for the checker, which believes subscribers alone.

Lines of samples.jsonl, `t` by the monotonic clock:

  {"t", "node", "pid", "rss"}                                     bytes, once a second
  {"t", "node", "pid", "cameras": {name: [state, frames]}, "windows", "pending"}     of /status, four times a second
  {"t", "node", "pid", "tokens"}                                  of explanations that it wrote, once a second; of nodes that compute
  {"t", "key", "value"}                                           what changed in etcd under the fleet's prefix; null: it is gone
"""

import base64
import contextlib
import json
import os
import subprocess
import threading
import time
import urllib.request

import network
from machines import FLEET, METRICS, Lines

TOKENS = "vigil_generation_tokens_total"


class Observer:
    def __init__(self, fleet, path):
        self.fleet = fleet
        self.say = Lines(path).say
        self._stop = False
        self._watch, self._began = None, 0
        self.latest = {}   # by node: the last /status, with its time
        self.registry = {}  # by key: the value
        self.tokens = {}   # by node: of explanations that it wrote since it was started
        self.threads = [threading.Thread(target=self._look, args=(node,), daemon=True) for node in fleet.nodes.values()]
        self.threads += [threading.Thread(target=each, daemon=True) for each in (self._follow, self._renew)]

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self._stop = True
        if self._watch:
            self._watch.kill()
        for thread in self.threads:
            thread.join()

    def _look(self, node):
        network.go_into(node.host.namespace)
        again = 0.0
        while not self._stop:
            time.sleep(0.25)
            if not node.runs():
                self.latest.pop(node.name, None)
                self.tokens.pop(node.name, None)
                continue
            pid = node.process.pid
            if time.monotonic() >= again:
                again = time.monotonic() + 1
                with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/statm", encoding="utf-8") as file:
                    self.say(node=node.name, pid=pid, rss=int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE"))
                if self.fleet.explains and node.roles & {"stream", "generate"}:
                    self._count_tokens(node, pid)
            with contextlib.suppress(OSError, ValueError):
                with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/status", timeout=3) as answer:
                    status = json.load(answer)
                cameras = {each["camera"]: [each["state"], each["frames"]] for each in status["cameras"]}
                self.latest[node.name] = (time.monotonic(), status)
                self.say(node=node.name, pid=pid, cameras=cameras, windows=status["windows"].get("answered", 0), pending=status["outbox"]["pending"])

    def _count_tokens(self, node, pid):
        with contextlib.suppress(OSError, ValueError):
            with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=3) as answer:
                lines = answer.read().decode().splitlines()
            self.tokens[node.name] = sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(TOKENS))
            self.say(node=node.name, pid=pid, tokens=self.tokens[node.name])

    def _follow(self):
        decode = lambda text: base64.b64decode(text).decode(errors="replace")  # noqa: E731
        while not self._stop:
            self._began = self.fleet.etcd.starts
            self._watch = subprocess.Popen(self.fleet.etcd.command("watch", "--prefix", f"/vigil/{FLEET}/", "-w", "json", "--rev", "1"),
                                           env={**os.environ, "ETCDCTL_API": "3"}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                           stdin=subprocess.PIPE, text=True)
            for line in self._watch.stdout:
                with contextlib.suppress(ValueError):
                    for event in json.loads(line).get("Events") or []:
                        key, value = decode(event["kv"]["key"]), decode(event["kv"].get("value", ""))
                        gone = event.get("type") == 1
                        if self.registry.get(key) != (None if gone else value):
                            self.registry[key] = None if gone else value
                            self.say(key=key, value=None if gone else value)
            self._watch.wait()
            time.sleep(0.2)

    def cameras(self, node):
        """State by camera, as that node said last."""
        latest = self.latest.get(node.name)
        return {each["camera"]: each["state"] for each in latest[1]["cameras"]} if latest else {}

    def _renew(self):
        """etcdctl goes on at the next revision whoever answers, and would hear nothing of an etcd that was set back."""
        while not self._stop:
            time.sleep(0.2)
            if self._watch and self._began != self.fleet.etcd.starts:
                self._watch.kill()

    def serves(self, node):
        """Of a gateway, whether it says so; of others, whether etcd has them."""
        record = self.record(node.name)
        return bool(record) and ("gateway" not in node.roles or record.get("serves", True))

    def record(self, name):
        """What etcd has of that node; empty if it is not there."""
        return json.loads(self.registry.get(f"/vigil/{FLEET}/nodes/{name}") or "{}")

    def planned(self):
        """What the plan has of each camera, with its owner as `node`: of the one with the highest fence."""
        best = {}
        for key, value in list(self.registry.items()):
            if value and key.startswith(f"/vigil/{FLEET}/plan/"):
                for camera, planned in json.loads(value)["cameras"].items():
                    if planned["fence"] > best.get(camera, {"fence": 0})["fence"]:
                        best[camera] = {**planned, "node": key.rsplit("/", 1)[1]}
        return best

    def owners(self):
        """The node by camera, by the plan."""
        return {camera: planned["node"] for camera, planned in self.planned().items()}

    def given(self, node):
        """The cameras with which the plan has that node do anything."""
        return [camera for camera, planned in self.planned().items()
                if node.name in (planned.get(place) for place in ("node", "vision", "stream", "generate"))]
