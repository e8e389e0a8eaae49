#!/usr/bin/env python3
"""What is answered about an hour by each method, for each question of tools/scenes/history.py.

    tools/evaluation/recall/methods.py OUT --scenes 0 1 2 [--minutes 60] [--device cuda]

OUT/SEED.found.pt holds, beside what signals.py writes of fewer signals, `answers`: for each question the windows that each method reads, how sure "Yes" is there, and its sentence.
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
from report import best
from scenes import history, questions
from signals import LENGTH, STRIDE, TENTH, Selections, normal

PAGES, READ = LENGTH // PAGE, 4
COARSE = "stands, hour's 0.02"


def rolling(score, share, most=96, behind=75):
    """The pairs and cells of each page that change more than all but `share` of the pages before did, as one knows it when the page is made; `most` a page."""
    flat = score[:len(score) // PAGE * PAGE].reshape(len(score) // PAGE, -1)
    chosen = flat.topk(most, 1)
    least = torch.stack([flat[max(0, page - behind):page + 1].flatten().float().quantile(1 - share) if flat[max(0, page - behind):page + 1].numel() < 16_000_000 else flat[page].max() for page in range(len(flat))])
    there = chosen.values > least[:, None]
    return there, chosen.indices


def tokens_of(m, stands, seed):
    """The tokens of each page by which it is looked for."""
    pages = m.pairs // PAGE
    select = Selections(pages, m.cells, m.device)
    chance = torch.rand(stands.shape, generator=torch.Generator().manual_seed(seed)).to(m.device)
    raw = stands
    stands = normal(stands)
    tokens = {"all": select.top(chance, PAGE * m.cells), "stands 1/40": select.top(stands, TENTH // 4)}
    for share in (.01, .02, .05, .28):
        tokens[f"stands, hour's {share:g}"] = select.above(stands, share)
    tokens["changed, hour's 0.02"] = select.above(raw, .02)
    there, index = rolling(stands, .02)
    pair = torch.arange(pages, device=m.device)[:, None] * PAGE + index // m.cells
    tokens["stands, last minutes' 0.02"] = torch.where(there, pair, -1), index % m.cells
    busy = stands[:pages * PAGE].reshape(pages, -1).topk(TENTH, 1).values.mean(1)
    return select, tokens, busy


def int4(x):
    """Rounded to 4 bits, each token's halves of 32 numbers between their least and greatest."""
    parts = x.view(*x.shape[:-1], -1, 32)
    low, high = parts.amin(-1, keepdim=True), parts.amax(-1, keepdim=True)
    step = ((high - low) / 15).clamp_min(1e-8)
    return (((parts - low) / step).round() * step + low).view_as(x)


def whole(m, starts, pages=PAGES):
    """All tokens of windows of so many pages that begin with the pages `starts`."""
    pair = (starts[:, None] * PAGE + torch.arange(pages * PAGE, device=m.device)).repeat_interleave(m.cells, 1)
    cell = torch.arange(m.cells, device=m.device).repeat(pages * PAGE).expand(len(starts), -1)
    return pair, cell, pair - starts[:, None] * PAGE


def composed(m, pages):
    """The tokens of pages from anywhere, as if they followed one another."""
    pages = torch.tensor(sorted(pages), device=m.device)
    pair = (pages[:, None] * PAGE + torch.arange(PAGE, device=m.device)).flatten().repeat_interleave(m.cells)[None]
    cell = torch.arange(m.cells, device=m.device).repeat(len(pages) * PAGE)[None]
    return pair, cell, torch.arange(len(pages) * PAGE, device=m.device).repeat_interleave(m.cells)[None]


def clusters(m, prompts, share):
    """Odds when each layer attends to the clusters (a place during a page) that hold `share` of the mass, united over heads; and the share of tokens that is read."""
    ids = torch.cat([m.after, torch.tensor(prompts, device=m.device)])
    n, pages = len(ids), m.pairs // PAGE
    at = m.before + max(m.rows, m.columns) + torch.arange(n, device=m.device)
    cos, sin = m.angles(at[:, None].expand(-1, 3))
    # The last pair stands where a window's last one does; what is older lies before it.
    place = torch.arange(pages * PAGE, device=m.device) - pages * PAGE + LENGTH
    kcos, ksin = m.angles(m.positions(place))
    x, read = m.text.embed_tokens(ids)[None], []
    own = torch.ones(n, n, dtype=torch.bool, device=m.device).tril()
    for number, layer in enumerate(m.text.layers):
        q, k, v = m._qkv(layer, x)
        q, k = memory.rotate(q, cos, sin), memory.rotate(k, cos, sin)
        keys = memory.rotate(m.keys[number][:pages * PAGE], kcos, ksin)
        centre = keys.view(pages, PAGE, m.cells, -1).mean(1).flatten(0, 1)
        score = q[0].flatten(0, 1) @ centre.T / m.dim ** .5
        mass = torch.softmax(score, -1)
        order = mass.sort(-1, descending=True)
        needed = order.values.cumsum(-1) - order.values < share
        chosen = torch.zeros_like(mass, dtype=torch.bool).scatter(1, order.indices, needed).any(0)
        read.append(float(chosen.float().mean()))
        mask = chosen.view(pages, 1, m.cells).expand(-1, PAGE, -1).flatten()
        pk, pv = m.prefix[number]
        kk = torch.cat([pk, keys.flatten(0, 1)[mask], k[0]], 0)[None, None].expand(-1, m.heads, -1, -1)
        vv = torch.cat([pv, m.values[number][:pages * PAGE].flatten(0, 1)[mask], v[0]], 0)[None, None].expand(-1, m.heads, -1, -1)
        seen = torch.cat([torch.ones(n, m.before + int(mask.sum()), dtype=torch.bool, device=m.device), own], 1)
        y = memory.F.scaled_dot_product_attention(q, kk, vv, attn_mask=seen)
        x = x + layer.self_attn.o_proj(y.transpose(1, 2).flatten(2))
        x = x + layer.mlp(layer.post_attention_layernorm(x))
    return float(m.odds(m.text.norm(x[0, -1]))), float(np.mean(read))


def scored(m, select, tokens, prompts, starts, coded):
    """Signals (windows,) of a gate."""
    out = {}
    for name, chosen in tokens.items():
        looks = name == COARSE
        found = m.ask(prompts, *select.windows(chosen, starts, PAGES), looks=looks)
        out[name] = m.odds(found[0] if looks else found)
        if looks:
            out[f"{name}: exit after 2"] = m.odds(m.text.norm(found[2][1]))
            out[f"{name}: mass, layer 2"] = torch.logsumexp(found[1][1], 0)
    kept, (m.keys, m.values) = (m.keys, m.values), coded
    out[f"{COARSE}: int4"] = m.odds(m.ask(prompts, *select.windows(tokens[COARSE], starts, PAGES)))
    m.keys, m.values = kept
    queries = m.queries(prompts)
    for number in (1, 3):
        mean_q = queries[number][:, 1:-len(batches.encode_pair([], [])[0])].mean((0, 1))
        mean_k = m.keys[number][:select.pages * PAGE].reshape(select.pages, -1, m.dim).mean(1)
        cos = torch.cosine_similarity(mean_k, mean_q[None], 1)
        out[f"rekv, layer {number + 1}"] = cos[starts[:, None] + torch.arange(PAGES, device=m.device)].amax(1)
    # A page with the one before it, by the coarse tokens: for what is composed of pages.
    pair = m.odds(m.ask(prompts, *select.windows(tokens[COARSE], torch.arange(select.pages - 1, device=m.device), 2)))
    return out, torch.cat([pair, pair[-1:]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--scenes", type=int, nargs="+", default=list(range(20)))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--every", type=float, default=120)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--model", default="models/demo")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    device = torch.device(args.device)
    model = memory.load(args.model, device)
    words = batches.tokenizer(str(Path(args.model) / "tokenizer.json"))
    args.out.mkdir(parents=True, exist_ok=True)
    for number, scene in enumerate(history.choose(max(args.scenes) + 1, args.minutes * 60, args.every)):
        target = args.out / f"{scene.seed}.found.pt"
        if number not in args.scenes or target.exists():
            continue
        begin, path = time.time(), args.out / f"{scene.seed}.pt"
        if path.exists():
            video, moved, stands = (a.to(device) for a in torch.load(path))
        else:
            video, moved, stands = hour.seen(model, scene, device)
            if device.type == "cpu":
                torch.save((video, moved, stands), path)
        drawn = time.time()
        with torch.no_grad():
            m = Memory(model, video.float(), hour.HEIGHT // 28, hour.WIDTH // 28)
            coded = [[int4(a) for a in kind] for kind in (m.keys, m.values)]
            select, tokens, busy = tokens_of(m, stands, scene.seed)
            windows = scene.windows(float(LENGTH), float(STRIDE))
            starts = torch.arange(len(windows), device=device) * STRIDE // PAGE
            truth = {rule: torch.tensor([{True: 1, False: 0, None: -1}[w["rules"][rule]] for w in windows]) for rule in questions.RULES}
            busiest = busy[starts[:, None] + torch.arange(PAGES, device=device)].amax(1).cpu()
            shares = {name: float((chosen[0] >= 0).sum() / (select.pages * PAGE * m.cells)) for name, chosen in tokens.items()}
            kept = time.time()
            asked, wordings, gates, answers, scores = scene.questions(args.questions), {}, {}, [], {}
            for row, question in enumerate(asked):
                # One wording a rule: what is looked for does not depend on how it is to be told.
                gate = wordings.setdefault(question["rule"], question.get("gate", question["question"]))
                prompts = batches.encode_pair(gate, "")[0]
                if gate not in gates:
                    out, pairs = scored(m, select, tokens, prompts, starts, coded)
                    gates[gate] = {name: score.float().cpu() for name, score in out.items()}, pairs.cpu(), {share: clusters(m, prompts, share) for share in (.3, .9)} | {"everything": clusters(m, prompts, 2.0)}
                signals, pairs, grouped = gates[gate]
                for name, score in signals.items():
                    scores.setdefault(name, []).append(score)
                full, truly, count = signals["all"].numpy(), truth[question["rule"]].numpy(), len(windows)
                chance = np.random.default_rng([scene.seed, row])
                ranks = {"windows": signals[COARSE].numpy(), "exhaustive": full, "recent": np.arange(count), "random": chance.random(count), "changed": busiest.numpy(), "rekv": signals["rekv, layer 4"].numpy(),
                         "uniform": np.isin(np.arange(count), np.linspace(0, count - 1, 2 * READ + 1).round().astype(int)[1::2]).astype(float)}
                chosen = {}
                for name, rank in ranks.items():
                    read = best(rank, READ + (name not in ("windows", "exhaustive")) * 2)
                    chosen[name] = max(read, key=lambda window: full[window])
                record = dict(chosen={name: int(w) for name, w in chosen.items()}, odds={name: float(full[w]) for name, w in chosen.items()}, clusters=grouped)
                # The true window, computed by itself: the latest time that it happened, in the middle; else one at random.
                true = np.flatnonzero(truly == 1)
                if len(true) and question["windows"]:
                    last = question["windows"][-1]
                    near = [w for w in true if w * STRIDE < last["to"] and w * STRIDE + LENGTH > last["from"]] or true[-5:]
                    oracle = int(near[len(near) // 2])
                else:
                    oracle = int(chance.integers(count))
                fresh = Memory(model, video[oracle * STRIDE:oracle * STRIDE + LENGTH].float(), m.rows, m.columns)
                zero = torch.zeros(1, dtype=torch.long, device=device)
                again = Memory(model, video[chosen["windows"] * STRIDE:chosen["windows"] * STRIDE + LENGTH].float(), m.rows, m.columns)
                record["oracle"] = oracle
                record["odds"]["oracle"] = float(m.odds(fresh.ask(prompts, *whole(fresh, zero)))[0])
                record["odds"]["windows, anew"] = float(m.odds(again.ask(prompts, *whole(again, zero)))[0])
                record["odds"]["oracle, kept"] = float(full[oracle])
                pages = best_pages(pairs.numpy(), PAGES)
                record["pages"] = pages
                record["odds"]["compose"] = float(m.odds(m.ask(prompts, *composed(m, pages)))[0])
                # Where in the window that is read: the best two and three pages of it.
                first = chosen["windows"]
                for size in (2, 3):
                    inner = first + torch.arange(PAGES - size + 1, device=device)
                    odds = m.odds(m.ask(prompts, *whole(m, inner, size)))
                    record[f"inner {size}"] = int(inner[odds.argmax()])
                    record["odds"][f"inner {size}"] = float(odds.max())
                m.keys, m.values, held = coded[0], coded[1], (m.keys, m.values)
                record["odds"]["windows, int4"] = float(m.odds(m.ask(prompts, *whole(m, torch.tensor([chosen["windows"]], device=device)))))
                m.keys, m.values = held
                if question["kind"] != "whether" and max(record["odds"].values()) > 0:
                    ids = batches.encode_pair(question["question"], "")[0]
                    which = sorted({w for name, w in chosen.items() if record["odds"][name] > 0})
                    # What was computed by itself stands behind the hour's pairs.
                    m.keys, m.values = ([torch.cat(both) for both in zip(*kinds)] for kinds in ((m.keys, fresh.keys, again.keys), (m.values, fresh.values, again.values)))
                    pair, cell, place = whole(m, torch.tensor([*which, oracle, 0, 0], device=device))
                    pair[-2] += m.pairs
                    pair[-1] += m.pairs + LENGTH
                    said = [words.decode(each) for each in m.say(ids, *(torch.cat(both) for both in zip((pair, cell, place), composed(m, pages))))]
                    m.keys, m.values = held
                    by = dict(zip(which, said))
                    record["said"] = {name: by[w] for name, w in chosen.items() if w in by} | {"oracle, kept": said[-4], "oracle": said[-3], "windows, anew": said[-2], "compose": said[-1]}
                    record["said"]["inner 2"] = words.decode(m.say(ids, *whole(m, torch.tensor([record["inner 2"]], device=device), 2))[0])
                answers.append(record)
        torch.save(dict(seed=scene.seed, windows=[w["start"] for w in windows], truth=truth, questions=asked, busy=busiest, shares=shares, answers=answers, light=scene.stage.light, weather=scene.stage.weather,
                        place=scene.stage.place, scores={name: torch.stack(each).half() for name, each in scores.items()}), target)
        print(f"{scene.seed}: drawn and seen {drawn - begin:.0f} s, kept {kept - drawn:.0f} s, {len(gates)} gates, {len(asked)} questions {time.time() - kept:.0f} s", flush=True)


def best_pages(pairs, count):
    """The pages that are best with the one behind them, and that one."""
    pages = []
    for page in np.argsort(-pairs, kind="stable"):
        for each in (int(page), int(page) + 1):
            if each not in pages and each < len(pairs) and len(pages) < count:
                pages.append(each)
        if len(pages) == count:
            return sorted(pages)


if __name__ == "__main__":
    main()
