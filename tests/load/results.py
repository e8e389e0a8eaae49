"""Results of loadtest/load that are made up, for the tests."""

import copy
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "load")
sys.path.insert(0, LOAD)
import result  # noqa: E402
import scenario  # noqa: E402


def phase(name, factor, count):
    latency = {"count": count, "mean": 0.1 * factor, "p50": 0.1 * factor, "p95": 0.3 * factor, "p99": 0.5 * factor, "max": 0.9 * factor}
    return {"name": name, "seconds": 60.0, "cameras": 4, "latency": latency, "said": latency, "alerts": 3,
            "windows": {"expected": count, "seen": count, "by_replay": 0, "late": 0, "asked": count, "answered": count, "overtaken": 0, "failed": 0,
                        "answered_share": 1.0},
            "visual_tokens": 9000, "groups_spared": 100, "frames_dropped": {}, "slow_subscribers_began_to_miss": 0,
            "processes": {"c1": {"cores": 0.5, "rss_mib": 200.0}, "etcd": {"cores": 0.1, "rss_mib": 30.0}},
            "machine": {"busy_cores": 1.0, "others_cores": 0.4, "load": 1.0}}


def step(cameras, factor, count):
    return {"cameras": cameras, "kinds": {"file": cameras}, "seconds": 70.0, "nodes": ["c1", "v1"],
            "phases": [phase("quiet", factor, count), phase("busy", 2 * factor, count)],
            "events": {"events": 500, "duplicates": 0, "gaps": 0, "lost": 0}, "losses": [{"node": "c1", "gone": 20.0, "sampled_again": 2.0,
                                                                                          "answered_again": 3.0, "silence": 6.0}],
            "slow_subscribers": [], "violations": {}, "problems": [], "failed": []}


def made(loads=(2, 4, 8), factor=1.0, count=600):
    content = scenario.checked({"name": "steady", "about": "words & <signs>", "fleet": "process", "cameras": {"kinds": {"file": 1}},
                                "loads": list(loads),
                                "phases": [{"name": "quiet", "lasts": "60s"}, {"name": "busy", "lasts": "60s"}]})
    return {"schema": result.SCHEMA, "scenario": {"file": "steady.yaml", "content": json.loads(json.dumps(content))}, "seed": 1,
            "date": "2026-08-01T10:00:00+00:00",
            "commit": "abc1234", "dirty": False, "vigil": "vigil 0.1.0 (abc)", "machine": {"processor": "a processor", "cores": 2, "memory_mib": 1024,
                                                                                           "kernel": "6.1"},
            "load_before": 0.5, "seconds": 99.0, "failed": [], "steps": [step(load, factor * (1 + load / 8), count) for load in loads]}


def changed(whole, change):
    whole = copy.deepcopy(whole)
    change(whole)
    return whole


def write(folder, name, value):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))
    return path
