#!/usr/bin/env python3
"""Fits how sure a model says it is to how often it is right, and writes that into its folder (calibration.json).

    tools/scenes/write.py build/validation --balanced 220 --seeds 900000 900001
    tools/evaluate.py --scenes build/validation --json build/validation.jsonl
    tools/calibrate.py build/validation.jsonl models/demo

Platt scaling: one slope and one bias for all rules, on the log odds of "Yes" against "No", of the greatest likelihood. Only answers about scenes that are not held out are taken.
Prints the fit, how far it moves when the scenes are drawn again (bootstrap) and between halves of them, and the calibration before and after. `--dry` writes nothing.
"""

import argparse
import json
import sys
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS)]

from evaluation import calibration, tables  # noqa: E402

HELD_OUT = 1_000_000  # as scenes/story.py


def read(path):
    """The records of an evaluation of scenes. Raises SystemExit for anything that may not be fitted on."""
    records = []
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SystemExit(f"calibrate: {path}: {getattr(error, 'strerror', None) or 'no text'}") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            record = json.loads(line)
            seed, truth, p = record["window"], record["truth"], record["probability_yes"]
        except (ValueError, KeyError, TypeError):
            raise SystemExit(f"calibrate: {path}: line {number} is no answer of tools/evaluate.py --scenes") from None
        if not (isinstance(seed, str) and seed.isdigit() and int(seed) < HELD_OUT):
            raise SystemExit(f"calibrate: {path}: line {number}: {seed!r} is no scene of a seed below {HELD_OUT}: what is held out may not be fitted on")
        if not isinstance(truth, bool) or not isinstance(p, (int, float)) or not 0 <= p <= 1:
            raise SystemExit(f"calibrate: {path}: line {number}: truth {truth!r}, probability {p!r}")
        records.append(record)
    if not records:
        raise SystemExit(f"calibrate: {path} is empty")
    return records


def told(z, truth, slope, bias):
    return tables.calibration([dict(probability_yes=float(p), truth=bool(t)) for p, t in zip(calibration.probability(z, slope, bias), truth)])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", nargs="+", help="what tools/evaluate.py --scenes --json kept")
    parser.add_argument("model", help="the model's folder")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    args = parser.parse_args(arguments)
    if not (Path(args.model) / "config.json").exists():
        raise SystemExit(f"calibrate: {args.model}: no model folder")
    records = [record for path in args.answers for record in read(path)]
    z, truth = calibration.own_log_odds(records), np.array([record["truth"] for record in records])
    scenes, rules = np.array([record["window"] for record in records]), np.array([record["rule"] for record in records])
    try:
        slope, bias = calibration.fit(z, truth)
    except ValueError as error:
        raise SystemExit(f"calibrate: {error}") from None
    fits = calibration.spread(z, truth, scenes)
    low, high = np.percentile(fits, [2.5, 97.5], axis=0)
    names = sorted(set(scenes), key=int)
    said = (f"{len(records)} answers about {len(names)} scenes of seeds {names[0]} to {names[-1]}; 95 % of {len(fits)} bootstraps: "
            f"slope {low[0]:.2f} to {high[0]:.2f}, bias {low[1]:.2f} to {high[1]:.2f}")
    print(f"slope {slope:.3f}, bias {bias:.3f}; {said}\n")

    print("| fitted on | answers | yes | slope | bias | mean loss before | after (all answers' fit) |\n|---|---|---|---|---|---|---|")
    half = np.isin(scenes, names[::2])
    for name, part in [("all", half | True), ("every other scene", half), ("the other scenes", ~half), *((rule, rules == rule) for rule in sorted(set(rules)))]:
        try:
            own = "{:.3f} | {:.3f}".format(*calibration.fit(z[part], truth[part]))
        except ValueError:
            own = "– | –"
        print(f"| {name} | {part.sum()} | {truth[part].sum()} | {own} | {calibration.loss(z[part], truth[part], 1, 0):.4f} | {calibration.loss(z[part], truth[part], slope, bias):.4f} |")
    crossed = np.empty(len(z))
    for part in (half, ~half):
        crossed[~part] = calibration.probability(z[~part], *calibration.fit(z[part], truth[part]))
    print("\nBefore:\n\n" + told(z, truth, 1, 0))
    print("\nAfter, each half of the scenes with the fit on the other half:\n\n" + told(calibration.log_odds(crossed), truth, 1, 0))
    if not args.dry:
        (Path(args.model) / calibration.FILE).write_text(json.dumps({"yes": {"slope": round(slope, 3), "bias": round(bias, 3)}, "fitted_on": said}, indent=1) + "\n")


if __name__ == "__main__":
    main()
