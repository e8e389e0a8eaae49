#!/usr/bin/env python3
"""Makes tests/golden/resize.safetensors and tests/golden/smart_resize.json: what Pillow, PyTorch and transformers make of picture sizes.

    tools/golden_preprocess.py OUT_FOLDER

resize.safetensors: for a case `c` U8 tensors `c/in`, `c/pillow` and `c/torch`, each [height, width, 3]: PIL.Image.resize(BICUBIC), and
torch.nn.functional.interpolate(mode="bicubic", antialias=True) on uint8, which torchvision's resize of an 8-bit tensor calls (not for sizes of one pixel). Where
torchvision is installed its result is compared too.
smart_resize.json: [height, width, factor, min_pixels, max_pixels, resized height, resized width], the last two null where transformers
raises. Whole preprocessing (order of patches, normalisation) is in the golden files of tools/golden.py.

Needs numpy, Pillow, torch, safetensors and transformers 5.17.
"""

import argparse
import json
import random
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch
from PIL import Image
from safetensors.numpy import save_file
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

# Name: height and width before, height and width after.
SIZES = {"down": (61, 75, 28, 56), "up": (23, 17, 56, 28), "mixed": (15, 61, 42, 28), "same_height": (28, 61, 28, 84),
         "same_width": (61, 28, 84, 28), "same": (28, 28, 28, 28), "far_down": (131, 117, 14, 9), "row": (1, 50, 28, 28),
         "column": (50, 1, 28, 56), "pixel": (1, 1, 28, 28), "two": (2, 2, 29, 31), "slightly_down": (57, 43, 56, 42), "to_one": (9, 7, 1, 1),
         "rows_first": (75, 39, 42, 56), "tall": (61, 20, 28, 14), "tie": (54, 33, 28, 20)}


def pictures(name, height, width, rng):
    """Noise, and hard edges that overshoot."""
    yield name + "_noise", rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    y, x = np.mgrid[0:height, 0:width]
    edges = np.stack([(x // 3 + y // 2) % 2 * 255, (x * 255) // max(width - 1, 1), (y > height // 2) * 255], -1)
    yield name + "_edges", edges.astype(np.uint8)


def with_torch(picture, height, width):
    tensor = torch.from_numpy(picture).permute(2, 0, 1)[None].contiguous()
    out = torch.nn.functional.interpolate(tensor, size=(height, width), mode="bicubic", antialias=True, align_corners=False)
    try:
        import torchvision.transforms.v2.functional as tvF
    except ImportError:
        pass
    else:
        mode = tvF.InterpolationMode.BICUBIC
        assert torch.equal(out, tvF.resize(tensor, [height, width], interpolation=mode, antialias=True)), (picture.shape, height, width)
    return np.ascontiguousarray(out[0].permute(1, 2, 0).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="a folder that is there")
    out = parser.parse_args().out
    rng = np.random.default_rng(3)
    tensors = {}
    for name, (height, width, to_height, to_width) in SIZES.items():
        for case, picture in pictures(name, height, width, rng):
            tensors[case + "/in"] = picture
            tensors[case + "/pillow"] = np.array(Image.fromarray(picture).resize((to_width, to_height), Image.Resampling.BICUBIC))
            if min(height, width, to_height, to_width) > 1:  # PyTorch 2.13 fails an assertion of its own at some sizes of one pixel
                tensors[case + "/torch"] = with_torch(picture, to_height, to_width)
    save_file(tensors, out / "resize.safetensors", metadata={"torch": torch.__version__, "pillow": Image.__version__})

    numbers = random.Random(5)
    rows = []
    for i in range(400):
        factor = numbers.choice([28, 28, 32, 6, 36])
        least = numbers.choice([3136, 56 * 56, 100352, 1, 4 * factor * factor])
        most = max(least, numbers.choice([12845056, 1003520, 602112, 50176, 9 * factor * factor]))
        if i % 4 == 0:  # halves of the factor, where rounding to even shows
            height, width = (numbers.randint(1, 40) * factor // 2 for _ in range(2))
        else:
            height, width = (int(2 ** numbers.uniform(0, 13)) for _ in range(2))
        try:
            resized = smart_resize(height, width, factor, least, most)
        except ValueError:
            resized = (None, None)
        rows.append([height, width, factor, least, most, *resized])
    rows += [[1, 200, 28, 3136, 12845056, *smart_resize(1, 200, 28, 3136, 12845056)], [1, 201, 28, 3136, 12845056, None, None]]
    (out / "smart_resize.json").write_text("[" + ",\n".join(json.dumps(row) for row in rows) + "]\n")


if __name__ == "__main__":
    main()
