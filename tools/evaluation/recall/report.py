#!/usr/bin/env python3
"""How well each signal finds the windows in which it happened.    tools/evaluation/recall/report.py OUT [--only WORD ...]"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

STRIDE, APART = 8, 24  # windows nearer than APART seconds to a better one are not looked at


def best(score, count):
    """The windows with the greatest scores that are not near to a better one."""
    order, kept = np.argsort(-score, kind="stable"), []
    for window in order:
        if all(abs(window - other) * STRIDE >= APART for other in kept):
            kept.append(int(window))
            if len(kept) == count:
                break
    return kept


def asked(results):
    """Each gate of each scene once: result, row, rule, whether it happened."""
    for result in results:
        seen = set()
        for row, question in enumerate(result["questions"]):
            gate = question.get("gate", question["question"])
            if gate not in seen:
                seen.add(gate)
                yield result, row, question["rule"], question["happened"], question


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="+")
    args = parser.parse_args()
    results = [torch.load(path, weights_only=False) for path in sorted(args.folder.glob("*.scores.pt"))]
    names = [name for name in results[0]["scores"] if not args.only or any(word in name for word in args.only)]
    pairs = list(asked(results))
    print(f"{len(results)} scenes, {sum(p[3] for p in pairs)} questions about what happened, {sum(not p[3] for p in pairs)} about what did not")
    print("| signal | recall at 1 | 2 | 4 | 8 | needle at 4 | AUC | most odds where it did not happen: median, 95 % |\n|---" + "|---" * 8 + "|")
    for name in ["busy", *names]:
        hits, needles, areas, wrong = [], [], [], []
        for result, row, rule, happened, question in pairs:
            score = (result["busy"] if name == "busy" else result["scores"][name][row]).float().numpy()
            truth = result["truth"][rule].numpy()
            if happened:
                found = [truth[w] == 1 for w in best(score, 8)]
                hits.append([any(found[:k]) for k in (1, 2, 4, 8)])
                if len(question["windows"]) == 1:
                    needles.append(any(found[:4]))
                yes, no = score[truth == 1], score[truth == 0]
                areas.append(((yes[:, None] > no).mean() + .5 * (yes[:, None] == no).mean()) if len(yes) and len(no) else np.nan)
            else:
                wrong.append(score[truth == 0].max())
        recall = np.mean(hits, 0)
        print(f"| {name} | " + " | ".join(f"{r:.3f}" for r in recall) + f" | {np.mean(needles):.3f} ({len(needles)}) | {np.nanmean(areas):.3f} | {np.median(wrong) if wrong else np.nan:.1f}, {np.quantile(wrong, .95) if wrong else np.nan:.1f} |")


if __name__ == "__main__":
    main()
