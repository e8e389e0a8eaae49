"""What moves and is neither a person nor a car: dogs, leaves, flags, shadows of clouds."""

import numpy as np

from . import people
from .chance import pick, uniform, unit
from .geometry import capsules, rows
from .stage import Thing, scene_margin


def add_distractors(scene):
    rng, t = scene.rng, scene.times
    dog = False
    if rng.random() < (.16 if scene.place != "room" else .08):
        size = uniform(rng, .45, .85)
        anchor = scene.spot(.4, .95)
        angle = uniform(rng, -3, 3)
        still = rng.random() < .3
        when = scene.start + scene.duration * uniform(rng, .1, .9)
        speed = 0 if still else uniform(rng, .6, 2.5)
        position = anchor + unit(angle) * (speed * (t - when))[:, None]
        colour = np.clip(np.array(pick(rng, ((.4, .25, .12), (.1, .09, .08), (.7, .6, .45), (.55, .5, .48)))) * uniform(rng, .7, 1.2), 0, 1)
        drawn = people.draw_dog(scene.camera, position, np.full(len(t), angle), speed * (t - when), size, colour, scene.soft)
        centre = scene.camera.project(np.stack([position[:, 0], np.full(len(t), .4 * size), position[:, 1]], -1))[:, None]
        thing = Thing("dog", drawn, scene.depth(position), {"kind": "dog"}, seen=(scene.in_view(centre) > 0) & (centre[:, 0, 2] * size > .035), touch=scene_margin(scene, centre, .08))
        scene.things.append(thing)
        dog = thing
    if scene.place != "room" and rng.random() < .3:
        # Leaves or a flag that the wind moves.
        count = int(rng.integers(2, 6))
        centre = np.array([uniform(rng, 0, scene.camera.aspect), uniform(rng, 0, .5)])
        colour = np.array([.15, .35, .1]) * uniform(rng, .5, 1.5) if rng.random() < .6 else rng.uniform(.1, .9, 3)
        drawn = rows(len(t), count)
        for k in range(count):
            place = centre + rng.normal(0, .06, 2)
            swing = np.stack([np.sin(t * uniform(rng, 1, 4) + k), np.cos(t * uniform(rng, 1, 3) + k)], -1) * uniform(rng, .005, .03)
            q = np.concatenate([place + swing, np.ones((len(t), 1))], -1)
            drawn[:, k] = capsules(q, q + [.03, .01, 0], uniform(rng, .02, .06), uniform(rng, .02, .05), colour * uniform(rng, .7, 1.3), soft=.02)
        scene.things.append(Thing("leaves", drawn, np.full(len(t), 80.0), {"kind": "leaves"}))
    if scene.light == "day" and rng.random() < .2:
        # The shadow of a cloud or of a tree outside the picture.
        q = np.array([uniform(rng, 0, 1.5), uniform(rng, .3, 1)]) + np.stack([uniform(rng, -.06, .06) * (t - scene.start), .01 * np.sin(t * 2)], -1)
        q = np.concatenate([q, np.ones((len(t), 1))], -1)
        drawn = capsules(q, q + [uniform(rng, -.3, .3), uniform(rng, -.1, .1), 0], uniform(rng, .1, .3), uniform(rng, .1, .3), (0, 0, 0), alpha=uniform(rng, .1, .4), soft=uniform(rng, .02, .2), rounding=0)
        scene.things.append(Thing("shadow", drawn[:, None], np.full(len(t), 1e4), {"kind": "shadow"}))
    return dog
