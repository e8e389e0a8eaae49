#!/usr/bin/env python3
"""A command whose output cannot be written fails and says so in one line.

  output_test.py VIGIL CONFIGURATION
"""

import subprocess
import sys

LINE = "vigil: not all could be written to the output: its disk is full, or nobody reads it\n"


def main():
    vigil, configuration = sys.argv[1:]
    faults = []
    for arguments in (["--version"], ["--help"], ["check-config", "--effective", configuration]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([vigil, *arguments], stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False)
        if (done.returncode, done.stderr) != (1, LINE):
            faults.append(f"{arguments}: status {done.returncode}, {done.stderr!r}")
    sys.exit("\n".join(faults) or 0)


main()
