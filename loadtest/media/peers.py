#!/usr/bin/env python3
"""Decodes and samples videos with Vigil and with its peers, in turns, and prints one table and JSON lines.

Every variant makes the same thing: RGB frames of 448x448 at 2 a second, from one pass over the file (FFmpeg's null decode and
its filters without RGB are the limits to compare with). Each run is a process of its own that times itself after
its imports; rounds are interleaved, so that a busy machine hits all variants alike, and ratios are medians over rounds.

    loadtest/media/peers.py --bench build/release/bin/bench_media tests/videos/*.mp4

Peers that this Python cannot import are left out: OpenCV (cv2), PyAV (av), decord.
"""
import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time

FPS = 2.0
EDGE = 448


def run_opencv(path, threads):
    import cv2

    def work():
        cv2.setNumThreads(threads)
        capture = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, threads])
        rate = capture.get(cv2.CAP_PROP_FPS)
        frames, index, wanted = 0, 0, 0
        while capture.grab():
            if index / rate >= wanted / FPS - 1e-6:
                _, picture = capture.retrieve()
                cv2.cvtColor(cv2.resize(picture, (EDGE, EDGE), interpolation=cv2.INTER_CUBIC), cv2.COLOR_BGR2RGB)
                frames += 1
                wanted += 1
            index += 1
        return frames

    return work


def run_pyav(path, threads):
    import av

    def work():
        frames = 0
        with av.open(path) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            stream.codec_context.thread_count = threads
            wanted = 0
            for frame in container.decode(stream):
                if frame.time >= wanted / FPS - 1e-6:
                    frame.reformat(EDGE, EDGE, "rgb24", interpolation="BICUBIC").to_ndarray()
                    frames += 1
                    wanted += 1
        return frames

    return work


def run_decord(path, threads):
    import decord

    def work():
        reader = decord.VideoReader(path, width=EDGE, height=EDGE, num_threads=threads)
        rate = reader.get_avg_fps()
        indices, wanted = [], 0
        for index in range(len(reader)):
            if index / rate >= wanted / FPS - 1e-6:
                indices.append(index)
                wanted += 1
        return len(reader.get_batch(indices).asnumpy())

    return work


PEERS = {"opencv": ("cv2", run_opencv), "pyav": ("av", run_pyav), "decord": ("decord", run_decord)}


def worker(name, path, threads):
    work = PEERS[name][1](path, threads)
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    begin = time.perf_counter()
    frames = work()
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - cpu.ru_utime - cpu.ru_stime
    print(json.dumps({"wall": wall, "cpu": used, "frames": frames}))


def time_peer(name, path, threads):
    out = subprocess.run([sys.executable, __file__, "--worker", name, "--threads", str(threads), path],
                         check=True, capture_output=True, text=True).stdout
    result = json.loads(out.splitlines()[-1])
    return result["wall"], result["cpu"]


def time_ffmpeg(path, threads, arguments):
    """By its own clock (-benchmark), which leaves out loading the program."""
    err = subprocess.run(["ffmpeg", "-hide_banner", "-nostats", "-benchmark", "-threads", str(threads), "-i", path, "-an",
                          *arguments, "-f", "null", "-"], check=True, capture_output=True, text=True).stderr
    user, system, real = map(float, re.search(r"utime=([\d.]+)s stime=([\d.]+)s rtime=([\d.]+)s", err).groups())
    return real, user + system


def time_vigil(bench, path, threads):
    out = subprocess.run([bench, path, "--threads", str(threads), "--repeat", "1"], check=True, capture_output=True,
                         text=True).stdout
    lines = [json.loads(line) for line in out.splitlines()]
    return {line["variant"]: (line["median_seconds"], line["cpu_seconds"]) for line in lines}, lines[0]


def available():
    found = []
    for name, (module, _) in PEERS.items():
        done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True)
        if done.returncode == 0:
            found.append(name)
        else:
            print(f"# {name} is not installed for {sys.executable}", file=sys.stderr)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--bench", default="build/release/bin/bench_media", help="Vigil's bench program")
    parser.add_argument("--threads", default="1,2", help="decoder threads, each in turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write JSON lines to this file")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return worker(arguments.worker, arguments.files[0], int(arguments.threads))

    peers = available()
    scale = f"fps={FPS:g},scale={EDGE}:{EDGE}:flags=bicubic"
    filters = {
        "ffmpeg null": [],
        "ffmpeg fps,scale": ["-vf", scale],
        "ffmpeg fps,scale,rgb": ["-vf", scale + ",format=rgb24"],
    }
    lines = []
    for path in arguments.files:
        for threads in map(int, arguments.threads.split(",")):
            wall, cpu = {}, {}

            def note(name, cost):
                wall.setdefault(name, []).append(cost[0])
                cpu.setdefault(name, []).append(cost[1])

            about = {}
            for _ in range(arguments.rounds):
                costs, about = time_vigil(arguments.bench, path, threads)
                for name, cost in costs.items():
                    note(name, cost)
                for name, extra in filters.items():
                    note(name, time_ffmpeg(path, threads, extra))
                for name in peers:
                    note(name, time_peer(name, path, threads))
            print(f"\n{os.path.basename(path)}, {threads} thread{'s' if threads > 1 else ''}, {arguments.rounds} rounds")
            print(f"  {'variant':22} {'median':>8} {'least':>8} {'to null':>8} {'to ffmpeg':>10} {'cpu':>8} {'cpu to null':>12}")
            for name in wall:
                def ratio(values, base):
                    return statistics.median(a / b for a, b in zip(values[name], values[base]))
                line = {
                    "machine": about["machine"], "commit": about["commit"], "file": os.path.basename(path),
                    "threads": threads, "variant": name, "rounds": arguments.rounds,
                    "python": platform.python_version(),
                    "median_seconds": statistics.median(wall[name]), "mean_seconds": statistics.fmean(wall[name]),
                    "deviation_seconds": statistics.stdev(wall[name]) if arguments.rounds > 1 else 0.0,
                    "minimum_seconds": min(wall[name]), "cpu_seconds": statistics.median(cpu[name]),
                    "ratio": ratio(wall, "null"), "ratio_to_ffmpeg": ratio(wall, "ffmpeg null"),
                    "cpu_ratio": ratio(cpu, "null"),
                }
                lines.append(line)
                print(f"  {name:22} {line['median_seconds']:7.3f}s {line['minimum_seconds']:7.3f}s {line['ratio']:8.3f} "
                      f"{line['ratio_to_ffmpeg']:10.3f} {line['cpu_seconds']:7.3f}s {line['cpu_ratio']:12.3f}", flush=True)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            out.writelines(json.dumps(line) + "\n" for line in lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
