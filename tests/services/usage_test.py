#!/usr/bin/env python3
"""A command with arguments that make no sense says so in one line on stderr, prints nothing, and ends with status 2.

  usage_test.py LINE PROGRAM ARGUMENT ...      (LINE: all of stderr but its last newline, as a regular expression)
"""

import re
import subprocess
import sys


def main():
    line, command = sys.argv[1], sys.argv[2:]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    faults = []
    if done.returncode != 2:
        faults.append(f"the exit status is {done.returncode}, not 2")
    if not re.fullmatch(line + "\n", done.stderr):
        faults.append(f"stderr is not {line!r}: {done.stderr!r}")
    if done.stdout:
        faults.append(f"stdout is not empty: {done.stdout!r}")
    sys.exit("\n".join(faults) or 0)


main()
