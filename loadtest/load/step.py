#!/usr/bin/python3
"""One load of a scenario, in namespaces of its own; started by `run`, with what it needs in a file of JSON, and its result goes into another.

  step.py REQUEST RESULT        REQUEST: {"scenario", "cameras", "build", "folder", "patience"}
"""

import json
import os
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))
import network  # noqa: E402

DRAIN = 4.0


def main():
    network.enter()
    import measure
    from phases import Phases
    from rig import Rig
    with open(sys.argv[1], encoding="utf-8") as file:
        request = json.load(file)
    scenario, count = request["scenario"], request["cameras"]
    say = lambda text: print(f"{count} cameras: {text}", file=sys.stderr, flush=True)  # noqa: E731
    began = time.monotonic()
    try:
        with Rig(scenario, count, request["build"], request["folder"], say, request["patience"]) as rig:
            say(f"up after {rig.started:.1f} s")
            time.sleep(scenario["warmup"])
            walls = [time.time() - time.monotonic()]
            phases = Phases(rig, scenario)
            told = phases.run()
            # What was captured last is told.
            time.sleep(scenario["cameras"]["stride"] + DRAIN)
            walls.append(time.time() - time.monotonic())
            rig.read_all()
            kinds = {kind: len(names) for kind, names in rig.cameras.of.items() if names}
            problems, started, live = rig.problems, rig.started, rig.cameras.of["rtsp"]
    except RuntimeError as error:
        say(str(error))
        return 1
    found = measure.of(request["folder"], told, phases.slow, scenario["cameras"]["stride"], sum(walls) / 2, live)
    # A clock that is set while we measure would be latency.
    if abs(walls[1] - walls[0]) > 0.05:
        problems.append(f"the machine's clock was set by {walls[1] - walls[0]:.3f} s meanwhile")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({"cameras": count, "kinds": kinds, "seconds": round(time.monotonic() - began, 1), "up_after": round(started, 2), **found,
                   "problems": problems}, file)
    return 0


if __name__ == "__main__":
    sys.exit(main())
