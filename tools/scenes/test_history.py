#!/usr/bin/env python3
"""Questions about an hour are answered by its frames alone, and its video goes on where it was stopped.    tools/scenes/test_history.py   (also runs under pytest)"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scenes import coding, history, questions, story  # noqa: E402
from scenes.history import PRESENT, QUIET, History, choose  # noqa: E402
from scenes.long import FPS, LASTS, MARGIN, LongScene, span  # noqa: E402

_made = {}


def scenes():
    """Six scenes of half an hour with their questions; made once."""
    if not _made:
        _made.update({scene: scene.questions(20) for scene in choose(6, 1800.0, 90.0)})
    return _made


def rules(scene, begin, end):
    return scene.facts(begin + np.arange(round((end - begin) * FPS)) / FPS, FPS)["rules"]


def test_what_is_asked_happened_in_its_windows_and_not_at_present():
    asked = [question for made in scenes().values() for question in made]
    assert len(asked) == 120 and 30 <= sum(not question["happened"] for question in asked) <= 50
    assert {question["kind"] for question in asked} == {"whether", "when", "who"} and {question["rule"] for question in asked} == set(questions.RULES)
    for scene, made in scenes().items():
        now = rules(scene, scene.seconds - PRESENT, scene.seconds)
        for question in made:
            rule = question["rule"]
            assert question["happened"] == bool(question["windows"]), question
            if rule != "bag" or question["kind"] == "whether":
                assert now[rule] is False, (scene.seed, question)
            for window in question["windows"]:
                assert window["age"] == round(scene.seconds - window["to"], 1) > PRESENT and window["colours"], question
        for rule in {question["rule"] for question in made}:
            happened = {question["happened"] for question in made if question["rule"] == rule}
            assert len(happened) == 1, (scene.seed, rule)
            ever = [window["rules"][rule] for window in scene.windows(40.0, 8.0)]
            assert any(ever) if happened == {True} else not any(ever), (scene.seed, rule)
            # What the windows name is seen when one looks there, whoever else may be in view.
            for window in next(question["windows"] for question in made if question["rule"] == rule):
                around = max(0.0, np.floor(window["from"]) - 12)
                assert rules(scene, around, min(scene.seconds, np.ceil(window["to"]) + 12))[rule] is not False, (scene.seed, rule, window)
                assert 0 < window["to"] - window["from"] <= {"fall": 3.1, "stop": 4.1, "bag": 6.1}.get(rule, LASTS + 2 * MARGIN), (scene.seed, rule, window)


def test_what_the_hour_does_not_say_is_not_asked():
    scene = next(iter(choose(1, 300.0, 40.0)))
    scene.happened = lambda: {rule: [] for rule in questions.RULES}
    scene.facts = lambda times, fps: dict(rules=dict.fromkeys(questions.RULES, False))
    scene.episodes = [(0.0, "pass", 0)]
    for answer, said in ((False, False), (None, None)):
        scene.windows = lambda seconds, stride: [dict(start=0.0, rules=dict.fromkeys(questions.RULES, False) | dict(zone=answer, fall=answer))]
        # Somebody passed: he may have been in the zone, and did not fall.
        assert scene.answers()[1] == dict.fromkeys(questions.RULES, False) | dict(zone=said)


def test_questions_are_in_words_that_were_trained():
    trained = [pattern.rstrip("!") for patterns in (questions.PRESENCE, *questions.RULE_WORDINGS.values()) for pattern in patterns]
    assert {wording for wordings in history.PAST.values() for wording in wordings} <= set(trained)
    for made in scenes().values():
        for question in made:
            assert "{" not in question["question"] and question["question"][0].isupper(), question
            assert ("gate" in question) == (question["kind"] != "whether"), question
            assert question["question"].endswith(questions.EXPLAIN if question["question"].startswith(question.get("gate", "-")) else "?"), question


def test_a_history_is_a_function_of_its_seed():
    first = next(iter(scenes()))
    again = History(first.seed, 1800.0, 90.0, 16 / 9)
    assert again.episodes == first.episodes and again.questions(20) == scenes()[first]
    assert first.seed >= history.FIRST > story.HELD_OUT
    assert [scene.stage.place == "street" for scene in scenes()] == [False, True] * 3
    for scene in scenes():
        assert all(span(at)[1] <= scene.seconds - QUIET for at, _, _ in scene.episodes) and sum(kind == "bag" for _, kind, _ in scene.episodes) <= 1


def test_what_only_looks_like_it_comes_and_goes():
    """Somebody who bends down or takes a bag along and a car that slows down are there for a while, and are no fall, no bag that is left and no stop."""
    found = {"near": set(), "bag near": set(), "slow": set()}
    for seed in range(1_300_000, 1_300_024):
        scene = LongScene(seed, 600, 60, 16 / 9, {"near": .3, "bag near": .3, "slow": .3})
        for at, kind, number in scene.episodes:
            first, last = span(at)
            _, persons, cars = scene._at(at + LASTS * np.array([-1.5, .5, 2.4]), FPS, [(at, kind, number)])
            record = (persons + cars)[0]
            found[kind].add(record["does"])
            before, _, after = np.linalg.norm(record["feet" if kind != "slow" else "position"] - record.get("anchor", 0), axis=1)
            assert kind == "slow" or min(before, after) > 5, (seed, kind, record["does"], before, after)
            answers = rules(scene, max(0.0, first), min(last, scene.seconds))
            assert not any(answers[rule] for rule in ("fall", "bag", "stop")), (seed, at, kind, answers)
    assert found["near"] == {"bends down", "sits down", "crouches"} and found["slow"] == {"slows down and drives on"}
    assert found["bag near"] == {"sets a bag down and takes it again", "carries a bag"}


def test_the_video_goes_on_where_it_was_stopped():
    part, history.PART = history.PART, 4.0
    argv, drawn = sys.argv, coding.encode
    try:
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            sys.argv = ["history.py", "--out", folder, "--count", "1", "--minutes", ".2", "--every", "40", "--rate", "2"]
            out = Path(folder) / f"{history.FIRST}.mp4"
            calls = []

            def stopped(*args, **kwargs):
                calls.append(args[1])
                if len(calls) == 2:
                    raise KeyboardInterrupt
                return drawn(*args, **kwargs)

            coding.encode = stopped
            with contextlib.suppress(KeyboardInterrupt):
                history.main()
            assert not out.exists() and sorted(path.name for path in out.with_suffix("").iterdir()) == ["000.mp4"]
            history.main()
            coding.encode = drawn
            assert len(calls) == 4 and out.exists() and sorted(path.name for path in Path(folder).iterdir()) == [f"{history.FIRST}.json", out.name]
            frames = coding.sampled(str(out), 2.0, 24)
            # Beside frames of the same moments that were not coded; the last of a part is not the first of the next.
            scene = History(history.FIRST, 12.0, 40.0, 384 / 216)
            whole = np.concatenate(list(scene.pieces(216, 384, "cpu", 2)))
            assert len(whole) == 24
            for index, (frame, plain) in enumerate(zip(frames, whole)):
                assert abs(frame.astype(float) - plain).mean() < 12, index
            history.main()
            assert printed.getvalue().count(".mp4: ") == 3, printed.getvalue()
            sys.argv += ["--every", "30"]
            with contextlib.suppress(SystemExit):
                history.main()
                raise AssertionError("another set was written over this one")
            record = json.loads(out.with_suffix(".json").read_text())
            assert record["rate"] == 2 and len(record["questions"]) <= 20
    finally:
        sys.argv, coding.encode, history.PART = argv, drawn, part


def test_parts_are_joined_at_their_times():
    frames = (np.arange(60)[:, None, None, None] * 4 + np.zeros((1, 64, 96, 3))).astype(np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.mp4" for number in range(3)]
        for number, path in enumerate(paths):
            coding.encode([frames[number * 24:(number + 1) * 24]], str(path), "h264", 400, (96, 64), "veryfast", rate=4)
        coding.join(paths, str(Path(folder) / "all.mp4"), 6.0)
        found = [frame.mean() for frame in coding.sampled(str(Path(folder) / "all.mp4"), 4.0, 60)]
        assert np.allclose(found, [4 * k for k in range(60)], atol=4), found


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
