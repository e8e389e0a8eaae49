#!/usr/bin/python3
"""The figures of a fleet that was hurt (loadtest/fleet/figures.py), of logs that are made up: what took how long, and what is too late."""

import json
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "loadtest", "fleet"))
import check  # noqa: E402
import figures  # noqa: E402

NODES = {"c1": ["camera"], "c2": ["camera"], "v1": ["vision"], "v2": ["vision"], "s1": ["stream"], "s2": ["stream"], "x1": ["generate"], "g1": ["gateway"]}
WINDOW, END = 2.0, 40


def since(first):
    """A window each second from then on."""
    return [first + second for second in range(END) if first + second < END]


class Story:
    """What happened to a fleet, second by second: cam-1 and cam-2 are c1's, cam-3 is c2's; all by v1, s1 and x1."""

    def __init__(self, nodes=None):
        self.journal = [{"t": 0, "what": "fleet", "gateways": True, "nodes": nodes or NODES},
                        {"t": END, "what": "final", "gateways": [], "reading": "end", "began": END}]
        self.samples, self.seen, self.numbers = [], [], {}
        computed = {"vision": "v1", "stream": "s1", "generate": "x1"}
        self.plan(1, "c1", {"cam-1": {"fence": 5, **computed}, "cam-2": {"fence": 6, **computed}})
        self.plan(1, "c2", {"cam-3": {"fence": 7, **computed}})

    def plan(self, t, node, cameras):
        self.samples.append({"t": t, "key": f"/vigil/city/plan/{node}", "value": json.dumps({"cameras": cameras})})

    def lease_ends(self, t, node):
        self.samples.append({"t": t, "key": f"/vigil/city/nodes/{node}", "value": None})

    def says(self, t, node, **cameras):
        """name=(state, frames); _ for - in names."""
        self.samples.append({"t": t, "node": node, "pid": 7, "cameras": {name.replace("_", "-"): list(said) for name, said in cameras.items()}})

    def wrote(self, t, node, pid, tokens):
        self.samples.append({"t": t, "node": node, "pid": pid, "tokens": tokens})

    def tells(self, camera, *times, rule="pulse", **data):
        topic = f"alert/default/{camera}/{rule}/"
        for t in times:
            self.numbers[topic] = seq = self.numbers.get(topic, 0) + 1
            for gateway, delay in (("g1", 0.0), ("g2", 0.3)):
                self.seen.append(check.Seen(t + delay, gateway, "live", topic, seq, seq, "", {"data": {"phase": "update", **data}}))

    def fault(self, node, begin, end, name="kill"):
        text = f"{name} {node} {end - begin:g} s"
        self.journal += [{"t": t, "what": "fault", "fault": text, "name": name, "node": node, "edge": edge} for t, edge in ((begin, "begin"), (end, "end"))]

    def settles(self, t, what="settled"):
        self.journal.append({"t": t, "what": what})

    def figures(self):
        self.journal.sort(key=lambda line: line["t"])
        self.samples.sort(key=lambda line: line["t"])
        return figures.of(check.Log(self.seen, self.journal, self.samples))

    def row(self, at=0):
        return self.figures()["rows"][at]


def camera_node_killed(answered=(14.0, 15.5), sampled=(13.0, 14.5)):
    """At 10, until 18; its lease ends at 12.5."""
    story = Story()
    for camera in ("cam-1", "cam-2", "cam-3"):
        story.tells(camera, *range(2, 10))
    # What it had told on its way before it was killed.
    story.tells("cam-1", 12.8)
    for camera, first in zip(("cam-1", "cam-2"), answered):
        story.tells(camera, *since(first))
    story.tells("cam-3", *since(10))
    story.says(9.5, "c1", cam_1=("up", 100), cam_2=("up", 100))
    # Late, of itself; and of the new one that has no picture yet.
    story.says(12.6, "c1", cam_1=("up", 100), cam_2=("up", 100))
    story.says(12.8, "c2", cam_1=("stalled", 2), cam_2=("up", 0), cam_3=("up", 90))
    for camera, t in zip(("cam_1", "cam_2"), sampled):
        story.says(t, "c2", **{camera: ("up", 3)})
    story.fault("c1", 10, 18)
    story.lease_ends(12.5, "c1")
    story.plan(12.7, "c2", {"cam-1": {"fence": 8, "stream": "s1"}, "cam-2": {"fence": 9, "stream": "s1"}, "cam-3": {"fence": 7, "stream": "s1"}})
    story.settles(19.5)
    return story


class Figures(unittest.TestCase):
    def assert_row(self, row, **wanted):
        found = {name: row.get(name.replace("_", " ")) for name in wanted}
        self.assertEqual({name: value and round(value, 6) for name, value in found.items()}, wanted)

    def late(self, story, **more):
        return list(figures.late(story.figures(), WINDOW, **more))

    def test_a_camera_node(self):
        # The last of its cameras counts: sampled after the detection, answered after that one was sampled, by what any subscriber saw first.
        story = camera_node_killed()
        self.assert_row(story.row(), cameras=2, detected=2.5, sampled=2.0, answered=1.0, settled=1.5, silence=6.5, not_sampled=0, not_answered=0, only_one=False)
        self.assertEqual(self.late(story), [])

    def test_who_was_sampled_before_the_detection_waited_for_nothing(self):
        # As with a handover: who has it next delivers while the former one's lease still holds.
        self.assert_row(camera_node_killed(sampled=(11.0, 12.0)).row(), sampled=0.0, answered=3.5)

    def test_a_camera_that_nobody_samples_any_more_is_told(self):
        story = camera_node_killed()
        story.samples = [line for line in story.samples if line["t"] != 14.5]
        self.assert_row(story.row(), sampled=0.5, answered=1.0, not_sampled=1)
        self.assertEqual(self.late(story), ["kill c1 8 s: 1 cameras were not taken over"])

    def test_a_camera_of_which_nothing_is_told_any_more_is_told(self):
        story = camera_node_killed()
        story.seen = [each for each in story.seen if "cam-2" not in each.topic or each.t < 10]
        self.assert_row(story.row(), answered=1.0, not_answered=1)
        self.assertEqual(self.late(story), ["kill c1 8 s: of 1 cameras nothing was told any more"])

    def test_what_is_too_late(self):
        story = camera_node_killed(sampled=(13.0, 19.0), answered=(21.5, 27.0))
        self.assert_row(story.row(), sampled=6.5, answered=8.5)
        self.assertEqual(self.late(story), ["kill c1 8 s: sampled after 6.5 s", "kill c1 8 s: answered after 8.5 s"])
        self.assertEqual(self.late(story, patience=2), [])

    def test_what_nobody_takes_over_is_silent_for_as_long_as_it_lasts_and_a_little_more(self):
        for end, expected in ((20.0, []), (40.0, ["cut c1 8 s: a camera was silent for 30.0 s, and it was over after 8.0 s"])):
            story = Story()
            story.tells("cam-1", *range(2, 11), *since(end))
            story.tells("cam-2", *(second + 0.5 for second in range(2, 10)), *since(14))
            story.fault("c1", 10.5, 18.5, name="cut")
            story.settles(20.0)
            self.assertEqual(self.late(story), expected)

    def test_of_two_faults_at_once_no_time_is_promised_but_that_all_are_taken_over(self):
        story = camera_node_killed(sampled=(13.0, 19.0), answered=(21.5, 27.0))
        story.fault("g1", 11.0, 12.0, name="cut")
        self.assertEqual(self.late(story), [])
        story.seen = [each for each in story.seen if "cam-2" not in each.topic or each.t < 10]
        self.assertEqual(self.late(story), ["kill c1 8 s: of 1 cameras nothing was told any more"])

    def test_a_resend_and_an_end_are_no_window(self):
        story = camera_node_killed(answered=(14.0, 16.0))
        first = story.seen[-1]._replace(topic="alert/default/cam-2/pulse/", seq=3, t=14.6)
        story.seen += [first, first._replace(seq=900, event={"data": {"phase": "end"}}), first._replace(seq=901, how="replay"),
                       first._replace(seq=902, topic="topic/staff/default/cam-2/person/")]
        self.assert_row(story.row(), answered=1.5)

    def test_a_node_with_streams_counts_from_the_end_of_its_lease(self):
        for node in ("s1", "v1"):
            story = Story()
            for camera, first in (("cam-1", 14.0), ("cam-2", 14.25), ("cam-3", 15.0)):
                story.tells(camera, *range(2, 11), *since(first))
            story.fault(node, 10.5, 18.5)
            story.lease_ends(13.0, node)
            story.settles(20.0)
            self.assert_row(story.row(), cameras=3, detected=2.5, sampled=None, answered=2.0, settled=1.5, silence=5.0, only_one=False)
            self.assertEqual(self.late(story), [])

    def test_the_only_one_counts_from_when_it_is_back(self):
        nodes = {name: roles for name, roles in NODES.items() if name != "s2"}
        story = Story(nodes)
        for camera in ("cam-1", "cam-2", "cam-3"):
            story.tells(camera, *range(2, 11), *since(22))
        story.fault("s1", 10.5, 18.5)
        story.lease_ends(13.0, "s1")
        story.settles(23.0)
        self.assert_row(story.row(), detected=2.5, answered=3.5, silence=12.0, only_one=True)
        self.assertEqual(self.late(story), [])
        story.seen = [each for each in story.seen if each.t < 20]
        story.tells("cam-1", *since(27))
        self.assertEqual(self.late(story), ["kill s1 8 s: answered after 8.5 s", "kill s1 8 s: of 2 cameras nothing was told any more"])

    def test_the_only_camera_node_has_its_own_cameras_again(self):
        story = camera_node_killed(answered=(21.0, 22.0))
        story.samples = [line for line in story.samples if line.get("node") != "c2"]
        story.says(19.0, "c1", cam_1=("up", 0), cam_2=("up", 4))
        story.says(20.5, "c1", cam_1=("up", 2), cam_2=("up", 9))
        story.journal[0]["nodes"] = {name: roles for name, roles in NODES.items() if name != "c2"}
        self.assert_row(story.row(), only_one=True, sampled=2.5, answered=3.0, not_sampled=0)

    def test_a_node_that_generates_silences_nobody(self):
        story = Story()
        for camera in ("cam-1", "cam-2", "cam-3"):
            story.tells(camera, *since(2))
        for t, words in ((5, "a room"), (9, None), (11, None), (12, ""), (14, "someone"), (19, "a room")):
            story.tells("cam-1", t + 0.5, rule="words", **({} if words is None else {"description": words}))
        story.tells("cam-1", 15, rule="words", phase="end")
        story.tells("cam-1", 16, rule="person")
        story.fault("x1", 10, 18)
        story.lease_ends(12.5, "x1")
        story.fault("c2", 19, 20)
        for t, node, pid, tokens in ((5, "x1", 1, 30), (9, "x1", 1, 70), (12, "s1", 2, 20), (19, "x1", 3, 15)):
            story.wrote(t, node, pid, tokens)
        told = story.figures()
        self.assert_row(told["rows"][0], cameras=0, detected=None, answered=None, silence=1.0, wordless=2, explained=3)
        self.assertEqual((told["wordless"], told["explained"]), (3, 6))
        self.assertEqual(told["tokens"], {"x1": 85, "s1": 20})
        self.assertEqual(list(figures.late(told, WINDOW)), ["3 of 6 alerts came without words"])
        self.assertEqual(list(figures.late({**told, "wordless": 1}, WINDOW)), [], "a few may")

    def test_the_plan_is_that_of_the_time_and_the_highest_fence(self):
        story = camera_node_killed()
        story.plan(9, "c2", {"cam-1": {"fence": 7, "stream": "s2"}, "cam-2": {"fence": 4, "stream": "s2"}, "cam-3": {"fence": 7, "stream": "s1"}})
        story.plan(10.5, "c1", {})
        self.assert_row(story.row(), cameras=1, sampled=2.0)

    def test_a_lease_that_ended_before_or_of_another_does_not_count(self):
        story = camera_node_killed()
        story.samples = [line for line in story.samples if line.get("value", "") is not None]
        story.lease_ends(4, "c1")
        story.lease_ends(12, "c2")
        self.assert_row(story.row(), detected=None, sampled=None, answered=None, settled=1.5)

    def test_a_run_that_does_not_settle_has_no_such_figure(self):
        story = camera_node_killed()
        story.journal = [line for line in story.journal if line["what"] != "settled"]
        story.settles(78, "unsettled")
        self.assertIsNone(story.row()["settled"])

    def test_each_fault_has_what_happened_until_the_next_one(self):
        story = camera_node_killed()
        story.fault("g1", 30, 35)
        story.fault("c2", 31, 33)
        story.lease_ends(33.5, "c1")
        rows = story.figures()["rows"]
        self.assertEqual([row["fault"] for row in rows], ["kill c1 8 s", "kill c2 2 s", "kill g1 5 s"])
        self.assert_row(rows[0], detected=2.5)
        self.assert_row(rows[1], cameras=3, detected=None)

    def test_silence_without_an_end_goes_on_until_the_next_fault(self):
        story = Story()
        story.tells("cam-1", 2, 3, 4, 36)
        story.tells("cam-2", *since(2))
        story.fault("g1", 10, 18)
        story.fault("g1", 30, 31)
        self.assert_row(story.row(), silence=26.0)
        self.assert_row(story.row(1), silence=32.0)

    def test_what_comes_after_the_next_fault_has_begun_is_no_answer(self):
        story = camera_node_killed(answered=(14.0, 31.0))
        story.fault("g1", 30, 35)
        self.assert_row(story.row(), answered=1.0, not_answered=1)

    def test_who_alone_serves_or_generates_is_not_waited_for(self):
        story = camera_node_killed()
        story.journal[0]["nodes"] = {"c1": ["camera", "gateway", "generate"], "c2": ["camera"], "v1": ["vision", "stream"]}
        self.assert_row(story.row(), only_one=False, sampled=2.0, answered=1.0)

    def test_the_table_has_them_and_every_violation(self):
        lines = figures.table([check.Violation("lost", "one")], camera_node_killed().figures())
        self.assertIn("| kill c1 8 s | 2.5 | 2.0 | 1.0 | 6.5 | 1.5 |", lines)
        self.assertEqual(lines[-2:], ["violation: lost: one", "1 violations"])
        self.assertEqual(figures.table([], camera_node_killed().figures())[-1], "all of it held")

    def test_a_run_that_explains_has_a_column_more(self):
        story = camera_node_killed()
        story.tells("cam-3", 11, 12, rule="words")
        story.tells("cam-3", 13, rule="words", description="a room")
        lines = figures.table([], story.figures())
        self.assertIn("| kill c1 8 s | 2.5 | 2.0 | 1.0 | 6.5 | 1.5 | 2 of 3 |", lines)


if __name__ == "__main__":
    unittest.main(verbosity=1)
