"""Draws a scene from a seed: who moves where and when, what the camera is like, and what is true about it.

`tell(seed, times, ...)` gives a Story for any list of times, so the same scene can be sampled at 2 frames a second for training or at 25 for a video file.
Nothing in the scene depends on the times at which it is looked at, but for the rate for which its events are timed (`fps`); only the facts do (an object that no frame shows is not there).
"""

from dataclasses import dataclass

import numpy as np

from .bags import finish_bag
from .cars import add_car
from .chance import pick
from .distractors import add_distractors
from .geometry import rows
from .judge import judge
from .marks import Marks, marks
from .optics import optics
from .persons import PERSON_EVENTS, add_person
from .stage import Scene
from .zones import add_zone

MAX_MOVING, MAX_STILL = 84, 48
HELD_OUT = 1_000_000  # seeds from here on are never trained on

# What a scene is about, and how often. About half of a theme's scenes are near misses of it.
THEMES = {"any": .1, "fall": .25, "bag": .27, "zone": .17, "stop": .21}
EVENTS_OF = {  # of PERSON_EVENTS: pass, stand, arrive, fall, near, bag, bag near
    "any": (.3, .12, .2, .12, .12, .07, .07), "fall": (.03, .01, .03, .5, .43, 0, 0), "bag": (.03, .01, .02, 0, .02, .5, .42), "zone": (.3, .13, .27, .14, .12, .02, .02), "stop": (.3, .18, .2, .14, .1, .04, .04),
}
THEME_OF = {"fall": "fall", "near": "fall", "bag": "bag", "bag near": "bag", "zone": "zone", "stop": "stop", "slow": "stop"}


@dataclass
class Story:
    moving: np.ndarray  # (T, MAX_MOVING, 20) primitives, far ones first
    still: np.ndarray  # (MAX_STILL, 20)
    optics: dict  # numbers for render.py
    facts: dict  # see questions.py
    events: dict  # the scene as JSON: what happens when and where
    marks: Marks = None  # where things are (None: not known, as in photographs)


class Crowded(Exception):
    """A scene with more primitives than a picture may have."""


def tell(seed, times, fps, duration, wanted=None, aspects=None, attempt=0, near=False):
    """The scene of `seed` at `times`.

    `wanted`: an event that has to be tried (a key of THEME_OF, or "person"). `aspects`: shapes of the picture to choose from. `near`: a room or a car park seen from close by.
    """
    rng = np.random.default_rng([seed, 4, attempt])
    theme = pick(rng, list(THEMES), list(THEMES.values()))
    theme = THEME_OF.get(wanted, theme) if wanted else theme
    if near:
        theme = "any"
    scene = Scene(rng, times, fps, duration, aspects, near, theme)
    cars = park_and_drive(scene, theme, wanted)
    persons = enter(scene, theme, wanted, len(cars))
    for p in persons:
        if p["bag"] is not None:
            finish_bag(scene, p)
    zone = None
    if theme == "zone" or rng.random() < .25:
        zone = add_zone(scene, persons[0] if persons else None, pick(rng, ("in", "near", "any"), (.5, .4, .1)))
    dog = add_distractors(scene) if len(scene.things) < 5 else False
    facts, events = judge(scene, persons, cars, zone, dog)
    moving = assemble(scene)
    still = rows(MAX_STILL)
    stage = np.stack([np.asarray(row, np.float32) for row in scene.still][:MAX_STILL])
    still[: len(stage)] = stage
    return Story(moving, still, optics(scene), facts, events, marks(scene, persons, zone))


def park_and_drive(scene, theme, wanted):
    """Adds the cars and returns their records."""
    rng = scene.rng
    chance = {"street": .6, "car park": .5, "yard": .2, "room": 0.0}[scene.place] * (1 if theme in ("any", "stop") else .7)
    if theme != "stop" and wanted not in ("stop", "slow") and rng.random() >= chance:
        return []
    if theme == "stop":
        event = pick(rng, ("pass", "stop", "slow", "parked", "start", "none"), (.13, .47, .22, .08, .06, .04))
    elif scene.place == "street":
        event = pick(rng, ("pass", "stop", "slow", "parked", "start"), (.3, .3, .17, .15, .08))
    else:
        event = pick(rng, ("pass", "slow", "parked", "start"), (.45, .1, .35, .1))
    if scene.duration < 4 and event in ("stop", "slow"):
        event = "pass"
    event = wanted if wanted in ("stop", "slow") else event
    cars = [] if event == "none" else [add_car(scene, event)]
    if rng.random() < .2:
        cars.append(add_car(scene, pick(rng, ("pass", "parked"))))
    return cars


def enter(scene, theme, wanted, cars):
    """Adds the persons, with their bags, and returns their records."""
    rng = scene.rng
    chance = {"any": .62, "stop": .35, "zone": .9}.get(theme, .96)
    asked = wanted in ("fall", "near", "bag", "bag near")
    if not asked and wanted != "person" and rng.random() >= chance:
        return []
    event = pick(rng, PERSON_EVENTS, EVENTS_OF[theme])
    if scene.duration < 5 and event in ("bag", "bag near"):
        event = pick(rng, ("pass", "fall", "near"))
    persons = [add_person(scene, wanted if asked else event)]
    if rng.random() < .2:
        persons.append(add_person(scene, pick(rng, ("pass", "stand", "arrive", "near"))))
        if cars < 1 and rng.random() < .3:
            persons.append(add_person(scene, pick(rng, ("pass", "stand"))))
    return persons


def assemble(scene, most=MAX_MOVING):
    """All primitives in the order of drawing: shadows, things from far to near, light, the marked zone; Crowded if they are more than `most`."""
    count = len(scene.times)
    parts, keys = [], []
    budget = most - (len(scene.zone["lines"]) if scene.zone else 0)
    for thing in scene.things:
        if sum(p.shape[1] for p in parts) + thing.rows.shape[1] > budget:
            raise Crowded
        key = np.repeat(thing.depth[:, None], thing.rows.shape[1], axis=1).astype(np.float64)
        key[thing.rows[..., 16] < 0] = -1
        if thing.kind in ("person", "car"):
            first_is_shadow = thing.kind == "car" or thing.record.get("shade")
            if first_is_shadow:
                key[:, 0] = 1e5
        parts.append(thing.rows)
        keys.append(key)
    out = rows(count, most)
    if parts:
        everything, key = np.concatenate(parts, axis=1), np.concatenate(keys, axis=1)
        order = np.argsort(-key, axis=1, kind="stable")
        everything = np.take_along_axis(everything, order[..., None], axis=1)
        out[:, : everything.shape[1]] = everything
    if scene.zone:
        used = sum(part.shape[1] for part in parts)
        out[:, used : used + len(scene.zone["lines"])] = scene.zone["lines"]
    return out


def scene_story(seed, frames, fps, wanted=None, aspects=None, near=False, shown=None):
    """`tell` for a window of `frames` at `fps` a second, with crowded scenes drawn again.

    `shown` draws the same scene at another rate, as a video file needs it; the facts are then worth nothing (they are about the frames that a model sees).
    """
    duration = frames / fps
    times = np.arange(frames) / fps if shown is None else np.arange(round(duration * shown)) / shown
    for attempt in range(20):
        try:
            return tell(seed, times, fps, duration, wanted, aspects, attempt, near)
        except Crowded:
            continue
    raise RuntimeError(f"no scene for seed {seed}")
