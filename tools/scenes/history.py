#!/usr/bin/env python3
"""Writes scenes of an hour with sparse events, and questions about what was long ago, with their answers.

    tools/scenes/history.py --out build/history [--count 20] [--minutes 60] [--every 120] [--questions 20] [--rate 4] [--told]

One camera a scene, as in long.py, from seed 1,300,000 on, which nothing is trained on; every other one is a street,
light and weather are as the generator draws them. Every two minutes somebody or a car passes, bends down, takes a bag
along or slows down; now and then somebody falls or leaves a bag, or a car stops. Of each scene some kinds of events are
left out, so that there is something to ask about that did not happen though it might have. The last minute is always
quiet: nothing that is asked for can be seen in the last PRESENT seconds. OUT/SEED.json is written for all of them first: what long.py tells, and

    questions   `id`; `kind` ("whether", "when", "who"), `rule`, the `question` in words that the demo model was trained
                on, and for "when" and "who" the yes/no question (`gate`) that says whether there is anything to tell;
                `asked_at`, the second of the scene at which it is asked; `happened`; and `windows`: each time that it
                happened, `from` and `to` (the seconds that show it), `age` (seconds from `to` until it is asked) and
                `colours` (of the person or the car; for a bag that of its owner and its own)
    An answer to "when" is right if it lies within NEAR seconds of one of these, to "who" if it names its colours.

Then OUT/SEED.mp4, 384x216 in H.264, part by part: what is there is not drawn again, so that the program goes on where
it was stopped. With --told nothing is drawn. Needs torch and PyAV; on a GPU it is quicker.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

from scenes import coding, questions  # noqa: E402
from scenes.chance import pick  # noqa: E402
from scenes.judge import judge  # noqa: E402
from scenes.long import FPS, LongScene, span, stage_of  # noqa: E402

FIRST = 1_300_000
SIZE, CODEC, KBPS = (384, 216), "h264", 60
RATE = 4  # frames a second of the video: every second one is seen at 2 a second
PART = 300.0  # seconds that are drawn before they are kept
PRESENT = 40.0  # seconds that whoever asks can see
QUIET = 60.0
NEAR = 5.0
FEW = 4
# How often each kind of event happens beside the others; of the usual ones and of the rare ones a scene has some or none.
USUAL = {"street": (("pass",), ("car",), ("pass", "car")), "car park": (("pass",), ("car",), ("pass", "car")), "yard": (("pass",),), "room": (("pass",),)}
ALONGSIDE = {"pass": {"near": .3, "bag near": .2}, "car": {"slow": .4}}
RARE = {"pass": ("fall", "bag"), "car": ("stop",)}
RARELY = .15
PERSONS, CARS = {"pass", "fall", "near", "bag", "bag near"}, {"car", "slow", "stop"}
CAUSES = {"person": PERSONS, "zone": PERSONS, "fall": {"fall"}, "bag": {"bag"}, "car": CARS, "stop": {"stop"}}
# Of the wordings that are trained, those that can be asked about the past.
PAST = {
    "person": ("Was {x} there?", "Has {x} been seen {w}?", "Did {x} come into view?", "Is there {x} at any time?", "Does the video show {x}?"),
    "fall": ("Did somebody fall down?", "Has anyone fallen?", "Did a person fall over?", "Was there a fall?", "Did anyone collapse?"),
    "stop": ("Did a car stop?", "Has a vehicle come to a halt on the road?", "Did a vehicle stop on the road?", "Has a car stopped on the road?"),
    "bag": ("Did someone leave a bag behind?", "Has a bag been left?", "Was a bag abandoned?", "Was luggage left behind?"),
    "zone": ("Did anybody enter {zone}?", "Has someone walked into {zone}?", "Was there a person inside {zone}?"),
}
PAST["car"] = PAST["person"]
FREE = {("when", "person"): "When did the person arrive?", ("when", "car"): "When did the car arrive?", ("when", "fall"): "When did the person fall?",
        ("who", "person"): "What is the person wearing?", ("who", "car"): "What colour is the car?"}
EXPLAIN = {"when": (" Say what, where and when.", " Explain."), "who": (" Explain.", " Say what, where and when.")}


class History(LongScene):
    """A long scene of some kinds of events that ends quietly; the seed draws everything."""

    def __init__(self, seed, seconds, every, aspect):
        rng = np.random.default_rng([seed, 71])
        place = stage_of(np.random.default_rng([seed, 51]), seconds, aspect).place
        often = {}
        for usual in pick(rng, USUAL[place]):
            often |= {usual: 1.0} | ALONGSIDE[usual] | {rare: RARELY for rare in RARE[usual] if rng.random() < .75}
        super().__init__(seed, seconds, every, aspect, often)
        # One bag that stays is enough.
        bags = [episode for episode in self.episodes if episode[1] == "bag"][1:]
        self.episodes = [episode for episode in self.episodes if span(episode[0])[1] <= seconds - QUIET and episode not in bags]

    def happened(self):
        """For each rule the times that it happened, as `windows` in the JSON but for the age, from each event alone."""
        found = {rule: [] for rule in questions.RULES}
        for episode in self.episodes:
            first, last = span(episode[0])
            times = np.arange(max(0.0, first), min(last, self.seconds), 1 / FPS)
            facts, _ = judge(*self._at(times, FPS, [episode]), self.zone, False)

            def add(rule, begin, end, *colours):
                found[rule].append({"from": round(float(times[0] + begin), 1), "to": round(float(times[0] + end), 1), "colours": [c for c in colours if c]})

            for person in facts["persons"] or ():
                add("person", person["from"], person["to"], person["colour"])
                if person.get("zone"):
                    add("zone", *person["zone"], person["colour"])
                if person.get("falls") is not None:
                    add("fall", person["falls"] - 1, person["falls"] + 2, person["colour"])
            for car in facts["cars"] or ():
                add("car", car["from"], car["to"], car["colour"])
                if car.get("stops") is not None:
                    add("stop", car["stops"] - 2, car["stops"] + 2, car["colour"])
            for bag in facts["bags"] or ():
                if bag.get("left") is not None:
                    add("bag", bag["left"] - 2, bag["left"] + 4, bag["owner"], bag["colour"])
        return found

    def answers(self):
        """For each rule the times that it happened, whether it did (None where the hour does not say), and whether the present says nothing of it."""
        found, windows = self.happened(), self.windows(PRESENT, 8.0)
        now = self.facts(self.seconds - PRESENT + np.arange(round(PRESENT * FPS)) / FPS, FPS)["rules"]
        kinds = {kind for _, kind, _ in self.episodes}
        said = {}
        for rule in questions.RULES:
            ever = [window["rules"][rule] for window in windows]
            never = not kinds & CAUSES[rule] or all(answer is False for answer in ever)
            said[rule] = True if found[rule] and any(ever) else False if never else None
        return found, said, {rule: now[rule] is False for rule in questions.RULES}

    def questions(self, count):
        """`questions` in the JSON: a third about what did not happen, where there is as much to ask."""
        rng = np.random.default_rng([self.seed, 72])
        found, said, past = self.answers()
        facts = dict(place=self.stage.place, zone={"colour": self.stage.zone["colour"]} if self.stage.zone else None)
        # A bag that stands there still can be told of without looking back; when it came and whose it was cannot.
        yes = [(rule, kind) for rule in said for kind in ("whether", "when", "who") if said[rule] and (past[rule] or (rule == "bag" and kind != "whether"))]
        # What might have happened: no car was expected in a room.
        might = {"person", "fall", "bag"} | ({"zone"} if self.zone is not None else set()) | {"street": {"car", "stop"}, "car park": {"car"}}.get(self.stage.place, set())
        no = [(rule, kind) for rule in said for kind in ("whether", "when", "who") if said[rule] is False and rule in might]
        chosen = draw(rng, no, [1] * len(no), round(count / 3)) if no else []
        # What happens all the time is found anywhere, and asked about less.
        chosen += draw(rng, yes, [1 if len(found[rule]) <= FEW else .2 for rule, _ in yes], count - len(chosen)) if yes else []
        return [self._question(rng, f"{self.seed}-{number}", rule, kind, facts, found[rule] if said[rule] else []) for number, (rule, kind) in enumerate(chosen)]

    def _question(self, rng, name, rule, kind, facts, windows):
        gate = worded(rng, rule, facts)
        if kind == "whether":
            text = gate
        elif (kind, rule) in FREE and rng.random() < .5:
            text = FREE[kind, rule]
        else:
            text = gate + EXPLAIN[kind][int(rng.integers(2))]
        told = dict(id=name, kind=kind, rule=rule, question=text) | ({} if kind == "whether" else dict(gate=gate))
        return told | dict(asked_at=self.seconds, happened=bool(windows), windows=[dict(window, age=round(self.seconds - window["to"], 1)) for window in windows])

    def parts(self, folder, size, rate, kbps):
        """Draws the parts that are not in `folder` yet, and tells of each."""
        device, frames = "cuda" if torch.cuda.is_available() else "cpu", round(PART * rate)
        for number in range(int(np.ceil(self.seconds / PART))):
            path = folder / f"{number:03}.mp4"
            if not path.exists():
                begin = time.time()
                part = path.with_suffix(".part")
                coding.encode(self.pieces(size[1], size[0], device, rate, number * frames, (number + 1) * frames), str(part), CODEC, kbps, size, "veryfast", rate=rate)
                part.replace(path)
                print(f"{path}: {time.time() - begin:.0f} s", flush=True)
            yield path


def choose(count, seconds, every):
    """The scenes of the set: of the first seeds as many streets as other places, in turns."""
    aspect, seed, waiting = SIZE[0] / SIZE[1], FIRST, {True: [], False: []}
    for number in range(count):
        street = number % 2 == 1
        while not waiting[street]:
            waiting[stage_of(np.random.default_rng([seed, 51]), seconds, aspect).place == "street"].append(seed)
            seed += 1
        yield History(waiting[street].pop(0), seconds, every, aspect)


def draw(rng, things, weights, count):
    """`count` of the things, the weightier ones more often."""
    share = np.asarray(weights, float) / np.sum(weights)
    return [things[index] for index in rng.choice(len(things), count, p=share)]


def worded(rng, rule, facts):
    """A yes/no question about the past in words that were trained."""
    text = str(rng.choice(PAST[rule]))
    if rule in questions.THINGS:
        text = text.replace("{x}", str(rng.choice(questions.THINGS[rule])))
    word = str(rng.choice(questions.ZONE_WORDS)).replace("{c}", facts["zone"]["colour"] if facts["zone"] else "yellow")
    places = questions.PLACE_WORDS[facts["place"]]
    return " ".join(text.replace("{zone}", word).replace("{w}", str(rng.choice(places))).split()).replace(" ?", "?")


def write(scene, out, size=SIZE, rate=RATE, kbps=KBPS):
    """Draws the scene as the video `out`, going on where an earlier run was stopped."""
    folder = out.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    parts, part = list(scene.parts(folder, size, rate, kbps)), out.with_suffix(".part")
    coding.join(parts, str(part), PART)
    part.replace(out)
    for path in parts:
        path.unlink()
    folder.rmdir()


def table(records):
    """Markdown: what the set asks for."""
    lines = ["| scene | place | light | weather | events | " + " | ".join(questions.RULES) + " |", "|---" * (5 + len(questions.RULES)) + "|"]

    def line(name, some, *columns):
        asked = Counter((question["rule"], question["happened"]) for record in some for question in record["questions"])
        lines.append("| " + " | ".join([name, *columns, *(f"{asked[rule, True]} + {asked[rule, False]}" for rule in questions.RULES)]) + " |")

    for record in records:
        line(str(record["seed"]), [record], record["place"], record["light"], record["weather"], str(len(record["episodes"])))
    line(f"**all {len(records)}**", records, "", "", "", str(sum(len(record["episodes"]) for record in records)))
    kinds = Counter((question["kind"], question["happened"]) for record in records for question in record["questions"])
    lines.append("\n" + "; ".join(f"{kind}: {kinds[kind, True]} that happened + {kinds[kind, False]} that did not" for kind in ("whether", "when", "who")))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=120, help="seconds between two events, about")
    parser.add_argument("--questions", type=int, default=20, help="of each scene")
    parser.add_argument("--rate", type=int, default=RATE, help="frames a second of the videos")
    parser.add_argument("--kbps", type=int, default=KBPS)
    parser.add_argument("--told", action="store_true", help="write the JSON alone")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    scenes = list(choose(args.count, args.minutes * 60, args.every))
    records = []
    for scene in scenes:
        record = scene.record() | dict(size=SIZE, codec=CODEC, kbps=args.kbps, rate=args.rate, questions=scene.questions(args.questions))
        path, text = args.out / f"{scene.seed}.json", json.dumps(record, indent=1) + "\n"
        if path.exists() and path.read_text() != text and (path.with_suffix(".mp4").exists() or path.with_suffix("").exists()):
            raise SystemExit(f"history: {path} is of another set; another --out is needed")
        path.write_text(text)
        records.append(record)
    print(f"Questions about what happened + about what did not:\n\n{table(records)}\n", flush=True)
    for scene in scenes if not args.told else ():
        path = args.out / f"{scene.seed}.mp4"
        if not path.exists():
            write(scene, path, SIZE, args.rate, args.kbps)


if __name__ == "__main__":
    main()
