#!/usr/bin/env python3
"""Indexed attention beside cuDNN's dense attention on one GPU, in one run.

    loadtest/kernels/attention_peers.py build/cuda/bin/bench_attention_cuda [--check]

The peer gets contiguous keys and values: 28 query heads and 4 key heads of 128, bf16, through PyTorch's
scaled_dot_product_attention with the cuDNN backend. Rates count 4 * head_dim * heads * visible (query, key) pairs.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import packages  # noqa: E402, F401  says what is not installed
import torch  # noqa: E402
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

HEADS, KV_HEADS, DIM, KEYS, QUERIES = 28, 4, 128, 10_240, 2_048


def median_ms(work, warm=5, runs=20):
    times = []
    for i in range(warm + runs):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        if i >= warm:
            times.append(start.elapsed_time(stop))
    return sorted(times)[runs // 2]


def peer(name, queries, causal, grouped):
    kv_heads = KV_HEADS if grouped else HEADS
    q = torch.randn(1, HEADS, queries, DIM, device="cuda", dtype=torch.bfloat16)
    k, v = (torch.randn(1, kv_heads, KEYS, DIM, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    pairs = KEYS * (KEYS + 1) / 2 if causal else queries * KEYS
    flops = 4.0 * DIM * HEADS * pairs
    row = {"peer": name, "grouped": grouped, "gflop": round(flops / 1e9, 1)}
    try:
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):
            ms = median_ms(lambda: torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, enable_gqa=grouped))
        row |= {"ms": round(ms, 4), "tflops": round(flops / ms / 1e9, 1)}
    except RuntimeError as error:
        row["error"] = str(error).splitlines()[0]
    print(json.dumps(row), flush=True)
    return row.get("tflops", 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="our bench, bench_attention_cuda")
    parser.add_argument("--check", action="store_true", help="fail where ours has less than 70 %% of the peer's rate")
    arguments = parser.parse_args()
    device = torch.cuda.get_device_name()
    print(json.dumps({"device": device, "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}))
    causal = max(peer("cuDNN, causal, 10240 queries, 10240 keys", KEYS, True, g) for g in (False, True))
    full = max(peer("cuDNN, full, 2048 queries, 10240 keys", QUERIES, False, g) for g in (False, True))
    output = subprocess.run([arguments.program], check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in output.splitlines()]
    again = peer("cuDNN, causal, 10240 queries, 10240 keys", KEYS, True, False)
    causal = max(causal, again)
    for row in rows:
        if "tflops" in row:
            row["of_causal_peer"] = round(row["tflops"] / causal, 3)
            row["of_full_peer"] = round(row["tflops"] / full, 3)
        print(json.dumps(row))
    if arguments.check:
        three = [row for row in rows if row.get("gflop", 0) > 140 and "dead" not in row["case"] and "of 64" not in row["case"]]
        failed = [row["case"] for row in three if row["of_causal_peer"] < 0.7]
        if len(three) != 3 or failed:
            sys.exit(f"below 70 % of the peer: {failed}")


if __name__ == "__main__":
    main()
