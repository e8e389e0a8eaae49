#!/usr/bin/python3
"""Kills `vigil run` at random moments, while subscribers stay on.

Each topic's numbers have no gap, no two events have one source and id, each alert is on all of its topics, each clip that was promised is
ready, with its files, or failed, and each `vigil watch` shows all events of its topics once and in order.
"""

import json
import os
import random
import sys
import time

import faults
import vigil_run


def follow(site, topics, log):
    """`vigil watch`, whose output goes to a file."""
    return faults.Process([site.vigil, "watch", topics, "--output", "json", "--endpoint", site.events, "--replay", site.replay, "--since", "1d"], f"{log}-said", output=log)


def check_follower(kept, topics, log):
    shown = {}
    for line in faults.lines_of(log):
        shown.setdefault(place_of(json.loads(line)), []).append(line)
    wanted = {}
    for event in kept:
        if event.topic.startswith(topics):
            wanted.setdefault(place_of(json.loads(event.body)), []).append(event.body.decode())
    for place, bodies in wanted.items():
        if shown.get(place) != bodies:
            raise faults.Failure(f"vigil watch {topics} showed {len(shown.get(place, []))} of the {len(bodies)} events of {place}, "
                                 "or in another order")


def place_of(body):
    data = body["data"]
    return (body["type"], data.get("tenant"), data.get("camera"), data.get("rule"))


def main():
    options = faults.arguments(__doc__, kills=(100, "times"), most=(6.0, "seconds until a kill at most"))
    began = time.monotonic()
    failures = []
    rng = random.Random(options.seed)
    with faults.scratch() as folder:
        site = vigil_run.Site(options, folder)
        subscriber = faults.Subscriber(site.events)
        truth = faults.Truth()
        followed = {topics: os.path.join(folder, f"watch-{number}") for number, topics in enumerate(("alert/", "topic/staff/", "topic/guards/", "status/"))}
        followers = [follow(site, topics, log) for topics, log in followed.items()]
        # From their first event on the followers are there.
        with site.start() as process:
            faults.eventually(lambda: all(faults.lines_of(log) for log in followed.values()), what="the first event of each follower")
        for kill in range(options.kills):
            # Clips that are made at once, and clips that more than eight events come before.
            with site.start(post_roll=rng.choice(("500ms", "30s")), pace=rng.choice(("realtime", "fast", "fast"))) as process:
                before = len(subscriber.seen)
                if kill % 2:
                    faults.eventually(lambda: len(subscriber.seen) > before or process.poll() is not None)
                time.sleep(rng.random() * options.most)
                if process.poll() is not None:
                    failures.append(f"it ended by itself, at start {kill}: {process.said().splitlines()[-1:]}")
        with site.start(quiet=True) as process:
            try:
                faults.eventually(lambda: process.poll() is not None or "watching" in process.said(), what="the last start")
                identity, kept = faults.replay(site.replay)
                count = -1
                while count != len(kept):
                    count = len(kept)
                    time.sleep(1)
                    identity, kept = faults.replay(site.replay)
                wanted = sum(event.topic.startswith(tuple(followed)) for event in kept)
                faults.eventually(lambda: sum(len(faults.lines_of(log)) for log in followed.values()) >= wanted, patience=15)
            except faults.Failure as failure:
                failures.append(str(failure))
                identity, kept = None, []
            seen = subscriber.drain()
        checks = [lambda: truth.shown(seen), lambda: truth.check(identity, kept), lambda: vigil_run.check_copies(kept),
                  lambda: figures.update(ready=vigil_run.check_evidence(site, kept))]
        checks += [lambda topics=topics, log=log: check_follower(kept, topics, log) for topics, log in followed.items()]
        figures = {}
        for check in checks:
            try:
                check()
            except faults.Failure as failure:
                failures.append(str(failure))
        for follower in followers:
            follower.kill()
            follower.wait()
        subscriber.close()
    for failure in failures:
        faults.say(fault="kill", seed=options.seed, failure=failure)
    faults.say(fault="kill", kills=options.kills, events=len(kept), seen=len(seen), **figures, seconds=round(time.monotonic() - began, 1), failures=len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
