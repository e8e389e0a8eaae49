#!/usr/bin/env python3
"""Tests of the scores of policies. Needs numpy alone.

    python3 tools/evaluation/test_policies.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from evaluation import policies

QUESTIONS = {"car": "Is a car present?", "person": "Is a person present?"}


def asked(end, seconds, car, person):
    return {
        "start": max(0.0, end - seconds), "end": end, "probability_yes": {QUESTIONS["car"]: car, QUESTIONS["person"]: person}, "groups": {"all": 10, "encoded": 4},
        "tokens": {"visual": 20, "new": 4, "reused": 15, "refreshed": 1}, "gflop": 2.5,
    }


def test_windows_are_found_by_their_ends():
    record = {
        "seed": 7, "light": "night", "weather": "rain", "shapes": [{"seconds": 4.0, "stride": 2.0, "windows": [
            {"start": 0.0, "rules": {"car": True, "person": None}, "left": {}}, {"start": 2.0, "rules": {"car": False, "person": True}, "left": {"car": 2.0}},
            {"start": 4.0, "rules": {"car": False, "person": False}, "left": {}},
        ]}]}
    # The first one is shorter than a window, and the last judged one was not asked.
    scene = policies.answers_of(record, (4.0, 2.0), QUESTIONS, [asked(2.0, 4, .9, .9), asked(4.0, 4, .9, .1), asked(6.0 + 1e-9, 4, .6, .4)])
    assert scene.answers == [("car", True, True, False), ("car", False, True, True), ("person", True, False, False)]
    assert (scene.groups, scene.encoded, scene.visual, scene.reused, scene.gflop) == (30, 12, 60, 45, 7.5)
    try:
        policies.answers_of(record, (40.0, 8.0), QUESTIONS, [])
    except SystemExit as error:
        assert "no windows of 40 s every 8 s are judged" in str(error)
    else:
        raise AssertionError("windows that nobody judged")


def of(truth, told):
    return [("car", bool(int(a)), bool(int(b)), False) for a, b in zip(truth, told)]


def test_f1_is_that_of_yes():
    assert policies.f1(of("1100", "1010")) == .5
    assert policies.f1(of("1100", "1100")) == 1
    assert policies.f1(of("0000", "0000")) is None
    assert policies.f1(of("0000", "0100")) == 0


def test_alerts_are_missed_false_or_late():
    assert policies.alerts(of("00111100", "00111100")) == (1, 0, 0, [0])
    assert policies.alerts(of("00111100", "00001100")) == (1, 0, 0, [2])
    assert policies.alerts(of("00111100", "00010100")) == (1, 1, 0, [])
    assert policies.alerts(of("00000000", "00111100")) == (0, 0, 1, [])
    assert policies.alerts(of("00100000", "00100000")) == (0, 0, 0, []), "too short for an alert"
    assert policies.alerts(of("11110011", "11110011")) == (2, 0, 0, [0, 0])
    # It was on before, by mistake, and stays on: a false alert, and none that is missed.
    assert policies.alerts(of("00001111", "11111111")) == (1, 0, 1, [])


def test_the_interval_is_that_of_the_difference():
    def scene(told):
        return policies.Scene("day", "dry", of("1100", told), gflop=2.0)
    base = [scene("1100")] * 6
    assert list(policies.interval(base, base, np.random.default_rng(1))) == [0, 0]
    low, high = policies.interval(base, [scene("1100")] * 3 + [scene("0000")] * 3, np.random.default_rng(1))
    assert low < -.3 < high <= 0
    text = policies.table({"none/all": base, "none/none": base}, np.random.default_rng(1))
    assert "| none/none | 1.000 | +0.000 (+0.000 … +0.000) |" in text


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(f"{name}: passed")
