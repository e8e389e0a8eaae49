#!/usr/bin/env python3
"""How `vigil run` ends when it is asked to: a run that was to play every file once says that it has not, and has failed; one that would go on
for ever has done what it was asked, also if a library has a thread of its own (EARLY_THREAD, preloaded) and the environment is prepared already.

  ending_test.py VIGIL MODEL VIDEO [EARLY_THREAD]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60
LINE = "vigil: ended by a signal, before every file was played to its end"


def check(holds, what):
    if not holds:
        sys.exit(f"ending_test: {what}")


def await_up(process, port):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as page:
                if re.search(r'^vigil_camera_up\{camera="gate".*\} 1$', page.read().decode(), re.M):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit("ending_test: the camera does not come up")


def ended(vigil, model, video, *arguments, environment=None):
    with tempfile.TemporaryDirectory() as folder:
        ports = free_ports(2)
        with open(f"{folder}/vigil.yaml", "w", encoding="utf-8") as file:
            file.write(f'model: {model}\nalerts: {{bind: "tcp://127.0.0.1:{ports[0]}", replay: "ipc://{folder}/replay", outbox: {folder}/outbox}}\n'
                       f'metrics: {{listen: "127.0.0.1:{ports[1]}"}}\n'
                       f'cameras: {{gate: {{url: {video}, rules: [{{name: person, prompt: "Is there a person?"}}]}}}}\n')
        process = subprocess.Popen([vigil, "run", "--config", f"{folder}/vigil.yaml", "--pace", "realtime", *arguments],
                                   stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(environment or {})})
        try:
            await_up(process, ports[1])
            process.send_signal(signal.SIGTERM)
            said = process.communicate(timeout=PATIENCE)[1]
        finally:
            process.kill()
        return process.returncode, said


def main(vigil, model, video, early_thread=None):
    status, said = ended(vigil, model, video, "--once")
    check(status == 1 and LINE in said.splitlines(), f"files that were not played to their ends: status {status}\n{said}")
    status, said = ended(vigil, model, video)
    check(status == 0 and LINE not in said, f"a run that goes on until it is asked to end: status {status}\n{said}")
    if early_thread is not None:
        status, said = ended(vigil, model, video, environment={"OMP_WAIT_POLICY": "passive", "LD_PRELOAD": early_thread})
        check(status == 0, f"a run with a thread that a library has started: status {status}\n{said}")


main(*sys.argv[1:])
