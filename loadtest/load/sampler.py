"""What processes take and what nodes say of themselves, once a second.

Lines of measures.jsonl, `t` by the monotonic clock:

  {"t", "name", "pid", "cpu": seconds, "rss": bytes}          of each process of the run
  {"t", "busy": seconds of all processors, "load": of a minute}        of the machine
  {"t", "node", "pid", "windows": {outcome: count}, "dropped": {reason: count}, "slow": times, "tokens": of pictures, "spared": groups of pixels}        of /metrics
"""

import collections
import contextlib
import os
import re
import sys
import threading
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fleet"))
import network  # noqa: E402
from machines import METRICS, Lines  # noqa: E402

TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([-+.\deE]+|NaN|[-+]Inf)(?: \d+)?")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)",?')


def metrics_of(text):
    """(name, labels, value) of each sample in the text format of Prometheus."""
    for line in text.splitlines():
        match = None if line.startswith("#") else SAMPLE.fullmatch(line.strip())
        if match:
            plain = lambda value: re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found.group(1), found.group(1)), value)  # noqa: E731
            yield match.group(1), {key: plain(value) for key, value in LABEL.findall(match.group(2) or "")}, float(match.group(3))


def counters_of(text):
    """Windows by outcome, dropped frames by reason, how often subscribers began to miss events, visual tokens, groups of pixels that pruning spared."""
    found = {"windows": collections.Counter(), "dropped": collections.Counter(), "slow": 0, "tokens": 0, "spared": 0}
    for name, labels, value in metrics_of(text):
        if name == "vigil_windows_total":
            found["windows"][labels["outcome"]] += int(value)
        elif name == "vigil_frames_dropped_total":
            found["dropped"][labels["reason"]] += int(value)
        elif name == "vigil_messages_dropped_total" and labels.get("reason") == "slow_subscriber":
            found["slow"] += int(value)
        elif name == "vigil_visual_tokens_total":
            found["tokens"] += int(value)
        elif name == "vigil_groups_not_computed_total":
            found["spared"] += int(value)
    return found


def taken_by(pid):
    """(seconds of processors, resident bytes) of a process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        words = file.read().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS, int(words[21]) * os.sysconf("SC_PAGE_SIZE")


def busy():
    """Seconds that all processors of the machine have worked."""
    with open("/proc/stat", encoding="utf-8") as file:
        words = [int(word) for word in file.readline().split()[1:]]
    return (sum(words[:8]) - words[3] - words[4]) / TICKS


class Sampler:
    def __init__(self, rig, path):
        self.rig = rig
        self.say = Lines(path).say
        self._stop = threading.Event()
        self.threads = [threading.Thread(target=self._ask, args=(node,), daemon=True) for node in rig.fleet.nodes.values()]
        self.threads.append(threading.Thread(target=self._look, daemon=True))

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self._stop.set()
        for thread in self.threads:
            thread.join()

    def _look(self):
        while not self._stop.is_set():
            self.say(busy=round(busy(), 2), load=os.getloadavg()[0])
            for name, pid in self.rig.own_processes().items():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    cpu, rss = taken_by(pid)
                    self.say(name=name, pid=pid, cpu=round(cpu, 2), rss=rss)
            self._stop.wait(1)

    def _ask(self, node):
        network.go_into(node.host.namespace)
        while not self._stop.wait(1):
            pid = node.process.pid if node.runs() else None
            if pid is None:
                continue
            with contextlib.suppress(OSError, ValueError):
                with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=3) as answer:
                    self.say(node=node.name, pid=pid, **counters_of(answer.read().decode()))
