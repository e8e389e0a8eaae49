#!/usr/bin/env python3
"""From video to first token: vigil beside Hugging Face transformers, on the same CPU, in the same run.

Both get the same file, sampling rate, frame size, question and weights, and the same number of threads; rounds alternate, so that a busy
machine disturbs both. The peer decodes with PyAV (FFmpeg) on as many threads, preprocesses as transformers' video processor does (frames of
full size, uint8 antialiased bicubic by torch, normalise, patchify), and runs transformers' own Qwen2.5-VL with PyTorch's fused attention in
bfloat16 and in float32 (the faster of the two counts). With --lean its frames are scaled by FFmpeg while they are decoded, which transformers does not
offer but a careful user can write. Prints JSON lines, then a table on stderr.

    python3 loadtest/engine/compare.py build/release/bin/vigil models/demo VIDEO QUESTION [--rounds 5] [--tokens 32]

Needs: torch, transformers, av, numpy.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import packages  # noqa: E402, F401  says what is not installed

os.environ.setdefault("HF_HUB_OFFLINE", "1")


def peer_frames(video, fps, size, start, end):
    """RGB frames shown at start + k / fps, as [n, 3, height, width] uint8; of the source's size if `size` is None."""
    import av
    import numpy as np

    def rgb(frame):
        return frame.to_ndarray(format="rgb24", **({} if size is None else {"width": size[0], "height": size[1]}))

    frames, next_time = [], start
    with av.open(video) as container:
        stream = container.streams.video[0]
        stream.thread_type = "AUTO"
        stream.codec_context.thread_count = os.cpu_count()
        shown = None
        for frame in container.decode(stream):
            while shown is not None and next_time < frame.time and (end is None or next_time < end):
                frames.append(rgb(shown))
                next_time += 1 / fps
            shown = frame
            if end is not None and frame.time >= end:
                break
        else:
            while shown is not None and next_time <= shown.time and (end is None or next_time < end):
                frames.append(rgb(shown))
                next_time += 1 / fps
    return np.stack(frames).transpose(0, 3, 1, 2)


def patchify(frames, size, vision, mean, std, dtype):
    """The published preprocessing: resize, normalise, pad in time, cut."""
    import torch

    frames = torch.from_numpy(frames)
    if frames.shape[-2:] != (size[1], size[0]):
        frames = torch.nn.functional.interpolate(frames, size=(size[1], size[0]), mode="bicubic", antialias=True)
    pixels = frames.to(torch.float32).div_(255)
    pixels = (pixels - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
    if len(pixels) % vision.temporal_patch_size:
        pixels = torch.cat([pixels, pixels[-1:].repeat(vision.temporal_patch_size - len(pixels) % vision.temporal_patch_size, 1, 1, 1)])
    t, p, m = vision.temporal_patch_size, vision.patch_size, vision.spatial_merge_size
    n, c, h, w = pixels.shape
    grid = (n // t, h // p, w // p)
    cut = pixels.view(grid[0], t, c, grid[1] // m, m, p, grid[2] // m, m, p).permute(0, 3, 6, 4, 7, 2, 1, 5, 8)
    return cut.reshape(grid[0] * grid[1] * grid[2], c * t * p * p).to(dtype), torch.tensor([grid])


class Peer:
    def __init__(self, folder, dtype):
        import torch
        from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration

        self.torch, self.dtype = torch, dtype
        self.model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, dtype=dtype, attn_implementation="sdpa").eval()
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        with open(os.path.join(folder, "preprocessor_config.json")) as file:
            settings = json.load(file)
        self.mean, self.std = settings["image_mean"], settings["image_std"]

    def ask(self, video, question, fps, size, lean, start, end, tokens):
        """Seconds of each stage, and the tokens."""
        torch, model = self.torch, self.model
        clock = [time.perf_counter()]
        frames = peer_frames(video, fps, size if lean else None, start, end)
        clock.append(time.perf_counter())
        with torch.inference_mode():
            pixels, grid = patchify(frames, size, model.config.vision_config, self.mean, self.std, self.dtype)
            video_tokens = int(grid.prod()) // model.config.vision_config.spatial_merge_size**2
            text = (
                "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n<|vision_start|>"
                + "<|video_pad|>" * video_tokens
                + f"<|vision_end|>{question}<|im_end|>\n<|im_start|>assistant\n"
            )
            ids = self.tokenizer(text, return_tensors="pt").input_ids
            common = dict(
                pixel_values_videos=pixels,
                video_grid_thw=grid,
                second_per_grid_ts=[model.config.vision_config.temporal_patch_size / fps],
                mm_token_type_ids=(ids == model.config.video_token_id).int() * 2,
            )
            out = model(input_ids=ids, use_cache=True, logits_to_keep=1, **common)
            clock.append(time.perf_counter())
            cache, chosen = out.past_key_values, [int(out.logits[0, -1].argmax())]
            for _ in range(tokens - 1):
                out = model(input_ids=torch.tensor([[chosen[-1]]]), past_key_values=cache, use_cache=True)
                chosen.append(int(out.logits[0, -1].argmax()))
            clock.append(time.perf_counter())
        return {
            "decode_video": clock[1] - clock[0],
            "model_to_first_token": clock[2] - clock[1],
            "video_to_first_token": clock[2] - clock[0],
            "decode_tokens_per_second": (tokens - 1) / (clock[3] - clock[2]) if tokens > 1 else 0,
        }, chosen


def vigil(program, folder, arguments):
    bench = [program, "bench", "ask", arguments.video, arguments.question, "--model", folder, "--fps", str(arguments.fps),
             "--from", str(arguments.start), "--max-tokens", str(arguments.tokens), "--threads", str(arguments.threads),
             "--decode-threads", "1", "--runs", "1", "--warmups", "1"]
    if arguments.end is not None:
        bench += ["--to", str(arguments.end)]
    lines = [json.loads(line) for line in subprocess.run(bench, check=True, capture_output=True, text=True).stdout.splitlines()]
    figures = {line["figure"]: line["mean"] for line in lines}
    figures["model_to_first_token"] = figures["vision"] + figures["prefill"]
    return figures, lines[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vigil")
    parser.add_argument("model")
    parser.add_argument("video")
    parser.add_argument("question")
    parser.add_argument("--fps", type=float, default=2.0)
    parser.add_argument("--from", dest="start", type=float, default=0.0)
    parser.add_argument("--to", dest="end", type=float)
    parser.add_argument("--size", default="224x224", help="frame size that vigil chooses for this model")
    parser.add_argument("--lean", action="store_true", help="scale the peer's frames while they are decoded")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    size = tuple(int(side) for side in arguments.size.split("x"))

    import torch
    import transformers

    torch.set_num_threads(arguments.threads)
    peers = {name: Peer(arguments.model, dtype) for name, dtype in (("bf16", torch.bfloat16), ("f32", torch.float32))}
    measured = {"vigil": []} | {f"transformers {name}": [] for name in peers}
    for round_number in range(arguments.rounds + 1):
        for name, peer in peers.items():
            figures, _ = peer.ask(arguments.video, arguments.question, arguments.fps, size, arguments.lean, arguments.start, arguments.end, arguments.tokens)
            if round_number:  # the first warms up
                measured[f"transformers {name}"].append(figures)
        figures, context = vigil(arguments.vigil, arguments.model, arguments)
        if round_number:
            measured["vigil"].append(figures)

    names = ["decode_video", "model_to_first_token", "video_to_first_token", "decode_tokens_per_second"]
    table = {who: {name: statistics.median(run[name] for run in runs) for name in names} for who, runs in measured.items()}
    best = min((who for who in table if who != "vigil"), key=lambda who: table[who]["video_to_first_token"])
    for who, figures in table.items():
        print(json.dumps({"bench": "video to first token", "who": who, "lean": arguments.lean, "rounds": arguments.rounds, "threads": arguments.threads,
                          "median": figures, "frames": context["frames"], "prompt_tokens": context["prompt_tokens"],
                          "machine": context["machine"], "commit": context["commit"], "torch": torch.__version__,
                          "transformers": transformers.__version__, "video": os.path.basename(arguments.video)}))
    for who, figures in table.items():
        print(f"{who:18}" + "".join(f"  {name} {value:8.3f}" for name, value in figures.items()), file=sys.stderr)
    for name in names:
        ratio = table["vigil"][name] / table[best][name]
        ratio = ratio if name.endswith("per_second") else 1 / ratio
        print(json.dumps({"bench": "video to first token", "figure": f"{name}: vigil over {best}", "ratio": ratio}))


if __name__ == "__main__":
    main()
