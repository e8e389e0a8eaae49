"""What cars do: pass, stop, slow down, stand parked, drive off."""

import numpy as np

from . import vehicles
from .chance import PAINTS, pick, tinted, uniform, unit, unit_rows
from .stage import Thing, scene_margin


def travel(times, start, duration, speed, changes):
    """Metres driven and speed at each time, with speeds that change linearly: (from, until, new speed); and the same on a fine grid of moments."""
    fine = np.linspace(start - 40, start + duration + 40, int((duration + 80) * 25) + 1)
    v = np.full(len(fine), speed)
    for begin, end, new in changes:
        old = v[np.searchsorted(fine, begin) - 1] if begin > fine[0] else v[0]
        x = np.clip((fine - begin) / max(end - begin, 1e-3), 0, 1)
        v = np.where(fine >= begin, old + (new - old) * x, v)
    s = np.concatenate([[0], np.cumsum((v[1:] + v[:-1]) / 2 * np.diff(fine))])
    return np.interp(times, fine, s), np.interp(times, fine, v), fine, s


def add_car(scene, event, leaves=False):
    """One car. Returns its record. `leaves`: a car that stops drives on."""
    rng, camera, t, total, start = scene.rng, scene.camera, scene.times, scene.duration, scene.start
    colour = pick(rng, PAINTS)
    length = uniform(rng, 3.7, 4.9)
    van = rng.random() < .18
    look = dict(length=length, width=uniform(rng, 1.65, 1.95), body=uniform(rng, .55, .8) * (1.25 if van else 1), cabin=uniform(rng, .5, .65) * (1.5 if van else 1), paint=tinted(rng, colour), glass=uniform(rng, .6, 2.2),
                cabin_back=uniform(rng, .02, .1), cabin_length=uniform(rng, .48, .6) * (1.5 if van else 1), rake=uniform(rng, .6, .85), gloss=uniform(rng, -.4, .4), shadow=uniform(rng, .35, .75))
    direction = scene.direction * (1 if rng.random() < .5 else -1)
    lane = np.array([direction[1], -direction[0]])
    anchor = scene.spot(.2, .95, .1)
    if scene.road is not None:
        centre, half = scene.road
        along = np.dot(anchor - centre, scene.direction) * scene.direction
        anchor = centre + along + lane * min(half * .5, 1.9) * uniform(rng, .6, 1.2)
    speed = uniform(rng, 3, 11)
    when = start + total * uniform(rng, .1, .85)
    stops, moved = None, True
    if event == "parked":
        if scene.road is not None and rng.random() < .75:
            centre, half = scene.road
            anchor = centre + np.dot(anchor - centre, scene.direction) * scene.direction + lane * (half + 1.2)
        metres, pace = np.zeros(len(t)), np.zeros(len(t))
        direction = unit(np.arctan2(direction[0], direction[1]) + (rng.normal(0, .1) if rng.random() < .6 else uniform(rng, -3, 3)))
        does, moved = "is parked", False
    else:
        brake = speed / uniform(rng, 1.5, 3.5)
        if event == "stop":
            when = start + uniform(rng, .3, max(.4, total - 1.8 - 1 / scene.fps))
            changes = [(when - brake, when, 0.0)]
            stops = when
            does = "comes and stops"
            if leaves or total - (when - start) > 5 and rng.random() < .25:
                changes.append((when + uniform(rng, 2.5, 3.5), when + 5.5, speed))
                does = "stops and drives on"
        elif event == "slow":
            changes = [(when - brake, when, speed * uniform(rng, .2, .4)), (when + uniform(rng, .5, 1.5), when + 1.5 + brake, speed)]
            does = "slows down and drives on"
        elif event == "start":
            when = start + uniform(rng, .8, max(.9, total - 1.0))
            changes = [(start - 30, start - 29.9, 0.0), (when, when + brake, speed)]
            does = "drives away"
        else:
            changes = []
            does = None
        metres, pace, fine, s = travel(t, start, total, speed, changes)
        metres = metres - np.interp(when, fine, s)
    position = anchor + direction * metres[:, None]
    heading = np.full(len(t), np.arctan2(direction[0], direction[1]))
    # A light turn on the way.
    bend = rng.normal(0, .012) if event != "parked" and scene.road is None else 0.0
    heading = heading + bend * metres
    position = position + lane * (bend * metres ** 2 / 2)[:, None]
    night = scene.light == "night"
    drawn = vehicles.draw_car(camera, position, heading, look, scene.soft, night)
    if night and moved:
        drawn = np.concatenate([drawn, vehicles.headlights(camera, position, heading, length, uniform(rng, .5, 1))], axis=1)
    faces_at = np.stack([position + unit_rows(heading) * a + unit_rows(heading + np.pi / 2) * b for a in (-.48 * length, -.24 * length, 0, .24 * length, .48 * length) for b in (-.45 * look["width"], .45 * look["width"])], axis=1)
    low = camera.project(np.concatenate([faces_at, np.full((*faces_at.shape[:2], 1), .6)], axis=-1)[..., [0, 2, 1]])
    high = camera.project(np.concatenate([faces_at, np.full((*faces_at.shape[:2], 1), 1.25)], axis=-1)[..., [0, 2, 1]])
    points = np.concatenate([low, high], axis=1)
    share = scene.in_view(points)
    depth = scene.depth(position)
    near = depth > 1.5
    if does is None:
        ahead = direction[0]
        does = "drives to the right" if ahead > .5 else "drives to the left" if ahead < -.5 else "drives away" if direction[1] > 0 else "comes closer"
    drawn[..., 16] *= near[:, None]
    record = dict(kind="car", colour=colour, event=event, does=does, stops=stops, position=position, pace=pace)
    thing = Thing("car", drawn, depth, record, seen=(share >= .2) & near & (points[:, 0, 2] * length > .11), touch=((share > 0) | scene_margin(scene, points, .04)) & near)
    thing.box = np.stack([points[..., 0].min(1), points[..., 0].max(1), points[..., 1].min(1), points[..., 1].max(1)], -1)
    record["thing"] = thing
    scene.things.append(thing)
    return record
