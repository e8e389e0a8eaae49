#!/usr/bin/env python3
"""vigil run with more cameras than it may have files open says at its start how many it can hold, watches what it can, and a camera that
waits for another's descriptor is opened when that one is gone from the configuration.

  descriptors_test.py VIGIL MODEL VIDEO
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60
LIMIT = 140  # of which the half is for cameras
HELD = LIMIT // 2
CAMERAS = HELD + 5


def check(holds, what):
    if not holds:
        sys.exit(f"descriptors_test: {what}")


def configuration(model, video, folder, ports, cameras):
    lines = [f"model: {model}", "defaults: {fps: 1, window: {length: 60s, stride: 30s}}",
             f'alerts: {{bind: "tcp://127.0.0.1:{ports[0]}", replay: "ipc://{folder}/replay", outbox: {folder}/outbox}}',
             f'metrics: {{listen: "127.0.0.1:{ports[1]}"}}', "cameras:"]
    lines += [f'  c{i:03}: {{url: {video}, rules: [{{name: person, prompt: "Is there a person in the room?"}}]}}' for i in cameras]
    with open(f"{folder}/next.yaml", "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    os.rename(f"{folder}/next.yaml", f"{folder}/vigil.yaml")


def up(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {line.split('"')[1] for line in lines if line.startswith("vigil_camera_up{") and line.endswith(" 1")}


def await_up(port, holds, what):
    end = time.monotonic() + PATIENCE
    names = set()
    while time.monotonic() < end:
        try:
            names = up(port)
        except OSError:
            names = set()
        if holds(names):
            return names
        time.sleep(0.1)
    sys.exit(f"descriptors_test: {what}: {sorted(names)}")


def main(vigil, model, video):
    ports = free_ports(2)
    with tempfile.TemporaryDirectory() as folder:
        configuration(model, video, folder, ports, range(CAMERAS))
        with open(f"{folder}/log", "w", encoding="utf-8") as log:
            process = subprocess.Popen([vigil, "run", "--config", f"{folder}/vigil.yaml"], stderr=log,
                                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)))
        try:
            first = await_up(ports[1], lambda names: len(names) == HELD, "not as many cameras are watched as there is room for")
            # Others follow when some are gone.
            gone = sorted(first)[:5]
            rest = [i for i in range(CAMERAS) if f"c{i:03}" not in gone]
            configuration(model, video, folder, ports, rest)
            await_up(ports[1], lambda names: names == {f"c{i:03}" for i in rest}, "those that waited are not watched")
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE)
        with open(f"{folder}/log", encoding="utf-8") as file:
            log = file.read()
        said = f"a limit of {LIMIT} open files leaves {HELD} for cameras, which is enough for {HELD} of {CAMERAS} at a time"
        check(log.count(said) == 1, f"it does not say what it can hold:\n{log}")
        check(log.count(f"all {HELD} file descriptors for cameras are in use") == CAMERAS - HELD, f"it does not say who waits, once each:\n{log}")
        check("no file descriptor is left" not in log, f"it took more than its share:\n{log}")
        check(status == 0, f"exit status {status}:\n{log}")


if __name__ == "__main__":
    main(*sys.argv[1:])
