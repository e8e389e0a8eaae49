#!/usr/bin/env python3
"""Scenes are functions of their seed, whatever the moments at which they are looked at.    tools/scenes/test_scenes.py   (also runs under pytest)"""

import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from evaluation import windows as windows_of_videos  # noqa: E402
from scenes import coding, cutouts, held_out_long, questions, real, render, story, write  # noqa: E402
from scenes.long import LASTS, MARGIN, PIECE, LongScene, span  # noqa: E402
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


def test_who_is_told_of_a_long_scene_is_who_its_frames_show():
    # Of this scene somebody with a bag is in view already when the margin of the event begins.
    scene = LongScene(1_000_000, 700, 90, 16 / 9)
    at = next(at for at, kind, _ in scene.episodes if kind == "bag")
    begin = (at - MARGIN) // PIECE * PIECE
    window = begin - 4 + np.arange(20) / 2
    shown = [scene.told(np.arange(round(PIECE * coding.RATE)) / coding.RATE + piece, coding.RATE) for piece in window[0] + PIECE * np.arange(5)]
    drawn = [bool((told.moving[..., 16] != 0).sum(1)[k * 25 // 2] > (scene.told([0.0], 2.0).moving[..., 16] != 0).sum()) for told in shown for k in range(4)]
    whole = scene.told(window, 2.0)
    told = (whole.moving[..., 16] != 0).sum(1) > (scene.told([0.0], 2.0).moving[..., 16] != 0).sum()
    assert drawn == told.tolist() and drawn[:8] == [False] * 8 and all(drawn[8:])
    assert whole.facts["rules"]["person"] is True and whole.facts["persons"] != []
    # Windows that end within the piece in which the margin begins: as much is told as is there.
    for first in (-10, -9.5, -9, -8.5, -8):
        part = scene.told(begin + first + np.arange(20) / 2, 2.0)
        seen = sum(begin + first + k / 2 >= begin for k in range(20))
        assert part.facts["rules"]["person"] is (True if seen >= 2 else None if seen else False), (first, seen, part.facts["rules"]["person"])


def test_a_car_that_stood_before_the_window_is_no_stop_for_sure():
    scene = LongScene(1_000_000, 1800, 90, 16 / 9)
    found = []
    for at, kind, _ in scene.episodes:
        for start in np.arange(at, at + LASTS, .5) if kind == "stop" else ():
            told = scene.told(start + np.arange(20) / 2, 2.0)
            stops = [car["stops"] for car in told.events["cars"] if car.get("stops") is not None]
            found.append((told.facts["rules"]["stop"], bool(stops and stops[0] >= start)))
    assert (True, True) in found and (None, False) in found and (True, False) not in found, set(found)


def test_dense_events_of_a_long_scene_find_room():
    # Without a rule for what has no room, six of these eight scenes end as Crowded.
    changed = {"moved": 0, "exchanged": 0}
    for every in (10, 25):
        for seed in range(1_200_000, 1_200_004):
            scene = LongScene(seed, 240, every, 16 / 9)
            for piece in np.arange(0, 240, PIECE):
                assert scene.told([piece, piece + 1], 1.0).moving.shape == (2, story.MAX_MOVING, 20), (every, seed, piece)
            # A window of 40 s has all who come and go in it.
            for start in range(0, 201, 40):
                window = start + np.arange(80) / 2
                assert scene.facts(window, 2.0) == scene.told(window, 2.0).facts, (every, seed, start)
            assert scene.episodes == LongScene(seed, 240, every, 16 / 9).episodes, (every, seed)
            begun = [at for at, _, _ in scene.episodes]
            assert begun == sorted(begun) and all(0 <= at < 240 - LASTS for at in begun), (every, seed)
            # Cars do not drive through one another.
            cars = [at for at, kind, _ in scene.episodes if kind in ("car", "stop")]
            assert (np.diff(cars) >= LASTS).all(), (every, seed, cars)
            asked = scene.asked
            assert len(scene.episodes) == asked["drawn"] <= asked["events"] and asked["drawn"] >= min(.5 * asked["events"], 5), (every, seed, asked)
            assert 216 / every * .5 < asked["events"] < 216 / every * 1.6 + 2, (every, seed, asked)
            for key in changed:
                changed[key] += asked[key]
    assert all(changed.values()), changed


def test_windows_of_a_long_scene_are_judged_in_any_shape():
    scene = LongScene(1_200_086, 240, 20, 16 / 9)
    record = json.loads(json.dumps(scene.record([(40, 8), (10, 2)])))
    assert [window["start"] for window in record["windows"]] == [10 * k for k in range(24)] and {window["seconds"] for window in record["windows"]} == {10}
    for shape, count in zip(record["shapes"], (26, 116)):
        windows, seconds = shape["windows"], shape["seconds"]
        assert len(windows) == count and windows[-1]["start"] + seconds == 240
        answers = {window["start"]: window["rules"] for window in windows}
        for rule in questions.RULES:
            within = {window["start"]: any(first <= window["start"] + seconds <= last for first, last in shape["yes"][rule]) for window in windows}
            assert within == {start: rules[rule] is True for start, rules in answers.items()}, (seconds, rule)
        for window in windows:
            for rule, ago in window["left"].items():
                assert 0 < ago < 2 * seconds and window["rules"][rule] is False and answers[window["start"] - ago][rule] is True
                assert not any(rules[rule] for start, rules in answers.items() if window["start"] - ago < start <= window["start"])
    assert {window["start"]: window["rules"] for window in record["windows"]}.items() <= {window["start"]: window["rules"] for window in record["shapes"][1]["windows"]}.items()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "7.json").write_text(json.dumps(record))
        found = [(window["start"], window["count"], window["truth"]) for window in windows_of_videos.long_windows(Path(folder) / "7.mp4", (40.0, 8.0))]
        assert found == [(window["start"], 80, window["rules"]) for window in record["shapes"][0]["windows"]]
        assert [window["start"] for window in windows_of_videos.long_windows(Path(folder) / "7.mp4")] == [10 * k for k in range(24)]
        with contextlib.suppress(SystemExit):
            list(windows_of_videos.long_windows(Path(folder) / "7.mp4", (20.0, 8.0)))
            raise AssertionError("windows that nobody judged")
    # The moment of a fall is in each window that has it, and in none that ends before.
    falls = [episode["falls"] for episode in record["episodes"] if "falls" in episode]
    assert len(falls) > 1
    for window in record["shapes"][1]["windows"]:
        if window["rules"]["fall"]:
            assert any(window["start"] <= at < window["start"] + 10 for at in falls), window
    for episode in record["episodes"]:
        first, last = span(episode["about"] - LASTS / 2)
        assert "from" not in episode or first <= episode["from"] < episode["to"] <= last


def test_the_held_out_long_scenes_go_on_where_they_were_stopped():
    found = [held_out_long.conditions(index) for index in range(24)]
    assert len({(light, weather, street) for light, weather, street, _ in found}) == 24
    for scene, record in held_out_long.choose(2, 60.0, [(10.0, 10.0)]):
        light, weather, street, every = found.pop(0)
        assert scene.seed >= held_out_long.FIRST > story.HELD_OUT
        assert (record["light"], record["weather"], record["place"] == "street", record["every"]) == (light, weather, street, every)
    with tempfile.TemporaryDirectory() as folder:
        argv, printed = sys.argv, io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                for minutes, stop in ((".05", False), (".05", False), (".1", True)):
                    sys.argv = ["held_out_long.py", "--out", folder, "--count", "1", "--minutes", minutes, "--windows", "2:1"]
                    try:
                        held_out_long.main()
                        assert not stop
                    except SystemExit as error:
                        assert stop and "of another set" in str(error), error
        finally:
            sys.argv = argv
        assert printed.getvalue().count(".mp4: ") == 1 and "| **all 1** |" in printed.getvalue(), printed.getvalue()
        assert sorted(path.suffix for path in Path(folder).iterdir()) == [".json", ".mp4"]


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
        buffer = io.BytesIO()
        coding.encode([frames[:37], frames[37:]], buffer, codec, 400, (96, 64), "veryfast" if codec == "h264" else "ultrafast")
        buffer.seek(0)
        found = [frame.mean() for frame in coding.sampled(buffer, 2.0, 8)]
        assert np.allclose(found, [25 * k // 2 * 2 for k in range(8)], atol=4), (codec, found)


def small_bank(folder):
    """A bank of grey plates and one-coloured cut-outs: a dark person who comes in from below, a light car that comes in from above, and both whole."""
    from PIL import Image

    def png(colour):
        data = io.BytesIO()
        Image.fromarray(np.full((12, 8, len(colour)), colour, np.uint8)).save(data, "PNG")
        return np.frombuffer(data.getvalue(), np.uint8)

    def sprite(kind, time, y, height, touches, standing=False):
        return dict(kind=kind, who=0, colour="black" if kind == "person" else "white", standing=standing, time=time, x=.4 + time / 50, y=y, width=.2, height=height, touches=touches)

    sprites = [sprite("person", 1 + k / 10, 1 - h / 2, h, ["bottom"]) for k, h in enumerate((.08, .2, .35, .5, .65, .8))] + [sprite("person", 1.6, .55, .85, []), sprite("person", 8.0, .5, .85, [], True)]
    sprites += [sprite("car", 3 + k / 10, h / 2, h, ["top"]) for k, h in enumerate((.06, .15, .3, .45))] + [sprite("car", 3.4, .3, .5, [])]
    frames = [png((128, 128, 128))] * 3
    cuts = [png((20, 20, 20, 255) if s["kind"] == "person" else (230, 230, 230, 255)) for s in sprites]
    clips = ("one-by-one-person-detection", "car-detection", "bottle-detection")
    meta = dict(frames=[dict(clip=clip, version="", time=0.0) for clip in clips], sprites=sprites, rates=dict.fromkeys(clips, 5.0))
    path = Path(folder) / "bank.npz"
    np.savez(path, frames=np.concatenate(frames), frame_sizes=[len(f) for f in frames], sprites=np.concatenate(cuts), sprite_sizes=[len(c) for c in cuts], meta=np.array(json.dumps(meta)))
    return real.Bank(path, Path(__file__).resolve().parent.parent / "labels")


def test_what_the_border_cut_off_stays_at_the_border():
    """Things that come in are cut off by the picture's edge alone, and each answer is that of what is in the picture."""
    with tempfile.TemporaryDirectory() as folder:
        bank = small_bank(folder)
        assert {kind: [(len(run[0]), run[2]) for run in runs] for kind, runs in bank.entries.items()} == {"person": [(7, "bottom")], "car": [(5, "top")]}
        rng, times, edges, late = np.random.default_rng(3), np.arange(20) / 2, {"top": 0, "bottom": 0}, 0
        for turn in range(400):
            kind = ("person", "car")[turn % 2]
            track = cutouts.coming_in(rng, bank.sprites, bank.entries[kind][0], times)
            low, high = track.where[:, 1] - track.size[:, 1] / 2, track.where[:, 1] + track.size[:, 1] / 2
            for frame in np.flatnonzero(track.index >= 0):
                border = bank.sprites[track.index[frame]]["touches"]
                if border:
                    below = (border == ["bottom"]) == (track.flip[1] > 0)
                    assert (high[frame] > 1 - 1e-6) if below else (low[frame] < 1e-6), (turn, frame)
                    edges["bottom" if below else "top"] += 1
            assert not (track.seen & ~track.touch).any() and not (track.touch & (track.index < 0)).any()
            late += bool(track.touch[-3:].any() and not track.touch[:-3].any())
        assert min(edges.values()) > 100 and late > 40, (edges, late)

        # Rendered answers: where something of a kind is drawn, "No" is not the answer to it; where both halves of the kinds are known, both answers come up.
        plates, sprites = bank.pictures()
        said = set()
        for seed in range(120):
            made = real.collage(seed, bank, 8, 2.0)
            made.photo["sprite"][..., 6:] = np.where(made.photo["sprite"][..., 6:] < 0, -1, 1)
            made.photo["tint"][:] = [1, 1, 1, 0, 0, 0]
            shown = render.photographs(render.collate([made], [seed]), torch.tensor([0]), plates, sprites, 36, 64)[0]
            rules = made.facts["rules"]
            drawn = ((shown - 128 / 255).abs() > .2).any()
            assert drawn or (not rules["person"] and not rules["car"]), seed
            assert not drawn or rules["person"] is not False or rules["car"] is not False, seed
            said.add((rules["person"], rules["car"]))
        assert said >= {(True, False), (False, True), (False, False), (None, False)}, said


def test_clothes_change_colour_and_hair_does_not():
    with tempfile.TemporaryDirectory() as folder:
        bank = small_bank(folder)
        plates, sprites = bank.pictures()
        rng, kinds = np.random.default_rng(5), set()
        for _ in range(60):
            track = cutouts.coming_in(rng, bank.sprites, bank.entries["person"][0], np.arange(4) / 2)
            track.index[:], track.where[:], track.size[:] = 7, (.5, .5), (.4, .8)
            track.flip, track.head = (1, 1), .2
            brightness, tint, below, recoloured = cutouts.colours(rng, "person", track)
            photo = real.photo(4, 0)
            photo["sprite"][0] = np.stack([track.index, *track.where.T, *(track.size / 2).T, np.ones(4), brightness, below], -1)
            photo["tint"][0] = tint
            batch = dict({key: torch.from_numpy(value)[None] for key, value in photo.items()}, jitter=torch.zeros(1, 4, 2))
            shown = render.photographs(batch, torch.tensor([0]), plates, sprites, 80, 80)[0, 0]
            hair, clothes, beside = shown[:, 15, 40].mean(), shown[:, 60, 40].mean(), shown[:, 60, 5].mean()
            assert abs(beside - 128 / 255) < .01
            if not recoloured:
                assert clothes < .15
            elif below[0] > 0:
                assert abs(hair - 20 / 255) < .02, hair
            kinds.add((recoloured, bool(below[0] > 0), bool(clothes > .3)))
        assert kinds >= {(True, True, True), (True, False, True), (False, True, False)}, kinds


def test_margin_of_a_zone():
    square = np.array([[0, 0], [2, 0], [2, 2], [0, 2]], float)
    assert np.allclose(inside(square, np.array([[1, 1], [1, .25], [-.5, 1], [3, 3]])), [1, .25, -.5, -1])


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
