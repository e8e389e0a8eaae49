"""What tools/, loadtest/ and tests/ import can be installed as tools/README.md says, and each program there can be started as it says."""

import ast
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
REQUIREMENTS = os.path.join(ROOT, "tools", "requirements.txt")
# Packages whose modules have another name.
PACKAGES = {"PIL": "pillow", "cv2": "opencv-python-headless", "zmq": "pyzmq", "yaml": "pyyaml", "triton": "torch", "gi": "python3-gi"}
# Programs look for these and go on without them.
OPTIONAL = {"torchvision"}


def programs(*folders):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(ROOT, folder)):
            for name in names:
                if name.endswith(".py"):
                    yield os.path.join(path, name)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def imports(text):
    """The first names of all modules that are imported, wherever."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (each.name.split(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def foreign(*folders):
    """Modules that are neither Python's own nor ours -> a program that imports them."""
    ours = {os.path.basename(part).removesuffix(".py") for path in programs("tools", "loadtest", "tests") for part in (path, os.path.dirname(path))}
    return {name: os.path.relpath(path, ROOT) for path in programs(*folders) for name in imports(read(path)) if name not in sys.stdlib_module_names and name not in ours}


def packages():
    return subprocess.run([os.path.join(ROOT, "scripts", "dependencies"), "--list"], capture_output=True, text=True, check=True).stdout.split()


class Tools(unittest.TestCase):
    def test_what_programs_import_is_installed_from_one_list(self):
        listed = set(re.findall(r"^[\w-]+", read(REQUIREMENTS), re.MULTILINE))
        found = foreign("tools", "loadtest")
        self.assertIn("torch", found)
        for name, program in found.items():
            # Of the distribution alone, and of its Python.
            if name == "gi":
                self.assertIn(PACKAGES[name], packages(), f"{program} imports {name}")
                continue
            self.assertTrue(name in OPTIONAL or PACKAGES.get(name, name) in listed, f"{program} imports {name}, which tools/requirements.txt does not have")
        # And nothing that nobody imports but the examples of docs/.
        self.assertEqual(listed - {PACKAGES.get(name, name) for name in found} - {"pyzmq"}, set())

    def test_what_tests_import_is_among_the_packages(self):
        installed = packages()
        for name, program in foreign("tests").items():
            self.assertIn(PACKAGES.get(name) if name == "gi" else f"python3-{name}", installed, f"{program} imports {name}")

    def test_programs_of_the_page_are_there(self):
        rows = re.findall(r"^\| (`.*?) \|", read(os.path.join(ROOT, "tools", "README.md")), re.MULTILINE)
        shown = [re.match(r"\S+", each).group() for row in rows for each in re.findall(r"`([^`]+)`", row)]
        self.assertGreater(len(shown), 12)
        for name in shown:
            path = os.path.join(ROOT, "tools", name)
            self.assertTrue(os.access(path, os.X_OK), f"tools/README.md shows {name}, which cannot be started")

    def test_programs_can_be_started_and_say_what_they_take(self):
        known = set(re.findall(r"^[\w-]+", read(REQUIREMENTS), re.MULTILINE))
        names = [path for path in programs("tools", "loadtest") if "argparse" in imports(read(path)) and "__main__" in read(path)]
        self.assertGreater(len(names), 20)

        def fault(path):
            if not os.access(path, os.X_OK) or not read(path).startswith("#!"):
                return f"{path}: no run bit, or no #! line"
            done = subprocess.run([path, "--help"], capture_output=True, text=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
            missing = re.fullmatch(r"\w+: Python package needed: (\w+); see tools/README.md\n", done.stderr)
            # What is not installed here is in the list, and so can be.
            if missing and PACKAGES.get(missing[1], missing[1]) in known:
                return None
            return None if done.returncode == 0 and done.stdout.startswith("usage:") else f"{path} --help: {done.stderr[-300:]}"

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.assertEqual([each for each in pool.map(fault, names) if each], [])

    def test_programs_say_in_a_line_what_is_wrong_with_their_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            for line, status, *command in (
                    ("evaluate: nope: no such folder", 1, "tools/evaluate.py", "--scenes", "nope"),
                    (f"evaluate: {folder}: no scenes in it; tools/scenes/write.py makes some", 1, "tools/evaluate.py", "--scenes", folder),
                    ("evaluate: nope: no such folder", 1, "tools/evaluate.py", "--clips", "nope"),
                    ("evaluate: nope.mp4: no such file", 1, "tools/evaluate.py", "--long", "nope.mp4"),
                    ("evaluate.py: error: --windows is about long scenes (--long)", 2, "tools/evaluate.py", "--scenes", folder, "--windows", "10:2"),
                    ("evaluate.py: error: one of the arguments --clips --scenes --long is required", 2, "tools/evaluate.py"),
                    ("calibrate: nope.jsonl: No such file or directory", 1, "tools/calibrate.py", "nope.jsonl", "models/demo"),
                    ("pair: needs VIDEOS, OUT and GPUS; pair --help says more", 2, "tools/train/pair", "tests/videos"),
                    ("server.py: error: --clip: expected NAME=FILE, not 'foo'", 2, "/usr/bin/python3", "tests/rtsp/server.py", "--clip", "foo"),
                    ("server.py: error: --serve: expected NAME=STREAM, not 'foo'", 2, "/usr/bin/python3", "tests/rtsp/server.py", "--serve", "foo"),
                    ("scripts/build: no preset 'relese' (known: release debug asan tsan fuzz lint lint-groups cuda)", 2, "scripts/build", "relese"),
                    ("scripts/build: which preset? scripts/build PRESET [TARGET ...]", 2, "scripts/build"),
                    (f"scenes: {ROOT}/nope/bin/vigil is missing: scripts/build release", 2, "loadtest/fleet/scenes", "--build", "nope", "order"),
                    (f"chaos: {ROOT}/nope/bin/vigil is missing: scripts/build release", 2, "loadtest/fleet/chaos", "--build", "nope"),
                    ("scenes: error: stages needs nodes that do one thing each: --apart V,S,X, such as --apart 2,2,1", 2, "loadtest/fleet/scenes", "stages"),
                    ("scenes: error: argument --apart: expected 3 whole numbers such as 2,2,1, the smallest 1,1,0, not '1,2'", 2,
                     "loadtest/fleet/scenes", "--apart", "1,2"),
                    ("chaos: error: argument --nodes: expected 3 whole numbers such as 3,2,2, the smallest 1,1,0, not '1,x,0'", 2,
                     "loadtest/fleet/chaos", "--nodes", "1,x,0"),
                    ("check.py: error: the following arguments are required: FOLDER", 2, "loadtest/fleet/check.py"),
                    ("check: nope: no such folder", 2, "loadtest/fleet/check.py", "nope"),
                    (f"stages: {ROOT}/nope/bin/vigil is missing: scripts/build release", 2, "loadtest/pipeline/stages.py", "nope"),
                    (f"sockets: {ROOT}/nope/bin/vigil is missing: scripts/build release", 2, "loadtest/faults/sockets.py", "--build", "nope"),
                    ("scripts/check-rooms: nope: no such folder", 1, "scripts/check-rooms", "nope")):
                done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"})
                missing = re.fullmatch(r"\w+: Python package needed: \w+; see tools/README.md\n", done.stderr)
                if not missing:
                    with self.subTest(command=command):
                        self.assertEqual((done.stderr.rstrip("\n").rsplit("\n", 1)[-1], done.returncode, done.stdout), (line, status, ""))
        self.assertFalse(os.path.exists(os.path.join(ROOT, "build", "relese")))

    def test_scripts_say_what_they_do_and_do_nothing(self):
        folder = os.path.join(ROOT, "scripts")
        before = [sorted(os.listdir(each)) for each in (ROOT, os.path.join(ROOT, "build")) if os.path.isdir(each)]
        for name in sorted(os.listdir(folder)) + ["../tools/train/pair"]:
            done = subprocess.run([os.path.join(folder, name), "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60)
            own = os.path.relpath(os.path.join(folder, name), os.path.join(ROOT))
            self.assertEqual((done.returncode, done.stderr), (0, ""), own)
            self.assertGreater(len(done.stdout), 100, own)
            self.assertFalse(done.stdout.startswith(("#", "set -")), own)
        self.assertEqual([sorted(os.listdir(each)) for each in (ROOT, os.path.join(ROOT, "build")) if os.path.isdir(each)], before)

    def test_programs_that_a_docstring_shows_are_those_with_a_run_bit(self):
        for path in programs("tools", "loadtest"):
            own = os.path.relpath(path, ROOT)
            if re.search(rf"^\s+(python3 )?{re.escape(own)}\b", ast.get_docstring(ast.parse(read(path)), clean=False) or "", re.MULTILINE):
                self.assertTrue(os.access(path, os.X_OK), f"{own} shows how it is started, and has no run bit")


if __name__ == "__main__":
    unittest.main()
