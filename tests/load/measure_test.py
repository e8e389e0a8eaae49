#!/usr/bin/python3
"""What loadtest/load computes from what was seen: tails beside numpy's, windows, gaps, counters that begin anew, and the schedule of cameras."""

import collections
import datetime
import json
import os
import random
import sys
import tempfile
import unittest

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
LOAD = os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "load")
sys.path.insert(0, LOAD)
import cameras  # noqa: E402
import measure  # noqa: E402
import phases  # noqa: E402
import sampler  # noqa: E402
import tails  # noqa: E402
import check  # noqa: E402  (loadtest/fleet)

WALL = 1.8e9
PHASE = {"name": "all", "begin": 100.0, "end": 110.0, "cameras": ["cam-000"], "gone": {}}


def window(seq, captured, told, how="live", rule="pulse", phase="update", gateway="g1", camera="cam-000", reading=None, said=20):
    """Times by the monotonic clock, which is WALL behind the time of day."""
    end = datetime.datetime.fromtimestamp(WALL + captured, datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    event = {"id": f"E-{seq}", "source": "s", "type": "dev.vigil.alert.v1", "time": end,
             "data": {"seq": seq, "phase": phase, "episode": "E", "window": {"end": end}, "latency_ms": {"capture_to_alert": said}}}
    return check.Seen(told, gateway, how, f"alert/default/{camera}/{rule}/", seq, seq, json.dumps(event), event, "o" if how == "replay" else None,
                      reading)


def log_of(seen, gateways=("g1",), began=1000, shared=True):
    return check.Log(seen, [{"t": 0, "what": "fleet", "gateways": shared}, {"t": 1001, "what": "final", "gateways": list(gateways), "reading": "end",
                                                                            "began": began}],
                     reads=[(gateway, "end", "o") for gateway in gateways])


class Tails(unittest.TestCase):
    def test_as_numpy(self):
        rng = random.Random(1)
        for count in (1, 2, 3, 19, 100, 1001):
            values = [rng.expovariate(5) for _ in range(count)]
            found = tails.of(values, digits=12)
            for key, percent in (("p50", 50), ("p95", 95), ("p99", 99), ("max", 100)):
                self.assertAlmostEqual(found[key], float(numpy.percentile(values, percent)), places=9)
            self.assertAlmostEqual(found["mean"], float(numpy.mean(values)), places=9)
            self.assertEqual(found["count"], count)

    def test_of_none(self):
        self.assertEqual(tails.of([]), {"count": 0})


class Windows(unittest.TestCase):
    def test_latency_is_from_the_last_frame_to_the_first_subscriber(self):
        log = log_of([window(1, 100.0, 100.25), window(1, 100.0, 100.1, gateway="g2"), window(1, 100.0, 130.0, how="replay", reading="end"),
                      window(9, 103.0, 131.0, how="replay", reading="end"), window(2, 101.0, 101.5, how="replay"),
                      window(3, 101.0, 101.2, phase="end"), window(1, 100.0, 100.05, rule="person"), window(1, 100.0, 100.3, rule="pulse-2")])
        found = measure.windows_of(log, WALL)
        self.assertEqual([(each.camera, round(each.captured, 3), round(each.told - each.captured, 3), each.said, each.how) for each in found],
                         [("cam-000", 100.0, 0.1, 0.02, "live"), ("cam-000", 101.0, 0.5, 0.02, "replay")])

    def test_each_process_without_gateways_has_its_own_numbers(self):
        log = log_of([window(1, 100.0, 100.1), window(1, 100.5, 100.6, gateway="g2")], shared=False)
        self.assertEqual(len(measure.windows_of(log, WALL)), 2)

    def test_a_window_that_nobody_heard_of_is_absent(self):
        every = [99.5 + i for i in range(13)]
        self.assertEqual(measure.absent(every, PHASE, 1.0), 0)
        self.assertEqual(measure.absent([t for t in every if t not in (103.5, 104.5, 108.5)], PHASE, 1.0), 3)
        # Late by some of its stride, as cameras are.
        self.assertEqual(measure.absent([t + 0.3 * (i % 2) for i, t in enumerate(every)], PHASE, 1.0), 0)
        # Only those of the phase count, before it and after it.
        self.assertEqual(measure.absent([95.5, *every[4:]], PHASE, 1.0), 3)
        self.assertEqual(measure.absent(every[:8] + [115.0], PHASE, 1.0), 3)
        # The first one ends a stride after it came.
        self.assertEqual(measure.absent([], PHASE, 1.0), 9)
        self.assertEqual(measure.absent(every[:5], PHASE, 1.0), 6)

    def test_nothing_is_wanted_of_a_source_that_is_not_there(self):
        times = [99.5, 100.5, 101.5, 106.5, 107.5, 108.5, 109.5, 110.5]
        self.assertEqual(measure.absent(times, PHASE, 1.0), 4)
        # It was back at 105: that it took until 106.5 is missed.
        self.assertEqual(measure.absent(times, PHASE, 1.0, [(102.0, 105.0)]), 1)

    def test_figures_of_a_phase(self):
        seen = [window(i, 98.5 + i, 98.6 + i) for i in range(1, 13) if i != 5]
        seen += [window(20, 104.0, 106.0, camera="other"), window(1, 105.0, 105.2, rule="person", phase="new"),
                 window(2, 106.0, 106.2, rule="person")]
        samples = [{"t": 99.5 + i, "node": "v1", "pid": 7, "windows": {"answered": 40 + i, "overtaken": 2 if i > 5 else 0,
                                                                       "failed": 1 if i > 7 else 0}, "dropped": {"late": i}, "slow": 0,
                    "tokens": 30 * i, "spared": 20 * i}
                   for i in range(11)]
        samples += [{"t": 99.5 + i, "name": "v1", "pid": 7, "cpu": 5 + 0.5 * i, "rss": (100 + i) * 2**20} for i in range(11)]
        samples += [{"t": 99.5 + i, "busy": 50 + 1.5 * i, "load": 3} for i in range(11)]
        log = log_of(seen)
        found = measure.phase_of(log, measure.windows_of(log, WALL), samples, PHASE, 1.0)
        self.assertEqual((found["latency"]["count"], found["latency"]["p50"], found["latency"]["max"]), (9, 0.1, 0.1))
        self.assertEqual(found["windows"], {"expected": 10, "seen": 9, "by_replay": 0, "late": 0, "asked": 13, "answered": 10, "overtaken": 2,
                                            "failed": 1, "answered_share": 0.9})
        self.assertEqual((found["alerts"], found["frames_dropped"], found["visual_tokens"], found["groups_spared"]), (1, {"late": 10}, 300, 200))
        self.assertEqual(found["processes"], {"v1": {"cores": 0.5, "rss_mib": 110.0}})
        self.assertEqual(found["machine"], {"busy_cores": 1.5, "others_cores": 1.0, "load": 3.0})

    def test_a_late_window(self):
        log = log_of([window(1, 100.5, 102.0)])
        self.assertEqual(measure.phase_of(log, measure.windows_of(log, WALL), [], PHASE, 1.0)["windows"]["late"], 1)


class Counters(unittest.TestCase):
    def test_a_process_that_came_anew_counts_from_nothing(self):
        self.assertEqual(measure.grown([(1, 10), (1, 15), (2, 3), (2, 7)]), 12)
        self.assertEqual(measure.grown([(1, 10)]), 0)
        self.assertEqual(measure.grown([]), 0)

    def test_metrics(self):
        text = ('# HELP vigil_windows_total x\n# TYPE vigil_windows_total counter\nvigil_windows_total{outcome="answered"} 12\nvigil_windows_total{outcome="overtaken"} 3 1700000000\n'
                'vigil_frames_dropped_total{camera="a",reason="late",tenant="x"} 2\nvigil_frames_dropped_total{camera="b,\\"}",reason="late",tenant="x"} 5\n'
                'vigil_messages_dropped_total{socket="events",reason="slow_subscriber"} 4\nvigil_messages_dropped_total{socket="outbox",reason="fence"} 9\nvigil_visual_tokens_total 6.4e+01\nvigil_groups_not_computed_total 5\nup 1\nx NaN\ngarbage {\n')
        found = sampler.counters_of(text)
        self.assertEqual(found, {"windows": {"answered": 12, "overtaken": 3}, "dropped": {"late": 7}, "slow": 4, "tokens": 64, "spared": 5})
        self.assertEqual([labels for name, labels, _ in sampler.metrics_of(text) if labels.get("camera", "").startswith("b")],
                         [{"camera": 'b,"}', "reason": "late", "tenant": "x"}])

    def test_processor_time_of_a_process(self):
        before, rss = sampler.taken_by(os.getpid())
        while sampler.taken_by(os.getpid())[0] < before + 0.05:
            sum(range(10000))
        self.assertGreater(rss, 2**20)


class Events(unittest.TestCase):
    def kept(self, numbers, gateway="g1"):
        return [window(i, 100.0 + i, 1001.0 + i, how="replay", reading="end", gateway=gateway) for i in numbers]

    def test_nothing_is_lost(self):
        seen = [window(i, 100.0 + i, 100.1 + i) for i in range(1, 5)]
        self.assertEqual(measure.events_of(log_of(seen + self.kept(range(1, 5)))), {"events": 4, "duplicates": 0, "gaps": 0, "lost": 0})

    def test_gaps_losses_and_duplicates(self):
        seen = [window(i, 100.0 + i, 100.1 + i) for i in range(1, 7)] + [window(4, 104.0, 109.0)]
        found = measure.events_of(log_of(seen + self.kept([1, 2, 4, 5])))
        self.assertEqual(found, {"events": 6, "duplicates": 1, "gaps": 1, "lost": 2})

    def test_every_gateway_has_to_have_it(self):
        seen = [window(i, 100.0 + i, 100.1 + i) for i in range(1, 4)]
        found = measure.events_of(log_of(seen + self.kept([1, 2, 3]) + self.kept([1, 2], "g2"), gateways=("g1", "g2")))
        self.assertEqual((found["gaps"], found["lost"]), (0, 1))

    def test_a_slow_subscriber(self):
        log = log_of(self.kept([1, 2, 3, 5]))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "slow.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps({"t": 1, "topic": "alert/default/cam-000/pulse/", "seq": seq}) + "\n" for seq in (1, 5))
            found = measure.slow_of(log, {"phase": "slow", "gateway": "g1", "path": path})
        self.assertEqual(found, {"phase": "slow", "gateway": "g1", "read": 2, "missed": 3, "missed_and_not_replayed": 1})

    def test_first_pictures_that_come_at_once_are_no_second_owner(self):
        told = check.Violation("window", "alert/default/cam-000/pulse/ 2: the window to X was told before")
        self.assertEqual(measure.kind_of(told, ["cam-000"]), "same_end")
        self.assertEqual(measure.kind_of(told, ["cam-001"]), "window")
        self.assertEqual(measure.kind_of(told._replace(text="alert/default/cam-000/pulse/ 2: 3.0 s older than the one before"), ["cam-000"]),
                         "window")


class Limits(unittest.TestCase):
    def step(self):
        return {"cameras": 4, "phases": [{"name": "all", "latency": {"count": 9, "p50": 0.1, "p95": 0.2, "p99": 0.3, "max": 0.4},
                                          "windows": {"answered_share": 0.9}}],
                "losses": [{"node": "c1", "sampled_again": 2.0, "answered_again": 3.0, "silence": 6.0}], "events": {"lost": 0, "gaps": 1},
                "slow_subscribers": [{"missed_and_not_replayed": 2}], "violations": {"order": 2}, "problems": []}

    def test_what_holds(self):
        limits = {"latency_p50": 0.1, "latency_p95": 0.2, "latency_p99": 0.3, "latency_max": 0.4, "answered": 0.9, "sampled_again": 2,
                  "answered_again": 3, "silence": 6, "lost": 3, "violations": 2}
        self.assertEqual(list(measure.broken(self.step(), limits)), [])

    def test_each_that_does_not(self):
        for key, limit in (("latency_p50", 0.09), ("latency_p95", 0.19), ("latency_p99", 0.29), ("latency_max", 0.39), ("answered", 0.91),
                           ("sampled_again", 1.9), ("answered_again", 2.9),
                           ("silence", 5.9), ("lost", 2), ("violations", 1)):
            found = list(measure.broken(self.step(), {key: limit}))
            self.assertEqual(len(found), 1, key)
            self.assertIn({"lost": "events lost", "answered": "windows answered"}.get(key, key), found[0])

    def test_no_window_at_all_is_beyond_any_limit(self):
        step = self.step()
        step["phases"][0].update(latency={"count": 0}, windows={"answered_share": None})
        self.assertEqual(len(list(measure.broken(step, {"latency_p95": 5.0, "answered": 0.1}))), 2)

    def test_problems_and_cameras_that_nobody_took_break_it_without_limits(self):
        step = self.step()
        step["problems"], step["losses"][0]["not_sampled"] = ["c1 ended by itself, with 1"], 2
        self.assertEqual(len(list(measure.broken(step, {}))), 2)


class Schedule(unittest.TestCase):
    def test_each_beginning_has_its_share_of_each_kind(self):
        weights = {"synthetic": 1, "file": 2, "rtsp": 1}
        found = cameras.kinds_of(weights, 40)
        self.assertEqual(collections.Counter(found), {"file": 20, "rtsp": 10, "synthetic": 10})
        for count in range(1, 41):
            counted = collections.Counter(found[:count])
            self.assertTrue(all(abs(counted[kind] - count * weight / 4) <= 1 for kind, weight in weights.items()), (count, counted))
        self.assertEqual(cameras.kinds_of({"rtsp": 1}, 2), ["rtsp", "rtsp"])

    def test_flaps_are_the_same_for_a_seed_and_end_with_all_there(self):
        flapping = {"share": 1, "gone": 5.0, "there": 10.0}
        found = phases.flaps(["a", "b", "c"], flapping, 60.0, random.Random(3))
        self.assertEqual(found, phases.flaps(["a", "b", "c"], flapping, 60.0, random.Random(3)))
        self.assertNotEqual(found, phases.flaps(["a", "b", "c"], flapping, 60.0, random.Random(4)))
        self.assertEqual(found, sorted(found))
        for seed in range(20):
            found = phases.flaps(["a", "b", "c"], flapping, 57.0, random.Random(seed))
            for name in "abc":
                own = [(at, what) for at, each, what in found if each == name]
                self.assertEqual([what for _, what in own], ["gone", "there"] * (len(own) // 2))
                self.assertTrue(3 <= len(own) // 2 <= 4 and own[-1][0] < 57)
                self.assertTrue(all(abs(until - since - 5) < 1e-9 for since, until in phases.gone_times(found, 0.0)[name]))

    def test_a_share_of_cameras(self):
        self.assertEqual([len(cameras.some(list("abcdefgh"), share)) for share in (0, 0.01, 0.5, 1)], [0, 1, 4, 8])

    def test_sampled_frames_are_evenly_spaced(self):
        for fps in (0.5, 1, 2, 2.5, 5, 10):
            self.assertGreaterEqual(cameras.source_fps(fps), 2 * fps)
        self.assertEqual(cameras.source_fps(2) % 2, 0)


if __name__ == "__main__":
    unittest.main()
