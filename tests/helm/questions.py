"""Everything that dashboards, rules and runbooks ask Prometheus, and a trial in which it is asked."""

import os
import re
import time

from names import NAME, ROOT, RULES, SELECTOR, dashboards, documented, metric_of, queries, read
from prometheus import filled_in

# The camera that is chosen where a dashboard shows one: it has a budget and audits, and is explained.
CAMERA = "lot"
LOT = """
  lot:
    url: {root}/tests/videos/car-detection.mp4
    window: {{length: 2s, stride: 1s}}
    pruning: {{kv_budget: 1MiB, audit: 3}}
    labels: {{tenant: demo}}
    rules: [{{name: lot, prompt: "Is there a car?", threshold: 0.01, confirm: 1/1, cooldown: 1s, max_per_hour: 3600, explain: true, max_tokens: 8}}]
"""

# Alerts of what a machine that is late with its work, or that camera's small budget and many audits, bring about.
MAY_BE = ("VigilDeviceBehind", "VigilFramesDropped", "VigilWindowsOvertaken", "VigilWindowsLate", "VigilCameraForgets", "VigilAnswersDiffer")


class Trial:
    """`no_data`: metrics that cannot be had, and why. A query that names one of them is let off, and has to be empty. `more`: what is asked, too, and has
    to have data: what it is, and the expression."""

    def __init__(self, prometheus, no_data, table, more=()):
        self.prometheus, self.no_data, self.table, self.more = prometheus, no_data, table, more
        self.faults = []
        self.known = documented()
        self.excused = set()

    def choices(self, page):
        """Every variable that chooses many at once has all; one that chooses a single thing, what stands here."""
        chosen = {"camera": CAMERA}
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
                self.excused |= names & set(self.no_data)
                expression = filled_in(target["expr"], choice)
                yield f"{page['uid']} / {panel['title']}: {expression}", expression, target["instant"], not names & set(self.no_data)
        for what, expression in self.more:
            yield f"{what}: {expression}", expression, True, True
        # What rules compare is there, whatever its value: each metric, what of it a selector chooses, and each alias.
        for path in RULES:
            text = re.sub(r"^ *#.*", "", read(path), flags=re.MULTILINE)
            text = re.sub(r"^ *(?:summary|description|runbook_url):.*", "", text, flags=re.MULTILINE)
            asked = {(name, f"{{{matchers}}}") for name, matchers in SELECTOR.findall(text)} | {(name, "") for name in NAME.findall(text)}
            for name, matchers in sorted(asked):
                # An alias is no metric of the program's.
                if metric_of(name, self.known) in self.known:
                    yield f"{os.path.basename(path)}: {name}{matchers}", name + matchers, True, metric_of(name, self.known) not in self.no_data
            for name in re.findall(r"- record: (\S+)", text):
                yield f"{os.path.basename(path)}: {name}", f'{name}{{model_name="vigil"}}', True, True
        # Lines of a runbook that ask Prometheus.
        for expression in re.findall(r"`([^`\n]*\bvigil_\w+[^`\n]*[{(=<>][^`\n]*)`", read(os.path.join(ROOT, "docs", "operations.md"))):
            if not expression.startswith(("curl ", "vigil ")):
                yield f"operations.md: {expression}", expression, True, None
        # Whatever is let off is not there at all.
        for name in self.no_data:
            yield f"the table of {self.table}: {name}", f'{{__name__=~"{name}(_bucket|_sum|_count)?"}}', True, False

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
                    self.faults.append(f"{what}\n  has data: take it off the table of {self.table}")
            except ValueError as error:
                self.faults.append(f"{what}\n  {error}")
        for name in sorted(set(self.no_data) - self.excused):
            self.faults.append(f"{name} is in the table of {self.table}, and no panel needs it")
        return len(asked)

    def check_rules(self, until, down):
        """All can be computed; the cameras that are not there are about to be told, and nothing of what this is not. A scrape that takes too long,
        on a machine with much else to do, is no fault."""
        while True:
            told, faults = self.prometheus.alerts()
            found = [labels.get("camera") for labels in told.pop("VigilCameraDown", [])]
            if found != down:
                faults.append(f"VigilCameraDown is about cameras {found}")
            wrong = {name: labels for name, labels in told.items() if name not in MAY_BE}
            if wrong:
                faults.append(f"alerts about what is not the case: {wrong}")
            if not faults or time.monotonic() > until:
                self.faults += faults
                return
            time.sleep(1)
