"""`vigil run` over some scenes of service.py, and what is asked of it."""

import datetime
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

# Below those that the kernel gives to whoever connects: on a machine full of askers one of these is somebody's soon.
FIRST_PORT, PORTS = 20000, 12000


def told(moment):
    return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def ports(count, first):
    """Ports of this machine from `first` on that nobody listens on."""
    found = []
    for port in (FIRST_PORT + (first + step) % PORTS for step in range(PORTS)):
        with socket.socket() as held:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                held.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise SystemExit(f"service: this machine has not {count} free ports")


def program_of(text):
    """The words of a command, the first with its folder, so that it can be started from anywhere."""
    words = shlex.split(text)
    first = shutil.which(words[0]) if words else None
    if not first:
        raise SystemExit(f"service: there is no program {text}")
    return [str(Path(first).absolute()), *words[1:]]


def methods_of(program):
    """The methods that the program's `ask` takes."""
    page = subprocess.run([*program, "ask", "--help"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"--method\b[^{\n]*\{([^}]*)\}", page)
    if not found:
        raise SystemExit(f"service: {shlex.join(program)} ask --help tells of no methods")
    return found.group(1).split(",")


class Service:
    """`args`: out, program (words), model, pace, device. Cameras are named after the seeds of their scenes. Of one thread; whoever starts it stops it."""

    def __init__(self, args, folder, scenes):
        self.args, self.folder, self.scenes, self.process = args, folder, scenes, None

    def configure(self, watches):
        self.alerts, self.replay, self.asks, self.metrics = ports(4, 20 * int(re.sub(r"\D", "", self.folder.name) or 0))
        one = {"name": "person", "prompt": "Is a person present?"}
        cameras = {str(seed): {"url": str((self.args.out / "scenes" / f"{seed}.mp4").resolve()), "enabled": watches, "rules": [one]} for seed in self.scenes}
        if not watches:
            # A service watches at least one camera; this one never comes.
            cameras["nobody"] = {"url": "rtsp://127.0.0.1:9/nobody", "keep": "off", "rules": [one]}
        loopback = "tcp://127.0.0.1:"
        # No more room than these cameras need: others may be on the same GPU.
        engine = {"kv_tokens": 8192 * (len(self.scenes) + 1), "device": self.args.device}
        (self.folder / "vigil.yaml").write_text(json.dumps({
            "model": str(Path(self.args.model).resolve()), "engine": engine, "cameras": cameras,
            "defaults": {"fps": 2, "window": {"length": "40s", "stride": "8s"}, "pace": self.args.pace, "loop": False, "keep": "168h"},
            "memory": {"enabled": True, "dir": "memory"}, "asks": {"bind": f"{loopback}{self.asks}"}, "metrics": {"listen": f"127.0.0.1:{self.metrics}"},
            "alerts": {"bind": f"{loopback}{self.alerts}", "replay": f"{loopback}{self.replay}", "outbox": "outbox"}, "log": {"level": "warn"}}, indent=1) + "\n")
        return self.folder / "vigil.yaml"

    def start(self, watches):
        path = self.configure(watches)
        # Threads that spin while they wait take the processor from whoever has work on a machine of two cores.
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.args.program, "run", "--config", str(path)], stdout=log, stderr=log, env=os.environ | {"OMP_WAIT_POLICY": "passive"})

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()

    def check(self):
        if self.process.poll() is not None:
            raise SystemExit(f"service: vigil run ended: {(self.folder / 'log').read_text()[-2000:]}")

    def figures(self):
        """Sums over all series of some metrics; None while none are told."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=5) as answer:
                page = answer.read().decode()
        except OSError:
            return None
        sums = {}
        for name, figure in re.findall(r"^(vigil_(?:frames_total|frames_dropped_total|windows_total|memory_pages_total))(?:\{[^}]*\})? (\S+)$", page, re.MULTILINE):
            sums[name] = sums.get(name, 0.0) + float(figure)
        return sums

    def run_all(self, commands, timeout="600s"):
        """What each of them tells, of as many as there are at once; none goes on where this is stopped."""
        rest = ("--connect", f"tcp://127.0.0.1:{self.asks}", "--timeout", timeout, "--output", "json")
        under_way = [subprocess.Popen([*self.args.program, *command, *rest], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
        try:
            told_of = [process.communicate() for process in under_way]
        except BaseException:
            for process in under_way:
                process.kill()
            raise
        # 3: nothing was there to answer by, which is an answer, too.
        return [json.loads(said) if process.returncode in (0, 3) else {"failed": wrong.strip()} for process, (said, wrong) in zip(under_way, told_of)]

    def run(self, *arguments, timeout="600s"):
        return self.run_all([arguments], timeout)[0]

    def await_cameras(self):
        while True:
            self.check()
            found = self.run("memory", "list", timeout="10s")
            if "failed" not in found:
                return {each["camera"]: each for each in found["cameras"]}
            time.sleep(.2)

    def ask(self, camera, text, about, since, until, method):
        return self.ask_spans(camera, text, about, [(since, until)], method)[0]

    def ask_spans(self, camera, text, about, spans, method):
        """The same of several spans, all at once."""
        return self.run_all([("ask", "--camera", camera, text, *(("--about", about) if about else ()), "--since", told(since), "--until", told(until), "--method", method) for since, until in spans])
