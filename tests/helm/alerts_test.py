#!/usr/bin/env python3
"""promtool on helm/vigil/rules/: the rules are ones, and each alert fires where alert_cases.py says so, with the labels and the summary that stand
there, and does not where it says that.

  alerts_test.py [RULES]     (RULES: another alerts.yaml; exit status 77: no promtool)
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from alert_cases import CASES, NODE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = os.path.join(ROOT, "helm", "vigil", "rules")
RULE = re.compile(r"      - alert: (\w+)\n(?:        .*\n)+?        labels: \{severity: (critical|warning|info)\}\n        annotations:\n          summary: \".*\"\n"
                  r"          description: \"(.*)\"\n          runbook_url: (\S+)\n")


def alerts(path):
    """By name: what every alert of it says, whatever it is about."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    found = {name: (severity, {"description": description, "runbook_url": url}) for name, severity, description, url in RULE.findall(text)}
    if len(found) != text.count("- alert:"):
        sys.exit(f"alerts_test: {path}: {text.count('- alert:')} alerts, {len(found)} of them in the form that this test reads")
    return found


def of_a_node(series):
    name, _, labels = series.removesuffix("}").partition("{")
    given = dict(re.findall(r'(\w+)="([^"]*)"', labels))
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in sorted({**NODE, **given}.items())) + "}"


def unit_tests(rules, found):
    """What promtool reads, as JSON, which is YAML."""
    tests = []
    for alert, cases in CASES.items():
        severity, words = found[alert]
        for series, minute, expected in cases:
            told = [{"exp_labels": {**labels, "severity": severity}, "exp_annotations": {"summary": summary, **words}} for labels, summary in expected]
            moments = [(minute, told), *([(minute - 1, [])] if told and minute else [])]
            tests.append({"interval": "1m", "input_series": [{"series": of_a_node(each), "values": values} for each, values in series.items()],
                          "alert_rule_test": [{"alertname": alert, "eval_time": f"{at}m", "exp_alerts": alerts_then} for at, alerts_then in moments]})
    return {"rule_files": [rules], "evaluation_interval": "1m", "tests": tests}


def main():
    if not shutil.which("promtool"):
        print("skipped: no promtool (scripts/dependencies --faults)")
        sys.exit(77)
    rules = os.path.abspath(sys.argv[1]) if sys.argv[1:] else os.path.join(RULES, "alerts.yaml")
    subprocess.run(["promtool", "check", "rules", "--lint-fatal", *(os.path.join(RULES, name) for name in sorted(os.listdir(RULES)))], check=True)
    found = alerts(rules)
    faults = [f"{name} has no cases" for name in found if name not in CASES] + [f"there is no alert {name}" for name in CASES if name not in found]
    for name, cases in CASES.items():
        if len({bool(expected) for _, _, expected in cases}) != 2:
            faults.append(f"{name}: there have to be cases in which it fires, and some in which it does not")
    if faults:
        sys.exit("\n".join(faults))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "alerts.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(unit_tests(rules, found), file)
        done = subprocess.run(["promtool", "test", "rules", path], check=False)
    print(f"{len(found)} alerts, {sum(map(len, CASES.values()))} cases")
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
