"""Lessons for the vision tower: what each visual token shows, said by a linear layer that is thrown away after the training.

The answers alone teach slowly where a person's feet are against a zone's outline: one word a window. The scene knows it for every token (a 28x28 patch of two frames).
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from scenes.judge import INSIDE, OUTSIDE
from scenes.zones import inside

ZONE, PERSON, FEET, BAG, WITHIN, LYING, LOW = range(7)
TOKENS = 60  # of a slice, about
SKIP = 2  # where a careful person would not decide, or nothing is known


def lessons(marks, frames, rows, columns):
    """(frames / 2, rows, columns, 7) uint8: 1, 0 or SKIP.

    ZONE: the token's middle is inside the outline. PERSON, FEET, BAG: the hip of a person, their feet, a bag on the ground are in it. Said only of tokens with feet: WITHIN, the feet
    are inside the zone; of tokens with a hip: LYING, and LOW (bent, sitting, crouching or lying).
    """
    slices = frames // 2
    if marks is None:
        return np.full((slices, rows, columns, 7), SKIP, np.uint8)
    out = np.zeros((slices, rows, columns, 7), np.uint8)
    out[..., WITHIN:] = SKIP
    if len(marks.zone):
        u, v = np.meshgrid((np.arange(columns) + .5) / columns * marks.aspect, (np.arange(rows) + .5) / rows)
        out[..., ZONE] = (inside(marks.zone, np.stack([u, v], -1).reshape(-1, 2)) > 0).reshape(rows, columns)

    def cells(places, shown):
        """Slice, row and column of places (T, 2) in the picture where `shown`, and their frames."""
        column, row = (places[:, 0] / marks.aspect * columns).astype(int), (places[:, 1] * rows).astype(int)
        t = np.flatnonzero(shown & (places >= 0).all(1) & (column < columns) & (row < rows))
        return (t // 2, row[t], column[t]), t

    for hips, feet, seen, head, margin in zip(marks.hips, marks.feet, marks.seen, marks.head, marks.margin):
        where, t = cells(hips, seen)
        out[(*where, PERSON)] = 1
        out[(*where, LYING)] = np.where(head[t] < .2, 1, np.where(head[t] > .5, 0, SKIP))
        out[(*where, LOW)] = np.where(head[t] < .75, 1, np.where(head[t] > .85, 0, SKIP))
        where, t = cells(feet, seen)
        out[(*where, FEET)] = 1
        out[(*where, WITHIN)] = np.where(margin[t] > INSIDE, 1, np.where(margin[t] < OUTSIDE, 0, SKIP))
    for places, standing in zip(marks.bags, marks.standing):
        out[(*cells(places, standing)[0], BAG)] = 1
    return out


class Sight(nn.Module):
    """The linear layer and its loss."""

    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 7)
        nn.init.zeros_(self.layer.weight)
        with torch.no_grad():
            self.layer.bias.copy_(torch.tensor([-2., -4., -4., -4., 0., -2., -1.]))

    def forward(self, video, wanted):
        """video (B, N, width), wanted (B, S, R, C, 7); the loss, about 1 before training."""
        said, wanted = self.layer(video).float(), wanted.flatten(1, 3)
        known = wanted != SKIP
        losses = F.binary_cross_entropy_with_logits(said, (wanted == 1).float(), reduction="none") * known
        total, count = losses.sum((0, 1)), known.sum((0, 1)).float()
        slices = count[PERSON] / TOKENS
        # Things are in few tokens: their losses count by the slice, those of all tokens or of single ones by the token.
        return .5 * total[ZONE] / count[ZONE].clamp_min(1) + .05 * total[PERSON:WITHIN].sum() / slices.clamp_min(1) + .2 * (total[WITHIN:] / count[WITHIN:].clamp_min(1)).sum()
