#!/usr/bin/python3
"""The subscriber of docs/topics.md, as it stands there: it misses nothing while the source is killed, while it is killed itself, and when the outbox is
replaced.

  subscriber_test.py EVENT_SOURCE TOPICS_MD
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

PATIENCE = 60


def check(holds, what):
    if not holds:
        sys.exit(f"subscriber_test: {what}")


def example(page):
    """The indented block that begins with the subscriber's first line."""
    with open(page, encoding="utf-8") as file:
        blocks = re.findall(r"(?:^(?: {4}.*)?\n)+", file.read(), re.MULTILINE)
    found = [block for block in blocks if block.lstrip("\n").startswith("    import json, os, sys, zmq")]
    check(len(found) == 1, f"{page} has {len(found)} subscribers")
    return re.sub("^    ", "", found[0].lstrip("\n"), flags=re.MULTILINE)


def lines_of(path):
    """The whole lines of a file that may still be written."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split("\n")[:-1]
    except FileNotFoundError:
        return []


def eventually(condition, what):
    until = time.monotonic() + PATIENCE
    while not condition():
        check(time.monotonic() < until, what)
        time.sleep(0.02)


def main():
    event_source, page = (os.path.abspath(each) for each in sys.argv[1:])
    folder = tempfile.mkdtemp(prefix="vigil-subscriber-")
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    with open(at("subscriber.py"), "w", encoding="utf-8") as file:
        file.write(example(page))
    out, err = open(at("out"), "ab"), open(at("err"), "ab")
    processes = []

    def start(command):
        process = subprocess.Popen(command, stdout=out, stderr=err, cwd=folder)
        processes.append(process)
        return process

    def subscriber():
        return start([sys.executable, at("subscriber.py"), f"ipc://{folder}/events", f"ipc://{folder}/replay", at("cursor.json")])

    def kill(process):
        check(process.poll() is None, "a process ended by itself")
        process.kill()
        process.wait()

    def seen():
        return [tuple(line.split()[:2]) for line in lines_of(at("out"))]

    def source(mode, seed=1):
        return start([event_source, folder, str(seed), mode])

    def run_and_kill(times):
        for seed in range(times):
            before = len(lines_of(at("committed")))
            process = source("run", seed)
            eventually(lambda: len(lines_of(at("committed"))) > before + 20, "the source does nothing")
            kill(process)

    def kept():
        """All alerts that the outbox has, in the order of each topic; a source that makes no more stays on."""
        if os.path.exists(at("kept")):
            os.remove(at("kept"))
        process = source("rest")
        eventually(lambda: lines_of(at("kept"))[-1:] == ["end"], "the outbox cannot be read")
        return process, [tuple(line.split()) for line in lines_of(at("kept"))[:-1] if line.startswith("alert/")]

    try:
        listener = subscriber()
        run_and_kill(3)
        process, first = kept()
        eventually(lambda: set(first) <= set(seen()), "not every event of a killed source was handled")
        check(seen() == first, "not each once, in order")

        # Killed itself, while the source goes on: it goes on where it stopped.
        kill(listener)
        kill(process)
        run_and_kill(2)
        listener = subscriber()
        process, second = kept()
        eventually(lambda: set(second) <= set(seen()), "what came while it was away was not handled")
        check(seen()[:len(first)] == first and set(seen()) == set(second), "something else was handled")

        # A new outbox: its numbers begin anew, and all of it is handled.
        kill(process)
        shutil.rmtree(at("outbox"))
        before = len(seen())
        run_and_kill(2)
        process, third = kept()
        eventually(lambda: set(third) <= set(seen()[before:]), "what a new outbox has was not handled")
        check(seen()[before:] == third, "of the new outbox not each once, in order")
        check(any("another outbox" in line for line in lines_of(at("err"))), "a new outbox was not told")
        check(listener.poll() is None and process.poll() is None, "somebody ended by himself")
        print(f"{len(first)}, {len(second)} and, of another outbox, {len(third)} events: each was handled")
    finally:
        for each in processes:
            each.kill()
            each.wait()
        for line in lines_of(at("err")):
            print(line, file=sys.stderr)
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
