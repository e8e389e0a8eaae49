"""Where a scene takes place: the fixed camera, its place and light, what stands about, and what of a thing can be seen."""

from dataclasses import dataclass

import numpy as np

from . import vehicles
from .chance import pick, uniform
from .geometry import Camera, capsules, quads


@dataclass
class Thing:
    kind: str
    rows: np.ndarray
    depth: np.ndarray
    record: dict
    seen: np.ndarray = None  # enough of it is in the picture to be recognised
    touch: np.ndarray = None  # any of it may be in the picture
    box: np.ndarray = None  # (T, 4) what it may hide: least and greatest u and v


PLACES = ("street", "yard", "room", "car park")
# Where the matter that a scene is about mostly takes place; "any": nothing in particular.
PLACES_OF = {"any": (.48, .16, .2, .16), "fall": (.25, .2, .35, .2), "bag": (.25, .2, .3, .25), "zone": (.28, .24, .24, .24), "stop": (1, 0, 0, 0)}


class Scene:
    """The stage: place, camera, light. `theme` (see PLACES_OF) chooses the place and how close the camera is; persons.py, cars.py and others add things.

    What happens, happens between `start` and `start + duration` seconds; `times` are the moments at which it is looked at.
    """

    def __init__(self, rng, times, fps, duration, aspects=None, near=False, theme="any"):
        self.rng, self.times, self.fps = rng, np.asarray(times, np.float64), fps
        self.start, self.duration = 0.0, duration
        self.place = pick(rng, PLACES, PLACES_OF[theme])
        if near:
            self.place = pick(rng, ("room", "car park"), (.65, .35))
        self.light = pick(rng, ("day", "dusk", "night", "infrared"), (.58, .14, .16, .12))
        self.weather = pick(rng, ("dry", "rain", "snow"), (.76, .14, .1)) if self.place != "room" else "dry"
        aspect = pick(rng, aspects) if aspects else pick(rng, (16 / 9, 4 / 3, 1.0, 1.5), (.55, .2, .1, .15))
        steep = rng.random() < (.3 if self.place != "room" else .12)
        pitch = np.radians(uniform(rng, 48, 86) if steep else uniform(rng, 11, 42))
        focal = uniform(rng, .75, 1.7)
        # How large things are in the middle of the picture: a person 0.17 to 0.75 of its height in rooms and yards, a car 0.3 to 0.95 of it on streets.
        if theme in ("fall", "bag", "zone"):
            reach = focal * 1.7 / np.exp(uniform(rng, np.log(.22), np.log(.75)))
        elif self.place in ("street", "car park"):
            reach = focal * 4.4 / (uniform(rng, .3, .95) if not near else uniform(rng, .5, 1.2))
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

    def spot(self, low=.3, high=1.0, inset=.12, tries=20, tall=0.0, least=0.0):
        """A ground point in view; what stands on it and is `tall` metres high mostly is too, and a person there is at least `least` of the picture's height."""
        a = self.camera.aspect
        for _ in range(tries):
            v = uniform(self.rng, max(low, self.camera.horizon + .12), high)
            p = self.camera.ground(uniform(self.rng, inset, 1 - inset) * a, v)
            if p is not None and p[1] < self.limit and np.hypot(*p) < 45:
                if least and 1.7 * self.camera.project(np.array([[p[0], 0, p[1]]]))[0, 2] < least:
                    continue
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


def scene_margin(scene, points, margin):
    a = scene.camera.aspect
    return ((points[..., 0] > -margin) & (points[..., 0] < a + margin) & (points[..., 1] > -margin) & (points[..., 1] < 1 + margin) & (points[..., 2] > 0)).any(axis=1)
