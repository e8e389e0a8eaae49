#!/usr/bin/env python3
"""Scores a model's answers and prints the tables, with 95 % confidence intervals (Wilson).

    tools/evaluate.py --clips tests/videos                   the second halves of the real clips
    tools/evaluate.py --scenes DIR                           a set that tools/scenes/write.py made
    tools/evaluate.py --long SCENE.mp4 ...                   long scenes (tools/scenes/long.py), all their windows of 10 s
    tools/evaluate.py --long SCENE.mp4 ... --windows 10:2    all their windows of 10 s, one each 2 s; what has just left such a window counts apart, too
    tools/evaluate.py --scenes DIR --control shuffle         the frames in another order; `blank`: grey frames; `words`: a question about what is not there
    tools/evaluate.py --scenes DIR --say                     explanations and free questions against the facts
    tools/evaluate.py --scenes DIR --draft models/demo-draft     how often the drafter's words are the target's (training code, on the CPU)

Engines: `vigil` asks the program itself, `transformers` the published model code, `twin` the training code. `--frames 224x224` squeezes frames as the cameras of config/demo.yaml
do; `--frames model` keeps the shape, as the preprocessor and `vigil ask` do. `--json FILE` keeps every answer (FILE.part while it runs);
answers that FILE holds already are not asked again. `--rules` and `--limit` take a part of a set.
"""

import argparse
import json
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np

TOOLS = Path(__file__).resolve().parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

from evaluation import answers, calibration, engines, tables, windows  # noqa: E402

QUESTIONS = {
    "person": "Is a person present?", "car": "Is a car present?", "zone": "Is a person inside the marked zone?", "fall": "Does a person fall?", "stop": "Does a car stop on the road?", "bag": "Is a bag left behind?",
}
# The same rules in the words of config/demo.yaml and others, for the real clips.
WORDINGS = {"person": ("Is there a person in the room?", "Is a person present?", "a person present"), "car": ("Is there a car on the road?", "Is a car present?", "a car present")}


def shuffled(frames):
    return [frames[k] for k in np.random.default_rng(len(frames)).permutation(len(frames))]


def blank(frames):
    return [np.full_like(frames[0], 128)] * len(frames)


CONTROLS = {"shuffle": shuffled, "blank": blank}


def score(args, engine, found):
    """The table of the rules, by condition; returns every answer."""
    control, known = CONTROLS.get(args.control), {}
    # Only the program knows of it: the other engines tell what the model itself says.
    moved = calibration.of_model(args.model) if args.engine == "vigil" else (1.0, 0.0)
    if args.json and Path(args.json).exists():
        for record in map(json.loads, Path(args.json).read_text().splitlines()):
            if tuple(record.get("calibration", (1.0, 0.0))) == moved:
                known[(record["window"], record["start"], record["seconds"], record["question"])] = record["probability_yes"]

    def answer(window):
        asked = [(rule, question) for rule, truth in window["truth"].items() if truth is not None and rule in args.rules for question in (WORDINGS[rule][:args.wordings] if args.clips else (QUESTIONS[rule],))]
        key = (window["name"], window["start"], window["count"] / window["fps"])
        if any((*key, question) not in known for _, question in asked):
            return window, asked, engine.ask(window, [question for _, question in asked], control)
        return window, asked, [known[(*key, question)] for _, question in asked]

    kept, table, left_out = [], defaultdict(list), defaultdict(int)
    kept_in = open(args.json + ".part", "w") if args.json else None
    with ThreadPoolExecutor(args.jobs) as pool:
        for window, asked, probabilities in pool.map(answer, found):
            for rule, truth in window["truth"].items():
                left_out[rule] += truth is None
            for (rule, question), p in zip(asked, probabilities):
                # Nothing is to be seen in a blank video.
                truth = window["truth"][rule] and args.control != "blank"
                for tag in ["", *window["tags"], *([f'"{question}"'] if args.clips else [])]:
                    table[(rule, tag)].append((truth, p))
                    if tag:
                        table[("all rules", tag)].append((truth, p))
                if rule in window.get("near", ()) or truth:
                    table[(rule, "yes against near misses alone")].append((truth, p))
                if args.windows and (rule in window["left"] or truth):
                    table[(rule, "yes against what has just left alone")].append((truth, p))
                kept.append(dict(window=window["name"], start=window["start"], seconds=window["count"] / window["fps"], rule=rule, question=question, truth=truth, near=rule in window.get("near", ()), probability_yes=round(p, 7), calibration=moved))
                if args.windows:
                    kept[-1].update(left=window["left"].get(rule), light=window["light"], weather=window["weather"])
                if kept_in:
                    kept_in.write(json.dumps(kept[-1]) + "\n")
                    kept_in.flush()
    if any(left_out.values()):
        print("Left out as undecided:", {rule: n for rule, n in left_out.items() if n}, "\n")
    print(tables.HEAD)
    scores = []
    for (rule, tag), results in sorted(table.items()):
        line, f1 = tables.row(f"{rule}: {tag}" if tag else f"**{rule}**", results)
        if not tag:
            scores.append(f1)
        if args.clips or not tag or tag.endswith(" alone"):
            print(line)
    print(f"\nMean F1 of the rules: {np.mean(scores):.3f}\n")
    if args.scenes or args.long:
        print("F1 by condition (windows):\n\n" + tables.matrix({key: table[key] for key in sorted(table)}) + "\n")
    print(tables.calibration(kept))
    return kept


def exchange(args, engine, found):
    """Windows in which one of person and car is there and the other is not: the answer must follow the word."""
    kept, right, changed, count = [], 0, 0, 0
    with ThreadPoolExecutor(args.jobs) as pool:
        chosen = [w for w in found if w["facts"]["rules"]["person"] is not None and w["facts"]["rules"]["car"] is not None and w["facts"]["rules"]["person"] != w["facts"]["rules"]["car"]][:args.limit]
        for window, (person, car) in zip(chosen, pool.map(lambda w: engine.ask(w, [QUESTIONS["person"], QUESTIONS["car"]]), chosen)):
            truth = window["facts"]["rules"]["person"]
            count, changed, right = count + 1, changed + ((person > .5) != (car > .5)), right + ((person > .5) == truth and (car > .5) == (not truth))
            kept.append(dict(window=window["name"], person=person, car=car, truth=truth))
    for name, hits in (("the answer changes with the word", changed), ("and both answers are right", right)):
        low, high = tables.wilson(hits, count)
        print(f"{name}: {hits} of {count}, {hits / max(1, count):.3f} ({low:.3f} to {high:.3f})")
    return kept


def say(args, engine, found):
    """Explanations and free questions, part by part."""
    jobs = [(window, *pair) for window in found for pair in answers.expected(window)]
    kept, table = [], defaultdict(list)
    with ThreadPoolExecutor(args.jobs) as pool:
        for (window, kind, question, wanted), said in zip(jobs, pool.map(lambda job: engine.say(job[0], job[2]), jobs)):
            for part, agrees in answers.compare(said, wanted).items():
                if agrees is not None:
                    for name in {kind, kind.split(":")[0]}:
                        table[(name, part)].append(agrees)
            kept.append(dict(window=window["name"], kind=kind, question=question, wanted=wanted, said=said))
    print("| | part | answers | right (95 %) |\n|---|---|---|---|")
    for (kind, part), agreed in sorted(table.items()):
        low, high = tables.wilson(sum(agreed), len(agreed))
        print(f"| {kind} | {part} | {len(agreed)} | {np.mean(agreed):.3f} ({low:.3f} to {high:.3f}) |")
    return kept


def shape(text):
    """"40:8" as (40.0, 8.0): seconds and stride."""
    seconds, stride = (float(number) for number in text.split(":"))
    return seconds, stride


def windows_of(args):
    """What there is to ask about. Raises SystemExit where there is nothing."""
    for folder in (args.clips, args.scenes):
        if folder is not None and not Path(folder).is_dir():
            raise SystemExit(f"evaluate: {folder}: no such folder")
    for scene in args.long or ():
        for path in (Path(scene), Path(scene).with_suffix(".json")):
            if not path.is_file():
                raise SystemExit(f"evaluate: {path}: no such file")
    if args.clips is not None:
        return list(windows.real_windows(args.clips, args.seconds, args.fps, args.half))
    if args.long:
        return [w for path in args.long for w in windows.long_windows(path, args.windows)]
    if not any(Path(args.scenes).glob("*.json")):
        raise SystemExit(f"evaluate: {args.scenes}: no scenes in it; tools/scenes/write.py makes some")
    found = list(windows.scene_windows(args.scenes, None if args.control == "words" else args.limit, args.every, args.part))
    if not found:
        raise SystemExit(f"evaluate: {args.scenes}: no windows that --limit, --every and --part leave")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--engine", choices=("twin", "transformers", "vigil"), default="vigil")
    parser.add_argument("--program", default="build/release/bin/vigil")
    parser.add_argument("--device", default="cpu", help="of the program: cpu, cuda, cuda:NUMBER")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--clips", help="folder of the real clips")
    what.add_argument("--scenes", help="folder of generated videos")
    what.add_argument("--long", help="a long scene", nargs="+")
    parser.add_argument("--control", choices=(*CONTROLS, "words"))
    parser.add_argument("--say", action="store_true")
    parser.add_argument("--draft", help="folder of a drafter")
    parser.add_argument("--rules", nargs="+", choices=QUESTIONS, default=list(QUESTIONS))
    parser.add_argument("--frames", default="model")
    parser.add_argument("--fps", type=float, default=2.0, help="of the real clips")
    parser.add_argument("--seconds", type=float, nargs="+", default=[4, 10], help="of the windows of the real clips")
    parser.add_argument("--half", choices=("first", "second"), default="second", help="of the real clips; the first is trained on")
    parser.add_argument("--wordings", type=int, default=3, help="wordings of each rule for the real clips")
    parser.add_argument("--every", type=int, default=1, help="takes each so manyth scene alone")
    parser.add_argument("--part", type=float, metavar="SECONDS", help="asks about the first and the last so many seconds of each scene's window instead")
    parser.add_argument("--limit", type=int, help="windows at most")
    parser.add_argument("--windows", type=shape, metavar="SECONDS:STRIDE", help="of the long scenes, such as 40:8; they have to be judged for these")
    parser.add_argument("--jobs", type=int, default=2, help="questions at a time (vigil)")
    parser.add_argument("--json", help="file for every answer")
    args = parser.parse_args()
    if args.windows and not args.long:
        parser.error("--windows is about long scenes (--long)")
    found = windows_of(args)
    if args.draft:
        from evaluation import agreement  # needs torch
        return agreement.report(args.model, args.draft, found[:args.limit])
    args.jobs = args.jobs if args.engine == "vigil" else 1
    engine = {"twin": engines.Twin, "transformers": engines.Transformers}[args.engine](args.model, args.frames) if args.engine != "vigil" else engines.Vigil(args.model, args.frames, args.program, args.device)
    kept = say(args, engine, found) if args.say else exchange(args, engine, found) if args.control == "words" else score(args, engine, found)
    if args.json:
        Path(args.json).write_text("\n".join(json.dumps(record) for record in kept) + "\n")
        Path(args.json + ".part").unlink(missing_ok=True)


if __name__ == "__main__":
    main()
