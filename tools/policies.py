#!/usr/bin/env python3
"""What policies of pruning and refresh cost in answers and save in work, over long scenes whose truth is known.

    tools/policies.py SCENE.mp4 ... --windows 10:2 --policy none/all --policy none/none --policy reference/first-k:0.15 --json FILE

Scenes are those of tools/scenes/held_out_long.py, judged for these windows. A policy is PRUNE/REFRESH[:SHARE], as of `vigil ask --window`; the first one is what the others are
compared with. Prints for each: F1 by rule, light and weather, of windows that something has just left, the difference of the mean F1 with its interval (95 %, bootstrap over scenes),
alerts after two windows in a row (missed, false, late), groups encoded, tokens that were reused, and the matrix products' share of what the first one took. FILE keeps every answer,
a line each; what it holds already is not asked again.
"""

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(Path(__file__).resolve().parent))

from evaluate import QUESTIONS, shape  # noqa: E402
from evaluation import policies  # noqa: E402


def policy(text):
    """"none/first-k:0.15" as its words for `vigil ask`."""
    prune, _, refresh = text.partition("/")
    refresh, _, share = refresh.partition(":")
    if not prune or not refresh:
        raise argparse.ArgumentTypeError(f"expected PRUNE/REFRESH[:SHARE], not {text!r}")
    return text, ["--prune", prune, "--refresh", refresh, *(["--refresh-share", share] if share else [])]


def ask(args, scene, words):
    """The windows of a scene, as `vigil ask` prints them."""
    seconds, stride = args.windows
    command = [args.vigil, "ask", str(scene), *QUESTIONS.values(), "--model", args.model, "--window", f"{seconds:g}s", "--stride", f"{stride:g}s", "--output", "json", *words]
    done = subprocess.run(command + (["--device", args.device] if args.device else []), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"policies: {' '.join(command)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenes", nargs="+", type=Path, metavar="SCENE.mp4")
    parser.add_argument("--windows", type=shape, default=(10.0, 2.0), metavar="SECONDS:STRIDE")
    parser.add_argument("--policy", type=policy, action="append", required=True, metavar="PRUNE/REFRESH[:SHARE]")
    parser.add_argument("--model", default=str(ROOT / "models" / "demo"))
    parser.add_argument("--device", help="as of vigil ask")
    parser.add_argument("--vigil", default=str(ROOT / "build" / "release" / "bin" / "vigil"))
    parser.add_argument("--jobs", type=int, default=1, help="scenes at a time")
    parser.add_argument("--json", type=Path, help="file for every answer")
    args = parser.parse_args()
    for scene in args.scenes:
        if not scene.exists():
            raise SystemExit(f"policies: {scene}: no such file")

    known = {}
    if args.json and args.json.exists():
        for line in args.json.read_text().splitlines():
            record = json.loads(line)
            known[record["scene"], record["policy"], tuple(record["windows"])] = record["asked"]
    todo = [(scene, name, words) for name, words in args.policy for scene in args.scenes if (scene.stem, name, args.windows) not in known]
    kept = args.json.open("a") if args.json else None
    with ThreadPoolExecutor(args.jobs) as pool:
        for (scene, name, _), asked in zip(todo, pool.map(lambda job: ask(args, job[0], job[2]), todo)):
            known[scene.stem, name, args.windows] = asked
            if kept:
                kept.write(json.dumps({"scene": scene.stem, "policy": name, "windows": args.windows, "asked": asked}) + "\n")
                kept.flush()
    results = {
        name: [policies.answers_of(json.loads(scene.with_suffix(".json").read_text()), args.windows, QUESTIONS, known[scene.stem, name, args.windows]) for scene in args.scenes]
        for name, _ in args.policy
    }
    print(policies.table(results, np.random.default_rng(1)))


if __name__ == "__main__":
    main()
