#!/usr/bin/env python3
"""Questions are put as one would ask them, answers are graded by the hour's seconds, and what was cut off is asked again.    tools/evaluation/recall/test_service.py   (also runs under pytest)"""

import json
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import service
import service_grade

FALL = {"from": 100.0, "to": 103.0, "age": 3497.0, "colours": ["red"]}
BAG = {"from": 3000.0, "to": 3006.0, "age": 594.0, "colours": ["green", "black"]}


def question(kind, *windows, rule="fall", number=0):
    return dict(id=f"7-{number}", kind=kind, rule=rule, question="Did anyone collapse? Explain.", gate="Did anyone collapse?", happened=bool(windows), windows=list(windows))


def answer(probability=.99, **more):
    return dict(dict(id="7-0", method="windows", probability=probability, text="", moment=None, evidence=[[80.0, 120.0]], tokens=100, all_tokens=1000, bytes=50, seconds={"total": 2.0}, load=1.0), **more)


def test_questions_are_put_as_one_would():
    plain = dict(kind="whether", rule="fall", question="Did anyone collapse?")
    assert service.said_of(plain) == ("Did anyone collapse?", None)
    assert service.said_of(question("when")) == ("When did anyone collapse?", "Did anyone collapse?")
    assert service.said_of(question("who")) == ("What is the person wearing?", "Did anyone collapse?")
    assert service.said_of(question("who", rule="stop"))[0] == "What colour is the car?"


def test_controls_read_as_many_windows_within_the_hour():
    for control in service.CONTROLS:
        starts = service.starts_of(control, 3600.0, "7-0")
        assert len(set(starts)) == service.SIX and all(0 <= start <= 3560 for start in starts), control
        apart = sorted(starts)
        assert all(b - a >= 40 for a, b in zip(apart, apart[1:])), control
    assert service.starts_of("recent", 3600.0, "7-0")[0] == 3560
    assert service.starts_of("random", 3600.0, "7-0") == service.starts_of("random", 3600.0, "7-0") != service.starts_of("random", 3600.0, "7-1")
    # Of an hour in which it happened once, the oracle sees that.
    assert service.true_window(question("when", FALL), 3600.0) == 81.5
    assert service.true_window(question("when", {"from": 2.0, "to": 4.0}), 3600.0) == 0 and service.true_window(question("when", {"from": 3590.0, "to": 3599.0}), 3600.0) == 3560
    assert 0 <= service.true_window(question("when"), 3600.0) <= 3560


def test_times_of_the_service_become_seconds_of_the_scene():
    begin = service.when("2026-11-29T10:00:00.500Z")
    assert service.told(begin) == "2026-11-29T10:00:00.500Z"
    said = dict(probability=.97, answer="2026-11-29T10:01:42.500Z", moment="2026-11-29T10:01:42.500Z", evidence=[{"from": "2026-11-29T10:01:20.500Z", "to": "2026-11-29T10:02:00.500Z", "score": .97}],
                tokens={"read": 3, "exhaustive": 9}, bytes={"host": 1, "disk": 2}, seconds={"total": 1.5}, coverage={"share": 1.0}, windows_lost=0)
    kept = service.as_record(said, begin)
    assert kept["moment"] == 102 and kept["evidence"] == [[80.0, 120.0]] and kept["bytes"] == 3 and kept["tokens"] == 3
    assert service.as_record({"failed": "too_late"}, begin) == {"failed": "too_late"}
    assert service.moment_in("Yes. A person in red falls at second 12.", 80.0) == 92 and service.moment_in("No.", 80.0) is None


def test_answers_are_graded():
    grade = service_grade.right
    assert grade(question("whether", FALL), answer()) and not grade(question("whether", FALL), answer(.9)) and not grade(question("whether"), answer())
    # Nobody is sure between: that is neither right nor falsely "Yes".
    assert [service_grade.verdict(answer(p)) for p in (.953, .952, .5, .499)] == ["yes", "unsure", "unsure", "no"]
    assert grade(question("whether"), answer(.2)) and not grade(question("whether"), answer(.7))
    assert grade(question("when", FALL, BAG), answer(moment=107.9)) and grade(question("when", FALL, BAG), answer(moment=2996.0))
    assert not grade(question("when", FALL, BAG), answer(moment=108.1)) and not grade(question("when", FALL), answer(moment=None))
    assert grade(question("who", FALL), answer(text="The person is in red.")) and not grade(question("who", FALL), answer(text="The person is in blue."))
    # Of whom the window shows, not of another time; of a bag, its owner; of whole words.
    assert not grade(question("who", FALL, BAG), answer(text="The person is in green.")) and not grade(question("who", FALL), answer(text="The person is reddish."))
    assert grade(question("who", BAG), answer(text="The person is in green.", evidence=[[2980.0, 3020.0]]))
    assert not grade(question("whether", FALL), dict(id="7-0", method="windows", failed="too_late", load=1.0)) and not grade(question("whether"), dict(id="7-0", method="windows", failed="too_late", load=1.0))
    # Two seconds of it, or all, are seen.
    assert service_grade.holds([[101.0, 141.0]], FALL) and not service_grade.holds([[101.5, 141.5]], FALL) and service_grade.holds([[0, 40], [100.5, 140.0]], {"from": 101.0, "to": 101.5})


def test_tables_count_what_was_asked():
    questions = [question("whether", FALL), question("whether", number=1), question("when", BAG, number=2), question("who", *[dict(FALL)] * 5, number=3)]
    records = [dict(seed=7, seconds=3600.0, questions=questions)]
    answers = [answer(), answer(.99, id="7-1"), answer(id="7-2", moment=3001.0), answer(id="7-3", text="in red"), dict(id="7-0", method="exhaustive", failed="too_late", load=1.0)]
    result = service_grade.graded(records, answers)
    windows = result["methods"]["windows"]
    assert windows["right"]["hits"] == 3 and windows["right"]["of"] == 4 and windows["false_yes"]["hits"] == windows["false_yes"]["of"] == 1 and windows["yes"]["share"] == 1
    # The bag's window was not among those that were read; what happened often does not count by its times.
    assert windows["found"]["hits"] == 2 and windows["found"]["of"] == 3
    assert [(each["hits"], each["of"]) for each in windows["thirds"]] == [(0, 1), (0, 0), (1, 1)]
    assert windows["tokens"] == .1 and windows["moments"] == dict(of=1, within_2=1, within_5=1)
    assert result["methods"]["exhaustive"]["failed"] == 1 and result["methods"]["exhaustive"]["right"]["hits"] == 0
    # Bytes are compared where both were asked.
    assert windows["bytes"] is None
    both = service_grade.graded(records, [*answers, answer(id="7-1", method="exhaustive", bytes=400)])["methods"]
    assert both["windows"]["bytes"] == dict(share=.125, of=1) and both["exhaustive"]["bytes"] == dict(share=1, of=1)
    assert "| `windows` | 4 | 0.750" in service_grade.tables(result) and "| `exhaustive` | 1 | 0.000" in service_grade.tables(result)


def test_a_part_stays_of_its_scenes():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "watched.json").write_text(json.dumps(dict(cameras={"7": {}, "8": {}})))
        assert list(service.watch(None, Path(folder), [7, 8])["cameras"]) == ["7", "8"]
        try:
            service.watch(None, Path(folder), [7, 8, 9])
        except SystemExit as error:
            assert "--at-once" in str(error)
        else:
            raise AssertionError("a part of other scenes was taken")


def test_what_was_cut_off_is_not_kept():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        assert service.lines_of(path) == []
        path.write_text(json.dumps(answer()) + "\n" + json.dumps(answer())[:40])
        assert service.lines_of(path) == [answer()]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
