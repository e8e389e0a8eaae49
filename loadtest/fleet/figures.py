"""How long a fleet took over what, by what subscribers saw, the journal of faults, and what nodes and etcd said (observer.py)."""

import collections
import json
import math
import statistics

import check
from machines import FLEET, WORDS

PULSE = "/pulse/"
MANY_SECONDS = 90.0
# What a plan says of a camera: its owner, and who computes what for it.
PLACES = ("node", "vision", "stream", "generate")
# Roles without which a camera is silent. Words of a node that generates are written by the one with the stream when it is gone.
NEEDED = {"camera", "vision", "stream"}
# Seconds: what was promised of a fleet, and what machines that have other things to do are given beyond it.
SAMPLED, ANSWERED, GRACE = 5.0, 5.0, 1.0
# The part of alerts to be explained that may have no words, of all that are told while nodes are lost.
WORDLESS = 0.25


class Run:
    """The same log by camera and by node."""

    def __init__(self, log):
        self.log = log
        fleet = next((line for line in log.journal if line["what"] == "fleet"), {})
        self.roles = {node: set(roles) for node, roles in fleet.get("nodes", {}).items()}
        first, words = {}, {}
        for each in log.seen:
            if each.how != "live" or each.event["data"].get("phase") == "end":
                continue
            place = (each.topic, log.world(each), each.seq)
            if each.topic.endswith(PULSE):
                first.setdefault(place, each.t)
            if each.topic.endswith(f"/{WORDS}/"):
                words.setdefault(place, (each.t, bool(each.event["data"].get("description"))))
        self.told = collections.defaultdict(list)  # when subscribers first saw each window, by camera
        for (topic, _, _), t in sorted(first.items(), key=lambda item: item[1]):
            self.told[topic.split("/")[2]].append(t)
        self.words = sorted(words.values())  # of each alert to be explained: when subscribers first saw it, and whether it had words
        self.keys = [line for line in log.samples if "key" in line]
        self.status = [line for line in log.samples if "cameras" in line]

    def plan_at(self, t):
        """The nodes by place, by camera."""
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
                    best[camera] = (planned["fence"], {place: {**planned, "node": node}.get(place, "") for place in PLACES})
        return {camera: places for camera, (_, places) in best.items()}

    def is_the_only_one(self, node):
        """Whether cameras are silent until it is back, since no other node of the fleet does what it does."""
        others = set().union(*(roles for name, roles in self.roles.items() if name != node))
        return bool(self.roles.get(node, set()) & NEEDED - others)

    def lease_ended(self, node, begin, end):
        return next((line["t"] for line in self.keys if line["key"] == f"/vigil/{FLEET}/nodes/{node}" and line["value"] is None and begin < line["t"] < end), None)

    def sampled(self, camera, begin, end, but=None):
        """When a node, but for that one, first said that it is up there, with frames."""
        for line in self.status:
            if begin < line["t"] < end and line["node"] != but:
                state, frames = line["cameras"].get(camera, ("", 0))
                if state == "up" and frames > 0:
                    return line["t"]
        return None

    def silence(self, camera, begin, end):
        """The longest time without a window of this camera, as far as it lies before `end`."""
        times = [t for t in self.told[camera] if t > begin - MANY_SECONDS]
        return max((min(after, end) - before for before, after in zip(times, [*times[1:], end]) if after > begin and before < end), default=0.0)

    def wordless(self, begin, end):
        """(how many, of how many): alerts to be explained that came without words."""
        found = [has_words for t, has_words in self.words if begin < t < end]
        return found.count(False), len(found)

    def tokens(self):
        """Of explanations that each node wrote, in all its lives."""
        most = {}
        for line in self.log.samples:
            if "tokens" in line:
                process = (line["node"], line["pid"])
                most[process] = max(line["tokens"], most.get(process, 0))
        found = collections.Counter()
        for (node, _), tokens in most.items():
            found[node] += tokens
        return dict(found)


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
    own = [camera for camera, places in plan.items() if places["node"] == node]
    computed = [camera for camera, places in plan.items() if node in (places["vision"], places["stream"])]
    row = {"fault": line["fault"], "name": line["name"], "cameras": len(own) + len(computed), "begin": begin, "until": until, "lasted": end - begin}
    row["silence"] = max((run.silence(camera, begin, until) for camera in run.told), default=0.0)
    ended = run.lease_ended(node, begin, until)
    if run.words:
        row["wordless"], row["explained"] = run.wordless(begin, until)
    if ended is not None and (own or computed):
        row["detected"] = ended - begin
        row["only one"] = run.is_the_only_one(node)
        # From when on there is somebody who can do it.
        since = max(ended, end) if row["only one"] else ended
        if own:
            sampled = ({camera: run.sampled(camera, since, until) for camera in own} if row["only one"] else
                       {camera: run.sampled(camera, begin, until, but=node) for camera in own})
            row["not sampled"] = sum(t is None for t in sampled.values())
            row["sampled"] = max((max(0.0, t - since) for t in sampled.values() if t), default=None)
            froms = {camera: t for camera, t in sampled.items() if t}
        else:
            froms = {camera: since for camera in computed}
        answers = [next((told - t for told in run.told[camera] if t < told < until), None) for camera, t in froms.items()]
        row["not answered"] = answers.count(None)
        row["answered"] = max((each for each in answers if each is not None), default=None)
    settled = next((each for each in run.log.journal if each["what"] in ("settled", "unsettled") and each["t"] >= end), None)
    if settled:
        row["settled"] = settled["t"] - end if settled["what"] == "settled" else None
    return row


def of(log):
    run = Run(log)
    rows = [row_of(run, *fault) for fault in faults_of(log)]
    windows = sum(len(times) for times in run.told.values())
    wordless, explained = run.wordless(0.0, math.inf)
    span = max((line["t"] for line in log.journal), default=0) - min((line["t"] for line in log.journal), default=0)
    return {"rows": rows, "windows": windows, "seconds": span, "memory": check.memory_of(log), "wordless": wordless, "explained": explained,
            "tokens": run.tokens()}


def left(figures):
    """Cameras that nobody took over as long as it was to be seen, whatever the machine had to do."""
    for row in figures["rows"]:
        if row.get("not sampled"):
            yield f"{row['fault']}: {row['not sampled']} cameras were not taken over"
        if row.get("not answered"):
            yield f"{row['fault']}: of {row['not answered']} cameras nothing was told any more"


def late(figures, window, patience=1.0):
    """What took longer than is promised of one fault at a time. window: its length in seconds; patience: a factor."""
    for row in figures["rows"]:
        if any(each is not row and each["begin"] < row["until"] and row["begin"] < each["until"] for each in figures["rows"]):
            continue
        for column, most in (("sampled", SAMPLED), ("answered", window + ANSWERED)):
            if row.get(column) is not None and row[column] > most * patience + GRACE:
                yield f"{row['fault']}: {column} after {row[column]:.1f} s"
        # What nobody takes over is told again soon after it is over.
        if "detected" not in row and row["silence"] > (row["lasted"] + window + ANSWERED) * patience + GRACE:
            yield f"{row['fault']}: a camera was silent for {row['silence']:.1f} s, and it was over after {row['lasted']:.1f} s"
    yield from left(figures)
    if figures["wordless"] > WORDLESS * figures["explained"]:
        yield f"{figures['wordless']} of {figures['explained']} alerts came without words"


def table(found, figures):
    """The lines that a run ends with."""
    show = lambda value: "" if value is None else f"{value:.1f}"  # noqa: E731
    columns = ("detected", "sampled", "answered", "silence", "settled")
    words = ["without words"] if figures["explained"] else []
    lines = ["| fault | " + " | ".join([*columns, *words]) + " |", "|---|" + "---:|" * (len(columns) + len(words))]
    for row in figures["rows"]:
        cells = [show(row.get(column)) for column in columns] + [f"{row['wordless']} of {row['explained']}" for _ in words]
        lines.append(f"| {row['fault']}{' (the only one)' if row.get('only one') else ''} | " + " | ".join(cells) + " |")
    lines.append("")
    lines.append("Seconds. detected: from the fault until the node's lease has ended; sampled: from there until another node delivers frames of the last of its "
                 "cameras; answered: from there (of a computing node: from the end of its lease) until subscribers see a window of each; silence: the longest time "
                 "without a window of any camera; settled: from the end of the fault until every camera tells windows. Of the only node that does something, "
                 "sampled and answered count from when the fault is over.")
    if words:
        lines.append("without words: alerts to be explained whose text came from nowhere in time; an alert does not depend on it.")
    for column in columns:
        values = [row[column] for row in figures["rows"] if row.get(column) is not None]
        if values:
            lines.append(f"{column}: median {statistics.median(values):.1f} s, at most {max(values):.1f} s, of {len(values)}")
    for (node, pid), (settled, last, most, slope, _) in sorted(figures["memory"].items()):
        lines.append(f"memory of {node} ({pid}): {settled:.0f} MiB, at the end {last:.0f}, at most {most:.0f}, {slope:+.2f} MiB a minute")
    if words:
        wrote = ", ".join(f"{node} {tokens:.0f}" for node, tokens in sorted(figures["tokens"].items()))
        lines.append(f"{figures['wordless']} of {figures['explained']} alerts to be explained came without words; tokens of explanations: {wrote}")
    lines.append(f"{figures['windows']} windows were told in {figures['seconds']:.0f} s")
    for each in found[:40]:
        lines.append(f"violation: {each.kind}: {each.text}")
    lines.append(f"{len(found)} violations" if found else "all of it held")
    return lines
