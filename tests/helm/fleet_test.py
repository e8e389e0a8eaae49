#!/usr/bin/env python3
"""What a fleet of two nodes will tell, made up by this test until the program tells it: Prometheus has data for each panel of the dashboard Nodes, the
numbers at its top are right, and no alert is about a fleet that is well.

  fleet_test.py      (exit status 77: no prometheus)
"""

import http.server
import os
import sys
import threading
import time

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402
from names import TO_COME, dashboards, queries  # noqa: E402
from prometheus import Processes, filled_in, start_prometheus  # noqa: E402

PATIENCE = 60
BEGIN = time.monotonic()

TOP = {"Members": 2, "Ready": 2, "Planners": 1, "Cameras unplaced": 0, "Links down": 0, "Configurations": 1}


def page(node):
    """Of node 0, which plans, or 1."""
    steps = int((time.monotonic() - BEGIN) * 10)
    other = f'node="n{1 - node}"'
    figures = {
        'vigil_build_info{version="0.1.0",commit="1f2e"}': 1, 'vigil_cameras{state="up"}': 3, 'vigil_cameras{state="down"}': 0,
        'vigil_windows_total{outcome="answered"}': steps, "vigil_fleet_member": 1, "vigil_fleet_planner": 1 - node, "vigil_fleet_registry_up": 1,
        'vigil_fleet_nodes{state="joining"}': 0, 'vigil_fleet_nodes{state="ready"}': 2, 'vigil_fleet_nodes{state="draining"}': 0,
        'vigil_fleet_registry_seconds_bucket{le="0.01"}': steps, 'vigil_fleet_registry_seconds_bucket{le="+Inf"}': steps,
        "vigil_fleet_registry_seconds_sum": steps / 200, "vigil_fleet_registry_seconds_count": steps,
        'vigil_fleet_cameras{state="owned"}': 3, 'vigil_fleet_cameras{state="handing_over"}': 0, 'vigil_fleet_cameras{state="unplaced"}': 0,
        'vigil_fleet_config_info{version="a1b2"}': 1, f"vigil_link_up{{{other}}}": 1,
        'vigil_gateway_events_total{outcome="stored"}': steps, 'vigil_gateway_events_total{outcome="committed"}': steps,
        'vigil_gateway_events_total{outcome="duplicate"}': 0, 'vigil_gateway_events_total{outcome="refused"}': 0, "vigil_gateway_behind_events": 0,
    }
    for direction in ("outgoing", "incoming"):
        of = f'{other},direction="{direction}"'
        figures[f"vigil_link_bytes_total{{{of}}}"] = steps * 1000
        figures[f"vigil_link_waiting_bytes{{{of}}}"] = 4096
        figures.update({f'vigil_link_resets_total{{{of},reason="{reason}"}}': 0 for reason in ("connection", "silence", "checksum", "closed")})
    return "".join(f"{name} {value}\n" for name, value in figures.items())


def serve(port, node):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page(node).encode())

        def log_message(self, *what):
            pass

    threading.Thread(target=http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever, daemon=True).start()


def main():
    missing = [name for name in TO_COME if name not in page(0)]
    if missing:
        sys.exit(f"fleet_test: this page lacks {missing}")
    nodes = next(each for each in dashboards() if each["uid"] == "vigil-nodes")
    choice = {variable["name"]: variable["allValue"] for variable in nodes["templating"]["list"][1:]}
    asked = [(panel, filled_in(target["expr"], choice), target["instant"]) for panel, target in queries(nodes)]
    with Processes() as processes:
        *targets, port = free_ports(3)
        for node, each in enumerate(targets):
            serve(each, node)
        prometheus = start_prometheus(processes, port, targets)
        until = time.monotonic() + PATIENCE
        prometheus.wait_for("count(rate(vigil_windows_total[15s])) == 2", processes, until)
        while True:
            processes.check()
            faults = [f"{panel['title']}: {expression}\n  has no data" for panel, expression, instant in asked if not prometheus.has_data(expression, instant)]
            for panel, expression, instant in asked:
                if panel["title"] in TOP and prometheus.values(expression, True) != [TOP[panel["title"]]]:
                    faults.append(f"{panel['title']}: {prometheus.values(expression, True)}")
            # A scrape that takes too long, on a machine with much else to do, is no fault.
            told, wrong = prometheus.alerts()
            faults += wrong + [f"{name} is about a fleet that is well: {labels}" for name, labels in told.items()]
            if not faults or time.monotonic() > until:
                break
            time.sleep(1)
        if set(TOP) - {panel["title"] for panel, _, _ in asked}:
            faults.append(f"the dashboard has no {set(TOP) - {panel['title'] for panel, _, _ in asked}}")
        if faults:
            sys.exit("\n".join(faults))
        print(f"{len(asked)} queries")


if __name__ == "__main__":
    main()
