#!/usr/bin/env python3
"""Writes generated scenes as coded videos with a JSON of what happens in them.

    tools/scenes/write.py OUT --balanced 220                    a held-out set: about 220 windows a rule, half of them "Yes", most of the rest near misses
    tools/scenes/write.py OUT --balanced 60 --window 12 2       the same with windows of 12 frames at 2 a second
    tools/scenes/write.py OUT --balanced 220 --limit 200 --rate 4    the first 200 scenes of that set, at 4 frames a second: quicker to draw
    tools/scenes/write.py OUT --seeds 1000000 1000010           these scenes
    tools/scenes/write.py OUT --seeds 0 10 --wanted fall        scenes in which somebody is to fall

Each scene becomes OUT/SEED.mp4 (25 frames a second unless --rate says otherwise, B-frames) and OUT/SEED.json: the window that the model sees (`frames` at `fps` a second from the start), the rules' answers,
which of them are asked (`ask`), and the facts. Size, codec, bits, length and rate follow from the seed, so the same seed gives the same video. Seeds from 1,000,000 on are held out
from training. Needs torch and PyAV; on a GPU it is quicker.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402

from scenes import coding, questions, story  # noqa: E402
from scenes.chance import pick, uniform  # noqa: E402

WINDOWS = {(20, 2.0): .7, (40, 2.0): .08, (16, 2.0): .07, (80, 2.0): .03, (10, 1.0): .06, (40, 4.0): .06}
SIZES = {(384, 216): .5, (320, 180): .12, (320, 240): .23, (280, 280): .15}


def form(seed, window=None):
    """How the scene is filmed: frames and rate of the window (`window` if given), size, codec, kilobits a second, preset, group of pictures."""
    rng = np.random.default_rng([seed, 41])
    count, fps = pick(rng, list(WINDOWS), list(WINDOWS.values()))
    count, fps = window or (count, fps)
    size, codec = pick(rng, list(SIZES), list(SIZES.values())), pick(rng, list(coding.CODECS))
    return dict(frames=count, fps=fps, size=size, codec=codec, kbps=round(np.exp(uniform(rng, np.log(60), np.log(250)))), preset=pick(rng, ("veryfast", "medium")), group=int(rng.integers(25, 101)))


def told(seed, how, wanted, shown=None):
    return story.scene_story(seed, how["frames"], how["fps"], wanted, (how["size"][0] / how["size"][1],), shown=shown)


def write(seed, out, wanted, asked, window=None, rate=coding.RATE):
    """`asked`: the rules to ask about; None for all that have an answer. `rate`: frames a second of the video."""
    how = form(seed, window)
    made = told(seed, how, wanted)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    chunks = coding.frames_of(told(seed, how, wanted, rate), seed, how["size"][1], how["size"][0], device)
    coding.encode(chunks, str(out / f"{seed}.mp4"), how["codec"], how["kbps"], how["size"], how["preset"], how["group"], rate)
    rules = made.facts["rules"]
    asked = [rule for rule, answer in rules.items() if answer is not None] if asked is None else asked
    record = dict(seed=seed, **how, rules=rules, ask=asked, near=[rule for rule in asked if questions.near_miss(rule, made.facts)], light=made.facts["light"], weather=made.facts["weather"],
                  tags=["jitter"] if np.abs(made.optics["jitter"]).max() > 0 else [], facts=made.facts, events=made.events)
    (out / f"{seed}.json").write_text(json.dumps(record, default=float) + "\n")


def balanced(count, first, window=None):
    """Seeds with the rules to ask about: `count` a rule, half "Yes", and of the "No" three in five near misses (as far as scenes have them)."""
    quota = {}
    for rule in questions.RULES:
        quota.update({(rule, "yes"): count // 2, (rule, "near"): round(.3 * count), (rule, "no"): count - count // 2 - round(.3 * count)})
    chosen, seed = [], first
    while any(left > 0 for left in quota.values()) and seed < first + 30 * count:
        facts = told(seed, form(seed, window), None).facts
        fits = []
        for rule, answer in facts["rules"].items():
            if answer is not None:
                key = (rule, "yes" if answer else "near" if questions.near_miss(rule, facts) else "no")
                if quota[key] > 0:
                    fits.append((rule, key))
        # Most scenes can be asked about person and car: they are not worth a video of their own until the rarer rules are full.
        rare = [key for _, key in fits if key[0] not in ("person", "car")] or [key for _, key in fits if key in (("person", "no"), ("person", "near"), ("car", "yes"), ("car", "no"))]
        if rare:
            chosen.append((seed, [rule for rule, _ in fits]))
            quota.update({key: quota[key] - 1 for _, key in fits})
        seed += 1
    missing = {key: left for key, left in quota.items() if left > 0}
    print(f"{len(chosen)} scenes of seeds {first} to {seed - 1}" + (f"; fewer than wanted: {missing}" if missing else ""), flush=True)
    return chosen


def work(process, args, chosen):
    torch.set_num_threads(1 if args.processes > 1 else torch.get_num_threads())
    for seed, asked in chosen[process::args.processes]:
        write(seed, args.out, args.wanted, asked, args.window, args.rate)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--balanced", type=int, metavar="WINDOWS", help="so many windows a rule")
    parser.add_argument("--seeds", type=int, nargs=2, default=[story.HELD_OUT, story.HELD_OUT + 10], help="first seed and the one after the last")
    parser.add_argument("--wanted", help="an event that every scene has to try: " + ", ".join(story.THEME_OF))
    parser.add_argument("--window", type=float, nargs=2, metavar=("FRAMES", "RATE"), help="of every scene; drawn from the seed if not given")
    parser.add_argument("--limit", type=int, help="the first so many scenes alone")
    parser.add_argument("--rate", type=int, default=coding.RATE, help="frames a second of the videos")
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    args.window = args.window and (int(args.window[0]), args.window[1])
    args.out.mkdir(parents=True, exist_ok=True)
    begin = time.time()
    chosen = balanced(args.balanced, args.seeds[0], args.window) if args.balanced else [(seed, None) for seed in range(*args.seeds)]
    chosen = chosen[:args.limit]
    asked = Counter(rule for _, rules in chosen for rule in rules or ())
    torch.multiprocessing.spawn(work, (args, chosen), nprocs=args.processes) if args.processes > 1 else work(0, args, chosen)
    print(f"{len(chosen)} videos, {time.time() - begin:.0f} s", dict(asked))


if __name__ == "__main__":
    main()
