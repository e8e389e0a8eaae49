#!/usr/bin/python3
"""Looks whether a fleet kept what it promises, by what its subscribers saw and by what was done to it when; memory apart, by nothing else.

  check.py FOLDER        seen-*.jsonl (recorder.py), journal.jsonl (machines.py), samples.jsonl (observer.py, for memory alone)

Prints a line of JSON for each violation, and one with figures. Its status is 1 if there is a violation, and 2 if there is no such folder.

  two_contents   one topic and number, and two contents
  id_twice       one source and id on two numbers of a topic
  copies_differ  one source and id on two topics, and two contents beside the topic's own number
  number         the number in the event is another than the one that it came with
  order          a new event was published after one of its topic with a higher number
  position       positions of one outbox do not ascend, or one was given twice
  gap            of a topic, numbers are not there in the last reading of a gateway
  lost           somebody saw it, and the last reading of a gateway that serves does not have it
  silent         a gateway that serves cannot be read at the end
  episode        an episode that begins in the middle, goes on after its end, leaves out an ordinal, or overlaps another one of its rule: two owners at once
  window         a rule told the same window twice, or one that is older than the last: two owners at once
  fence          an event is of another owner of its camera than the one that looked at the windows of that time, by the fences in them: two owners at once
  memory         a process has more and more, or more than any of so few cameras needs
"""

import argparse
import collections
import datetime
import glob
import json
import os
import sys

Seen = collections.namedtuple("Seen", "t gateway how topic seq pos raw event outbox reading", defaults=(None, None))
Violation = collections.namedtuple("Violation", "kind text")

MEMORY_SETTLES = 90.0   # seconds after which a process has what it needs
MEMORY_GROWTH = 256.0   # MiB that it may have more at the end
MEMORY_RATE = 6.0       # MiB a minute that it may get, of one that is looked at for MEMORY_MINUTES after that: 4 were measured at most
MEMORY_MINUTES = 5.0
MEMORY_MOST = 1024.0    # MiB at any time, also of a run that is over before anything settles
CLOCK_SETTLES = 5.0     # seconds in which what was told by a wrong clock reaches a subscriber


def lines_of(path):
    """Whole lines: the last one may be half of one, of a program that was killed."""
    if not os.path.exists(path):
        return
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


class Log:
    def __init__(self, seen=(), journal=(), samples=(), reads=()):
        """seen: Seen, in any order; journal, samples: maps as they were written; reads: (gateway, reading, outbox or None)."""
        self.seen = sorted(seen, key=lambda each: each.t)
        self.journal, self.samples, self.reads = list(journal), list(samples), list(reads)

    @staticmethod
    def of(folder):
        seen, reads = [], []
        for path in sorted(glob.glob(os.path.join(folder, "seen-*.jsonl"))):
            for line in lines_of(path):
                if line["saw"] in ("live", "replay"):
                    seen.append(Seen(line["t"], line["gateway"], line["saw"], line["topic"], line["seq"], line["pos"], line["event"],
                                     json.loads(line["event"]), line.get("outbox"), line.get("reading")))
                elif line["saw"] == "read":
                    reads.append((line["gateway"], line["reading"], line["outbox"]))
        return Log(seen, lines_of(os.path.join(folder, "journal.jsonl")), lines_of(os.path.join(folder, "samples.jsonl")), reads)

    def world(self, seen):
        """Among whom numbers are the same: all gateways; without gateways, each camera node by itself."""
        return "" if self.shared() else seen.gateway

    def shared(self):
        return any(line["what"] == "fleet" and line["gateways"] for line in self.journal)

    def final(self):
        """The gateways that have to serve at the end, the name of the reading that tells what they have, and when it began; none if it did not come so far."""
        last = [line for line in self.journal if line["what"] == "final"]
        return (last[-1]["gateways"], last[-1]["reading"], last[-1]["began"]) if last else ([], None, 0)

    def wrong_clock(self, t):
        """By how many seconds a node's clock was off then, or shortly before."""
        off, worst = {}, 0.0
        for line in self.journal:
            if line["what"] != "clock" or line["t"] > t:
                continue
            # What was told by the wrong time lies before what comes now for as long as that.
            if off.get(line["node"], 0) and line["seconds"] == 0 and t < line["t"] + abs(off[line["node"]]) + CLOCK_SETTLES:
                worst = max(worst, abs(off[line["node"]]))
            off[line["node"]] = line["seconds"]
        return max([worst, *(abs(seconds) for seconds in off.values())])


def contents(log):
    by_place, by_id, by_copy = {}, {}, {}
    for each in log.seen:
        world = log.world(each)
        place = (world, each.topic, each.seq)
        if by_place.setdefault(place, each.raw) != each.raw:
            yield Violation("two_contents", f"{each.topic} {each.seq} at {each.gateway}")
            continue
        name = (each.event["source"], each.event["id"])
        if by_id.setdefault((world, each.topic, *name), each.seq) != each.seq:
            yield Violation("id_twice", f"{name} is {by_id[(world, each.topic, *name)]} and {each.seq} of {each.topic}")
        if each.event["data"].get("seq", each.seq) != each.seq:
            yield Violation("number", f"{each.topic} {each.seq} says that it is {each.event['data']['seq']}")
        rest = {**each.event, "data": {key: value for key, value in each.event["data"].items() if key != "seq"}}
        if by_copy.setdefault((world, *name), rest) != rest:
            yield Violation("copies_differ", f"{name}, one of them {each.topic} {each.seq}")


def orders(log):
    highest, known = {}, set()
    for each in log.seen:
        if each.how != "live":
            continue
        place = (each.gateway, each.topic)
        if (*place, each.seq) not in known and each.seq < highest.get(place, 0):
            yield Violation("order", f"{each.topic} {each.seq} came after {highest[place]} at {each.gateway}")
        known.add((*place, each.seq))
        highest[place] = max(each.seq, highest.get(place, 0))


def positions(log):
    given, last = {}, {}
    for each in log.seen:
        if each.how != "replay":
            continue
        if given.setdefault((each.gateway, each.outbox, each.pos), (each.topic, each.seq)) != (each.topic, each.seq):
            yield Violation("position", f"{each.pos} of {each.gateway} is {each.topic} {each.seq} and another one")
        reading = (each.gateway, each.outbox, each.reading)
        if each.pos <= last.get(reading, 0):
            yield Violation("position", f"{each.pos} comes after {last[reading]} at {each.gateway}")
        last[reading] = each.pos


def what_is_kept(log):
    gateways, reading, began = log.final()
    if reading is None:
        yield Violation("silent", "nobody was read at the end")
        return
    shown = collections.defaultdict(dict)
    for each in log.seen:
        if each.t < began:
            shown[log.world(each)].setdefault((each.topic, each.seq), each)
    for gateway in gateways:
        if not any(read[0] == gateway and read[1] == reading and read[2] for read in log.reads):
            yield Violation("silent", gateway)
            continue
        kept = collections.defaultdict(set)
        for each in log.seen:
            if each.gateway == gateway and each.reading == reading:
                kept[each.topic].add(each.seq)
        for topic, numbers in sorted(kept.items()):
            absent = sorted(set(range(1, max(numbers) + 1)) - numbers)
            if absent:
                yield Violation("gap", f"{len(absent)} of {topic} at {gateway}, the first is {absent[0]}")
        lost = sorted(place for place in shown["" if log.shared() else gateway] if place[1] not in kept[place[0]])
        if lost:
            first = shown["" if log.shared() else gateway][lost[0]]
            yield Violation("lost", f"{len(lost)} at {gateway}, the first is {lost[0][0]} {lost[0][1]}, seen by {first.how} at {first.gateway}")


def seconds_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def stories(log):
    """The events of each alert topic, in the order of their numbers."""
    topics = collections.defaultdict(dict)
    for each in log.seen:
        if each.event["type"].startswith("dev.vigil.alert."):
            topics[(log.world(each), each.topic)].setdefault(each.seq, each)
    return {place: [events[seq] for seq in sorted(events)] for place, events in topics.items()}


def owners(log):
    for (_, topic), events in sorted(stories(log).items()):
        open_one, over, last_window, told, last_seq = None, {}, None, set(), None
        for each in events:
            data = each.event["data"]
            # After a hole in the numbers, which is told elsewhere, nothing is known.
            if last_seq is not None and each.seq != last_seq + 1:
                open_one, over, last_window = None, {}, None
            whole, last_seq = last_seq is None and each.seq == 1 or last_seq is not None and each.seq == last_seq + 1, each.seq
            episode, ordinal = data["episode"], int(each.event["id"].split("-")[1])
            at = f"{topic} {each.seq}"
            if data.get("cause") != "evidence":
                if data["phase"] == "new" and open_one:
                    yield Violation("episode", f"{at}: {episode} begins while {open_one[0]} is open")
                elif data["phase"] != "new" and whole and (open_one is None or open_one[0] != episode):
                    yield Violation("episode", f"{at}: {data['phase']} of {episode}, which is {'over' if episode in over else 'not open'}")
                elif open_one and open_one[0] == episode and ordinal != open_one[1] + 1:
                    yield Violation("episode", f"{at}: ordinal {ordinal} after {open_one[1]}")
                # An end may tell of the window before.
                if data["phase"] != "end":
                    end = seconds_of(data["window"]["end"])
                    steps_back = last_window is not None and end <= last_window
                    wrong = log.wrong_clock(each.t)
                    excused = not steps_back or (wrong and last_window - end <= wrong + 1)
                    if not excused and end in told:
                        yield Violation("window", f"{at}: the window to {data['window']['end']} was told before")
                    elif not excused:
                        yield Violation("window", f"{at}: {last_window - end:.3f} s older than the one before")
                    told.add(end)
                    last_window = end
            if data["phase"] == "end":
                over[episode] = True
                open_one = None
            elif episode not in over:
                open_one = (episode, ordinal)


def fences(log):
    """Of each camera, what its owners looked at: no window of one may end after the first one of the next."""
    spans = collections.defaultdict(lambda: collections.defaultdict(list))
    for (world, topic), events in stories(log).items():
        for each in events:
            data = each.event["data"]
            if data.get("fence") and data["phase"] != "end" and data.get("cause") != "evidence":
                spans[(world, data.get("tenant"), data.get("camera"))][data["fence"]].append((seconds_of(data["window"]["end"]), each))
    for (_, _, camera), owners_of in sorted(spans.items(), key=lambda item: str(item[0])):
        last, last_fence = None, None
        for fence in sorted(owners_of):
            first = min(owners_of[fence], key=lambda found: found[0])
            if last is not None and first[0] <= last[0]:
                wrong = max(log.wrong_clock(first[1].t), log.wrong_clock(last[1].t))
                if not wrong or last[0] - first[0] > wrong + 1:
                    yield Violation("fence", f"{camera}: the owner {fence} looked at a window that ended {last[0] - first[0]:.3f} s before the last one of "
                                             f"the owner {last_fence}: {first[1].topic} {first[1].seq}, {last[1].topic} {last[1].seq}")
            newest = max(owners_of[fence], key=lambda found: found[0])
            if last is None or newest[0] > last[0]:
                last, last_fence = newest, fence


def memory_of(log):
    """(MiB after it has settled, at the end, at most, MiB a minute, for how many minutes it was looked at then) by process."""
    found = collections.defaultdict(list)
    for line in log.samples:
        if "rss" in line:
            found[(line["node"], line["pid"])].append((line["t"], line["rss"] / 2**20))
    figures = {}
    for process, points in found.items():
        late = [point for point in points if point[0] >= points[0][0] + MEMORY_SETTLES]
        if len(late) < 10:
            continue
        mean_t, mean_m = (sum(point[axis] for point in late) / len(late) for axis in (0, 1))
        spread = sum((t - mean_t) ** 2 for t, _ in late)
        slope = sum((t - mean_t) * (m - mean_m) for t, m in late) / spread * 60 if spread else 0.0
        figures[process] = (late[0][1], late[-1][1], max(m for _, m in points), slope, (late[-1][0] - late[0][0]) / 60)
    return figures


def memory(log):
    for (node, _), (settled, last, _, slope, minutes) in sorted(memory_of(log).items()):
        if last > settled + MEMORY_GROWTH or (minutes >= MEMORY_MINUTES and slope > MEMORY_RATE):
            yield Violation("memory", f"{node}: from {settled:.0f} to {last:.0f} MiB, {slope:.1f} MiB a minute")
    most = collections.Counter()
    for line in log.samples:
        if "rss" in line:
            most[line["node"]] = max(most[line["node"]], line["rss"] / 2**20)
    for node, found in sorted(most.items()):
        if found > MEMORY_MOST:
            yield Violation("memory", f"{node}: {found:.0f} MiB at most")


CHECKS = (contents, orders, positions, what_is_kept, owners, fences, memory)


def violations(log):
    """All of them; of one kind and text once."""
    return list(dict.fromkeys(each for check in CHECKS for each in check(log)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", help="what --folder of scenes and of chaos named")
    folder = parser.parse_args().folder
    if not os.path.isdir(folder):
        print(f"check: {folder}: no such folder", file=sys.stderr)
        return 2
    log = Log.of(folder)
    found = violations(log)
    for each in found:
        print(json.dumps(each._asdict()))
    print(json.dumps({"events": len({(log.world(each), each.topic, each.seq) for each in log.seen}), "sightings": len(log.seen),
                      "gateways": len({each.gateway for each in log.seen}), "violations": len(found)}))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
