#!/usr/bin/env python3
"""Makes tests/golden/e4m3.txt: what torch.float8_e4m3fn makes of numbers. Needs torch.

    tools/golden_e4m3.py tests/golden/e4m3.txt

A line for each of the 256 codes, in hexadecimal: the code, the bits of its number in float32, and, for positive numbers but zero, the bits
of the smallest float32 that is rounded to it: the place where rounding goes from the code before to this one. Then lines `=`, the bits of
a float32 and its code: zeros, infinities, NaN, and what is larger than 448 (of 2.13; earlier releases make NaN of what is)."""

import argparse
from pathlib import Path

import packages  # noqa: F401  says what is not installed
import torch


def number_bits(code):
    number = torch.tensor([code], dtype=torch.uint8).view(torch.float8_e4m3fn).to(torch.float32)
    return number.view(torch.int32).item() & 0xFFFFFFFF


def code_of(bits):
    return torch.tensor([bits - (bits >> 31 << 32)], dtype=torch.int32).view(torch.float32).to(torch.float8_e4m3fn).view(torch.uint8).item()


def first_with(code):
    """The smallest positive float32 whose code is at least this one; codes of positive numbers ascend with them."""
    low, high = 0, 0x7F000000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if code_of(middle) >= code else (middle + 1, high)
    return low


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    lines = []
    for code in range(256):
        lines.append(f"{code:02x} {number_bits(code):08x}" + (f" {first_with(code):08x}" if 0 < code < 0x7F else ""))
    for bits in (0x00000000, 0x80000000, 0x43E80000, 0x43E80001, 0x43F00000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000):
        lines.append(f"= {bits:08x} {code_of(bits):02x}")
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
