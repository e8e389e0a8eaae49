"""What persons do: walk, stand, fall, and what only looks like a fall; with a bag or without one."""

import numpy as np

from . import people
from .bags import add_bag
from .chance import CLOTHES, apart, pick, tinted, uniform, unit
from .stage import Thing, scene_margin

def person_look(scene):
    rng = scene.rng
    colour = apart(rng, CLOTHES, scene, .35, 4)
    skin = np.array(pick(rng, ((.85, .65, .52), (.7, .5, .38), (.45, .3, .2), (.3, .19, .13)))) * uniform(rng, .85, 1.1)
    hair = pick(rng, ((.06, .05, .04), (.25, .15, .08), (.6, .45, .25), (.5, .5, .5), (.1, .08, .07)))
    legs = tinted(rng, pick(rng, ("black", "blue", "grey", "brown", "black", "blue", "white")))
    top = tinted(rng, colour)
    return colour, dict(top=top, legs=top * .95 if rng.random() < .15 else legs * .8, skin=skin, hair=hair, shoes=pick(rng, ((.05, .05, .05), (.7, .7, .7), (.3, .15, .08))), build=uniform(rng, .85, 1.25),
                        coat=bool(rng.random() < .25), hair_fall=uniform(rng, 0, .8) if rng.random() < .4 else 0.0, hair_alpha=1.0 if rng.random() < .85 else 0.0)


def walk(scene, anchor, arrive, leave, speed, come_from, go_to):
    """Position (T, 2), heading (T,) and metres walked: to `anchor` until `arrive`, there until `leave`, then away. None: never came, or never leaves."""
    t = scene.times
    before = np.maximum(0, arrive - t) if arrive is not None else np.zeros_like(t)
    after = np.maximum(0, t - leave) if leave is not None else np.zeros_like(t)
    position = anchor + speed * (-before[:, None] * come_from + after[:, None] * go_to)
    turning = people.ease((t - (leave if leave is not None else 1e9)) / .5 + .5)
    start, end = np.arctan2(come_from[0], come_from[1]), np.arctan2(go_to[0], go_to[1])
    swing = (end - start + np.pi) % (2 * np.pi) - np.pi
    return position, start + swing * turning, speed * (after - before)




PERSON_EVENTS = ("pass", "stand", "arrive", "fall", "near", "bag", "bag near")


def add_person(scene, event, anchor=None, leaves=False):
    """One person and, with the bag events, the bag. Returns the record of the person. `leaves`: who fell, bent or sat down gets up and goes, and a bag that is not left goes along."""
    rng, camera, t, total = scene.rng, scene.camera, scene.times, scene.duration
    colour, look = person_look(scene)
    height = uniform(rng, 1.5, 1.95)
    start = scene.start
    # The anchor is where the event takes place; low in the picture the feet may be outside of it.
    anchor = scene.spot(.35, 1.1, tall=1.7, least=.15) if anchor is None else anchor
    angle = pick(rng, (np.pi / 2, -np.pi / 2, 0.0, np.pi)) + rng.normal(0, .35)
    come, go = unit(angle), unit(angle + (rng.normal(0, .5) if rng.random() < .6 else uniform(rng, -3, 3)))
    if scene.place == "room":
        # Nobody walks through the back wall.
        come, go = np.array([come[0], abs(come[1])]), np.array([go[0], -abs(go[1])])
    speed = uniform(rng, .8, 1.7)
    run = rng.random() < .08
    speed = uniform(rng, 2.4, 3.8) if run else speed
    when = start + total * uniform(rng, .12, .8)
    changes, falls, record, first = [], None, {"kind": "person", "colour": colour, "event": event}, "stand"
    turn = 0.0
    verb = "runs" if run else "walks"
    does = None
    arrive, leave = when, when
    if event == "pass":
        pass
    elif event == "stand":
        arrive, leave = (None, None)
        does = "stands still"
    elif event == "arrive":
        stays = rng.random() < .6
        arrive, leave = (when, None) if stays else (None, when)
        does = f"{verb} in and stops" if stays else f"stands and then {verb} away"
    elif event == "fall":
        when = start + uniform(rng, .4, max(.5, total - max(1.2, 2.2 / scene.fps)))
        lasts = uniform(rng, .35, .9)
        walking = rng.random() < .65
        arrive, leave = (when + .25, None) if walking else (None, None)
        changes = [(when, lasts, "lie")]
        turn = pick(rng, (0.0, np.pi, np.pi / 2, -np.pi / 2)) + rng.normal(0, .4)
        falls = when
        does = "falls down"
        if rng.random() < .15 and total - (when - start) > 6:
            changes += [(when + lasts + uniform(rng, 2.5, 4), 1.2, "crouch"), (when + lasts + 5.5, .8, "stand")]
            does = "falls down and gets up"
        if leaves:
            arrive, leave, changes = when + .25, when + 7.5, [(when, lasts, "lie"), (when + 4, 1.2, "crouch"), (when + 6, .8, "stand")]
            does = "falls down and gets up"
    elif event == "near":
        kind = pick(rng, ("bend", "sit", "crouch", "get up", "lie"), (.2, .18, .18, .32, .12))
        moving_in = rng.random() < .5
        if leaves:
            kind, moving_in = kind if kind in ("bend", "sit", "crouch") else "bend", True
        if kind == "get up":
            first, arrive, leave = "lie", None, None
            when = start + uniform(rng, .5, max(.6, total * .6))
            changes = [(when, uniform(rng, .5, 1.2), "crouch"), (when + 1.2, uniform(rng, .4, .8), "stand")]
            turn, does = uniform(rng, -3, 3), "gets up"
            leave = when + 2.6 if rng.random() < .5 else None
        elif kind == "lie":
            first, arrive, leave, turn, does = "lie", None, None, uniform(rng, -3, 3), "lies on the ground"
        else:
            lasts = uniform(rng, .4, 1.0)
            changes = [(when, lasts, kind)]
            arrive = when - .3 if moving_in else None
            stays = uniform(rng, .8, 6)
            back = rng.random() < .65 or leaves
            leave = None
            if back:
                changes.append((when + lasts + stays, uniform(rng, .4, .9), "stand"))
                leave = when + lasts + stays + .9 if rng.random() < .6 or leaves else None
            does = {"bend": "bends down", "sit": "sits down", "crouch": "crouches"}[kind]
        record["posture"] = kind
    bag = None
    if event in ("bag", "bag near"):
        bag = add_bag(scene, record, anchor, come, go, event, when, leaves)
        arrive, leave, changes, does = bag.pop("arrive"), bag.pop("leave"), bag.pop("changes"), bag.pop("does")
        if leave is not None and event == "bag":
            speed = max(speed, 1.1)
    position, heading, walked = walk(scene, anchor, arrive, leave, speed, come, go)
    pose = people.postures_over_time(t, changes, first)
    sway = .01 * np.sin(t * uniform(rng, .5, 1.5) + uniform(rng, 0, 6))
    joints, world = people.person_joints(camera, position, heading, walked, pose, height, turn, sway)
    drawn = people.draw_person(joints, height, look, scene.soft)
    if does is None:
        across = joints[-1, 0, 0] / max(joints[-1, 0, 2], 1e-6) - joints[0, 0, 0] / max(joints[0, 0, 2], 1e-6)
        scale = joints[-1, 0, 2] - joints[0, 0, 2]
        lateral = come[0]
        does = f"{verb} to the right" if lateral > .5 else f"{verb} to the left" if lateral < -.5 else f"{verb} away" if come[1] > 0 else f"{verb} closer"
    if scene.shade:
        line = np.stack([world[:, 5], world[:, 2]], axis=1)
        shade = people.shadow_of(camera, line, scene.sun, (0, 0, 0), scene.shade, .16 * height, .02)
        drawn = np.concatenate([shade[:, None], drawn], axis=1)
    share = scene.in_view(joints)
    size = joints[:, 0, 2] * height
    thing = Thing("person", drawn, scene.depth(position), record, seen=(share >= .22) & (size > .09), touch=(share > 0) | scene_margin(scene, joints, .03))
    if position[:, 1].max() > scene.limit and scene.place == "room":
        thing.seen &= position[:, 1] < scene.limit + .3
    feet = (world[:, 5, [0, 2]] + world[:, 6, [0, 2]]) / 2
    on_picture = scene.camera.project(np.stack([feet[:, 0], np.zeros(len(t)), feet[:, 1]], -1))[:, :2]
    record.update(anchor=anchor, does=does, falls=falls, feet=feet, place=joints[:, 0, :2], head=pose[:, 2, 1], steps=on_picture, size=size, thing=thing, shade=bool(scene.shade), bag=bag)
    scene.things.append(thing)
    return record
