#!/usr/bin/env python3
"""Whether a running pipeline's memory stays as it is: starts `vigil run` with looped cameras of short windows and many alerts, samples /proc, and
prints the slope of its resident memory as one JSON line, with what it did meanwhile.

    loadtest/pipeline/memory.py --minutes 60 [--vigil build/release/bin/vigil] [--samples FILE] [VIDEO...]

The slope is that of a straight line through the samples after the warm-up (a tenth of the time, five minutes at most), in MiB an hour, with the
interval that holds it with 95 % under independent deviations. Needs nothing but Python's standard library.
"""

import argparse
import json
import math
import os
import platform
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Short files are opened and closed often, and rules that come and go make alerts, texts and writes to the outbox.
VIDEOS = ["tests/videos/car-detection.mp4", "tests/videos/one-by-one-person-detection.mp4", "tests/videos/bottle-detection.mp4", "tests/quality/scenes/1000046.mp4"]
RULES = {"person": "Is there a person in the room?", "car": "Is there a car?"}
HEALTH = re.compile(r'^(vigil_windows_total\{outcome="\w+"\}|vigil_alerts_total\{[^}]*\}|vigil_generation_tokens_total|vigil_frames_total\{[^}]*\}|vigil_frames_dropped_total\{[^}]*\}) (\S+)$', re.MULTILINE)


def configuration(videos, model, folder, ports):
    cameras = {f"camera-{i}": {"url": str(Path(video).resolve())} for i, video in enumerate(videos)}
    rules = [{"name": name, "prompt": prompt, "cooldown": "2s", "max_per_hour": 3600, "explain": True, "max_tokens": 24} for name, prompt in RULES.items()]
    return {"model": str(Path(model).resolve()), "defaults": {"window": {"length": "6s", "stride": "2s"}}, "cameras": cameras, "rules": rules,
            "alerts": {"bind": f"tcp://127.0.0.1:{ports[0]}", "replay": f"tcp://127.0.0.1:{ports[1]}", "outbox": str(folder / "outbox"), "retention": "5m"},
            "metrics": {"listen": f"127.0.0.1:{ports[2]}"}}


def sample(pid, begin):
    status = dict(re.findall(r"^(\w+):\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
    times = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = os.sysconf("SC_CLK_TCK")
    return {"seconds": round(time.monotonic() - begin, 1), "rss_mib": int(status["VmRSS"]) / 1024, "anonymous_mib": int(status["RssAnon"]) / 1024, "threads": int(status["Threads"]),
            "files": len(os.listdir(f"/proc/{pid}/fd")), "cpu_seconds": (int(times[11]) + int(times[12])) / ticks, "load": os.getloadavg()[0]}


def slope(samples, key):
    """MiB an hour and half of its 95 % interval."""
    hours, values = [s["seconds"] / 3600 for s in samples], [s[key] for s in samples]
    mean_hours, mean = statistics.mean(hours), statistics.mean(values)
    spread = sum((h - mean_hours) ** 2 for h in hours)
    rise = sum((h - mean_hours) * (v - mean) for h, v in zip(hours, values)) / spread
    rest = sum((v - mean - rise * (h - mean_hours)) ** 2 for h, v in zip(hours, values)) / (len(samples) - 2)
    return rise, 1.96 * math.sqrt(rest / spread)


def counters(port):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
    sums = {}
    for name, value in HEALTH.findall(text):
        name = re.sub(r"\{outcome=\"(\w+)\"\}", r" \1", name)
        name = re.sub(r"\{.*\}", "", name)
        sums[name] = sums.get(name, 0) + float(value)
    return sums


def machine():
    match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{match.group(1) if match else platform.processor()}, {os.cpu_count()} processors"


def interrupt(*_):
    raise KeyboardInterrupt


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("videos", nargs="*", metavar="VIDEO", default=[str(ROOT / video) for video in VIDEOS], help="the cameras, looped (default: the clips and a scene of tests/)")
    parser.add_argument("--vigil", default=str(ROOT / "build/release/bin/vigil"))
    parser.add_argument("--model", default=str(ROOT / "models/demo"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=10, help="seconds between samples")
    parser.add_argument("--samples", help="also write every sample, a JSON line each, to this file")
    parser.add_argument("--port", type=int, default=5640, help="this one and the two after it are used")
    arguments = parser.parse_args()
    warmup = min(300, arguments.minutes * 6)
    if arguments.minutes * 60 - warmup < 5 * arguments.every:
        parser.error("too short for a slope: --minutes or --every has to change")

    with tempfile.TemporaryDirectory(prefix="vigil-memory-") as name:
        folder = Path(name)
        ports = [arguments.port, arguments.port + 1, arguments.port + 2]
        config = folder / "config.yaml"
        config.write_text(json.dumps(configuration(arguments.videos, arguments.model, folder, ports)))  # YAML holds JSON
        version = subprocess.run([arguments.vigil, "--version"], capture_output=True, text=True, check=True).stdout.strip()
        begin = time.monotonic()
        load_before = os.getloadavg()[0]
        samples, counts = [], {}
        # A shell lets background jobs ignore SIGINT; both end the watching, not the figures.
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, interrupt)
        log = open(folder / "log", "w+", encoding="utf-8")
        service = subprocess.Popen([arguments.vigil, "run", "--config", str(config)], stdout=log, stderr=log)
        try:
            out = open(arguments.samples, "w", encoding="utf-8") if arguments.samples else None
            while time.monotonic() - begin < arguments.minutes * 60:
                time.sleep(arguments.every)
                if service.poll() is not None:
                    log.seek(0)
                    sys.exit(f"memory.py: vigil run ended early, with status {service.returncode}: {log.read().strip()}")
                samples.append(sample(service.pid, begin))
                if out:
                    print(json.dumps(samples[-1]), file=out, flush=True)
            counts = counters(ports[2])
        except KeyboardInterrupt:
            print(f"memory.py: ends after {len(samples)} samples", file=sys.stderr)
        finally:
            service.send_signal(signal.SIGTERM)
            try:
                service.wait(30)
            except subprocess.TimeoutExpired:
                service.kill()
                service.wait()

    steady = [s for s in samples if s["seconds"] > warmup]
    if len(steady) < 5:
        sys.exit("memory.py: too few samples for a slope")
    rise, error = slope(steady, "rss_mib")
    quarter = max(1, len(steady) // 4)
    print(json.dumps({"bench": "memory", "unit": "MiB/h", "slope": round(rise, 3), "slope_95": [round(rise - error, 3), round(rise + error, 3)], "anonymous_slope": round(slope(steady, "anonymous_mib")[0], 3),
                      "minutes": round(samples[-1]["seconds"] / 60, 1), "warmup_seconds": warmup, "samples": len(steady), "first_quarter_mib": round(statistics.median(s["rss_mib"] for s in steady[:quarter]), 1),
                      "last_quarter_mib": round(statistics.median(s["rss_mib"] for s in steady[-quarter:]), 1), "most_mib": round(max(s["rss_mib"] for s in samples), 1),
                      "threads": [steady[0]["threads"], steady[-1]["threads"]], "files": [steady[0]["files"], steady[-1]["files"]], "processors_used": round(samples[-1]["cpu_seconds"] / samples[-1]["seconds"], 3),
                      "load_before": load_before, "load_mean": round(statistics.mean(s["load"] for s in samples), 2), "cameras": len(arguments.videos), "did": counts, "version": version, "machine": machine()}))


if __name__ == "__main__":
    main()
