#!/usr/bin/env python3
"""A secret key that others may read is refused by `vigil run` and `vigil watch`, in one line that names the file and its mode; one of `vigil keygen` is not,
nor one that is root's and that a program that is not root reads as one of its group, as from a Kubernetes Secret.

  key_mode_test.py VIGIL MODEL VIDEO
"""

import os
import stat
import subprocess
import sys
import tempfile

CONFIGURATION = """
model: {model}
cameras: {{room: {{url: {video}, rules: [{{name: person, prompt: "Is there a person?"}}]}}}}
alerts: {{bind: "ipc://{folder}/events", outbox: outbox, curve: {{secret_key_file: server.key, allow: ["{key}"]}}}}
metrics: {{listen: ""}}
"""


def check(holds, what):
    if not holds:
        sys.exit(f"key_mode_test: {what}")


def main():
    vigil, model, video = (os.path.abspath(each) for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "server.key")
        public = subprocess.run([vigil, "keygen", key], check=True, capture_output=True, text=True, umask=0).stdout.split()[-1]
        check(stat.S_IMODE(os.stat(key).st_mode) == 0o600, "keygen's key is not its owner's alone")
        configuration = os.path.join(folder, "vigil.yaml")
        with open(configuration, "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(model=model, video=video, folder=folder, key=public))
        commands = [[vigil, "run", "--config", configuration],
                    [vigil, "watch", "--endpoint", f"ipc://{folder}/nobody", "--key-file", key, "--server-key", public, "--timeout", "1"]]
        for mode in (0o666, 0o640):
            os.chmod(key, mode)
            for command in commands:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder, timeout=60, check=False)
                wanted = f"{key}: has mode {mode:04o}; a secret key must be its owner's alone (chmod 600)"
                lines = done.stderr.splitlines()
                check(done.returncode != 0 and len(lines) == 1 and lines[0].endswith(wanted), f"{command[1]}: {done.returncode}, {done.stderr!r}")
                with open(key, encoding="utf-8") as file:
                    check(file.read().split()[-1] not in done.stderr + done.stdout, "the key is shown")
        os.chmod(key, 0o600)
        done = subprocess.run(commands[1], capture_output=True, text=True, timeout=60, check=False)
        check("has mode" not in done.stderr, f"a good one is refused: {done.stderr!r}")
        if os.geteuid() == 0:
            check_secret_of_root(vigil, folder, key, public)


def check_secret_of_root(vigil, folder, key, public):
    group = 64123
    os.chmod(folder, 0o755)
    os.chown(key, 0, group)
    watch = ["setpriv", "--reuid", "64124", "--regid", "64124", "--groups", str(group), vigil, "watch", "--endpoint", f"ipc://{folder}/nobody",
             "--key-file", key, "--server-key", public, "--timeout", "1"]
    for mode, owner, is_refused in ((0o440, 0, False), (0o640, 0, False), (0o460, 0, True), (0o444, 0, True), (0o440, 64125, True)):
        os.chown(key, owner, group)
        os.chmod(key, mode)
        done = subprocess.run(watch, capture_output=True, text=True, timeout=60, check=False)
        check(("has mode" in done.stderr) == is_refused, f"mode {mode:04o} of {owner}: {done.stderr!r}")


if __name__ == "__main__":
    main()
