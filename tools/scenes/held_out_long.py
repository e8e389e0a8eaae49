#!/usr/bin/env python3
"""Writes a held-out set of long scenes with dense events, in all lights and weathers.

    tools/scenes/held_out_long.py --out build/held-long [--count 24] [--minutes 4] [--windows 40:8,10:2] [--told]

Prints what the set holds: for each scene and for all, by light and by weather, in how many windows of each shape the
answer to each rule is "Yes". The scenes are those of tools/scenes/long.py with seeds from 1,200,000 on, which nothing
is trained on: the set goes round through the lights, the weathers and streets or other places, with events about every
18 or every 30 seconds, and takes for each of these conditions one of the first seeds that have them, that which adds
most to the rules that have few "Yes" until then. OUT/SEED.json is written for all of them first (see long.py), then
OUT/SEED.mp4, 384x216 in H.264. Videos that are there are not drawn again, so that the program goes on where it was
stopped. With --told nothing is drawn. Needs torch and PyAV; on a GPU it is quicker.
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

from scenes import questions  # noqa: E402
from scenes.long import LongScene, shapes_of, stage_of, write  # noqa: E402

FIRST = 1_200_000
SIZE, CODEC, KBPS = (384, 216), "h264", 150
LIGHTS, WEATHERS, EVERY = ("day", "dusk", "night", "infrared"), ("dry", "rain", "snow"), (18.0, 30.0)
OFTEN = {"pass": .2, "fall": .2, "bag": .15, "car": .2, "stop": .4}
CANDIDATES = 4  # seeds of the same conditions of which one is taken


def conditions(index):
    """Light, weather, whether it is a street, and seconds between events of the scene `index` of the set; all are there once in 24."""
    street = (index + index // 4) % 2 == 1
    return LIGHTS[index % 4], WEATHERS[index // 4 % 3], street, EVERY[(index // 2 + index // 4 + index // 12) % 2]


def yes(record):
    """In how many windows of each shape the answer to each rule is "Yes"."""
    return Counter({(number, rule): sum(window["rules"][rule] is True for window in shape["windows"]) for number, shape in enumerate(record["shapes"]) for rule in questions.RULES})


def choose(count, seconds, shapes, first=FIRST):
    """The set's scenes with their JSON, one after the other."""
    aspect, total, seed, waiting = SIZE[0] / SIZE[1], Counter(), first, {}
    for index in range(count):
        light, weather, street, every = conditions(index)
        kept = waiting.setdefault((light, weather, street), [])
        while len(kept) < CANDIDATES:
            stage = stage_of(np.random.default_rng([seed, 51]), seconds, aspect)
            waiting.setdefault((stage.light, stage.weather, stage.place == "street"), []).append(seed)
            seed += 1
        scenes = [LongScene(each, seconds, every, aspect, OFTEN) for each in kept[:CANDIDATES]]
        records = [scene.record(shapes) for scene in scenes]
        best = max(range(CANDIDATES), key=lambda k: sum(windows / (1 + total[key]) for key, windows in yes(records[k]).items()))
        total += yes(records[best])
        kept.pop(best)
        yield scenes[best], records[best] | dict(size=SIZE, codec=CODEC, kbps=KBPS)


def table(records, shapes):
    """Markdown: the windows with the answer "Yes" by rule, of each shape."""
    lines = ["| scene | place | light | weather | events | " + " | ".join(questions.RULES) + " |", "|---" * (5 + len(questions.RULES)) + "|"]

    def line(name, some, *columns):
        found = sum((yes(record) for record in some), Counter())
        cells = [" + ".join(str(found[(number, rule)]) for number in range(len(shapes))) for rule in questions.RULES]
        lines.append("| " + " | ".join([name, *columns, *cells]) + " |")

    for record in records:
        line(str(record["seed"]), [record], record["place"], record["light"], record["weather"], f"{record['asked']['drawn']} of {record['asked']['events']}")
    for key in ("light", "weather"):
        for value in dict.fromkeys(record[key] for record in records):
            some = [record for record in records if record[key] == value]
            line(f"{len(some)} scenes", some, "", value if key == "light" else "", value if key == "weather" else "", "")
    line(f"**all {len(records)}**", records, "", "", "", f"{sum(r['asked']['drawn'] for r in records)} of {sum(r['asked']['events'] for r in records)}")
    for name, answer in (("No", lambda window, rule: window["rules"][rule] is False), ("undecided", lambda window, rule: window["rules"][rule] is None), ("just left", lambda window, rule: rule in window["left"])):
        cells = [" + ".join(str(sum(answer(window, rule) for record in records for window in record["shapes"][number]["windows"])) for number in range(len(shapes))) for rule in questions.RULES]
        lines.append(f"| {name} | | | | | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--windows", type=shapes_of, default=shapes_of("40:8,10:2"), metavar="SECONDS:STRIDE,...", help="shapes of the windows that are judged")
    parser.add_argument("--told", action="store_true", help="write the JSON alone")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    chosen = list(choose(args.count, args.minutes * 60, args.windows))
    for scene, record in chosen:
        path, text = args.out / f"{scene.seed}.json", json.dumps(record, indent=1) + "\n"
        if path.exists() and path.read_text() != text and path.with_suffix(".mp4").exists():
            raise SystemExit(f"held_out_long: {path} is of another set; another --out is needed")
        path.write_text(text)
    shapes = " + ".join(f"{seconds:g} s every {stride:g} s" for seconds, stride in args.windows)
    print(f"Windows with the answer \"Yes\", {shapes}:\n\n{table([record for _, record in chosen], args.windows)}\n", flush=True)
    for scene, _ in chosen if not args.told else ():
        path, begin = args.out / f"{scene.seed}.mp4", time.time()
        if not path.exists():
            write(scene, path, SIZE, CODEC, KBPS)
            print(f"{path}: {time.time() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()
