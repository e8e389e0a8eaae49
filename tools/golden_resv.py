#!/usr/bin/env python3
"""What the equations of V-Rex choose (arXiv 2512.12284, sections IV.B and IV.C), computed in numpy and whole numbers.

  golden_resv.py OUT        (tests/golden/resv.txt)

Written from the paper and from what kernels/hash_clusters/hash_clusters.h and kernels/wicsum/wicsum.h say of rounding; it
shares no code with them. Attention shares are those of numpy's exp in double precision: no case is recorded where they
leave a choice open. The file has numbers and words, blank lines mean nothing:

  case NAME LAYERS KV_HEADS HEAD_DIM HEADS TOKENS ASKED PLANES THRESHOLD SEED SCALE
  calls N COUNT...                 tokens that join at a time
  keys ...                         eighths [layers, tokens, kv_heads * head_dim]
  queries ...                      eighths [asked, heads * head_dim], the same in all layers
  hashes ...                       hexadecimal [layers, tokens]
  clusters first|mean              then of each layer: assigned ... / count, counts ... / bits ... (hexadecimal)
  choices N                        of the clusters of the layer and kind that each names:
  choose first|mean LAYER raw|exp union|pooled RATIO TOKENS    then of each KV head: how many, which
  end
"""

import sys
from fractions import Fraction

import numpy as np

LANES = 32


# --- the numbers of kernels/random ------------------------------------------------------------------------------------


def splitmix(seed, index):
    mask = (1 << 64) - 1
    z = (seed + (index + 1) * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def hyperplanes(count, cols, seed):
    """Box and Muller's normal numbers in multiples of 2^-16."""
    uniform = np.array([((splitmix(seed, i) >> 40) + 0.5) / 2.0**24 for i in range(2 * count * cols)])
    normal = np.sqrt(-2 * np.log(uniform[0::2])) * np.cos(2 * np.pi * uniform[1::2])
    return (np.rint(normal * 65536) / 65536).reshape(count, cols)


# --- section IV.B -----------------------------------------------------------------------------------------------------


def fused(a, b, c):
    """a b + c of f32 numbers, rounded once: the product is exact in f64, and so is the sum of these numbers."""
    return (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(np.float32)


def project(keys, planes):
    """[tokens, planes] in f32: 32 sums a product, then halves."""
    tokens, cols = keys.shape
    width = -(-cols // LANES) * LANES
    keys = np.pad(keys, ((0, 0), (0, width - cols))).astype(np.float32)
    planes = np.pad(planes, ((0, 0), (0, width - cols))).astype(np.float32)
    sums = np.zeros((tokens, len(planes), LANES), np.float32)
    for begin in range(0, width, LANES):
        sums = fused(keys[:, None, begin:begin + LANES], planes[None, :, begin:begin + LANES], sums)
    while sums.shape[-1] > 1:
        half = sums.shape[-1] // 2
        sums = sums[..., :half] + sums[..., half:]
    return sums[..., 0]


def bits_of(values):
    return sum(1 << p for p, value in enumerate(values) if value > 0)


def cluster(keys, projections, threshold, kind):
    """The HC table: which cluster each token is in, and of each cluster the sum of keys, tokens and bits."""
    assigned, table = [], []
    for key, values in zip(keys, projections):
        own = bits_of(values)
        distances = [bin(entry["bits"] ^ own).count("1") for entry in table]
        best = min(range(len(table)), key=distances.__getitem__, default=None)
        if best is None or not distances[best] < threshold:
            assigned.append(len(table))
            table.append({"sum": key.astype(np.float32), "values": values.copy(), "tokens": 1, "bits": own})
            continue
        entry = table[best]
        assigned.append(best)
        entry["sum"] = entry["sum"] + key.astype(np.float32)
        entry["values"] = entry["values"] + values
        entry["tokens"] += 1
        if kind == "mean":
            entry["bits"] = bits_of(entry["values"])
    return assigned, table


# --- section IV.C -----------------------------------------------------------------------------------------------------


def scores_of(queries, table, kv_head, heads, kv_heads, dim, scale):
    """[rows, clusters] in 2^-16: rows are tokens and the query heads of this KV head."""
    group = heads // kv_heads
    rows = queries.reshape(len(queries), kv_heads, group, dim)[:, kv_head].reshape(-1, dim).astype(np.float32)
    means = np.array([entry["sum"][kv_head * dim:(kv_head + 1) * dim] / np.float32(entry["tokens"]) for entry in table], np.float32)
    sums = np.zeros((len(rows), len(table)), np.float32)
    for d in range(dim):
        sums = fused(rows[:, None, d], means[None, :, d], sums)
    return np.rint(np.float64(np.float32(scale) * sums) * 65536).astype(np.int64)


class Open(Exception):
    """A choice that a last bit decides."""


def first_past(order, weights, threshold, close):
    """Equation 3: clusters by descending order until their weights exceed the threshold; all if they never do."""
    ranked = sorted(range(len(order)), key=lambda c: (-order[c], c))
    reached = 0
    for t, c in enumerate(ranked):
        reached = reached + weights[c]
        if close and 0 < abs(reached - threshold) < close:
            raise Open
        if reached > threshold:
            return ranked[:t + 1]
    return ranked


def choose(scores, tokens, kind, rows, ratio, budget):
    clusters = range(len(tokens))
    if budget == 0 and ratio == 1:
        return list(clusters)
    exact = Fraction(round(ratio * 2**20), 2**20)

    def one(order, weights, total, close):
        if budget > 0:
            return first_past(order, tokens, budget - 1, 0)
        return first_past(order, weights, total * (exact if close == 0 else float(exact)), close)

    chosen, shares = set(), np.zeros(len(tokens))
    for row in scores:
        if kind == "raw":
            weights = [int(row[c]) * tokens[c] for c in clusters]
            chosen |= set(one([int(s) for s in row], weights, sum(weights), 0))
            continue
        mass = np.exp((row - row.max()) / 65536)
        weights = [mass[c] * tokens[c] for c in clusters]
        total = sum(weights)
        if rows == "union":
            chosen |= set(one([int(s) for s in row], weights, total, 1e-6 * total))
        shares += mass / total
    if rows == "pooled" and len(scores) > 0:
        different = np.unique(shares)
        if len(different) > 1 and np.diff(different).min() < 1e-9:
            raise Open
        weights = [shares[c] * tokens[c] for c in clusters]
        chosen = set(one(list(shares), weights, sum(weights), 1e-6 * sum(weights)))
    return sorted(chosen)


# --- cases ------------------------------------------------------------------------------------------------------------


def scene(random, layers, tokens, cols, walls, noise, moving):
    """Eighths: walls that are seen again and again, a little off, and some tokens that are like none."""
    wall = random.integers(-24, 25, (layers, walls, cols))
    which = random.integers(0, walls, tokens)
    keys = wall[:, which] + random.integers(-noise, noise + 1, (layers, tokens, cols))
    strange = random.random(tokens) < moving
    keys[:, strange] = random.integers(-24, 25, (layers, int(strange.sum()), cols))
    return keys


def cases():
    random = np.random.default_rng(12)

    def case(name, keys, heads, kv_heads, planes=32, threshold=7, calls=None, queries=None, asked=3, seed=5, scale=0.25):
        layers, tokens, cols = keys.shape
        dim = cols // kv_heads
        if queries is None:
            queries = random.integers(-8, 9, (asked, heads * dim))
        return {"name": name, "keys": keys, "heads": heads, "kv_heads": kv_heads, "dim": dim, "planes": planes, "threshold": threshold,
                "calls": calls or [tokens], "queries": queries, "seed": seed, "scale": scale}

    yield case("scene", scene(random, 3, 70, 32, 6, 3, 0.3), 4, 2, calls=[1, 10, 40, 19])
    yield case("drift", np.cumsum(random.integers(-2, 3, (1, 60, 40)), axis=1) + random.integers(-24, 25, (1, 1, 40)), 5, 1)
    yield case("noise", random.integers(-24, 25, (2, 50, 36)), 6, 3, threshold=12, calls=[25, 25])
    yield case("one_plane", scene(random, 1, 30, 16, 3, 2, 0.2), 2, 1, planes=1, threshold=1)
    yield case("sixty_four_planes", scene(random, 1, 40, 24, 5, 4, 0.2), 4, 2, planes=64, threshold=9)
    yield case("one_cluster", scene(random, 2, 20, 16, 1, 1, 0), 2, 1, threshold=33)
    yield case("all_apart", scene(random, 1, 25, 16, 2, 1, 0), 2, 1, threshold=0)
    yield case("one_token", scene(random, 2, 1, 16, 1, 1, 0), 4, 2)
    away = random.integers(1, 25, (1, 30, 16))
    yield case("all_negative", away, 2, 1, threshold=2, queries=-random.integers(1, 9, (2, 32)))
    mixed = random.integers(-24, 25, (1, 30, 16))
    yield case("mixed_signs", np.concatenate([mixed, -mixed], axis=1), 2, 1, threshold=3, asked=6)
    yield case("no_scores", scene(random, 1, 20, 16, 4, 2, 0.2), 2, 1, threshold=4, queries=np.zeros((2, 32), int))
    # Queries that see one column alone: many equal scores, with other counts.
    walls = random.integers(-24, 25, (14, 16))
    walls[:, 0], walls[:, 8] = np.arange(14) % 3 * 8, 8
    column = np.zeros((2, 2, 16), int)
    column[:, 0, 0], column[:, 1, 8] = 8, -8
    yield case("ties", walls[random.integers(0, 14, (1, 60))], 2, 1, threshold=1, queries=column.reshape(2, 32))
    yield case("zeros", np.zeros((1, 9, 8), int), 1, 1, queries=random.integers(-8, 9, (1, 8)), threshold=1)
    yield case("nobody_asks", scene(random, 1, 12, 16, 3, 2, 0.2), 2, 1, asked=0)


def words(values):
    return " ".join(str(value) for value in np.asarray(values).reshape(-1).tolist())


def write(case, out):
    keys, queries = case["keys"], np.asarray(case["queries"])
    layers, tokens, cols = keys.shape
    planes = hyperplanes(case["planes"], cols, case["seed"])
    print(f"case {case['name']} {layers} {case['kv_heads']} {case['dim']} {case['heads']} {tokens} {len(queries)} {case['planes']} "
          f"{case['threshold']} {case['seed']} {case['scale']}", file=out)
    print(f"calls {len(case['calls'])} {words(case['calls'])}", file=out)
    print(f"keys {words(keys)}\nqueries {words(queries)}", file=out)
    projected = [project(keys[layer] / 8, planes) for layer in range(layers)]
    print("hashes " + " ".join(f"{bits_of(values):x}" for of_layer in projected for values in of_layer), file=out)
    tables = {}
    for kind in ("first", "mean"):
        print(f"clusters {kind}", file=out)
        for layer in range(layers):
            assigned, table = cluster(keys[layer] / 8, projected[layer], case["threshold"], kind)
            tables[kind, layer] = table
            print(words(assigned), file=out)
            print(len(table), words([entry["tokens"] for entry in table]), file=out)
            print(" ".join(f"{entry['bits']:x}" for entry in table), file=out)
    choices, left = [], 0
    for kind, layer in (("first", 0), ("mean", layers - 1)):
        counts = [entry["tokens"] for entry in tables[kind, layer]]
        for scores, rows in (("raw", "union"), ("exp", "union"), ("exp", "pooled")):
            for ratio, budget in ((0.3, 0), (0, 0), (0.5, 0), (0.9, 0), (1, 0), (0.3, 1), (0.3, tokens // 3 + 1), (0.3, tokens + 1)):
                try:
                    lists = [choose(scores_of(queries / 8, tables[kind, layer], head, case["heads"], case["kv_heads"], case["dim"],
                                              case["scale"]), counts, scores, rows, ratio, budget) if len(queries) else []
                             for head in range(case["kv_heads"])]
                except Open:
                    left += 1
                    continue
                choices.append(f"choose {kind} {layer} {scores} {rows} {ratio} {budget}\n" +
                               "\n".join(f"{len(one)} {words(one)}" for one in lists))
    print(f"choices {len(choices)}", file=out)
    print("\n".join(choices) + "\nend\n", file=out)
    return f"{case['name']}: {[len(tables['first', layer]) for layer in range(layers)]} clusters, {len(choices)} choices, {left} left open"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for case in cases():
            print(write(case, out))


if __name__ == "__main__":
    main()
