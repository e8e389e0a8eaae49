"""Policies beside full computation: scores, differences and alerts, over scenes whose truth is known."""

from dataclasses import dataclass, field

import numpy as np

CONFIRM = 2  # windows in a row that make an alert
ROUNDS = 2000  # of the bootstrap


@dataclass
class Scene:
    """One scene under one policy."""

    light: str
    weather: str
    # (rule, truth, told, has just left) of each window that has an answer, in the order of time by rule.
    answers: list = field(default_factory=list)
    groups: int = 0
    encoded: int = 0
    visual: int = 0
    reused: int = 0
    gflop: float = 0.0


def answers_of(record, windows, questions, asked):
    """A Scene of what the JSON beside a scene tells and what `vigil ask --window` printed. Raises SystemExit where nobody judged these windows."""
    seconds, stride = windows
    judged = next((each["windows"] for each in record.get("shapes", ()) if (each["seconds"], each["stride"]) == windows), None)
    if judged is None:
        raise SystemExit(f"policies: scene {record['seed']}: no windows of {seconds:g} s every {stride:g} s are judged; tools/scenes/held_out_long.py does it")
    scene = Scene(record["light"], record["weather"])
    # Windows end at a multiple of the stride, in either; those of the stream's beginning are shorter and not judged.
    told = {round(window["end"] / stride): window for window in asked if abs(window["end"] - window["start"] - seconds) < stride / 4}
    for window in judged:
        answer = told.get(round((window["start"] + seconds) / stride))
        if answer is None:
            continue
        for rule, truth in window["rules"].items():
            if truth is not None:
                scene.answers.append((rule, truth, answer["probability_yes"][questions[rule]] >= .5, rule in window.get("left", {})))
    for window in asked:
        scene.groups += window["groups"]["all"]
        scene.encoded += window["groups"]["encoded"]
        scene.visual += window["tokens"]["visual"]
        scene.reused += window["tokens"]["reused"]
        scene.gflop += window["gflop"]
    return scene


def f1(answers):
    """None where nothing is Yes and nothing was told."""
    hits = sum(truth and told for _, truth, told, _ in answers)
    wrong = sum(truth != told for _, truth, told, _ in answers)
    return 2 * hits / (2 * hits + wrong) if hits + wrong else None


def mean_f1(scenes):
    """Over the rules, each over all windows of all scenes."""
    by_rule = {}
    for scene in scenes:
        for answer in scene.answers:
            by_rule.setdefault(answer[0], []).append(answer)
    scores = [score for score in map(f1, by_rule.values()) if score is not None]
    return float(np.mean(scores)) if scores else None


def alerts(answers):
    """(episodes, missed, false, strides late) of one rule in one scene: an episode is a run of windows that are Yes, long enough to be confirmed."""
    truth = [each[1] for each in answers]
    told = [each[2] for each in answers]
    raised = [i for i in range(CONFIRM - 1, len(told)) if all(told[i - CONFIRM + 1:i + 1]) and not (i >= CONFIRM and all(told[i - CONFIRM:i]))]
    episodes, begin = [], None
    for i, yes in enumerate(truth + [False]):
        if yes and begin is None:
            begin = i
        elif not yes and begin is not None:
            episodes.append((begin, i - 1))
            begin = None
    missed, late, explained = 0, [], set()
    counted = 0
    for first, last in episodes:
        # An alert that was on before goes on; one that is raised within it, or while it is still confirmed, is its.
        its = [i for i in raised if first <= i <= last + CONFIRM - 1]
        explained.update(its)
        if last - first + 1 < CONFIRM:
            continue
        counted += 1
        was_on = first > 0 and all(told[max(0, first - CONFIRM + 1):first + 1]) and told[first - 1]
        if its:
            late.append(max(0, its[0] - (first + CONFIRM - 1)))
        elif not was_on:
            missed += 1
    return counted, missed, len(set(raised) - explained), late


def interval(base, other, random):
    """Of the difference of the mean F1 (other - base), 95 %, by drawing scenes."""
    differences = []
    for _ in range(ROUNDS):
        drawn = random.integers(len(base), size=len(base))
        a, b = mean_f1([base[i] for i in drawn]), mean_f1([other[i] for i in drawn])
        if a is not None and b is not None:
            differences.append(b - a)
    return np.percentile(differences, [2.5, 97.5]) if differences else (float("nan"),) * 2


def number(value):
    return "" if value is None else f"{value:.3f}"


def table(results, random):
    """Markdown. `results`: the scenes of each policy, in the same order; the first policy is the base."""
    base = next(iter(results.values()))
    spent = sum(scene.gflop for scene in base)  # nothing on a GPU, where nobody counts
    rules = list(dict.fromkeys(answer[0] for scene in base for answer in scene.answers))
    lights = sorted({scene.light for scene in base})
    weathers = sorted({scene.weather for scene in base})
    yes = {rule: sum(answer[1] for scene in base for answer in scene.answers if answer[0] == rule) for rule in rules}
    lines = [f"{len(base)} scenes, {sum(len(scene.answers) for scene in base)} answers; Yes: " + ", ".join(f"{rule} {count}" for rule, count in yes.items()), "",
             "| policy | mean F1 | difference (95 %) | " + " | ".join(rules) + " | " + " | ".join(lights + weathers) + " | just left: false Yes | missed / false / late of alerts | encoded | reused | products |",
             "|---|" + "---|" * (7 + len(rules) + len(lights) + len(weathers))]
    for name, scenes in results.items():
        low, high = interval(base, scenes, random)
        every = [answer for scene in scenes for answer in scene.answers]
        left = [told for _, truth, told, left in every if left and not truth]
        totals = [0, 0, 0, []]
        for scene in scenes:
            for rule in rules:
                episodes, missed, false, late = alerts([answer for answer in scene.answers if answer[0] == rule])
                totals[0] += episodes
                totals[1] += missed
                totals[2] += false
                totals[3] += late
        row = [name, number(mean_f1(scenes)), f"{mean_f1(scenes) - mean_f1(base):+.3f} ({low:+.3f} … {high:+.3f})"]
        row += [number(f1([answer for answer in every if answer[0] == rule])) for rule in rules]
        row += [number(mean_f1([scene for scene in scenes if scene.light == light])) for light in lights]
        row += [number(mean_f1([scene for scene in scenes if scene.weather == weather])) for weather in weathers]
        row += [f"{sum(left)} of {len(left)}", f"{totals[1]} of {totals[0]} / {totals[2]} / {sum(late > 0 for late in totals[3])}"]
        row += [number(sum(s.encoded for s in scenes) / max(1, sum(s.groups for s in scenes))), number(sum(s.reused for s in scenes) / max(1, sum(s.visual for s in scenes))),
                number(sum(s.gflop for s in scenes) / spent if spent else None)]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)
