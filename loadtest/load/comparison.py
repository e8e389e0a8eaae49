"""What got worse from one result to another, what better, and what cannot be compared."""

import collections

Verdict = collections.namedtuple("Verdict", "kind where figure old new ratio text", defaults=(None, None, None, None, ""))

# A percentile is compared where so many windows were heard of that five lie beyond it.
NEEDED = {"latency_p50": 10, "latency_p95": 100, "latency_p99": 500}
# Differences below these are none, whatever their ratio: seconds, cores, MiB, shares, events.
SLACK = {"latency_p50": 0.01, "latency_p95": 0.02, "latency_p99": 0.03, "cores": 0.05, "rss_mib": 8.0, "missing_share": 0.01, "late_share": 0.01,
         "sampled_again": 0.5, "answered_again": 0.5, "silence": 0.5, "lost": 0, "violations": 0}
FIGURES = tuple(SLACK)
# Cores of other programs, more or less.
DISTURBED = 0.3
# Whatever the tolerance, one more of them is worse.
NONE_MORE = ("lost", "violations")


def comparable(old, new, any_machine=False):
    """Why the two cannot be compared at all, in a line; empty if they can."""
    if old["scenario"]["content"]["name"] != new["scenario"]["content"]["name"]:
        return f"other scenarios: {old['scenario']['content']['name']} and {new['scenario']['content']['name']}"
    differ = differences(settings_of(old), settings_of(new))
    if differ:
        return f"the scenario is another one: {'; '.join(differ)}"
    if not any_machine:
        differ = differences({**old["machine"], "kernel": None}, {**new["machine"], "kernel": None})
        if differ:
            return f"other machines: {'; '.join(differ)} (--any-machine compares them all the same)"
    if not {step["cameras"] for step in old["steps"]} & {step["cameras"] for step in new["steps"]}:
        return f"no load in common: {loads_of(old)} and {loads_of(new)} cameras"
    return ""


def settings_of(result):
    """What a measurement depends on: neither its loads, which are compared one by one, nor its limits and words."""
    return {key: value for key, value in result["scenario"]["content"].items() if key not in ("loads", "limits", "about")}


def loads_of(result):
    return ", ".join(str(step["cameras"]) for step in result["steps"])


def differences(old, new, where=""):
    """Where two values differ, each as a path with both."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [each for key in dict.fromkeys([*old, *new]) for each in differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [each for i, (a, b) in enumerate(zip(old, new)) for each in differences(a, b, f"{where}[{i}]")]
    return [] if old == new else [f"{where} {old} and {new}"]


def figures_of_phase(phase, nodes):
    """Values by figure; smaller is better."""
    windows, taken = phase["windows"], [phase["processes"][name] for name in nodes if name in phase["processes"]]
    found = {f"latency_{key}": phase["latency"].get(key) for key in ("p50", "p95", "p99")}
    found["missing_share"] = None if windows["answered_share"] is None else 1 - windows["answered_share"]
    found["late_share"] = windows["late"] / windows["seen"] if windows["seen"] else None
    found["cores"] = sum(each["cores"] for each in taken) if taken else None
    found["rss_mib"] = sum(each["rss_mib"] for each in taken) if taken else None
    return found


def figures_of_step(step):
    return {"lost": step["events"]["lost"] + step["events"]["gaps"] + sum(each["missed_and_not_replayed"] for each in step["slow_subscribers"]),
            "violations": sum(step["violations"].values())}


def figures_of_losses(step):
    """By the order in which nodes were lost: which of the nodes of a role it was may differ."""
    return [{key: loss.get(key) for key in ("sampled_again", "answered_again", "silence")} for loss in step["losses"]]


def judge(where, figure, old, new, tolerance):
    if old is None and new is None:
        return None
    if old is None or new is None:
        return Verdict("not comparable", where, figure, old, new, text=f"only in the {'new' if old is None else 'old'} one")
    ratio = new / old if old else None
    most = 0.0 if figure in NONE_MORE else tolerance
    slack = SLACK[figure]
    if new > old * (1 + most) and new - old > slack:
        return Verdict("worse", where, figure, old, new, ratio)
    if old > new * (1 + most) and old - new > slack:
        return Verdict("better", where, figure, old, new, ratio)
    return Verdict("same", where, figure, old, new, ratio)


def compare(old, new, tolerance=0.2, own=None):
    """Verdicts on all that both have. tolerance: by how much of itself a figure may grow; own: of single figures."""
    own = own or {}
    told = lambda figure: own.get(figure, tolerance)  # noqa: E731
    by_load = [{step["cameras"]: step for step in result["steps"]} for result in (old, new)]
    for load in sorted(set(by_load[0]) | set(by_load[1])):
        steps = [loads.get(load) for loads in by_load]
        where = f"{load} cameras"
        if None in steps:
            yield Verdict("not comparable", where, text=f"only in the {'new' if steps[0] is None else 'old'} one")
            continue
        phases = [{phase["name"]: phase for phase in step["phases"]} for step in steps]
        for name in phases[0]:
            counts = [phase[name]["latency"]["count"] for phase in phases]
            figures = [figures_of_phase(each[name], step.get("nodes", [])) for each, step in zip(phases, steps)]
            for figure in figures[0]:
                if min(counts) < NEEDED.get(figure, 0):
                    yield Verdict("not comparable", f"{where}, {name}", figure,
                                  text=f"{min(counts)} windows are too few for it, {NEEDED[figure]} are needed")
                else:
                    yield judge(f"{where}, {name}", figure, figures[0][figure], figures[1][figure], told(figure))
        losses = [figures_of_losses(step) for step in steps]
        if len(losses[0]) != len(losses[1]):
            yield Verdict("not comparable", f"{where}, losses", text=f"{len(losses[0])} and {len(losses[1])} of them")
        else:
            for i, (before, after) in enumerate(zip(*losses)):
                for figure in before:
                    yield judge(f"{where}, loss {i + 1}", figure, before[figure], after[figure], told(figure))
        before, after = (figures_of_step(step) for step in steps)
        for figure in before:
            yield judge(where, figure, before[figure], after[figure], told(figure))


def verdicts(old, new, tolerance=0.2, own=None):
    return [each for each in compare(old, new, tolerance, own) if each is not None]


def disturbed(old, new):
    """A line for each phase during which other programs took another share of the machine: that alone makes figures worse or better."""
    for steps in ((a, b) for a in old["steps"] for b in new["steps"] if a["cameras"] == b["cameras"]):
        for phase in steps[0]["phases"]:
            other = next((each for each in steps[1]["phases"] if each["name"] == phase["name"]), {})
            taken = [each.get("machine", {}).get("others_cores") for each in (phase, other)]
            if None not in taken and abs(taken[0] - taken[1]) > DISTURBED:
                yield f"{steps[0]['cameras']} cameras, {phase['name']}: other programs took {taken[0]:g} and {taken[1]:g} cores"


def shown(verdict):
    """A line for people."""
    if verdict.kind == "not comparable":
        return f"not comparable: {verdict.where}{f', {verdict.figure}' if verdict.figure else ''}: {verdict.text}"
    unit, factor = ("ms", 1000) if verdict.figure.startswith("latency") else ("%", 100) if verdict.figure.endswith("share") else \
        ("s", 1) if verdict.figure in ("sampled_again", "answered_again", "silence") else ("MiB", 1) if verdict.figure == "rss_mib" else ("", 1)
    times = f", {verdict.ratio:.2f} times" if verdict.ratio is not None else ""
    return f"{verdict.kind}: {verdict.where}: {verdict.figure} {verdict.old * factor:.4g} -> {verdict.new * factor:.4g} {unit}".rstrip() + times
