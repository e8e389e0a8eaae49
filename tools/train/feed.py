"""What a step is trained on: windows of drawn scenes, photographs and coded videos with their questions, made by the loader's workers.

Lengths, light and weather follow the progress of the training: short windows and good light first, long ones and the whole range later.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch

import batches
import sight
from architecture import MERGE, PATCH, TOKEN
from scenes import questions, real, render

SHORT, LONG = 28, 64
# Question blocks of a window: yes or no, and answers of a sentence.
BLOCKS = {"answer": (SHORT,) * 6 + (LONG,) * 2, "explain": (SHORT,) * 2 + (LONG,) * 6}
# Share of the windows with so many frames, at the start and at the end of the training; and the rates (frames a second) of each.
FIRST = {4: .04, 8: .34, 12: .14, 16: .22, 20: .2, 40: .06, 80: 0}
LAST = {4: .03, 8: .13, 12: .09, 16: .13, 20: .38, 40: .15, 80: .09}
RATES = {4: {1: .4, 2: .6}, 8: {1: .12, 2: .8, 4: .08}, 12: {2: 1}, 16: {1: .15, 2: .7, 4: .15}, 20: {1: .1, 2: .9}, 40: {1: .15, 2: .6, 4: .25}, 80: {2: 1}}
SHAPES = {(224, 224): .42, (168, 280): .46, (168, 252): .12}
ASPECTS = {(224, 224): None, (168, 280): (16 / 9,), (168, 252): (4 / 3, 1.5)}
TAGS = ("person", "car", "zone", "fall", "stop", "bag", "dog", "luggage", "absent", "free")
KINDS = ("drawn", "over", "collage", "real", "coded")
MIX = (.68, .11, .08, .13)
# What a drawn scene has to be about (see story.THEME_OF), beyond the share that each matter has by itself: what is learned last is shown most.
WANTED = {None: .7, "zone": .17, "fall": .065, "near": .065}


class Windows(torch.utils.data.IterableDataset):
    """Batches of scenes with their questions. `budget` frames a batch; `progress` a shared number from 0 to 1; ranks get batches of one shape at the same step.

    From the progress `coded_from` on, a share `coded` of the batches are coded windows (see coded.py); `shards` is the file in which the process that renders lists those
    that it holds by then.
    """

    def __init__(self, run, rank, progress, budget, bank, labels, tokenizer, mix=MIX, blocks="answer", shards=None, coded=0.0, coded_from=0.0, settled=False):
        self.run, self.rank, self.progress, self.budget, self.paths, self.tokenizer, self.mix = run, rank, progress, budget, (bank, labels), tokenizer, mix
        self.blocks, self.shards, self.coded, self.coded_from, self.settled = BLOCKS[blocks], shards, coded, coded_from, settled

    def __iter__(self):
        torch.set_num_threads(1)
        info = torch.utils.data.get_worker_info()
        worker = info.id if info else 0
        common, own = np.random.default_rng([self.run, worker, 1]), np.random.default_rng([self.run, worker, self.rank, 2])
        batches.use_tokenizer(self.tokenizer)
        bank = real.Bank(*self.paths) if self.paths[0] else None
        shards = None
        while True:
            progress = float(self.progress)
            if self.shards and shards is None and progress >= self.coded_from:
                shards = json.loads(Path(self.shards).read_text())
            done = 1.0 if self.settled else progress
            counts = list(FIRST)
            frames = real.pick(common, counts, [FIRST[c] + (LAST[c] - FIRST[c]) * min(1, done * 1.5) for c in counts])
            shape = real.pick(common, list(SHAPES), list(SHAPES.values()))
            if common.random() < self.coded and shards:
                yield coded_batch(own, self.budget, shards, self.blocks)
            else:
                yield make_batch(own, max(1, self.budget // frames), frames, shape, RATES[frames], bank, min(1.0, .35 + done * 3), self.mix, self.blocks)


def drawn(seed, frames, fps, bank, aspects, mix, wanted=None):
    """One scene. A seed that cannot be drawn is named and passed over: a part of an hour must not be lost for it."""
    for other in range(50):
        try:
            return real.draw((seed + other * 7919) % 1_000_000, frames, fps, bank, wanted, aspects, mix)
        except Exception as error:
            print(f"scene {seed + other * 7919} at {frames} frames, {fps}: {error!r}", file=sys.stderr, flush=True)
    raise RuntimeError(f"fifty scenes from {seed} on could not be drawn")


def make_batch(rng, size, frames, shape, rates, bank, hard=1.0, mix=MIX, blocks=BLOCKS["answer"]):
    seeds = [int(s) for s in rng.integers(0, 1_000_000, size)]
    fps = np.array([real.pick(rng, list(rates), list(rates.values())) for _ in range(size)], np.float32)
    stories = [drawn(seed, frames, float(f), bank, ASPECTS[shape], mix, real.pick(rng, list(WANTED), list(WANTED.values()))) for seed, f in zip(seeds, fps)]
    for made in stories if hard < 1 else ():
        optics = made.optics
        optics["scalars"][[1, 2, 3, 6, 9]] *= hard
        optics["gain"] = optics["gain"] * hard + (1 - hard) * np.clip(optics["gain"], .8, 1.1)
    out = render.collate(stories, seeds)
    out.update(text_batch(rng, [s.facts for s in stories], fps, frames, shape, blocks), sight=sights(stories, frames, shape), kinds=torch.tensor([KINDS.index(s.kind) for s in stories]))
    return out


def coded_batch(rng, budget, shards, blocks):
    """Windows of one shard's size, from all shards of that size; `coded` (B, 2) tells shard and row."""
    chosen = shards[int(rng.integers(len(shards)))]
    alike = [k for k, s in enumerate(shards) if (s["frames"], s["fps"], s["shape"]) == (chosen["frames"], chosen["fps"], chosen["shape"])]
    size = max(1, budget // chosen["frames"])
    places = [(k, int(rng.integers(len(shards[k]["scenes"])))) for k in rng.choice(alike, size)]
    scenes = [shards[k]["scenes"][row] for k, row in places]
    stories = [real.story.scene_story(s["seed"], chosen["frames"], chosen["fps"], None, (s["aspect"],)) for s in scenes]
    out = text_batch(rng, [s.facts for s in stories], np.full(size, chosen["fps"], np.float32), chosen["frames"], tuple(chosen["shape"]), blocks)
    out.update(sight=sights(stories, chosen["frames"], chosen["shape"]), coded=torch.tensor(np.array(places)), kinds=torch.full((size,), KINDS.index("coded")))
    return out


def sights(stories, frames, shape):
    """(B, frames / 2, rows, columns, 7): see sight.py."""
    return torch.from_numpy(np.stack([sight.lessons(s.marks, frames, shape[0] // (PATCH * MERGE), shape[1] // (PATCH * MERGE)) for s in stories]))


def load_shards(folder, rank=0, ranks=1):
    """The tables of the coded windows that a rank holds, and their frames: uint8 tensors (n, T, 3, H, W)."""
    paths = sorted(Path(folder).glob("*.json"))[rank::ranks]
    return [json.loads(p.read_text()) for p in paths], [torch.from_numpy(np.load(p.with_suffix(".npy"))) for p in paths]


def text_batch(rng, facts, fps, frames, shape, blocks):
    """Tokens, targets and positions of the questions about windows of one size."""
    size = len(facts)
    # An idle block at the end makes the number of keys a multiple of 16, which the attention kernels like.
    lengths = tuple(blocks) + (-batches.Layout(frames, *shape, blocks).keys % 16,)
    total = sum(lengths)
    tokens = np.full((size, total), TOKEN["<|endoftext|>"], np.int64)
    targets = np.full((size, total), batches.IGNORE, np.int64)
    prompts, tags = np.full((size, len(lengths)), SHORT, np.int64), np.full((size, len(blocks)), -1, np.int64)
    for row, about in enumerate(facts):
        pairs = questions.ask(rng, about, blocks.count(SHORT), blocks.count(LONG))
        offset = 0
        for block, (length, (rule, question, answer)) in enumerate(zip(blocks, pairs)):
            prompt, reply = batches.encode_pair(question, answer)
            if len(prompt) + len(reply) <= length:
                prompts[row, block] = len(prompt)
                tokens[row, offset:offset + len(prompt) + len(reply)] = prompt + reply
                targets[row, offset + len(prompt) - 1:offset + len(prompt) + len(reply) - 1] = reply
                tags[row, block] = TAGS.index(rule or "free")
            offset += length
    layout = batches.Layout(frames, *shape, lengths)
    # Now and then the text is numbered as older releases of transformers did, so that either way of counting works.
    positions = layout.positions(torch.from_numpy(fps), torch.from_numpy(prompts), torch.from_numpy(rng.random(size) < .12))
    return dict(tokens=torch.from_numpy(tokens), targets=torch.from_numpy(targets), positions=positions, tags=torch.from_numpy(tags), prompts=torch.from_numpy(prompts), shape=torch.tensor([frames, *shape, lengths[-1]]))


def first_tokens(batch, blocks):
    """(B, Q) bool: the places whose hidden state predicts an answer's first token."""
    prompts = batch["prompts"][:, :len(blocks)]
    ends = torch.tensor(np.cumsum((0,) + blocks[:-1]), device=prompts.device) + prompts - 1
    out = torch.zeros_like(batch["targets"], dtype=torch.bool)
    return out.scatter(1, ends.clamp_max(out.shape[1] - 1), True) & (batch["targets"] != batches.IGNORE)
