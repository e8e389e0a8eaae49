"""What the program's metrics are called (docs/metrics.md, which a test of the program compares with it), and who uses the names."""

import glob
import json
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "helm", "vigil")
DASHBOARDS = sorted(glob.glob(os.path.join(CHART, "dashboards", "*.json")))
RULES = sorted(glob.glob(os.path.join(CHART, "rules", "*.yaml")))

# Metrics of nodes of a fleet: no other process has them.
FLEET = {
    "vigil_fleet_cameras", "vigil_fleet_config_info", "vigil_fleet_member", "vigil_fleet_nodes", "vigil_fleet_planner", "vigil_fleet_registry_seconds",
    "vigil_events_held", "vigil_fleet_registry_up", "vigil_gateway_behind_events", "vigil_gateway_events_total", "vigil_gateway_gaps_total", "vigil_link_blocked_seconds_total", "vigil_link_bytes_total", "vigil_link_dials_total", "vigil_link_failed_dials_total", "vigil_link_resets_total", "vigil_link_up", "vigil_link_waiting_bytes",
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
