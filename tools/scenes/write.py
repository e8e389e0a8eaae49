#!/usr/bin/env python3
"""Writes generated scenes as videos with a JSON of what happens in them.

    tools/scenes/write.py OUT --seeds 1000000 1000200 [--codec h264|h265] [--kbps 200] [--size 384x216] [--seconds 10] [--wanted fall]

Each scene becomes OUT/SEED.mp4 (25 frames a second, B-frames) and OUT/SEED.json: the rules' answers for the window of `frames` frames at `fps` a second from the start,
which of them may be asked (`ask`), and the events. The same seed gives the same frames. Seeds from 1,000,000 on are held out from training. Needs ffmpeg and torch.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scenes import render, story  # noqa: E402

RATE = 25
CODECS = {"h264": ["-c:v", "libx264", "-bf", "3", "-g", "50"], "h265": ["-c:v", "libx265", "-bf", "3", "-g", "50", "-x265-params", "log-level=none"]}


def write(seed, out, codec, kbps, size, seconds, fps, wanted):
    width, height = size
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # The facts are those of the frames that the model will see; the video shows the same scene 25 times a second.
    count = round(seconds * fps)
    facts = story.scene_story(seed, count, fps, wanted, (width / height,))
    shown = story.scene_story(seed, count, fps, wanted, (width / height,), shown=RATE)
    command = ["ffmpeg", "-v", "error", "-y", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", str(RATE), "-i", "-", *CODECS[codec], "-b:v", f"{kbps}k", "-pix_fmt", "yuv420p", str(out / f"{seed}.mp4")]
    coder = subprocess.Popen(command, stdin=subprocess.PIPE)
    batch = render.collate([shown], [seed], device)
    # The imitated coder is for training; here a real one follows.
    batch["scalars"][:, 6] = 0
    for first in range(0, batch["moving"].shape[1], RATE):
        part = {key: value[:, first:first + RATE] if key in ("moving", "gain", "grey", "jitter") else value for key, value in batch.items()}
        part["seed"] = batch["seed"]
        frames = render.render(part, height, width, first=first)[0]
        coder.stdin.write((frames.clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy().tobytes())
    coder.stdin.close()
    if coder.wait():
        raise SystemExit(f"write: ffmpeg could not code scene {seed}")
    record = dict(seed=seed, frames=count, fps=fps, codec=codec, kbps=kbps, rules=facts.facts["rules"], ask=[rule for rule, answer in facts.facts["rules"].items() if answer is not None],
                  light=facts.facts["light"], weather=facts.facts["weather"], tags=["jitter"] if np.abs(facts.optics["jitter"]).max() > 0 else [], events=facts.events)
    (out / f"{seed}.json").write_text(json.dumps(record, indent=1, default=float) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seeds", type=int, nargs=2, default=[story.HELD_OUT, story.HELD_OUT + 10], help="first seed and the one after the last")
    parser.add_argument("--codec", choices=CODECS, default="h264")
    parser.add_argument("--kbps", type=int, default=200)
    parser.add_argument("--size", default="384x216")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--fps", type=float, default=2)
    parser.add_argument("--wanted", help="an event that every scene has to try: fall, near, bag, bag near, stop, slow, person or zone")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in range(*args.seeds):
        write(seed, args.out, args.codec, args.kbps, tuple(int(v) for v in args.size.split("x")), args.seconds, args.fps, args.wanted)


if __name__ == "__main__":
    main()
