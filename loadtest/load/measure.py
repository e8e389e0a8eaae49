"""Figures of a load, by what subscribers saw, the journal, and samples of processes and metrics; README.md says what each means."""

import collections
import json
import os
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))
import check  # noqa: E402
import figures  # noqa: E402

import tails  # noqa: E402

PULSE, PERSON = "pulse", "person"
Window = collections.namedtuple("Window", "camera captured told said how")


def windows_of(log, wall):
    """Every window that a subscriber heard of, once: when its last frame was captured, when the first subscriber had it, and what Vigil says that it took.

    wall: what the time of day is ahead of the monotonic clock, in seconds, by which `captured` and `told` are.
    """
    first = {}
    for each in log.seen:
        data, words = each.event["data"], each.topic.split("/")
        # An end tells of no window of its own. The last reading reads all again.
        if words[0] != "alert" or words[3] != PULSE or data["phase"] == "end" or each.reading is not None:
            continue
        first.setdefault((log.world(each), each.topic, each.seq), each)
    found = []
    for each in first.values():
        captured = check.seconds_of(each.event["data"]["window"]["end"]) - wall
        said = each.event["data"].get("latency_ms", {}).get("capture_to_alert")
        found.append(Window(each.topic.split("/")[2], captured, each.t, said / 1000 if said is not None else None, each.how))
    return sorted(found, key=lambda window: window.captured)


def absent(times, phase, stride, gone=()):
    """How many windows of a camera ought to have ended within the phase, and nobody heard of them: one for each stride between two that were heard of.

    times: when its windows ended, ascending, also before the phase and after it; gone: (from, to) in which its source was not there, of which nothing is expected.
    """
    begin, end = phase["begin"], phase["end"]
    before = [t for t in times if t < begin]
    # One that joins with the phase is wanted from its begin on.
    known = [max(before[-1:], default=begin) if before and before[-1] > begin - 1.5 * stride else begin, *(t for t in times if begin <= t < end)]
    known.append(next((t for t in times if t >= end), end + stride / 2))
    ends = [a + stride * (i + 1) for a, b in zip(known, known[1:]) for i in range(max(0, round((b - a) / stride) - 1))]
    return sum(begin <= t < end and not any(since <= t < until for since, until in gone) for t in ends)


def between(samples, begin, end):
    """Those of the time, and the last one before it, since counters are looked at once a second."""
    return [line for line in samples if begin - 1 <= line["t"] <= end]


def grown(values):
    """By how much a counter has grown, which begins anew with each process: of (process, value) in the order of time."""
    total, last = 0.0, {}
    for process, value in values:
        # A process that comes while we look has counted from nothing.
        total += value - last.get(process, value if not last else 0)
        last[process] = value
    return total


def processes_of(samples, begin, end):
    """By name: processors that were busy with it, and most bytes that were resident."""
    found = {}
    lines = between(samples, begin, end)
    for name in dict.fromkeys(line["name"] for line in lines if "name" in line):
        own = [line for line in lines if line.get("name") == name]
        span = own[-1]["t"] - own[0]["t"]
        if span > 0:
            found[name] = {"cores": round(grown([(line["pid"], line["cpu"]) for line in own]) / span, 3),
                           "rss_mib": round(max(line["rss"] for line in own) / 2**20, 1)}
    return found


def machine_of(samples, processes, begin, end):
    """What of the machine was busy all together, and with others than this run."""
    lines = [line for line in between(samples, begin, end) if "busy" in line]
    if len(lines) < 2:
        return {}
    cores = (lines[-1]["busy"] - lines[0]["busy"]) / (lines[-1]["t"] - lines[0]["t"])
    return {"busy_cores": round(cores, 2), "others_cores": round(max(0.0, cores - sum(each["cores"] for each in processes.values())), 2),
            "load": round(sum(line["load"] for line in lines) / len(lines), 2)}


def counted_of(samples, begin, end):
    """What nodes counted meanwhile, all together (sampler.counters_of)."""
    found = {"windows": collections.Counter(), "dropped": collections.Counter(), "slow": 0, "tokens": 0, "spared": 0}
    lines = [line for line in between(samples, begin, end) if "windows" in line]
    for node in dict.fromkeys(line["node"] for line in lines):
        own = [line for line in lines if line["node"] == node]
        for kind in ("windows", "dropped"):
            for name in dict.fromkeys(name for line in own for name in line[kind]):
                found[kind][name] += round(grown([(line["pid"], line[kind].get(name, 0)) for line in own]))
        for name in ("slow", "tokens", "spared"):
            found[name] += round(grown([(line["pid"], line[name]) for line in own]))
    return found


def missed_of(windows, phase, stride):
    times = collections.defaultdict(list)
    for window in windows:
        times[window.camera].append(window.captured)
    return sum(absent(times[camera], phase, stride, phase["gone"].get(camera, ())) for camera in phase["cameras"])


def phase_of(log, windows, samples, phase, stride):
    begin, end = phase["begin"], phase["end"]
    own = [window for window in windows if begin <= window.captured < end and window.camera in phase["cameras"]]
    ages = [window.told - window.captured for window in own]
    counted = counted_of(samples, begin, end)
    asked, expected = sum(counted["windows"].values()), len(own) + missed_of(windows, phase, stride)
    processes = processes_of(samples, begin, end)
    alerts = {(log.world(each), each.topic, each.seq) for each in log.seen
              if each.topic.endswith(f"/{PERSON}/") and each.event["data"]["phase"] == "new" and begin <= each.t < end and each.reading is None}
    return {"name": phase["name"], "seconds": round(end - begin, 2), "cameras": len(phase["cameras"]), "latency": tails.of(ages),
            "said": tails.of([window.said for window in own if window.said is not None]),
            "windows": {"expected": expected, "seen": len(own), "by_replay": sum(window.how == "replay" for window in own),
                        "late": sum(age > stride for age in ages),
                        "asked": asked, "answered": counted["windows"]["answered"], "overtaken": counted["windows"]["overtaken"],
                        "failed": asked - counted["windows"]["answered"] - counted["windows"]["overtaken"],
                        "answered_share": round(len(own) / expected, 4) if expected else None},
            "visual_tokens": counted["tokens"], "groups_spared": counted["spared"], "frames_dropped": dict(counted["dropped"]),
            "slow_subscribers_began_to_miss": counted["slow"], "alerts": len(alerts),
            "processes": processes, "machine": machine_of(samples, processes, begin, end)}


def events_of(log):
    """Of all events: how many there are, how often one came twice to a live subscriber, and what the last reading lacks."""
    gateways, reading, began = log.final()
    came, kept, shown = collections.Counter(), collections.defaultdict(lambda: collections.defaultdict(set)), collections.defaultdict(set)
    for each in log.seen:
        if each.how == "live":
            came[(each.gateway, each.topic, each.seq)] += 1
        if each.reading == reading and reading is not None:
            kept[each.gateway][each.topic].add(each.seq)
        elif each.t < began:
            shown[log.world(each)].add((each.topic, each.seq))
    gaps = lost = 0
    for gateway in gateways:
        gaps += sum(max(numbers) - len(numbers) for numbers in kept[gateway].values())
        lost += sum(seq not in kept[gateway][topic] for topic, seq in shown["" if log.shared() else gateway])
    return {"events": len({(log.world(each), each.topic, each.seq) for each in log.seen}), "duplicates": sum(times - 1 for times in came.values()),
            "gaps": gaps, "lost": lost}


def lines_of(path):
    return list(check.lines_of(path))


def slow_of(log, subscriber):
    """What one that read little got, what it missed between the first and the last number of each topic, and what of that replay does not have either."""
    got = collections.defaultdict(set)
    for line in lines_of(subscriber["path"]):
        got[line["topic"]].add(line["seq"])
    _, reading, _ = log.final()
    kept = {(each.topic, each.seq) for each in log.seen if each.gateway == subscriber["gateway"] and each.reading == reading}
    missed = [(topic, seq) for topic, numbers in got.items() for seq in range(min(numbers), max(numbers)) if seq not in numbers]
    return {"phase": subscriber["phase"], "gateway": subscriber["gateway"], "read": sum(len(numbers) for numbers in got.values()),
            "missed": len(missed), "missed_and_not_replayed": sum(each not in kept for each in missed)}


def losses_of(log):
    """Of each node that was lost, seconds: until its lease ended, until others sampled its cameras, until windows were answered again; the longest silence."""
    run, found = figures.Run(log), []
    for line, end, until in figures.faults_of(log):
        row = figures.row_of(run, line, end, until)
        found.append({"node": line["node"], "cameras": row["cameras"], "gone": round(end - line["t"], 2),
                      **{name: round(row[key], 2) for name, key in (("detected", "detected"), ("sampled_again", "sampled"),
                                                                    ("answered_again", "answered"), ("silence", "silence"))
                         if row.get(key) is not None},
                      **({"not_sampled": row["not sampled"]} if row.get("not sampled") else {})})
    return found


def kind_of(violation, live):
    """live: cameras whose source may send its first pictures all at once. Their first windows end at the same time then, which is no second owner."""
    same_end = violation.kind == "window" and violation.text.endswith("was told before") and violation.text.split("/")[2] in live
    return "same_end" if same_end else violation.kind


def of(folder, phases, slow, stride, wall, live=()):
    """All of a step. phases, slow: what phases.Phases told; wall: see windows_of; live: see kind_of."""
    log = check.Log.of(folder)
    samples = lines_of(os.path.join(folder, "measures.jsonl"))
    windows = windows_of(log, wall)
    violations = check.violations(log)
    kinds = collections.Counter(kind_of(each, live) for each in violations)
    same_ends = kinds.pop("same_end", 0)
    return {"phases": [phase_of(log, windows, samples, phase, stride) for phase in phases], "events": events_of(log),
            "losses": losses_of(log), "slow_subscribers": [slow_of(log, each) for each in slow],
            "same_ends": same_ends, "violations": dict(kinds),
            "violations_first": [json.dumps(each._asdict()) for each in violations if kind_of(each, live) in kinds][:5]}


def broken(step, limits):
    """What of a step is beyond the limits, a line each."""
    for phase in step["phases"]:
        at = f"{step['cameras']} cameras, {phase['name']}"
        for key in ("p50", "p95", "p99", "max"):
            most = limits.get(f"latency_{key}")
            if most is not None and not phase["latency"].get(key, float("inf")) <= most:
                yield f"{at}: latency_{key} {phase['latency'].get(key, 'unknown')} s, {most:g} s at most"
        share = phase["windows"]["answered_share"]
        if "answered" in limits and (share is None or share < limits["answered"]):
            yield f"{at}: {share} of the windows answered, {limits['answered']:g} at least"
    for loss in step["losses"]:
        for key in ("sampled_again", "answered_again", "silence"):
            if key in limits and key in loss and loss[key] > limits[key]:
                yield f"{step['cameras']} cameras, loss of {loss['node']}: {key} {loss[key]:g} s, {limits[key]:g} s at most"
        if loss.get("not_sampled"):
            yield f"{step['cameras']} cameras, loss of {loss['node']}: {loss['not_sampled']} cameras were not taken over"
    lost = step["events"]["lost"] + step["events"]["gaps"] + sum(each["missed_and_not_replayed"] for each in step["slow_subscribers"])
    if "lost" in limits and lost > limits["lost"]:
        yield f"{step['cameras']} cameras: {lost} events lost, {limits['lost']} at most"
    count = sum(step["violations"].values())
    if "violations" in limits and count > limits["violations"]:
        yield f"{step['cameras']} cameras: {count} violations ({', '.join(sorted(step['violations']))}), {limits['violations']} at most"
    for text in step["problems"]:
        yield f"{step['cameras']} cameras: {text}"
