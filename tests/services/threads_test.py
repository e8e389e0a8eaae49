#!/usr/bin/env python3
"""Where too few threads can be started, `vigil run` says so in one line at its start, and is gone.

  threads_test.py VIGIL CONFIGURATION
"""

import os
import re
import resource
import subprocess
import sys

SKIPPED = 77
NOBODY = 65534
LINE = re.compile(r"vigil: no more than \d+ threads could be started, and \d+ are needed beside those of cameras: raise ulimit -u \(or -v\), .*\n")


def confine(threads):
    """Root is kept from nothing, so the process becomes somebody else, of whom nobody else runs anything."""

    def enter():
        resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    return enter


def main():
    vigil, configuration = sys.argv[1:]
    if os.getuid() != 0:
        sys.exit(SKIPPED)
    reached = subprocess.run(["test", "-r", vigil], preexec_fn=confine(1000), check=False)
    if reached.returncode != 0:
        sys.exit(SKIPPED)
    faults = []
    for threads in (3, 12, 24, 28):
        done = subprocess.run([vigil, "run", "--config", configuration], preexec_fn=confine(threads), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=60, check=False)
        # The allocator goes on without the thread that it would like.
        said = "".join(line for line in done.stderr.splitlines(True) if not line.startswith("<jemalloc>"))
        if done.returncode != 1 or not LINE.fullmatch(said):
            faults.append(f"{threads} threads: status {done.returncode}, {said!r}")
    sys.exit("\n".join(faults) or 0)


main()
