#!/usr/bin/python3
"""docs/start.md as a reader follows it: each file is written and each command started as the page shows it.

  start_page_test.py VIGIL     Exit status 77: something that the page needs is not installed.

What the fences of the page say: `sh`, a command a line that ends by itself; `sh terminal`, one that goes on in a terminal of its own; any
other language with a name, a file.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What this very test was built by.
BUILD = ["scripts/dependencies", "scripts/build release vigil"]
PATIENCE = 60


def blocks():
    """(what the fence says, its text) in the page's order."""
    with open(os.path.join(ROOT, "docs", "start.md"), encoding="utf-8") as page:
        return re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read(), re.MULTILINE | re.DOTALL)


def in_network_of_its_own():
    """The page uses the ports that are the defaults; somebody else may use them, too."""
    if os.environ.get("START_PAGE_NETWORK"):
        return
    for command in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        inside = [*command, "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
        if shutil.which("unshare") and subprocess.run([*inside, "true"], capture_output=True, check=False).returncode == 0:
            os.environ["START_PAGE_NETWORK"] = "1"
            os.execvp(inside[0], [*inside, sys.executable, *sys.argv])


class Reader:
    """Who follows the page, in a folder that looks like the checkout."""

    def __init__(self, folder, vigil):
        self.folder = folder
        self.terminals = []
        os.makedirs(os.path.join(folder, "build", "release", "bin"))
        os.symlink(vigil, os.path.join(folder, "build", "release", "bin", "vigil"))
        for name in ("models", "tests", "config"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def start(self, command):
        output = open(os.path.join(self.folder, f"terminal-{len(self.terminals)}"), "w+", encoding="utf-8")
        process = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.folder, stdin=subprocess.PIPE, stdout=output,
                                   stderr=subprocess.STDOUT)
        self.terminals.append((command, process, output))

    def said(self, beginning):
        """What the terminal whose command begins so has shown."""
        for command, _, output in self.terminals:
            if command.startswith(beginning):
                with open(output.name, encoding="utf-8") as shown:
                    return shown.read()
        raise KeyError(beginning)

    def run(self, command):
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False)
        return done.returncode, done.stdout

    def run_until(self, command, wanted):
        """A reader types a command when the one before has shown what it should; this one types it again."""
        until = time.monotonic() + PATIENCE
        while True:
            status, text = self.run(command)
            if status == 0 and re.search(wanted, text):
                return
            self.check_terminals()
            if time.monotonic() > until:
                raise AssertionError(f"{command}: status {status}, not {wanted!r} in\n{text}")
            time.sleep(0.2)

    def wait_until_said(self, beginning, wanted):
        until = time.monotonic() + PATIENCE
        while not re.search(wanted, self.said(beginning)):
            self.check_terminals()
            if time.monotonic() > until:
                raise AssertionError(f"{beginning}: not {wanted!r} in\n{self.said(beginning)}")
            time.sleep(0.2)

    def check_terminals(self):
        for command, process, _ in self.terminals:
            if process.poll() is not None:
                raise AssertionError(f"{command} ended with {process.returncode}:\n{self.said(command)}")

    def close(self):
        for _, process, output in reversed(self.terminals):
            process.send_signal(signal.SIGKILL)
            process.wait()
            output.close()


# What has to be seen after a command; of what is not named here, that it succeeds.
SHOWN = {
    "build/release/bin/vigil check-config gate.yaml": r"1 camera",
    "build/release/bin/vigil status": r"gate\s+default\s+up",
    "build/release/bin/vigil watch --timeout 15": r"gate\s+person\s+new",
}
STARTED = {
    "/usr/bin/python3 tests/rtsp/server.py": r"port 8554",
    "build/release/bin/vigil run": r"watching 1 camera",
    "/usr/bin/python3 alerts.py": r"^gate person new 0\.\d+",
}


def main():
    for missing in ("import zmq", "import gi; gi.require_version('GstRtspServer', '1.0')"):
        if subprocess.run(["/usr/bin/python3", "-c", missing], capture_output=True, check=False).returncode != 0:
            print(f"skipped: {missing} fails")
            sys.exit(77)
    in_network_of_its_own()
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader(folder, os.path.abspath(sys.argv[1]))
        seen = []
        try:
            for fence, text in blocks():
                language, _, what = fence.partition(" ")
                lines = [line for line in text.splitlines() if line and not line.startswith("#")]
                if language == "sh" and what == "terminal":
                    for line in lines:
                        reader.start(line)
                        beginning = next(each for each in STARTED if line.startswith(each))
                        reader.wait_until_said(beginning, re.compile(STARTED[beginning], re.MULTILINE))
                        seen.append(beginning)
                elif language == "sh" and lines != BUILD:
                    for line in lines:
                        reader.run_until(line, SHOWN[line])
                        seen.append(line)
                elif what:
                    reader.write(what, text)
            # Whoever subscribes makes the last event come again, to all.
            reader.run_until("build/release/bin/vigil watch --count 1 --timeout 15", r"gate\s+person")
            reader.run_until("build/release/bin/vigil watch --count 1 --timeout 15", r"gate\s+person")
            lines = reader.said("/usr/bin/python3 alerts.py").splitlines()
            again = [line for line, next_line in zip(lines, lines[1:]) if line == next_line]
            if again:
                raise AssertionError(f"alerts.py shows events again: {again}")
        except AssertionError as problem:
            sys.exit(str(problem))
        finally:
            reader.close()
        missing = [each for each in (*SHOWN, *STARTED) if each not in seen]
        if missing:
            sys.exit(f"the page does not show: {missing}")


if __name__ == "__main__":
    main()
