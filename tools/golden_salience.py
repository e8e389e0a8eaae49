#!/usr/bin/env python3
"""Which tokens of a drawn street stand out, by numpy from the definition of engine/prune/salience.h.

  golden_salience.py OUT        (tests/golden/salience.txt)

Means, medians and quantiles are numpy's own, of all values that there were: no buckets. The street is drawn by whole numbers,
which tests/engine/prune/salience_test.cpp draws again: a ground with texture and noise, leaves that move in some tokens, a
light that drifts, somebody who walks in, stands and leaves, a car behind the leaves, and a lamp that stays on. The file has
a line a patch: its second, then of each token whose salience is at least 0.9 of the threshold its number and that ratio.
"""

import sys

import numpy as np

ROWS, COLUMNS, GROUP, PATCH = 4, 6, 28, 14
HEIGHT, WIDTH = ROWS * GROUP, COLUMNS * GROUP
PATCHES = 780  # of two frames, a second each


def hashes(count):
    """Of 32 bits."""
    h = np.arange(count, dtype=np.uint32) * np.uint32(2654435761)
    h ^= h >> np.uint32(15)
    h *= np.uint32(2246822507)
    return (h ^ h >> np.uint32(13)).astype(np.int64)


HASHES = hashes(8191)


def things(frame):
    """Left, top, width, height and grey of what is there beside the ground."""
    if 400 <= frame < 440:
        yield 4 * (frame - 400) - 20, 30, 18, 50, 30
    if 440 <= frame < 520:
        yield 140, 30, 18, 50, 30
    if 520 <= frame < 540:
        yield 140, 30 + 4 * (frame - 520), 18, 50, 30
    if 900 <= frame < 930:
        yield 200 - 8 * (frame - 900), 6, 40, 20, 220
    if 1200 <= frame:
        yield 28, 84, 56, 28, 200


def draw(frame):
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    number = y * WIDTH + x
    grey = 80 + HASHES[number // 7 % 8191] % 60 + frame // 100
    # Leaves, in the upper left.
    leaves = (y < 28) & (x < 84)
    grey = np.where(leaves, grey + HASHES[(number // 4 + 131 * frame) % 8191] // 64 % 50 - 25, grey)
    for left, top, wide, high, colour in things(frame):
        grey = np.where((x >= left) & (x < left + wide) & (y >= top) & (y < top + high), colour, grey)
    grey = grey + HASHES[(number + 977 * frame) % 8191] // 4096 % 7 - 3
    return np.clip(np.stack([grey + 12, grey, grey - 9], -1), 0, 255)


def main():
    slow, differences, salience = None, np.zeros((PATCHES, ROWS * COLUMNS)), []
    lines = []
    for patch in range(PATCHES):
        for frame in (2 * patch, 2 * patch + 1):
            grey = draw(frame).mean(-1).reshape(HEIGHT // 2, 2, WIDTH // 2, 2).mean((1, 3))
            slow = grey.copy() if slow is None else slow
            apart = np.abs(grey - slow)
            slow += (grey - slow) * .5 / 60
            means = apart.reshape(HEIGHT // PATCH, PATCH // 2, WIDTH // PATCH, PATCH // 2).mean((1, 3))
            most = means.reshape(ROWS, 2, COLUMNS, 2).max((1, 3)).ravel()
            differences[patch] = np.maximum(differences[patch], most)
        salience.append(differences[patch] / (np.median(differences[:patch + 1], 0) + 1.02))
        # The last ten minutes by turns of a minute: nine whole ones, and the one that is.
        begin = max(0, patch // 60 - 9) * 60
        ratio = salience[patch] / np.quantile(np.array(salience[begin:]), .98)
        near = np.flatnonzero(ratio >= .9)
        lines.append(" ".join([str(patch), *(f"{token} {ratio[token]:.3f}" for token in near)]))
    with open(sys.argv[1], "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
