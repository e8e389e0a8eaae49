#!/usr/bin/env python3
"""Several processes train as one would on all their batches; the drafter's lessons are the target's own words.    tools/train/test_train.py   (also runs under pytest)"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.multiprocessing

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS / "train"), str(TOOLS)]

import batches  # noqa: E402
import distil  # noqa: E402
import feed  # noqa: E402
import sight  # noqa: E402
import train  # noqa: E402
from architecture import TOKEN, demo_config  # noqa: E402
from scenes import render, story  # noqa: E402
from twin import Model  # noqa: E402

TOKENIZER = str(TOOLS.parent / "models" / "demo")
BLOCKS = feed.BLOCKS["answer"]


def small():
    return Model(demo_config(text=dict(num_hidden_layers=1), vision=dict(depth=2, fullatt_block_indexes=[1]))).initialise(1)


def batch_of(seed, blocks=BLOCKS):
    batches.use_tokenizer(TOKENIZER)
    batch = feed.make_batch(np.random.default_rng(seed), 2, 4, (112, 112), {2: 1}, None, blocks=blocks)
    batch["shape"] = batch["shape"].tolist()
    return batch


feed.ASPECTS[(112, 112)] = None


def gradients(model, batch):
    prompt = batches.prompt_ids("cpu")
    mask = batches.Layout(*batch["shape"][:3], BLOCKS + tuple(batch["shape"][3:])).mask("cpu")
    frames = render.render(batch, 112, 112)
    train.answer_loss(model, model.model.visual(frames), batch, BLOCKS, prompt, mask)[0].backward()


def one_rank(rank, folder):
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29411", LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    ranks, model = train.Ranks(), small()
    gradients(model, batch_of(10 + rank))
    ranks.average(model.parameters())
    agreed = ranks.agree(.25 + rank)
    torch.save(([p.grad for p in model.parameters()], agreed), f"{folder}/{rank}")


def test_two_processes_step_as_one_on_both_batches():
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(one_rank, (folder,), nprocs=2)
        (first, a), (second, b) = (torch.load(f"{folder}/{rank}") for rank in range(2))
    assert a == b == .25
    alone = []
    for rank in range(2):
        model = small()
        gradients(model, batch_of(10 + rank))
        alone.append([p.grad for p in model.parameters()])
    for x, y, p, q in zip(first, second, *alone):
        assert torch.equal(x, y)
        if p is not None:
            assert torch.allclose(x, (p + q) / 2, atol=1e-6, rtol=1e-4)
    # The two batches differ, so that an average is something else than either.
    assert any(p is not None and not torch.allclose(p, q, atol=1e-6) for p, q in zip(*alone))


@torch.no_grad()
def test_fixed_point_is_what_greedy_decoding_says():
    model, blocks = small().eval(), feed.BLOCKS["explain"]
    batch = batch_of(20, blocks)
    prompt = batches.prompt_ids("cpu")
    mask = batches.Layout(*batch["shape"][:3], blocks + tuple(batch["shape"][3:])).mask("cpu")
    video = model.model.visual(render.render(batch, 112, 112))
    tokens, targets = distil.greedy(model, video, batch, blocks, prompt, mask, rounds=70)
    # Token by token, for the first long block of each window.
    offset = blocks.index(feed.LONG) * feed.SHORT
    for row in range(2):
        ids, at = batch["tokens"][row:row + 1].clone(), offset + int(batch["prompts"][row, blocks.index(feed.LONG)])
        one = {key: value[row:row + 1] if key != "positions" else value[:, row:row + 1] for key, value in batch.items() if key != "shape"}
        while at < offset + feed.LONG:
            said = model.logits(model(video[row:row + 1], prompt, ids, one["positions"], mask))[0, at - 1].argmax()
            assert said == tokens[row, at] and (targets[row, at - 1] == said)
            ids[0, at] = said
            at += 1
            if said == TOKEN["<|im_end|>"]:
                break
        assert at == offset + feed.LONG or targets[row, at - 1] == batches.IGNORE


@torch.no_grad()
def test_thin_prompts_keep_what_is_chosen():
    model = small().eval()
    batch = batch_of(30)
    prompt = batches.prompt_ids("cpu")
    mask = batches.Layout(*batch["shape"][:3], BLOCKS + tuple(batch["shape"][3:])).mask("cpu")
    frames = render.render(batch, 112, 112)
    video = model.model.visual(frames)
    full = model(video, prompt, batch["tokens"], batch["positions"], mask)
    everything = torch.arange(video.shape[1]).expand(2, -1)
    same = model(*(lambda v, p, m: (v, prompt, batch["tokens"], p, m))(*distil.kept_part(video, batch["positions"], mask, prompt[0].shape[1], everything)))
    assert torch.allclose(full, same, atol=1e-5)
    kept = distil.choose_tokens(frames, .25, "change")
    assert kept.shape == (2, video.shape[1] // 4) and (kept[:, 1:] > kept[:, :-1]).all()
    thin, positions, thin_mask = distil.kept_part(video, batch["positions"], mask, prompt[0].shape[1], kept)
    # The same as hiding the other tokens from everybody.
    assert positions.shape[2] == thin_mask.shape[1] == batch["positions"].shape[2] - video.shape[1] + kept.shape[1]
    fewer = model(thin, prompt, batch["tokens"], positions, thin_mask)
    assert fewer.shape == full.shape and not torch.allclose(fewer, full, atol=1e-3)


def test_lessons_say_what_the_judge_says():
    """Feet that are told to be inside, over a window's tokens, are a person in the zone, and the reverse; a fall ends in lying tokens."""
    agreed = {True: 0, False: 0}
    for seed in range(60):
        made = story.scene_story(seed, 8, 2.0, "zone", (16 / 9,))
        wanted, truth = sight.lessons(made.marks, 8, 6, 10), made.facts["rules"]["zone"]
        if made.facts["zone"] is None or truth is None:
            continue
        inside = (wanted[..., sight.WITHIN] == 1).any()
        # A single frame with feet inside is no "Yes" (judge.NEED).
        assert inside or not truth, seed
        agreed[truth] += inside == truth
        assert (wanted[..., sight.ZONE] == 1).any() and (wanted[..., sight.ZONE] != sight.SKIP).all()
    assert agreed[True] >= 12 and agreed[False] >= 12
    for seed in range(200, 215):
        made = story.scene_story(seed, 16, 2.0, "fall", (16 / 9,))
        if made.facts["rules"]["fall"]:
            wanted = sight.lessons(made.marks, 16, 6, 10)
            assert (wanted[..., sight.LYING] == 1).any() and (wanted[0, ..., sight.LYING] != 1).all() or made.marks.hips.shape[0] > 1, seed
    assert (sight.lessons(None, 8, 6, 10) == sight.SKIP).all()


def test_lessons_can_be_learned_and_photographs_teach_nothing():
    torch.manual_seed(0)
    look = sight.Sight(8)
    wanted = torch.randint(0, 3, (2, 2, 3, 4, 7)).to(torch.uint8)
    # Tokens that hold the answers are read without loss; nothing known is no loss and no gradient.
    video = torch.zeros(2, 24, 8)
    video[..., :7] = torch.where(wanted.flatten(1, 3) == 1, 9., -9.)
    with torch.no_grad():
        look.layer.weight.copy_(torch.eye(7, 8))
        look.layer.bias.zero_()
    assert look(video, wanted) < .05 < look(-video, wanted)
    nothing = look(video.requires_grad_(), torch.full_like(wanted, sight.SKIP))
    nothing.backward()
    assert nothing == 0 and not video.grad.any()


def test_a_step_without_a_finite_gradient_is_done_again_by_plain_means():
    model, asked = torch.nn.Linear(2, 2), []

    def gradients():
        # As seen on a GPU: finite only where attention is not fused.
        asked.append(torch.backends.cuda.flash_sdp_enabled())
        return None, None, None, torch.tensor(float("nan") if asked[-1] else 1.5)

    assert train.plainly(gradients, model, "step 0") == 1.5
    assert asked == [True, False]


def test_the_temperature_is_that_of_the_answers():
    generator = torch.Generator().manual_seed(3)
    odds = torch.randn(4000, generator=generator, dtype=torch.float64) * 3
    truth = torch.rand(4000, generator=generator) < torch.sigmoid(odds / 1.6)
    assert abs(train.temperature(odds, truth) - 1.6) < .15


@torch.no_grad()
def test_words_that_follow_from_the_words_weigh_less():
    """A student that looks at nothing has no word that it expects less of another window: its words weigh by how hard they are."""
    torch.manual_seed(1)
    teacher, student, blocks = small().eval(), small().eval(), feed.BLOCKS["explain"]
    batch = batch_of(40, blocks)
    prompt, mask = batches.prompt_ids("cpu"), batches.Layout(*batch["shape"][:3], blocks + tuple(batch["shape"][3:])).mask("cpu")
    frames = render.render(batch, 112, 112)
    drafted = student.model.visual(frames)
    seen = {}
    for weight in (0.0, 1.0):
        distil.PLAIN = weight
        seen[weight] = float(distil.draft_loss(student, teacher, frames, drafted, batch, blocks, prompt, mask, np.random.default_rng(1))[0])
    distil.PLAIN = .3
    assert 0 < seen[0.0] < seen[1.0]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("passed", name)
