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
    context, waiting, running, begun, failed = multiprocessing.get_context("spawn"), list(items), {}, [], []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process = context.Process(target=_work, args=(work, waiting[0]))
                # An exception that a signal raises between the two would leave it alone.
                begun.append(process)
                process.start()
                running[process.sentinel] = process, waiting.pop(0)
            for sentinel in multiprocessing.connection.wait(list(running)):
                process, item = running.pop(sentinel)
                process.join()
                if process.exitcode:
                    failed.append(item)
    finally:
        left = [process for process in begun if process.pid and process.exitcode is None]
        for process in left:
            process.terminate()
        for process in left:
            process.join()
    return failed
