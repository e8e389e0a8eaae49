"""Explanations and answers to free questions against the facts of a scene: who, what and when."""

import re

import numpy as np

from scenes import questions
from scenes.chance import COLOURS

EXPLAINED = {
    "person": "Is there a person? Explain.", "car": "Is there a car? Explain.", "zone": "Is a person inside the marked zone? Explain.", "fall": "Does a person fall? Explain.",
    "stop": "Does a car stop on the road? Explain.", "bag": "Is a bag left behind? Explain.",
}


def expected(window):
    """Pairs (kind, question, answer): one explanation and, where the facts allow, one free question."""
    facts, rng = window["facts"], np.random.default_rng(window["seed"])
    if facts["persons"] is None or facts["cars"] is None:
        return []
    asked = [rule for rule in window["truth"] if rule not in ("person", "car")] or list(window["truth"])
    rule = asked[int(rng.integers(len(asked)))]
    truth = facts["rules"][rule]
    found = [("explanation: " + rule, EXPLAINED[rule], f"{'Yes' if truth else 'No'}. {questions.reason(rule, facts, truth)}")]
    free = questions.free_questions(rng, facts)
    if free:
        found.append(("free", *free[int(rng.integers(len(free)))]))
    return found


def parts(text):
    """What a sentence says: its first word, its colours (and "light", "dark"), its seconds, and the rest of its words."""
    words = re.findall(r"[A-Za-z]+|\d+", text)
    colours = [w for w in words if w in COLOURS or w in ("light", "dark")]
    return words[:1], colours, [int(w) for w in words if w.isdigit()], [w for w in words[1:] if not w.isdigit() and w not in colours]


def compare(said, wanted):
    """For each part whether it agrees (None: the wanted sentence has none): the first word, colours, what happens, and times within a second."""
    first, colours, times, words = parts(said)
    wanted_first, wanted_colours, wanted_times, wanted_words = parts(wanted)
    return {
        "first word": first == wanted_first,
        "who (colours)": colours == wanted_colours if wanted_colours else None,
        "what (words)": words == wanted_words if wanted_words else None,
        "when (all within 1 s)": (len(times) == len(wanted_times) and all(abs(a - b) <= 1 for a, b in zip(times, wanted_times))) if wanted_times else None,
        "everything": said.strip() == wanted.strip(),
    }
