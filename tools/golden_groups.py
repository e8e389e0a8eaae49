#!/usr/bin/env python3
"""Makes tests/golden/groups.safetensors: what transformers' vision tower makes of some squares of a picture. Needs torch, transformers.

    tools/golden_groups.py models/demo tests/golden/groups.safetensors

The tower's own `forward` is given the rows of the squares that are kept, told the positions that these have in the whole picture, and the
bounds of windows and frames without those that are left out. With all of them kept that is what it works out by itself, which is checked
here. Float32 on upcast weights, eager attention. Tensors: `frames` U8 [2, h, w, 3]; of each case `c`: `c/groups` I32 [k], squares of merged patches along
the rows, ascending; `c/embeddings` F32 [k, hidden]."""

import argparse
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch
from safetensors.numpy import save_file

from transformers.vision_utils import get_vision_position_ids, get_vision_window_index

from golden import Preprocessor, VideoProcessorWithoutTorchvision, load_model, make_pixels, noise

HEIGHT, WIDTH = 196, 280


def cases(down, across):
    scattered = [i for i, byte in enumerate(noise("groups/scattered", down * across)) if byte < 64]
    # Of windows of 4 x 4 squares: one that is whole, and one at the lower edge.
    windows = [y * across + x for y in range(down) for x in range(across) if (y < 4 and x >= 4) or (y >= 4 and x < 4)]
    return {"all": list(range(down * across)), "scattered": scattered, "windows": windows, "one": [down * across - 3]}


def encode(visual, pixels, grid, kept):
    """`kept`: squares, ascending; one embedding each. The tower's own forward, told positions, order and bounds of the rows that it gets."""
    unit, places = visual.spatial_merge_unit, {square: i for i, square in enumerate(kept)}
    rows = torch.tensor([unit * square + i for square in kept for i in range(unit)])
    order, bounds = get_vision_window_index(grid, visual.spatial_merge_size, visual.window_size, visual.patch_size)
    inside = [int(square) in places for square in order]
    # How many kept rows lie before each bound.
    before = unit * np.cumsum([0, *inside])
    windows = torch.unique_consecutive(torch.tensor(before[bounds.numpy() // unit], dtype=torch.int32))
    return visual(
        pixels[rows], grid_thw=grid,
        position_ids=get_vision_position_ids(grid, visual.spatial_merge_size)[rows],
        window_index=torch.tensor([places[int(square)] for square, is_kept in zip(order, inside) if is_kept]),
        cu_window_seqlens=windows,
        cu_seqlens=torch.tensor([0, len(rows)], dtype=torch.int32),
    ).pooler_output


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    torch.set_grad_enabled(False)
    visual = load_model(arguments.folder, torch.float32).model.visual
    frames = make_pixels("groups", 2, HEIGHT, WIDTH)
    # At the size that they have: other squares than the whole windows of the demo's 224x224.
    as_they_are = VideoProcessorWithoutTorchvision(Preprocessor.video_settings(arguments.folder), lambda height, width, *_: (height, width))
    values, sizes = as_they_are(frames)
    pixels, grid = torch.from_numpy(values), torch.tensor([sizes])
    merge = visual.spatial_merge_size
    down, across = int(grid[0, 1]) // merge, int(grid[0, 2]) // merge
    tensors = {"frames": frames}
    for name, kept in cases(down, across).items():
        embeddings = encode(visual, pixels, grid, kept)
        tensors[f"{name}/groups"] = np.array(kept, dtype=np.int32)
        tensors[f"{name}/embeddings"] = embeddings.numpy()
    whole = visual(pixels, grid_thw=grid).pooler_output
    torch.testing.assert_close(torch.from_numpy(tensors["all/embeddings"]), whole, rtol=1e-5, atol=1e-5)
    save_file(tensors, arguments.out)
    print({name: tensor.shape for name, tensor in tensors.items()})


if __name__ == "__main__":
    main()
