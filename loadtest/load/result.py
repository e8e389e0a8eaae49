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
    try:
        done = subprocess.run(["git", "-C", SOURCE, *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
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
    """Of each phase, each loss of a node, all slow subscribers and all events of a step, a line as benches print them, for scripts/figures."""
    of = {"commit": result["commit"], "machine": f"{result['machine']['cores']} cores of {result['machine']['processor']}"}
    for step in result["steps"]:
        about = {"bench": "load", "scenario": result["scenario"]["content"]["name"], "cameras": step["cameras"], "nodes": len(step.get("nodes", []))}
        for phase in step["phases"]:
            taken = [phase["processes"][name] for name in step.get("nodes", []) if name in phase["processes"]]
            latency = {key: round(1000 * value, 1) for key, value in phase["latency"].items() if key != "count"}
            yield {**about, "phase": phase["name"], "latency_ms": latency, "count": phase["latency"]["count"], "windows": phase["windows"], "alerts": phase["alerts"],
                   "nodes_cores": round(sum(each["cores"] for each in taken), 3),
                   "nodes_rss_mib": round(sum(each["rss_mib"] for each in taken), 1), "machine_busy": phase["machine"], **of}
        for number, loss in enumerate(step["losses"], 1):
            yield {**about, "loss": number, "had": loss["cameras"], **{key: value for key, value in loss.items() if key != "cameras"}, **of}
        if step["slow_subscribers"]:
            yield {**about, "slow_subscribers": len(step["slow_subscribers"]),
                   **{key: sum(each[key] for each in step["slow_subscribers"]) for key in ("read", "missed", "missed_and_not_replayed")}, **of}
        yield {**about, "phase": "all", "events": step["events"], "same_ends": step.get("same_ends", 0), "violations": step["violations"], **of}
