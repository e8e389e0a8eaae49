#!/usr/bin/python3
"""loadtest/load/plot: that the picture can be opened, and that the page holds what was measured and needs nothing else. 77 where matplotlib lacks."""

import html.parser
import os
import re
import subprocess
import sys
import tempfile
import unittest

try:
    from matplotlib import image
except ImportError:
    print("skipped: python3-matplotlib is not installed (scripts/dependencies)")
    sys.exit(77)

import results
from results import changed, made


class Page(html.parser.HTMLParser):
    """The text of a page, its table, and whatever it refers to."""

    def __init__(self, text):
        super().__init__()
        self.words, self.rows, self.refers, self.tags, self.open = [], [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
        self.refers += [value for key, value in attrs if key in ("src", "href", "xlink:href", "data") and not value.startswith("#")]
        self.refers += [url for _, value in attrs for url in re.findall(r"url\((?!#)([^)]*)\)", value or "")]

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if data.strip():
            self.words.append(" ".join(data.split()))
            if self.open and self.open[-1] == "td":
                self.rows[-1][-1] += data


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def plot(self, found, *arguments, status=0):
        """found: by name. What was printed, and the paths."""
        paths = [results.write(self.folder, f"{name}.json", value) for name, value in found.items()]
        done = subprocess.run([os.path.join(results.LOAD, "plot"), *paths, "--out", os.path.join(self.folder, "out"), *arguments],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stdout.split() if status == 0 else done.stderr

    def page(self, path):
        with open(path, encoding="utf-8") as file:
            return Page(file.read())

    def test_the_picture_opens_and_is_not_empty(self):
        picture, _ = self.plot({"one": made()})
        pixels = image.imread(picture)
        self.assertGreater(pixels.shape[0], 400)
        self.assertGreater(pixels.shape[1], 600)
        # Axes and text alone are a few shades of grey; curves are coloured.
        coloured = (abs(pixels[:, :, 0] - pixels[:, :, 2]) > 0.2).sum()
        self.assertGreater(coloured, 1000)

    def test_the_page_needs_nothing_else(self):
        _, path = self.plot({"one": made()})
        page = self.page(path)
        self.assertEqual(page.refers, [])
        self.assertFalse({"script", "link", "img", "iframe", "image", "object"} & set(page.tags))
        self.assertEqual(page.tags.count("svg"), 1)

    def test_the_page_holds_what_was_measured(self):
        _, path = self.plot({"one": made()})
        page = self.page(path)
        for curve in ("p50", "p95", "p99"):
            self.assertIn(f"one (abc1234), busy: {curve}", page.words)
        for load in ("2", "4", "8"):
            self.assertIn(load, page.words)
        self.assertEqual(page.rows[1:], [[f"one (abc1234), {name}", str(load), name,
                                          *(f"{1000 * factor * (1 + load / 8) * each:.0f}" for each in (0.1, 0.3, 0.5, 0.9)), "600", "100.0", "0",
                                          "0", "0.40"]
                                         for name, factor in (("quiet", 1), ("busy", 2)) for load in (2, 4, 8)])
        about = next(words for words in page.words if "a processor" in words)
        for each in ("words & <signs>", "commit abc1234", "vigil 0.1.0 (abc)", "2 cores", "1024 MiB", "Linux 6.1", "2026-08-01", "seed 1"):
            self.assertIn(each, about)

    def test_curves_are_milliseconds_against_cameras(self):
        import drawing
        above, below = drawing.draw([("one", made())], ["quiet"]).axes
        self.assertEqual([(list(line.get_xdata()), [round(y, 6) for y in line.get_ydata()]) for line in above.lines],
                         [([2, 4, 8], [1000 * each * (1 + load / 8) for load in (2, 4, 8)]) for each in (0.1, 0.3, 0.5)])
        self.assertEqual([list(line.get_ydata()) for line in below.lines], [[100.0, 100.0, 100.0]])

    def test_two_in_one_picture(self):
        _, path = self.plot({"before": made(), "after": changed(made(factor=3), lambda whole: whole.update(dirty=True, commit="def5678"))}, "--phase",
                            "busy", "--name", "both")
        self.assertEqual(os.path.basename(path), "both.html")
        page = self.page(path)
        self.assertIn("before (abc1234): p95", page.words)
        self.assertIn("after (def5678+): p95", page.words)
        self.assertEqual(len(page.rows), 1 + 6)
        self.assertFalse([row for row in page.rows[1:] if row[2] != "busy"])

    def test_the_same_result_gives_the_same_page(self):
        contents = []
        for _ in range(2):
            _, path = self.plot({"one": made()})
            with open(path, "rb") as file:
                contents.append(file.read())
        self.assertEqual(*contents)

    def test_a_phase_without_windows_has_a_row_and_no_point(self):
        whole = changed(made(), lambda each: each["steps"][1]["phases"][0].update(latency={"count": 0}))
        _, path = self.plot({"one": whole}, "--phase", "quiet")
        self.assertEqual([(row[1], row[3], row[7]) for row in self.page(path).rows[1:]], [("2", "125", "600"), ("4", "", "0"), ("8", "200", "600")])
        self.plot({"one": changed(made(loads=(2,)), lambda each: [phase.update(latency={"count": 0}) for phase in each["steps"][0]["phases"]])},
                  status=2)

    def test_what_is_refused(self):
        self.assertEqual(self.plot({"one": "{}"}, status=2).count("\n"), 1)
        self.assertIn("no result has the phase rush", self.plot({"one": made()}, "--phase", "rush", status=2))
        self.plot({"one": made()}, "--name", "../x", status=2)
        results.write(self.folder, "file", "")
        done = subprocess.run([os.path.join(results.LOAD, "plot"), os.path.join(self.folder, "one.json"), "--out", os.path.join(self.folder, "file")],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
