"""Zones marked on the ground."""

import numpy as np

from .chance import COLOURS, ZONE_COLOURS, apart, uniform, unit, unit_rows
from .geometry import capsules


def add_zone(scene, record, wanted):
    """Marks a zone on the ground. `record`: the person whom it is to hold ("in"), to miss closely ("near"), or None. Returns the zone's corners in the picture, or None where no zone can be seen well."""
    for _ in range(8):
        at = place_zone(scene, record, wanted)
        if at is not None:
            break
    else:
        return None
    rng = scene.rng
    colour = apart(rng, ZONE_COLOURS, scene)
    lines = capsules(at, np.roll(at, -1, axis=0), 0, 0, np.array(COLOURS[colour]) * (1.0 if scene.light == "day" else 1.7), alpha=uniform(rng, .8, 1), soft=.004, rounding=0)
    lines[:, 3] = lines[:, 6] = uniform(rng, .004, .009)
    scene.zone = dict(colour=colour, lines=lines)
    return at[:, :2]


def place_zone(scene, record, wanted):
    """Projected corners (N, 3) of a zone, or None if too little of it is in the picture or it is seen too flat."""
    rng, camera = scene.rng, scene.camera
    # Not a place of one of the frames: the zone must not depend on when the scene is looked at.
    point = record["anchor"] + rng.normal(0, .3, 2) if record is not None else scene.spot(.45, .95)
    size = max(1.4, uniform(rng, .16, .36) * scene.depth(point[None])[0] / camera.focal * 1.3)
    if record is not None and wanted == "near":
        point = point + unit(uniform(rng, 0, 6.28)) * size * uniform(rng, 1.4, 2.2)
    elif record is not None and wanted == "in":
        point = point + unit(uniform(rng, 0, 6.28)) * size * uniform(rng, 0, .45)
    count = int(rng.integers(4, 6))
    angles = np.sort(np.arange(count) * 2 * np.pi / count + rng.uniform(-.35, .35, count)) + uniform(rng, 0, 6)
    polygon = point + unit_rows(angles) * size * rng.uniform(.85, 1.2, (count, 1))
    at = camera.project(np.concatenate([polygon, np.zeros((count, 1))], axis=-1)[:, [0, 2, 1]])
    if (at[:, 2] <= 0).any() or scene.in_view(at[None])[0] < .6 or inside(at[:, :2], at[:, :2].mean(0, keepdims=True))[0] < .05:
        return None
    return at


def inside(polygon, points):
    """Signed distance-like margin of points (T, 2) to a convex polygon: positive inside, in the points' unit."""
    follow = np.roll(polygon, -1, axis=0)
    edge = follow - polygon
    normal = np.stack([edge[:, 1], -edge[:, 0]], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    centre = polygon.mean(0)
    normal *= np.where(np.sum((centre - polygon) * normal, -1) >= 0, 1, -1)[:, None]
    return np.min(np.sum((points[:, None] - polygon) * normal, -1), axis=1)
