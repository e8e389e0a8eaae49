"""How long a fleet took over what, by what subscribers saw, the journal of faults, and what nodes and etcd said (observer.py)."""

import collections
import json
import statistics

import check
from machines import FLEET

PULSE = "/pulse/"
MANY_SECONDS = 90.0


class Run:
    """The same log by camera and by node."""

    def __init__(self, log):
        self.log = log
        first = {}
        for each in log.seen:
            if each.how == "live" and each.topic.endswith(PULSE) and each.event["data"]["phase"] != "end":
                first.setdefault((each.topic, log.world(each), each.seq), each.t)
        self.told = collections.defaultdict(list)  # when subscribers first saw each window, by camera
        for (topic, _, _), t in sorted(first.items(), key=lambda item: item[1]):
            self.told[topic.split("/")[2]].append(t)
        self.keys = [line for line in log.samples if "key" in line]
        self.status = [line for line in log.samples if "cameras" in line]

    def plan_at(self, t):
        """(camera node, computing node) by camera."""
        plans = {}
        for line in self.keys:
            if line["t"] > t:
                break
            if line["key"].startswith(f"/vigil/{FLEET}/plan/"):
                plans[line["key"].rsplit("/", 1)[1]] = json.loads(line["value"])["cameras"] if line["value"] else {}
        best = {}
        for node, cameras in plans.items():
            for camera, planned in cameras.items():
                if planned["fence"] > best.get(camera, (0,))[0]:
                    best[camera] = (planned["fence"], node, planned.get("stream", ""))
        return {camera: (node, stream) for camera, (_, node, stream) in best.items()}

    def lease_ended(self, node, begin, end):
        return next((line["t"] for line in self.keys if line["key"] == f"/vigil/{FLEET}/nodes/{node}" and line["value"] is None and begin < line["t"] < end), None)

    def sampled_elsewhere(self, camera, node, begin, end):
        """When another node first said that it is up there, with frames."""
        for line in self.status:
            if begin < line["t"] < end and line["node"] != node:
                state, frames = line["cameras"].get(camera, ("", 0))
                if state == "up" and frames > 0:
                    return line["t"]
        return None

    def silence(self, camera, begin, end):
        """The longest time without a window of this camera, as far as it lies before `end`."""
        times = [t for t in self.told[camera] if t > begin - MANY_SECONDS]
        return max((min(after, end) - before for before, after in zip(times, [*times[1:], end]) if after > begin and before < end), default=0.0)


def faults_of(log):
    """(name, detail, node, begin, end, until when it counts) of each: until the next one begins after it has ended."""
    opened, found = {}, []
    for line in log.journal:
        if line["what"] == "fault":
            if line["edge"] == "begin":
                opened[line["fault"]] = line
            else:
                found.append((opened.pop(line["fault"]), line["t"]))
    begins = sorted(line["t"] for line, _ in found)
    last = max((line["t"] for line in log.journal), default=0)
    return [(line, end, min((t for t in begins if t > end), default=last)) for line, end in found]


def row_of(run, line, end, until):
    begin, node = line["t"], line["node"]
    plan = run.plan_at(begin)
    own = [camera for camera, (owner, _) in plan.items() if owner == node]
    computed = [camera for camera, (_, stream) in plan.items() if stream == node]
    row = {"fault": line["fault"], "name": line["name"], "cameras": len(own) + len(computed)}
    row["silence"] = max((run.silence(camera, begin, until) for camera in run.told), default=0.0)
    ended = run.lease_ended(node, begin, until)
    if ended is not None and (own or computed):
        row["detected"] = ended - begin
        if own:
            sampled = {camera: run.sampled_elsewhere(camera, node, begin, until) for camera in own}
            row["not sampled"] = sum(t is None for t in sampled.values())
            row["sampled"] = max((max(0.0, t - ended) for t in sampled.values() if t), default=None)
            answers = [next((told - t for told in run.told[camera] if told > t), None) for camera, t in sampled.items() if t]
        else:
            answers = [next((told - ended for told in run.told[camera] if told > ended), None) for camera in computed]
        row["answered"] = max((each for each in answers if each is not None), default=None)
    settled = next((each for each in run.log.journal if each["what"] in ("settled", "unsettled") and each["t"] >= end), None)
    if settled:
        row["settled"] = settled["t"] - end if settled["what"] == "settled" else None
    return row


def of(log):
    run = Run(log)
    rows = [row_of(run, *fault) for fault in faults_of(log)]
    windows = sum(len(times) for times in run.told.values())
    span = max((line["t"] for line in log.journal), default=0) - min((line["t"] for line in log.journal), default=0)
    return {"rows": rows, "windows": windows, "seconds": span, "memory": check.memory_of(log)}


def table(found, figures):
    """The lines that a run ends with."""
    show = lambda value: "" if value is None else f"{value:.1f}"  # noqa: E731
    columns = ("detected", "sampled", "answered", "silence", "settled")
    lines = ["| fault | " + " | ".join(columns) + " |", "|---|" + "---:|" * len(columns)]
    for row in figures["rows"]:
        lines.append(f"| {row['fault']} | " + " | ".join(show(row.get(column)) for column in columns) + " |")
    lines.append("")
    lines.append("Seconds. detected: from the fault until the node's lease has ended; sampled: from there until another node delivers frames of the last of its "
                 "cameras; answered: from there (of a computing node: from the end of its lease) until subscribers see a window of each; silence: the longest time "
                 "without a window of any camera; settled: from the end of the fault until every camera tells windows.")
    for column in columns:
        values = [row[column] for row in figures["rows"] if row.get(column) is not None]
        if values:
            lines.append(f"{column}: median {statistics.median(values):.1f} s, at most {max(values):.1f} s, of {len(values)}")
    for (node, pid), (settled, last, most, slope) in sorted(figures["memory"].items()):
        lines.append(f"memory of {node} ({pid}): {settled:.0f} MiB, at the end {last:.0f}, at most {most:.0f}, {slope:+.2f} MiB a minute")
    lines.append(f"{figures['windows']} windows were told in {figures['seconds']:.0f} s")
    for each in found[:40]:
        lines.append(f"violation: {each.kind}: {each.text}")
    lines.append(f"{len(found)} violations" if found else "all of it held")
    return lines
