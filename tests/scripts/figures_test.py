"""scripts/figures on small trees, and --check on this one."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SCRIPT = os.path.join(ROOT, "scripts", "figures")

ENGINE = {
    "workload": "engine", "commands": ["vigil bench engine"], "date": "2026-01-02", "commit": "abc1234", "machine": "one GPU", "source": "a page", "note": "an old one",
    "columns": {"what": "work", "peer": "peer", "here": "here", "times": "times"}, "ratios": {"times": ["peer", "here"]},
    "take": {"here": {"bench": "engine", "value": "median", "times": 1000}, "peer": {"bench": "engine_peer", "value": "median", "times": 1000}},
    "rows": [
        {"what": "vision", "peer": 778, "here": 107.9, "unit": "ms", "take": {"here": {"figure": "vision"}, "peer": {"figure": "vision"}}},
        {"what": "token", "peer": 18.4, "here": 4.5, "times": "four", "unit": "ms", "take": {"here": {"figure": "token"}, "peer": {"figure": "token"}}},
    ],
}
CAMERAS = {"workload": "cameras", "rows": [{"what": "held", "limit": 53, "here": 1029, "take": {"here": {"figure": "held", "value": "cameras.most"}}}]}
PAGE = "# Page\n\n<!-- figures: engine -->\n<!-- end of figures -->\n\nBetween.\n\n<!-- figures: cameras -->\n<!-- end of figures -->\n\nLast.\n"


def line(bench, figure, median, **more):
    return json.dumps({"bench": bench, "figure": figure, "median": median, **more}) + "\n"


class Figures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = folder.name
        os.makedirs(os.path.join(self.tree, "scripts"))
        shutil.copy(SCRIPT, os.path.join(self.tree, "scripts", "figures"))
        self.write("docs/performance.md", PAGE)
        self.write("loadtest/results/engine.json", json.dumps(ENGINE))
        self.write("loadtest/results/cameras.json", json.dumps(CAMERAS))

    def write(self, path, text):
        path = os.path.join(self.tree, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, path="docs/performance.md"):
        with open(os.path.join(self.tree, path), encoding="utf-8") as file:
            return file.read()

    def run_script(self, *arguments, status=0):
        done = subprocess.run([sys.executable, os.path.join(self.tree, "scripts", "figures"), *arguments], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_this_tree_has_the_tables_of_its_results(self):
        done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_writes_tables_that_pass_the_check(self):
        self.run_script()
        page = self.read()
        self.assertIn("| work | peer | here | times |\n|---|---|---|---|\n| vision | 778 ms | **107.9 ms** | 7.21 |\n| token | 18.4 ms | **4.5 ms** | four |\n", page)
        self.assertIn("2026-01-02; commit abc1234; one GPU; an old one; a page.\n\n    vigil bench engine\n", page)
        self.assertIn("| work | limit | here |\n|---|---|---|\n| held | 53 | **1,029** |\n", page)
        self.assertIn("\nBetween.\n", page)
        self.run_script("--check")
        self.run_script()
        self.assertEqual(self.read(), page)

    def test_the_check_names_the_table_that_differs_and_changes_nothing(self):
        self.run_script()
        changed = self.read().replace("**107.9 ms**", "**99.9 ms**")
        self.write("docs/performance.md", changed)
        errors = self.run_script("--check", status=1)
        self.assertIn("the table engine is not that of loadtest/results/engine.json", errors)
        self.assertNotIn("cameras", errors)
        self.assertEqual(self.read(), changed)

    def test_tables_stand_on_either_page_and_on_one_alone(self):
        first, second = PAGE.split("\nBetween.\n")
        self.write("docs/performance.md", first)
        self.write("docs/scale.md", second)
        self.run_script()
        self.assertIn("| held | 53 | **1,029** |", self.read("docs/scale.md"))
        self.run_script("--check")
        self.write("docs/scale.md", self.read("docs/scale.md").replace("1,029", "1,030"))
        self.assertIn("docs/scale.md: the table cameras", self.run_script("--check", status=1))
        self.write("docs/performance.md", PAGE)
        self.assertIn("2 tables between <!-- figures: cameras -->", self.run_script(status=1))

    def test_the_check_sees_a_changed_result(self):
        self.run_script()
        self.write("loadtest/results/cameras.json", json.dumps(CAMERAS).replace("53", "54"))
        self.assertIn("the table cameras", self.run_script("--check", status=1))

    def test_tables_and_results_have_each_other(self):
        self.write("docs/performance.md", PAGE.replace("figures: engine", "figures: motor"))
        self.assertIn("there is no loadtest/results/motor.json", self.run_script("--check", status=1))
        self.write("docs/performance.md", PAGE.split("Between.")[0])
        self.assertIn("0 tables between <!-- figures: cameras -->", self.run_script(status=1))
        self.write("docs/performance.md", PAGE + PAGE)
        self.assertIn("2 tables between", self.run_script(status=1))
        self.write("docs/performance.md", PAGE.replace("<!-- end of figures -->\n\nLast.", "Last."))
        self.assertIn("begins without an end", self.run_script(status=1))

    def test_results_that_cannot_be_read_are_named(self):
        self.write("loadtest/results/cameras.json", "{")
        self.assertIn("loadtest/results/cameras.json: ", self.run_script("--check", status=1))
        self.write("loadtest/results/cameras.json", json.dumps({**CAMERAS, "workload": "camera"}))
        self.assertIn("needs \"workload\": \"cameras\"", self.run_script("--check", status=1))

    def test_keeps_the_digits_of_a_number(self):
        self.write("loadtest/results/cameras.json", json.dumps(CAMERAS).replace("53", "-0.50").replace("1029", "12345.670"))
        self.run_script()
        self.assertIn("| held | -0.50 | **12,345.670** |", self.read())

    def test_takes_rows_from_outputs(self):
        bench = self.write("bench.txt", "a word beside\n" + "".join(line("engine", figure, median, commit="def5678", machine="two GPUs") for figure, median in (("vision", 0.10041), ("token", 0.0039))))
        peer = self.write("peer.txt", line("engine_peer", "vision", 0.5) + line("engine_peer", "token", 0.01561))
        self.run_script("--take", bench, peer, "--date", "2026-03-04")
        page = self.read()
        self.assertIn("| vision | 500.0 ms | **100.4 ms** | 4.98 |\n| token | 15.6 ms | **3.90 ms** | 4.00 |\n", page)
        self.assertIn("2026-03-04; commit def5678; two GPUs.\n", page)
        results = json.loads(self.read("loadtest/results/engine.json"))
        self.assertEqual((results["source"], results["rows"][1]["here"]), ("a bench's output", 3.9))
        self.assertNotIn("note", results)
        self.assertIn('"here": 3.90', self.read("loadtest/results/engine.json"))
        self.run_script("--check")

    def test_takes_a_row_as_a_whole_and_says_of_which_day_it_is(self):
        bench = self.write("bench.txt", line("engine", "vision", 0.1, commit="def5678") + line("engine", "token", 0.0039) + line("engine_peer", "vision", 0.5))
        errors = self.run_script("--take", bench, "--date", "2026-03-04")
        self.assertIn("engine, token: not taken, since the outputs have no peer for it", errors)
        page = self.read()
        self.assertIn("| vision | 500.0 ms | **100.0 ms** | 5.00 | 2026-03-04; commit def5678; machine not stated; a bench's output |", page)
        self.assertIn("| token | 18.4 ms | **4.5 ms** | four | |", page)
        self.assertIn("2026-01-02; commit abc1234; one GPU; an old one; a page.", page)

    def test_names_every_row_that_is_not_filled(self):
        engine = {**ENGINE, "rows": [*ENGINE["rows"], {"what": "by hand", "here": 1}]}
        self.write("loadtest/results/engine.json", json.dumps(engine))
        bench = self.write("bench.txt", line("engine", "vision", 0.1) + line("engine_peer", "vision", 0.5))
        self.assertEqual(self.run_script("--take", bench, "--date", "2026-03-04").splitlines(), [
            "engine, token: not taken, since nothing in the outputs is about it", "engine, by hand: not taken, since it is not taken from a bench"])

    def test_refuses_a_day_that_is_none(self):
        bench = self.write("bench.txt", line("engine", "vision", 0.1))
        before = self.read("loadtest/results/engine.json")
        for date in ("yesterday", "2026-13-01", "20260304", "4.3.2026"):
            self.assertIn(f"--date: expected YYYY-MM-DD, not '{date}'", self.run_script("--take", bench, "--date", date, status=2))
        self.assertEqual(self.read("loadtest/results/engine.json"), before)

    def test_takes_numbers_that_lie_deeper(self):
        bench = self.write("bench.txt", json.dumps({"figure": "held", "cameras": {"most": 31}, "machine": "a laptop"}))
        self.run_script("--take", bench, "--date", "2026-03-04", "--commit", "fed", "--machine", "a desk")
        self.assertIn("| held | 53 | **31** |\n\n2026-03-04; commit fed; a desk.", self.read())

    def test_takes_cases_of_google_benchmarks(self):
        results = {"workload": "cameras", "rows": [{"what": "product", "here": 1, "unit": "GFLOP/s", "take": {"here": {"name": "Product", "value": "FLOP/s", "times": 1e-9}}}]}
        self.write("loadtest/results/cameras.json", json.dumps(results))
        bench = self.write("bench.json", json.dumps({"context": {"date": "x"}, "benchmarks": [{"name": "Product", "FLOP/s": 4.2e11}]}, indent=2))
        self.run_script("--take", bench)
        self.assertIn("| product | **420.0 GFLOP/s** |", self.read())

    def test_refuses_outputs_that_say_nothing_or_two_things(self):
        self.assertIn("none.txt holds no JSON lines; run the bench with --output json\n", self.run_script("--take", self.write("none.txt", "no line\n7\n"), status=1))
        self.assertIn("no row of loadtest/results/ takes anything", self.run_script("--take", self.write("other.txt", line("media", "vision", 1)), status=1))
        twice = self.write("twice.txt", line("engine", "vision", 0.1) * 2 + line("engine_peer", "vision", 0.5))
        held = self.write("held.txt", json.dumps({"figure": "held", "cameras": {"most": 31}}))
        before = [self.read(f"loadtest/results/{name}.json") for name in ("engine", "cameras")]
        self.assertIn("2 lines agree with", self.run_script("--take", held, twice, status=1))
        self.assertEqual([self.read(f"loadtest/results/{name}.json") for name in ("engine", "cameras")], before)

    def test_refuses_what_it_does_not_know(self):
        self.run_script("--fix", status=2)
        self.run_script("--check", "--take", "x", status=2)
        self.assertIn("No such file", self.run_script("--take", "nowhere.txt", status=1))


if __name__ == "__main__":
    unittest.main()
