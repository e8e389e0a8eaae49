#!/usr/bin/env python3
"""Prometheus scrapes a `vigil run` of the demo's cameras, and is asked everything that dashboards, rules and runbooks ask: each query of a panel has to
have data, unless the table below says why it cannot; then it has to have none.

  scrape_test.py VIGIL      (exit status 77: no prometheus)
"""

import os
import sys
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402
from names import FLEET, ROOT, read  # noqa: E402
from prometheus import Processes, start_prometheus  # noqa: E402
from questions import LOT, Trial  # noqa: E402

# From the start until all queries have data, which takes ten seconds on a machine with nothing else to do.
PATIENCE = 150

# Metrics that this run cannot give, and why. fleet_test.py has what gives them.
NO_DATA = {
    **{name: "of a node of a fleet" for name in FLEET},
    "vigil_past_erasures_waiting": "of a node of a fleet",
    "vigil_camera_recording": "of live cameras with an input of their own for recording",
}

# Beside the demo's cameras and the one that has everything: one that is not there.
GONE = """
  gone:
    url: rtsp://127.0.0.1:{nobody}/none
    labels: {{tenant: demo}}
    rules: [{{name: car, prompt: "Is there a car?"}}]
"""


def configuration(folder, ports):
    """The demo's, with its own ports and folders, more audits, and the cameras above."""
    text = read(os.path.join(ROOT, "config", "demo.yaml"))
    cameras = GONE.format(nobody=ports[4]) + LOT.format(root=ROOT)
    for old, new in (("../models", f"{ROOT}/models"), ("../tests", f"{ROOT}/tests"), ("../build/demo-", f"{folder}/"), ("audit: 500", "audit: 5"),
                     (":5556", f":{ports[0]}"), (":5557", f":{ports[1]}"), (":9464", f":{ports[2]}"), (":5558", f":{ports[5]}"), ("\ncameras:\n", "\ncameras:" + cameras)):
        if old not in text:
            sys.exit(f"scrape_test: config/demo.yaml has no {old!r} any more")
        text = text.replace(old, new)
    return text


def main():
    vigil = os.path.abspath(sys.argv[1])
    with Processes() as processes:
        ports = free_ports(6)
        until = time.monotonic() + PATIENCE
        # It is there first, so that it sees what follows the first event.
        prometheus = start_prometheus(processes, port=ports[3], targets=[ports[2]])
        path = processes.write("vigil.yaml", configuration(processes.folder, ports))
        processes.start("vigil", [vigil, "run", "--config", path], env={**os.environ, "OMP_WAIT_POLICY": "passive"})
        prometheus.wait_for("vigil_cameras", processes, until)
        trial = Trial(prometheus, NO_DATA, os.path.basename(__file__))
        count = trial.ask_all(processes, until)
        trial.check_rules(until, down=["gone"])
        if trial.faults:
            sys.exit("\n".join(trial.faults))
        print(f"{count} queries")


if __name__ == "__main__":
    main()
