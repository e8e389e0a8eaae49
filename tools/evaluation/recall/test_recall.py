#!/usr/bin/env python3
"""What is read of an hour is what the training code reads, and answers are graded by the hour's own seconds.    tools/evaluation/recall/test_recall.py   (also runs under pytest)"""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent)]

import numpy as np
import torch

import grade
import memory
from memory import Memory, batches
from methods import best_pages, composed, whole
from report import best
from signals import Selections

DEMO = Path(__file__).resolve().parents[3] / "models" / "demo"


def test_an_hour_that_is_a_window_answers_as_the_training_code():
    model = memory.load(DEMO, torch.device("cpu"))
    prompts = [batches.encode_pair(text, "")[0] for text in ("Is there a person?", "Did a car stop? Explain.")]
    torch.manual_seed(1)
    video = torch.randn(1, 16 * 60, 320) * .5
    lengths = [len(prompt) + 1 for prompt in prompts]
    layout = batches.Layout(32, 168, 280, lengths)
    tokens = torch.tensor([[token for prompt in prompts for token in (*prompt, 0)]])
    with torch.no_grad():
        positions = layout.positions(torch.tensor([2.0]), torch.tensor([[len(prompt) for prompt in prompts]]))
        wanted = model.logits(model(video, batches.prompt_ids("cpu"), tokens, positions, layout.mask("cpu"))[0, np.cumsum(lengths) - 2])
        m = Memory(model, video[0].view(16, 60, -1), 6, 10)
        found = torch.cat([model.logits(m.ask(prompt, *whole(m, torch.tensor([0]), 2))) for prompt in prompts])
        assert torch.allclose(found, wanted, atol=1e-3)
        # A page of another place, put where it was, is the same; some of its tokens hidden are not.
        pair, cell, place = composed(m, [0, 1])
        assert torch.allclose(model.logits(m.ask(prompts[0], pair, cell, place)), wanted[:1], atol=1e-3)
        hidden = torch.where(cell < 30, pair, -1)
        few = m.ask(prompts[0], pair[:, cell[0] < 30], cell[:, cell[0] < 30], place[:, cell[0] < 30])
        assert torch.allclose(m.ask(prompts[0], hidden, cell, place), few, atol=1e-3) and not torch.allclose(model.logits(few), wanted[:1], atol=.1)
        # Word by word, a batch says what each selection says alone.
        both = m.say(prompts[1], *whole(m, torch.tensor([0, 1]), 1), tokens=6)
        assert both == [m.say(prompts[1], *whole(m, torch.tensor([k]), 1), tokens=6)[0] for k in (0, 1)]


def test_pages_before_a_page_are_seen_for_a_while():
    model = memory.load(DEMO, torch.device("cpu"))
    torch.manual_seed(2)
    video = torch.randn(48, 60, 320) * .5
    other = video.clone()
    other[:8] = torch.randn(8, 60, 320) * .5
    with torch.no_grad():
        one, two = (Memory(model, each, 6, 10, past=16).keys[-1] for each in (video, other))
        whole_hour, alone = Memory(model, video, 6, 10, past=0).keys[-1], Memory(model, video[8:16], 6, 10, past=0).keys[-1]
    # Two pages later it is seen through those between; without a past it is not seen at all.
    assert not torch.allclose(one[24:32], two[24:32], atol=1e-4)
    assert torch.allclose(whole_hour[8:16], alone, atol=1e-4) and not torch.allclose(one[8:16], alone, atol=1e-2)


def test_selections_take_the_greatest():
    select = Selections(2, 3, torch.device("cpu"))
    score = torch.zeros(16, 3)
    score[5, 2], score[1, 1], score[9, 0] = 3, 2, 1
    assert [part.tolist() for part in select.top(score, 1)] == [[[5], [9]], [[2], [0]]]
    pair, cell = select.above(score, 2 / 48)
    assert sorted(zip(pair[pair >= 0].tolist(), cell[pair >= 0].tolist())) == [(1, 1), (5, 2)] and (pair[1] < 0).all()
    pair, cell, place = select.windows((pair, cell), torch.tensor([0]), 2)
    assert place[pair >= 0].tolist() == pair[pair >= 0].tolist()


def test_windows_that_are_read_are_apart():
    assert best(np.array([0, 1, 5, 4, 4, 3, 2.]), 2) == [2, 5] and best(np.array([1., 2, 3]), 4) == [2]
    assert best_pages(np.array([0, 9, 0, 0, 8, 7, 0.]), 5) == [1, 2, 4, 5, 6]


def test_answers_are_graded_by_the_seconds_of_the_hour():
    windows = [{"from": 100.0, "to": 103.0, "colours": ["red"]}, {"from": 300.0, "to": 310.0, "colours": ["green", "black"]}]
    assert [grade.off(told, windows) for told in (98, 101, 105, 320)] == [2, 0, -2, -10]
    assert grade.moment("at second 12.", [(80, 120)]) == 92 and grade.moment("No.", [(80, 120)]) is None
    assert [grade.moment(f"at second {second}.", [(8, 16), (96, 104)]) for second in (3, 9, 40)] == [11, 97, 128]
    answer = dict(chosen={"windows": 10, "rekv": 30}, oracle=12, pages=[2, 12], odds={"windows": 3.0, "windows, anew": 3.0, "rekv": -1.0, "compose": 3.0},
                  said={"windows": "Yes. A person in blue falls to the ground at second 30.", "windows, anew": "Yes. A person in red falls to the ground at second 22.", "compose": "Yes at second 13. Red."})

    def right(kind, method, happened=True, threshold=0.0):
        return grade.right(dict(kind=kind, happened=happened, windows=windows if happened else []), answer, method, threshold)

    assert right("whether", "windows") and not right("whether", "windows", threshold=4.0) and not right("whether", "rekv")
    assert not right("when", "windows") and right("when", "windows, anew") and right("when", "compose")
    assert not right("who", "windows") and right("who", "windows, anew") and right("who", "compose") and not right("who", "rekv")
    assert right("who", "rekv", happened=False) and not right("when", "windows", happened=False) and right("when", "windows", happened=False, threshold=4.0)


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
