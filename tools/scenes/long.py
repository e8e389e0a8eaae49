#!/usr/bin/env python3
"""Writes a long scene with sparse events as one video, a piece at a time, with a JSON of what happens when.

    tools/scenes/long.py OUT.mp4 --seed 1000000 --minutes 30 [--every 90] [--size 384x216] [--codec h264] [--kbps 150]

One camera for the whole time, with slow drift of the light; an event about every `every` seconds: somebody passes, falls and gets up, leaves a bag (which then stays), a car passes or
stops and drives on. OUT.json holds the events with their times, and the rules' answers for consecutive windows of 10 s at 2 frames a second. The same seed gives the same video, and
memory does not grow with its length. Needs torch and PyAV; on a GPU it is quicker.
"""

import argparse
import copy
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

from scenes import coding, render  # noqa: E402
from scenes.bags import finish_bag  # noqa: E402
from scenes.cars import add_car  # noqa: E402
from scenes.chance import pick, uniform  # noqa: E402
from scenes.geometry import rows  # noqa: E402
from scenes.judge import judge  # noqa: E402
from scenes.optics import optics  # noqa: E402
from scenes.persons import add_person  # noqa: E402
from scenes.stage import Scene  # noqa: E402
from scenes.story import MAX_STILL, Story, assemble  # noqa: E402
from scenes.zones import add_zone  # noqa: E402

LASTS = 24.0  # seconds in which an event takes place
MARGIN = 40.0  # seconds before and after it in which whoever takes part may still be in view
PIECE = 2.0  # seconds that are drawn at once; nobody appears or is gone but between two pieces
MOST_BAGS = 2


class LongScene:
    """A camera and its events. `told` looks at any moments, in any order."""

    def __init__(self, seed, seconds, every, aspect):
        rng = np.random.default_rng([seed, 51])
        self.seed, self.seconds = seed, seconds
        self.stage = Scene(rng, [0.0], 2.0, seconds, (aspect,), theme="zone")
        self.zone = add_zone(self.stage, None, "any")
        self.drift = uniform(rng, .05, .25), uniform(rng, 900, 2400), uniform(rng, 0, 6)
        cars = self.stage.place in ("street", "car park")
        self.episodes, at, bags = [], uniform(rng, 10, 40), 0
        while at < seconds - LASTS:
            kind = pick(rng, ("pass", "fall", "bag", "car", "stop"), (.4, .2, .15 if bags < MOST_BAGS else 0, .2 if cars else 0, .2 if self.stage.place == "street" else 0))
            bags += kind == "bag"
            self.episodes.append((at, kind, len(self.episodes)))
            at += LASTS + float(rng.exponential(max(1.0, every - LASTS)))

    def told(self, times, fps):
        """The Story at `times`; its facts are about these frames."""
        scene = copy.copy(self.stage)
        scene.times, scene.fps, scene.duration, scene.things = np.asarray(times, np.float64), fps, len(times) / fps, []
        persons, cars = [], []
        for at, kind, number in self.episodes:
            # The same for any moments that are asked for, so that what is told of a window is what the video shows.
            begun = scene.times >= (at - MARGIN) // PIECE * PIECE
            there = begun & (scene.times < (at + LASTS + MARGIN) // PIECE * PIECE + PIECE)
            if not begun.any() or not (there.any() or kind == "bag"):
                continue
            before = len(scene.things)
            stage = copy.copy(scene)  # its list of things is the scene's
            stage.rng, stage.start, stage.duration = np.random.default_rng([self.seed, 52, number]), at, LASTS
            if kind in ("car", "stop"):
                cars.append(add_car(stage, "pass" if kind == "car" else "stop", leaves=True))
            else:
                persons.append(add_person(stage, kind, leaves=True))
            if kind == "bag":
                finish_bag(stage, persons[-1])
            for thing in scene.things[before:]:
                shown = begun if thing.kind == "bag" else there
                thing.seen, thing.touch = thing.seen & shown, thing.touch & shown
                thing.rows = thing.rows.copy()
                thing.rows[~shown, :, 16] = 0
            if not there.any():
                scene.things.remove(persons[-1]["thing"])
        facts, events = judge(scene, persons, cars, self.zone, False)
        look = copy.copy(scene)
        look.rng, look.start, look.duration = np.random.default_rng([self.seed, 53]), 0.0, self.seconds
        seen = optics(look)
        strength, period, phase = self.drift
        seen["gain"] = (seen["gain"] * (1 + strength * np.sin(scene.times * 2 * np.pi / period + phase))[:, None]).astype(np.float32)
        still = rows(MAX_STILL)
        stage = np.stack([np.asarray(row, np.float32) for row in scene.still][:MAX_STILL])
        still[: len(stage)] = stage
        return Story(assemble(scene), still, seen, facts, events)

    def pieces(self, height, width, device):
        """RGB frames (n, H, W, 3), PIECE seconds at a time."""
        count, frames = round(self.seconds * coding.RATE), round(PIECE * coding.RATE)
        for first in range(0, count, frames):
            times = np.arange(first, min(count, first + frames)) / coding.RATE
            batch = render.collate([self.told(times, coding.RATE)], [self.seed], device)
            batch["scalars"][:, 6] = 0
            shown = render.render(batch, height, width, first=first)[0]
            yield (shown.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()

    def record(self):
        windows = []
        for start in np.arange(0, self.seconds - 9.99, 10.0):
            windows.append(dict(start=float(start), seconds=10, rules=self.told(start + np.arange(20) / 2, 2.0).facts["rules"]))
        return dict(seed=self.seed, seconds=self.seconds, place=self.stage.place, light=self.stage.light, weather=self.stage.weather, episodes=[dict(about=at + LASTS / 2, kind=kind) for at, kind, _ in self.episodes], windows=windows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=90, help="seconds between two events, about")
    parser.add_argument("--size", default="384x216")
    parser.add_argument("--told", action="store_true", help="write the JSON alone, for a video that is there")
    parser.add_argument("--codec", choices=coding.CODECS, default="h264")
    parser.add_argument("--kbps", type=int, default=150)
    args = parser.parse_args()
    width, height = (int(v) for v in args.size.split("x"))
    scene = LongScene(args.seed, args.minutes * 60, args.every, width / height)
    if not args.told:
        coding.encode(scene.pieces(height, width, "cuda" if torch.cuda.is_available() else "cpu"), str(args.out), args.codec, args.kbps, (width, height), "veryfast")
    args.out.with_suffix(".json").write_text(json.dumps(scene.record(), indent=1) + "\n")


if __name__ == "__main__":
    main()
