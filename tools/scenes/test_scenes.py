#!/usr/bin/env python3
"""Scenes are functions of their seed, whatever the moments at which they are looked at.    tools/scenes/test_scenes.py   (also runs under pytest)"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scenes import coding, questions, render, story, write  # noqa: E402
from scenes.long import LongScene  # noqa: E402
from scenes.zones import inside  # noqa: E402


def test_the_same_seed_gives_the_same_frames():
    pictures = []
    for others in ([], [8]):
        seeds = [7] + others
        stories = [story.scene_story(seed, 2, 1.0) for seed in seeds]
        pictures.append(render.render(render.collate(stories, seeds), 56, 56)[0])
    # Alone or beside another scene of the batch.
    assert (pictures[0] - pictures[1]).abs().max() < 1e-5
    other = render.render(render.collate([story.scene_story(9, 2, 1.0)], [9]), 56, 56)[0]
    assert (pictures[0] - other).abs().mean() > 0.01


def test_a_scene_does_not_depend_on_the_rate_at_which_it_is_sampled():
    for seed in range(40):
        slow, fast = story.scene_story(seed, 8, 1.0), story.scene_story(seed, 8, 1.0, shown=4)
        assert slow.events == fast.events, seed
        assert np.array_equal(slow.still, fast.still), seed
        # Geometry at the common moments; gait and the order of equally far things may differ by the step.
        a, b = slow.moving[..., 13:16].sum(), fast.moving[::4, :, 13:16].sum()
        assert abs(a - b) < 0.02 * abs(a) + 1e-3, (seed, a, b)


def test_answers_follow_the_facts():
    rng = np.random.default_rng(0)
    both = {rule: set() for rule in questions.RULES}
    for seed in range(600):
        facts = story.scene_story(seed, 20, 2.0).facts
        for rule, question, answer in questions.ask(rng, facts, 8, 2):
            if rule in questions.RULES and answer in ("Yes", "No"):
                turned = question.lower().startswith(("is nobody", "is the room empty", "is the road empty", "is the yard empty", "is the car park empty")) or "free of cars" in question or "empty of people" in question
                assert (answer == "Yes") == (facts["rules"][rule] != turned), (seed, question, answer)
                both[rule].add(answer)
    assert all(seen == {"Yes", "No"} for seen in both.values()), both


def test_a_long_scene_is_the_same_in_any_pieces():
    scene = LongScene(1_000_003, 600, 60, 16 / 9)
    assert scene.episodes == LongScene(1_000_003, 600, 60, 16 / 9).episodes and len(scene.episodes) >= 4
    for at, _, _ in scene.episodes[:4]:
        times = at + np.arange(30) / 2
        whole = scene.told(times, 2.0)
        for part in (slice(0, 11), slice(11, 30)):
            piece = scene.told(times[part], 2.0)
            # Gait may differ at the seam (it is a difference of moments); the rest may not.
            pictures = [render.render(render.collate([told], [5]), 36, 64, first=first)[0] for told, first in ((whole, 0), (piece, part.start))]
            assert (pictures[0][part][1:-1] - pictures[1][1:-1]).abs().max() < 1e-3
            assert np.allclose(piece.optics["gain"], whole.optics["gain"][part])
    answers = [window["rules"] for window in scene.record()["windows"]]
    assert len(answers) == 60 and {a["person"] for a in answers} >= {True, False}


def test_a_balanced_set_holds_what_it_says():
    chosen = write.balanced(10, story.HELD_OUT)
    assert all(seed >= story.HELD_OUT for seed, _ in chosen)
    for rule in questions.RULES:
        truths = [write.told(seed, write.form(seed), None).facts["rules"][rule] for seed, asked in chosen if rule in asked]
        assert truths.count(True) == 5 and truths.count(False) == 5, (rule, truths)


def test_primitives_are_drawn_where_they_reach():
    # The whole picture, primitive by primitive, is the oracle of the drawing that leaves out what cannot be touched.
    for seed in (7, 12, 33):
        batch = render.collate([story.scene_story(seed, 6, 2.0)], [seed])
        image, place = batch["moving"].new_zeros(6, 3, 90, 160), batch["jitter"][0].new_tensor([[16 / 9, 0, 0]]).expand(6, -1)
        u, v = render.pixels(place, 90, 160)
        whole = image
        for index in range(batch["moving"].shape[2]):
            whole = render.paint_one(whole, batch["moving"][0, :, index], u, v)
        assert (render.paint(image, batch["moving"][0], u, v) - whole).abs().max() < 1e-5, seed


def test_video_coding_keeps_the_moments():
    # Brightness tells the moment: a sampled frame is the one that a player shows then.
    frames = (np.arange(100)[:, None, None, None] * 2 + np.zeros((1, 64, 96, 3))).astype(np.uint8)
    for codec in coding.CODECS:
        import io
        buffer = io.BytesIO()
        coding.encode([frames[:37], frames[37:]], buffer, codec, 400, (96, 64), "veryfast" if codec == "h264" else "ultrafast")
        buffer.seek(0)
        found = [frame.mean() for frame in coding.sampled(buffer, 2.0, 8)]
        assert np.allclose(found, [25 * k // 2 * 2 for k in range(8)], atol=4), (codec, found)


def test_margin_of_a_zone():
    square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], float)
    assert np.allclose(inside(square, np.array([[1, 1], [1, .25], [-.5, 1], [3, 3]])), [1, .25, -.5, -1])


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
