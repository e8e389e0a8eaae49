"""A Prometheus for a test, with the rules of helm/vigil/rules/, and what a dashboard asks it."""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from names import RULES, read

# What a dashboard shows, in seconds.
SPAN = 60

SCRAPING = """
global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}
rule_files: {rules}
scrape_configs:
  - job_name: vigil
    static_configs: {targets}
"""


class Processes:
    """Programs that run beside a test, each with a log in a folder; they end with the block, or with the test."""

    def __init__(self):
        self.stack = contextlib.ExitStack()
        self.running = {}

    def __enter__(self):
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        return self

    def __exit__(self, *what):
        self.stack.close()

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, name, command, **more):
        log = self.stack.enter_context(open(os.path.join(self.folder, name + ".log"), "w", encoding="utf-8"))
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT,
                                   preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL), **{"stdin": subprocess.DEVNULL, **more})
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        self.running[name] = process

    def check(self):
        for name, process in self.running.items():
            if process.poll() is not None:
                sys.exit(f"{name} ended with {process.returncode}:\n{read(os.path.join(self.folder, name + '.log'))[-2000:]}")


def start_prometheus(processes, port, targets):
    """Scrapes these ports every second, which may have labels, and computes all rules as often. Ends the test where there is no Prometheus."""
    if not shutil.which("prometheus"):
        print("skipped: no prometheus (scripts/dependencies --faults)")
        sys.exit(77)
    labels = targets if isinstance(targets, dict) else dict.fromkeys(targets, {})
    static = [{"targets": [f"127.0.0.1:{target}"], "labels": of} for target, of in labels.items()]
    path = processes.write("prometheus.yaml", SCRAPING.format(rules=json.dumps(RULES), targets=json.dumps(static)))
    processes.start("prometheus", ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={processes.folder}/series",
                                   f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"])
    return Prometheus(port)


class Prometheus:
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}/api/v1/"

    def get(self, path, **parameters):
        try:
            with urllib.request.urlopen(f"{self.address}{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(json.load(error).get("error", str(error))) from error

    def values(self, expression, instant):
        """All numbers of an answer; ValueError: Prometheus does not understand the question."""
        if instant:
            result = self.get("query", query=expression)["result"]
            return [float(each["value"][1]) for each in result]
        now = time.time()
        result = self.get("query_range", query=expression, start=now - SPAN, end=now, step=5)["result"]
        return [float(value) for each in result for _, value in each["values"]]

    def has_data(self, expression, instant=True):
        return any(value == value for value in self.values(expression, instant))

    def wait_for(self, expression, processes, until):
        """Until it has data."""
        while True:
            processes.check()
            with contextlib.suppress(OSError, ValueError):
                if self.has_data(expression):
                    return
            if time.monotonic() > until:
                sys.exit(f"Prometheus has nothing of {expression}")
            time.sleep(0.5)

    def alerts(self):
        """Those that are about to be told or are told, with their labels; and what is wrong with rules."""
        told, faults = {}, []
        for group in self.get("rules")["groups"]:
            for rule in group["rules"]:
                if rule["health"] != "ok":
                    faults.append(f"{rule['name']}: {rule['health']}: {rule.get('lastError')}")
                for alert in rule.get("alerts", []):
                    told.setdefault(rule["name"], []).append(alert["labels"])
        return told, faults

    def label_values(self, definition):
        """As Grafana's label_values(SELECTOR, LABEL)."""
        selector, label = re.fullmatch(r"label_values\((.*), (\w+)\)", definition).groups()
        return self.get(f"label/{label}/values", **{"match[]": selector})


def filled_in(expression, choice):
    """As Grafana fills in what was chosen. A name of `choice` is replaced whole."""
    choice = {"__rate_interval": "15s", "__range": f"{SPAN}s", **choice}
    return re.sub(r"\$(?:\{(\w+)[^}]*\}|(\w+))", lambda match: choice[match[1] or match[2]], expression)
