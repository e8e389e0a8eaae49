#!/usr/bin/env python3
"""Trains the demo model on drawn scenes and photographs. Runs in parts: each part has its own warm-up and cosine and ends within its minutes.

    tools/train/train.py --bank BANK.npz --tokenizer DIR --out OUT --minutes 8.5 [--weights PARTS] [--state FILE] [--rate 1e-3] [--stage 2]

OUT receives the weights (bf16, parts below 15 MB) about every two minutes and at the end, and log.jsonl. `--state` holds the float32 weights and the optimizer's moments
for a next part on the same machine. Works on one GPU; on the CPU with `--tiny` as a test.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch._dynamo
import torch._inductor.config
import torch.nn.functional as F

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

import batches  # noqa: E402
from architecture import DEVIATION, MEAN, TOKEN, demo_config  # noqa: E402
from scenes import questions, real, render  # noqa: E402
from twin import Model  # noqa: E402

SHORT, LONG = 28, 64
BLOCKS = (SHORT,) * 8 + (LONG,) * 2
# Frames of a window, how often, and its rates (frames a second) with how often.
STAGES = {
    1: {4: (.05, {1: .4, 2: .6}), 8: (.34, {1: .15, 2: .75, 4: .1}), 12: (.08, {2: 1}), 16: (.2, {1: .2, 2: .65, 4: .15}), 20: (.25, {1: .2, 2: .8}), 40: (.08, {1: .25, 2: .45, 4: .3})},
    2: {4: (.04, {1: .4, 2: .6}), 8: (.3, {1: .12, 2: .8, 4: .08}), 12: (.06, {2: 1}), 16: (.15, {1: .15, 2: .7, 4: .15}), 20: (.27, {1: .15, 2: .85}), 40: (.11, {1: .25, 2: .45, 4: .3}), 80: (.07, {2: 1})},
}
STAGES[3] = {8: (.6, {1: .1, 2: .8, 4: .1}), 12: (.2, {2: 1}), 20: (.2, {1: .2, 2: .8})}
SHAPES = (((224, 224), .68), ((168, 280), .24), ((168, 252), .08))
ASPECTS = {(224, 224): None, (168, 280): (16 / 9,), (168, 252): (4 / 3, 1.5)}
TAGS = ("person", "car", "zone", "fall", "stop", "bag", "dog", "luggage", "absent", "free")
KINDS = ("drawn", "over", "collage", "real")


class Windows(torch.utils.data.IterableDataset):
    """Batches of scenes with their questions, made by the loader's workers. `budget` frames a batch."""

    def __init__(self, run, stage, budget, bank, labels, tokenizer, gentle=0, mix=real.MIX):
        self.gentle, self.mix = gentle, mix
        self.run, self.stage, self.budget, self.paths, self.tokenizer = run, STAGES[stage], budget, (bank, labels), tokenizer

    def __iter__(self):
        torch.set_num_threads(1)
        info = torch.utils.data.get_worker_info()
        rng = np.random.default_rng([self.run, info.id if info else 0])
        batches.use_tokenizer(self.tokenizer)
        bank = real.Bank(*self.paths) if self.paths[0] else None
        made, workers = 0, info.num_workers if info else 1
        while True:
            # The first part begins with good light and little noise and reaches the full range after `gentle` batches.
            hard = 1.0 if not self.gentle else min(1.0, .15 + made * workers / self.gentle)
            made += 1
            counts = list(self.stage)
            frames = real.pick(rng, counts, [self.stage[c][0] for c in counts])
            shape = real.pick(rng, [s for s, _ in SHAPES], [w for _, w in SHAPES])
            rates = self.stage[frames][1]
            yield make_batch(rng, max(1, self.budget // frames), frames, shape, rates, bank, hard, self.mix)


def drawn(seed, frames, fps, bank, aspects, mix):
    """One scene. A seed that cannot be drawn is named and passed over: a part of an hour must not be lost for it."""
    for other in range(50):
        try:
            return real.draw((seed + other * 7919) % 1_000_000, frames, fps, bank, aspects=aspects, mix=mix)
        except Exception as error:
            print(f"scene {seed + other * 7919} at {frames} frames, {fps}: {error!r}", file=sys.stderr, flush=True)
    raise RuntimeError(f"fifty scenes from {seed} on could not be drawn")


def make_batch(rng, size, frames, shape, rates, bank, hard=1.0, mix=real.MIX):
    seeds = [int(s) for s in rng.integers(0, 1_000_000, size)]
    fps = np.array([real.pick(rng, list(rates), list(rates.values())) for _ in range(size)], np.float32)
    stories = [drawn(seed, frames, float(f), bank, ASPECTS[shape], mix) for seed, f in zip(seeds, fps)]
    for made in stories if hard < 1 else ():
        optics = made.optics
        optics["scalars"][[1, 2, 3, 6, 9]] *= hard
        optics["gain"] = optics["gain"] * hard + (1 - hard) * np.clip(optics["gain"], .8, 1.1)
    out = render.collate(stories, seeds)
    # An idle block at the end makes the number of keys a multiple of 16, which the attention kernels like.
    lengths = BLOCKS + (-batches.Layout(frames, *shape, BLOCKS).keys % 16,)
    total = sum(lengths)
    tokens = np.full((size, total), TOKEN["<|endoftext|>"], np.int64)
    targets = np.full((size, total), batches.IGNORE, np.int64)
    prompts, tags = np.full((size, len(lengths)), SHORT, np.int64), np.full((size, len(BLOCKS)), -1, np.int64)
    for row, made in enumerate(stories):
        pairs = questions.ask(rng, made.facts, BLOCKS.count(SHORT), BLOCKS.count(LONG))
        offset = 0
        for block, (length, (rule, question, answer)) in enumerate(zip(BLOCKS, pairs)):
            prompt, reply = batches.encode_pair(question, answer)
            prompts[row, block] = len(prompt)
            if len(prompt) + len(reply) <= length:
                tokens[row, offset:offset + len(prompt) + len(reply)] = prompt + reply
                targets[row, offset + len(prompt) - 1:offset + len(prompt) + len(reply) - 1] = reply
                tags[row, block] = TAGS.index(rule or "free")
            offset += length
    layout = batches.Layout(frames, *shape, lengths)
    # Now and then the text is numbered as older releases of transformers did, so that either way of counting works.
    positions = layout.positions(torch.from_numpy(fps), torch.from_numpy(prompts), torch.from_numpy(rng.random(size) < .12))
    out.update(tokens=torch.from_numpy(tokens), targets=torch.from_numpy(targets), positions=positions, tags=torch.from_numpy(tags), prompts=torch.from_numpy(prompts),
               kinds=torch.tensor([KINDS.index(s.kind) for s in stories]), shape=torch.tensor([frames, *shape, lengths[-1]]))
    return out


def loss_of(model, frames, batch, prompt, mask):
    hidden = model(frames, prompt, batch["tokens"], batch["positions"], mask)
    targets = batch["targets"]
    where = targets != batches.IGNORE
    logits = model.logits(hidden[where]).float()
    wanted = targets[where]
    # The first token of an answer decides; the words after it weigh less each, since there are more of them.
    first = first_tokens(batch)[where]
    weight = torch.where(first, 1.0, 0.2)
    losses = F.cross_entropy(logits, wanted, reduction="none")
    return (losses * weight).sum() / weight.sum(), losses.detach(), first, (logits.detach().argmax(-1) == wanted), where


def first_tokens(batch):
    """(B, Q) bool: the places whose hidden state predicts an answer's first token."""
    prompts = batch["prompts"][:, :len(BLOCKS)]
    ends = torch.tensor(np.cumsum((0,) + BLOCKS[:-1]), device=prompts.device) + prompts - 1
    out = torch.zeros_like(batch["targets"], dtype=torch.bool)
    return out.scatter(1, ends.clamp_max(out.shape[1] - 1), True)


class Score:
    """Running hits of first tokens: by rule and answer, and for photographs' persons and cars apart."""

    def __init__(self):
        self.table = {}

    def add(self, batch, first, right, where, yes):
        block = torch.repeat_interleave(torch.arange(len(BLOCKS)), torch.tensor(BLOCKS)).to(where.device)
        rows, places = torch.nonzero(where, as_tuple=True)
        rows, places, right = rows[first], places[first], right[first]
        tag = batch["tags"][rows, block[places]]
        said = (batch["targets"][rows, places] == yes).long()
        kind = batch["kinds"][rows]
        key = ((kind * len(TAGS) + tag) * 2 + said).cpu().numpy()
        right = right.cpu().numpy()
        for k in np.unique(key):
            hit = right[key == k]
            old = self.table.get(int(k), [0.0, 0.0])
            self.table[int(k)] = [old[0] + hit.sum(), old[1] + len(hit)]

    def report(self):
        out = {}
        for k, (hits, count) in sorted(self.table.items()):
            said, rest = k % 2, k // 2
            tag, kind = TAGS[rest % len(TAGS)], KINDS[rest // len(TAGS)]
            out[f"{kind} {tag} {'yes' if said else 'no'}"] = [round(hits / count, 3), int(count)]
        self.table = {}
        return out


def save(model, out):
    """bf16 weights in parts below 15 MB; each is written beside and moved, so that a stopped run leaves whole files."""
    from safetensors.torch import save_file

    parts, size = [{}], 0
    for name, value in model.state_dict().items():
        value = value.detach().to("cpu", torch.bfloat16).contiguous()
        if size + value.numel() * 2 > 14_000_000:
            parts.append({})
            size = 0
        parts[-1][name] = value
        size += value.numel() * 2
    for index, part in enumerate(parts):
        path = Path(out) / f"weights-{index}.safetensors"
        save_file(part, str(path) + ".part")
        os.replace(str(path) + ".part", path)


def clock(wait):
    if wait and torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.time()


def sheet(frames, path):
    """A picture of a batch, to look at what is trained on: a window a row, its frames evenly spread."""
    from PIL import Image

    count = min(12, len(frames))
    chosen = frames[:count, :: max(1, frames.shape[1] // 6)][:, :6].float()
    rows = (chosen.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1).cpu().numpy() * 255).astype(np.uint8)
    Image.fromarray(rows).save(path, quality=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank")
    parser.add_argument("--labels", default=str(TOOLS / "labels"))
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--weights")
    parser.add_argument("--state")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--floor", type=float, default=0.02, help="the last rate as a share of the first")
    parser.add_argument("--stage", type=int, default=1)
    parser.add_argument("--run", type=int, default=1)
    parser.add_argument("--gentle", type=int, default=0, help="batches over which noise, weather and darkness rise to their full range")
    parser.add_argument("--mix", type=float, nargs=4, default=real.MIX, help="shares of drawn scenes, drawn things over photographs, collages, real windows")
    parser.add_argument("--every", type=int, default=100, help="steps between two lines of the log")
    parser.add_argument("--budget", type=int, default=1920, help="frames in a batch; a multiple of 240 gives every length the same number")
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10 ** 9)
    parser.add_argument("--compile", choices=("none", "blocks", "all"), default="all")
    parser.add_argument("--profile", action="store_true", help="say how long drawing, the forward and the backward pass take")
    parser.add_argument("--tiny", action="store_true")
    args = parser.parse_args()
    begin = time.time()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.run)
    torch.backends.cuda.matmul.allow_tf32 = True
    config = demo_config(**(dict(text=dict(num_hidden_layers=1), vision=dict(depth=2, fullatt_block_indexes=[1])) if args.tiny else {}))
    model = Model(config).initialise(1).to(device)
    plain = [p for p in model.parameters() if p.dim() > 1]
    rest = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([dict(params=plain, weight_decay=.05), dict(params=rest, weight_decay=0.0)], lr=args.rate, betas=(.9, .98), fused=device == "cuda")
    if args.state and Path(args.state).exists():
        state = torch.load(args.state, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        print("goes on from", args.state)
    elif args.weights:
        from export import load_weights
        model.load_state_dict({k: v.float() for k, v in load_weights(args.weights).items()})
        print("goes on from", args.weights)
    if device == "cuda" and args.compile != "none":
        torch._dynamo.config.cache_size_limit = 64
        torch._dynamo.config.suppress_errors = True
        # This analysis stops on shapes that vary (seen with torch 2.11).
        torch._inductor.config.triton.coalesce_tiling_analysis = False
        if args.compile == "all":
            render.compile_passes()
        for block in [*model.model.visual.blocks, *model.model.language_model.layers]:
            block.compile(dynamic=True)
    batches.use_tokenizer(args.tokenizer)
    plates = sprites = None
    if args.bank:
        plates, sprites = (p.to(device) for p in real.Bank(args.bank, args.labels).pictures())
    loader = torch.utils.data.DataLoader(Windows(args.run, args.stage, args.budget, args.bank, args.labels, args.tokenizer, args.gentle, tuple(args.mix)), batch_size=None, num_workers=args.workers,
                                         prefetch_factor=4 if args.workers else None, pin_memory=device == "cuda", persistent_workers=bool(args.workers))
    prompt = batches.prompt_ids(device)
    masks, yes = {}, batches.tokenizer(args.tokenizer + "/tokenizer.json").token_to_id("Yes") if Path(args.tokenizer).is_dir() else batches.tokenizer(args.tokenizer).token_to_id("Yes")
    mean, deviation = (torch.tensor(v, device=device).view(1, 1, 3, 1, 1) for v in (MEAN, DEVIATION))
    log, score, stamp, saved, windows, waited, losses_sum, losses_count = open(out / "log.jsonl", "a"), Score(), time.time(), time.time(), 0, 0.0, 0.0, 0
    total = args.minutes * 60
    feed = iter(loader)
    train_from = None
    step = bad = 0
    while step < args.steps:
        before = time.time()
        batch = next(feed)
        waited += time.time() - before
        batch = {k: v.to(device, non_blocking=True) if k != "shape" else v.tolist() for k, v in batch.items()}
        frames_count, height, width, idle = batch["shape"]
        elapsed = time.time() - begin
        train_from = elapsed if train_from is None else train_from
        done = min(1.0, (elapsed - train_from) / max(1.0, total - train_from - 4))
        if done >= 1.0:
            break
        rate = args.rate * min(1.0, (step + 1) / args.warmup) * (args.floor + (1 - args.floor) * 0.5 * (1 + math.cos(math.pi * done)))
        for group in optimizer.param_groups:
            group["lr"] = rate
        key = (frames_count, height, width)
        if key not in masks:
            masks[key] = batches.Layout(*key, BLOCKS + (idle,)).mask(device)
        marks = [clock(args.profile)]
        with torch.no_grad():
            kind = torch.bfloat16 if device == "cuda" else torch.float32
            frames = render.render(batch, height, width, plates, sprites, torch.float16 if device == "cuda" else torch.float32)
            if step == 3:
                sheet(frames, out / "sheet.jpg")
            finite = torch.isfinite(frames).all()
            frames = torch.nan_to_num((frames - mean) / deviation, 0.0, 0.0, 0.0).to(kind)
        marks.append(clock(args.profile))
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss, losses, first, right, where = loss_of(model, frames, batch, prompt, masks[key])
        marks.append(clock(args.profile))
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        # One bad batch must not spoil the weights: it is named and passed over.
        if torch.isfinite(norm):
            optimizer.step()
        else:
            bad += 1
            print(f"step {step}: no finite gradient; {frames_count}x{height}x{width}, frames {'finite' if finite else 'not finite'}, loss {float(loss)}", flush=True)
            if bad > 200:
                raise RuntimeError("too many batches without a finite gradient")
        optimizer.zero_grad(set_to_none=True)
        marks.append(clock(args.profile))
        if args.profile:
            print(f"{frames_count}x{height}x{width}: drawing {marks[1] - marks[0]:.3f} forward {marks[2] - marks[1]:.3f} backward and step {marks[3] - marks[2]:.3f} s", flush=True)
        step += 1
        windows += len(frames)
        score.add(batch, first, right, where, yes)
        losses_sum, losses_count = losses_sum + torch.nan_to_num(loss.detach()), losses_count + 1
        if step in (1, 2, 5, 10, 20, 50) or step % args.every == 0:
            spent = time.time() - stamp
            line = dict(step=step, seconds=round(time.time() - begin, 1), loss=round(float(losses_sum) / losses_count, 4), norm=round(float(norm), 2), rate=round(rate, 6), windows_per_second=round(windows / spent, 1), waited=round(waited / spent, 3),
                        memory=round(torch.cuda.max_memory_allocated() / 2 ** 30, 1) if device == "cuda" else 0)
            if step % args.every == 0:
                line["score"] = score.report()
            log.write(json.dumps(line) + "\n")
            log.flush()
            brief = {k: v[0] for k, v in line.pop("score", {}).items() if k.split()[0] in ("drawn", "real") and k.split()[1] in questions.RULES and step % (3 * args.every) == 0}
            print(json.dumps(line), *(f"{k}={v}" for k, v in brief.items()), flush=True)
            stamp, windows, waited, losses_sum, losses_count = time.time(), 0, 0.0, 0.0, 0
        if time.time() - saved > 110:
            save(model, out)
            saved = time.time()
    save(model, out)
    if args.state:
        torch.save(dict(model=model.state_dict(), optimizer=optimizer.state_dict()), args.state)
    print(f"{step} steps, {time.time() - begin:.0f} s")
    os._exit(0)


if __name__ == "__main__":
    main()
