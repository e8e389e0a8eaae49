#!/usr/bin/env python3
"""Scenes are functions of their seed, whatever the moments at which they are looked at.    tools/scenes/test_scenes.py   (also runs under pytest)"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scenes import questions, render, story  # noqa: E402


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


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
