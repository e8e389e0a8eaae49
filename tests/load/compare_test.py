#!/usr/bin/python3
"""loadtest/load/compare on results that are made up: what it calls worse, better and not comparable, and its status."""

import os
import re
import subprocess
import tempfile
import unittest

import results
from results import changed, made

import comparison  # noqa: E402  (loadtest/load)


def of_kind(found, kind):
    return sorted({(each.where, each.figure) for each in found if each.kind == kind}, key=str)


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def compare(self, old, new, *arguments, status=0):
        paths = [results.write(self.folder, name, value) for name, value in (("old.json", old), ("new.json", new))]
        done = subprocess.run([os.path.join(results.LOAD, "compare"), *paths, *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_the_same(self):
        self.assertIn("0 worse, 0 better", self.compare(made(), made()))

    def test_worse_by_more_than_the_tolerance(self):
        told = self.compare(made(), made(factor=1.5), status=1)
        self.assertIn("worse: 2 cameras, quiet: latency_p50 125 -> 187.5 ms, 1.50 times", told)
        self.assertIn("18 worse, 0 better", told)
        self.assertEqual(self.compare(made(), made(factor=1.5), "--tolerance", "0.6").splitlines()[-1],
                         "0 worse, 0 better, 57 same, 0 not comparable")

    def test_better_the_other_way_round(self):
        told = self.compare(made(factor=1.5), made())
        self.assertIn("better: 8 cameras, busy: latency_p99 3000 -> 2000 ms, 0.67 times", told)
        self.assertIn("0 worse, 18 better", told)

    def test_a_tolerance_of_one_figure(self):
        told = self.compare(made(), made(factor=1.5), "--tolerance", "0.6", "--tolerance", "latency_p99=0.4", status=1)
        self.assertEqual(set(re.findall(r"^worse: .*: (\w+) ", told, re.MULTILINE)), {"latency_p99"})

    def test_each_figure_is_looked_at(self):
        def one(figure, change, kind="worse", where="2 cameras, busy"):
            self.assertEqual(of_kind(comparison.verdicts(made(), changed(made(), change)), kind), [(where, figure)], figure)

        one("latency_p95", lambda whole: whole["steps"][0]["phases"][1]["latency"].update(p95=9.0))
        one("missing_share", lambda whole: whole["steps"][0]["phases"][1]["windows"].update(answered_share=0.95))
        one("late_share", lambda whole: whole["steps"][0]["phases"][1]["windows"].update(late=60))
        one("cores", lambda whole: whole["steps"][0]["phases"][1]["processes"]["c1"].update(cores=1.0))
        one("rss_mib", lambda whole: whole["steps"][0]["phases"][1]["processes"]["c1"].update(rss_mib=300.0))
        one("answered_again", lambda whole: whole["steps"][0]["losses"][0].update(answered_again=6.0), where="2 cameras, loss 1")
        one("lost", lambda whole: whole["steps"][0]["events"].update(lost=1), where="2 cameras")
        one("lost", lambda whole: whole["steps"][0]["events"].update(gaps=1), where="2 cameras")
        one("lost", lambda whole: whole["steps"][0].update(slow_subscribers=[{"missed_and_not_replayed": 1}]), where="2 cameras")
        one("violations", lambda whole: whole["steps"][0].update(violations={"order": 1}), where="2 cameras")

    def test_what_the_load_itself_takes_is_not_the_nodes(self):
        new = changed(made(), lambda whole: whole["steps"][0]["phases"][1]["processes"]["etcd"].update(cores=2.0))
        self.assertEqual(of_kind(comparison.verdicts(made(), new), "worse"), [])

    def test_one_more_lost_event_is_worse_whatever_the_tolerance(self):
        old = changed(made(), lambda whole: whole["steps"][0]["events"].update(lost=10))
        new = changed(made(), lambda whole: whole["steps"][0]["events"].update(lost=11))
        self.assertIn("lost 10 -> 11", self.compare(old, new, "--tolerance", "5", status=1))

    def test_small_differences_are_none(self):
        old, new = (changed(made(), lambda whole, p50=p50: whole["steps"][0]["phases"][0]["latency"].update(p50=p50)) for p50 in (0.004, 0.008))
        self.assertEqual(of_kind(comparison.verdicts(old, new), "worse"), [])

    def test_tails_of_few_windows_are_not_compared(self):
        found = comparison.verdicts(made(count=99), made(count=600, factor=9))
        self.assertEqual({figure for _, figure in of_kind(found, "not comparable")}, {"latency_p95", "latency_p99"})
        self.assertTrue(all("99 windows are too few" in each.text for each in found if each.kind == "not comparable"))
        self.assertEqual({figure for _, figure in of_kind(found, "worse")}, {"latency_p50"})

    def test_loads_that_only_one_has(self):
        found = comparison.verdicts(made(loads=(2, 4)), made(loads=(4, 8)))
        self.assertEqual([(each.where, each.text) for each in found if each.kind == "not comparable"],
                         [("2 cameras", "only in the old one"), ("8 cameras", "only in the new one")])
        self.assertIn("no load in common", self.compare(made(loads=(2,)), made(loads=(4,)), status=2))

    def test_a_phase_without_windows(self):
        new = changed(made(), lambda whole: whole["steps"][0]["phases"][0].update(latency={"count": 0}))
        self.assertIn("0 windows are too few", self.compare(made(), new))

    def test_other_scenarios_and_machines(self):
        for change, text in ((lambda whole: whole["scenario"]["content"].update(name="other"), "other scenarios: steady and other"),
                             (lambda whole: whole["scenario"]["content"]["cameras"].update(fps=4), "cameras.fps 2 and 4"),
                             (lambda whole: whole["scenario"]["content"].update(seed=2), "seed 1 and 2"),
                             (lambda whole: whole["machine"].update(cores=64), "other machines: cores 2 and 64")):
            self.assertIn(f"not comparable: {text}" if text.startswith("other") else text, self.compare(made(), changed(made(), change), status=2))
        other = changed(made(), lambda whole: whole["machine"].update(cores=64))
        self.compare(made(), other, "--any-machine")
        kernel = changed(made(), lambda whole: whole["machine"].update(kernel="6.2"))
        self.assertIn("note: other kernels: 6.1 and 6.2", self.compare(made(), kernel))
        self.compare(made(), changed(made(), lambda whole: whole["scenario"]["content"].update(limits={"lost": 0}, about="x")))

    def test_other_programs_are_named(self):
        new = changed(made(), lambda whole: whole["steps"][1]["phases"][0]["machine"].update(others_cores=1.25))
        told = self.compare(made(), new)
        self.assertEqual([line for line in told.splitlines() if line.startswith("note")],
                         ["note: 4 cameras, quiet: other programs took 0.4 and 1.25 cores"])
        self.compare(made(), changed(made(), lambda whole: whole["steps"][0]["phases"][0].pop("machine")))

    def test_files_that_are_no_results(self):
        for bad in ("", "[]", "{}", '{"schema": "vigil-load/9"}', "\0", changed(made(), lambda whole: whole.update(steps=[])),
                    changed(made(), lambda whole: whole["steps"][0].pop("phases")),
                    changed(made(), lambda whole: whole.update(steps=3)), changed(made(), lambda whole: whole.pop("machine"))):
            told = self.compare(made(), bad, status=2)
            self.assertRegex(told, r"\Acompare: .*new\.json: .*\n\Z")
        done = subprocess.run([os.path.join(results.LOAD, "compare"), "/nowhere", "/nowhere"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "compare: /nowhere: No such file or directory\n"))

    def test_tolerances_that_are_none(self):
        for text in ("x", "-1", "latency=0.2", "nan"):
            self.assertIn("--tolerance", self.compare(made(), made(), "--tolerance", text, status=2))


if __name__ == "__main__":
    unittest.main()
