"""What can be done to a fleet: each fault begins, lasts, and ends, and the journal says when.

A fault is a block: `with fault: time.sleep(fault.seconds)`. `node` is whom it concerns, for the figures.
"""

import contextlib
import os
import shutil
import subprocess
import time


class Fault:
    """settles: whether all cameras are watched again while it lasts, by others or in spite of it."""
    settles = True

    def __init__(self, trial, machine, seconds, **more):
        self.trial, self.machine, self.seconds, self.more = trial, machine, seconds, more
        self._stack = contextlib.ExitStack()

    @property
    def name(self):
        return type(self).__name__.lower()

    def __str__(self):
        shown = " ".join(f"{value}" for value in self.more.values())
        return f"{self.name} {self.machine.name}{' ' if shown else ''}{shown} {self.seconds:g} s"

    def __enter__(self):
        self.trial.journal.say("fault", fault=str(self), name=self.name, node=self.machine.name, edge="begin", **self.more)
        self.begin()
        return self

    def __exit__(self, *what):
        self.end()
        self.trial.journal.say("fault", fault=str(self), name=self.name, node=self.machine.name, edge="end")

    def begin(self):
        self._stack.enter_context(self.block())

    def end(self):
        self._stack.close()

    def block(self):
        raise NotImplementedError


class Kill(Fault):
    """SIGKILL; at the end it is started again."""

    def begin(self):
        self.machine.kill()

    def end(self):
        self.machine.start()


class Lose(Kill):
    """SIGKILL, and its disk is gone, too: it comes again with an empty one."""

    def begin(self):
        super().begin()
        for entry in os.scandir(self.machine.home):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


class Stop(Fault):
    """SIGTERM: an orderly end; at the end of the fault it is started again."""

    def begin(self):
        self.trial.require(self.machine.terminate() in (0, None), f"{self.machine.name} did not end in order")

    def end(self):
        self.machine.start()


class Freeze(Fault):
    """SIGSTOP: it is there, keeps its connections, and does nothing; at the end it goes on, and believes what it believed."""

    def begin(self):
        self.machine.process.send_signal(19)

    def end(self):
        self.machine.process.send_signal(18)


class Cut(Fault):
    """From all others, both ways or one: in (it hears nothing), out (nobody hears it)."""

    def block(self):
        return self.trial.network.cut(self.machine.host, self.more.get("side", "both"))


class CutBetween(Fault):
    """From one other; both reach all the rest, etcd too."""

    def block(self):
        return self.trial.network.cut_between(self.machine.host, self.trial.machine(self.more["other"]).host, self.more.get("side", "both"))


class Slow(Fault):
    def block(self):
        return self.trial.network.slow(self.machine.host, self.more.get("rate", "10mbit"))


class Loss(Fault):
    def block(self):
        return self.trial.network.lose(self.machine.host, self.more.get("percent", 30))


class Delay(Fault):
    def block(self):
        return self.trial.network.delay(self.machine.host, self.more.get("milliseconds", 200))


class ClockOff(Fault):
    """Its wall clock is so many seconds off, from one moment to the next, and then right again."""

    def begin(self):
        self._set(self.more.get("by", 5))

    def end(self):
        self._set(0)

    def _set(self, seconds):
        self.machine.clock.set(seconds)
        self.trial.journal.say("clock", node=self.machine.name, seconds=seconds)


class FullDisk(Fault):
    """The disk of a node that has one of its own (machines.Node, disk=)."""

    @contextlib.contextmanager
    def block(self):
        path = os.path.join(self.machine.home, "filler")
        subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=64k"], stderr=subprocess.DEVNULL, check=False)
        try:
            yield
        finally:
            os.unlink(path)


class EtcdBack(Fault):
    """etcd is killed, and comes again with what it knew some time ago (the last `snapshot`)."""

    def begin(self):
        self.machine.kill()

    def end(self):
        self.machine.restore(self.trial.snapshot)
        self.machine.start()


class Snapshot(Fault):
    """Not a fault: what EtcdBack comes back with."""

    def begin(self):
        self.trial.take_snapshot()

    def end(self):
        pass


class Upgrade(Fault):
    """These nodes (`whom`), one after the other: an orderly end, and a start with another build (`to`), which speaks a newer protocol; at the end of the fault
    back again, the other way round. Before the next one's turn all is well."""

    def __str__(self):
        return f"upgrade of {', '.join(self.more['whom'])} to {os.path.basename(self.more['to'])}, and back"

    def begin(self):
        self.before = {name: self._newest(name) for name in self.more["whom"]}
        for name, newest in self.before.items():
            self._renew(name, self.more["to"])
            self.trial.require(self._newest(name) > newest, f"{name} speaks {self._newest(name)} after its upgrade, as before")

    def end(self):
        for name, newest in reversed(self.before.items()):
            self._renew(name, self.trial.fleet.vigil)
            self.trial.require(self._newest(name) == newest, f"{name} speaks {self._newest(name)} when it is back, and not {newest}")

    def _newest(self, name):
        """The newest form of messages that this node tells others to speak."""
        return self.trial.observer.record(name).get("protocol", [0, 0])[1]

    def _renew(self, name, vigil):
        node = self.trial.machine(name)
        self.trial.require(node.terminate() == 0, f"{name} did not end in order")
        node.start(vigil=vigil)
        self.trial.settle(f"{name} runs by {os.path.basename(vigil)}")


def random_fault(trial, rng):
    """One of all that can be done to this fleet now; seconds and whom by the generator."""
    nodes = list(trial.fleet.nodes.values())
    node, etcd = rng.choice(nodes), trial.fleet.etcd
    disks = [each for each in nodes if each.disk]
    # What two gateways lose at once is lost, and the other fault of two may be the other one's.
    others = [each for each in nodes if "gateway" not in each.roles]
    of = lambda roles: [each for each in nodes if roles == tuple(sorted(each.roles))]  # noqa: E731
    # One of each kind that is there is as likely as the next one: of each role, or of those that nodes have together.
    someone = lambda: rng.choice(of(rng.choice(sorted({tuple(sorted(each.roles)) for each in nodes}))))  # noqa: E731
    other = rng.choice([each for each in nodes if each is not node])
    chances = [
        (6, lambda: Kill(trial, someone(), rng.choice((1, 8, 15)))),
        (1, lambda: Lose(trial, rng.choice(others or nodes), rng.choice((1, 8)))),
        (2, lambda: Stop(trial, someone(), rng.choice((1, 5)))),
        (1, lambda: Freeze(trial, someone(), rng.choice((1, 4, 10)))),
        (4, lambda: Cut(trial, someone(), rng.choice((1, 10, 10, 60)), side=rng.choice(("both", "in", "out")))),
        (2, lambda: CutBetween(trial, node, rng.choice((1, 10)), other=other.name, side=rng.choice(("both", "in", "out")))),
        (1, lambda: Slow(trial, someone(), 15, rate="10mbit")),
        (1, lambda: Loss(trial, someone(), 10, percent=30)),
        (1, lambda: Delay(trial, someone(), 15, milliseconds=rng.choice((50, 200)))),
        (1, lambda: ClockOff(trial, someone(), 15, by=rng.choice((5, -5)))),
        (1, lambda: Kill(trial, etcd, rng.choice((1, 10, 20)))),
        (1, lambda: Cut(trial, etcd, rng.choice((1, 10)), side=rng.choice(("both", "in", "out")))),
        (1, lambda: Delay(trial, etcd, 15, milliseconds=500)),
        (1, lambda: EtcdBack(trial, etcd, rng.choice((1, 5)))),
    ]
    if disks:
        chances.append((1, lambda: FullDisk(trial, rng.choice(disks), 15)))
    return rng.choices([make for _, make in chances], [weight for weight, _ in chances])[0]()


def last_together(faults):
    """Lets them begin, last and end, each for as long as it lasts."""
    begun = []
    try:
        for fault in faults:
            fault.__enter__()
            begun.append((time.monotonic() + fault.seconds, fault))
        for until, fault in sorted(begun, key=lambda each: each[0]):
            time.sleep(max(0.0, until - time.monotonic()))
            begun.remove((until, fault))
            fault.__exit__(None, None, None)
    finally:
        for _, fault in begun:
            fault.__exit__(None, None, None)
