#!/usr/bin/env python3
"""Plants secrets in every place of a configuration and of a command line that may hold one, and looks for them in all bytes that come out: the log in
both formats, what is served and published, what commands print, files and their names.

  leak_test.py VIGIL MODEL VIDEO
"""

import base64
import contextlib
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 90

USER = "visitor-Kx7"
PASSWORD = "p@ss/W0rd#%&"
PASTED = "pasted?W0rd"
# What a URL takes as it is; one with a PASTED in front of its host is refused.
TAKEN = "t@ken:W0rd"
TOKEN = "AbCdEf0123GhIjKl"
QUERY = "qT0kEn99zz"
VARIABLE = "fr0mEnv1ronment"
SECRETS = {"user": USER, "password": PASSWORD, "pasted password": PASTED, "password in a URL": TAKEN, "token in a path": TOKEN, "token in a query": QUERY,
           "environment variable": VARIABLE}

RULES = 'rules: [{name: car, prompt: "Is there a car?", threshold: 0, confirm: 1/1, cooldown: 1h}]'

# Within a text that is formatted.
DOUBLED = RULES.replace("{", "{{").replace("}", "}}")

CAMERAS = f"""
  served:
    url: "http://127.0.0.1:{{http}}/{TOKEN}/clip.mp4?auth={QUERY}"
    username: "{USER}"
    password: "{PASSWORD}"
    {DOUBLED}
  served-again:
    url: "http://{{quoted_user}}:{{quoted}}@127.0.0.1:{{http}}/{{{{VARIABLE}}}}/clip.mp4?{QUERY}"
    {DOUBLED}
  gone:
    url: "http://{USER}:{{quoted}}@127.0.0.1:{{http}}/{TOKEN}/none.mp4?password={PASTED}"
    {DOUBLED}
  locked:
    url: "http://{USER}:wrong-{{quoted}}@127.0.0.1:{{http}}/{TOKEN}/clip.mp4"
    {DOUBLED}
  refused:
    url: "rtsp://{USER}:{TAKEN}@127.0.0.1:{{closed}}/{TOKEN}?enableSrtp"
    {DOUBLED}
  fragment:
    url: "rtsp://127.0.0.1:{{closed}}/live#{TOKEN}"
    {DOUBLED}
  missing:
    url: "{{{{VARIABLE}}}}/clip.mp4"
    {DOUBLED}
  nobody:
    url: "rtsp://no-such-host.invalid/user={USER}_password={PASTED}_channel=1.sdp"
    {DOUBLED}
"""

CONFIGURATION = """
model: {model}
defaults:
  window: {{length: 4s, stride: 2s}}
  reconnect: {{min: 300ms, max: 1s}}
cameras: {cameras}
alerts:
  bind: "tcp://127.0.0.1:{alerts}"
  replay: "tcp://127.0.0.1:{replay}"
  outbox: outbox-{format}
  curve: {{secret_key_file: server.key, allow: ["{public}"]}}
evidence: {{enabled: true, dir: evidence, pre_roll: 0s, post_roll: 1s}}
metrics: {{listen: "127.0.0.1:{metrics}"}}
log: {{level: debug, format: {format}}}
"""

# Nothing of it can be used.
HOPELESS = f"""
model: m
mqtt: {{password: "{PASTED}"}}
cameras:
  a: {{url: "{USER}:{PASTED}@10.0.0.1/live"}}
  b: {{url: "rstp://{USER}:{PASTED}@10.0.0.1/{TOKEN}", username: "{USER}:x", password: "{PASTED}\\n"}}
  c: {{url: "rtsp://{USER}:{PASTED}@10.0.0.1:99999/{TOKEN}", labels: {{tenant: "{{VARIABLE}}", note: "of {{VARIABLE}}"}}}}
  d: {{url: ["{USER}:{PASTED}@h"], username: {{a: "{PASTED}"}}}}
  e: {{inputs: [{{path: "rtsp://{USER}:{PASTED}@h/live"}}]}}
  f: {{url: "{{VARIABLE}}/none.mp4", {RULES}}}
alerts: {{curve: {{secret_key_file: "{{key}}", allow: ["{{key}}"]}}}}
"""


def spellings(secret):
    quoted = urllib.parse.quote(secret, safe="")
    return {secret, quoted, quoted.lower(), urllib.parse.quote(secret), json.dumps(secret)[1:-1],
            base64.b64encode(secret.encode()).decode().rstrip("="),
            base64.b64encode(f"{USER}:{secret}".encode()).decode().rstrip("=")}


class Leaks:
    """Where a secret came out."""

    def __init__(self, secrets):
        self.known = {(name, each) for name, secret in secrets.items() for each in spellings(secret)}
        self.found = []
        self.looked_at = {}

    def look(self, where, content):
        data = content if isinstance(content, bytes) else content.encode()
        self.looked_at[where] = self.looked_at.get(where, 0) + len(data)
        for name, secret in self.known:
            at = data.find(secret.encode())
            if at >= 0:
                self.found.append(f"{where} shows a {name}: ...{data[max(0, at - 100):at + 60]!r}...")


def serve(port, video):
    """HTTP with a password and a token; every answer repeats what was asked for."""
    with open(video, "rb") as file:
        data = file.read()
    good = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):  # pylint: disable=invalid-name
            if self.headers.get("Authorization") != good:
                return self.answer(401, b"no: " + self.path.encode(), {"WWW-Authenticate": 'Basic realm="cameras"'})
            if not self.path.split("?")[0].endswith("/clip.mp4"):
                return self.answer(404, b"no: " + self.path.encode(), {})
            wanted = re.match(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
            begin = int(wanted[1]) if wanted else 0
            end = int(wanted[2]) + 1 if wanted and wanted[2] else len(data)
            extra = {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"} if wanted else {}
            return self.answer(206 if wanted else 200, data[begin:end], {"Accept-Ranges": "bytes", "Content-Type": "video/mp4", **extra})

        def answer(self, status, body, headers):
            self.send_response(status, f"about {self.path[:200]}")
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(body)

        def log_message(self, *_):  # pylint: disable=arguments-differ
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()


def page(port, name):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{name}", timeout=5) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError:
        return ""


def await_that(what, run, log, holds):
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if holds():
            return
        if run.poll() is not None:
            break
        time.sleep(0.05)
    with open(log, encoding="utf-8") as lines:
        sys.exit(f"leak_test: not within {PATIENCE} s, or vigil run has ended ({run.poll()}): {what}\n--- log\n{lines.read()}")


class Trial:
    def __init__(self, vigil, model, video, folder):
        self.vigil, self.folder = vigil, folder
        self.ports = dict(zip(("http", "closed", "alerts", "replay", "metrics"), free_ports(5)))
        serve(self.ports["http"], video)
        self.environment = {**os.environ, "VARIABLE": VARIABLE}
        self.public = self.command("keygen", "me.key").stdout.strip()
        self.server = self.command("keygen", "server.key").stdout.strip()
        with open(os.path.join(folder, "server.key"), encoding="ascii") as file:
            self.key = file.read().strip()
        with open(os.path.join(folder, "me.key"), encoding="ascii") as file:
            mine = file.read().strip()
        self.leaks = Leaks({**SECRETS, "secret key": self.key, "client's secret key": mine})
        cameras = CAMERAS.format(quoted=urllib.parse.quote(PASSWORD, safe=""), quoted_user=urllib.parse.quote(USER, safe=""), **self.ports)
        self.settings = {"model": os.path.abspath(model), "cameras": cameras, "public": self.public, **self.ports}

    def command(self, *arguments, told=False):
        done = subprocess.run([self.vigil, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=PATIENCE,
                              check=False)
        if told:
            self.leaks.look("vigil " + arguments[0], done.stdout + done.stderr)
        return done

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, form):
        name = f"{form}.yaml"
        self.write(name, CONFIGURATION.format(format=form, **self.settings))
        log = os.path.join(self.folder, f"{form}.log")
        with open(log, "w", encoding="utf-8") as file:
            run = subprocess.Popen([self.vigil, "run", "--config", name], cwd=self.folder, env=self.environment, stdout=file, stderr=file)
        return run, log

    def watch(self, *arguments):
        return self.command("watch", "--endpoint", f"tcp://127.0.0.1:{self.ports['alerts']}", "--server-key", self.server.split()[-1], "--key-file",
                            "me.key", "--output", "json", *arguments, told=True)

    def refuse_a_reload(self, run, log, form):
        self.write(f"{form}.yaml", HOPELESS.replace("{key}", self.key))
        await_that("a refused configuration", run, log, lambda: "not applied" in open(log, encoding="utf-8").read())

    def commands(self):
        self.write("hopeless.yaml", HOPELESS.replace("{key}", self.key))
        for more in ([], ["--effective"], ["--text-only"]):
            for name in ("hopeless.yaml", "json.yaml", "text.yaml"):
                self.command("check-config", name, *more, told=True)
        effective = self.command("check-config", "--effective", "--text-only", "json.yaml", told=True)
        if effective.returncode != 0 or "served-again" not in effective.stdout:
            sys.exit(f"leak_test: check-config --effective: {effective}")
        self.command("run", "--config", "hopeless.yaml", told=True)
        urls = [f"rtsp://{USER}:{PASTED}@127.0.0.1:{self.ports['closed']}/{TOKEN}?token={QUERY}",
                f"rtsp://{USER}:{TAKEN}@127.0.0.1:{self.ports['closed']}/{TOKEN}?token={QUERY}", f"{USER}:{PASTED}@127.0.0.1/{TOKEN}",
                f"rstp://{USER}:{PASTED}@h/{TOKEN}", f"http://{USER}:{TAKEN}@127.0.0.1:{self.ports['http']}/{TOKEN}/none.mp4?{QUERY}",
                f"http://127.0.0.1:{self.ports['http']}/{TOKEN}/clip.mp4?auth={QUERY}"]
        for url in urls:
            for arguments in (["ask", url, "Is there a car?", "--to", "1", "--model", self.settings["model"]], ["inspect", url],
                              ["bench", "cameras", url], ["inspect", "none.mp4", url], [url]):
                if self.command(*arguments, told=True).returncode == 0:
                    sys.exit(f"leak_test: {arguments} did not fail")
        for wrong in (["--server-key", self.key, "--key-file", "me.key"], ["--server-key", self.server, "--key-file", self.key]):
            self.command("watch", "--timeout", "1", *wrong, told=True)

    def files(self):
        for parent, folders, files in os.walk(self.folder):
            for name in folders + files:
                self.leaks.look("names of files", name)
            for name in files:
                if not name.endswith((".key", ".yaml")):
                    with open(os.path.join(parent, name), "rb") as file:
                        self.leaks.look("files", file.read())


def check_json(log):
    cameras = {"served", "gone", "locked", "refused", "missing"}
    with open(log, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            sys.exit(f"leak_test: a line of the log is no JSON: {line}")
        if not {"time", "level", "message"} <= entry.keys():
            sys.exit(f"leak_test: a line of the log lacks a field: {line}")
        named = re.match(r"camera ([\w-]+): ", entry["message"])
        if named and (entry.get("camera"), entry.get("tenant")) != (named[1], "default"):
            sys.exit(f"leak_test: the camera is in the message alone: {line}")
        cameras.discard(entry.get("camera"))
    if cameras:
        sys.exit(f"leak_test: the log has no line with these as its camera: {cameras}")
    if not lines or "watching 8 cameras" not in lines[0]:
        sys.exit(f"leak_test: the log does not begin with what is watched: {lines[:1]}")


def main():
    vigil, model, video = (os.path.abspath(each) for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(vigil, model, video, folder)
        metrics = trial.ports["metrics"]
        run, log = trial.start("json")
        text_run = None
        try:
            ready = r'vigil_evidence_clips_total\{state="ready"\} [1-9]'
            await_that("a clip", run, log, lambda: re.search(ready, page(metrics, "metrics")))
            for name in ("metrics", "status", "healthz", "readyz", "startupz"):
                trial.leaks.look("/" + name, page(metrics, name))
            trial.command("status", "--endpoint", f"http://127.0.0.1:{metrics}", told=True)
            live = trial.watch("", "--count", "6", "--timeout", "20")
            again = trial.watch("", "--since", "1h", "--count", "6", "--timeout", "20")
            if '"phase"' not in again.stdout or "camera" not in live.stdout:
                sys.exit(f"leak_test: no events: {live} {again}")
            trial.refuse_a_reload(run, log, "json")
            # Two at once are one, however long a busy machine takes between them. Of one kind, the system would make one of them.
            for each in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
                run.send_signal(each)
            if run.wait(timeout=PATIENCE) != 0:
                sys.exit(f"leak_test: two signals at once ended vigil run with {run.returncode}")
            check_json(log)
            text_run, text_log = trial.start("text")
            await_that("cameras that cannot be reached", text_run, text_log,
                       lambda: all(f"camera {name}: down" in open(text_log, encoding="utf-8").read()
                                   for name in ("gone", "locked", "refused", "fragment", "missing")))
            trial.refuse_a_reload(text_run, text_log, "text")
            text_run.send_signal(signal.SIGTERM)
            text_run.wait(timeout=PATIENCE)
        finally:
            for each in (run, text_run):
                if each:
                    each.kill()
        trial.write("json.yaml", CONFIGURATION.format(format="json", **trial.settings))
        trial.write("text.yaml", CONFIGURATION.format(format="text", **trial.settings))
        trial.commands()
        trial.files()
    print({where: length for where, length in trial.leaks.looked_at.items()})
    empty = [where for where, length in trial.leaks.looked_at.items() if length == 0]
    if empty:
        sys.exit(f"leak_test: nothing came out of {empty}")
    if trial.leaks.found:
        sys.exit("\n".join(sorted(set(trial.leaks.found))))


if __name__ == "__main__":
    main()
