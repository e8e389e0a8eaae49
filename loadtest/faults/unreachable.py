#!/usr/bin/env python3
"""What thousands of cameras that cannot be reached cost one that can: starts `vigil run` with so many cameras at refused ports, black holes (nobody
answers the connection), names that do not resolve and servers that accept and say nothing, in turns, and one camera that plays a file. Prints a JSON
line for each number of cameras.

    loadtest/faults/unreachable.py [--cameras 0 100 2000 10000] [--seconds 90] [--vigil build/release/bin/vigil] [--kinds refused,blackhole,name,mute] [--most-delay S]

`first_alert` is from the start of the process until a subscriber has the file camera's first alert; `delay`, how much later that is than with the first
number of cameras. With `--most-delay` the exit status says whether it stayed below, /healthz answered 200 throughout, and the end came within its grace.
Needs nothing but Python's standard library.
"""

import argparse
import contextlib
import json
import os
import platform
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
from free_ports import free_ports  # noqa: E402

VIDEO = ROOT / "tests/videos/one-by-one-person-detection.mp4"
GRACE = 10


def black_hole(stack):
    """The port of a listener whose queue is full: SYNs are dropped, as those to an address where nobody is."""
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    for _ in range(3):
        filler = stack.enter_context(socket.socket())
        filler.setblocking(False)
        filler.connect_ex(listener.getsockname())
    return listener.getsockname()[1]


def mute_server():
    """The port of a process that accepts and says nothing, and itself."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(4096)
    child = os.fork()
    if child:
        port = listener.getsockname()[1]
        listener.close()
        return port, child
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.fileobj is listener:
                connection, _ = listener.accept()
                selector.register(connection, selectors.EVENT_READ)
                continue
            try:
                data = key.fileobj.recv(4096)
            except OSError:
                data = b""
            if not data:
                selector.unregister(key.fileobj)
                key.fileobj.close()


def cameras_of(count, kinds, ports):
    url = {"refused": lambda i: f"rtsp://127.0.0.1:{ports['refused']}/{i}", "blackhole": lambda i: f"rtsp://127.0.0.1:{ports['blackhole']}/{i}",
           "name": lambda i: f"rtsp://camera-{i}.invalid/live", "mute": lambda i: f"rtsp://127.0.0.1:{ports['mute']}/{i}"}
    return {f"lost-{i:05}": {"url": url[kinds[i % len(kinds)]](i)} for i in range(count)}


def configuration(cameras, model, folder, ports):
    rule = {"name": "person", "prompt": "Is there a person in the room?", "confirm": "2/2", "cooldown": "2s", "max_per_hour": 3600}
    healthy = {"url": str(VIDEO), "rules": [rule]}
    return {"model": str(Path(model).resolve()), "defaults": {"window": {"length": "6s", "stride": "2s"}},
            # In the order of names it is the last one.
            "cameras": {**{name: {**camera, "rules": [rule]} for name, camera in cameras.items()}, "meeting-room": healthy},
            "alerts": {"bind": f"tcp://127.0.0.1:{ports[0]}", "replay": f"tcp://127.0.0.1:{ports[1]}", "outbox": str(folder / "outbox")},
            "metrics": {"listen": f"127.0.0.1:{ports[2]}"}, "shutdown_grace": f"{GRACE}s"}


def get(url, timeout):
    """The status (0: none came), the seconds that it took, and the body."""
    begin = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=timeout) as answer:
            return answer.status, time.monotonic() - begin, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, time.monotonic() - begin, ""
    except OSError:
        return 0, time.monotonic() - begin, ""


class Sampler(threading.Thread):
    """Probes /healthz ten times a second, and samples the process four times a second."""

    def __init__(self, pid, base):
        super().__init__(daemon=True)
        self.pid, self.base, self.done = pid, base, threading.Event()
        self.health, self.most = {}, {"threads": 0, "rss_mib": 0, "files": 0}
        self.slowest, self.answered, self.last_threads = 0, False, 0

    def run(self):
        turn = 0
        while not self.done.wait(0.1):
            status, seconds, _ = get(self.base + "/healthz", 5)
            # Until it listens, nobody can be asked.
            self.answered |= status != 0
            if self.answered:
                self.health[status] = self.health.get(status, 0) + 1
                self.slowest = max(self.slowest, seconds)
            turn += 1
            if turn % 3:
                continue
            with contextlib.suppress(OSError, KeyError):
                fields = dict(re.findall(r"^(\w+):\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text(), re.MULTILINE))
                self.last_threads = int(fields["Threads"])
                now = {"threads": self.last_threads, "rss_mib": int(fields["VmRSS"]) // 1024, "files": len(os.listdir(f"/proc/{self.pid}/fd"))}
                self.most = {key: max(value, self.most[key]) for key, value in now.items()}


class Watcher(threading.Thread):
    """A subscriber of everything."""

    def __init__(self, vigil, endpoint):
        super().__init__(daemon=True)
        self.process = subprocess.Popen([vigil, "watch", "--endpoint", endpoint, "--output", "json", ""], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.first_alert, self.alerts, self.states, self.last_status = None, 0, {}, None

    def run(self):
        for line in self.process.stdout:
            data = json.loads(line)["data"]
            if "rule" in data:
                self.alerts += 1
                self.first_alert = self.first_alert or time.monotonic()
            else:
                self.states[data["state"]] = self.states.get(data["state"], 0) + 1
                self.last_status = time.monotonic()


def cpu_seconds(pid):
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


def figure(text, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0


def await_reload(base, applied, patience):
    begin = time.monotonic()
    while time.monotonic() - begin < patience:
        if figure(get(base + "/metrics", 30)[2], 'vigil_config_reloads_total{result="applied"}') > applied:
            return round(time.monotonic() - begin, 2)
        time.sleep(0.2)
    return None


def measure(count, kinds, arguments, ports_of):
    with tempfile.TemporaryDirectory() as folder:
        folder, ports = Path(folder), free_ports(3)
        cameras = cameras_of(count, kinds, ports_of)
        file, log = folder / "vigil.json", folder / "log"
        file.write_text(json.dumps(configuration(cameras, arguments.model, folder, ports)))
        watcher = Watcher(arguments.vigil, f"tcp://127.0.0.1:{ports[0]}")
        watcher.start()
        base = f"http://127.0.0.1:{ports[2]}"
        with open(log, "w") as stderr:
            begin = time.monotonic()
            process = subprocess.Popen([arguments.vigil, "run", "--config", str(file)], stderr=stderr)
        sampler = Sampler(process.pid, base)
        sampler.start()
        started = None
        while time.monotonic() - begin < arguments.seconds:
            if started is None and get(base + "/startupz", 5)[0] == 200:
                started = time.monotonic() - begin
            time.sleep(0.2)
        cpu = cpu_seconds(process.pid)
        steady = time.monotonic()
        time.sleep(10)
        steady_cpu = (cpu_seconds(process.pid) - cpu) / (time.monotonic() - steady)
        steady_threads = sampler.last_threads
        metrics, status = get(base + "/metrics", 30), get(base + "/status", 30)
        # One camera fewer, one more, and one with another rule.
        changed = dict(list(cameras.items())[1:])
        changed["new"] = {"url": f"rtsp://127.0.0.1:{ports_of['refused']}/new"}
        applied = figure(metrics[2], 'vigil_config_reloads_total{result="applied"}')
        temporary = folder / "next.json"
        temporary.write_text(json.dumps(configuration(changed, arguments.model, folder, ports)))
        temporary.rename(file)
        reload_seconds = await_reload(base, applied, 60)
        sampler.done.set()
        sampler.join()
        stopped = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(GRACE + 20)
        except subprocess.TimeoutExpired:
            process.kill()
            code = None
        drained = time.monotonic() - stopped
        watcher.process.terminate()
        lines = log.read_text().count("\n")
        if arguments.log:
            Path(arguments.log).write_text(log.read_text())
        rounded = lambda value: None if value is None else round(value, 2)  # noqa: E731
        return {"cameras": count, "kinds": kinds if count else [], "first_alert": rounded(watcher.first_alert and watcher.first_alert - begin), "started": rounded(started),
                "alerts": watcher.alerts, "status_events": watcher.states, "last_status": rounded(watcher.last_status and watcher.last_status - begin),
                "healthz": {str(key): value for key, value in sampler.health.items()}, "healthz_slowest": rounded(sampler.slowest),
                **{f"most_{key}": value for key, value in sampler.most.items()}, "steady_threads": steady_threads, "cpu_seconds": rounded(cpu), "steady_cpus": rounded(steady_cpu),
                "metrics_seconds": rounded(metrics[1]), "metrics_bytes": len(metrics[2]), "status_seconds": rounded(status[1]), "log_lines": lines,
                "retries": sum(float(value) for value in re.findall(r"^vigil_camera_reconnects_total\S* (\S+)$", metrics[2], re.MULTILINE)),
                "reload_seconds": reload_seconds, "drain_seconds": rounded(drained), "exit": code}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cameras", type=int, nargs="+", default=[0, 100, 2000, 10000])
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--kinds", default="refused,blackhole,name,mute")
    parser.add_argument("--vigil", default=str(ROOT / "build/release/bin/vigil"))
    parser.add_argument("--model", default=str(ROOT / "models/demo"))
    parser.add_argument("--log", help="where the last run's log goes")
    parser.add_argument("--most-delay", type=float)
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))
    bad = []
    with contextlib.ExitStack() as stack:
        mute, child = mute_server()
        stack.callback(lambda: os.kill(child, signal.SIGKILL))
        ports_of = {"refused": free_ports(1)[0], "blackhole": black_hole(stack), "mute": mute}
        first = None
        for count in arguments.cameras:
            result = measure(count, arguments.kinds.split(","), arguments, ports_of)
            first = first or result["first_alert"]
            result["delay"] = None if result["first_alert"] is None or first is None else round(result["first_alert"] - first, 2)
            result["machine"] = f"{platform.node()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}"
            print(json.dumps(result), flush=True)
            if result["delay"] is None or (arguments.most_delay is not None and result["delay"] > arguments.most_delay):
                bad.append(f"{count} cameras delay the first alert by {result['delay']} s")
            if set(result["healthz"]) != {"200"}:
                bad.append(f"/healthz with {count} cameras: {result['healthz']}")
            if result["exit"] != 0 or result["drain_seconds"] > GRACE:
                bad.append(f"the end with {count} cameras: exit {result['exit']} after {result['drain_seconds']} s")
    if arguments.most_delay is not None and bad:
        sys.exit("\n".join(bad))


if __name__ == "__main__":
    main()
