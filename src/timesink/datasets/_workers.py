"""Work on all cores: tasks in, results out as they come; no child outlives its parent."""

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import connection, get_context, parent_process
from typing import TypeVar

from timesink.errors import RunError

Task = TypeVar("Task")
Result = TypeVar("Result")

TASKS_AHEAD = 3
"""Tasks handed out for each worker, so that none waits and a million are not queued."""


def map_unordered(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int
) -> Iterator[Result]:
    """Apply a function to every task in processes of their own; one worker is this process.

    On an interrupt, what has begun is finished, the rest is dropped and the workers are gone.
    """
    if workers <= 1:
        yield from map(function, tasks)
        return
    remaining = iter(tasks)
    executor = ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_end_with_the_parent
    )
    try:
        with _interrupts_held_back():
            waiting = {
                executor.submit(function, t) for t in islice(remaining, workers * TASKS_AHEAD)
            }
        while waiting:
            done: set[Future[Result]]
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            with _interrupts_held_back():
                waiting |= {executor.submit(function, t) for t in islice(remaining, len(done))}
    except BrokenProcessPool:
        raise RunError(
            "a worker process died, perhaps for want of memory; what it finished is kept: try again"
        ) from None
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Start children with Ctrl-C blocked: the parent gets it and ends them in order."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_the_parent() -> None:
    """Watch for the parent's end, which `kill -9` does not announce."""
    parent = parent_process()
    assert parent is not None
    sentinel = parent.sentinel

    def watch() -> None:
        connection.wait([sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
