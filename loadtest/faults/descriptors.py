#!/usr/bin/python3
"""Opens TCP connections to the sockets of a `vigil run` and says nothing on them, until it can have no more descriptors.

Alerts go on meanwhile, for a subscriber and in the outbox; when the connections are gone, whoever connects is served at once. /healthz may
say 200 only while that holds.
"""

import resource
import socket
import sys
import time

import faults
import vigil_run

sys.path.append(f"{faults.SOURCE}/tests")

from free_ports import free_ports  # noqa: E402


def limit_descriptors(most):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def connect(port, count):
    """As many connections as can be had, without waiting for any."""
    made = []
    for _ in range(count):
        each = socket.socket()
        each.setblocking(False)
        each.connect_ex(("127.0.0.1", port))
        made.append(each)
    return made


def main():
    options = faults.arguments(__doc__, connections=(1000, "to each of the sockets"), descriptors=(256, "that the process may have"),
                               seconds=(20.0, "for which they stay"), recovery=(8.0, "seconds after which all has to be well again"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    failures = 0
    for target in ("events", "replay", "metrics"):
        failure, figures = None, {}
        events, replay, metrics = free_ports(3)
        ports = {"events": events, "replay": replay, "metrics": metrics}
        with faults.scratch() as folder:
            site = vigil_run.Site(options, folder, f"127.0.0.1:{metrics}", f"tcp://127.0.0.1:{events}", f"tcp://127.0.0.1:{replay}")
            subscriber = faults.Subscriber(site.events)
            held = []
            try:
                with site.start(pace="fast", limit=limit_descriptors(options.descriptors)) as process:
                    faults.eventually(lambda: len(subscriber.seen) > 10 or process.poll() is not None, what="the first events")
                    held = connect(ports[target], options.connections)
                    subscriber.longest_silence = 0.0
                    until = time.monotonic() + options.seconds
                    health = set()
                    while time.monotonic() < until:
                        time.sleep(0.5)
                        if target != "metrics":
                            health.add(site.get("/healthz", patience=1)[0])
                    longest = max(subscriber.longest_silence, time.monotonic() - subscriber.last_at)
                    figures = {"seen": len(subscriber.seen), "longest_silence": round(longest, 2), "healthz": sorted(map(str, health))}
                    if process.poll() is not None:
                        raise faults.Failure(f"it ended: {process.said().splitlines()[-1:]}")
                    if longest > options.recovery:
                        raise faults.Failure(f"alerts stopped for {longest:.1f} s" + (", with /healthz at 200" if 200 in health else ""))
                    for each in held:
                        each.close()
                    began = time.monotonic()
                    _, kept = faults.replay(site.replay, patience=options.recovery)
                    another = faults.Subscriber(site.events)
                    faults.eventually(lambda: another.seen, options.recovery, "an event for a new subscriber")
                    another.close()
                    figures["recovered_after"] = round(time.monotonic() - began, 2)
                    lost = {(each.topic, each.sequence) for each in subscriber.drain()} - {(each.topic, each.sequence) for each in
                                                                                           faults.replay(site.replay)[1]}
                    if lost:
                        raise faults.Failure(f"{len(lost)} events that were seen are not kept")
            except faults.Failure as problem:
                failure = str(problem)
                failures += 1
            finally:
                for each in held:
                    each.close()
                subscriber.close()
        faults.say(fault="descriptors", target=target, connections=options.connections, **figures, failure=failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
