"""Results: what a run writes, with the machine and the commit, and what `compare` and `plot` read."""

import datetime
import json
import os
import platform
import re
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
SCHEMA = "vigil-load/1"


class Fault(Exception):
    """Why a file is no result, in a line."""


def machine():
    def find(path, pattern):
        with open(path, encoding="utf-8") as file:
            match = re.search(pattern, file.read(), re.MULTILINE)
        return match.group(1).strip() if match else None

    return {"processor": find("/proc/cpuinfo", r"^model name\s*: (.*)$") or platform.processor(), "cores": len(os.sched_getaffinity(0)),
            "memory_mib": int(find("/proc/meminfo", r"^MemTotal:\s*(\d+)")) // 1024, "kernel": platform.release()}


def git(*arguments):
    done = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def origin(vigil):
    """The commit of the checkout, and what the program says of itself, which may have been built of another one."""
    version = subprocess.run([vigil, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    changed = git("status", "--porcelain")
    return {"commit": git("rev-parse", "--short", "HEAD"), "dirty": None if changed is None else bool(changed), "vigil": version}


def begun(scenario, file, vigil):
    """What is known before the first step."""
    return {"schema": SCHEMA, "scenario": {"file": os.path.basename(file), "content": scenario}, "seed": scenario["seed"],
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), **origin(vigil), "machine": machine(),
            "load_before": round(os.getloadavg()[0], 2), "steps": []}


def write(result, path):
    """Whole or not at all."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.new", path)


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Fault(f"{path}: is no JSON ({error})") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise Fault(f"{path}: is no result of loadtest/load/run (its schema is not {SCHEMA})")
    try:
        for step in found["steps"]:
            for phase in step["phases"]:
                phase["name"], phase["latency"]["count"], phase["windows"]["answered_share"], phase["processes"], step["cameras"], step["events"]["lost"]
        found["scenario"]["content"]["name"], found["machine"]["processor"], found["commit"], found["date"], found["seed"]
    except (KeyError, TypeError, AttributeError) as error:
        raise Fault(f"{path}: lacks {error}") from error
    if not found["steps"]:
        raise Fault(f"{path}: has no step")
    return found


def lines(result):
    """Of each phase of each step, a line as benches print them (scripts/figures takes figures from it)."""
    of = f"{result['machine']['processor']}, {result['machine']['cores']} cores"
    for step in result["steps"]:
        for phase in step["phases"]:
            nodes = [name for name in step.get("nodes", []) if name in phase["processes"]]
            yield {"bench": "load", "scenario": result["scenario"]["content"]["name"], "cameras": step["cameras"], "phase": phase["name"],
                   "latency_ms": {key: round(1000 * value, 1) for key, value in phase["latency"].items() if key != "count"}, "count": phase["latency"]["count"],
                   "windows": phase["windows"], "alerts": phase["alerts"], "nodes_cores": round(sum(phase["processes"][name]["cores"] for name in nodes), 3),
                   "nodes_rss_mib": round(sum(phase["processes"][name]["rss_mib"] for name in nodes), 1), "machine_busy": phase["machine"], "commit": result["commit"],
                   "machine": of}
        yield {"bench": "load", "scenario": result["scenario"]["content"]["name"], "cameras": step["cameras"], "phase": "all", "events": step["events"],
               "losses": step["losses"], "slow_subscribers": step["slow_subscribers"], "violations": step["violations"], "commit": result["commit"], "machine": of}
