"""Bags: left behind, and what only looks like it."""

import numpy as np

from . import people
from .chance import apart, pick, tinted, uniform, unit
from .stage import Thing, scene_margin


def add_bag(scene, record, anchor, come, go, event, when, leaves=False):
    """Adds the bag and returns what its owner does. `leaves`: a bag that is not left was brought and goes again."""
    rng, camera, t, total, start = scene.rng, scene.camera, scene.times, scene.duration, scene.start
    colour = apart(rng, ("red", "blue", "green", "yellow", "black", "brown", "white", "orange", "purple"), scene)
    size = pick(rng, ((.55, .42, .28), (.4, .5, .22), (.65, .38, .35), (.45, .62, .3)))
    kind = "left" if event == "bag" else pick(rng, ("taken again", "carried", "picked up", "stays beside"), (.3, .14, .36, .2))
    kind = "taken again" if leaves and kind in ("picked up", "stays beside") else kind
    down, up = None, None
    changes, arrive, leave = [], when, when
    if kind == "left":
        down = start + uniform(rng, .5, max(.6, total - 4.0))
        arrive, leave = down - .2, down + uniform(rng, .9, 1.6)
        if rng.random() < .15:
            arrive = None
        does, bag_does = "leaves a bag and walks away", "is left behind"
    elif kind == "taken again":
        down = start + uniform(rng, .4, max(.5, total - 5.0))
        up = down + uniform(rng, 1.6, 3.0)
        arrive, leave = down - .2, up + .8
        does, bag_does = "sets a bag down and takes it again", "is set down and taken again"
    elif kind == "carried":
        does, bag_does = "carries a bag", "is carried"
    elif kind == "picked up":
        up = start + uniform(rng, 1.0, max(1.1, total - 1.5))
        arrive, leave = up - .2, up + .8
        does, bag_does = "takes a bag away", "is taken away"
    else:
        down = start + uniform(rng, .4, max(.5, total - 2.0))
        arrive, leave = down - .2, None
        does, bag_does = "sets a bag down and stays", "stands beside its owner"
    for moment in (down, up):
        if moment is not None:
            changes += [(moment - .5, .5, "bend"), (moment + .15, .5, "stand")]
    side = unit(np.arctan2(come[0], come[1]) + np.pi / 2) * .3 + come * .22
    record_bag = {"colour": colour, "does": bag_does, "arrive": arrive, "leave": leave, "changes": changes, "kind": kind, "down": down, "up": up}
    # On the ground it stays where it was set down; carried it hangs beside the hand (see finish_bag).
    record_bag["args"] = (size, colour, side, anchor, uniform(rng, 0, 3), tinted(rng, colour))
    record_bag["does_bag"] = bag_does
    record_bag["does"] = does
    return record_bag


def finish_bag(scene, record):
    """Places the bag now that its owner's path is known."""
    bag, t = record["bag"], scene.times
    size, colour, side, anchor, yaw, paint = bag["args"]
    owner = record["feet"]
    down, up = bag["down"], bag["up"]
    on_ground = np.zeros(len(t), bool)
    if bag["kind"] == "picked up":
        on_ground = t < up
    elif down is not None:
        on_ground = (t >= down) & (t < (up if up is not None else 1e9))
    spot = anchor + side
    position = np.where(on_ground[:, None], spot, owner + side * np.array([.8, .8]))
    base = np.where(on_ground, 0.0, .32)
    drawn = people.draw_bag(scene.camera, position, base, yaw, size, paint, scene.soft, np.ones(len(t)))
    centre = scene.camera.project(np.stack([position[:, 0], base + size[1] / 2, position[:, 1]], -1))[:, None]
    share = scene.in_view(centre)
    tall = centre[:, 0, 2] * size[1]
    thing = Thing("bag", drawn, scene.depth(position) - .05, bag, seen=(share > 0) & (tall > .02), touch=scene_margin(scene, centre, .05))
    bag["on_ground"], bag["position"], bag["tall"], bag["place"] = on_ground, position, tall, centre[:, 0, :2]
    bag["thing"] = thing
    scene.things.append(thing)
