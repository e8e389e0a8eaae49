#!/usr/bin/env python3
"""What a form costs is the difference of mean F1 on the same windows, and a logit that moved is seen.    tools/evaluation/test_forms.py   (also runs under pytest)"""

import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evaluation import forms


def told(whole, fp8, largest=.25, differ=7):
    same = dict(probability_yes=whole, largest=0.0, differ=0)
    return dict(video="a/7.mp4", tokens=600, pages=2, probability_yes=whole, again=same, forms=dict(bf16=same, fp8=dict(probability_yes=fp8, largest=largest, differ=differ), int4=same))


def test_a_form_costs_what_its_answers_turn():
    # Of "fall" one "Yes" of two is lost: F1 of 1 becomes 2/3; "car" stays.
    records = [forms.record_of(told(*yes), rule, truth) for rule, truth, yes in (
        ("fall", True, (.9, .8)), ("fall", True, (.9, .4)), ("fall", False, (.1, .2)), ("car", True, (.9, .9)), ("car", False, (.2, .1)))]
    assert forms.mean_f1(records, "whole") == 1 and abs(forms.mean_f1(records, "fp8") - (1 + 2 / 3) / 2) < 1e-9
    fp8, bf16 = forms.figures(records, "fp8"), forms.figures(records, "bf16")
    assert abs(fp8["costs"] - 1 / 6) < 1e-9 and fp8["turned"] == 1 and abs(fp8["most_moved"] - .5) < 1e-9 and fp8["largest"] == .25 and fp8["equal"] == 0
    assert bf16["costs"] == 0 and bf16["turned"] == 0 and bf16["largest"] == 0 and bf16["equal"] == 5
    assert "| fp8 | 0.8333 | +0.1667 | 1 of 5 |" in forms.table(records) and "5 of 5 answers have equal logits" in forms.table(records)
    records[0]["again"] = (1, .125)
    assert "4 of 5 answers have equal logits to the bit; largest difference 0.125" in forms.table(records)


def test_only_what_has_an_answer_is_asked():
    window = dict(path=Path("7.mp4"), start=0.0, count=20, fps=2.0, truth=dict(person=True, car=None, fall=False))
    (line, pairs), = forms.asked([window, dict(window, truth=dict(car=None))])
    assert pairs == [("person", True), ("fall", False)] and line["to"] == 10 and line["questions"] == [forms.QUESTIONS["person"], forms.QUESTIONS["fall"]]


def test_what_was_answered_is_not_asked_again():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        record = dict(forms.record_of(told(.9, .8), "fall", True), asked_of=["demo", "f32"])
        path.write_text(json.dumps(record) + "\n" + json.dumps(record)[:30])
        found = forms.known_of(str(path), ["demo", "f32"])
        assert list(found) == [("7.mp4", "fall")] and forms.mean_f1(list(found.values()), "fp8") == 1
        assert forms.known_of(str(path), ["demo-draft", "f32"]) == {}
        assert forms.known_of(None, []) == {} and forms.known_of(folder + "/none", []) == {}
        assert list(forms.answered(None, [])) == []


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
