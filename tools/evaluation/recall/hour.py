"""What an hour of a generated camera looks like to the model: visual tokens, and how much each place of the picture changes."""

import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "train"), str(Path(__file__).resolve().parents[2])]

from architecture import DEVIATION, MEAN  # noqa: E402
from scenes import render  # noqa: E402

SECONDS, RATE, SIZE, HEIGHT, WIDTH = 20.0, 2, (216, 384), 168, 280


def frames(scene, device, coded, begin, end):
    """Frames (n, 3, HEIGHT, WIDTH) in [0, 1], 8 bits of a colour, SECONDS at a time, 2 a second. `coded`: with the imitated coder of the training."""
    step, last = round(SECONDS * RATE), round(end * RATE)
    for first in range(round(begin * RATE), last, step):
        times = np.arange(first, min(last, first + step)) / RATE
        batch = render.collate([scene.told(times, float(RATE))], [scene.seed], device)
        batch["scalars"][:, 6] *= coded
        chunk, out = 40 if device.type == "cuda" else 8, []
        for inner in range(0, len(times), chunk):
            part = {key: value[:, inner:inner + chunk] if key in ("moving", "gain", "grey", "jitter") else value for key, value in batch.items()}
            shown = (render.render(part, *SIZE, first=first + inner)[0].clamp(0, 1) * 255).round() / 255
            out.append((F.interpolate(shown, (HEIGHT, WIDTH), mode="bicubic", antialias=True).clamp(0, 1) * 255).round() / 255)
        yield torch.cat(out)


def seen(model, scene, device, coded=True, begin=0, end=None):
    """Visual tokens (P, C, width), in half precision, of the seconds from `begin` to `end`, and for each the change from the frame before and from a slow mean (P, C): the greatest of its four patches, in grey."""
    mean, deviation = (torch.tensor(v, device=device).view(1, 1, 3, 1, 1) for v in (MEAN, DEVIATION))
    tokens, moved, stands, before, slow = [], [], [], None, None
    with torch.no_grad():
        for shown in frames(scene, device, coded, begin, end or scene.seconds):
            tokens.append(model.model.visual((shown[None] - mean) / deviation)[0].view(len(shown) // 2, -1, 320).half())
            grey = F.avg_pool2d(shown.mean(1, keepdim=True), 2)
            before = grey[:1] if before is None else before
            slow = grey[:1].clone() if slow is None else slow
            steps = (grey - torch.cat([before, grey[:-1]])).abs()
            apart = torch.empty_like(grey)
            for k in range(len(grey)):
                apart[k] = (grey[k] - slow[0]).abs()
                slow += (grey[k:k + 1] - slow) / (60 * RATE)
            before = grey[-1:]
            for kept, what in ((moved, steps), (stands, apart)):
                patches = F.max_pool2d(F.avg_pool2d(what, 7), 2)[:, 0].flatten(1)
                kept.append(patches.view(len(shown) // 2, 2, -1).amax(1))
    return torch.cat(tokens), torch.cat(moved), torch.cat(stands)
