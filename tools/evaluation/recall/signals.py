#!/usr/bin/env python3
"""Scores of every window of an hour by every signal, for each question of tools/scenes/history.py.

    tools/evaluation/recall/signals.py OUT --scenes 0 1 2 [--minutes 60] [--device cuda] [--coded]

OUT/SEED.pt: what is kept of a scene; OUT/SEED.scores.pt: `windows` (start of each), `truth` (rule: -1, 0, 1 of each), `questions`, and `scores` (signal: questions x windows).
"""

import argparse
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[2])]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402

import hour
import memory
from memory import PAGE, Memory, batches
from scenes import history, questions

LENGTH, STRIDE = 40, 8
TENTH = 48  # tokens of a page of 480


def normal(change):
    """How often its usual change a place changes: what noise, rain and leaves do is usual."""
    return change / (change.median(0, keepdim=True).values + .004)


class Selections:
    """Tokens of each page, chosen by a measure; windows put together of pages."""

    def __init__(self, pages, cells, device):
        self.pages, self.cells, self.device = pages, cells, device

    def top(self, score, count):
        """The `count` tokens of each page with the greatest score: pair and cell (pages, count)."""
        score = score[:self.pages * PAGE].reshape(self.pages, -1)
        index = score.topk(min(count, score.shape[1]), 1).indices.sort(1).values
        return torch.arange(self.pages, device=self.device)[:, None] * PAGE + index // self.cells, index % self.cells

    def above(self, score, share):
        """The tokens of the whole hour with the greatest score, so many of all; pages are filled up with none (-1)."""
        score = score[:self.pages * PAGE].reshape(self.pages, -1)
        least = score.flatten().kthvalue(int(score.numel() * (1 - share))).values
        count = int((score > least).sum(1).max())
        chosen = score.topk(count, 1)
        index, there = chosen.indices, chosen.values > least
        pair = torch.arange(self.pages, device=self.device)[:, None] * PAGE + index // self.cells
        return torch.where(there, pair, -1), index % self.cells

    def windows(self, chosen, starts, pages):
        """The tokens of the windows of `pages` pages that begin with the pages `starts`: pairs, cells, places (W, N)."""
        index = starts[:, None] + torch.arange(pages, device=self.device)
        pair, cell = (part[index].flatten(1) for part in chosen)
        return pair, cell, torch.where(pair >= 0, pair - starts[:, None] * PAGE, 0)


def signals(m, chosen, prompts, starts):
    """All scores (windows,) of a question."""
    out = {}
    select, pages = chosen["select"], LENGTH // PAGE
    with torch.no_grad():
        for name, tokens in chosen["tokens"].items():
            last, mass, states = m.ask(prompts, *select.windows(tokens, starts, pages), looks=True)
            out[name] = m.odds(last)
            if name in ("all", "stands 1/10"):
                for layer in range(mass.shape[0]):
                    out[f"{name}: exit after {layer + 1}"] = m.odds(m.text.norm(states[layer]))
                    out[f"{name}: mass, layer {layer + 1}"] = torch.logsumexp(mass[layer], 0)
                    for head in range(mass.shape[1] if name != "all" else 0):
                        out[f"{name}: mass, layer {layer + 1} head {head + 1}"] = mass[layer, head]
        for name, size in (("all 16 s", 2), ("stands 1/10 16 s", 2)):
            # A page with the one before it: the best of the windows' pages.
            firsts = torch.arange(chosen["pages"] - 1, device=m.device)
            each = m.odds(m.ask(prompts, *select.windows(chosen["tokens"][name.removesuffix(" 16 s")], firsts, size)))
            out[name] = each[(starts[:, None] + torch.arange(pages - 1, device=m.device))].amax(1)
        for number, q in enumerate(m.queries(prompts)):
            keys = m.keys[number][:chosen["pages"] * PAGE].reshape(chosen["pages"], -1, m.dim)
            mean_q = q[:, 1:-len(batches.encode_pair([], [])[0])].mean((0, 1))
            mean_k = keys.mean(1)
            cos = torch.cosine_similarity(mean_k, mean_q[None], 1)
            out[f"rekv, layer {number + 1}"] = cos[starts[:, None] + torch.arange(pages, device=m.device)].amax(1)
            centred = torch.cosine_similarity(mean_k - mean_k.mean(0), mean_q[None], 1)
            out[f"rekv less the hour's mean, layer {number + 1}"] = centred[starts[:, None] + torch.arange(pages, device=m.device)].amax(1)
            best = (keys @ mean_q).amax(1)
            out[f"best key, layer {number + 1}"] = best[starts[:, None] + torch.arange(pages, device=m.device)].amax(1)
    return out


def choose(m, video, moved, stands, seed):
    pages = m.pairs // PAGE
    select = Selections(pages, m.cells, m.device)
    moved, stands = normal(moved), normal(stands)
    slow = video[0].clone().float()
    felt = torch.empty_like(stands)
    for k in range(len(video)):
        felt[k] = (video[k].float() - slow).norm(dim=-1)
        slow += (video[k].float() - slow) / 60
    felt = felt / felt.median(0, keepdim=True).values
    chance = torch.rand(stands.shape, generator=torch.Generator().manual_seed(seed)).to(m.device)
    steady = torch.where((torch.arange(m.pairs, device=m.device) % 10 == 5)[:, None], 1.0, 0.0).expand_as(chance) + chance * .1
    tokens = {"all": select.top(chance, PAGE * m.cells)}
    for share, count in (("1/5", 2 * TENTH), ("1/10", TENTH), ("1/20", TENTH // 2)):
        for name, score in (("moved", moved), ("stands", stands), ("felt", felt), ("random", chance)):
            tokens[f"{name} {share}"] = select.top(score, count)
    tokens["one frame of ten"] = select.top(steady, TENTH)
    for count in (12, 6):
        tokens[f"stands 1/{480 // count}"] = select.top(stands, count)
        tokens[f"felt 1/{480 // count}"] = select.top(felt, count)
    tokens["felt, hour's 0.05"] = select.above(felt, .05)
    for share in (.02, .05, .1, .2):
        tokens[f"stands, hour's {share:g}"] = select.above(stands, share)
    tokens["moved, hour's 0.1"] = select.above(moved, .1)
    busy = stands[:pages * PAGE].reshape(pages, -1).topk(TENTH, 1).values.mean(1)
    return dict(select=select, tokens=tokens, pages=pages, busy=busy)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenes", type=int, nargs="+", default=list(range(20)))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=120)
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--coded", action="store_true", help="frames go through the imitated coder of the training")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    model = memory.load(args.model, device)
    args.out.mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(history.choose(max(args.scenes) + 1, args.minutes * 60, args.every)):
        if number not in args.scenes or (args.out / f"{scene.seed}.scores.pt").exists():
            continue
        begin, path = time.time(), args.out / f"{scene.seed}.pt"
        if path.exists():
            video, moved, stands = (a.to(device) for a in torch.load(path))
        else:
            video, moved, stands = hour.seen(model, scene, device, args.coded)
            if device.type == "cpu":
                torch.save((video, moved, stands), path)
        drawn = time.time()
        m = Memory(model, video.float(), hour.HEIGHT // 28, hour.WIDTH // 28)
        kept = time.time()
        chosen = choose(m, video, moved, stands, scene.seed)
        windows = scene.windows(float(LENGTH), float(STRIDE))
        starts = torch.arange(len(windows), device=device) * STRIDE // PAGE
        truth = {rule: torch.tensor([{True: 1, False: 0, None: -1}[w["rules"][rule]] for w in windows]) for rule in questions.RULES}
        asked, scores, gates = scene.questions(20), {}, {}
        for question in asked:
            gate = question.get("gate", question["question"])
            if gate not in gates:
                gates[gate] = signals(m, chosen, batches.encode_pair(gate, "")[0], starts)
            for name, score in gates[gate].items():
                scores.setdefault(name, []).append(score.float().cpu())
        busy = chosen["busy"][starts[:, None] + torch.arange(LENGTH // PAGE, device=device)].amax(1).cpu()
        torch.save(dict(seed=scene.seed, windows=[w["start"] for w in windows], truth=truth, questions=asked, busy=busy, scores={name: torch.stack(each).half() for name, each in scores.items()},
                        light=scene.stage.light, weather=scene.stage.weather, place=scene.stage.place), args.out / f"{scene.seed}.scores.pt")
        print(f"{scene.seed}: drawn and seen {drawn - begin:.0f} s, kept {kept - drawn:.0f} s, {len(gates)} questions {time.time() - kept:.0f} s", flush=True)


if __name__ == "__main__":
    main()
