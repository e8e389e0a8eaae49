"""Persons, dogs and bags: how they move, and the primitives that draw them. All arrays have time as the first axis."""

import numpy as np

from .geometry import capsules, quads, box_faces

# Joints of a person of unit height (forward, up, left): a posture is a table of these.
JOINTS = ("hip", "neck", "head", "knee_l", "knee_r", "foot_l", "foot_r", "hand_l", "hand_r")
POSTURES = {
    "stand": ((0, .53, 0), (0, .83, 0), (.01, .93, 0), (.01, .28, .06), (.01, .28, -.06), (0, .03, .06), (0, .03, -.06), (.03, .47, .15), (.03, .47, -.15)),
    "bend": ((-.1, .5, 0), (.22, .62, 0), (.32, .6, 0), (.0, .27, .06), (.0, .27, -.06), (0, .03, .06), (0, .03, -.06), (.28, .25, .1), (.28, .25, -.1)),
    "sit": ((-.05, .28, 0), (-.05, .58, 0), (-.03, .69, 0), (.2, .3, .07), (.2, .3, -.07), (.2, .03, .07), (.2, .03, -.07), (.16, .34, .1), (.16, .34, -.1)),
    "crouch": ((-.07, .2, 0), (.08, .46, 0), (.13, .56, 0), (.16, .26, .08), (.16, .26, -.08), (0, .03, .07), (0, .03, -.07), (.2, .16, .1), (.2, .16, -.1)),
    "lie": ((-.02, .07, 0), (-.32, .08, 0), (-.43, .08, 0), (.24, .09, .07), (.23, .06, -.09), (.45, .04, .07), (.47, .04, -.12), (-.12, .05, .2), (-.05, .05, -.22)),
}
POSTURES = {name: np.array(table, np.float32) for name, table in POSTURES.items()}
# A fall forwards, backwards or sideways: where "lie" points, as a turn about the vertical axis.


def ease(x):
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def postures_over_time(times, changes, start="stand"):
    """(T, 9, 3) joints; `changes` is a list of (from time, seconds it takes, posture)."""
    pose = np.repeat(POSTURES[start][None], len(times), 0)
    for begin, lasts, name in changes:
        x = np.clip((times - begin) / lasts, 0, 1)
        # A fall gathers speed, all other changes start and end softly.
        weight = (x ** 1.8 if name == "lie" else ease(x))[:, None, None]
        pose = pose * (1 - weight) + POSTURES[name] * weight
    return pose


def person_joints(camera, position, heading, distance, pose, height, lie_turn=0.0, sway=0.0):
    """Projected joints (T, 9, 3). `distance` walked drives the gait; it acts on upright postures only."""
    pose = pose.copy()
    upright = np.clip((pose[:, 2, 1] - 0.5) / 0.4, 0, 1)
    stride = np.gradient(distance) if len(distance) > 1 else np.zeros(1)
    walking = upright * np.clip(np.abs(stride) * 30, 0, 1)
    phase = distance / height * 4.1
    swing = np.sin(phase) * 0.17 * walking
    for sign, knee, foot, hand in ((1, 3, 5, 7), (-1, 4, 6, 8)):
        pose[:, foot, 0] += sign * swing
        pose[:, foot, 1] += np.maximum(0, np.cos(phase) * sign) * 0.06 * walking
        pose[:, knee, 0] += sign * swing * 0.5 + 0.03 * walking
        pose[:, hand, 0] -= sign * swing * 0.8
    pose[:, 1:3, 2] += sway[:, None] if np.ndim(sway) else sway
    turn = lie_turn * (1 - upright)
    yaw = heading + turn
    ahead, up, left = pose[..., 0] * height, pose[..., 1] * height, pose[..., 2] * height
    sin, cos = np.sin(yaw)[:, None], np.cos(yaw)[:, None]
    x = position[:, 0, None] + ahead * sin - left * cos
    z = position[:, 1, None] + ahead * cos + left * sin
    return camera.project(np.stack([x, up, z], axis=-1)), np.stack([x, up, z], axis=-1)


def draw_person(joints, height, look, soft):
    """(T, 12, 20) primitives, far limbs first."""
    at = {name: joints[:, index] for index, name in enumerate(JOINTS)}
    w = height * look["build"]
    top, legs, skin, hair = (np.asarray(look[key], np.float32) for key in ("top", "legs", "skin", "hair"))
    chest = at["neck"].copy()
    parts = [
        capsules(at["neck"], at["hand_l"], .035 * w, .026 * w, top * 0.85, soft=soft),
        capsules(at["hip"], at["knee_l"], .055 * w, .042 * w, legs * 0.9, soft=soft), capsules(at["knee_l"], at["foot_l"], .042 * w, .03 * w, legs * 0.85, soft=soft),
        capsules(at["hip"], at["knee_r"], .055 * w, .042 * w, legs, soft=soft), capsules(at["knee_r"], at["foot_r"], .042 * w, .03 * w, legs * 0.95, soft=soft),
        capsules(at["foot_l"], at["foot_l"], .04 * w, .04 * w, look["shoes"], soft=soft), capsules(at["foot_r"], at["foot_r"], .04 * w, .04 * w, look["shoes"], soft=soft),
        capsules(at["hip"], chest, (.085 if not look["coat"] else .1) * w, .1 * w, top, soft=soft),
        capsules(at["hip"] * .5 + (at["knee_l"] + at["knee_r"]) * .25, at["hip"], .1 * w, .085 * w, top if look["coat"] else legs, alpha=1.0 if look["coat"] else 0.0, soft=soft),
        capsules(at["neck"], at["hand_r"], .036 * w, .027 * w, top * 0.95, soft=soft),
        capsules(at["head"], at["head"], .062 * w, .062 * w, skin, soft=soft),
        capsules(at["head"] + np.array([0, -.018, 0]) * at["head"][:, 2:3] * height * np.array([0, 1, 0]), at["head"] * (1 - look["hair_fall"]) + at["neck"] * look["hair_fall"],
                 .06 * w, .05 * w, hair, alpha=look["hair_alpha"], soft=soft),
    ]
    return np.stack(parts, axis=1)


def shadow_of(camera, world, sun, colour, alpha, radius, soft):
    """A soft shadow on the ground: from below the first point to where the light throws the second. (T, 2, 3) world points."""
    ground = world.copy()
    ground[..., 0] += world[..., 1] * sun[0]
    ground[..., 2] += world[..., 1] * sun[1]
    ground[..., 1] = 0.01
    points = camera.project(ground)
    return capsules(points[:, 0], points[:, 1], radius, radius * 0.8, colour, alpha=alpha, soft=soft, rounding=0.0)


def draw_dog(camera, position, heading, distance, size, colour, soft):
    """(T, 7, 20)"""
    phase = distance * 6 / size
    parts_at = {"rump": (-.4, .45, 0), "chest": (.3, .5, 0), "head": (.55, .68, 0), "nose": (.72, .62, 0), "tail": (-.7, .65, 0)}
    sin, cos = np.sin(heading), np.cos(heading)

    def point(ahead, up, left):
        ahead, up, left = np.broadcast_arrays(ahead, up, left)
        return camera.project(np.stack([position[:, 0] + size * (ahead * sin - left * cos), np.broadcast_to(size * up, sin.shape), position[:, 1] + size * (ahead * cos + left * sin)], axis=-1))

    p = {name: point(*(np.full(len(sin), v) for v in value)) for name, value in parts_at.items()}
    legs = []
    for k, (x, y) in enumerate(((-.38, .1), (-.38, -.1), (.28, .1), (.28, -.1))):
        swing = .15 * np.sin(phase + k * 1.7)
        legs.append(capsules(point(np.full(len(sin), x), np.full(len(sin), .4), np.full(len(sin), y)), point(x + swing, np.full(len(sin), .03), np.full(len(sin), y)), .06 * size, .045 * size, colour * .8, soft=soft))
    body = [capsules(p["rump"], p["chest"], .15 * size, .17 * size, colour, soft=soft), capsules(p["head"], p["nose"], .12 * size, .06 * size, colour, soft=soft),
            capsules(p["rump"], p["tail"], .05 * size, .03 * size, colour, soft=soft)]
    return np.stack(legs + body, axis=1)


def draw_bag(camera, position, base, yaw, size, colour, soft, alpha):
    """(T, 6, 20): a box and a handle. `base` is the height of its bottom (T,)."""
    count = len(base)
    faces, light = box_faces(camera, position, np.broadcast_to(yaw, (count,)), size, base=0.0)
    # Lifting moves each corner by the same height; a box so small may be moved in the image.
    lift = camera.project(np.stack([position[:, 0], base, position[:, 1]], -1)) - camera.project(np.stack([position[:, 0], 0 * base, position[:, 1]], -1))
    faces = faces.copy()
    faces[..., 0] += lift[:, None, None, 0]
    faces[..., 1] += lift[:, None, None, 1]
    body = quads(faces, colour * light[..., None], alpha=1.0, soft=soft, one_sided=True)
    body[..., 16] *= alpha[:, None]
    top = camera.project(np.stack([position[:, 0], base + size[1], position[:, 1]], -1))
    handle = capsules(top, top + np.array([0, -.12, 0]) * top[:, 2:3], .03, .03, colour * .6, alpha=alpha, soft=soft)
    return np.concatenate([body, handle[:, None]], axis=1)
