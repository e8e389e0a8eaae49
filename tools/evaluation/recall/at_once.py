"""Work in several processes at once, which end with whoever started them."""

import multiprocessing
import multiprocessing.connection
import signal
import sys


def _stopped(*_):
    sys.exit("service: stopped")


def _work(work, item):
    signal.signal(signal.SIGTERM, _stopped)
    work(*item)


def at_once(work, items, jobs):
    """Calls `work(*item)` of each item in a process of its own, `jobs` at once; the items whose process did not end well. Where the caller is stopped meanwhile by an exception, the processes are
    told to (SIGTERM) and awaited. `work` is a function of a module, an item a tuple that can be pickled."""
    # A forked process would share the threads that its parent's libraries think to have.
    context, waiting, running, failed = multiprocessing.get_context("spawn"), list(items), {}, []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process = context.Process(target=_work, args=(work, waiting[0]))
                process.start()
                running[process.sentinel] = process, waiting.pop(0)
            for sentinel in multiprocessing.connection.wait(list(running)):
                process, item = running.pop(sentinel)
                process.join()
                if process.exitcode:
                    failed.append(item)
    finally:
        for process, _ in running.values():
            process.terminate()
        for process, _ in running.values():
            process.join()
    return failed
