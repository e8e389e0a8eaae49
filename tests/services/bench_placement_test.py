#!/usr/bin/env python3
"""`vigil bench placement` prints JSON lines, the same but for times whenever it is run, and what they say of placement is better than of its controls.

  bench_placement_test.py VIGIL
"""

import json
import subprocess
import sys

TIMES = ("full_placement", "nothing_changed", "lost_node", "minute_of_day")


def figures(vigil, *options):
    command = [vigil, "bench", "placement", "--runs", "3", *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {(line["method"], line["figure"]): line for line in lines}


def main():
    vigil = sys.argv[1]
    small = ("--cameras", "3000", "--nodes", "30", "--departures", "2", "--hours", "3", "--seed")
    found = figures(vigil, *small, "7")
    faults = []

    def expect(condition, words):
        if not condition:
            faults.append(words)

    line = found[("bounded", "full_placement")]
    expect(line["bench"] == "placement" and line["unit"] == "s" and line["runs"] == 3 and line["mean"] > 0, f"of the time: {line}")
    expect(line["cameras"] == 3000 and line["nodes"] == 30 and line["machine"] and line["commit"] and line["seed"] == 7, f"about it: {line}")

    def mean(method, figure):
        return found[(method, figure)]["mean"]

    expect(mean("bounded", "fresh_most_over_share") <= 1.05 and mean("bounded", "fresh_least_over_share") >= 0.95, "fresh it is not even")
    expect(mean("rendezvous", "fresh_most_over_share") > 1.05, "first choices alone are even")
    expect(mean("bounded", "moved_by_lost_node") <= 1.05 / 30, "a lost node moves more than its own")
    expect(mean("modulo", "moved_by_lost_node") > 0.9, "modulo moves little")
    expect(mean("bounded", "moved_by_new_node") <= 1.05 / 30, "a new node takes more than its share")
    expect(mean("bounded", "moves_an_hour") < mean("modulo", "moves_an_hour") / 5, "modulo does not move more")
    expect(found[("bounded", "moves_an_hour")]["runs"] == 3, "not every hour is told")
    for method in ("modulo", "rendezvous"):
        expect((method, "churned_most_over_share") in found, f"{method} has no churn")
    expect(mean("bounded", "churned_most_over_share") <= 1.1, "hours of churn leave it uneven")

    again = figures(vigil, *small, "7")
    for key in found:
        if key[1] not in TIMES:
            expect(found[key] == again[key], f"another time it is another: {key}")
    other = figures(vigil, *small, "8")
    expect(any(found[key] != other[key] for key in found if key[1] == "moves_an_hour"), "the seed decides nothing")
    without = figures(vigil, *small[:-3], "--hours", "0", "--loads", "mixed", "--weights", "mixed")
    expect(("bounded", "moves_an_hour") not in without and without[("bounded", "full_placement")]["weights"] == "mixed", "a day without hours")

    # A city: 100,000 cameras on 1,000 nodes, in which a node may have come a moment ago.
    found = figures(vigil, "--hours", "1")
    line = found[("bounded", "full_placement")]
    expect(line["cameras"] == 100_000 and line["nodes"] == 1000 and line["median"] < 1, f"a full placement takes {line['median']:.2f} s")
    expect(mean("bounded", "moved_by_lost_node") <= 1.05 / 1000, "of a city, a lost node moves more than its own")
    expect(mean("bounded", "churned_most_over_share") <= 1.1, "an hour of churn leaves a city uneven")
    expect(mean("bounded", "day_least_over_share") >= 0.9, "a node that had its share is left without in an hour of churn")
    sys.exit("\n".join(faults) or 0)


main()
