#!/usr/bin/env python3
"""The tables of what methods.py found: which answers are right, which windows were found by which few tokens, and how far told moments are off.

    tools/evaluation/recall/grade.py OUT ... [--threshold 2.5]

"Yes" is said where its log odds are above the threshold. A "whether" is right if it says what is so; a "when" if its moment lies within NEAR seconds of a time that it happened; a "who" if it
names all colours of one that is in the window. What did not happen is answered rightly by "No" alone. Needs torch.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

from evaluation.tables import wilson  # noqa: E402
from report import best  # noqa: E402

NEAR, STRIDE, LENGTH, PAGE, WINDOWS = 5.0, 8, 40, 8, 90
METHODS = ("oracle", "oracle, kept", "exhaustive", "windows", "windows, anew", "inner 2", "compose", "changed", "rekv", "random", "uniform", "recent")
EVENTS = ("fall", "stop", "bag")  # of a moment; the other rules hold for a while


def read_from(answer, method):
    """The seconds (begin, end) of the pieces of the hour that a method's sentence is about, in the order in which it saw them."""
    if method == "compose":
        return [(page * PAGE, (page + 1) * PAGE) for page in answer["pages"]]
    if method == "inner 2":
        return [(answer["inner 2"] * PAGE, (answer["inner 2"] + 2) * PAGE)]
    first = answer["oracle"] if method.startswith("oracle") else answer["chosen"][method.split(",")[0]]
    return [(first * STRIDE, first * STRIDE + LENGTH)]


def moment(said, pieces):
    """The second of the hour that a sentence names first, or None."""
    found = re.search(r"second (\d+)", said)
    if found is None:
        return None
    second = int(found.group(1))
    for begin, end in pieces:
        if second < end - begin:
            return begin + second
        second -= end - begin
    return pieces[-1][1] + second


def off(told, windows):
    """Seconds from a told moment to the nearest time that it happened: positive if that is later."""
    return min((max(window["from"] - told, 0.0) or min(window["to"] - told, 0.0) for window in windows), key=abs)


def right(question, answer, method, threshold):
    """Whether a method's answer to a question is right."""
    yes = answer["odds"]["windows" if method == "inner 2" else method] > threshold
    if yes != question["happened"]:
        return False
    if not yes or question["kind"] == "whether":
        return True
    said, pieces = answer.get("said", {}).get(method), read_from(answer, method)
    if said is None:
        return False
    if question["kind"] == "when":
        told = moment(said, pieces)
        return told is not None and abs(off(told, question["windows"])) <= NEAR
    words = re.findall("[a-z]+", said.lower())
    inside = [window for window in question["windows"] if any(window["from"] < end and window["to"] > begin for begin, end in pieces)]
    return any(all(colour in words for colour in window["colours"]) for window in inside)


def methods_table(results, threshold):
    lines = ["| method | right (95 %) | whether | when | who | Yes where it happened | false Yes | in a true window |", "|---|---|---|---|---|---|---|---|"]
    pairs = [(result, question, answer) for result in results for question, answer in zip(result["questions"], result["answers"])]
    for method in METHODS:
        graded = {kind: [right(q, a, method, threshold) for _, q, a in pairs if q["kind"] == kind] for kind in ("whether", "when", "who")}
        total = sum(graded.values(), [])
        low, high = wilson(sum(total), len(total))
        said = {happened: [a["odds"]["windows" if method == "inner 2" else method] > threshold for _, q, a in pairs if q["happened"] == happened] for happened in (True, False)}
        true = [bool(r["truth"][q["rule"]][a["chosen"][method]] == 1) for r, q, a in pairs if q["happened"] and method in a["chosen"]]
        lines.append(f"| {method} | {np.mean(total):.3f} ({low:.3f} to {high:.3f}) | " + " | ".join(f"{np.mean(each):.3f}" for each in graded.values())
                     + f" | {np.mean(said[True]):.3f} | {np.mean(said[False]):.3f} | {f'{np.mean(true):.3f}' if true else ''} |")
    for share in (.3, .9, "everything"):
        odds = {happened: np.array([a["clusters"][share][0] for _, q, a in pairs if q["happened"] == happened]) for happened in (True, False)}
        read = np.mean([a["clusters"][share][1] for _, _, a in pairs])
        area = (odds[True][:, None] > odds[False]).mean()
        lines.append(f"| clusters, {share}: {read:.2f} of the tokens read, area under the curve {area:.3f} | | | | | {(odds[True] > threshold).mean():.3f} | {(odds[False] > threshold).mean():.3f} | |")
    return "\n".join(lines)


def once(results):
    """Each rule of each scene once."""
    for result in results:
        rules = set()
        for row, question in enumerate(result["questions"]):
            if question["rule"] not in rules:
                rules.add(question["rule"])
                yield result, row, question


def rank_of(result, row, name, read):
    """What a method or a signal thinks of each window."""
    count, chance = len(result["windows"]), np.random.default_rng([result["seed"], row])
    even = np.isin(np.arange(count), np.linspace(0, count - 1, 2 * read + 1).round().astype(int)[1::2])
    plain = dict(recent=np.arange(count), random=chance.random(count), uniform=even.astype(float), changed=np.asarray(result["busy"].float()))
    return plain[name] if name in plain else result["scores"][name][row].float().numpy()


def found_table(results, names, reads, threshold):
    """For each signal and number of windows that are read: bytes as a share of the hour's, whether a true one is among them, and which of the events of rules with few of them."""
    lines = ["| chosen by | windows read | bytes | a true one | each event, few | asked 0 to 20 min later | 20 to 40 | 40 to 60 | Yes | false Yes |", "|---" * 10 + "|"]
    for name, share in names:
        for read in reads:
            hits, ages, said = [], [], {True: [], False: []}
            for result, row, question in once(results):
                full, truth = result["scores"]["all"][row].float().numpy(), result["truth"][question["rule"]].numpy()
                chosen = best(rank_of(result, row, name, read), read)
                said[question["happened"]].append(full[chosen].max() > threshold)
                if question["happened"]:
                    hits.append(any(truth[window] == 1 for window in chosen))
                    if len(question["windows"]) <= 4:
                        ages += [(time["age"], any(w * STRIDE < time["to"] and w * STRIDE + LENGTH > time["from"] for w in chosen)) for time in question["windows"]]
            within = [[hit for age, hit in ages if low <= age < low + 1200] for low in (0, 1200, 2400)]
            lines.append(f"| {name} | {read} | {share + read / WINDOWS:.3f} | {np.mean(hits):.3f} | {np.mean([hit for _, hit in ages]):.3f} | " + " | ".join(f"{np.mean(each):.2f} of {len(each)}" if each else "" for each in within)
                         + f" | {np.mean(said[True]):.3f} | {np.mean(said[False]):.3f} |")
    return "\n".join(lines)


def moments_table(results):
    """How far the first moment of the sentences is off."""
    lines = ["| method | of a moment: within 2 s | within 5 s | for a while: within 2 s | within 5 s |", "|---|---|---|---|---|"]
    for method in ("oracle", "oracle, kept", "exhaustive", "windows", "windows, anew", "inner 2", "compose"):
        cells = []
        for events in (True, False):
            told = [(moment(a["said"][method], read_from(a, method)), q) for r in results for q, a in zip(r["questions"], r["answers"])
                    if q["kind"] == "when" and q["happened"] and (q["rule"] in EVENTS) == events and method in a.get("said", {})]
            errors = np.array([abs(off(at, q["windows"])) for at, q in told if at is not None])
            cells += [f"{np.mean(errors <= 2):.2f} of {len(errors)}", f"{np.mean(errors <= 5):.2f}"] if len(errors) else ["", ""]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--threshold", type=float, default=2.5, help="log odds of \"Yes\"")
    args = parser.parse_args()
    results = [torch.load(path, weights_only=False) for folder in args.folders for path in sorted(folder.glob("*.found.pt"))]
    if not results:
        raise SystemExit(f"grade: {args.folders[0]}: nothing in it that methods.py found")
    asked = list(once(results))
    print(f"{len(results)} scenes, {sum(len(result['questions']) for result in results)} questions; {len(asked)} rules of scenes, of which {sum(q['happened'] for _, _, q in asked)} happened\n")
    print(methods_table(results, args.threshold), end="\n\n")
    sketches = [("stands, hour's 0.01", .01), ("stands, hour's 0.02", .02), ("stands, hour's 0.05", .05), ("stands, last minutes' 0.02", .02), ("stands, hour's 0.02: int4", .02), ("changed, hour's 0.02", .02), ("stands 1/40", .025)]
    print(found_table(results, [("all", 1.0)], (1, 4), args.threshold))
    print("\n".join(found_table(results, sketches, (1, 2, 4, 6), args.threshold).split("\n")[2:]))
    print("\n".join(found_table(results, [("stands, hour's 0.02: exit after 2", .007), ("stands, hour's 0.02: mass, layer 2", .007)], (4, 6), args.threshold).split("\n")[2:]))
    print("\n".join(found_table(results, [(name, 0.0) for name in ("recent", "uniform", "random", "changed", "rekv, layer 2", "rekv, layer 4")], (6, 9), args.threshold).split("\n")[2:]), end="\n\n")
    print(moments_table(results))


if __name__ == "__main__":
    main()
