#!/usr/bin/env python3
"""Answers of vigil run about the past name the clips of alerts that show their evidence, while they are kept.

  clips_test.py VIGIL MODEL PERSON_VIDEO
"""

import glob
import json
import os
import re
import sys
import tempfile
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402
from memory_test import PATIENCE, Service, camera, check, seconds, when  # noqa: E402

QUESTION = "Is there a person in the room?"


def overlap(one, other):
    """How long both are, in seconds."""
    begin, end = max(one[0], other[0]), min(one[1], other[1])
    return max(0.0, (end - begin).total_seconds())


def kept(folder):
    """Of each clip in the folder of evidence whose it is, and when: what its file says of itself."""
    clips = {}
    for path in glob.glob(os.path.join(folder, "evidence", "*", "*", "*.mp4")):
        with open(path, "rb") as file:
            note = json.loads(re.search(rb'\{"camera":[^}]*\}', file.read()).group())
        clips[os.path.relpath(path, os.path.join(folder, "evidence"))] = (note["tenant"], note["camera"], (when(note["from"]), when(note["to"])))
    return clips


def await_answer(service, seen, name, question, is_so, what):
    """A clip is cut after its alert, and one of an earlier run read a moment after a start."""
    end = time.monotonic() + PATIENCE
    while True:
        # Somebody comes into the picture in the video's sixth second, and that is told.
        begin = when(seen[name]["from"])
        answer = service.ask(name, question, begin, begin + seconds(60))
        check(answer["evidence"], f"no evidence: {answer}")
        if is_so(answer["evidence"]):
            return answer["evidence"]
        check(time.monotonic() < end, f"{what}: {answer}, of {kept(service.folder)}")
        time.sleep(0.1)


def clips_of(evidence):
    return {each["clip"] for each in evidence if each["clip"]}


def check_named(evidence, name, folder):
    """Each piece names the clip that shows most of it, if one shows any of it; those files are there."""
    clips = {clip: span for clip, (tenant, camera_name, span) in kept(folder).items() if (tenant, camera_name) == ("north", name)}
    check(clips, f"no clips of {name}: {kept(folder)}")
    for each in evidence:
        window = (when(each["from"]), when(each["to"]))
        shown = {clip: overlap(window, span) for clip, span in clips.items()}
        most = max(shown.values())
        # Times are told in milliseconds.
        check(shown[each["clip"]] == most > 0 if each["clip"] else most <= 0.001, f"{each}: {shown}")
        if each["clip"]:
            check(each["thumb"] == each["clip"].replace(".mp4", ".jpg"), f"its still: {each}")
            check(all(os.path.getsize(os.path.join(folder, "evidence", each[key])) > 0 for key in ("clip", "thumb")), f"not there: {each}")


def main():
    vigil, model, person = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        service = Service(vigil, folder, free_ports(3))
        service.more = {"evidence": {"enabled": True, "dir": "evidence", "pre_roll": "1s", "post_roll": "1s"}}
        nothing = [{"name": "rule", "prompt": "Is there a car?"}]
        # The same is seen by all; of the one nothing is told.
        cameras = {"room": camera(person, live=False), "yard": camera(person, live=False), "hall": camera(person, live=False, rules=nothing)}
        # A run goes on as long as one of its cameras does.
        live = {"live": camera(person, live=True, keep="off", rules=nothing)}
        tiers = {"dir": "memory"}
        try:
            service.start(model, {**cameras, **live}, tiers)
            seen = service.await_cameras(lambda each: all(not each.get(name, {"watched": True})["watched"] for name in cameras), "end of the videos")
            named = {name: await_answer(service, seen, name, QUESTION, clips_of, "nothing is named") for name in ("room", "yard")}
            for name, evidence in named.items():
                check_named(evidence, name, folder)
            none = await_answer(service, seen, "hall", QUESTION, lambda each: True, "")
            check(all(each["clip"] is None and each["thumb"] is None for each in none), f"of another camera: {none}")
            print("named while it runs")
            service.stop()

            service.start(model, live, tiers)
            for name, evidence in named.items():
                again = await_answer(service, seen, name, QUESTION, lambda each, clips=clips_of(evidence): clips_of(each) >= clips, "nothing is named after a restart")
                check_named(again, name, folder)
            print("named after a restart")
            service.stop()

            # The newest are read first: where an older one is named, they have been read.
            by_age = sorted(named, key=lambda name: max(os.path.getmtime(os.path.join(folder, "evidence", clip)) for clip in clips_of(named[name])))
            for clip in kept(folder):
                if clip.startswith(by_age[-1] + "/"):
                    with open(os.path.join(folder, "evidence", clip), "r+b") as file:
                        file.write(bytes(64))
            service.start(model, live, tiers)
            await_answer(service, seen, by_age[0], QUESTION, clips_of, "what is whole is not named")
            damaged = await_answer(service, seen, by_age[-1], QUESTION, lambda each: True, "")
            check(not clips_of(damaged), f"what is damaged is named: {damaged}")
            service.stop()

            for clip in kept(folder):
                with open(os.path.join(folder, "evidence", clip), "ab") as file:
                    file.truncate(2 << 20)
            service.more["evidence"]["budget"] = "1MiB"
            service.start(model, live, tiers)
            gone = await_answer(service, seen, by_age[0], QUESTION, lambda each: True, "")
            check(not clips_of(gone) and not kept(folder), f"what has gone is named: {gone}")
            print("not named when they have gone")
            service.stop()
        finally:
            if service.process:
                service.process.kill()


if __name__ == "__main__":
    main()
