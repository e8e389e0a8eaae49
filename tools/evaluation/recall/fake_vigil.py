"""Stands in for `vigil` in test_service.py: remembers, answers and ends as the folder FAKE says, and writes down there what it was asked.

FAKE/methods: what `ask` takes. FAKE/stop: at an ask by this method, or where it is to see ("see"), the leader of its process group is told that its time is over, and nothing is answered any more.
FAKE/broken: a camera at which `run` fails. FAKE/asked, FAKE/ran: a JSON a line. FAKE/up-PORT: of a service that can be asked, while it runs.
"""

import json
import os
import signal
import sys
from pathlib import Path

HERE = Path(os.environ["FAKE"])


def note(name, **what):
    # One write is one line, whoever else writes.
    with open(HERE / name, "a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def word(name):
    return (HERE / name).read_text() if (HERE / name).exists() else ""


def stop_at(what):
    if word("stop") == what:
        os.kill(os.getpgrp(), signal.SIGALRM)
        signal.pause()


def run(path):
    config = json.loads(path.read_text())
    cameras = {name: each for name, each in config["cameras"].items() if name != "nobody"}
    watches = any(each["enabled"] for each in cameras.values())
    note("ran", device=config["engine"]["device"], watches=watches, cameras=sorted(cameras))
    if word("broken") in cameras:
        sys.exit("broken")
    if watches:
        (path.parent / "memory").mkdir(exist_ok=True)
        stop_at("see")
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    up = HERE / f"up-{config['asks']['bind'].rpartition(':')[2]}"
    half = up.with_name("half-" + up.name)
    half.write_text(json.dumps(sorted(cameras)))
    half.replace(up)
    signal.sigwait({signal.SIGTERM})
    up.unlink()


def main(words):
    if words[:2] == ["ask", "--help"]:
        print(f"  --method TEXT:{{{word('methods')}}}\n      How")
    elif words[0] == "run":
        run(Path(words[2]))
    elif words[:2] == ["memory", "list"]:
        up = HERE / f"up-{words[words.index('--connect') + 1].rpartition(':')[2]}"
        if not up.exists():
            sys.exit("nobody")
        print(json.dumps({"cameras": [{"camera": name, "from": "2026-11-29T10:00:00Z"} for name in json.loads(up.read_text())]}))
    elif words[1] == "--camera":
        method = words[words.index("--method") + 1]
        note("asked", camera=words[2], method=method, text=words[3], since=words[words.index("--since") + 1])
        stop_at(method)
        print(json.dumps(dict(probability=.9, answer="Yes", moment=None, evidence=[], tokens=dict(read=10, exhaustive=100), bytes=dict(host=0, disk=5), seconds=dict(total=.1), coverage=dict(share=1), windows_lost=0)))
    else:
        note("asked", video=Path(words[1]).name, text=words[2], device=words[words.index("--device") + 1])
        print(json.dumps(dict(probability_yes=.2 if words[1].endswith("8.mp4") else .9, answer="At second 5.")))


main(sys.argv[1:])
