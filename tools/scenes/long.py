#!/usr/bin/env python3
"""Writes a long scene with events as one video, a piece at a time, with a JSON of what happens when.

    tools/scenes/long.py OUT.mp4 --seed 1000000 --minutes 30 [--every 90] [--size 384x216] [--codec h264] [--kbps 150]
    tools/scenes/long.py OUT.mp4 --seed 1200000 --minutes 4 --every 20 --windows 40:8,10:2

One camera for the whole time, with slow drift of the light; an event about every `every` seconds: somebody passes,
falls and gets up, leaves a bag (which then stays), a car passes or stops and drives on; where history.py asks for
them also somebody who bends, sits down or crouches ("near") or takes a bag along ("bag near"), and a car that slows
down ("slow"). An event for which a picture
has no room takes place later, or another one in its stead. The same seed gives the same video, and memory does not
grow with its length. OUT.json holds

    place, light, weather    of the whole scene
    asked                    how many events were to happen; how many of these do, of these how many `moved` to later,
                             and how many are of another kind than was drawn first (`exchanged`)
    episodes                 the events in the order of time: `kind`, the middle (`about`), when somebody or something
                             of it is seen (`from`, `to`), and where it is seen the moment when somebody falls, a bag is
                             set down or a car stops (`falls`, `leaves`, `stops`)
    windows                  the rules' answers for consecutive windows of 10 s at 2 frames a second
    shapes                   with --windows, for each shape: `seconds`, `stride`, its `windows` (`start`, `rules`, and
                             `left`: rules with the answer "No" that had "Yes" less than two lengths of the window
                             before, and how many seconds before that was), and `yes`: for each rule the spans, first
                             and last end, of consecutive windows with the answer "Yes"

Needs torch and PyAV; on a GPU it is quicker. With --told nothing is drawn.
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

from scenes import coding, questions  # noqa: E402
from scenes.bags import finish_bag  # noqa: E402
from scenes.cars import add_car  # noqa: E402
from scenes.chance import pick, uniform  # noqa: E402
from scenes.geometry import rows  # noqa: E402
from scenes.judge import judge  # noqa: E402
from scenes.optics import optics  # noqa: E402
from scenes.persons import add_person  # noqa: E402
from scenes.stage import Scene  # noqa: E402
from scenes.story import MAX_MOVING, MAX_STILL, Story, assemble  # noqa: E402
from scenes.zones import add_zone  # noqa: E402

LASTS = 24.0  # seconds in which an event takes place
MARGIN = 40.0  # seconds before and after it in which whoever takes part may still be in view
PIECE = 2.0  # seconds that are drawn at once; nobody appears or is gone but between two pieces
MOST_BAGS = 2
FPS = 2.0  # frames a second of the windows that are judged
OFTEN = {"pass": .4, "fall": .2, "bag": .15, "car": .2, "stop": .2}  # how often each kind of event happens where it can
PLACES_OF = {"car": ("street", "car park"), "slow": ("street", "car park"), "stop": ("street",)}  # other kinds happen everywhere


class LongScene:
    """A camera and its events. `told` and `facts` look at any moments, in any order."""

    def __init__(self, seed, seconds, every, aspect, often=None):
        rng = np.random.default_rng([seed, 51])
        self.seed, self.seconds, self.every, self.often = seed, seconds, every, often or OFTEN
        self.stage = stage_of(rng, seconds, aspect)
        self.zone = add_zone(self.stage, None, "any")
        self.drift = uniform(rng, .05, .25), uniform(rng, 900, 2400), uniform(rng, 0, 6)
        self.episodes, self.asked = [], dict(events=0, drawn=0, moved=0, exchanged=0)
        self._taken = np.zeros(int(seconds // PIECE) + 1, int)  # primitives in each piece
        # Events that are asked for more often than they last overlap.
        at, apart = uniform(rng, 10, 40), LASTS if every >= LASTS else every / 2
        while at < seconds - LASTS:
            chances = self._chances()
            self._place(at, pick(rng, list(chances), list(chances.values())), chances)
            at += apart + float(rng.exponential(max(1.0, every - apart)))
        self.episodes.sort()

    def _chances(self):
        """How often each kind of event is to happen next."""
        bags = sum(kind == "bag" for _, kind, _ in self.episodes)
        return {kind: often if self.stage.place in PLACES_OF.get(kind, (self.stage.place,)) and (kind != "bag" or bags < MOST_BAGS) else 0 for kind, often in self.often.items()}

    def _place(self, at, kind, chances):
        """Puts an event where there is room: at its time, else up to LASTS later, else another kind, the likeliest first, as soon as may be."""
        number = self.asked["events"]
        self.asked["events"] += 1
        others = sorted((other for other in chances if chances[other] and other != kind), key=lambda other: -chances[other])
        starts = [float(start) for start in np.arange(at, self.seconds - LASTS, PIECE)]
        soon = [(start, kind) for start in starts if start <= at + LASTS]
        for start, chosen in [*soon, *((start, any_kind) for start in starts for any_kind in (kind, *others))]:
            needs = self._needs(start, chosen, number)
            if needs is not None:
                self._taken += needs
                self.episodes.append((start, chosen, number))
                self.asked["drawn"] += 1
                self.asked["moved"] += start > at
                self.asked["exchanged"] += chosen != kind
                return

    def _needs(self, at, kind, number):
        """Primitives that the event adds to each piece, or None where they or a car have no room."""
        if kind in PLACES_OF and any(other in PLACES_OF and abs(at - begun) < LASTS for begun, other, _ in self.episodes):
            return None
        scene = copy.copy(self.stage)
        scene.things = []
        self._cast(scene, at, kind, number)
        first, last = (round(moment / PIECE) for moment in span(at))
        pieces = np.arange(len(self._taken))
        needs = np.zeros_like(self._taken)
        for thing in scene.things:
            needs[(pieces >= first) & ((pieces < last) | (kind == "bag" and thing.kind == "bag"))] += thing.rows.shape[1]
        room = MAX_MOVING - (len(self.stage.zone["lines"]) if self.stage.zone else 0)
        return needs if ((self._taken + needs <= room) | (needs == 0)).all() else None

    def _cast(self, scene, at, kind, number):
        """Adds whoever takes part in an event to `scene`; returns the record of the person or the car."""
        stage = copy.copy(scene)  # its list of things is the scene's
        stage.rng, stage.start, stage.duration = np.random.default_rng([self.seed, 52, number]), at, LASTS
        if kind in PLACES_OF:
            return add_car(stage, "pass" if kind == "car" else kind, leaves=True)
        person = add_person(stage, kind, leaves=True)
        if person["bag"] is not None:
            finish_bag(stage, person)
        return person

    def _at(self, times, fps, episodes=None):
        """The scene at `times`, with the persons and the cars of `episodes` (all) that may be in view."""
        scene = copy.copy(self.stage)
        scene.times, scene.fps, scene.duration, scene.things = np.asarray(times, np.float64), fps, len(times) / fps, []
        persons, cars = [], []
        for at, kind, number in self.episodes if episodes is None else episodes:
            # The same for any moments that are asked for, so that what is told of a window is what the video shows.
            first, last = span(at)
            begun = scene.times >= first
            there = begun & (scene.times < last)
            if not begun.any() or not (there.any() or kind == "bag"):
                continue
            before = len(scene.things)
            record = self._cast(scene, at, kind, number)
            (cars if kind in PLACES_OF else persons).append(record)
            for thing in scene.things[before:]:
                shown = begun if kind == "bag" and thing.kind == "bag" else there
                thing.seen, thing.touch = thing.seen & shown, thing.touch & shown
                thing.rows = thing.rows.copy()
                thing.rows[~shown, :, 16] = 0
            if not there.any():
                scene.things.remove(record["thing"])
        return scene, persons, cars

    def facts(self, times, fps):
        """What is true about the frames at `times`; nothing is put together for drawing."""
        return judge(*self._at(times, fps), self.zone, False)[0]

    def told(self, times, fps):
        """The Story at `times`; its facts are about these frames."""
        scene, persons, cars = self._at(times, fps)
        facts, events = judge(scene, persons, cars, self.zone, False)
        look = copy.copy(scene)
        look.rng, look.start, look.duration = np.random.default_rng([self.seed, 53]), 0.0, self.seconds
        seen = optics(look)
        strength, period, phase = self.drift
        seen["gain"] = (seen["gain"] * (1 + strength * np.sin(scene.times * 2 * np.pi / period + phase))[:, None]).astype(np.float32)
        still = rows(MAX_STILL)
        stage = np.stack([np.asarray(row, np.float32) for row in scene.still][:MAX_STILL])
        still[: len(stage)] = stage
        # A piece has room for all in it; more than that may come and go in a longer time.
        most = sum(thing.rows.shape[1] for thing in scene.things) + (len(scene.zone["lines"]) if scene.zone else 0)
        return Story(assemble(scene, max(MAX_MOVING, most)), still, seen, facts, events)

    def pieces(self, height, width, device, rate=coding.RATE, begin=0, end=None):
        """RGB frames (n, H, W, 3) of those numbered from `begin` to before `end` (the last) at `rate` a second, PIECE seconds or less at a time."""
        count, frames = round(self.seconds * rate), round(PIECE * rate)
        for first in range(begin, min(count, end or count), frames):
            times = np.arange(first, min(count, first + frames)) / rate
            yield from coding.frames_of(self.told(times, rate), self.seed, height, width, device, number=first)

    def windows(self, seconds, stride):
        """The rules' answers for the windows of so many seconds, one each `stride` seconds, as many as fit."""
        return [dict(start=float(start), rules=self.facts(start + np.arange(round(seconds * FPS)) / FPS, FPS)["rules"]) for start in np.arange(0, self.seconds - seconds + .01, stride)]

    def shape(self, seconds, stride):
        """See `shapes` in the JSON."""
        windows, last, yes = self.windows(seconds, stride), {}, {rule: [] for rule in questions.RULES}
        for window in windows:
            start, end = window["start"], window["start"] + seconds
            window["left"] = {rule: start - last[rule] for rule, answer in window["rules"].items() if answer is False and rule in last and start - last[rule] < 2 * seconds}
            for rule, answer in window["rules"].items():
                if answer:
                    spans = yes[rule]
                    if spans and last.get(rule) == start - stride:
                        spans[-1][1] = end
                    else:
                        spans.append([end, end])
                    last[rule] = start
        return dict(seconds=seconds, stride=stride, windows=windows, yes=yes)

    def told_of(self, episode):
        """An event as the JSON has it."""
        at, kind, _ = episode
        first, last = span(at)
        times = np.arange(max(0.0, first), min(last, self.seconds), 1 / FPS)
        scene, persons, cars = self._at(times, FPS, [episode])
        facts, _ = judge(scene, persons, cars, self.zone, False)
        record, seen = (persons + cars)[0], np.flatnonzero(scene.things[0].seen)
        told = dict(about=at + LASTS / 2, kind=kind)
        if len(seen):
            told.update({"from": float(times[seen[0]]), "to": float(times[seen[-1]] + 1 / FPS)})
        if kind in ("fall", "stop", "bag") and facts["rules"][kind]:
            word, moment = dict(fall=("falls", record.get("falls")), stop=("stops", record.get("stops")), bag=("leaves", (record.get("bag") or {}).get("down")))[kind]
            told[word] = float(moment)
        return told

    def record(self, shapes=()):
        """The JSON; `shapes`: seconds and stride of the windows that are wanted beside those of 10 s."""
        windows = [dict(start=window["start"], seconds=10, rules=window["rules"]) for window in self.windows(10, 10)]
        record = dict(seed=self.seed, seconds=self.seconds, every=self.every, place=self.stage.place, light=self.stage.light, weather=self.stage.weather, zone=self.zone is not None, asked=self.asked,
                      episodes=[self.told_of(episode) for episode in self.episodes], windows=windows)
        return record | (dict(shapes=[self.shape(*shape) for shape in shapes]) if shapes else {})


def stage_of(rng, seconds, aspect):
    return Scene(rng, [0.0], 2.0, seconds, (aspect,), theme="zone")


def span(at):
    """From when until when whoever takes part in an event that begins `at` may be in view: whole pieces."""
    return (at - MARGIN) // PIECE * PIECE, (at + LASTS + MARGIN) // PIECE * PIECE + PIECE


def write(scene, out, size, codec, kbps):
    """Draws the scene as the video `out`, which is there when it is whole."""
    part = out.with_suffix(".part")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    coding.encode(scene.pieces(size[1], size[0], device), str(part), codec, kbps, size, "veryfast")
    part.replace(out)


def shapes_of(text):
    """"40:8,10:2" as [(40.0, 8.0), (10.0, 2.0)]: seconds and stride."""
    try:
        shapes = [tuple(float(number) for number in shape.split(":")) for shape in text.split(",")]
    except ValueError:
        shapes = [()]
    if not all(len(shape) == 2 and shape[0] >= 1 and shape[1] > 0 for shape in shapes):
        raise argparse.ArgumentTypeError(f"expected SECONDS:STRIDE,..., not '{text}'")
    return shapes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--every", type=float, default=90, help="seconds between two events, about")
    parser.add_argument("--size", default="384x216")
    parser.add_argument("--windows", type=shapes_of, default=[], metavar="SECONDS:STRIDE,...", help="also judges windows of these lengths, one each STRIDE seconds")
    parser.add_argument("--told", action="store_true", help="write the JSON alone, for a video that is there")
    parser.add_argument("--codec", choices=coding.CODECS, default="h264")
    parser.add_argument("--kbps", type=int, default=150)
    args = parser.parse_args()
    width, height = (int(v) for v in args.size.split("x"))
    scene = LongScene(args.seed, args.minutes * 60, args.every, width / height)
    if not args.told:
        write(scene, args.out, (width, height), args.codec, args.kbps)
    args.out.with_suffix(".json").write_text(json.dumps(scene.record(args.windows), indent=1) + "\n")


if __name__ == "__main__":
    main()
