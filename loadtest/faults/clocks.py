#!/usr/bin/python3
"""Steps the wall clock of `vigil run` (clock_offset.cpp; the monotonic clock goes on), and looks whether anything that is kept goes.

  ahead      ten days ahead while it runs, and it stays so
  next       ten days ahead at the next start
  boot       the machine starts in 2002, and gets the time of day while it runs
  swing      ten days ahead and back again, each time after some seconds

Until a step has lasted ten minutes, no event and no evidence goes by it, events go on, and it is said.
"""

import os
import struct
import sys
import time

import faults
import vigil_run

TEN_DAYS = 10 * 86400
YEAR_2002 = -24 * 365 * 86400


class Clock:
    """What a process takes for the time of day: the machine's, and so many seconds more."""

    def __init__(self, options, folder):
        path = os.path.join(folder, "offset")
        self._file = open(path, "wb", buffering=0)
        self.set(0)
        self.environment = {"LD_PRELOAD": faults.program(options, "clock_offset.so"), "CLOCK_OFFSET": path}

    def set(self, offset):
        self._file.seek(0)
        self._file.write(struct.pack("=q", offset))


class Kept:
    """Events and evidence that were there once."""

    def __init__(self, site):
        self.site = site
        self.events = {}
        self.files = {}

    def look(self):
        """Throws Failure if anything is gone."""
        _, kept = faults.replay(self.site.replay)
        now = {(event.topic, event.sequence): event.body for event in kept}
        files = self.site.evidence_files()
        events = [place for place in self.events if place not in now]
        gone = [name for name in self.files if name not in files]
        total = f"{len(self.events)} events and {len(self.files)} files"
        self.events.update(now)
        self.files.update(files)
        if events or gone:
            raise faults.Failure(f"{len(events)} events and {len(gone)} files of evidence are gone, of {total}")

    def grow(self, process, what="new events"):
        """Waits until there are events and evidence that were not there before."""
        events, files = len(self.events), len(self.files)

        def more():
            if process.poll() is not None:
                raise faults.Failure(f"it ended by itself: {process.said().splitlines()[-1:]}")
            self.look()
            return len(self.events) > events + 4 and len(self.files) > files
        faults.eventually(more, what=what)


def watch(kept, seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        kept.look()
        time.sleep(1)


def require_said(process, before=0):
    if not faults.eventually(lambda: "clock" in process.said()[before:], patience=15):
        raise faults.Failure("nothing was said about the clock")


def ahead(site, clock, kept, seconds):
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process)
        clock.set(TEN_DAYS)
        watch(kept, seconds)
        kept.grow(process, "new events after the step")
        require_said(process)


def at_the_next_start(site, clock, kept, seconds):
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process)
    clock.set(TEN_DAYS)
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process, "new events after the start")
        watch(kept, seconds)
        require_said(process)


def boot(site, clock, kept, seconds):
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process)
    clock.set(YEAR_2002)
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process, "new events in 2002")
        watch(kept, seconds / 2)
        require_said(process)
        clock.set(0)
        watch(kept, seconds / 2)
        kept.grow(process, "new events when the time of day has come")
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process, "new events at the start after that")
        watch(kept, seconds / 2)


def swing(site, clock, kept, seconds):
    with site.start(pace="fast", environment=clock.environment) as process:
        kept.grow(process)
        for step in range(6):
            clock.set(TEN_DAYS if step % 2 == 0 else 0)
            watch(kept, max(2.0, seconds / 6))
        kept.grow(process, "new events after the steps")
        require_said(process)


def main():
    scenes = {"ahead": ahead, "next": at_the_next_start, "boot": boot, "swing": swing}
    options = faults.arguments(__doc__, seconds=(540.0, "how long each step is looked at, below the ten minutes after which it is believed"),
                               scenes=(",".join(scenes), "which"))
    failures = 0
    for name in options.scenes.split(","):
        began = time.monotonic()
        with faults.scratch() as folder:
            site = vigil_run.Site(options, folder)
            clock, kept = Clock(options, folder), Kept(site)
            failure = None
            try:
                scenes[name](site, clock, kept, options.seconds)
            except faults.Failure as problem:
                failure = str(problem)
                failures += 1
            faults.say(fault="clock", scene=name, events=len(kept.events), files=len(kept.files), failure=failure,
                       seconds=round(time.monotonic() - began, 1))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
