"""`vigil run` on two files that play for ever, and what may be asked of it."""

import json
import os
import urllib.error
import urllib.request

import faults

CAMERAS = {"room": ("tests/videos/one-by-one-person-detection.mp4", "person", "Is there a person in the room?"),
           "lot": ("tests/videos/car-detection.mp4", "car", "Is there a car?")}
SHARED = ("staff", "guards")

# Windows of one second, and each that counts is told: as many episodes as can be had of a minute.
CAMERA = """
  {name}:
    url: {video}
    window: {{length: 2s, stride: 1s}}
    pace: {pace}
    labels: {{tenant: demo}}
    rules: [{{name: {rule}, prompt: "{prompt}", cooldown: 0s, confirm: 1/1, max_per_hour: 10000, topics: [{shared}]}}]
"""
CONFIGURATION = """
model: {model}
cameras:{cameras}
alerts: {{bind: "{events}", replay: "{replay}", outbox: {folder}/outbox, retention: 7d}}
evidence: {{enabled: true, dir: {folder}/evidence, budget: 4GiB, max_age: 7d, pre_roll: 1s, post_roll: {post_roll}}}
metrics: {{listen: "{metrics}"}}
log: {{level: warn}}
shutdown_grace: 5s
"""


class Site:
    """A folder with a configuration, an outbox and evidence, which outlive the processes that are started on it."""

    def __init__(self, options, folder, metrics="", events=None, replay=None):
        self.vigil = faults.program(options, "vigil")
        self.folder = folder
        self.events = events or f"ipc://{folder}/events"
        self.replay = replay or f"ipc://{folder}/replay"
        self.metrics = metrics
        self.configuration = os.path.join(folder, "vigil.yaml")
        self.log = os.path.join(folder, "log")

    def start(self, post_roll="500ms", quiet=False, pace="realtime", environment=None, limit=None):
        """A process (faults.Process) with a log of its own; quiet: its cameras cannot be opened."""
        cameras = "".join(CAMERA.format(name=name, video=os.path.join(faults.SOURCE, "none.mp4" if quiet else video), rule=rule, prompt=prompt, pace=pace,
                                        shared=", ".join(SHARED))
                          for name, (video, rule, prompt) in CAMERAS.items())
        with open(self.configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(model=os.path.join(faults.SOURCE, "models/demo"), cameras=cameras, events=self.events,
                                            replay=self.replay, folder=self.folder, post_roll=post_roll, metrics=self.metrics))
        open(self.log, "w", encoding="utf-8").close()
        return faults.Process([self.vigil, "run", "--config", self.configuration], self.log,
                              {"OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1", **(environment or {})}, limit)

    def evidence_files(self):
        found = {}
        for path, _, names in os.walk(os.path.join(self.folder, "evidence")):
            for name in names:
                if not name.startswith("."):
                    full = os.path.join(path, name)
                    found[os.path.relpath(full, os.path.join(self.folder, "evidence"))] = os.path.getsize(full)
        return found

    def get(self, path, patience=5):
        """Status and body, or None and the reason."""
        try:
            with urllib.request.urlopen(f"http://{self.metrics}{path}", timeout=patience) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, ""
        except OSError as error:
            return None, str(error)


def alert(event):
    """The data of an alert, None of another event."""
    body = json.loads(event.body)
    return body["data"] if body["type"] == "dev.vigil.alert.v1" else None


def check_evidence(site, kept):
    """Throws Failure unless each clip that was promised is settled, and each that is ready is there. Returns how many are ready."""
    last = {}
    for event in kept:
        data = alert(event)
        if data and "evidence" in data:
            last[(event.topic, data["episode"])] = data
    files = site.evidence_files()
    pending = [place for place, data in last.items() if data["evidence"]["clip_state"] == "pending"]
    if pending:
        raise faults.Failure(f"{len(pending)} of {len(last)} episodes wait for their clip for ever, such as {pending[0]}")
    ready = [data["evidence"] for data in last.values() if data["evidence"]["clip_state"] == "ready"]
    for evidence in ready:
        for name in filter(None, (evidence["clip"], evidence.get("thumb"))):
            if name not in files:
                raise faults.Failure(f"evidence that is ready is gone: {name}")
        if files[evidence["clip"]] != evidence["bytes"]:
            raise faults.Failure(f"{evidence['clip']} has {files[evidence['clip']]} bytes, not {evidence['bytes']}")
    return len(ready)


def check_copies(kept):
    """Throws Failure unless each alert is on all its topics, with one content for each source and id."""
    places = {}
    contents = {}
    for event in kept:
        data = alert(event)
        body = json.loads(event.body)
        name = (body["source"], body["id"])
        body["data"].pop("seq", None)
        if contents.setdefault(name, body) != body:
            raise faults.Failure(f"two events have the source and id {name}; one is on {event.topic}")
        if data:
            places.setdefault(name, set()).add(event.topic)
    missing = []
    for (source, name), topics in places.items():
        rest = "/".join(next(iter(topics)).split("/")[-4:])
        wanted = {f"alert/{rest}", *(f"topic/{each}/{rest}" for each in SHARED)}
        if topics != wanted:
            missing.append((name, sorted(wanted - topics)))
    if missing:
        raise faults.Failure(f"{len(missing)} of {len(places)} alerts are not on all of their topics, such as {missing[0]}")
