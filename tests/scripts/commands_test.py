#!/usr/bin/env python3
"""Every command that README.md and docs/*.md show runs as written, or stands in a table below with the reason why it is not run here; then it is still
checked that its program is there, can be started, and knows the options. A command that is in neither fails the test.

  commands_test.py VIGIL BUILD      (BUILD: the folder of the build, with its golden models)
"""

import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, "tests"))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60

GPU = "needs a GPU"
LONG = "takes minutes, or hours"
TORCH = "needs torch, which the tests do not (tools/requirements.txt)"
BUILDS = "builds, or runs all tests: this is one of them"
INSTALLS = "installs packages, or needs some that a build does not"

# Regular expressions of commands that are not run, and why.
NOT_RUN = [
    (r"scripts/(demo|test|build|fuzz|lint|check-format|check-pages)\b.*", BUILDS),
    (r"scripts/(cuda-libraries|dependencies)\b.*", INSTALLS),
    (r"(\S+=\S+ )?scripts/image( .*)?", "takes a minute, and Debian's servers: scripts.image makes an image twice, and starts it"),
    (r"(cmake|ninja) .*", BUILDS),
    (r"apt-get source actor-framework|cd \S+|\.ci/run", INSTALLS),
    (r"pip install .*", INSTALLS),
    (r"LD_LIBRARY_PATH=\S+ .*build/tsan/bin/\S+", "needs a build with another preset, and a CAF of one's own"),
    (r"(\S+=\S+ )?build/cuda/\S+.*|ctest (--preset cuda )?-L gpu|.*--device cuda.*|.*cuda:0.*|.*gpu_peer\.py.*|.*attention_peers\.py.*", GPU),
    (r"(\S*/)?bench_(few_rows|collective)_cuda|vigil bench engine .*", GPU),
    (r"(\S*/)?(vigil )?bench (cameras|ask) .*|\S*bench_(kernels|media|outbox|gate|bulk|etcd)\b.*|(\S+=\S+ )*(python3 )?loadtest/\S+( .*)?|(\S*/)?vigil bench .*", LONG),
    (r"(python3 )?tools/(golden|golden_\w+|synthetic_model)\.py .*", TORCH),
    (r"tools/(evaluate|policies|scenes/write|scenes/long|scenes/held_out_long|calibrate)\.py .*", LONG),
    (r"ctest --preset (tsan|asan)", "needs a build with another preset"),
    (r"ctest --preset release -R NAME", "means any of the names beside it"),
    (r"vigil node --roles .*", "needs etcd and other nodes: fleet.nodes starts them"),
    (r"vigil status --fleet .*|curl (--cacert \S+ -o \S+ )?\S+/(evidence|fleet)\S*.*", "needs etcd, and nodes: fleet.shown asks them"),
    (r"vigil watch .*(gateway|gw-|g1)\S*.*", "needs gateways: fleet.events, and services.gateways watches two"),
    (r"vigil config .*|vigil snooze .*fleet\.yaml|etcdctl .*", "needs etcd, and nodes: fleet.config does it"),
    (r"vigil (ask --camera|memory) .* --server-key .*", "needs keys of somebody who was let in: services.past asks with them"),
    (r"vigil status --endpoint https://.*", "needs a certificate: services.state asks with one"),
]

# What stands for a placeholder.
PLACES = {"VIDEO": "tests/videos/bottle-detection.mp4", "URL": "tests/videos/bottle-detection.mp4", "CAMERA/RULE": "yard/zone", "FILE": "config/demo.yaml", "QUESTION": '"Is there a car?"'}

STARTS = re.compile(r"(?:[A-Z_]+=\S+ +)*(?:vigil |build/|scripts/|tools/\S+\.py|loadtest/\S+/\S+|\.ci/\S+|ctest |cmake |ninja |python3 |apt-get |pip |curl |cd |bench_\w+)")


def commands(page):
    """Of code blocks, fenced and indented, and of words in backquotes that are more than a name."""
    code, fenced = [], False
    for line in page.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            code.append(re.sub(r"(^|\s+)# .*", "", line.strip()))
        else:
            code += [each for each in re.findall(r"`([^`]+)`", line) if " " in each]
    # Tables of figures give their commands letters.
    lines = re.sub(r"(?m)^\([a-z]\) ", "", "\n".join(code)).replace("\\\n", " ").splitlines()
    return [each for each in dict.fromkeys(" ".join(line.split()) for line in lines) if STARTS.match(each)]


class Trial:
    """Runs commands in a folder that looks like the checkout, with ports of their own."""

    def __init__(self, vigil, build):
        self.vigil, self.build, self.faults = vigil, build, []
        self.stack = contextlib.ExitStack()
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        for name in os.listdir(ROOT):
            if name not in ("build", "config", ".git"):
                os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        os.makedirs(os.path.join(self.folder, "build/release"))
        os.symlink(os.path.dirname(vigil), os.path.join(self.folder, "build/release/bin"))
        shutil.copytree(os.path.join(ROOT, "config"), os.path.join(self.folder, "config"))
        self.bind, self.replay, self.metrics, self.asks = free_ports(4)
        path = os.path.join(self.folder, "config/demo.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for default, port in ((5556, self.bind), (5557, self.replay), (9464, self.metrics), (5558, self.asks)):
            text = text.replace(f":{default}", f":{port}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.running = None

    def run(self, command, expected=(0,)):
        # A user has it on the PATH, or builds it here.
        environment = {**os.environ, "PATH": os.path.dirname(self.vigil) + ":" + os.environ["PATH"]}
        try:
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired:
            return self.faults.append(f"{command}\n  is not through after {PATIENCE} s")
        if done.returncode not in expected:
            self.faults.append(f"{command}\n  ends with {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
        return done

    def start(self, command):
        """The run that the others are about."""
        if self.running:
            return
        log = self.stack.enter_context(open(os.path.join(self.folder, "log"), "w+", encoding="utf-8"))
        self.running = subprocess.Popen(shlex.split(command), cwd=self.folder, stdout=log, stderr=log)

    def end(self):
        if self.running:
            # It has to live until it is asked to end, and then end well.
            if self.running.poll() is not None:
                self.faults.append(f"vigil run ended by itself with {self.running.returncode}")
            self.running.send_signal(signal.SIGTERM)
            try:
                if self.running.wait(timeout=PATIENCE) != 0:
                    self.faults.append(f"vigil run ended with {self.running.returncode}")
            finally:
                self.running.kill()
        self.stack.close()

    def knows_its_options(self, command):
        """The program is there, can be started as it is written, and names each option."""
        # What follows `--` is another program's.
        command = command.split(" -- ")[0]
        words = [each for each in shlex.split(command.replace("'", "")) if "=" not in each or each.startswith("-")]
        program = words[0] if words[0] != "python3" else words[1]
        if program.startswith(("tools/", "loadtest/", "scripts/", ".ci/")):
            path = os.path.join(ROOT, program)
            if not os.path.exists(path):
                return self.faults.append(f"{command}\n  there is no {program}")
            if words[0] != "python3" and not os.access(path, os.X_OK):
                return self.faults.append(f"{command}\n  {program} cannot be started: it has no run bit")
            with open(path, encoding="utf-8") as file:
                known = file.read()
            if not known.startswith("#!"):
                return self.faults.append(f"{command}\n  {program} has no #! line")
            if program.endswith(".py"):
                compile(known, program, "exec")
            else:
                # Some have options of modules.
                known += self.run(f"{program} --help").stdout
        elif os.path.basename(program) == "vigil":
            names = []
            for word in words[1:]:
                if not re.fullmatch(r"[a-z-]+", word) or word.startswith("-"):
                    break
                names.append(word)
            known = self.run(f"vigil {' '.join(names)} --help").stdout
        else:
            return None
        for option in (each.split("=")[0] for each in words if re.match(r"--[a-z]", each)):
            if option not in known:
                self.faults.append(f"{command}\n  {program} has no option {option}")
        return None

    def watched(self, command):
        """`vigil watch` and `vigil status`, beside the run; keys of nobody let nobody in."""
        if "--server-key" in command:
            command = command.replace("tcp://server:5556", f"tcp://127.0.0.1:{self.bind}")
            done = self.run(command + " --count 1 --timeout 1", expected=(1,))
            if done and "does not have this server key" not in done.stderr:
                self.faults.append(f"{command}\n  is not turned away for its keys, but says {done.stderr!r}")
            return done
        if "status" in command.split()[1]:
            return self.run(f"{command} --endpoint http://127.0.0.1:{self.metrics}")
        return self.run(f"{command} --endpoint tcp://127.0.0.1:{self.bind} --timeout 1")

    def past(self, command):
        """What asks the run about a camera's past, as soon as that is known there."""
        command = re.sub(r"(?<=--camera )\S+", "parking-lot", command) + f" --connect tcp://127.0.0.1:{self.asks}"
        until = time.monotonic() + PATIENCE
        while True:
            done = self.run(command, expected=(0, 1))
            if not done or done.returncode == 0:
                return done
            if time.monotonic() > until:
                return self.faults.append(f"{command}\n  ends with 1: {done.stderr.strip()[-400:]}")
            time.sleep(0.2)

    def fetch(self, command):
        """What curl does, which need not be installed, once somebody listens."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                with urllib.request.urlopen(command.split()[-1].replace(":9464/", f":{self.metrics}/"), timeout=PATIENCE) as answer:
                    return answer.read()
            except OSError as error:
                if isinstance(error, urllib.error.HTTPError) or time.monotonic() > until:
                    return self.faults.append(f"{command}\n  {error}")
                time.sleep(0.2)

    def take(self, command):
        for pattern, _ in NOT_RUN:
            if re.fullmatch(pattern, command):
                return self.knows_its_options(command)
        for name, thing in PLACES.items():
            command = re.sub(rf"(?<![\w-]){re.escape(name)}(?!\w)", thing, command)
        short = re.sub(r"^build/release/bin/", "", command)
        if re.fullmatch(r"vigil [a-z-]+( [a-z-]+)?( \.\.\.)?", short) and short not in ("vigil watch", "vigil status"):
            return self.run(short.replace(" ...", "") + " --help")
        if short.startswith("vigil run "):
            return self.start(command)
        if short.startswith(("vigil watch", "vigil status")):
            return self.watched(short)
        if re.match(r"vigil (ask --camera|memory) ", short):
            return self.past(short)
        if short.startswith("ctest "):
            # Which tests it means; they are this run's, too.
            listed = self.run(re.sub(r"--preset release", f"--test-dir {self.build}", short) + " -N")
            if listed and re.search(r"Total Tests: 0\b", listed.stdout):
                self.faults.append(f"{command}\n  means no test")
            return None
        if short.startswith("curl "):
            return self.fetch(short)
        golden = os.path.join(self.build, "golden/models/tiny")
        if short.startswith("vigil model check"):
            return self.run(short.replace("DIR", "models/demo"))
        if short.startswith("vigil model verify"):
            return self.run(re.sub(r"OUT(\.safetensors)?", "tests/golden/models/tiny.safetensors", short.replace("DIR", golden)))
        if re.match(r"vigil (ask|inspect|check-config|keygen|snooze) |scripts/(check-rooms|figures --check|dashboards --check)$", short):
            return self.run(short)
        return self.faults.append(f"{command}\n  neither runs here, nor is there a reason in the table of {os.path.basename(__file__)}")


def main():
    vigil, build = (os.path.abspath(each) for each in sys.argv[1:])
    trial = Trial(vigil, build)
    shown = {}
    # docs/start.md is followed as a whole by start_page_test.py.
    pages = [page for page in sorted(glob.glob(os.path.join(ROOT, "docs/*.md"))) if os.path.basename(page) != "start.md"]
    for page in [os.path.join(ROOT, "README.md"), *pages]:
        with open(page, encoding="utf-8") as file:
            for command in commands(file.read()):
                shown.setdefault(command, os.path.relpath(page, ROOT))
    if len(shown) < 50:
        sys.exit(f"commands_test: only {len(shown)} commands were found: {list(shown)}")
    try:
        # First, so that it is up when others ask it.
        for command in sorted(shown, key=lambda each: "vigil run --config" not in each):
            before = len(trial.faults)
            trial.take(command)
            trial.faults[before:] = [f"{shown[command]}: {fault}" for fault in trial.faults[before:]]
    finally:
        trial.end()
    if trial.faults:
        sys.exit("\n".join(trial.faults))
    print(f"{len(shown)} commands")


if __name__ == "__main__":
    main()
