#!/usr/bin/python3
"""What it takes to have the vision tower, the language model and explanations on nodes of their own: bytes from node to node, and how much later answers come.

  loadtest/pipeline/stages.py BUILD [--cameras N] [--seconds S] [--rounds N] [--pruning PRESET] [--plain] [--only ARRANGEMENT] [--explain | --gateway]

The same cameras (the clips of tests/videos, looped, at their own pace) are watched by one process, by a camera node and one that computes, and by three
nodes, in turns, all on this machine, with mutual TLS and CURVE between nodes, as between machines, or --plain. Every window is told; its time is from when its last frame was captured until a subscriber has the
event. With --explain, the event has the model's text, too, and a fourth arrangement has a node that generates it. With --gateway, the gateway has a node of its own or not, and all else is one. Prints JSON lines: each run, then the medians over rounds. Needs etcd,
openssl and ss, and ffprobe for what the clips take. VIGIL_TEST_ENGINE='{device: cuda}' computes on a GPU.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
from datetime import datetime

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "fleet"))
from certificates import Authority  # noqa: E402
from processes import COMPUTE, Fleet, wait_for  # noqa: E402

ARRANGEMENTS = {
    "one process": {"c1": "camera,gateway," + COMPUTE},
    "camera apart": {"c1": "camera,gateway", "g1": COMPUTE},
    "three nodes": {"c1": "camera,gateway", "v1": "vision", "s1": "stream,generate"},
}
EXPLAINED = {
    "one process": {"c1": "camera,gateway," + COMPUTE},
    "three nodes": {"c1": "camera,gateway", "v1": "vision", "s1": "stream,generate"},
    "generate apart": {"c1": "camera,gateway", "v1": "vision", "s1": "stream", "x1": "generate"},
}
GATEWAY = {
    "one process": {"c1": "camera,gateway," + COMPUTE},
    "gateway apart": {"c1": "camera," + COMPUTE, "w1": "gateway"},
}


def configure(fleet, arguments):
    with open(fleet.config) as file:
        text = file.read()
    text = text.replace('rules: [{name: person, prompt: "Is there a person?"}]',
                        'rules: [{name: person, prompt: "Is there a person?", threshold: 0, confirm: 1/1, cooldown: 0s, max_per_hour: 10000}]')
    if arguments.explain:
        text = text.replace('?", threshold', '? Explain.", explain: true, threshold')
    text = text.replace("defaults: {fps: 2,", f"defaults: {{pruning: {arguments.pruning}, fps: 2,")
    if not arguments.plain:
        folder = os.path.join(fleet.folder, "tls")
        Authority(fleet.folder, "authority").issue(folder)
        text = text.replace("cluster:\n", f"cluster:\n  tls_dir: {folder}\n")
    with open(fleet.config, "w") as file:
        file.write(text)


def sent(nodes, name, other):
    """Bytes that a node has sent to another one: from its bulk port, as whoever receives has made the connection; to a gateway, which takes no bulk bytes,
    all that it has."""
    out = subprocess.run(["ss", "-tinpH"], capture_output=True, text=True, check=True).stdout
    sockets = re.findall(r"^\S+\s+\d+\s+\d+\s+\S*?:(\d+)\s+\S*?:(\d+)\s+(.*)\n(.*)$", out, re.MULTILINE)
    of_other = {int(local) for local, peer, users, _ in sockets if f"pid={nodes[other].process.pid}," in users}
    total = 0
    for local, peer, users, more in sockets:
        if (int(local) == nodes[name].bulk if other != "w1" else f"pid={nodes[name].process.pid}," in users) and int(peer) in of_other:
            counted = re.search(r"bytes_sent:(\d+)", more)
            total += int(counted.group(1)) if counted else 0
    return total


def measure(arguments, roles):
    with Fleet(arguments.build, cameras=arguments.cameras) as fleet:
        configure(fleet, arguments)
        fleet.etcd.start()
        nodes = {name: fleet.node(name, what) for name, what in roles.items()}
        for node in nodes.values():
            node.start()
        wait_for(lambda: fleet.watched([nodes["c1"]]), 30, lambda: fleet.logs() + "\nall cameras are up")
        watch = subprocess.Popen([fleet.vigil, "watch", "alert/", "--endpoint", f"tcp://127.0.0.1:{nodes['w1' if 'w1' in nodes else 'c1'].events}", "--output", "json"],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        heard = []

        def listen():
            for line in watch.stdout:
                heard.append((time.time(), line))

        listener = threading.Thread(target=listen, daemon=True)
        listener.start()
        # Until windows have their full length.
        time.sleep(8)
        ways = [(a, b) for a, b in (("c1", "g1"), ("c1", "v1"), ("v1", "s1"), ("s1", "x1"), ("c1", "w1")) if a in nodes and b in nodes]
        before, from_wall = {way: sent(nodes, *way) for way in ways}, time.time()
        time.sleep(arguments.seconds)
        after, to_wall = {way: sent(nodes, *way) for way in ways}, time.time()
        watch.kill()
        ages, texts = [], 0
        for at, line in heard:
            event = json.loads(line)
            if from_wall <= at <= to_wall and event["data"]["phase"] != "end":
                texts += bool(event["data"].get("description"))
                ages.append(at - datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp())
        ages.sort()
        dropped = sum(node.status().get("windows", {}).get("overtaken", 0) for node in nodes.values())
        return {"windows": len(ages), "within_10_ms": round(1e3 * ages[int(0.1 * len(ages))], 1), "median_ms": round(1e3 * statistics.median(ages), 1),
                "within_95_ms": round(1e3 * ages[int(0.95 * len(ages))], 1), "overtaken": dropped, "texts": texts,
                "generated_tokens": {name: node.metric("vigil_generation_tokens_total") for name, node in nodes.items()} if arguments.explain else {},
                "bytes_per_camera_second": {" -> ".join(way): round((after[way] - before[way]) / (to_wall - from_wall) / arguments.cameras)
                                            for way in ways}}


def clips(count):
    """What the cameras' clips take as they are, and as frames: bytes of a camera's second."""
    folder = os.path.join(ROOT, "tests", "videos")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".mp4"))
    h264, raw = [], []
    for i in range(count):
        path = os.path.join(folder, names[i % len(names)])
        shown = json.loads(subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "stream=width,height,avg_frame_rate,bit_rate",
                                           "-of", "json", path], capture_output=True, text=True, check=True).stdout)["streams"][0]
        h264.append(int(shown["bit_rate"]) / 8)
        raw.append(shown["width"] * shown["height"] * 3 * 2)
    return {"h264": round(statistics.mean(h264)), "raw_at_2_fps_in_their_own_size": round(statistics.mean(raw))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--cameras", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pruning", default="balanced")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--only", metavar="ARRANGEMENT", help="as 'three nodes'")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--explain", action="store_true")
    what.add_argument("--gateway", action="store_true")
    arguments = parser.parse_args()
    program = os.path.join(os.path.abspath(arguments.build), "bin", "vigil")
    if not os.path.exists(program):
        print(f"stages: {program} is missing: scripts/build release", file=sys.stderr)
        return 2
    bench, arrangements = ("stages_explained", EXPLAINED) if arguments.explain else ("stages_gateway", GATEWAY) if arguments.gateway else ("stages", ARRANGEMENTS)
    if arguments.only:
        if arguments.only not in arrangements:
            parser.error(f"--only: no arrangement '{arguments.only}' (there are: {', '.join(arrangements)})")
        arrangements = {arguments.only: arrangements[arguments.only]}
    if shutil.which("ffprobe"):
        print(json.dumps({"bench": bench, "arrangement": "clips", "bytes_per_camera_second": clips(arguments.cameras)}), flush=True)
    runs = {name: [] for name in arrangements}
    for turn in range(arguments.rounds):
        for name, roles in arrangements.items():
            run = measure(arguments, roles)
            runs[name].append(run)
            print(json.dumps({"round": turn, "arrangement": name, **run, "load": round(os.getloadavg()[0], 2)}), flush=True)
    for name, all_of_it in runs.items():
        figures = {key: statistics.median(run[key] for run in all_of_it) for key in ("within_10_ms", "median_ms", "within_95_ms")}
        ways = {way: statistics.median(run["bytes_per_camera_second"][way] for run in all_of_it) for way in all_of_it[0]["bytes_per_camera_second"]}
        print(json.dumps({"bench": bench, "arrangement": name, "engine": os.environ.get("VIGIL_TEST_ENGINE", "{device: cpu}"), "pruning": arguments.pruning, "encrypted": not arguments.plain, "rounds": arguments.rounds, **figures, "bytes_per_camera_second": ways}), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
