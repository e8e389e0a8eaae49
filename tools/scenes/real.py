"""Scenes from photographs (see bank.py): windows of the real clips' first halves, and collages of cut-outs over their empty frames."""

import io
import json
from pathlib import Path

import numpy as np

from . import cutouts, people, story
from .geometry import rows
from .chance import pick, shade_word, uniform
from .judge import spans
from .story import MAX_MOVING, MAX_STILL, Story

SPRITES = 3


class Bank:
    """The photographs' tables; the pictures themselves are decoded only where `pictures` is asked (the process that renders)."""

    def __init__(self, path, labels):
        self.path = Path(path)
        with np.load(path) as data:
            meta = json.loads(str(data["meta"]))
        self.frames, self.sprites, self.rates = meta["frames"], meta["sprites"], meta["rates"]
        self.labels = {clip: json.loads((Path(labels) / f"{clip}.json").read_text()) for clip in self.rates}
        self.index = {}
        for number, frame in enumerate(self.frames):
            self.index.setdefault((frame["clip"], frame["version"]), []).append(number)
        self.versions = sorted({frame["version"] for frame in self.frames})
        self.empty = {clip: [n for n, f in enumerate(self.frames) if f["clip"] == clip and not self._occupied(clip, f["time"], 0.8)] for clip in self.rates}
        self.cuts = {}
        for number, sprite in enumerate(self.sprites):
            if not sprite["touches"]:
                self.cuts.setdefault((sprite["kind"], sprite["who"]), []).append(number)
        self.entries = cutouts.entries(self.sprites)

    def _occupied(self, clip, time, margin):
        return any(e["from"] - margin <= time < e["to"] + margin for kind in ("person", "car", "partial_person") for e in self.labels[clip][kind])

    def pictures(self):
        """uint8 tensors: frames (M, 3, 256, 256) and cut-outs (K, 4, 192, 128)."""
        import torch
        from PIL import Image

        def decode(blob, sizes, mode):
            ends = np.cumsum(sizes)
            found = [np.asarray(Image.open(io.BytesIO(blob[end - size:end].tobytes())).convert(mode)) for size, end in zip(sizes, ends)]
            return torch.from_numpy(np.stack(found)).permute(0, 3, 1, 2).contiguous()

        with np.load(self.path) as data:
            return decode(data["frames"], data["frame_sizes"], "RGB"), decode(data["sprites"], data["sprite_sizes"], "RGBA")


def mild_optics(rng, times, aspect, strong):
    """How a camera like the real clips' sees; `strong` widens everything."""
    count, k = len(times), 2.0 if strong else 1.0
    gain = uniform(rng, 1 - .2 * k, 1 + .15 * k) * (1 + rng.normal(0, .03 * k, 3)) * np.ones((count, 1))
    if rng.random() < .25:
        gain = gain * (1 + uniform(rng, -.25, .25) * people.ease((times - times[0] - uniform(rng, 0, 5)) / uniform(rng, .5, 3)))[:, None]
    jitter = np.zeros((count, 2))
    if rng.random() < .12 * k:
        jitter = uniform(rng, .001, .01) * np.stack([np.sin(times * 7 + 1), np.sin(times * 6 + 2)], -1)
    grey = np.full(count, 1.0 if rng.random() < .07 * k else 0.0)
    scalars = np.array([aspect, uniform(rng, 0, .03 * k), 0, 0, uniform(rng, 0, .1 * k), 0, uniform(rng, .1, .7) if rng.random() < .5 else 0, uniform(rng, 0, .04 * k), uniform(rng, .85, 1.2), uniform(rng, 0, 1) ** 2], np.float32)
    return dict(gain=gain.astype(np.float32), grey=grey.astype(np.float32), jitter=jitter.astype(np.float32), lamps=np.zeros((3, 7), np.float32), scalars=scalars)


def blank(times):
    return rows(len(times), MAX_MOVING), rows(MAX_STILL)


def photo(count, plate=-1):
    """The part of a batch that concerns photographs, for a scene without any."""
    return dict(plate=np.full(count, plate, np.int64), crop=np.array([0, 0, 1, 1], np.float32), sprite=np.full((SPRITES, count, 8), -1, np.float32), tint=np.repeat(np.array([[1, 1, 1, 0, 0, 0]], np.float32), SPRITES, 0))


def choose_crop(rng, least):
    size = np.array([uniform(rng, least, 1), uniform(rng, least, 1)]) if rng.random() < .5 else np.ones(2)
    centre = rng.uniform(-1, 1, 2) * (1 - size)
    flip = -1 if rng.random() < .5 else 1
    return np.array([*centre, size[0] * flip, size[1]], np.float32)


def real_window(seed, bank, frames, fps):
    """A window of a real clip's first half with its hand labels."""
    rng = np.random.default_rng([seed, 9])
    clip = pick(rng, ("one-by-one-person-detection", "car-detection", "bottle-detection"), (.5, .35, .15))
    label, rate = bank.labels[clip], bank.rates[clip]
    number = bank.index[(clip, pick(rng, bank.versions, (.6, .2, .2)))]
    length = frames / fps
    last = len(number) / rate
    start = uniform(rng, -.3 * length, last - .7 * length) if length < last else 0.0
    times = start + np.arange(frames) / fps
    # Past either end the clip is played backwards: people then come in from the right and go out below, which is as true.
    bounced = np.abs(times)
    bounced = np.where(bounced > last - 1 / rate, 2 * (last - 1 / rate) - bounced, bounced)
    bounced = np.clip(np.abs(bounced), 0, last - 1 / rate)
    index = np.clip(np.round(bounced * rate).astype(int), 0, len(number) - 1)
    moving, still = blank(times)
    extra = photo(frames)
    extra["plate"] = np.array(number)[index]
    extra["crop"] = choose_crop(rng, .75 if clip != "car-detection" else .9)
    tight = min(abs(extra["crop"][2]), extra["crop"][3]) < .96
    shown = index / rate
    optics = mild_optics(rng, times, 16 / 9, False)
    grey = optics["grey"][0] > 0

    def within(entry, shrink):
        return (shown >= entry["from"] + shrink) & (shown < entry["to"] - shrink)

    def records(kind, describe):
        found, unclear, seen_all, touch_all = [], False, np.zeros(frames, bool), np.zeros(frames, bool)
        for entry in label[kind]:
            touch = within(entry, -.15)
            seen = within(entry, .25 if not tight else .5)
            if "stands" in entry and tight:
                seen &= (shown > entry["stands"][0] - .3) & (shown < entry["stands"][1] + .3)
            seen_all |= seen
            touch_all |= touch
            if seen.sum() < 2:
                unclear |= bool(touch.any())
                continue
            first, until = spans(seen, times, 1 / fps)
            found.append({"colour": shade_word(entry["colour"]) if grey else entry["colour"], "does": describe(entry, times, shown, seen), "from": first, "to": until})
        answer = True if seen_all.sum() >= 2 else (None if touch_all.any() else False)
        return answer, None if unclear or answer is None else sorted(found, key=lambda f: f["from"])

    bounces = bool((np.diff(bounced) < 0).any())
    person, persons = records("person", _person_does)
    if any(within(e, -.3).any() for e in label["partial_person"]):
        person, persons = None, None
    car, cars = records("car", lambda entry, t, s, seen: ("drives away" if entry["enters"] == "bottom" else "comes closer"))
    if bounces:
        persons, cars = persons if not persons else None, cars if not cars else None
    facts = dict(rules=dict(person=person, car=car, zone=False, fall=False, stop=False, bag=False if person is not None else None), duration=length, place="car park" if clip == "car-detection" else "room", light="infrared" if grey else "day",
                 weather="dry", zone=None, dog=False, luggage=None if person is not False else False, persons=persons, cars=cars, bags=[])
    out = Story(moving, still, optics, facts, {"clip": clip, "start": start})
    out.photo = extra
    return out


def _person_does(entry, times, shown, seen):
    stands = (shown >= entry["stands"][0]) & (shown <= entry["stands"][1])
    comes = bool((seen & (shown < entry["stands"][0] - .3)).any())
    goes = bool((seen & (shown > entry["stands"][1] + .3)).any())
    if comes and goes:
        return "walks in, stops and walks away"
    if comes:
        return "walks in and stops" if stands.sum() >= 2 else "walks away"
    if goes:
        return "stands and then walks away" if stands.sum() >= 2 else "walks away"
    return "stands still"


def over_plate(seed, bank, frames, fps, wanted=None, aspects=None):
    """A drawn scene's persons and cars over an empty photograph."""
    rng = np.random.default_rng([seed, 10])
    near = rng.random() < .6
    made = story.scene_story(seed, frames, fps, wanted, aspects, near=near)
    clip = pick(rng, list(bank.rates), ((.4, .4, .2) if not near else (.5, .1, .4) if made.facts["place"] == "room" else (.15, .75, .1)))
    extra = photo(frames)
    extra["plate"] = plate_run(rng, bank, clip, frames)
    extra["crop"] = choose_crop(rng, .45)
    made.still = rows(MAX_STILL)
    dark = made.facts["light"]
    optics = mild_optics(rng, np.arange(frames) / fps, made.optics["scalars"][0], True)
    if dark in ("night", "infrared"):
        # Night over a photograph taken by day would not look like night: keep its darkness but not its lamps.
        optics["gain"] *= uniform(rng, .35, .8)
        optics["grey"] = made.optics["grey"]
    elif optics["grey"][0] > 0:
        optics["grey"] *= 0
    optics["scalars"][2:4] = made.optics["scalars"][2:4]
    made.optics = optics
    made.facts["place"] = "car park" if clip == "car-detection" else "room"
    made.photo = extra
    return made


def plate_run(rng, bank, clip, frames):
    """Empty frames for a scene: mostly one all the time, at times different ones, so that the codec's noise moves."""
    if rng.random() < .5:
        return np.full(frames, pick(rng, bank.empty[clip]))
    first = int(rng.integers(len(bank.empty[clip])))
    near = [n for n in bank.empty[clip][first:first + 12] if bank.frames[n]["version"] == bank.frames[bank.empty[clip][first]]["version"]]
    return np.array([pick(rng, near) for _ in range(frames)])


def collage(seed, bank, frames, fps):
    """Cut-outs of persons and cars that move over an empty photograph."""
    rng = np.random.default_rng([seed, 11])
    times = np.arange(frames) / fps
    total = frames / fps
    clip = pick(rng, list(bank.rates), (.45, .4, .15))
    moving, still = blank(times)
    extra = photo(frames)
    extra["plate"] = plate_run(rng, bank, clip, frames)
    extra["crop"] = choose_crop(rng, .6)
    optics = mild_optics(rng, times, 16 / 9, True)
    grey = optics["grey"][0] > 0
    wanted = [kind for kind, chance in (("person", .45 if clip != "car-detection" else .3), ("car", .3 if clip != "car-detection" else .5)) for _ in range(1) if rng.random() < chance]
    if not wanted and rng.random() < .5:
        wanted = [pick(rng, ("person", "car"), (.6, .4))]
    if wanted and rng.random() < .2:
        wanted.append(pick(rng, wanted))
    facts_of, seen_of, touch_of, unclear = {"person": [], "car": []}, {}, {}, {"person": False, "car": False}
    for kind in ("person", "car"):
        seen_of[kind], touch_of[kind] = np.zeros(frames, bool), np.zeros(frames, bool)
    for slot, kind in enumerate(wanted[:SPRITES]):
        if bank.entries.get(kind) and rng.random() < .5:
            track = cutouts.coming_in(rng, bank.sprites, pick(rng, bank.entries[kind]), times)
        else:
            track = cutouts.across(rng, bank.sprites, bank.cuts[pick(rng, [k for k in bank.cuts if k[0] == kind])], kind, times)
        brightness, extra["tint"][slot], below, recoloured = cutouts.colours(rng, kind, track)
        extra["sprite"][slot] = np.stack([track.index, *track.where.T, *(track.size / 2 * track.flip).T, np.ones(frames), brightness, below], -1)
        seen_of[kind] |= track.seen
        touch_of[kind] |= track.touch
        if track.seen.sum() < 2:
            unclear[kind] |= bool(track.touch.any())
            continue
        begin, end = spans(track.seen, times, 1 / fps)
        colour = bank.sprites[int(track.index.max())]["colour"]
        facts_of[kind].append({"colour": None if recoloured else (shade_word(colour) if grey else colour), "from": begin, "to": end, "does": track.does})
    answer = {kind: True if seen_of[kind].sum() >= 2 else (None if touch_of[kind].any() else False) for kind in facts_of}

    def clear(kind):
        found = facts_of[kind]
        if unclear[kind] or answer[kind] is None or any(f["colour"] is None or f["does"] in (None, "walks", "drives") for f in found):
            return None
        return sorted(found, key=lambda f: f["from"])

    facts = dict(rules=dict(person=answer["person"], car=answer["car"], zone=False, fall=False if answer["person"] is not None else None, stop=None if answer["car"] else False, bag=False),
                 duration=total, place="car park" if clip == "car-detection" else "room", light="infrared" if grey else "day", weather="dry", zone=None, dog=False, luggage=None if answer["person"] else False,
                 persons=clear("person"), cars=clear("car"), bags=[])
    out = Story(moving, still, optics, facts, {"collage": [k for k in wanted]})
    out.photo = extra
    return out


MIX = (.68, .14, .09, .09)  # drawn, over, collage, real


def draw(seed, frames, fps, bank=None, wanted=None, aspects=None, mix=MIX):
    """The scene that training sees under `seed`: drawn, over a photograph, a collage or a real window."""
    rng = np.random.default_rng([seed, 12])
    kind = pick(rng, ("drawn", "over", "collage", "real"), mix) if bank is not None else "drawn"
    if kind == "drawn":
        made = story.scene_story(seed, frames, fps, wanted, aspects)
        made.photo = photo(frames)
    elif kind == "over":
        made = over_plate(seed, bank, frames, fps, wanted, aspects)
    else:
        made = (collage if kind == "collage" else real_window)(seed, bank, frames, fps)
    made.kind = kind
    return made
