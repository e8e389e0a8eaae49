#!/usr/bin/env python3
"""What it costs in answers that a window's keys and values went through pages of each form and came back at their own positions.

    tools/evaluation/forms.py --scenes DIR [--limit 200] [--model models/demo] [--device cpu] [--json FILE]

DIR: a set that tools/scenes/write.py made. The engine does it (build/release/bin/page_answers, loadtest/engine/page_answers.cpp): each window is asked the rules' questions whole, and again once its pages
of 256 tokens were packed in a form and unpacked to where they were. F1 is each rule's, then the mean; "whole" is the same window with the keys that it has computed.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402

from evaluate import QUESTIONS  # noqa: E402
from evaluation import tables, windows  # noqa: E402

FORMS = ("whole", "bf16", "fp8", "int4")  # and "again": bf16 that was of bf16 before, beside that


def asked(found):
    """Of each window what the program is asked, and the rules and truths of its questions."""
    for window in found:
        rules = [rule for rule, truth in window["truth"].items() if truth is not None]
        if rules:
            line = {"video": str(window["path"]), "from": window["start"], "to": window["start"] + window["count"] / window["fps"], "fps": window["fps"], "questions": [QUESTIONS[rule] for rule in rules]}
            yield line, [(rule, window["truth"][rule]) for rule in rules]


def mean_f1(records, form):
    """Mean F1 of the rules, of records with `rule`, `truth` and the probability of "Yes" in each form."""
    by_rule = defaultdict(list)
    for record in records:
        by_rule[record["rule"]].append((record["truth"], record["yes"][form]))
    return float(np.mean([tables.row(rule, results)[1] for rule, results in sorted(by_rule.items())]))


def figures(records, form):
    """What a form's row of the table says."""
    whole = mean_f1(records, "whole")
    moved = [abs(record["yes"][form] - record["yes"]["whole"]) for record in records]
    return dict(form=form, f1=mean_f1(records, form), costs=whole - mean_f1(records, form), turned=sum((record["yes"][form] > .5) != (record["yes"]["whole"] > .5) for record in records),
                moved=float(np.mean(moved)), most_moved=max(moved), largest=max(record["largest"][form] for record in records), equal=sum(record["differ"][form] == 0 for record in records))


def table(records):
    lines = ["| form | mean F1 | it costs | answers that turn | P(Yes) moves, mean | most | logits' largest difference | answers whose logits are equal to the bit |", "|---" * 8 + "|"]
    for form in FORMS:
        each = figures(records, form)
        lines.append(f"| {form} | {each['f1']:.4f} | {each['costs']:+.4f} | {each['turned']} of {len(records)} | {each['moved']:.5f} | {each['most_moved']:.4f} | {each['largest']:.4f} | {each['equal']} of {len(records)} |")
    again = [record["again"] for record in records]
    lines.append(f"\nKeys that are of bf16 already, through bf16 once more: {sum(differ == 0 for differ, _ in again)} of {len(again)} answers have equal logits to the bit; largest difference {max(largest for _, largest in again):.4g}")
    return "\n".join(lines)


def record_of(told, rule, truth):
    forms = told["forms"]
    return dict(video=Path(told["video"]).name, rule=rule, truth=truth, tokens=told["tokens"], pages=told["pages"], again=(told["again"]["differ"], told["again"]["largest"]), yes=dict(whole=told["probability_yes"], **{form: each["probability_yes"] for form, each in forms.items()}),
                largest=dict(whole=0.0, **{form: each["largest"] for form, each in forms.items()}), differ=dict(whole=0, **{form: each["differ"] for form, each in forms.items()}))


def known_of(path, asked_of):
    """The records that the file holds of this model and type, by video and rule; a last line that was cut off is none."""
    known = {}
    for line in Path(path).read_text().splitlines() if path and Path(path).exists() else ():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record["asked_of"] == asked_of:
            known[record["video"], record["rule"]] = record
    return known


def answered(args, chosen):
    """Records of these windows, as the program answers."""
    if not chosen:
        return
    with tempfile.TemporaryFile("w+") as lines:
        lines.write("".join(json.dumps(line) + "\n" for line, _ in chosen))
        lines.seek(0)
        with subprocess.Popen([*shlex.split(args.program), args.model, args.dtype, args.device], stdin=lines, stdout=subprocess.PIPE, text=True) as process:
            for rule, truth in (pair for _, pairs in chosen for pair in pairs):
                line = process.stdout.readline()
                if not line:
                    break
                yield record_of(json.loads(line), rule, truth)
    if process.returncode:
        raise SystemExit(f"forms: {args.program} failed")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", required=True)
    parser.add_argument("--limit", type=int, default=200, help="windows at most")
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--dtype", choices=("auto", "f32", "bf16"), default="auto", help="what the engine computes in")
    parser.add_argument("--device", default="cpu", help="where the engine computes")
    parser.add_argument("--program", default="build/release/bin/page_answers")
    parser.add_argument("--json", help="file for every answer; those that it holds are not asked again")
    args = parser.parse_args()
    chosen = list(asked(list(windows.scene_windows(args.scenes, args.limit))))
    if not chosen:
        raise SystemExit(f"forms: {args.scenes}: no scenes in it; tools/scenes/write.py makes some")
    asked_of = [args.model, args.dtype, args.device]
    known = known_of(args.json, asked_of)
    asked_now = [(line, pairs) for line, pairs in chosen if any((Path(line["video"]).name, rule) not in known for rule, _ in pairs)]
    for record in answered(args, asked_now):
        known[record["video"], record["rule"]] = record
        if args.json:
            with open(args.json, "a", encoding="utf-8") as kept:
                kept.write(json.dumps(dict(record, asked_of=asked_of)) + "\n")
    records = [known[Path(line["video"]).name, rule] for line, pairs in chosen for rule, _ in pairs]
    pages = [record["pages"] for record in records]
    print(f"{len(chosen)} windows, {len(records)} answers, {sum(record['truth'] for record in records)} of them \"Yes\"; {min(pages)} to {max(pages)} pages a window\n")
    print(table(records))


if __name__ == "__main__":
    main()
