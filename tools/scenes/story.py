"""Draws a scene from a seed: who moves where and when, what the camera is like, and what is true about it.

`tell(seed, times, ...)` gives a Story for any list of times, so the same scene can be sampled at 2 frames a second for training or at 25 for a video file.
Nothing in the scene depends on the times at which it is looked at, but for the rate for which its events are timed (`fps`); only the facts do (an object that no frame shows is not there).
"""

from dataclasses import dataclass, field

import numpy as np

from . import people, vehicles
from .geometry import Camera, capsules, quads, rows

MAX_MOVING, MAX_STILL = 84, 48
HELD_OUT = 1_000_000  # seeds from here on are never trained on

COLOURS = {
    "red": (.72, .08, .08), "blue": (.1, .2, .65), "green": (.1, .45, .15), "yellow": (.85, .72, .1), "white": (.9, .9, .9), "black": (.04, .04, .05), "grey": (.45, .45, .47),
    "orange": (.9, .42, .05), "purple": (.4, .12, .5), "pink": (.9, .45, .6), "brown": (.35, .2, .1), "teal": (.2, .5, .52),
}
CLOTHES = ("red", "blue", "green", "yellow", "white", "black", "grey", "orange", "purple", "pink", "brown", "black", "grey")
PAINTS = ("red", "blue", "green", "yellow", "white", "black", "grey", "white", "black", "grey", "teal", "orange")
ZONE_COLOURS = ("yellow", "red", "green", "blue", "white", "orange")


@dataclass
class Story:
    moving: np.ndarray  # (T, MAX_MOVING, 20) primitives, far ones first
    still: np.ndarray  # (MAX_STILL, 20)
    optics: dict  # numbers for render.py
    facts: dict  # see questions.py
    events: dict  # the scene as JSON: what happens when and where


@dataclass
class Thing:
    kind: str
    rows: np.ndarray
    depth: np.ndarray
    record: dict
    seen: np.ndarray = None  # enough of it is in the picture to be recognised
    touch: np.ndarray = None  # any of it may be in the picture


def pick(rng, items, weights=None):
    if weights is None:
        return items[int(rng.integers(len(items)))]
    weights = np.asarray(weights, float)
    return items[int(rng.choice(len(items), p=weights / weights.sum()))]


def uniform(rng, low, high):
    return float(rng.uniform(low, high))


def tinted(rng, name, spread=.1):
    return np.clip(np.array(COLOURS[name]) * uniform(rng, .8, 1.15) + rng.normal(0, spread * .3, 3), .01, 1).astype(np.float32)


class Scene:
    """The stage: place, camera, light. Things are added to it by the functions below."""

    def __init__(self, rng, times, fps, duration, aspects=None, near=False):
        self.rng, self.times, self.fps = rng, np.asarray(times, np.float64), fps
        self.duration = duration
        self.place = pick(rng, ("street", "yard", "room", "car park"), (.48, .16, .2, .16))
        if near:
            self.place = pick(rng, ("room", "car park"), (.65, .35))
        self.light = pick(rng, ("day", "dusk", "night", "infrared"), (.58, .14, .16, .12))
        self.weather = pick(rng, ("dry", "rain", "snow"), (.76, .14, .1)) if self.place != "room" else "dry"
        aspect = pick(rng, aspects) if aspects else pick(rng, (16 / 9, 4 / 3, 1.0, 1.5), (.55, .2, .1, .15))
        steep = rng.random() < (.3 if self.place != "room" else .12)
        pitch = np.radians(uniform(rng, 48, 86) if steep else uniform(rng, 11, 42))
        focal = uniform(rng, .75, 1.7)
        # How large things are: a person 0.14 to 0.75 of the picture's height in rooms and yards, a car 0.25 to 1 of it on streets.
        if self.place in ("street", "car park"):
            reach = focal * 4.4 / (uniform(rng, .25, .85) if not near else uniform(rng, .5, 1.2))
        else:
            reach = focal * 1.7 / (np.exp(uniform(rng, np.log(.17), np.log(.75))) if not near else uniform(rng, .5, 1.3))
        self.camera = Camera(max(1.2 if not steep else 2.6, reach * np.sin(pitch)), pitch, focal, aspect)
        self.sun = (uniform(rng, -1.2, 1.2), uniform(rng, -.6, 1.2))
        self.soft = uniform(rng, .004, .012)
        self.things, self.still, self.zone = [], [], None
        self.shade = 0.0 if self.light in ("night", "infrared") or self.weather != "dry" else uniform(rng, .15, .55)
        if self.place == "room":
            self.shade = uniform(rng, .05, .3)
        self.road = None
        self._stage()

    # --- the stage -----------------------------------------------------------------------------------------------------------------

    def _polygon(self, world, colour, **kwargs):
        points = self.camera.project(np.asarray(world, np.float32))
        if (points[:, 2] > 0).all():
            self.still.append(quads(points, colour, **kwargs))

    def _strip(self, centre, direction, half, colour, start=-70, end=70, **kwargs):
        """A band on the ground, cut off where it would come behind the camera."""
        normal = np.array([direction[1], -direction[0]])
        corners = []
        for side, ends in ((-half, (start, end)), (half, (end, start))):
            for s in ends:
                p = centre + direction * s + normal * side
                if p[1] * self.camera.cos + self.camera.height * self.camera.sin < .6:
                    slope = direction[1] * self.camera.cos
                    if abs(slope) < 1e-3:
                        return
                    s += (.6 - (p[1] * self.camera.cos + self.camera.height * self.camera.sin)) / slope
                    p = centre + direction * s + normal * side
                corners.append((p[0], 0, p[1]))
        self._polygon(corners, colour, **kwargs)

    def _stage(self):
        rng, camera, a = self.rng, self.camera, self.camera.aspect
        horizon = camera.horizon
        grounds = {"street": (.3, .3, .3), "car park": (.28, .28, .29), "yard": pick(rng, ((.3, .38, .2), (.5, .47, .42), (.4, .36, .3))), "room": pick(rng, ((.5, .35, .22), (.55, .52, .48), (.35, .35, .38), (.6, .45, .3)))}
        self.ground_colour = np.clip(np.array(grounds[self.place]) * uniform(rng, .6, 1.5) + rng.normal(0, .03, 3), .03, .9)
        full = np.array([[0, -1], [a, -1], [a, 2], [0, 2]], np.float32)
        self.still.append(quads(full, self.ground_colour, gradient=uniform(rng, -.25, .25)))
        middle = camera.ground(a / 2, .6)
        middle = np.array([0, 8.0]) if middle is None else middle
        self.middle = middle
        heading = uniform(rng, 0, np.pi) if camera.pitch > .8 else pick(rng, (uniform(rng, 1.2, 1.95), uniform(rng, .3, 2.8)), (.6, .4))
        self.direction = np.array([np.sin(heading), np.cos(heading)])
        if self.place == "street":
            half = uniform(rng, 2.8, 5.5)
            shift = np.array([self.direction[1], -self.direction[0]]) * uniform(rng, -1.5, 1.5)
            asphalt = np.array([.24, .24, .25]) * uniform(rng, .7, 1.5)
            if rng.random() < .6:
                self._strip(middle + shift, self.direction, half + uniform(rng, .8, 2), asphalt * 1.5)
            self._strip(middle + shift, self.direction, half, asphalt)
            self.road = (middle + shift, half)
            if rng.random() < .75:
                for k in range(-5, 6):
                    self._strip(middle + shift, self.direction, .08, (.8, .8, .78), start=k * 5, end=k * 5 + 2.5)
        elif self.place == "car park":
            for k in range(int(rng.integers(2, 8))):
                normal = np.array([self.direction[1], -self.direction[0]])
                self._strip(middle + normal * 2.8 * (k - 3) + self.direction * uniform(rng, 2, 4), self.direction, .06, (.8, .8, .8), start=-2.5, end=2.5)
        # What stands at the back: a wall and its openings, or sky, houses and trees.
        if self.place == "room":
            back = middle[1] + uniform(rng, 1.0, 4.0)
            corner = camera.project(np.array([[0, 0, back]], np.float32))[0, 1]
            wall = np.clip(np.array(pick(rng, ((.75, .74, .72), (.6, .62, .66), (.5, .42, .38), (.68, .6, .48)))) * uniform(rng, .6, 1.25), 0, 1)
            if corner > -.2:
                self.still.append(quads(np.array([[0, -1], [a, -1], [a, corner], [0, corner]]), wall, gradient=uniform(rng, -.3, .3)))
                self.still.append(capsules(np.array([0, corner, 1.]), np.array([a, corner, 1.]), .008, .008, wall * .5, rounding=0))
                for _ in range(int(rng.integers(0, 4))):
                    x, y, w, h = uniform(rng, 0, a), corner - uniform(rng, .1, .5), uniform(rng, .05, .4), uniform(rng, .08, .4)
                    self.still.append(quads(np.array([[x, y - h], [x + w, y - h], [x + w, y], [x, y]]), rng.uniform(.05, .95, 3), gradient=uniform(rng, -.5, .5)))
            self.limit = max(back - .4, 1.0)
        else:
            self.limit = 60.0
            if horizon > -.3:
                sky = {"day": (.62, .72, .85), "dusk": (.6, .42, .4), "night": (.06, .07, .1), "infrared": (.1, .1, .1)}[self.light]
                self.still.append(quads(np.array([[0, -1], [a, -1], [a, horizon], [0, horizon]]), np.array(sky) * uniform(rng, .8, 1.15), gradient=uniform(rng, -.4, .2)))
                for _ in range(int(rng.integers(0, 5))):
                    x, w, h = uniform(rng, -.2, a), uniform(rng, .15, .7), uniform(rng, .08, .5)
                    shade = np.clip(np.array(pick(rng, ((.55, .5, .45), (.5, .3, .25), (.4, .42, .45), (.65, .62, .55)))) * uniform(rng, .5, 1.2), 0, 1)
                    self.still.append(quads(np.array([[x, horizon - h], [x + w, horizon - h], [x + w, horizon + .03], [x, horizon + .03]]), shade))
                    for _ in range(int(rng.integers(0, 4))):
                        wx, wy = x + uniform(rng, .02, max(.03, w - .07)), horizon - uniform(rng, .04, max(.05, h - .03))
                        self.still.append(quads(np.array([[wx, wy], [wx + .05, wy], [wx + .05, wy + .04], [wx, wy + .04]]), (.9, .8, .5) if self.light == "night" and rng.random() < .6 else shade * .4))
            for _ in range(int(rng.integers(0, 4))):
                p = camera.ground(uniform(rng, 0, a), uniform(rng, max(horizon + .05, 0), .8))
                if p is not None and (self.road is None or self.off_road(p)):
                    at = camera.project(np.array([[p[0], 0, p[1]], [p[0], uniform(rng, .8, 3), p[1]]], np.float32))
                    green = np.array([.15, .35, .1]) * uniform(rng, .5, 1.4)
                    self.still.append(capsules(at[0], at[1], .1, .08, (.2, .14, .1)))
                    for _ in range(3):
                        q = at[1] + np.array([rng.normal(0, .5) * at[1, 2], rng.normal(0, .4) * at[1, 2], 0])
                        self.still.append(capsules(q, q, uniform(rng, .4, .9), .3, green * uniform(rng, .7, 1.3), soft=.03))
        # Boxes, poles and cones: they stand about as persons and cars do, and are neither.
        for _ in range(int(rng.integers(0, 4))):
            p = camera.ground(uniform(rng, 0, a), uniform(rng, max(horizon + .08, .1), 1.1))
            if p is None or (self.road is not None and not self.off_road(p)):
                continue
            colour = np.clip(rng.uniform(.08, .8, 3), 0, 1)
            kind = pick(rng, ("box", "pole", "cone", "table"))
            if kind == "box":
                size = (uniform(rng, .4, 3.2), uniform(rng, .4, 1.6), uniform(rng, .4, 1.6))
                self.still.extend(vehicles.draw_box(camera, p, uniform(rng, 0, 3), size, colour, self.soft))
            elif kind == "table":
                at = camera.project(np.array([[p[0], .72, p[1]], [p[0], 0, p[1]]], np.float32))
                self.still += [capsules(at[0], at[1], .04, .04, colour * .5), capsules(at[0] - [.4 * at[0, 2], 0, 0], at[0] + [.4 * at[0, 2], 0, 0], .05, .05, colour)]
            else:
                tall = uniform(rng, 1.4, 4) if kind == "pole" else uniform(rng, .4, .9)
                at = camera.project(np.array([[p[0], 0, p[1]], [p[0], tall, p[1]]], np.float32))
                self.still.append(capsules(at[0], at[1], .05 if kind == "pole" else .18, .05, colour if kind == "pole" else (.9, .35, .05)))

    def off_road(self, point, margin=.6):
        centre, half = self.road
        normal = np.array([self.direction[1], -self.direction[0]])
        return abs(np.dot(point - centre, normal)) > half + margin

    def spot(self, low=.3, high=1.0, inset=.12, tries=20, tall=0.0):
        """A ground point in view; what stands on it and is `tall` metres high mostly is too."""
        a = self.camera.aspect
        for _ in range(tries):
            v = uniform(self.rng, max(low, self.camera.horizon + .12), high)
            p = self.camera.ground(uniform(self.rng, inset, 1 - inset) * a, v)
            if p is not None and p[1] < self.limit and np.hypot(*p) < 45:
                if tall and self.camera.project(np.array([[p[0], tall, p[1]]]))[0, 1] < -.08 and self.rng.random() < .9:
                    continue
                return p
        return self.middle.copy()

    # --- what is seen --------------------------------------------------------------------------------------------------------------

    def in_view(self, points):
        """Share of the projected points (T, N, 3) inside the picture."""
        a = self.camera.aspect
        inside = (points[..., 0] > 0) & (points[..., 0] < a) & (points[..., 1] > 0) & (points[..., 1] < 1) & (points[..., 2] > 0)
        return inside.mean(axis=1)

    def depth(self, position):
        return position[:, 1] * self.camera.cos + self.camera.height * self.camera.sin


def spans(flags, times, step):
    """First and last moment at which `flags` hold, in seconds from the first frame."""
    index = np.flatnonzero(flags)
    return float(times[index[0]] - times[0]), float(times[index[-1]] - times[0] + step)


# --- persons ------------------------------------------------------------------------------------------------------------------------------

def person_look(scene):
    rng = scene.rng
    colour = pick(rng, CLOTHES)
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


def unit(angle):
    return np.array([np.sin(angle), np.cos(angle)])


PERSON_EVENTS = ("pass", "stand", "arrive", "fall", "near", "bag", "bag near")


def add_person(scene, event, anchor=None):
    """One person and, with the bag events, the bag. Returns the record of the person."""
    rng, camera, t, total = scene.rng, scene.camera, scene.times, scene.duration
    colour, look = person_look(scene)
    height = uniform(rng, 1.5, 1.95)
    start = t[0]
    # The anchor is where the event takes place; low in the picture the feet may be outside of it.
    anchor = scene.spot(.35, 1.1, tall=1.7) if anchor is None else anchor
    angle = pick(rng, (np.pi / 2, -np.pi / 2, 0.0, np.pi)) + rng.normal(0, .35)
    come, go = unit(angle), unit(angle + (rng.normal(0, .5) if rng.random() < .6 else uniform(rng, -3, 3)))
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
        falls = when - start
        does = "falls down"
        if rng.random() < .15 and total - falls > 6:
            changes += [(when + lasts + uniform(rng, 2.5, 4), 1.2, "crouch"), (when + lasts + 5.5, .8, "stand")]
            does = "falls down and gets up"
    elif event == "near":
        kind = pick(rng, ("bend", "sit", "crouch", "get up", "lie"), (.3, .27, .25, .14, .04))
        moving_in = rng.random() < .5
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
            back = rng.random() < .65
            leave = None
            if back:
                changes.append((when + lasts + stays, uniform(rng, .4, .9), "stand"))
                leave = when + lasts + stays + .9 if rng.random() < .6 else None
            does = {"bend": "bends down", "sit": "sits down", "crouch": "crouches"}[kind]
        record["posture"] = kind
    bag = None
    if event in ("bag", "bag near"):
        bag = add_bag(scene, record, anchor, come, go, event, when)
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
    thing = Thing("person", drawn, scene.depth(position), record, seen=(share >= .22) & (size > .07), touch=(share > 0) | scene_margin(scene, joints, .03))
    if position[:, 1].max() > scene.limit and scene.place == "room":
        thing.seen &= position[:, 1] < scene.limit + .3
    feet = (world[:, 5, [0, 2]] + world[:, 6, [0, 2]]) / 2
    record.update(anchor=anchor, does=does, falls=falls, feet=feet, upright=pose[:, 2, 1] > .5, thing=thing, shade=bool(scene.shade), bag=bag)
    scene.things.append(thing)
    return record


def scene_margin(scene, points, margin):
    a = scene.camera.aspect
    return ((points[..., 0] > -margin) & (points[..., 0] < a + margin) & (points[..., 1] > -margin) & (points[..., 1] < 1 + margin) & (points[..., 2] > 0)).any(axis=1)


def add_bag(scene, record, anchor, come, go, event, when):
    """Adds the bag and returns what its owner does."""
    rng, camera, t, total, start = scene.rng, scene.camera, scene.times, scene.duration, scene.times[0]
    colour = pick(rng, ("red", "blue", "green", "yellow", "black", "brown", "grey", "orange", "purple"))
    size = pick(rng, ((.55, .42, .28), (.4, .5, .22), (.65, .38, .35), (.45, .62, .3)))
    kind = "left" if event == "bag" else pick(rng, ("taken again", "carried", "picked up", "stays beside"), (.35, .2, .25, .2))
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
    # On the ground it stays where it was set down; carried it hangs beside the hand. The owner's path is drawn again below with the same speed.
    record_bag["args"] = (size, colour, side, anchor, uniform(rng, 0, 3), tinted(rng, colour))
    record_bag["does_bag"] = bag_does
    record_bag["does"] = does
    return record_bag


def finish_bag(scene, record):
    """Places the bag now that its owner's path is known."""
    bag, t = record["bag"], scene.times
    size, colour, side, anchor, yaw, paint = bag["args"]
    owner = record["path"] if "path" in record else record["feet"]
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
    thing = Thing("bag", drawn, scene.depth(position) - .05, bag, seen=(share > 0) & (centre[:, 0, 2] * size[1] > .02), touch=scene_margin(scene, centre, .05))
    bag["on_ground"], bag["position"] = on_ground, position
    bag["thing"] = thing
    scene.things.append(thing)


# --- cars --------------------------------------------------------------------------------------------------------------------------------

def travel(times, speed, changes):
    """Metres driven at each time (zero at the first change) with speeds that change linearly: (from, until, new speed)."""
    fine = np.linspace(times[0] - 40, times[-1] + 1, int((times[-1] - times[0] + 41) * 25) + 1)
    v = np.full(len(fine), speed)
    for begin, end, new in changes:
        old = v[np.searchsorted(fine, begin) - 1] if begin > fine[0] else v[0]
        x = np.clip((fine - begin) / max(end - begin, 1e-3), 0, 1)
        v = np.where(fine >= begin, old + (new - old) * x, v)
    s = np.concatenate([[0], np.cumsum((v[1:] + v[:-1]) / 2 * np.diff(fine))])
    return np.interp(times, fine, s), np.interp(times, fine, v), fine, s


def add_car(scene, event):
    rng, camera, t, total, start = scene.rng, scene.camera, scene.times, scene.duration, scene.times[0]
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
            if total - (when - start) > 5 and rng.random() < .25:
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
        metres, pace, fine, s = travel(t, speed, changes)
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
    record = dict(kind="car", colour=colour, event=event, does=does, stops=None if stops is None else stops - start, position=position, pace=pace)
    thing = Thing("car", drawn, depth, record, seen=(share >= .2) & near & (points[:, 0, 2] * length > .08), touch=((share > 0) | scene_margin(scene, points, .04)) & near)
    record["thing"] = thing
    scene.things.append(thing)
    return record


def unit_rows(angle):
    return np.stack([np.sin(angle), np.cos(angle)], axis=-1)


# --- the rest ----------------------------------------------------------------------------------------------------------------------------

def add_zone(scene, record, wanted):
    """Marks a zone on the ground. `record`: the person whom it is to hold ("in"), to miss closely ("near"), or None. Returns the zone's polygon."""
    rng, camera = scene.rng, scene.camera
    if record is not None:
        # Not a place of one of the frames: the zone must not depend on when the scene is looked at.
        point = record["anchor"] + rng.normal(0, .3, 2)
    else:
        point, wanted = scene.spot(.45, .95), "any"
    size = max(1.6, uniform(rng, .14, .34) * scene.depth(point[None])[0] / camera.focal * 1.3)
    if wanted == "near":
        point = point + unit(uniform(rng, 0, 6.28)) * size * uniform(rng, 1.5, 2.4)
    elif wanted == "in":
        point = point + unit(uniform(rng, 0, 6.28)) * size * uniform(rng, 0, .45)
    corners_count = int(rng.integers(4, 6))
    angles = np.sort(np.arange(corners_count) * 2 * np.pi / corners_count + rng.uniform(-.35, .35, corners_count)) + uniform(rng, 0, 6)
    polygon = point + unit_rows(angles) * size * rng.uniform(.85, 1.2, (corners_count, 1))
    colour = pick(rng, ZONE_COLOURS)
    at = camera.project(np.concatenate([polygon, np.zeros((corners_count, 1))], axis=-1)[:, [0, 2, 1]])
    if (at[:, 2] <= 0).any() or scene.in_view(at[None])[0] < .5:
        return None
    width = uniform(rng, .0035, .008)
    lines = capsules(at, np.roll(at, -1, axis=0), 0, 0, COLOURS[colour], alpha=uniform(rng, .75, 1), soft=.004, rounding=0)
    lines[:, 3] = lines[:, 6] = width
    scene.zone = dict(colour=colour, polygon=polygon, lines=lines)
    return polygon


def inside(polygon, points):
    """Signed distance-like margin of points (T, 2) to a convex polygon: positive inside, in metres."""
    follow = np.roll(polygon, -1, axis=0)
    edge = follow - polygon
    normal = np.stack([edge[:, 1], -edge[:, 0]], -1)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    centre = polygon.mean(0)
    normal *= np.where(np.sum((centre - polygon) * normal, -1) >= 0, 1, -1)[:, None]
    return np.min(np.sum((points[:, None] - polygon) * normal, -1), axis=1)


def add_distractors(scene):
    rng, t = scene.rng, scene.times
    dog = False
    if rng.random() < (.16 if scene.place != "room" else .08):
        size = uniform(rng, .45, .85)
        anchor = scene.spot(.4, .95)
        angle = uniform(rng, -3, 3)
        still = rng.random() < .3
        when = t[0] + scene.duration * uniform(rng, .1, .9)
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
        q = np.array([uniform(rng, 0, 1.5), uniform(rng, .3, 1)]) + np.stack([uniform(rng, -.06, .06) * (t - t[0]), .01 * np.sin(t * 2)], -1)
        q = np.concatenate([q, np.ones((len(t), 1))], -1)
        drawn = capsules(q, q + [uniform(rng, -.3, .3), uniform(rng, -.1, .1), 0], uniform(rng, .1, .3), uniform(rng, .1, .3), (0, 0, 0), alpha=uniform(rng, .1, .4), soft=uniform(rng, .02, .2), rounding=0)
        scene.things.append(Thing("shadow", drawn[:, None], np.full(len(t), 1e4), {"kind": "shadow"}))
    return dog


def optics(scene):
    """How the camera sees: light, drift, noise, weather, tremor, coding. Arrays have one number a frame."""
    rng, t, count = scene.rng, scene.times, len(scene.times)
    level = {"day": uniform(rng, .75, 1.2), "dusk": uniform(rng, .4, .75), "night": uniform(rng, .38, .7), "infrared": uniform(rng, .6, 1.1)}[scene.light]
    tint = {"day": (1, 1, 1), "dusk": (1.1, .92, .8), "night": (.85, .92, 1.1), "infrared": (1, 1, 1)}[scene.light]
    if scene.place == "room":
        level = max(level, .5)
    drift = 1 + uniform(rng, -.12, .12) * np.sin((t - t[0]) * uniform(rng, .02, .4) + uniform(rng, 0, 6)) + (uniform(rng, -.3, .3) * people.ease((t - t[0] - uniform(rng, 0, 10)) / uniform(rng, .5, 4)) if rng.random() < .2 else 0)
    grey = np.zeros(count)
    if scene.light == "infrared":
        grey[:] = 1
        if rng.random() < .25:
            grey = (t > t[0] + scene.duration * uniform(rng, .1, .9)).astype(float)
    gain = np.clip(level * drift, .1, 1.6)[:, None] * (np.array(tint) * (1 + rng.normal(0, .04, 3)))
    jitter = np.zeros((count, 2))
    if rng.random() < .2:
        a, b, c, d = rng.uniform(0, 6, 4)
        jitter = uniform(rng, .001, .008) * np.stack([np.sin(t * 7.1 + a) + np.sin(t * 2.3 + b), np.sin(t * 6.3 + c) + np.sin(t * 2.9 + d)], -1)
    lamps = np.zeros((3, 7), np.float32)  # u, v, radius, r, g, b of pools of light at night
    if scene.light == "night":
        for k in range(int(rng.integers(1, 4))):
            lamps[k] = (uniform(rng, 0, scene.camera.aspect), uniform(rng, .1, 1), uniform(rng, .3, .8), *(np.array([1, .85, .6]) * uniform(rng, .6, 1.8)), 0)
    dark = scene.light in ("night", "infrared")
    return dict(
        gain=gain.astype(np.float32), grey=grey.astype(np.float32), jitter=jitter.astype(np.float32), lamps=lamps,
        scalars=np.array([
            scene.camera.aspect, uniform(rng, 0, .05) if not dark else uniform(rng, .01, .08),  # noise of the sensor
            uniform(rng, .05, .5) if scene.weather == "rain" else 0, uniform(rng, .05, .5) if scene.weather == "snow" else 0,
            uniform(rng, 0, .25),  # vignette
            uniform(rng, .02, .16),  # contrast of the ground's texture
            pick(rng, (0, uniform(rng, .1, 1)), (.35, .65)),  # coding artefacts
            uniform(rng, 0, .08),  # black level
            uniform(rng, .8, 1.25),  # gamma
            uniform(rng, 0, 1) ** 2 * (1 if rng.random() < .5 else 0),  # blur of the lens
        ], np.float32),
    )


def tell(seed, times, fps, duration, wanted=None, aspects=None, attempt=0, near=False):
    """The scene of `seed` at `times`. `wanted`: an event that has to be tried. `aspects`: shapes of the picture to choose from. `near`: a room or a car park seen from close by."""
    rng = np.random.default_rng([seed, 4, attempt])
    scene = Scene(rng, times, fps, duration, aspects, near)
    total = scene.duration
    car_chance = {"street": .72, "car park": .62, "yard": .25, "room": 0.0}[scene.place]
    cars, persons = [], []
    if rng.random() < car_chance or wanted in ("stop", "slow"):
        if scene.place == "street":
            event = pick(rng, ("pass", "stop", "slow", "parked", "start"), (.24, .4, .17, .12, .07))
        else:
            event = pick(rng, ("pass", "slow", "parked", "start"), (.45, .1, .35, .1))
        if total < 4 and event in ("stop", "slow"):
            event = "pass"
        cars.append(add_car(scene, wanted if wanted in ("stop", "slow") else event))
        if rng.random() < .2:
            cars.append(add_car(scene, pick(rng, ("pass", "parked"))))
    person_chance = .72 if not cars else .55
    if rng.random() < person_chance or wanted in ("fall", "near", "bag", "bag near", "person"):
        event = pick(rng, PERSON_EVENTS, (.13, .06, .07, .25, .16, .2, .13))
        if total < 5 and event in ("bag", "bag near"):
            event = pick(rng, ("pass", "fall", "near"))
        persons.append(add_person(scene, wanted if wanted in ("fall", "near", "bag", "bag near") else event))
        if rng.random() < .22:
            persons.append(add_person(scene, pick(rng, ("pass", "stand", "arrive", "near"))))
            if len(cars) < 1 and rng.random() < .3:
                persons.append(add_person(scene, pick(rng, ("pass", "stand"))))
    for p in persons:
        if p["bag"] is not None:
            finish_bag(scene, p)
    zone = None
    if rng.random() < .5 or wanted == "zone":
        zone = add_zone(scene, persons[0] if persons else None, pick(rng, ("in", "near", "any"), (.58, .32, .1)))
    if len(scene.things) < 5:
        dog = add_distractors(scene)
    else:
        dog = False
    facts, events = judge(scene, persons, cars, zone, dog)
    moving = assemble(scene)
    still = rows(MAX_STILL)
    stage = np.stack([np.asarray(row, np.float32) for row in scene.still][:MAX_STILL])
    still[: len(stage)] = stage
    return Story(moving, still, optics(scene), facts, events)


def assemble(scene):
    """All primitives in the order of drawing: shadows, things from far to near, light, the marked zone."""
    count = len(scene.times)
    parts, keys = [], []
    budget = MAX_MOVING - (len(scene.zone["lines"]) if scene.zone else 0)
    for thing in scene.things:
        if sum(p.shape[1] for p in parts) + thing.rows.shape[1] > budget:
            # Too much for one picture: the thing is not drawn and must not be asked about.
            raise Crowded
        key = np.repeat(thing.depth[:, None], thing.rows.shape[1], axis=1).astype(np.float64)
        key[thing.rows[..., 16] < 0] = -1
        if thing.kind in ("person", "car"):
            first_is_shadow = thing.kind == "car" or thing.record.get("shade")
            if first_is_shadow:
                key[:, 0] = 1e5
        parts.append(thing.rows)
        keys.append(key)
    out = rows(count, MAX_MOVING)
    if parts:
        everything, key = np.concatenate(parts, axis=1), np.concatenate(keys, axis=1)
        order = np.argsort(-key, axis=1, kind="stable")
        everything = np.take_along_axis(everything, order[..., None], axis=1)
        out[:, : everything.shape[1]] = everything
    if scene.zone:
        used = sum(part.shape[1] for part in parts)
        out[:, used : used + len(scene.zone["lines"])] = scene.zone["lines"]
    return out


class Crowded(Exception):
    """A scene with more primitives than a picture may have."""


def shade_word(colour):
    return "light" if sum(COLOURS[colour]) > 1.35 else "dark"


def judge(scene, persons, cars, zone, dog):
    """What is true about the scene, from what its frames show."""
    t, step = scene.times, 1 / scene.fps
    need = 2
    grey = scene.light == "infrared"

    def name(colour):
        return shade_word(colour) if grey else colour

    def presence(records):
        seen = np.stack([r["thing"].seen for r in records]).any(0) if records else np.zeros(len(t), bool)
        touch = np.stack([r["thing"].touch for r in records]).any(0) if records else np.zeros(len(t), bool)
        return True if seen.sum() >= need else (None if touch.any() else False)

    rules = {"person": presence(persons), "car": presence(cars)}
    person_facts, unclear = [], False
    for p in persons:
        seen = p["thing"].seen
        if seen.sum() < need:
            unclear |= bool(p["thing"].touch.any())
            continue
        first, last = spans(seen, t, step)
        fact = dict(colour=name(p["colour"]), does=p["does"])
        fact.update({"from": first, "to": last})
        if p["falls"] is not None:
            fallen = seen & (t - t[0] >= p["falls"] + .9)
            upright = seen & (t - t[0] <= p["falls"] + .1)
            fact["fall clear"] = bool(fallen.sum() >= max(1, round(.8 * scene.fps)) and upright.any())
            if fact["fall clear"]:
                fact["falls"] = p["falls"]
        if zone is not None:
            margin = np.where(seen, inside(zone, p["feet"]), -9.0)
            within = margin > .12
            fact["margin"] = float(margin.max())
            if within.sum() >= need:
                fact["zone"] = list(spans(within, t, step))
        person_facts.append((fact, p))
    person_facts.sort(key=lambda pair: pair[0]["from"])
    facts_of = [f for f, _ in person_facts]
    # Falls: half-seen ones are not asked about.
    fall = False
    for f, p in person_facts:
        if p["falls"] is not None:
            fall = True if f.get("falls") is not None else (fall or None)
        elif p.get("posture") == "lie":
            fall = fall or None
    for p in persons:
        if p["falls"] is not None and p["thing"].touch.any() and not any(q is p for _, q in person_facts):
            fall = fall or None
    rules["fall"] = fall
    if zone is None:
        rules["zone"] = False
    else:
        best = [f["margin"] for f in facts_of]
        rules["zone"] = True if any("zone" in f for f in facts_of) else (False if not best or max(best) < -.25 else None)
        if rules["zone"] is False and unclear:
            rules["zone"] = None
    car_facts, unclear_car, stop = [], False, False
    for c in cars:
        seen = c["thing"].seen
        if seen.sum() < need:
            unclear_car |= bool(c["thing"].touch.any())
            if c["event"] == "stop" and c["thing"].touch.any():
                stop = stop or None
            continue
        first, last = spans(seen, t, step)
        fact = {"colour": name(c["colour"]), "does": c["does"], "from": first, "to": last}
        if c["event"] == "stop":
            still = seen & (c["pace"] < .05)
            moves = seen & (c["pace"] > .8)
            if still.sum() * step >= 1.4 and moves.any() and scene.place == "street":
                fact["stops"] = c["stops"]
                stop = True
            else:
                stop = stop or None
        car_facts.append(fact)
    car_facts.sort(key=lambda f: f["from"])
    rules["stop"] = stop
    bag_facts, left = [], False
    for f, p in [(f, p) for f, p in person_facts] + [({}, p) for p in persons if not any(q is p for _, q in person_facts)]:
        bag = p["bag"]
        if bag is None:
            continue
        seen = bag["thing"].seen
        if bag["kind"] == "left":
            distance = np.linalg.norm(p["feet"] - bag["position"], axis=1)
            alone = seen & bag["on_ground"] & ((distance > 1.8) | ~p["thing"].touch)
            with_owner = p["thing"].seen & (t <= bag["leave_time"]) if "leave_time" in bag else p["thing"].seen
            clear = alone.sum() * step >= .9 and (with_owner & ~alone).sum() >= 2
            left = True if clear else (left or None)
            if clear and f:
                bag_facts.append({"colour": name(bag["colour"]), "owner": f["colour"], "left": bag["down"] - t[0], "does": bag["does_bag"]})
        elif seen.sum() >= need and f:
            taken_seen = bag["kind"] in ("carried", "stays beside") or (p["thing"].seen & (t > bag["up"] + .3)).any()
            if not taken_seen or (bag["kind"] in ("taken again", "picked up") and not (seen & ~bag["on_ground"]).any()):
                left = left or None
            else:
                bag_facts.append({"colour": name(bag["colour"]), "owner": f["colour"], "does": bag["does_bag"]})
        elif bag["thing"].touch.any():
            left = left or None
    rules["bag"] = left
    dog_seen = None if dog is not False and dog.touch.any() and dog.seen.sum() < need else bool(dog is not False and dog.seen.sum() >= need)
    bags = [p["bag"]["thing"] for p in persons if p["bag"] is not None]
    luggage = True if any(b.seen.sum() >= need for b in bags) else (None if any(b.touch.any() for b in bags) else False)
    facts = dict(rules=rules, duration=scene.duration, place=scene.place, light=scene.light, weather=scene.weather, zone={"colour": scene.zone["colour"]} if scene.zone else None, dog=dog_seen, luggage=luggage,
                 persons=None if unclear or rules["person"] is None else facts_of, cars=None if unclear_car or rules["car"] is None else car_facts, bags=bag_facts)
    if rules["bag"] is None or rules["fall"] is None:
        # A sentence about the person might be wrong.
        facts["persons"] = None if facts["persons"] else facts["persons"]
    if rules["stop"] is None and facts["cars"]:
        facts["cars"] = None
    events = dict(place=scene.place, light=scene.light, weather=scene.weather, duration=scene.duration,
                  persons=[{k: v for k, v in dict(colour=p["colour"], does=p["does"], falls=p["falls"], bag=p["bag"]["does_bag"] if p["bag"] else None).items() if v is not None} for p in persons],
                  cars=[{k: v for k, v in dict(colour=c["colour"], does=c["does"], stops=c["stops"]).items() if v is not None} for c in cars])
    return facts, events


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
