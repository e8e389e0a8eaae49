#!/usr/bin/env python3
"""Makes windows that went through a real codec, for the end of the training: drawn at 25 frames a second, coded as H.264 or H.265, decoded, sampled and scaled.

    tools/train/coded.py OUT --minutes 15 --processes 24 [--first 600000]

OUT receives shards of windows of one size: NAME.npy, uint8 (n, T, 3, H, W), and NAME.json with their seeds, all below 1,000,000. Runs beside the training, at the lowest priority.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TOOLS), str(TOOLS / "train")]

import packages  # noqa: E402, F401  says what is not installed
import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.multiprocessing  # noqa: E402

from scenes import coding, story  # noqa: E402
from scenes.chance import pick, uniform  # noqa: E402
from sizes import smart_resize  # noqa: E402

# Frames, frames a second, and how often.
WINDOWS = {(20, 2.0): .62, (40, 2.0): .12, (16, 2.0): .08, (8, 2.0): .06, (10, 1.0): .06, (40, 4.0): .06}
SIZES = {(384, 216): .4, (320, 180): .12, (512, 288): .13, (320, 240): .2, (280, 280): .15}
SQUEEZED = .25  # share of the wide videos that are squeezed to 224x224, as the cameras of config/demo.yaml do
SHARD = 8  # windows in a file; a process keeps those of a size back until they are so many


def window(seed, device):
    """One coded window: its key (frames, rate, shape), uint8 frames (T, 3, H, W), and what is to be remembered."""
    from PIL import Image

    rng = np.random.default_rng([seed, 31])
    count, fps = pick(rng, list(WINDOWS), list(WINDOWS.values()))
    width, height = pick(rng, list(SIZES), list(SIZES.values()))
    codec, kbps, group = pick(rng, list(coding.CODECS)), round(np.exp(uniform(rng, np.log(45), np.log(400)))), int(rng.integers(25, 101))
    preset = pick(rng, ("veryfast", "fast", "medium"), (.5, .3, .2)) if codec == "h264" else pick(rng, ("ultrafast", "superfast", "fast"), (.4, .4, .2))
    shown = story.scene_story(seed, count, fps, None, (width / height,), shown=coding.RATE)
    frames = coding.through_codec(shown, seed, (width, height), codec, kbps, fps, count, device, preset, group)
    tall, wide = smart_resize(height, width, 28, 224 * 224, 224 * 224)
    if width > height and rng.random() < SQUEEZED:
        tall = wide = 224
    scaled = np.stack([np.asarray(Image.fromarray(frame).resize((wide, tall), Image.BICUBIC)) for frame in frames]).transpose(0, 3, 1, 2)
    return (count, fps, (tall, wide)), scaled, {"seed": seed, "aspect": width / height, "codec": codec, "kbps": kbps}


def work(process, args):
    os.nice(19)
    torch.set_num_threads(1)
    device = f"cuda:{process % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
    until, waiting, number = time.time() + args.minutes * 60, {}, 0

    def flush(key):
        nonlocal number
        frames, scenes = zip(*waiting.pop(key))
        name = args.out / f"{process:03d}-{number:04d}"
        number += 1
        np.save(f"{name}.npy", np.stack(frames))
        (args.out / "part").mkdir(exist_ok=True)
        table = args.out / "part" / f"{name.name}.json"
        table.write_text(json.dumps(dict(frames=key[0], fps=key[1], shape=key[2], scenes=scenes)))
        # The table appears last and whole: a shard with a table is finished.
        os.replace(table, f"{name}.json")

    for index in range(process, args.most, args.processes):
        if time.time() > until:
            break
        seed = args.first + index
        assert seed < story.HELD_OUT
        try:
            key, frames, record = window(seed, device)
        except Exception as error:
            print(f"coded: scene {seed}: {error!r}", file=sys.stderr, flush=True)
            continue
        waiting.setdefault(key, []).append((frames, record))
        if len(waiting[key]) == SHARD:
            flush(key)
    for key in list(waiting):
        if len(waiting[key]) >= 4:
            flush(key)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--first", type=int, default=600_000, help="first seed")
    parser.add_argument("--most", type=int, default=300_000, help="windows at most")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.multiprocessing.spawn(work, (args,), nprocs=args.processes)


if __name__ == "__main__":
    main()
