"""images/Dockerfile.*: what can be said of them without an engine. They make the same of the program as scripts/image does, and keep to usual rules."""

import importlib.machinery
import importlib.util
import json
import os
import re
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, os.path.join(ROOT, "scripts", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


IMAGE = load("image")


def instructions(text):
    """[(instruction, its arguments)], comments left out and continued lines joined."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ").splitlines()
    return [(word.upper(), re.sub(r"\s+", " ", rest)) for word, rest in (line.split(None, 1) for line in lines if line.strip())]


def faults(text):
    """What is wrong with a Dockerfile by rules that hold for any."""
    steps = instructions(text)
    names = {rest.split("=")[0] for word, rest in steps[:next(at for at, (word, _) in enumerate(steps) if word == "FROM")] if word == "ARG"}
    stages, found = set(), []
    for word, rest in steps:
        if word == "FROM":
            base = re.fullmatch(r"\$\{(\w+)\}( AS (\w+))?", rest)
            if not base or base.group(1) not in names:
                found.append(f"FROM {rest}: a base that nobody can pin")
            elif base.group(3):
                stages.add(base.group(3))
        elif word == "ARG" and rest.split("=")[0] in names and not re.search(r":[\w.-]*\d[\w.-]*$", rest):
            found.append(f"ARG {rest}: no version")
        elif word == "ADD":
            found.append(f"ADD {rest}")
        elif word == "RUN":
            if re.search(r"\b(curl|wget|sudo)\b|https?://", rest):
                found.append(f"RUN {rest}: fetches by itself")
            if "apt-get install" in rest and ("--no-install-recommends" not in rest or "apt-get update" not in rest):
                found.append(f"RUN {rest}: installs more than it says, or from old lists")
        elif word == "COPY":
            source = re.fullmatch(r"(?:--from=(\w+) )?(\S+) \S+", rest)
            stage, path = source.groups() if source else (None, "")
            if not source or (stage not in stages if stage else not os.path.exists(os.path.join(ROOT, path))):
                found.append(f"COPY {rest}: there is no such thing")
    last = steps[max(at for at, (word, _) in enumerate(steps) if word == "FROM"):]
    users = [rest for word, rest in last if word == "USER"]
    words = [word for word, _ in last]
    if not users or not re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]) or "RUN" in words[words.index("USER"):]:
        found.append("it does not run as a user with a number other than 0")
    if not all("rm -rf /var/lib/apt/lists/*" in rest for word, rest in last if word == "RUN" and "apt-get" in rest):
        found.append("lists of packages stay in the image")
    if any(word == "RUN" and re.search(r"-dev\b|gcc|g\+\+|cmake", rest) for word, rest in last):
        found.append("what builds stays in the image")
    return found


class Dockerfiles(unittest.TestCase):
    def each(self):
        for name in ("Dockerfile.cpu", "Dockerfile.cuda"):
            with open(os.path.join(ROOT, "images", name), encoding="utf-8") as file:
                with self.subTest(name):
                    yield name, file.read()

    def test_they_keep_to_the_rules(self):
        for _, text in self.each():
            self.assertEqual(faults(text), [])

    def test_the_rules_find_what_breaks_them(self):
        with open(os.path.join(ROOT, "images", "Dockerfile.cpu"), encoding="utf-8") as file:
            good = file.read()
        for before, after in (("FROM ${BASE} AS build", "FROM debian AS build"), ("BASE=debian:12-slim", "BASE=debian:latest"),
                              ("USER 65532:65532", "USER root"), ("USER 65532:65532\n", ""), ("COPY . .", "ADD https://example.org/x.tar ."),
                              ("--no-install-recommends", ""), ("rm -rf /var/lib/apt/lists/*", "true"), ("COPY LICENSE", "COPY LICENCE"),
                              ("--from=build /packages", "--from=builder /packages"), ("ca-certificates tzdata", "ca-certificates tzdata libcaf-dev"),
                              ("RUN scripts/dependencies", "RUN curl -O x && scripts/dependencies")):
            self.assertIn(before, good)
            self.assertNotEqual(faults(good.replace(before, after)), [], after)

    def test_they_declare_what_scripts_image_declares(self):
        for _, text in self.each():
            steps = instructions(text)
            last = steps[max(at for at, (word, _) in enumerate(steps) if word == "FROM"):]
            said = {word: rest for word, rest in last if word not in ("RUN", "COPY", "ARG")}
            wanted = IMAGE.settings({})
            self.assertEqual(said["USER"], wanted["User"])
            self.assertEqual(json.loads(said["ENTRYPOINT"]), wanted["Entrypoint"])
            self.assertEqual(json.loads(said["CMD"]), wanted["Cmd"])
            self.assertEqual(said["WORKDIR"], wanted["WorkingDir"])
            self.assertEqual({said["VOLUME"]: {}}, wanted["Volumes"])
            self.assertEqual(said["STOPSIGNAL"], wanted["StopSignal"])
            self.assertEqual(set(said["EXPOSE"].split()), set(wanted["ExposedPorts"]))
            self.assertIn(said["ENV"], wanted["Env"])
            with open(os.path.join(ROOT, "scripts", "image"), encoding="utf-8") as file:
                named = set(re.findall(r'"org\.opencontainers\.image\.(\w+)":', file.read()))
            # When it was made, an engine writes down elsewhere.
            self.assertEqual(set(re.findall(r"org\.opencontainers\.image\.(\w+)=", said["LABEL"])), named - {"created"})

    def test_no_list_of_packages_of_their_own(self):
        """They ask the program which libraries it needs, as scripts/image does; beside these they name what scripts/image names."""
        for _, text in self.each():
            runs = [rest for word, rest in instructions(text) if word == "RUN"]
            self.assertTrue(any("images/packages.py build/" in run and ">/packages" in run for run in runs))
            self.assertTrue(any("scripts/dependencies" in run and "scripts/build" in run for run in runs))
            install = next(run for run in runs if "xargs -a" in run)
            named = re.search(r"--no-install-recommends ([^&]*?) *&&", install).group(1).split()
            # A base has base-files.
            self.assertEqual(set(named), set(IMAGE.debian.EXTRAS) - {"base-files"})

    def test_programs_that_they_start_are_there(self):
        for _, text in self.each():
            for program in re.findall(r"(?:^|[ =])((?:scripts|images)/[\w.-]+)", "\n".join(rest for word, rest in instructions(text) if word == "RUN")):
                self.assertTrue(os.access(os.path.join(ROOT, program), os.X_OK), program)

    def test_builds_and_histories_stay_out_of_the_context(self):
        with open(os.path.join(ROOT, ".dockerignore"), encoding="utf-8") as file:
            left_out = file.read().split("\n")
        for name in ("build", ".git", ".deps", ".venv", ".cache"):
            self.assertIn(name, left_out)
        with open(os.path.join(ROOT, ".gitignore"), encoding="utf-8") as file:
            for name in re.findall(r"^/(\.?\w+)/$", file.read(), re.MULTILINE):
                self.assertIn(name, left_out)


if __name__ == "__main__":
    unittest.main()
