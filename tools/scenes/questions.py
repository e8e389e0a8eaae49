"""Questions about a scene, with many wordings, and their answers, from the scene's facts alone.

`facts` is a dict (see story.py and real.py):
  rules     answer of each rule: True, False, or None where a careful person would not decide
  duration  seconds of the window
  place     "street", "yard", "room" or "car park";  light  "day", "dusk", "night" or "infrared";  weather  "dry", "rain" or "snow"
  zone      None or {"colour"};  dog, luggage  whether there is one: True, False or None
  persons, cars, bags   one dict for each that is seen, in the order of their first sight (None where it is not known)
Times are in seconds since the window's first frame.
"""

RULES = ("person", "car", "zone", "fall", "stop", "bag")

PLACE_WORDS = {
    "street": ("on the street", "on the road", "outside", "in the street"),
    "yard": ("in the yard", "outside", "on the premises", "in the courtyard"),
    "room": ("in the room", "inside", "indoors", "at the table"),
    "car park": ("in the car park", "in the parking lot", "on the asphalt", "outside"),
}
ANYWHERE = ("in the picture", "in view", "in the video", "in the scene", "here", "on camera", "in these frames", "in this clip", "")

# What may be put into the wordings about presence: the thing asked for decides, not the wording.
THINGS = {
    "person": ("a person", "a human", "somebody", "someone", "anyone", "anybody", "a man or a woman", "a pedestrian"),
    "car": ("a car", "a vehicle", "an automobile", "any car", "any vehicle"),
    "dog": ("a dog", "an animal", "any animal"),
    "luggage": ("a bag", "a suitcase or bag", "any bag"),
    "absent": ("a train", "a boat", "an aeroplane", "a horse", "an elephant"),
}
PRESENCE = (
    "Is there {x} {w}?", "Is {x} present {w}?", "Is {x} present?", "Can you see {x} {w}?", "Do you see {x}?", "Does the video show {x}?",
    "Is {x} visible {w}?", "{x} present", "{x} is present", "{x} {w}", "Does {x} appear {w}?", "Is {x} to be seen?", "Has {x} been seen {w}?",
    "Do the frames show {x}?", "Yes or no: is there {x} {w}?", "Is there {x} at any time?", "Did {x} come into view?", "Was {x} there?",
    "Is there {x}? Answer yes or no.", "Check whether {x} is present.", "Alert me if there is {x} {w}.", "Tell me if {x} is {w2}.",
)
PLURALS = {
    "person": ("Are there any people {w}?", "Are there people?", "Is the {p} empty of people?!", "Is nobody there?!", "Any people {w}?"),
    "car": ("Are there any cars {w}?", "Are there cars?", "Any vehicles {w}?", "Is the {p} free of cars?!"),
}
# "{zone}" is exchanged for wordings of the zone. A trailing "!" marks a question whose answer is turned round.
RULE_WORDINGS = {
    "zone": (
        "Is a person inside {zone}?", "Is there a person in {zone}?", "Is someone inside {zone}?", "a person inside {zone}", "Did anybody enter {zone}?",
        "Does a person step into {zone}?", "Has someone walked into {zone}?", "Is anyone standing in {zone}?", "A person is in {zone}.",
        "Was there a person inside {zone}?", "Is {zone} occupied by a person?", "Does somebody go into {zone}?", "Is {zone} empty of people?!",
        "person inside {zone}", "Is somebody within {zone}?",
    ),
    "fall": (
        "Does a person fall?", "Did somebody fall down?", "Has anyone fallen?", "a person falls", "Is a person falling to the ground?", "Did a person fall over?",
        "Does someone fall {w}?", "A person falls down.", "Was there a fall?", "Did anyone collapse?", "Does somebody fall to the floor?", "Is there a fall?",
        "Has a person fallen {w}?", "person falls", "Did the person fall?",
    ),
    "stop": (
        "Does a car stop on the road?", "Did a car stop?", "Has a vehicle come to a halt on the road?", "a car stops on the road", "Does a car come to a standstill?",
        "Did a vehicle stop on the road?", "Is there a car that stops?", "A car stops on the road.", "Does any car stop in the street?", "Has a car stopped on the road?",
        "Does a vehicle halt?", "Did any car halt on the road?", "car stops on the road",
    ),
    "bag": (
        "Is a bag left behind?", "Did someone leave a bag behind?", "Has a bag been left?", "a bag is left behind", "Was a bag abandoned?", "Does a person leave a bag?",
        "Is there an abandoned bag?", "Did a person walk away without the bag?", "A bag is left behind.", "Is a bag left unattended?", "Has somebody left a bag {w}?",
        "Does somebody leave luggage behind?", "bag left behind", "Was luggage left behind?",
    ),
}
ZONE_WORDS = ("the marked zone", "the zone", "the marked area", "the {c} zone", "the outlined area", "the {c} outline", "the marked region")
EXPLAIN = (" Explain.", " and explain", " Explain why.", " Why?", " Give a reason.", " Explain your answer.", " Describe what you see.", " Say what, where and when.", " Explain briefly.")

NUMBERS = ("no", "one", "two", "three", "four", "five", "six")


def seconds(value):
    return str(max(0, int(round(value))))


def at(value):
    return f"at second {seconds(value)}"


def from_to(start, end):
    return f"from second {seconds(start)} to second {seconds(end)}"


def _choice(rng, items):
    return items[int(rng.integers(len(items)))]


def _place(rng, facts):
    words = PLACE_WORDS[facts["place"]] if rng.random() < 0.5 else ANYWHERE
    return _choice(rng, words)


def _tidy(text):
    text = " ".join(text.split())
    return text.replace(" ?", "?").replace(" .", ".")


def _vary(rng, text):
    """Small and capital first letters, and a missing mark at the end, are all asked."""
    draw = rng.random()
    if draw < 0.08:
        return text.rstrip("?.") if text[-1] in "?." else text
    if draw < 0.14:
        return text[0].lower() + text[1:]
    if draw < 0.2:
        return text[0].upper() + text[1:]
    return text


def describe_person(p):
    return f"A person in {p['colour']} {p['does']} {from_to(p['from'], p['to'])}."


def describe_car(c):
    return f"A {c['colour']} car {c['does']} {from_to(c['from'], c['to'])}."


def reason(rule, facts, answer):
    """The sentence that follows "Yes." or "No."."""
    persons, cars, bags = facts["persons"] or [], facts["cars"] or [], facts["bags"] or []
    if rule == "person":
        if not answer:
            return "Nobody is in view."
        if len(persons) > 1:
            return f"{NUMBERS[len(persons)].capitalize()} people are in view, the first in {persons[0]['colour']} {at(persons[0]['from'])}."
        return describe_person(persons[0])
    if rule == "car":
        if not answer:
            return "No car is in view."
        if len(cars) > 1:
            return f"{NUMBERS[len(cars)].capitalize()} cars are in view, the first is {cars[0]['colour']} {at(cars[0]['from'])}."
        return describe_car(cars[0])
    if rule == "zone":
        inside = next((p for p in persons if p.get("zone")), None)
        if answer and inside:
            return f"A person in {inside['colour']} is inside the {facts['zone']['colour']} zone {from_to(*inside['zone'])}."
        if not facts["zone"]:
            return "No zone is marked."
        return "Nobody is inside the zone." if not persons else f"The person in {persons[0]['colour']} stays outside the zone."
    if rule == "fall":
        fallen = next((p for p in persons if p.get("falls") is not None), None)
        if answer and fallen:
            return f"A person in {fallen['colour']} falls to the ground {at(fallen['falls'])}."
        return "Nobody is in view." if not persons else f"The person in {persons[0]['colour']} {persons[0]['does']}."
    if rule == "stop":
        stopped = next((c for c in cars if c.get("stops") is not None), None)
        if answer and stopped:
            return f"A {stopped['colour']} car stops on the road {at(stopped['stops'])}."
        return "No car is in view." if not cars else f"The {cars[0]['colour']} car {cars[0]['does']}."
    bag = bags[0] if bags else None
    if answer and bag:
        return f"A person in {bag['owner']} leaves a {bag['colour']} bag behind {at(bag['left'])}."
    return "There is no bag." if not bag else f"The {bag['colour']} bag {bag['does']}."


def rule_question(rng, rule, facts):
    """A wording of the rule's question and whether its answer is turned round."""
    if rule in THINGS:
        if rule in PLURALS and rng.random() < 0.2:
            text = _choice(rng, PLURALS[rule])
            text = text.replace("{p}", {"street": "road", "room": "room", "yard": "yard", "car park": "car park"}[facts["place"]])
        else:
            text = _choice(rng, PRESENCE).replace("{x}", _choice(rng, THINGS[rule]))
        text = text.replace("{w2}", _choice(rng, ("in view", "here", "visible"))).replace("{w}", _place(rng, facts))
    else:
        text = _choice(rng, RULE_WORDINGS[rule]).replace("{w}", _place(rng, facts))
        if "{zone}" in text:
            word = _choice(rng, ZONE_WORDS)
            text = text.replace("{zone}", word.replace("{c}", facts["zone"]["colour"] if facts["zone"] else _choice(rng, ("yellow", "red"))))
    turned = text.endswith("!")
    return _vary(rng, _tidy(text.rstrip("!"))), turned


def yes_no(rng, rule, answer, facts, explain):
    text, turned = rule_question(rng, rule, facts)
    if explain:
        text = (text.rstrip("?.") if text[-1] in "?." else text) + " and explain" if (tail := _choice(rng, EXPLAIN)) == " and explain" else text + tail
    said = "Yes" if answer != turned else "No"
    return text, f"{said}. {reason(rule, facts, answer)}" if explain else said


def free_questions(rng, facts):
    """Questions that ask for a short sentence, with their answers."""
    found = []
    persons, cars, bags = facts["persons"], facts["cars"], facts["bags"]

    def add(questions, answer):
        found.append((_choice(rng, questions), answer))

    if persons is not None:
        n = len(persons)
        add(("How many people are there?", "How many persons do you see?", "Count the people.", "How many people are in view?"),
            "There is one person." if n == 1 else f"There are {NUMBERS[n]} people.")
        if n == 1:
            p = persons[0]
            add(("What is the person doing?", "What does the person do?", "Describe the person's action."), f"The person {p['does']}.")
            add(("What is the person wearing?", "What colour are the person's clothes?", "Describe the person."), f"The person is in {p['colour']}.")
            if p["from"] > 0.6:
                add(("When did the person arrive?", "When does the person appear?", "When did somebody come?"), f"The person arrived {at(p['from'])}.")
            if p.get("falls") is not None:
                add(("When did the person fall?", "When does the fall happen?"), f"The person fell {at(p['falls'])}.")
    if cars is not None:
        n = len(cars)
        add(("How many cars are there?", "How many vehicles do you see?", "Count the cars."), "There is one car." if n == 1 else f"There are {NUMBERS[n]} cars.")
        if n == 1:
            c = cars[0]
            add(("What is the car doing?", "What does the car do?"), f"The car {c['does']}.")
            add(("What colour is the car?", "Which colour has the car?"), f"The car is {c['colour']}.")
            if c["from"] > 0.6:
                add(("When did the car arrive?", "When does the car appear?", "When did the vehicle come?"), f"The car arrived {at(c['from'])}.")
    if persons is not None and cars is not None:
        parts = [describe_person(p) for p in persons[:1]] + [describe_car(c) for c in cars[:1]] or ["Nothing happens."]
        add(("What happens?", "Describe the video.", "What can you see?", "What is going on?", "Describe the scene."), " ".join(parts))
    if bags and persons is not None:
        add(("What happens to the bag?", "What about the bag?"), f"The {bags[0]['colour']} bag {bags[0]['does']}.")
    return found


def all_answers(facts):
    """Each yes/no matter that can be asked about the scene, with its answer."""
    known = {rule: answer for rule, answer in facts["rules"].items() if answer is not None}
    for thing in ("dog", "luggage"):
        if facts.get(thing) is not None:
            known[thing] = facts[thing]
    known["absent"] = False
    return known


NEAR_FALLS = ("bends down", "sits down", "crouches", "gets up", "lies on the ground")


def near_miss(rule, facts):
    """Whether a "No" to the rule is one that looks like a "Yes"."""
    persons, cars = facts["persons"] or [], facts["cars"] or []
    if facts["rules"].get(rule) is not False:
        return False
    if rule == "fall":
        return any(p["does"] in NEAR_FALLS for p in persons)
    if rule == "stop":
        return any(c["does"] in ("slows down and drives on", "drives away", "is parked") for c in cars)
    if rule == "bag":
        return bool(facts["luggage"])
    if rule == "zone":
        return any(p.get("near") for p in persons)
    return bool(facts["dog"] or facts["luggage"]) if rule == "person" else bool(persons)


def _share(rule, answer, facts):
    """How often a rule is asked about, so that "Yes" and "No" are about as frequent and a "No" is mostly a near miss."""
    if rule in ("person", "car") or answer:
        return 1.0
    people = bool(facts["persons"]) or facts["rules"]["person"] is not False
    if rule == "fall":
        return 0.7 if near_miss(rule, facts) else (0.13 if people else 0.04)
    if rule == "stop":
        return 0.9 if near_miss(rule, facts) else (0.3 if facts["rules"]["car"] is not False else 0.05)
    if rule == "bag":
        return 0.8 if facts["luggage"] is not False else (0.1 if people else 0.04)
    if rule == "zone":
        return (0.9 if people else 0.3) if facts["zone"] else 0.06
    return 0.2


def ask(rng, facts, short, long):
    """`short` triples (rule, yes/no question, one-word answer), and `long` ones whose answer is a sentence (rule is None for free questions)."""
    known = all_answers(facts)
    pairs = []
    kept = [rule for rule in known if rule != "absent" and rng.random() < _share(rule, known[rule], facts)] or ["absent"]
    keys = [kept[k] for k in rng.permutation(len(kept))]
    order = []
    while len(order) < short:
        order += keys
    for rule in order[:short]:
        if rng.random() < 0.02:
            rule = "absent"
        pairs.append((rule, *yes_no(rng, rule, known[rule], facts, explain=False)))
    free = free_questions(rng, facts)
    clear = facts["persons"] is not None and facts["cars"] is not None
    explained = [rule for rule in RULES if clear and known.get(rule) is not None and rng.random() < _share(rule, known[rule], facts)]
    for _ in range(long):
        if explained and (not free or rng.random() < 0.6):
            rule = explained.pop(int(rng.integers(len(explained))))
            pairs.append((rule, *yes_no(rng, rule, known[rule], facts, explain=True)))
        elif free:
            pairs.append((None, *free.pop(int(rng.integers(len(free))))))
        else:
            rule = _choice(rng, [rule for rule in known if rule in ("person", "car")] or ["absent"])
            pairs.append((rule, *yes_no(rng, rule, known[rule], facts, explain=False)))
    return pairs
