#!/usr/bin/env python3
"""What Hugging Face transformers needs on this GPU for the work of `vigil bench engine`, and this GPU's limits, as JSON lines.

    loadtest/engine/gpu_peer.py loadtest/shapes/qwen2.5-vl-7b.json [--frames 80] [--sequences 64]

A model of the shape with random weights in bf16, attention by PyTorch's sdpa. Medians of --runs after two that do not count. Limits: a large product
(8192^3) and a large copy (read and written bytes), measured before the model.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import packages  # noqa: E402, F401  says what is not installed
import torch  # noqa: E402
from transformers import AutoConfig, Qwen2_5_VLForConditionalGeneration  # noqa: E402
from transformers import __version__ as transformers_version  # noqa: E402


def timed(work, runs):
    times = []
    for i in range(runs + 2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        work()
        torch.cuda.synchronize()
        if i >= 2:
            times.append(time.perf_counter() - begin)
    return statistics.median(times)


def report(figure, seconds, **more):
    print(json.dumps({"bench": "engine_peer", "figure": figure, "unit": "s", "median": seconds, "transformers": transformers_version,
                      "torch": torch.__version__, "machine": torch.cuda.get_device_name(), **more}), flush=True)


def limits():
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    seconds = timed(lambda: a @ b, 10)
    report("product_8192", seconds, flops=2 * 8192**3 / seconds)
    source = torch.empty(4 << 30, device="cuda", dtype=torch.uint8).random_()
    target = torch.empty_like(source)
    seconds = timed(lambda: target.copy_(source), 10)
    report("copy_4GiB", seconds, bytes_per_second=2 * source.numel() / seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape")
    parser.add_argument("--frames", type=int, default=80)
    parser.add_argument("--size", type=int, default=448)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--sequences", type=int, default=64)
    parser.add_argument("--sequence-frames", type=int, default=16)
    parser.add_argument("--runs", type=int, default=10)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    limits()

    config = AutoConfig.from_pretrained(arguments.shape)
    config._attn_implementation = "sdpa"
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = Qwen2_5_VLForConditionalGeneration(config).eval()
        torch.set_default_dtype(torch.float32)
    side = arguments.size // 14
    with torch.inference_mode():
        def window(frames):
            grid = torch.tensor([[frames // 2, side, side]], device="cuda")
            patches = torch.randn(frames // 2 * side * side, 1176, device="cuda", dtype=torch.bfloat16)
            return patches, grid

        def prompt(frames, count):
            visual = frames // 2 * (side // 2) ** 2
            ids = torch.randint(10, 1000, (count, 40 + visual), device="cuda")
            ids[:, 20:20 + visual] = config.video_token_id
            return ids

        patches, grid = window(arguments.frames)
        report("vision", timed(lambda: model.model.get_video_features(patches, grid), arguments.runs), frames=arguments.frames)

        def forward(ids):
            positions = torch.arange(ids.shape[1], device="cuda").expand(3, ids.shape[0], -1)
            return model(inputs_embeds=model.get_input_embeddings()(ids), position_ids=positions, use_cache=True, logits_to_keep=1)

        ids = prompt(arguments.frames, 1)
        report("prefill", timed(lambda: forward(ids), arguments.runs), tokens=ids.shape[1])

        def first_token():
            model.model.get_video_features(patches, grid)
            return forward(ids).logits.argmax()

        report("first_token", timed(first_token, arguments.runs), tokens=ids.shape[1])

        def decode(ids, name):
            cache = forward(ids).past_key_values
            token = ids[:, -1:]
            length = ids.shape[1]

            def steps():
                for i in range(arguments.steps):
                    positions = torch.full((3, ids.shape[0], 1), length + i, device="cuda")
                    model(input_ids=token, position_ids=positions, use_cache=True, past_key_values=cache)
                cache.crop(length)

            report(name, timed(steps, max(3, arguments.runs // 3)) / arguments.steps, sequences=ids.shape[0], tokens=length)

        decode(ids, "decode_token")
        many = torch.randint(10, 1000, (arguments.sequences, 40 + arguments.sequence_frames // 2 * (side // 2) ** 2), device="cuda")
        decode(many, "decode_step_sequences")


if __name__ == "__main__":
    main()
