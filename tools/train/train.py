#!/usr/bin/env python3
"""Trains the demo model, and the drafter after it, on drawn scenes, photographs and coded windows. One process a GPU; runs in parts.

    tools/train/train.py --bank BANK.npz --tokenizer DIR --out OUT --minutes 18                     a target
    torchrun --nproc_per_node 4 tools/train/train.py ...                                            the same on four GPUs
    tools/train/train.py ... --coded DIR --coded-from .85                                           the last part also on windows that went through a codec
    tools/train/train.py ... --model draft --teacher OUT --minutes 18                               a drafter that learns from the target's answers, beside the target's training

OUT receives the weights (bf16, parts below 15 MB) about every minute and at the end, log.jsonl, and progress.json. A run has a warm-up and a cosine and ends within its minutes;
one that was stopped goes on with --resume where its last weights were kept (with new moments of the optimizer).
Works on the CPU with `--tiny` as a test.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch._dynamo  # noqa: E402
import torch._inductor.config  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import batches  # noqa: E402
import distil  # noqa: E402
import feed  # noqa: E402
import sight  # noqa: E402
from architecture import CONFIGS, MEAN, DEVIATION, demo_config  # noqa: E402
from export import load_weights, mean_weights  # noqa: E402
from scenes import questions, real, render  # noqa: E402
from twin import Model  # noqa: E402


def answer_loss(model, video, batch, blocks, prompt, mask):
    """`video`: frames, or the visual tokens that were made of them."""
    hidden = model(video, prompt, batch["tokens"], batch["positions"], mask)
    where = batch["targets"] != batches.IGNORE
    logits, wanted = model.logits(hidden[where]).float(), batch["targets"][where]
    # The first token of an answer decides; the words after it weigh less each, since there are more of them.
    first = feed.first_tokens(batch, blocks)[where]
    weight = torch.where(first, 1.0, 0.2)
    losses = F.cross_entropy(logits, wanted, reduction="none")
    return (losses * weight).sum() / weight.sum(), first, logits.detach(), where


class Score:
    """Running hits of first tokens: by where the window came from, rule and answer."""

    def __init__(self, blocks):
        self.table, self.block = {}, torch.repeat_interleave(torch.arange(len(blocks)), torch.tensor(blocks))

    def add(self, batch, first, right, where, yes):
        block = self.block.to(where.device)
        rows, places = torch.nonzero(where, as_tuple=True)
        rows, places, right = rows[first], places[first], right[first]
        tag = batch["tags"][rows, block[places]]
        said = (batch["targets"][rows, places] == yes).long()
        keys = (((batch["kinds"][rows] * len(feed.TAGS) + tag) * 2 + said) * 2 + right.long()).cpu().numpy()
        for key, count in zip(*np.unique(keys, return_counts=True)):
            hits = self.table.setdefault(int(key) // 2, [0, 0])
            hits[0] += int(count) * (int(key) % 2)
            hits[1] += int(count)

    def report(self):
        out = {}
        for key, (hits, count) in sorted(self.table.items()):
            said, rest = key % 2, key // 2
            tag, kind = feed.TAGS[rest % len(feed.TAGS)], feed.KINDS[rest // len(feed.TAGS)]
            out[f"{kind} {tag} {'yes' if said else 'no'}"] = [round(hits / count, 3), count]
        self.table = {}
        return out


def save(model, out, done):
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
    (Path(out) / "progress.json").write_text(json.dumps(dict(done=done)))


def sheet(frames, path):
    """A picture of a batch, to look at what is trained on: a window a row, its frames evenly spread."""
    from PIL import Image

    count = min(12, len(frames))
    chosen = frames[:count, :: max(1, frames.shape[1] // 6)][:, :6].float()
    rows = (chosen.permute(0, 3, 1, 4, 2).flatten(2, 3).flatten(0, 1).cpu().numpy() * 255).astype(np.uint8)
    Image.fromarray(rows).save(path, quality=80)


class Ranks:
    """The processes of a run: one, or as many as torchrun started. Gradients are averaged by one reduction over all of them, so each step is that of one large batch."""

    def __init__(self):
        self.rank, self.count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        self.device = f"cuda:{int(os.environ.get('LOCAL_RANK', 0)) % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
        if self.device != "cpu":
            torch.cuda.set_device(self.device)
        if self.count > 1:
            shared = torch.cuda.is_available() and torch.cuda.device_count() >= self.count
            dist.init_process_group("nccl" if shared else "gloo")

    def average(self, parameters):
        if self.count == 1:
            return
        parameters = list(parameters)
        flat = torch.cat([(p.grad if p.grad is not None else torch.zeros_like(p)).flatten() for p in parameters])
        dist.all_reduce(flat)
        flat /= self.count
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters])):
            p.grad = part.view_as(p)

    def agree(self, value):
        """Rank 0's number, on every rank."""
        if self.count == 1:
            return value
        shared = torch.tensor([value], dtype=torch.float64, device=self.device)
        dist.broadcast(shared, 0)
        return float(shared)


class Teacher:
    """The target that a drafter learns from; its training may go on meanwhile, so its weights are read again where they have changed."""

    def __init__(self, folder, config, device):
        self.folder, self.stamp, self.looked = Path(folder), None, 0.0
        self.model = Model(config).to(device).eval().requires_grad_(False)
        waiting = time.time()
        while not list(self.folder.glob("*.safetensors")):
            if time.time() - waiting > 300:
                raise SystemExit(f"train: {folder} holds no weights of a teacher")
            time.sleep(1)
        time.sleep(2)  # for the parts after the first
        self.refresh()

    def refresh(self):
        if time.time() - self.looked < 20:
            return
        self.looked = time.time()
        stamp = max(p.stat().st_mtime for p in self.folder.glob("*.safetensors"))
        # Parts that are just being written are left for the next time.
        if stamp != self.stamp and (self.stamp is None or self.looked - stamp > 5):
            self.stamp = stamp
            self.model.load_state_dict({k: v.float() for k, v in load_weights(self.folder).items()})


def plainly(gradients, model, what):
    """A step whose gradient is not finite, once more without compiled code, and then without fused attention. Returns the norm; says which of the two it was."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    hurt = [name for name, p in model.named_parameters() if p.grad is not None and not torch.isfinite(p.grad).all()]
    print(f"{what}; in {len(hurt)} parameters, {hurt[0] if hurt else ''} to {hurt[-1] if hurt else ''}", flush=True)
    with torch.compiler.set_stance("force_eager"):
        norm = gradients()[-1]
        print(f"{what}; without compiled code: norm {float(norm)}", flush=True)
        if not torch.isfinite(norm):
            with sdpa_kernel([SDPBackend.MATH]):
                norm = gradients()[-1]
            print(f"{what}; without fused attention: norm {float(norm)}", flush=True)
    return norm


class Pictures:
    """Normalised frames of a batch: drawn, or taken from the coded windows that lie on the device."""

    def __init__(self, device, bank, labels):
        self.device = device
        self.plates, self.sprites = (p.to(device) for p in real.Bank(bank, labels).pictures()) if bank else (None, None)
        self.coded = []
        self.mean, self.deviation = (torch.tensor(v, device=device).view(1, 1, 3, 1, 1) for v in (MEAN, DEVIATION))

    @torch.no_grad()
    def __call__(self, batch):
        _, height, width, _ = batch["shape"]
        cuda = self.device != "cpu"
        if "coded" in batch:
            frames = torch.stack([self.coded[k][row] for k, row in batch["coded"].tolist()]).to(torch.float16 if cuda else torch.float32) / 255
        else:
            frames = render.render(batch, height, width, self.plates, self.sprites, torch.float16 if cuda else torch.float32)
        return frames, torch.nan_to_num((frames - self.mean) / self.deviation, 0.0, 0.0, 0.0).to(torch.bfloat16 if cuda else torch.float32)


def temperature(odds, truth):
    """By what the logits have to be divided, so that the log odds of "Yes" (N,) fit the truth best."""
    choices = torch.linspace(.5, 3, 251, dtype=torch.float64)
    return float(choices[torch.stack([F.binary_cross_entropy_with_logits(odds / t, truth.double()) for t in choices]).argmin()])


@torch.no_grad()
def validate(model, folder, pictures, blocks, prompt, yes):
    """Share of right first words on coded windows that training has not seen, by rule and answer, and F1."""
    shards, coded = feed.load_shards(folder)
    pictures.coded, score, rng = [frames.to(pictures.device) for frames in coded], Score(blocks), np.random.default_rng(0)
    said, no = [], batches.token("No")
    for number, shard in enumerate(shards):
        facts = [real.story.scene_story(s["seed"], shard["frames"], shard["fps"], None, (s["aspect"],)).facts for s in shard["scenes"]]
        batch = feed.text_batch(rng, facts, np.full(len(facts), shard["fps"], np.float32), shard["frames"], tuple(shard["shape"]), blocks)
        batch.update(coded=torch.tensor([(number, row) for row in range(len(facts))]), kinds=torch.full((len(facts),), feed.KINDS.index("coded")))
        batch = {k: v.to(pictures.device) if k != "shape" else v.tolist() for k, v in batch.items()}
        mask = batches.Layout(*batch["shape"][:3], blocks + tuple(batch["shape"][3:])).mask(pictures.device)
        # Compiling once more for this would take longer than it does.
        with torch.compiler.set_stance("force_eager"), torch.autocast(pictures.device.split(":")[0], torch.bfloat16, enabled=pictures.device != "cpu"):
            _, first, logits, where = answer_loss(model, pictures(batch)[1], batch, blocks, prompt, mask)
        wanted = batch["targets"][where]
        score.add(batch, first, logits.argmax(-1) == wanted, where, yes)
        chosen = first & ((wanted == yes) | (wanted == no))
        said += zip((logits[chosen, yes] - logits[chosen, no]).tolist(), (wanted[chosen] == yes).tolist())
    if not said:
        print(f"no windows to validate in {folder}", flush=True)
        return
    table, f1 = score.report(), {}
    for rule in questions.RULES:
        (hits, yeses), (kept, noes) = (table.get(f"coded {rule} {said}", [0, 0]) for said in ("yes", "no"))
        right, wrong = hits * yeses, (1 - hits) * yeses + (1 - kept) * noes
        f1[rule] = round(2 * right / max(1e-9, 2 * right + wrong), 3)
    print("validation temperature", round(temperature(*(torch.tensor(column, dtype=torch.float64) for column in zip(*said))), 3), flush=True)
    print("validation F1", json.dumps(f1), {k: v for k, v in table.items() if k.split()[1] in questions.RULES}, flush=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank")
    parser.add_argument("--labels", default=str(TOOLS / "labels"))
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", choices=CONFIGS, default="demo")
    parser.add_argument("--teacher", help="weights of the target from which a drafter learns")
    parser.add_argument("--minutes", type=float, default=8.5)
    parser.add_argument("--weights", help="weights to go on from, as train.py or export.py wrote them; \"A+B\": the mean of two")
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--warmup", type=int, default=200)
    parser.add_argument("--floor", type=float, default=0.02, help="the last rate as a share of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--settled", action="store_true", help="the full range of scenes and lengths from the first step on")
    parser.add_argument("--mix", type=float, nargs=4, default=feed.MIX, help="shares of drawn scenes, drawn things over photographs, collages, real windows")
    parser.add_argument("--coded", help="folder of coded windows (coded.py)")
    parser.add_argument("--coded-share", type=float, default=.2, help="share of the batches that are such windows")
    parser.add_argument("--coded-from", type=float, default=.85, help="how much of the run is over when they are taken in")
    parser.add_argument("--sight", type=float, default=1.0, help="weight of the lessons for the vision tower (sight.py) at the start; a tenth of it at the end")
    parser.add_argument("--resume", action="store_true", help="go on with the run that OUT holds")
    parser.add_argument("--validate", help="folder of coded windows that are scored at the end")
    parser.add_argument("--every", type=int, default=100, help="steps between two lines of the log")
    parser.add_argument("--budget", type=int, default=1920, help="frames in a batch of one process; a multiple of 240 gives every length the same number")
    parser.add_argument("--workers", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10 ** 9)
    parser.add_argument("--compile", choices=("none", "blocks", "all"), default="all")
    parser.add_argument("--tiny", action="store_true")
    return parser.parse_args()


def main():
    args = options()
    begin = time.time()
    ranks = Ranks()
    device, out, blocks = ranks.device, Path(args.out), feed.BLOCKS["explain" if args.teacher else "answer"]
    cuda = device != "cpu"
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(args.seed * 64 + ranks.rank)
    torch.backends.cuda.matmul.allow_tf32 = True
    config = demo_config(text=dict(num_hidden_layers=1), vision=dict(depth=2, fullatt_block_indexes=[1])) if args.tiny else CONFIGS[args.model]()
    model = Model(config).initialise(1).to(device)
    before, table = 0.0, out / "progress.json"
    if args.resume and table.exists():
        args.weights, before = str(out), json.loads(table.read_text())["done"]
    if args.weights:
        model.load_state_dict({k: v.float() for k, v in mean_weights(args.weights.split("+")).items()})
        print("goes on from", args.weights, "at", before, flush=True)
        if ranks.rank == 0:
            save(model, out, before)  # a drafter's run may wait for it
    teacher = Teacher(args.teacher, config if args.tiny else demo_config(), device) if args.teacher else None
    look = sight.Sight(config.text_config.hidden_size).to(device)
    learned = [*model.parameters(), *look.parameters()]
    plain = [p for p in learned if p.dim() > 1]
    rest = [p for p in learned if p.dim() <= 1]
    optimizer = torch.optim.AdamW([dict(params=plain, weight_decay=.05), dict(params=rest, weight_decay=0.0)], lr=args.rate, betas=(.9, .98), fused=cuda)
    if cuda and args.compile != "none":
        torch._dynamo.config.cache_size_limit = 64
        torch._dynamo.config.suppress_errors = True
        # This analysis stops on shapes that vary (seen with torch 2.11).
        torch._inductor.config.triton.coalesce_tiling_analysis = False
        if args.compile == "all":
            render.compile_passes()
        for network in (model, teacher.model) if teacher else (model,):
            for block in [*network.model.visual.blocks, *network.model.language_model.layers]:
                block.compile(dynamic=True)
    batches.use_tokenizer(args.tokenizer)
    pictures = Pictures(device, args.bank, args.labels)
    progress = torch.zeros(1).share_memory_()
    shards = out / f"shards-{ranks.rank}.json" if args.coded else None
    windows = feed.Windows(args.seed, ranks.rank, progress, args.budget, args.bank, args.labels, args.tokenizer, tuple(args.mix), "explain" if args.teacher else "answer", shards, args.coded_share, args.coded_from, args.settled)
    loader = torch.utils.data.DataLoader(windows, batch_size=None, num_workers=args.workers, prefetch_factor=4 if args.workers else None, pin_memory=cuda, persistent_workers=bool(args.workers))
    prompt = batches.prompt_ids(device)
    yes = batches.token("Yes")
    masks, score, rng = {}, Score(blocks), np.random.default_rng([args.seed, ranks.rank, 5])
    log = open(out / "log.jsonl", "a") if ranks.rank == 0 else None
    stamp = saved = time.time()
    seen = words = 0
    waited, total_loss, total_sight, equal = 0.0, torch.zeros((), device=device), torch.zeros((), device=device), torch.zeros((), device=device)
    feed_from = iter(loader)
    train_from, done, step, last, bad = None, 0.0, 0, 0, 0
    while step < args.steps:
        asked = time.time()
        batch = next(feed_from)
        waited += time.time() - asked
        batch = {k: v.to(device, non_blocking=True) if k != "shape" else v.tolist() for k, v in batch.items()}
        train_from = time.time() if train_from is None else train_from
        if step % 10 == 0:
            done = ranks.agree(min(1.0, before + (1 - before) * (time.time() - train_from) / max(1.0, args.minutes * 60 - (train_from - begin) - 4)))
            if shards and not pictures.coded and done >= args.coded_from:
                tables, coded = feed.load_shards(args.coded, ranks.rank, ranks.count)
                pictures.coded = [frames.to(device) for frames in coded]
                shards.write_text(json.dumps(tables))
                print(f"rank {ranks.rank}: {sum(len(t['scenes']) for t in tables)} coded windows", flush=True)
            progress.fill_(done)
        if done >= 1.0:
            break
        for group in optimizer.param_groups:
            group["lr"] = args.rate * min(1.0, (step + 1) / args.warmup) * (args.floor + (1 - args.floor) * 0.5 * (1 + math.cos(math.pi * done)))
        key = tuple(batch["shape"])
        if key not in masks:
            masks[key] = batches.Layout(*key[:3], blocks + key[3:]).mask(device)
        shown, frames = pictures(batch)
        if step == 3 and ranks.rank == 0:
            sheet(shown, out / "sheet.jpg")
        eyes = args.sight * (.1 + .9 * (1 - done))

        def gradients():
            """Loss, what it is made of, and the norm of all processes' mean gradient, which is left in the parameters."""
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast(device.split(":")[0], torch.bfloat16, enabled=cuda):
                video = model.model.visual(frames)
                if teacher:
                    loss, *rest = distil.draft_loss(model, teacher.model, frames, video, batch, blocks, prompt, masks[key], rng)
                else:
                    loss, *rest = answer_loss(model, video, batch, blocks, prompt, masks[key])
                seeing = look(video, batch["sight"])
            (loss + eyes * seeing).backward()
            ranks.average(learned)
            return loss, seeing, rest, torch.nn.utils.clip_grad_norm_(learned, 1.0)

        loss, seeing, rest, norm = gradients()
        if not torch.isfinite(norm):
            bad += 1
            norm = plainly(gradients, model, f"step {step}, rank {ranks.rank}: no finite gradient; {key}, loss {float(loss.detach())}")
        # One bad batch must not spoil the weights: it is passed over, by all processes alike.
        if torch.isfinite(norm):
            optimizer.step()
        elif bad > 200:
            raise RuntimeError("too many batches without a finite gradient")
        if teacher:
            equal, words = equal + rest[0].sum(), words + len(rest[0])
        else:
            first, logits, where = rest
            score.add(batch, first, logits.argmax(-1) == batch["targets"][where], where, yes)
        step += 1
        seen += len(frames)
        total_loss, total_sight = total_loss + torch.nan_to_num(loss.detach()), total_sight + torch.nan_to_num(seeing.detach())
        if ranks.rank == 0 and (step in (1, 2, 5, 20) or step % args.every == 0):
            spent = time.time() - stamp
            line = dict(step=step, seconds=round(time.time() - begin, 1), done=round(done, 3), loss=round(float(total_loss) / (step - last), 4), sight=round(float(total_sight) / (step - last), 4), norm=round(float(norm), 2), rate=round(optimizer.param_groups[0]["lr"], 6),
                        windows_per_second=round(seen * ranks.count / spent, 1), waited=round(waited / spent, 3), memory=round(torch.cuda.max_memory_allocated() / 2 ** 30, 1) if cuda else 0)
            if teacher:
                line["agreement"] = round(float(equal) / max(1, words), 4)
            brief = {}
            if step % args.every == 0 and not teacher:
                line["score"] = score.report()
                brief = {k: v[0] for k, v in line["score"].items() if k.split()[0] in ("drawn", "coded") and k.split()[1] in questions.RULES}
            log.write(json.dumps(line) + "\n")
            log.flush()
            line.pop("score", None)
            print(json.dumps(line), *(f"{k}={v}" for k, v in brief.items()), flush=True)
            stamp, seen, waited, total_loss, total_sight, last, words, equal = time.time(), 0, 0.0, torch.zeros_like(total_loss), torch.zeros_like(total_loss), step, 0, torch.zeros_like(equal)
        if ranks.rank == 0 and time.time() - saved > 55:
            save(model, out, done)
            saved = time.time()
        if teacher:
            teacher.refresh()
    if ranks.rank == 0:
        save(model, out, 1.0)
        print(f"{step} steps, {time.time() - begin:.0f} s", flush=True)
        if args.validate and not teacher:
            validate(model, args.validate, pictures, blocks, prompt, yes)
    if ranks.count > 1:
        dist.barrier()
    # The loader's workers would go on drawing.
    os._exit(0)


if __name__ == "__main__":
    main()
