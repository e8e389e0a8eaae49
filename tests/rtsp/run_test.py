#!/usr/bin/python3
"""vigil run against an RTSP server with a password: states on /metrics and on the status topics, no credentials anywhere.

  run_test.py VIGIL MODEL      Exit status 77: something that it needs is not installed.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.dirname(HERE))

from free_ports import free_ports  # noqa: E402

PASSWORD = "hunter2-%&"
PATIENCE = 60

CONFIGURATION = """
model: {model}
defaults:
  window: {{length: 4s, stride: 2s}}
  reconnect: {{min: 200ms, max: 1s}}
  stall_after: 1s
cameras:
  gate:
    inputs:
      - url: "rtsp://viewer:{{GATE_PASSWORD}}@127.0.0.1:{rtsp}/live"
      - {{url: "rtsp://viewer:{{GATE_PASSWORD}}@127.0.0.1:{rtsp}/vp8", roles: [record]}}
    rules: [{{name: ball, prompt: "Is there a ball?", threshold: 0, confirm: 1/1}}]
  locked:
    url: "rtsp://127.0.0.1:{rtsp}/live?user=viewer&password={{WRONG_PASSWORD}}"
    rules: [{{name: ball, prompt: "Is there a ball?"}}]
  yard:
    url: "rtsp://viewer:{{GATE_PASSWORD}}@127.0.0.1:{rtsp}/only-udp"
    transport: udp
    rules: [{{name: ball, prompt: "Is there a ball?"}}]
alerts: {{bind: "tcp://127.0.0.1:{alerts}", outbox: outbox}}
evidence: {{enabled: true, dir: evidence, pre_roll: 0s, post_roll: 1s}}
metrics: {{listen: "127.0.0.1:{metrics}"}}
log: {{level: debug}}
"""


def serve(port):
    server = subprocess.Popen(["/usr/bin/python3", os.path.join(HERE, "server.py"), "--port", str(port), "--user", "viewer",
                               "--password", PASSWORD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if not server.stdout.readline().startswith("port"):
        sys.exit("GStreamer's RTSP server does not start")
    return server


def page(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def await_metrics(run, port, what, holds):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and run.poll() is None:
        text = page(port)
        if holds(text):
            return
        time.sleep(0.05)
    cameras = "\n".join(line for line in page(port).splitlines() if line.startswith("vigil_camera_"))
    how = f"not within {PATIENCE} s" if run.poll() is None else f"vigil run ended with {run.poll()} before this"
    raise TimeoutError(f"{how}: {what}\n{cameras}")


def is_up(text, camera, up):
    return re.search(rf'^vigil_camera_up{{camera="{camera}",tenant="[^"]*"}} {up}$', text, re.MULTILINE)


def is_recorded(text, recorded):
    return re.search(rf'^vigil_camera_recording{{camera="gate",tenant="[^"]*"}} {recorded}$', text, re.MULTILINE)


def main():
    vigil, model = sys.argv[1:]
    try:
        import gi  # pylint: disable=import-outside-toplevel
        gi.require_version("GstRtspServer", "1.0")
    except (ImportError, ValueError) as missing:
        print(f"skipped: GStreamer's RTSP server is not installed: {missing}")
        sys.exit(77)
    ports = dict(zip(("rtsp", "alerts", "metrics"), free_ports(3)))
    server = serve(ports["rtsp"])
    with tempfile.TemporaryDirectory() as folder:
        configuration = os.path.join(folder, "vigil.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(model=os.path.abspath(model), **ports))
        quoted = PASSWORD.replace("%", "%25").replace("&", "%26")
        environment = {**os.environ, "GATE_PASSWORD": quoted, "WRONG_PASSWORD": "swordfish"}
        log = open(os.path.join(folder, "log"), "w+", encoding="utf-8")
        run = subprocess.Popen([vigil, "run", "--config", configuration], env=environment, stdout=log, stderr=log)
        watch = subprocess.Popen([vigil, "watch", "--endpoint", f"tcp://127.0.0.1:{ports['alerts']}", "--output", "json", "status/", "alert/"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            metrics = ports["metrics"]
            await_metrics(run, metrics, "cameras up, one refused", lambda text: is_up(text, "gate", 1) and is_up(text, "yard", 1) and
                          is_up(text, "locked", 0))
            await_metrics(run, metrics, "the other input recorded, of gate alone", lambda text: is_recorded(text, 1) and
                          text.count("vigil_camera_recording{") == 1)
            await_metrics(run, metrics, "a clip", lambda text: re.search(r'evidence_clips_total{state="ready"} [1-9]', text))
            await_metrics(run, metrics, "windows answered", lambda text: re.search(r'windows_total{outcome="answered"} [1-9]', text))
            server.kill()
            server.wait()
            await_metrics(run, metrics, "cameras down", lambda text: is_up(text, "gate", 0) and is_up(text, "yard", 0) and
                          is_recorded(text, 0))
            server = serve(ports["rtsp"])
            await_metrics(run, metrics, "cameras up again", lambda text: is_up(text, "gate", 1) and is_up(text, "yard", 1) and
                          is_recorded(text, 1))
            seen = page(metrics)
            run.send_signal(signal.SIGTERM)
            status = run.wait(timeout=PATIENCE)
        except TimeoutError as told:
            log.seek(0)
            sys.exit(f"{told}\n--- log\n{log.read()}")
        finally:
            run.kill()
            watch.send_signal(signal.SIGINT)
            server.kill()
        events = watch.communicate(timeout=PATIENCE)[0]
        log.seek(0)
        lines = log.read()
    problems = []
    if status != 0:
        problems.append(f"exit status {status}")
    if "401 Unauthorized" not in lines:
        problems.append("the log does not name the refusal")
    # VP8, which MP4 does not take.
    if not re.search(r'"clip":"gate/[^"]*\.mkv"', events.replace(" ", "")):
        problems.append("no clip of the input that is recorded")
    if '"state":"up"' not in events.replace(" ", ""):
        problems.append("no camera is told to be up")
    for name, text in (("metrics", seen), ("log", lines), ("events", events)):
        for secret in (PASSWORD, quoted, "swordfish"):
            if secret in text:
                problems.append(f"the {name} show a password")
    if problems:
        sys.exit("\n".join(problems) + f"\n--- log\n{lines}\n--- events\n{events}")


if __name__ == "__main__":
    main()
