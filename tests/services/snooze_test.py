#!/usr/bin/env python3
"""vigil snooze silences a rule of a running vigil run and lets it speak again; a changed window goes on without a new connection; what is missing or
wrong is told before anything is made.

  snooze_test.py VIGIL MODEL VIDEO
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from free_ports import free_ports  # noqa: E402

PATIENCE = 60

CONFIGURATION = """
model: {model}
cameras:
  road:
    url: "{video}"
    window: {{length: {length}, stride: 2s}}
    rules:
      - {{name: car, prompt: "Is there a car?", threshold: 0, confirm: 1/1, cooldown: 0s, max_per_hour: 10000}}
alerts: {{bind: "tcp://127.0.0.1:{alerts}", replay: "tcp://127.0.0.1:{replay}"}}
metrics: {{listen: "127.0.0.1:{metrics}"}}
log: {{level: info}}
"""


def check(holds, what):
    if not holds:
        sys.exit(f"snooze_test: {what}")


def main():
    vigil, model, video = (os.path.abspath(each) for each in sys.argv[1:])
    ports = dict(zip(("alerts", "replay", "metrics"), free_ports(3)))
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "etc", "site.yaml")
        os.makedirs(os.path.dirname(site))
        os.makedirs(os.path.join(folder, "vigil-outbox"))

        def write(**values):
            text = CONFIGURATION.format(**{"model": model, "video": video, "length": "4s", **ports, **values})
            with open(site + ".new", "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(site + ".new", site)

        def command(*arguments):
            return subprocess.run([vigil, *arguments], cwd=folder, capture_output=True, text=True, timeout=PATIENCE, check=False)

        def snooze(*arguments):
            return command("snooze", *arguments, "--config", site)

        # Nothing is made of what cannot run.
        write(model=os.path.join(folder, "none"))
        refused = command("run", "--config", site)
        check(refused.returncode == 1 and "no such model folder" in refused.stderr, f"without a model: {refused}")
        check(sorted(os.listdir(folder)) == ["etc", "vigil-outbox"] and os.listdir(os.path.dirname(site)) == ["site.yaml"],
              "something was made before the model was missed")
        checked = command("check-config", site)
        check(checked.returncode == 1 and "site.yaml:2:8: model: " in checked.stderr, f"check-config: {checked}")
        check(command("check-config", "--text-only", site).returncode == 0, "check-config --text-only looks at the model")
        write(video="none.mp4")
        check("cameras.road.url: " in command("check-config", site).stderr, "check-config says nothing of a missing clip")

        for arguments, words, status in ((("gate", "30m"), "site.yaml: has no camera `gate`\n", 1), (("raod/car", "30m"), "has no camera `raod`; did you mean `road`?\n", 1),
                                         (("road/horse", "30m"), "site.yaml: the camera `road` has no rule `horse`\n", 1), (("road/cat", "30m"), "has no rule `cat`; did you mean `car`?\n", 1),
                                         (("road", "tomorrow"), "expected a duration up to 365d", 2), (("road", "0s"), "expected a duration", 2),
                                         (("a/b/c", "30m"), "expected CAMERA or CAMERA/RULE", 2), (("a/b/c", "--clear"), "expected CAMERA or CAMERA/RULE", 2),
                                         (("road/", "--clear"), "expected CAMERA or CAMERA/RULE", 2), (("road",), "give either how long", 2), ((), "name a CAMERA", 2),
                                         (("road", "30m", "--list"), "--list shows all", 2), (("road", "--list"), "--list shows all", 2)):
            done = snooze(*arguments)
            check((done.returncode, done.stdout) == (status, "") and words in done.stderr, f"{arguments}: {done}")
        check(not os.path.exists(site + ".snoozes"), "what is refused leaves a file")

        for arguments in (("--list",), ("road", "--clear"), ("road", "30m")):
            done = command("snooze", *arguments, "--config", "nope.yaml")
            check((done.returncode, done.stdout) == (1, "") and re.fullmatch(r"(vigil: )?nope\.yaml: no such file\n", done.stderr), f"{arguments}: {done}")
        # What the configuration snoozes is listed, too, and of a rule it is said what silences it with its camera.
        with open(site, "a", encoding="utf-8") as file:
            file.write("rules: [{name: dog, prompt: p, snooze_until: 2126-01-01T00:00:00Z}, {name: cat, prompt: p, snooze_until: 2026-01-01T00:00:00Z}]\n")
        whole = snooze("road", "1h").stdout
        check(snooze("--list").stdout == whole + "road/dog until 2126-01-01T00:00:00.000Z (configuration)\n", f"--list: {snooze('--list')}")
        done = snooze("road/car", "--clear")
        check(done.stdout == "road/car was not snoozed by itself, but with all of " + whole, f"--clear of a rule: {done}")
        snooze("road", "--clear")
        os.remove(site + ".snoozes")

        # Where the registry is has to be known, though.
        fleet = os.path.join(folder, "fleet.yaml")
        with open(fleet, "w", encoding="utf-8") as file:
            file.write('name: "{NODE}"\nmodel: m\ncameras: {road: {url: "{CLIP}", rules: [{name: car, prompt: p}]}}\n'
                       'cluster: {name: city, tls_dir: "{NODE}/tls", registry: {endpoints: ["127.0.0.1:9"], ca_file: "{NODE}/tls/ca.crt"}}\n')
        for arguments in (("--list",), ("road", "--clear"), ("road", "30m")):
            done = command("snooze", *arguments, "--config", fleet)
            check((done.returncode, done.stdout) == (1, "") and "fleet.yaml:4:94: cluster.registry.ca_file: the environment variable NODE is not set\n" in done.stderr,
                  f"{arguments}, and no NODE: {done}")

        # Whoever snoozes need not know the variables.
        write(video="{CLIP}")
        with open(os.path.join(folder, "log"), "w+", encoding="utf-8") as log:
            run = subprocess.Popen([vigil, "run", "--config", site], cwd=folder, env={**os.environ, "CLIP": video}, stdout=log, stderr=log)

            def text():
                with open(os.path.join(folder, "log"), encoding="utf-8") as file:
                    return file.read()

            def counter(pattern):
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{ports['metrics']}/metrics", timeout=5) as page:
                        return sum(float(each) for each in re.findall(pattern + r"(?:\{[^}]*\})? ([0-9.e+]+)", page.read().decode()))
                except OSError:
                    return 0

            def windows():
                return counter("vigil_windows_total")

            def await_that(what, holds):
                until = time.monotonic() + PATIENCE
                while not holds():
                    check(time.monotonic() < until and run.poll() is None, f"not within {PATIENCE} s: {what}\n{text()}")
                    time.sleep(0.05)

            try:
                await_that("windows", lambda: windows() >= 2)
                check("alerts.outbox is " in text() and os.path.isdir(os.path.join(folder, "etc", "vigil-outbox")),
                      f"the outbox of the working directory is passed over in silence\n{text()}")
                done = snooze("road/car", "1h")
                check(done.returncode == 0 and done.stdout.startswith("road/car until 2"), f"snooze: {done}")
                await_that("the snooze", lambda: "applied: altered road" in text())
                check("road/car until " in snooze("--list").stdout, "--list does not show it")
                # A window that grew needs no new connection.
                write(video="{CLIP}", length="6s")
                await_that("another length", lambda: text().count("applied: altered road") == 2)
                before = windows()
                await_that("windows afterwards", lambda: windows() >= before + 2)
                check(text().count("camera road: up") == 1 and counter("vigil_camera_reconnects_total") == 0, f"the camera began anew\n{text()}")
                check(snooze("road", "--clear").stdout == "road is not snoozed any more\n", "--clear")
                await_that("its end", lambda: text().count("applied: altered road") == 3)
                check(snooze("--list").stdout == "nothing is snoozed\n", "--list after --clear")
                run.send_signal(signal.SIGTERM)
                check(run.wait(timeout=PATIENCE) == 0, f"vigil run ended with {run.returncode}\n{text()}")
            finally:
                run.kill()


if __name__ == "__main__":
    main()
