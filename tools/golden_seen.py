#!/usr/bin/env python3
"""Makes tests/golden/seen.safetensors: a vision tower that sees the rest of a picture as it was. Needs torch, transformers.

    tools/golden_seen.py models/demo tests/golden/seen.safetensors

One picture is computed whole; then, of pictures that follow, some squares of merged patches alone. Their rows go through transformers' tower
as in golden_groups.py; but in its blocks of full attention their queries meet, beside their own keys and values, those that every other
square had when it was computed last. Only that one line is ours: projections, rotations, attention and the rest are transformers'. Float32 on
upcast weights, eager attention. Pictures are the noise of tests/engine/demo_model.h (`Picture`), shown for both frames of a patch.

Metadata: `height`, `width` in pixels. Tensors, of each step `s` = 0, 1, ...: `s/seed` I32 [1], of the picture; `s/groups` I32 [k], the squares that
are computed, ascending; `s/embeddings` F32 [k, hidden], but for step 0, the whole one."""

import argparse
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch
from safetensors.numpy import save_file

from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import apply_rotary_pos_emb_vision, eager_attention_forward
from transformers.vision_utils import get_vision_window_index

from golden import Preprocessor, VideoProcessorWithoutTorchvision, load_model, noise
from golden_groups import encode

# Five by six squares: windows of four by four of which three are cut off.
HEIGHT, WIDTH = 140, 168


def picture(seed):
    """[h, w, 3] bytes, as `Picture` makes them."""
    state, values = (seed * 2654435761 + 1) % 2**32, np.empty(HEIGHT * WIDTH * 3, dtype=np.uint8)
    for i in range(len(values)):
        state = (state * 1664525 + 1013904223) % 2**32
        values[i] = state >> 24
    return values.reshape(HEIGHT, WIDTH, 3)


class Remembered:
    """Keys and values of all squares in one block of full attention, put in place of its attention."""

    def __init__(self, attention, squares, unit):
        self.attention, self.unit = attention, unit
        self.keys = torch.zeros(squares * unit, attention.num_heads, attention.head_dim)
        self.values = torch.zeros_like(self.keys)
        self.rows = None

    def __call__(self, hidden_states, cu_seqlens, position_embeddings=None, **_):
        attention, count = self.attention, hidden_states.shape[0]
        queries, keys, values = attention.qkv(hidden_states).reshape(count, 3, attention.num_heads, -1).permute(1, 0, 2, 3).unbind(0)
        queries, keys = apply_rotary_pos_emb_vision(queries, keys, *position_embeddings)
        self.keys[self.rows], self.values[self.rows] = keys, values
        out, _ = eager_attention_forward(attention, *(x.transpose(0, 1)[None] for x in (queries, self.keys, self.values)),
                                         attention_mask=None, scaling=attention.scaling, dropout=0.0)
        return attention.proj(out.reshape(count, -1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    visual = load_model(arguments.folder, torch.float32).model.visual
    unit, merge = visual.spatial_merge_unit, visual.spatial_merge_size
    as_they_are = VideoProcessorWithoutTorchvision(Preprocessor.video_settings(arguments.folder), lambda height, width, *_: (height, width))

    def pixels_of(seed):
        values, sizes = as_they_are(np.stack([picture(seed)] * 2))
        return torch.from_numpy(values), torch.tensor([sizes])

    pixels, grid = pixels_of(1)
    down, across = int(grid[0, 1]) // merge, int(grid[0, 2]) // merge
    squares = down * across
    whole = visual(pixels, grid_thw=grid).pooler_output
    order = get_vision_window_index(grid, merge, visual.window_size, visual.patch_size)[0].tolist()
    remembered = [Remembered(visual.blocks[i].attn, squares, unit) for i in visual.config.fullatt_block_indexes]
    for block, one in zip(visual.config.fullatt_block_indexes, remembered):
        visual.blocks[block].attn.forward = one
    scattered = [i for i, byte in enumerate(noise("seen/scattered", squares)) if byte < 80]
    corner = [y * across + x for y in range(2, 5) for x in range(3, 6)]
    steps = [(1, list(range(squares))), (2, corner), (3, scattered), (4, [0]), (5, sorted({*corner, 0, 7}))]
    tensors = {}
    for number, (seed, kept) in enumerate(steps):
        places = set(kept)
        # The tower computes its rows in the order of windows.
        rows = torch.tensor([unit * square + i for square in order if square in places for i in range(unit)])
        for one in remembered:
            one.rows = rows
        embeddings = encode(visual, pixels_of(seed)[0], grid, kept)
        tensors |= {f"{number}/seed": np.int32([seed]), f"{number}/groups": np.int32(kept)}
        if number == 0:
            torch.testing.assert_close(embeddings, whole, rtol=1e-5, atol=1e-5)
        else:
            tensors[f"{number}/embeddings"] = embeddings.numpy()
    save_file(tensors, arguments.out, {"height": str(HEIGHT), "width": str(WIDTH)})
    print({name: tensor.shape for name, tensor in tensors.items()})
    print(f"{arguments.out}: {arguments.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
