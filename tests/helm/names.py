"""What the program's metrics are called (docs/metrics.md, which a test of the program compares with it), and who uses the names."""

import glob
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "helm", "vigil")
DASHBOARDS = sorted(glob.glob(os.path.join(CHART, "dashboards", "*.json")))
RULES = sorted(glob.glob(os.path.join(CHART, "rules", "*.yaml")))

# Metrics that dashboards and rules name and that the program does not have yet, with their labels. One that docs/metrics.md has is to be taken
# off here: a test says so.
TO_COME = {
    "vigil_gateway_events_total": {"outcome"},
    "vigil_gateway_behind_events": set(),
}

# Of whoever scrapes, and of histograms.
OTHER_LABELS = {"job", "instance", "namespace", "fleet", "le"}

NAME = re.compile(r"\b(?:vigil|process)_[a-z0-9_]+\b")
SELECTOR = re.compile(r"\b((?:vigil|process)_[a-z0-9_]+)\{([^}]*)\}")
MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"((?:[^"\\]|\\.)*)"')


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def documented():
    """The labels of each metric."""
    rows = re.findall(r"^\| `((?:vigil|process)_[a-z_]+)` \| ?([^|]*?) ?\|", read(os.path.join(ROOT, "docs", "metrics.md")), re.MULTILINE)
    return {name: set(re.findall(r"\w+", labels)) for name, labels in rows}


def metric_of(name, known):
    """A histogram's own name for one of its series."""
    for part in ("_bucket", "_sum", "_count"):
        if name not in known and name.removesuffix(part) in known:
            return name.removesuffix(part)
    return name


def dashboards():
    return [json.loads(read(path)) for path in DASHBOARDS]


def queries(dashboard):
    """(panel, query) of a dashboard, in its order."""
    return [(panel, target) for panel in dashboard["panels"] for target in panel.get("targets", [])]
