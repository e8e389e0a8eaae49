#!/usr/bin/env python3
"""`vigil bench engine` on each device and in each precision, one process after the other, as one table of milliseconds.

    loadtest/engine/gpu_table.py --vigil build/cuda/bin/vigil [--devices 'cuda:0,cuda:0+1,cuda:0>cuda:1'] [--keep FILE]

A window of 80 frames of 448x448 answered alone, then steps of 64 sequences of 16 frames, as in docs/performance.md. A device A>B prefills on A and generates on B. Every JSON line of the
benches goes to FILE, and the table to stdout. Exit status 1 if a bench failed; the others are told all the same.
"""

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
WORKS = {"one window": ["--sequences", "1"], "64 sequences": ["--frames", "16", "--sequences", "64"]}


def bench(arguments, device, precision, work):
    """The figures of one process, and its lines."""
    prefill, _, decode = device.partition(">")
    command = [*shlex.split(arguments.vigil), "bench", "engine", "--shape", arguments.shape, "--device", prefill, "--quantization", precision, "--runs", str(arguments.runs), *work]
    command += ["--decode-device", decode] if decode else []
    command += ["--random-weights"] if arguments.shape.endswith(".json") else []
    command += shlex.split(arguments.more)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"{shlex.join(command)}: {(done.stderr.strip().splitlines() or ['failed without a word'])[0]}", file=sys.stderr)
        return {}, []
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {line["figure"]: line["median"] * 1000 for line in lines if line["unit"] == "s"}, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vigil", default=str(ROOT / "build/cuda/bin/vigil"), help="the program, with what has to stand before it")
    parser.add_argument("--shape", default=str(ROOT / "loadtest/shapes/qwen2.5-vl-7b.json"), help="a published config.json, or a model folder")
    parser.add_argument("--devices", default="cuda:0")
    parser.add_argument("--precisions", default="none,fp8,fp8-all")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--more", default="", help="further arguments of every bench")
    parser.add_argument("--keep", help="the benches' own lines go there")
    arguments = parser.parse_args()
    columns, failed, kept = {}, False, []
    for device in arguments.devices.split(","):
        for precision in arguments.precisions.split(","):
            for name, work in WORKS.items():
                figures, lines = bench(arguments, device, precision, work)
                failed = failed or not figures
                kept += lines
                columns[(device, precision, name)] = figures
    if arguments.keep:
        Path(arguments.keep).write_text("".join(json.dumps(line) + "\n" for line in kept))
    for name in WORKS:
        of_work = {key[:2]: figures for key, figures in columns.items() if key[2] == name}
        first = next(iter(of_work.values()))
        rows = [row for row in dict.fromkeys(row for figures in of_work.values() for row in figures) if row != "load"]
        print(f"\n| {name}, ms (times the first) | " + " | ".join(" ".join(key) for key in of_work) + " |\n|" + "---|" * (len(of_work) + 1))
        for row in rows:
            cells = [f"{figures[row]:.2f} ({first[row] / figures[row]:.2f})" if row in figures and row in first and figures[row] > 0 else "-" for figures in of_work.values()]
            print(f"| {row} | " + " | ".join(cells) + " |")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
