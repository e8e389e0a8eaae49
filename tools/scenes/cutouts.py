"""How cut-outs of a photograph move over another one: across the picture, standing still, half outside of it, or coming in at its edge.

Whatever they do is a Track; places and sizes are shares of the picture, y downwards.
"""

from dataclasses import dataclass

import numpy as np

from .chance import pick, uniform

# Share of its own box, or of the photograph it comes from, that has to be in the picture for a thing to be recognised.
ENOUGH, ENOUGH_OF_ENTRY = .25, .03


@dataclass
class Track:
    index: np.ndarray  # (T,) number of the cut-out, -1 where nothing is
    where: np.ndarray  # (T, 2) its middle
    size: np.ndarray  # (T, 2) width and height
    flip: tuple  # 1 or -1, sideways and upside down
    head: float  # height of the head, about, where the clothes begin
    seen: np.ndarray  # (T,) bool: enough of it is in the picture
    touch: np.ndarray  # (T,) bool: some of it is
    does: str  # None: hard to say in a word


def inside(where, size):
    """Width and height of what is in the picture, (T, 2)."""
    return np.clip(np.minimum(where + size / 2, 1) - np.maximum(where - size / 2, 0), 0, None)


def entries(sprites):
    """Cut-outs of one thing that comes in at a border, from the first sight of it on: {kind: [(numbers, seconds since the first sight, border), ...]}."""
    found, last = {}, {}
    for number, sprite in enumerate(sprites):
        key = (sprite["kind"], sprite["who"])
        if sprite["touches"] and key not in last:
            found.setdefault(sprite["kind"], []).append(([], [], sprite["touches"][0]))
            last[key] = (found[sprite["kind"]][-1], sprite["time"])
        # To a third of a second after the border has been left behind; a gap ends it.
        if key in last and last[key] is not None:
            (numbers, seconds, border), before = last[key]
            if sprite["time"] - before > .35 or sprite["touches"] not in ([], [border]):
                last[key] = None
                continue
            numbers.append(number)
            seconds.append(sprite["time"] - sprites[numbers[0]]["time"])
            last[key] = (last[key][0], sprite["time"] if sprite["touches"] else before)
    return {kind: kept for kind, runs in found.items() if (kept := [run for run in runs if len(run[0]) >= 3])}


def coming_in(rng, sprites, entry, times):
    """A thing that comes in at the lower or upper edge, late in the window more often than not; at times it stays half outside, turns back, or goes out instead."""
    numbers, seconds, border = entry
    seconds, total, kind = np.array(seconds), times[-1] + times[1] - 2 * times[0], sprites[numbers[0]]["kind"]
    pace, most = uniform(rng, .35, 1.2), seconds[-1]
    begin = total - uniform(rng, .2, most / pace + .7) if rng.random() < .5 else uniform(rng, -.1, 1) * total
    clock = (times - times[0] - begin) * pace
    if rng.random() < .35:
        most *= uniform(rng, .15, .8)
        if rng.random() < .4:
            clock = np.minimum(clock, 2 * most + pace * uniform(rng, .5, 4) - clock)
    if rng.random() < .3:
        clock = clock[::-1]
    step = np.clip(np.searchsorted(seconds, np.minimum(clock, most), side="right") - 1, 0, None)
    index = np.where(clock >= 0, np.array(numbers)[step], -1)
    scale, stretch = uniform(rng, .6, 1.75), uniform(rng, .85, 1.2)
    flip = (-1 if rng.random() < .5 else 1, -1 if rng.random() < (.5 if kind == "car" else .15) else 1)
    x, y, width, height = (np.array([sprites[n][name] for n in numbers])[step] for name in ("x", "y", "width", "height"))
    # The border that cuts it off lies on the picture's edge or beyond.
    beyond = uniform(rng, 0, .05) if rng.random() < .75 else uniform(rng, .05, .35)
    depth = ((1 - y) if border == "bottom" else y) * scale - beyond
    below = (border == "bottom") == (flip[1] > 0)
    first = sprites[numbers[0]]["x"]
    where = np.stack([uniform(rng, .05, .95) + (x - first) * scale * flip[0], 1 - depth if below else depth], -1)
    size = np.stack([width * scale * stretch, height * scale], -1)
    area = inside(where, size).prod(-1) * (index >= 0)
    return Track(index, where, size, flip, uniform(rng, .12, .3) * scale, area > ENOUGH_OF_ENTRY * scale ** 2 * stretch, area > 0, None)


def across(rng, sprites, numbers, kind, times):
    """A whole cut-out that walks or drives through the picture, or stays where it is: anywhere, or half outside of an edge."""
    frames, total = len(times), times[-1] + times[1] - 2 * times[0]
    standing = [n for n in numbers if sprites[n]["standing"]]
    walking = [n for n in numbers if not sprites[n]["standing"]]
    stays = kind == "person" and standing and (rng.random() < .5 or not walking)
    chosen = standing if stays else (walking or standing)
    chosen = chosen if kind == "person" else [pick(rng, chosen)]
    first, step = int(rng.integers(len(chosen))), 0 if stays and rng.random() < .5 else 1
    index = np.array([chosen[(first + step * k) % len(chosen)] for k in range(frames)])
    edge = pick(rng, (None, "left", "right", "bottom", "top"), (.7, .08, .08, .1, .04))
    scale = uniform(rng, .35, 1.2) if kind == "person" else uniform(rng, .5, 1.5)
    scale *= uniform(rng, 1, 1.5) if edge else 1
    flip = (-1 if rng.random() < .5 else 1, -1 if kind == "car" and rng.random() < .5 else 1)
    size = np.array([[sprites[n]["width"], sprites[n]["height"]] for n in index]) * scale * np.array([uniform(rng, .85, 1.2), 1])
    if edge:
        # Its middle about on the edge, so that a third to two thirds of it are in the picture.
        along, out = uniform(rng, .1, .9), uniform(rng, -.17, .17)
        middle = {"left": (out * size[0, 0], along), "right": (1 - out * size[0, 0], along), "bottom": (along, 1 - out * size[0, 1]), "top": (along, out * size[0, 1])}[edge]
        where = np.repeat(np.array([middle]), frames, 0)
    elif stays:
        where = np.repeat(np.array([[uniform(rng, .05, .95), uniform(rng, .3, .8)]]), frames, 0)
    else:
        middle, when = np.array([uniform(rng, .15, .85), uniform(rng, .3, .75)]), total * uniform(rng, -.05, 1.05)
        angle = pick(rng, (np.pi / 2, -np.pi / 2) if kind == "car" else (0, np.pi, -np.pi / 2)) + rng.normal(0, .3)
        pace = uniform(rng, .08, .5) if kind == "person" else uniform(rng, .1, .8)
        if kind == "car" and rng.random() < .25:
            pace = 0
        where = middle + np.stack([np.cos(angle), np.sin(angle)]) * (pace * (times - when))[:, None]
    share = inside(where, size).prod(-1) / size.prod(-1)
    # Somebody who walks on the spot, half outside, does nothing that has a name.
    rests = stays or not np.any(where != where[0])
    does = None if edge and not stays and kind == "person" else ("stands still" if kind == "person" else "is parked") if rests else ("walks" if kind == "person" else "drives")
    return Track(index, where, size, flip, .2 * size[0, 1], share > ENOUGH, share > 0, does)


def colours(rng, kind, track):
    """(T,) brightness (negative: light and dark turned round), (6,) gain and lift of the three channels, (T,) height below which they hold, and whether the thing's colour is another now."""
    frames = len(track.index)
    how = pick(rng, ("own", "darker", "turned", "lighter"), (.3, .25, .2, .25) if kind == "person" else (.35, .35, .05, .25))
    brightness, tint = np.full(frames, uniform(rng, .6, 1.4)), np.array([1., 1, 1, 0, 0, 0])
    if how == "darker":
        tint[:3] = rng.uniform(.25, 1.0, 3)
    elif how == "turned":
        brightness, tint[:3] = -brightness, rng.uniform(.5, 1.0, 3) if rng.random() < .5 else 1
    elif how == "lighter":
        # Towards a light colour, mostly a pale one.
        lift = uniform(rng, .25, .8)
        tint[:3], tint[3:] = 1 - lift, lift * np.clip(uniform(rng, .6, 1) + rng.normal(0, .08 if rng.random() < .7 else .25, 3), 0, 1)
    below = np.full(frames, -1.0)
    if kind == "person" and track.flip[1] > 0 and rng.random() < .6:
        # Only the clothes change, the hair stays.
        below = track.where[:, 1] - track.size[:, 1] / 2 + track.head
    return brightness, tint, below, how != "own"
