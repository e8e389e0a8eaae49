"""F1 with confidence intervals, and calibration, as Markdown."""

import math
from collections import defaultdict

import numpy as np


def wilson(hits, count):
    if count == 0:
        return 0.0, 1.0
    z, p = 1.959964, hits / count
    centre, spread = p + z * z / (2 * count), z * math.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return max(0.0, (centre - spread) / (1 + z * z / count)), min(1.0, (centre + spread) / (1 + z * z / count))


def row(name, results):
    """One line of the table from pairs (truth, probability of yes)."""
    tp = sum(t and p > .5 for t, p in results)
    fp = sum(not t and p > .5 for t, p in results)
    fn = sum(t and p <= .5 for t, p in results)
    tn = len(results) - tp - fp - fn
    precision, recall = tp / max(1, tp + fp), tp / max(1, tp + fn)
    f1 = 2 * tp / max(1, 2 * tp + fp + fn)
    # F1 = 2 tp / (2 tp + fp + fn): the share of hits among (hits counted twice and errors); its interval follows from the share's.
    low, high = wilson(2 * tp, 2 * tp + fp + fn)
    right = wilson(tp + tn, len(results))
    return f"| {name} | {tp + fn} / {fp + tn} | {f1:.3f} | {low:.3f} to {high:.3f} | {precision:.3f} | {recall:.3f} | {(tp + tn) / max(1, len(results)):.3f} ({right[0]:.3f} to {right[1]:.3f}) |", f1


HEAD = "| | yes / no | F1 | 95 % | precision | recall | accuracy (95 %) |\n|---|---|---|---|---|---|---|"


CONDITIONS = ("day", "dusk", "night", "infrared", "rain", "snow", "jitter", "h264", "h265", "100 kbit/s or less", "10 s", "20 s", "40 s")


def matrix(results):
    """F1 (and windows) of each rule under each condition; results[(rule, condition)] holds pairs (truth, probability of yes)."""
    shown = [c for c in CONDITIONS if any(tag == c for _, tag in results)]
    lines = ["| | " + " | ".join(shown) + " |", "|---" * (len(shown) + 1) + "|"]
    for rule in dict.fromkeys(rule for rule, _ in results):
        cells = [f"{row('', results[(rule, c)])[1]:.2f} ({len(results[(rule, c)])})" if results.get((rule, c)) else "" for c in shown]
        lines.append(f"| {rule} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def calibration(records):
    """Five bins of equal width of the probability of "Yes", with the share of windows in which "Yes" was right; then five of equally many."""
    by_width = defaultdict(list)
    for record in records:
        by_width[min(4, int(record["probability_yes"] * 5))].append((record["probability_yes"], record["truth"]))
    ordered = sorted((record["probability_yes"], record["truth"]) for record in records)
    cuts = [len(ordered) * k // 5 for k in range(6)]
    by_count = [ordered[first:last] for first, last in zip(cuts, cuts[1:]) if last > first]
    return "\n\n".join((bin_table([(f"{k / 5:.1f} to {k / 5 + .2:.1f}", by_width[k]) for k in sorted(by_width)]),
                        bin_table([(f"{each[0][0]:.4f} to {each[-1][0]:.4f}", each) for each in by_count])))


def bin_table(bins):
    lines = ["| probability of yes | answers | mean probability | share of yes (95 %) | difference |", "|---|---|---|---|---|"]
    for name, answers in bins:
        p, t = zip(*answers)
        low, high = wilson(sum(t), len(t))
        lines.append(f"| {name} | {len(p)} | {np.mean(p):.3f} | {np.mean(t):.3f} ({low:.3f} to {high:.3f}) | {np.mean(t) - np.mean(p):+.3f} |")
    return "\n".join(lines)
