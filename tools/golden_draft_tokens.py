#!/usr/bin/env python3
"""Which visual tokens of a window a drafter sees, by numpy from HIPPO's equations 3 to 7 (arXiv 2601.08273, section 5.1).

  golden_draft_tokens.py OUT        (tests/golden/draft_tokens.txt)

Written from the paper and from what kernels/similarity/similarity.h and engine/prune/draft_tokens.h say of what it leaves
open; it shares no code with them, and all is in double precision. `specvlm` is that of zju-jiyicheng/SpecVLM (arXiv
2508.16201; `drop_visual_tokens_specvlm` with `percentage` 0.4, as its inference.py calls it). Choices that a last bit decides
are not recorded. The file has numbers and words, blank lines mean nothing:

  case NAME FRAMES ROWS COLUMNS WIDTH
  frame TOKENS                     then places ... / embeddings ... [tokens, width], 999: infinite, 998: no number /
                                   attention ... / to_before ... / spread ..., -9: not known
  scores FIRST FRAMES              of the window of these frames, of all its tokens: change ... / hippo ... / early ..., which
                                   is hippo without attention
  keep SELECTION FIRST FRAMES SHARE N TOKEN...
  end
"""

import sys

import numpy as np

EDGE, NONE = 5, -9.0


# --- equations 3 to 7 ---------------------------------------------------------------------------------------------------


def directions(embeddings):
    """[tokens, width] of length 1, rows of no number for those without a direction."""
    squares = (embeddings**2).sum(1)
    good = (squares >= 1e-30) & (squares <= 1e30)
    return np.where(good[:, None], embeddings / np.sqrt(np.where(good, squares, 1))[:, None], np.nan)


def similarities(frame, before, columns):
    """Cosines with the frame before, and equation 6, of each token."""
    unit = directions(frame["embeddings"])
    to_before = np.full(len(unit), np.nan)
    if before is not None:
        same, here, there = np.intersect1d(frame["places"], before["places"], return_indices=True)
        to_before[here] = (unit[here] * directions(before["embeddings"])[there]).sum(1)
    crops = frame["places"] // columns // EDGE * 10000 + frame["places"] % columns // EDGE
    spread = np.full(len(unit), np.nan)
    for crop in np.unique(crops):
        members = np.flatnonzero((crops == crop) & ~np.isnan(unit[:, 0]))
        if len(members):
            spread[members] = (unit[members] @ unit[members].T).var(1)
    return to_before, spread


def temporal(window):
    """Equations 3 and 4 within a window, in multiples of 2^-20."""
    scores = []
    for f, frame in enumerate(window):
        terms = np.full((2, len(frame["places"])), np.nan)
        if f > 0:
            terms[0] = frame["to_before"]
        if f + 1 < len(window):
            after = window[f + 1]
            _, here, there = np.intersect1d(frame["places"], after["places"], return_indices=True)
            terms[1, here] = after["to_before"][there]
        known = (~np.isnan(terms)).sum(0)
        change = np.round((1 - np.nansum(terms, 0) / np.maximum(known, 1)) * 2**20) / 2**20
        scores.append(np.where(known > 0, change, np.nan))
    return scores


def normalized(scores, least):
    """Of what is known; 0 where there is no more deviation than rounding makes."""
    known = scores[~np.isnan(scores)]
    if not len(known) or known.std() <= (least if least else 1e-6 * abs(known.mean())):
        return np.zeros(len(scores))
    return np.nan_to_num((scores - known.mean()) / known.std())


def hippo(window, attention=True):
    return np.concatenate([
        normalized(frame["spread"], 1e-12) + normalized(change, 1e-6) + (normalized(frame["attention"], None) if attention else 0)
        for frame, change in zip(window, temporal(window))])


def change(window):
    frames = temporal(window)
    everything = np.concatenate(frames)
    rest = 0.0 if np.isnan(everything).all() else np.nanmean(everything)
    return np.concatenate([np.where(np.isnan(one), rest if np.isnan(one).all() else np.nanmean(one), one) for one in frames])


class Open(Exception):
    """A choice that a last bit decides."""


def top(scores, count):
    order = np.argsort(-scores, kind="stable")
    if 0 < count < len(scores) and 0 < scores[order[count - 1]] - scores[order[count]] < 1e-4 * max(1e-2, scores.std()):
        raise Open
    return np.sort(order[:count])


def attention(window):
    return np.concatenate([frame["attention"] for frame in window])


def specvlm(scores, count):
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(scores[order]) >= 0.4 * scores.sum() - 1e-12
    first = min(count, int(np.argmax(reached)) + 1)
    rest = np.setdiff1d(np.arange(len(scores)), order[:first])
    spaced = rest[np.linspace(0, len(rest) - 1, count - first).astype(int)] if count > first else []
    return np.sort(np.concatenate([order[:first], np.array(spaced, int)]))


def keep(selection, window, share):
    tokens = sum(len(frame["places"]) for frame in window)
    count = min(tokens, max(1, int(np.floor(share * tokens + 0.5 + 1e-9))))
    if selection == "hippo":
        return top(hippo(window), count)
    if selection == "early":
        return top(hippo(window, False), count)
    if selection == "change":
        return top(change(window), count)
    if selection == "attention":
        return top(attention(window), count)
    return specvlm(attention(window), count)


# --- cases ------------------------------------------------------------------------------------------------------------


def film(random, frames, rows, columns, width, pruned, moving=0.3):
    """Walls of 3 x 3 places that look alike, some of whose tokens change; others stay to the last bit."""
    y, x = np.divmod(np.arange(rows * columns), columns)
    wall = random.integers(-20, 21, (rows * columns, width))[y // 3 * columns + x // 3]
    still = wall + random.integers(-6, 7, wall.shape)
    made = []
    for _ in range(frames):
        moves = random.random(rows * columns) < moving
        picture = np.where(moves[:, None], wall + random.integers(-14, 15, wall.shape), still).astype(float)
        there = np.flatnonzero(random.random(rows * columns) >= pruned)
        made.append({"places": there, "embeddings": picture[there], "attention": random.integers(1, 400, len(there)).astype(float)})
    return made


def cases():
    random = np.random.default_rng(21)
    yield "whole", 6, 6, film(random, 5, 6, 6, 24, 0)
    yield "pruned", 7, 11, film(random, 5, 7, 11, 16, 0.45)
    yield "sparse", 12, 9, film(random, 4, 12, 9, 8, 0.8)
    yield "wide", 2, 3, film(random, 3, 2, 3, 523, 0.1)
    yield "one_place", 1, 1, film(random, 4, 1, 1, 7, 0)
    yield "one_element", 3, 4, film(random, 3, 3, 4, 1, 0.2)
    yield "still", 5, 6, film(random, 4, 5, 6, 12, 0.2, 0)
    ugly = film(random, 5, 6, 7, 12, 0.2)
    for frame in ugly:
        broken = random.choice(len(frame["places"]), 6, replace=False)
        frame["embeddings"][broken[:3]] = 0
        frame["embeddings"][broken[3], 5] = np.inf
        frame["embeddings"][broken[4], 11] = -np.inf
        frame["embeddings"][broken[5], 0] = np.nan
    yield "ugly", 6, 7, ugly
    zeros = film(random, 3, 4, 4, 6, 0)
    zeros[1]["embeddings"][:] = 0
    yield "one_black", 4, 4, zeros
    gone = film(random, 4, 4, 6, 10, 0.1)
    gone[2] = {"places": np.arange(0), "embeddings": np.zeros((0, 10)), "attention": np.zeros(0)}
    yield "one_empty", 4, 6, gone


def words(values):
    return " ".join(f"{value:.9g}" for value in np.asarray(values, float).reshape(-1).tolist())


def write(name, rows, columns, frames, out):
    width = frames[0]["embeddings"].shape[1]
    print(f"case {name} {len(frames)} {rows} {columns} {width}", file=out)
    before = None
    for frame in frames:
        with np.errstate(invalid="ignore"):
            frame["to_before"], frame["spread"] = similarities(frame, before, columns)
        before = frame
        told = np.nan_to_num(frame["embeddings"], nan=998, posinf=999, neginf=-999)
        print(f"frame {len(frame['places'])}", file=out)
        for values in (frame["places"], told, frame["attention"], np.nan_to_num(frame["to_before"], nan=NONE),
                       np.nan_to_num(frame["spread"], nan=NONE)):
            print(words(values), file=out)
    kept, left = 0, 0
    for first, count in sorted({(0, len(frames)), (0, 1), (1, 2), (len(frames) - 2, 2)}):
        window = frames[first:first + count]
        if sum(len(frame["places"]) for frame in window) == 0:
            continue
        print(f"scores {first} {count}", file=out)
        for scores in (change(window), hippo(window), hippo(window, False)):
            print(words(scores), file=out)
        for selection in ("hippo", "early", "change", "attention", "specvlm"):
            for share in (0.0, 0.02, 0.1, 0.25, 0.5, 1.0):
                try:
                    chosen = keep(selection, window, share)
                except Open:
                    left += 1
                    continue
                kept += 1
                print(f"keep {selection} {first} {count} {share} {len(chosen)} {words(chosen)}", file=out)
    print("end\n", file=out)
    return f"{name}: {kept} choices, {left} left open"


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__.strip())
    with open(sys.argv[1], "w", encoding="ascii") as out:
        for name, rows, columns, frames in cases():
            print(write(name, rows, columns, frames, out))


if __name__ == "__main__":
    main()
