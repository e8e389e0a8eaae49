#!/usr/bin/env python3
"""`vigil bench city` prints JSON lines, the same whenever it is run, with the limits that they have; with --measure, what this machine takes.

  bench_city_test.py VIGIL
"""

import json
import subprocess
import sys


def lines(vigil, *options):
    command = [vigil, "bench", "city", "--cameras", "200", "--nodes", "12", "--gateways", "2", "--steady", "1m", "--upgrades", "2", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main():
    vigil = sys.argv[1]
    faults = []

    def expect(condition, words):
        if not condition:
            faults.append(words)

    found = lines(vigil, "--seed", "7")
    figures = {(line["phase"], line["figure"]): line for line in found}
    for line in found:
        expect(line["bench"] == "city" and line["cameras"] == 200 and line["nodes"] == 12 and line["seed"] == 7 and line["commit"], f"about it: {line}")
    disk = figures[("start", "etcd_disk_peak")]
    expect(disk["of_capacity"] == disk["value"] > 0, f"of a disk that has a second a second: {disk}")
    expect("of_capacity" not in figures[("start", "etcd_writes")], "a limit where there is none")
    for phase in ("start", "steady", "node_lost", "power_back", "upgrade"):
        expect(figures[(phase, "unwatched_at_end")]["value"] == 0, f"cameras are not watched after {phase}")
    expect(figures[("power_cut", "unwatched_at_end")]["value"] == 0, "those with power are not watched while others have none")
    expect(found == lines(vigil, "--seed", "7"), "another time it is another")
    expect(found != lines(vigil, "--seed", "8"), "the seed decides nothing")
    slow = {(line["phase"], line["figure"]): line["value"] for line in lines(vigil, "--seed", "7", "--etcd-sync", "100")}
    expect(slow[("start", "etcd_disk_peak")] > disk["value"], "a slow disk is no busier")
    measured = {line["figure"]: line for line in lines(vigil, "--measure")}
    expect(measured["plan_all"]["value"] > 0 and measured["record_bytes"]["value"] > 300 and measured["plan_all"]["machine"], f"measured: {measured}")
    sys.exit("\n".join(faults) or 0)


main()
