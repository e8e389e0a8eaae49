"""What is true about a scene, from what its frames show. Where a careful person would not decide, the answer is None.

Sizes and distances are shares of the picture's height, so that what is asked about can be seen at 168 lines: a fall of a person of 0.12 or more, a bag of 0.03 or more, feet
0.02 inside a zone's outline or 0.035 outside of it.
"""

import numpy as np

from .chance import shade_word
from .zones import inside

NEED = 2  # frames in which a thing has to be seen
FALL_SIZE, BAG_SIZE = .12, .03
INSIDE, OUTSIDE = .02, -.035


def spans(flags, times, step):
    """First and last moment at which `flags` hold, in seconds from the first frame."""
    index = np.flatnonzero(flags)
    return float(times[index[0]] - times[0]), float(times[index[-1]] - times[0] + step)


def presence(records, count):
    seen = np.stack([r["thing"].seen for r in records]).any(0) if records else np.zeros(count, bool)
    touch = np.stack([r["thing"].touch for r in records]).any(0) if records else np.zeros(count, bool)
    return True if seen.sum() >= NEED else (None if touch.any() else False)


def hide(thing, place, cars):
    """A thing is not seen where a nearer car is before its `place` (T, 2) in the picture."""
    for c in cars:
        box, nearer = c["thing"].box, c["thing"].depth < thing.depth - .3
        inside_box = (place[:, 0] > box[:, 0]) & (place[:, 0] < box[:, 1]) & (place[:, 1] > box[:, 2]) & (place[:, 1] < box[:, 3])
        thing.seen = thing.seen & ~(nearer & inside_box)


def person_fact(scene, p, zone, name):
    """What is told about a person who is seen; (whether they fell: True, False or None, whether they were inside the zone: likewise)."""
    t, seen, step = scene.times, p["thing"].seen, 1 / scene.fps
    first, last = spans(seen, t, step)
    fact = {"colour": name(p["colour"]), "does": p["does"], "from": first, "to": last}
    fall = False
    if p["falls"] is not None:
        fallen = seen & (t >= p["falls"] + .9)
        upright = seen & (t <= p["falls"] + .1)
        large = fallen.any() and np.median(p["size"][fallen]) >= FALL_SIZE
        fall = True if fallen.sum() >= max(1, round(.8 * scene.fps)) and upright.any() and large else (None if p["thing"].touch[t > p["falls"]].any() else False)
        if fall:
            fact["falls"] = float(p["falls"] - t[0])
    within = False
    if zone is not None:
        steps = p["steps"]
        shown = (steps[:, 0] > -.02) & (steps[:, 0] < scene.camera.aspect + .02) & (steps[:, 1] > -.02) & (steps[:, 1] < 1.02)
        margin = inside(zone, steps)
        clear = seen & shown & (margin > INSIDE)
        if clear.sum() >= NEED:
            within = True
            fact["zone"] = list(spans(clear, t, step))
        elif (p["thing"].touch & (margin > OUTSIDE)).any():
            within = None
        fact["near"] = bool((seen & (margin > -.25)).any())
    return fact, fall, within


def car_fact(scene, c, name):
    """What is told about a car that is seen, and whether it stopped: True, False or None."""
    t, seen, step = scene.times, c["thing"].seen, 1 / scene.fps
    first, last = spans(seen, t, step)
    fact, stop = {"colour": name(c["colour"]), "does": c["does"], "from": first, "to": last}, False
    if c["event"] == "stop":
        still, moves = seen & (c["pace"] < .05), seen & (c["pace"] > .8)
        # A window that begins after the car has come to a stand shows how it stands, and may show how it drives on.
        stop = True if still.sum() * step >= 1.4 and moves.any() and scene.place == "street" and c["stops"] >= t[0] else None
        if stop:
            fact["stops"] = float(c["stops"] - t[0])
    return fact, stop


def bag_fact(scene, p, fact, name):
    """What is told about a person's bag (None: nothing for sure), and whether it was left: True, False or None."""
    t, step, bag = scene.times, 1 / scene.fps, p["bag"]
    seen = bag["thing"].seen
    told = {"colour": name(bag["colour"]), "owner": fact.get("colour"), "does": bag["does_bag"]}
    if bag["kind"] == "left":
        distance = np.linalg.norm(p["feet"] - bag["position"], axis=1)
        alone = seen & bag["on_ground"] & ((distance > 1.8) | ~p["thing"].touch) & (bag["tall"] >= BAG_SIZE)
        if alone.sum() * step >= .9 and (p["thing"].seen & ~alone & (t < bag["down"] + 2)).sum() >= NEED:
            told["left"] = float(bag["down"] - t[0])
            return (told if fact else None), True
        return None, None if bag["thing"].touch.any() else False
    if seen.sum() >= NEED and fact:
        taken_seen = bag["kind"] in ("carried", "stays beside") or (p["thing"].seen & (t > bag["up"] + .3)).any()
        if not taken_seen or (bag["kind"] in ("taken again", "picked up") and not (seen & ~bag["on_ground"]).any()):
            return None, None
        return told, False
    return None, None if bag["thing"].touch.any() else False


def either(answers):
    """Yes if one is, undecided if one may be."""
    return True if any(a is True for a in answers) else (None if any(a is None for a in answers) else False)


def judge(scene, persons, cars, zone, dog):
    """The facts (see questions.py) and the events of a scene."""
    t = scene.times

    def name(colour):
        return shade_word(colour) if scene.light == "infrared" else colour

    for p in persons:
        hide(p["thing"], p["place"], cars)
        if p["bag"] is not None:
            hide(p["bag"]["thing"], p["bag"]["place"], cars)
    rules = {"person": presence(persons, len(t)), "car": presence(cars, len(t))}
    told, falls, zones, unclear = [], [], [], False
    for p in persons:
        if p["thing"].seen.sum() < NEED:
            touch = bool(p["thing"].touch.any())
            unclear |= touch
            falls.append(None if p["falls"] is not None and touch else False)
            zones.append(None if zone is not None and touch else False)
            continue
        fact, fall, within = person_fact(scene, p, zone, name)
        told.append((fact, p))
        falls.append(fall)
        zones.append(within)
    told.sort(key=lambda pair: pair[0]["from"])
    rules["fall"], rules["zone"] = either(falls), either(zones)
    car_facts, stops, unclear_car = [], [], False
    for c in cars:
        if c["thing"].seen.sum() < NEED:
            unclear_car |= bool(c["thing"].touch.any())
            stops.append(None if c["event"] == "stop" and c["thing"].touch.any() else False)
            continue
        fact, stop = car_fact(scene, c, name)
        car_facts.append(fact)
        stops.append(stop)
    car_facts.sort(key=lambda f: f["from"])
    rules["stop"] = either(stops)
    facts_of = {id(p): f for f, p in told}
    bag_told = [bag_fact(scene, p, facts_of.get(id(p), {}), name) for p in [p for _, p in told] + [p for p in persons if id(p) not in facts_of] if p["bag"] is not None]
    rules["bag"] = either([left for _, left in bag_told])
    bags = [p["bag"]["thing"] for p in persons if p["bag"] is not None]
    dog_seen = None if dog is not False and dog.touch.any() and dog.seen.sum() < NEED else bool(dog is not False and dog.seen.sum() >= NEED)
    luggage = True if any(b.seen.sum() >= NEED for b in bags) else (None if any(b.touch.any() for b in bags) else False)
    facts = dict(rules=rules, duration=scene.duration, place=scene.place, light=scene.light, weather=scene.weather, zone={"colour": scene.zone["colour"]} if scene.zone else None, dog=dog_seen, luggage=luggage,
                 persons=None if unclear or rules["person"] is None else [f for f, _ in told], cars=None if unclear_car or rules["car"] is None else car_facts, bags=[f for f, _ in bag_told if f])
    if rules["bag"] is None or rules["fall"] is None:
        # A sentence about the person might be wrong.
        facts["persons"] = None if facts["persons"] else facts["persons"]
    if rules["stop"] is None and facts["cars"]:
        facts["cars"] = None
    return facts, events_of(scene, persons, cars)


def events_of(scene, persons, cars):
    def plain(record):
        return {key: float(value) if isinstance(value, np.floating) else value for key, value in record.items() if value is not None}

    return dict(place=scene.place, light=scene.light, weather=scene.weather, duration=scene.duration,
                persons=[plain(dict(colour=p["colour"], does=p["does"], falls=p["falls"], bag=p["bag"]["does_bag"] if p["bag"] else None)) for p in persons],
                cars=[plain(dict(colour=c["colour"], does=c["does"], stops=c["stops"])) for c in cars])
