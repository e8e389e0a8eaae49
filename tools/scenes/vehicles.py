"""Cars, and boxes that are not cars. All arrays have time as the first axis."""

import numpy as np

from .geometry import box_faces, capsules, quads


def draw_car(camera, position, heading, look, soft, night):
    """(T, 22, 20) primitives: shadow, four wheels, body, cabin with windows, roof, lamps."""
    length, width, body, cabin = look["length"], look["width"], look["body"], look["cabin"]
    paint = np.asarray(look["paint"], np.float32)
    glass = np.array([.1, .12, .15], np.float32) * look["glass"]
    sin, cos = np.sin(heading), np.cos(heading)

    def point(ahead, up, left):
        return camera.project(np.stack([position[:, 0] + ahead * sin - left * cos, np.full(len(sin), up), position[:, 1] + ahead * cos + left * sin], axis=-1))

    dark = np.array([.03, .03, .035], np.float32)
    parts = [capsules(point(-length * .42, .02, 0), point(length * .42, .02, 0), width * .56, width * .56, dark, alpha=look["shadow"], soft=.03, rounding=0)]
    for ahead in (-.31, .31):
        for left in (-.46, .46):
            p = point(ahead * length, .31, left * width)
            parts.append(capsules(p, p, .33, .33, dark * 1.6, soft=soft, rounding=.3))
    faces, light = box_faces(camera, position, heading, (length, body, width), base=.28, taper=(.96, .92))
    body_quads = quads(faces, paint * light[..., None], soft=soft, gradient=look["gloss"], level=.5, one_sided=True)
    faces, light = box_faces(camera, position - np.stack([sin, cos], -1) * length * look["cabin_back"], heading, (length * look["cabin_length"], cabin, width * .9), base=.28 + body, taper=(look["rake"], .8))
    colours = np.concatenate([np.broadcast_to(glass, (4, 3)), paint[None]]) * light[..., None]
    cabin_quads = quads(faces, colours, soft=soft, one_sided=True)
    # Window posts: the cabin's four upright edges in the paint's colour.
    posts = [capsules(faces[:, 0, a], faces[:, 0, b], .045, .045, paint * .8, soft=soft, rounding=.2) for a, b in ((0, 3), (1, 2))]
    posts += [capsules(faces[:, 2, a], faces[:, 2, b], .045, .045, paint * .8, soft=soft, rounding=.2) for a, b in ((0, 3), (1, 2))]
    lamps = []
    for ahead, colour in ((.49, (1.0, .97, .85)), (-.49, (.85, .08, .05))):
        for left in (-.36, .36):
            p = point(ahead * length, .62, left * width)
            facing = np.sign(ahead) * ((0 - position[:, 0]) * sin + (0 - position[:, 1]) * cos) > 0
            lamps.append(capsules(p, p, .11, .11, colour, alpha=np.where(facing, 1.0, 0.0) if not night else np.where(facing, 1.0, 0.0), soft=soft))
    out = [part[:, None] for part in parts] + [body_quads, cabin_quads] + [post[:, None] for post in posts] + [lamp[:, None] for lamp in lamps]
    return np.concatenate(out, axis=1)


def headlights(camera, position, heading, length, strength):
    """(T, 2, 20): light on the ground before the car and around its lamps, at night."""
    sin, cos = np.sin(heading), np.cos(heading)

    def point(ahead, up):
        return camera.project(np.stack([position[:, 0] + ahead * sin, np.full(len(sin), up), position[:, 1] + ahead * cos], axis=-1))

    near, far, lamp = point(length * .6, .05), point(length * .6 + 6, .05), point(length * .5, .6)
    beam = capsules(near, far, .8, 2.0, (1.0, .95, .8), alpha=-.35 * strength, soft=.12, rounding=0)
    glow = capsules(lamp, lamp, .5, .5, (1.0, .95, .85), alpha=-.5 * strength, soft=.1, rounding=0)
    return np.stack([beam, glow], axis=1)


def draw_box(camera, position, yaw, size, colour, soft):
    """(5, 20): containers, cupboards, tables: boxes that no rule asks about."""
    faces, light = box_faces(camera, position[None], np.array([yaw]), size)
    return quads(faces, np.asarray(colour) * light[..., None], soft=soft, one_sided=True)[0]
