#!/usr/bin/env python3
"""Makes tests/golden/packed_kv.bin: keys and values in the forms of kernels/packed_kv, by NumPy and torch. Needs both.

    tools/golden_packed_kv.py tests/golden/packed_kv.bin

2 layers, keys and values, 2 heads of 32 columns, 70 tokens: a whole block and one of 6. The file is the form `bf16` of them, which is what is
packed, then `fp8`, then `int4`, one behind the other, as kernels/packed_kv/packed_kv.h lays them out. Among the numbers are NaN, infinities,
zeros of both signs, columns and tokens that are all of one of these, subnormal ones and the largest."""

import argparse
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import numpy as np
import torch

LAYERS, HEADS, TOKENS, WIDTH, BLOCK = 2, 2, 70, 32, 64
LEAST = np.float32(2.0**-126)


def numbers():
    """[layers, 2, heads, tokens, width] f32, all of them numbers of bf16."""
    random = np.random.default_rng(7)
    x = random.standard_normal((LAYERS, 2, HEADS, TOKENS, WIDTH)).astype(np.float32)
    x *= np.exp2(random.integers(-3, 4, (LAYERS, 2, HEADS, 1, WIDTH))).astype(np.float32)  # columns of different size, some far from zero
    x[0, 0, 0, :, 5] += 200
    x[0, 0, 0, :, 21] -= 90
    x[0, 0, 1, :, 3] = 0
    x[0, 0, 1, ::2, 4] = -0.0
    x[0, 0, 1, 1::2, 4] = 0.0
    x[0, 0, 1, :, 6] = 1.5
    x[0, 0, 1, :, 7] *= np.float32(2.0**-128)
    x[0, 0, 1, :, 8] *= np.float32(2.0**-120)
    x[0, 0, 1, :, 9] = np.where(np.arange(TOKENS) % 3 == 0, np.float32(3.38e38), np.float32(-3.38e38))
    x[0, 1, 0, 13, 2] = np.nan
    x[0, 1, 0, 14, 2] = np.inf
    x[0, 1, 0, 15, 30] = -np.inf
    x[0, 1, 0, 69, 11] = -np.nan
    x[0, 1, 1, :, 12] = np.nan
    x[0, 1, 1, 20, :] = np.inf
    x[0, 1, 1, 21, :] = 0
    x[0, 1, 1, 22, :] = 3.3895314e38
    x[0, 1, 1, 23, :] *= np.float32(2.0**-130)
    x[1, 0, 0] *= np.exp2(random.integers(-20, 21, (TOKENS, 1))).astype(np.float32)
    x[1, 0, 1, 64:] = np.nan
    x[1, 1] += 8 * random.standard_normal((HEADS, 1, WIDTH)).astype(np.float32)
    return torch.from_numpy(x).to(torch.bfloat16).float().numpy()


def bits(x):
    return (np.ascontiguousarray(x).view(np.uint32) >> 16).astype("<u2")


def cut(x):
    """Rounded towards zero to bf16."""
    return (np.ascontiguousarray(x).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)


def padded(data):
    return data + bytes(-len(data) % 16)


def bf16(x):
    return padded(bits(x).tobytes())


def fp8(x):
    finite = np.isfinite(x)
    most = np.abs(np.where(finite, x, 0)).max(1, keepdims=True)
    scale = cut(np.maximum(most / np.float32(448), LEAST))
    with np.errstate(invalid="ignore"):
        scaled = np.where(finite, x * (np.float32(1) / scale), np.float32(np.nan))
    # torch rounds to nearest but saturates only what is told to.
    codes = torch.from_numpy(np.clip(scaled, -448, 448)).to(torch.float8_e4m3fn).view(torch.uint8).numpy()
    return padded(bits(scale).tobytes()) + padded(np.where(finite, codes, 0x7F).astype(np.uint8).tobytes())


def int4(x):
    finite = np.isfinite(x)
    any_finite, odd = finite.any(0), ~finite.all(0)
    least, most = np.where(finite, x, np.inf).min(0), np.where(finite, x, -np.inf).max(0)
    base = np.where(any_finite, least, 0).astype(np.float32) + np.float32(0)
    most = np.where(any_finite, most, base).astype(np.float32)
    half = np.float32(0.5) * most - np.float32(0.5) * base
    step = half / np.where(odd, np.float32(7), np.float32(7.5))
    step = cut(np.where(step < LEAST, np.float32(0), step))
    inverse = np.divide(np.float32(1), step, out=np.zeros_like(step), where=step > 0)
    with np.errstate(invalid="ignore", over="ignore"):
        codes = np.rint(np.where(finite, x, 0) * inverse - base * inverse)
    codes = np.where(finite, codes, 15).astype(np.uint8)
    assert codes.max() <= 15
    steps = bits(step) | np.where(odd, 0x8000, 0).astype("<u2")
    return padded(bits(base).tobytes() + steps.tobytes()) + padded((codes[:, ::2] | codes[:, 1::2] << 4).astype(np.uint8).tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    data = b""
    for form in (bf16, fp8, int4):
        for segment in numbers().reshape(-1, TOKENS, WIDTH):
            for first in range(0, TOKENS, BLOCK):
                data += form(segment[first : first + BLOCK])
    out.write_bytes(data)
    print(f"{out}: {len(data)} bytes")


if __name__ == "__main__":
    main()
