""".ci/check-demo accepts what a good demo prints, and nothing less."""

import os
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(__file__), "..", "..", ".ci", "check-demo")

GOOD = """
== Build
  10 of 10 steps

== Ask about a clip: someone stands at the table, then the room is empty
$ vigil ask clip.mp4 "Is there a person in the room?"
Yes
P(yes) 0.987, 12 frames, 310 prompt tokens, 1 answer tokens
$ vigil ask clip.mp4 "Is there a person in the room?"
No
P(yes) 0.012, 8 frames, 210 prompt tokens, 1 answer tokens

== Watch cameras
[terminal 1] $ vigil run --config config/demo.yaml
[terminal 2] $ vigil watch --timeout 20
[terminal 1] vigil: watching 7 cameras; events on tcp://127.0.0.1:5556
[terminal 2] 2026-08-01 10:00:12  meeting-room    person        new     0.98  Is there a person in the room?
[terminal 2] 2026-08-01 10:00:12  parking-lot     car           new     0.91  Is there a car?
[terminal 2] 2026-08-01 10:00:14  road            stop          new     0.99  Does a car stop on the road? Explain.  Yes. A grey car stops.
[terminal 2] 2026-08-01 10:00:15  station         bag           new     0.97  Is a bag left behind?
[terminal 2] 2026-08-01 10:00:20  parking-lot     car           end     0.04  Is there a car?

== Metrics of the running service
vigil_frames_captured_total{camera="table"} 12

== Ask a camera about what it saw since it started
$ vigil ask --camera parking-lot --since 10m "Is there a car?"
Yes  (probability of yes 1.00); best window 2026-08-01 10:00:00 to 2026-08-01 10:00:14 UTC; 2% of the time is remembered, 2 gaps
$ vigil ask --camera meeting-room --since 10m "When is there a person in the room?"
2026-08-01 10:00:02 UTC  (probability of yes 0.99); best window 2026-08-01 10:00:00 to 2026-08-01 10:00:14 UTC; 2% of the time is remembered, 2 gaps
$ vigil memory list
camera        tenant  pages  bytes    from                 to                   forms                       gaps
parking-lot   demo    4      1.2 MiB  2026-08-01 10:00:00  2026-08-01 10:00:14  fp8,int4,embeddings,sketch

== Stop
vigil run stopped cleanly; 2 alerts arrived.
"""


class CheckDemo(unittest.TestCase):
    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([sys.executable, SCRIPT, file.name], capture_output=True, text=True, check=False)
            return done.returncode, done.stderr

    def rejects(self, old, new, reason):
        self.assertIn(old, GOOD)
        status, errors = self.check(GOOD.replace(old, new))
        self.assertEqual(status, 1)
        self.assertIn(reason, errors)

    def test_accepts_a_good_demo(self):
        self.assertEqual(self.check(GOOD), (0, ""))

    def test_rejects_an_empty_demo(self):
        self.assertEqual(self.check("")[0], 1)

    def test_rejects_wrong_or_missing_answers(self):
        self.rejects("\nYes\n", "\nNo\n", "expected the answers")
        self.rejects("\nNo\n", "\n", "expected the answers")
        self.rejects("P(yes) 0.987, ", "", "expected the answers")
        self.rejects("0.987", "0.412", "do not fit")
        self.rejects("0.012", "0.512", "do not fit")

    def test_rejects_missing_alerts(self):
        self.rejects("meeting-room    person        new", "meeting-room    person        end", "'person' from the camera 'meeting-room'")
        self.rejects("parking-lot     car           new", "parking-lot     car           end", "'car' from the camera 'parking-lot'")

    def test_rejects_less_than_two_scenes(self):
        self.rejects("road            stop          new", "road            stop          end", "drawn scenes")
        self.rejects("[terminal 2] 2026-08-01 10:00:15", "[terminal 1] 2026-08-01 10:00:15", "drawn scenes")
        # Another scene makes up for one.
        done = self.check(GOOD.replace("road            stop ", "corridor        fall "))
        self.assertEqual(done, (0, ""))

    def test_rejects_false_alerts(self):
        alert = "2026-08-01 10:00:20  parking-lot     car           end"
        self.rejects(alert, "2026-08-01 10:00:20  parking-lot     person        new", "false alert")
        self.rejects(alert, "2026-08-01 10:00:20  meeting-room    car           new", "false alert")
        self.rejects(alert, "2026-08-01 10:00:20  table           car           new", "false alert")

    def test_a_hand_at_the_table_may_be_a_person(self):
        alert = "2026-08-01 10:00:20  parking-lot     car           end"
        self.assertEqual(self.check(GOOD.replace(alert, "2026-08-01 10:00:20  table           person        new"))[0], 0)

    def test_rejects_missing_metrics(self):
        self.rejects('vigil_frames_captured_total{camera="table"} 12\n', "", "no metrics")

    def test_rejects_a_past_that_is_not_told(self):
        self.rejects("Yes  (probability of yes 1.00); best", "No  (probability of yes 0.00); best", "no car was remembered")
        self.rejects("2026-08-01 10:00:02 UTC  (", "No  (", "when there was a person")
        self.rejects("parking-lot   demo    4 ", "lot   demo    4 ", "is not listed")

    def test_rejects_a_service_that_did_not_stop(self):
        self.rejects("stopped cleanly", "was killed", "did not stop")


if __name__ == "__main__":
    unittest.main()
