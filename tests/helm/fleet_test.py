#!/usr/bin/env python3
"""A fleet of real nodes, which Prometheus scrapes, is asked everything that dashboards, rules and runbooks ask, and by which the chart scales: each query
has data, the numbers at the top of the dashboard Nodes are right, and of a fleet that is well no alert is about more than a camera that is not there.

  fleet_test.py BUILD      (exit status 77: no prometheus, no etcd, or no RTSP server)
"""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path += [os.path.dirname(HERE), os.path.join(os.path.dirname(HERE), "fleet"), os.path.join(HERE, "chart")]

import kube_tools  # noqa: E402
from free_ports import free_ports  # noqa: E402
from names import ROOT, dashboards, queries, read  # noqa: E402
from processes import COMPUTE, Fleet, have_etcd  # noqa: E402
from prometheus import Processes, filled_in, start_prometheus  # noqa: E402
from questions import Trial  # noqa: E402

# From the start until all queries have data.
PATIENCE = 120

# Of the dashboard Nodes, what it shows at its top.
TOP = {"Members": 3, "Ready": 3, "Planners": 1, "Cameras unplaced": 0, "Links down": 0, "Configurations": 1}

# One that is live, with an input of its own for recording, and has all else, too; and one that is not there.
CAMERAS = """
  lot:
    inputs: [{{url: "rtsp://127.0.0.1:{port}/live", roles: [detect]}}, {{url: "rtsp://127.0.0.1:{port}/other", roles: [record]}}]
    window: {{length: 2s, stride: 1s}}
    pruning: {{kv_budget: 1MiB, audit: 3}}
    labels: {{tenant: demo}}
    rules: [{{name: stop, prompt: "Does a car stop on the road? Explain.", threshold: 0, confirm: 1/1, cooldown: 1s, max_per_hour: 3600, explain: true,
              max_tokens: 8}}]
  gone:
    url: rtsp://127.0.0.1:{nobody}/none
    labels: {{tenant: demo}}
"""


def start_rtsp_server(processes):
    """With streams that begin when somebody comes. Its port."""
    if subprocess.run(["/usr/bin/python3", "-c", "import gi; gi.require_version('GstRtspServer', '1.0')"], capture_output=True, check=False).returncode:
        print("skipped: no RTSP server (scripts/dependencies --dev)")
        sys.exit(77)
    port, = free_ports(1)
    processes.start("rtsp", ["/usr/bin/python3", os.path.join(ROOT, "tests", "rtsp", "server.py"), "--port", str(port), "--serve", "other=live"],
                    stdin=subprocess.PIPE)
    return port


def configure(fleet, rtsp):
    text = read(fleet.config)
    cameras = text[text.index("cameras:\n"):text.index("rules: ")]
    for old, new in ((cameras, "cameras:" + CAMERAS.format(port=rtsp, nobody=free_ports(1)[0])),
                     ("log: ", f'evidence: {{enabled: true, dir: "{fleet.folder}/evidence-{{NODE}}", pre_roll: 1s, post_roll: 1s}}\n'
                                f'memory: {{enabled: true, dir: "{fleet.folder}/memory-{{NODE}}"}}\nasks: {{bind: "tcp://127.0.0.1:{free_ports(1)[0]}"}}\nlog: ')):
        if text.count(old) != 1:
            sys.exit(f"fleet_test: tests/fleet/processes.py has no {old!r} any more, or twice")
        text = text.replace(old, new)
    with open(fleet.config, "w", encoding="utf-8") as file:
        file.write(text)


def scaling(folder):
    """What KEDA asks, of pods of the chart that compute. Nothing where there is no helm."""
    if not kube_tools.have_programs():
        return []
    return [("autoscaling.yaml", trigger["metadata"]["query"]) for each in kube_tools.Helm(folder).render("keda") if each["kind"] == "ScaledObject"
            for trigger in each["spec"]["triggers"]]


def top_faults(prometheus):
    """What is wrong at the top of the dashboard Nodes."""
    nodes = next(each for each in dashboards() if each["uid"] == "vigil-nodes")
    choice = {variable["name"]: variable["allValue"] for variable in nodes["templating"]["list"][1:]}
    shown = {panel["title"]: prometheus.values(filled_in(target["expr"], choice), True) for panel, target in queries(nodes) if panel["title"] in TOP}
    return [f"{title}: {shown.get(title)} in place of {value}" for title, value in TOP.items() if shown.get(title) != [value]]


def main():
    build = os.path.abspath(sys.argv[1])
    if not have_etcd():
        print("skipped: no etcd (scripts/dependencies)")
        sys.exit(77)
    with Processes() as processes, Fleet(build) as fleet:
        until = time.monotonic() + PATIENCE
        nodes = [fleet.node("c1", "camera"), fleet.node("gpu", COMPUTE), fleet.node("g1", "gateway")]
        # It is there first, so that it sees what follows the first event. Nodes are pods of the chart to it.
        pods = {node.metrics: {"namespace": "video", "pod": f"fleet-vigil-{pool}-0"} for node, pool in zip(nodes, ("camera", "compute", "gateway"))}
        prometheus = start_prometheus(processes, free_ports(1)[0], pods)
        configure(fleet, start_rtsp_server(processes))
        fleet.etcd.start()
        for node in nodes:
            node.start()
        try:
            prometheus.wait_for("count(vigil_fleet_member == 1) == 3 and count(vigil_cameras)", processes, until)
            asked = scaling(processes.folder)
            trial = Trial(prometheus, {}, os.path.basename(__file__), asked)
            count = trial.ask_all(processes, until)
            # Where no pod is found, the lag is 0.
            trial.faults += [f"{query}: no lag" for _, query in asked if "latency" in query and max(prometheus.values(query, True)) <= 0]
            while (faults := top_faults(prometheus)) and time.monotonic() < until:
                time.sleep(1)
            trial.faults += faults
            trial.check_rules(until, down=["gone"])
        except SystemExit:
            print(fleet.logs())
            raise
        if trial.faults:
            sys.exit("\n".join([fleet.logs(), *trial.faults]))
        print(f"{count} queries")


if __name__ == "__main__":
    main()
