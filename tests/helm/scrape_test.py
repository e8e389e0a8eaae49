#!/usr/bin/env python3
"""Prometheus scrapes a `vigil run` of the demo's cameras, and is asked everything that dashboards, rules and runbooks ask: each query of a panel has to
have data, unless the table below says why it cannot; then it has to have none.

  scrape_test.py VIGIL      (exit status 77: no prometheus)
"""

import os
import re
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402
from names import NAME, ROOT, RULES, SELECTOR, TO_COME, dashboards, documented, metric_of, queries, read  # noqa: E402
from prometheus import Processes, filled_in, start_prometheus  # noqa: E402

# From the start until all queries have data, which takes ten seconds on a machine with nothing else to do.
PATIENCE = 150

# Metrics that this run cannot give, and why. A query that names one of them is let off, and has to be empty.
NO_DATA = {
    **{name: "the program does not have it yet" for name in TO_COME},
    "vigil_camera_recording": "of live cameras with an input of their own for recording",
    "vigil_camera_pruned_less_steps": "from the first audits on that call for it, three of thirty",
}

# Beside the camera that is not there: what a machine that is late with its work, or this run's small budget and many audits, bring about.
MAY_BE = ("VigilCameraDown", "VigilDeviceBehind", "VigilFramesDropped", "VigilWindowsOvertaken", "VigilWindowsLate", "VigilCameraForgets", "VigilAnswersDiffer")

# Beside the demo's cameras: one that is not there, and one whose windows are short, have a budget, are audited and explained.
CAMERAS = """
  gone:
    url: rtsp://127.0.0.1:{nobody}/none
    labels: {{tenant: demo}}
    rules: [{{name: car, prompt: "Is there a car?"}}]
  lot:
    url: {root}/tests/videos/car-detection.mp4
    window: {{length: 2s, stride: 1s}}
    pruning: {{kv_budget: 1MiB, audit: 3}}
    labels: {{tenant: demo}}
    rules: [{{name: lot, prompt: "Is there a car?", threshold: 0.01, confirm: 1/1, cooldown: 1s, max_per_hour: 3600, explain: true, max_tokens: 8}}]
"""


def configuration(folder, ports):
    """The demo's, with its own ports and folders, more audits, and the cameras above."""
    text = read(os.path.join(ROOT, "config", "demo.yaml"))
    for old, new in (("../models", f"{ROOT}/models"), ("../tests", f"{ROOT}/tests"), ("../build/demo-", f"{folder}/"), ("audit: 500", "audit: 5"),
                     (":5556", f":{ports[0]}"), (":5557", f":{ports[1]}"), (":9464", f":{ports[2]}"), ("\ncameras:\n", "\ncameras:" + CAMERAS.format(root=ROOT, nobody=ports[4]))):
        if old not in text:
            sys.exit(f"scrape_test: config/demo.yaml has no {old!r} any more")
        text = text.replace(old, new)
    return text


class Trial:
    def __init__(self, prometheus):
        self.prometheus = prometheus
        self.faults = []
        self.known = {**TO_COME, **documented()}
        self.excused = set()

    def choices(self, page):
        """Every variable that chooses many at once has all; one that chooses a single thing, what stands here."""
        chosen = {"camera": "lot"}
        choice = {}
        for variable in page["templating"]["list"][1:]:
            definition = filled_in(variable["definition"], choice)
            found = self.prometheus.label_values(definition)
            if not found or chosen.get(variable["name"], found[0]) not in found:
                self.faults.append(f"{page['uid']}: {variable['name']} has the choices {found}")
            choice[variable["name"]] = variable["allValue"] if variable["includeAll"] else chosen[variable["name"]]
        return choice

    def questions(self):
        """(what it is, expression, instant, whether data has to come)."""
        for page in dashboards():
            choice = self.choices(page)
            for panel, target in queries(page):
                names = {metric_of(name, self.known) for name in NAME.findall(target["expr"])}
                self.excused |= names & set(NO_DATA)
                expression = filled_in(target["expr"], choice)
                yield f"{page['uid']} / {panel['title']}: {expression}", expression, target["instant"], not names & set(NO_DATA)
        # What rules compare is there, whatever its value: of each selector, and of each alias.
        for path in RULES:
            text = re.sub(r"^ *#.*", "", read(path), flags=re.MULTILINE)
            for name, matchers in sorted(set(SELECTOR.findall(text))):
                yield f"{os.path.basename(path)}: {name}{{{matchers}}}", f"{name}{{{matchers}}}", True, metric_of(name, self.known) not in NO_DATA
            for name in re.findall(r"- record: (\S+)", text):
                yield f"{os.path.basename(path)}: {name}", f'{name}{{model_name="vigil"}}', True, True
        # Lines of a runbook that ask Prometheus.
        for expression in re.findall(r"`([^`\n]*\bvigil_\w+[^`\n]*[{(=<>][^`\n]*)`", read(os.path.join(ROOT, "docs", "operations.md"))):
            if not expression.startswith(("curl ", "vigil ")):
                yield f"operations.md: {expression}", expression, True, None

    def ask_all(self, processes, until):
        """Until all have what they have to have."""
        wanted = None
        while wanted is None or (wanted and time.monotonic() < until):
            processes.check()
            if wanted is None:
                self.faults.clear()
                asked = list(self.questions())
                wanted = [each for each in asked if each[3]]
                if self.faults and time.monotonic() < until:
                    wanted = None
            still = []
            for each in wanted or ():
                try:
                    if not self.prometheus.has_data(*each[1:3]):
                        still.append(each)
                except ValueError as error:
                    self.faults.append(f"{each[0]}\n  {error}")
            wanted = wanted if wanted is None else still
            if wanted != []:
                time.sleep(1)
        self.faults += [f"{what}\n  has no data" for what, *_ in wanted]
        for what, expression, instant, needed in asked:
            try:
                if needed is not True and self.prometheus.has_data(expression, instant) and needed is False:
                    self.faults.append(f"{what}\n  has data: take it off the table of {os.path.basename(__file__)}")
            except ValueError as error:
                self.faults.append(f"{what}\n  {error}")
        for name in sorted(set(NO_DATA) - self.excused):
            self.faults.append(f"{name} is in the table of {os.path.basename(__file__)}, and no panel needs it")
        return len(asked)

    def check_rules(self, until):
        """All can be computed; the camera that is not there is about to be told, and nothing of what this is not. A scrape that takes too long,
        on a machine with much else to do, is no fault."""
        while True:
            told, faults = self.prometheus.alerts()
            down = [labels.get("camera") for labels in told.get("VigilCameraDown", [])]
            if down != ["gone"]:
                faults.append(f"VigilCameraDown is about cameras {down}")
            wrong = {name: labels for name, labels in told.items() if name not in MAY_BE}
            if wrong:
                faults.append(f"alerts about what is not the case: {wrong}")
            if not faults or time.monotonic() > until:
                self.faults += faults
                return
            time.sleep(1)


def main():
    vigil = os.path.abspath(sys.argv[1])
    with Processes() as processes:
        ports = free_ports(5)
        until = time.monotonic() + PATIENCE
        # It is there first, so that it sees what follows the first event.
        prometheus = start_prometheus(processes, ports[3], [ports[2]])
        path = processes.write("vigil.yaml", configuration(processes.folder, ports))
        processes.start("vigil", [vigil, "run", "--config", path], env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        prometheus.wait_for("vigil_cameras", processes, until)
        trial = Trial(prometheus)
        count = trial.ask_all(processes, until)
        trial.check_rules(until)
        if trial.faults:
            sys.exit("\n".join(trial.faults))
        print(f"{count} queries")


if __name__ == "__main__":
    main()
