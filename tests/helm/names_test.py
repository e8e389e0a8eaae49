#!/usr/bin/env python3
"""Dashboards, rules and pages name only metrics and labels that there are, and lead to each other: without Prometheus, which scrape_test.py asks."""

import glob
import os
import re
import subprocess
import unittest

from names import (CHART, DASHBOARDS, FLEET, MATCHER, NAME, OTHER_LABELS, ROOT, RULES, SELECTOR, dashboards, documented, metric_of, queries, read)

GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left) ?\(([^)]*)\)")
# Of the build, and no metrics.
FUNCTIONS = {"vigil_test", "vigil_room", "vigil_fuzz"}
# What comes with every Grafana.
PANELS = {"row", "stat", "table", "timeseries", "state-timeline"}
BUILT_IN = {"__rate_interval", "__range", "datasource"}
RUNBOOKS = os.path.join(ROOT, "docs", "operations.md")
# The paragraphs of each runbook.
PARTS = ("Means:", "Look:", "Do:", "Do not:")


def text_of(path):
    return "\n".join(line for line in read(path).splitlines() if not line.lstrip().startswith("#")) if path.endswith(".yaml") else read(path)


class Names(unittest.TestCase):
    def setUp(self):
        self.known = documented()
        self.known = documented()
        self.assertGreater(len(self.known), 50)

    def test_every_metric_is_there(self):
        pages = [os.path.join(ROOT, "README.md"), os.path.join(ROOT, "helm", "README.md"), *glob.glob(os.path.join(ROOT, "docs", "*.md"))]
        for path in [*DASHBOARDS, *RULES, *pages]:
            for name in set(NAME.findall(text_of(path))) - FUNCTIONS:
                self.assertIn(metric_of(name, self.known), self.known, path)

    def test_every_label_is_its_metrics(self):
        for path in [*DASHBOARDS, *RULES, RUNBOOKS]:
            for name, matchers in SELECTOR.findall(text_of(path).replace('\\"', '"')):
                labels = {label for label, _, _ in MATCHER.findall(matchers)}
                self.assertLessEqual(labels, self.known[metric_of(name, self.known)] | OTHER_LABELS, f"{path}: {name}{{{matchers}}}")

    def test_nothing_is_grouped_by_what_no_metric_has(self):
        every = set().union(OTHER_LABELS, *self.known.values())
        for path in [*DASHBOARDS, *RULES]:
            for labels in GROUPING.findall(text_of(path)):
                self.assertLessEqual({each.strip() for each in labels.split(",")}, every, path)

    def test_what_a_fleet_alone_has_is_listed(self):
        self.assertEqual(FLEET, {name for name in self.known if name.startswith(("vigil_events_", "vigil_fleet_", "vigil_link_", "vigil_gateway_"))})


class Dashboards(unittest.TestCase):
    def test_are_what_the_script_writes(self):
        done = subprocess.run([os.path.join(ROOT, "scripts", "dashboards"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_can_be_had_anywhere(self):
        names = [os.path.basename(path).removesuffix(".json") for path in DASHBOARDS]
        self.assertEqual(names, ["camera", "fleet", "gpu-path", "nodes"])
        for name, page in zip(names, dashboards()):
            self.assertEqual((page["uid"], page["id"]), (f"vigil-{name}", None))
            self.assertEqual(page["templating"]["list"][0]["type"], "datasource")
            variables = {each["name"] for each in page["templating"]["list"]} | BUILT_IN
            panels = [panel for panel in page["panels"] if panel["type"] != "row"]
            self.assertGreater(len(panels), 10)
            self.assertEqual(len({panel["id"] for panel in page["panels"]}), len(page["panels"]))
            for panel in page["panels"]:
                self.assertIn(panel["type"], PANELS)
            for panel in panels:
                self.assertTrue(panel["targets"], panel["title"])
            for panel, target in queries(page):
                for source in (panel["datasource"], target["datasource"]):
                    self.assertEqual(source, {"type": "prometheus", "uid": "${datasource}"}, panel["title"])
                self.assertLessEqual({one or other for one, other in re.findall(r"\$(?:\{(\w+)[^}]*\}|(\w+))", target["expr"])}, variables, panel["title"])

    def test_panels_do_not_overlap(self):
        for page in dashboards():
            taken = set()
            for panel in page["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(taken & cells, f"{page['uid']}: {panel['title']}")
                self.assertLessEqual(place["x"] + place["w"], 24)
                taken |= cells


class Runbooks(unittest.TestCase):
    def test_each_alert_has_one_and_each_is_an_alerts(self):
        rules = read(os.path.join(CHART, "rules", "alerts.yaml"))
        alerts = re.findall(r"- alert: (\w+)", rules)
        self.assertEqual(len(alerts), len(set(alerts)))
        self.assertEqual(re.findall(r"runbook_url: (\S+)", rules), [f"docs/operations.md#{name.lower()}" for name in alerts])
        sections = re.findall(r"^### (Vigil\w+)$(.*?)(?=^##|\Z)", read(RUNBOOKS), re.MULTILINE | re.DOTALL)
        self.assertEqual([name for name, _ in sections], alerts)
        for name, text in sections:
            at = [text.find(f"\n- **{part}**") for part in PARTS]
            self.assertTrue(-1 not in at and at == sorted(at), f"{name}: {dict(zip(PARTS, at))}")


if __name__ == "__main__":
    unittest.main()
