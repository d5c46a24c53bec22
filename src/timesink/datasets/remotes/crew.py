"""A few workers, each with a connection of its own, that share out jobs and outlive cuts."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from timesink.datasets.remotes.remote import Interrupted, Remote, Unavailable, Unreachable

Job = TypeVar("Job")
Result = TypeVar("Result")

WORKERS = 4
RECONNECT_AFTER_S = (0.5, 1.0, 2.0, 4.0)
"""The pauses before each further attempt at the same job."""
FAILURES_IN_A_ROW = 3 * WORKERS
"""So many jobs cut for good without a success between them: the place is gone."""


class Lost(Exception):  # noqa: N818  # sync says it to the user in its own words
    """The place cannot be reached any more."""


class Crew:
    """Workers and their connections, over several rounds of jobs."""

    def __init__(self, connect: Callable[[], Remote]) -> None:
        self.connect = connect
        self.idle: list[Remote] = [connect()]
        self.root_identity = self.idle[0].root_identity
        self.answered = False
        """Whether the place ever did; if not, it is not worth waiting for."""

    def each(
        self, jobs: Iterable[Job], work: Callable[[Remote, Job], Result]
    ) -> Iterator[tuple[Job, Result | Unavailable]]:
        """Do each job on some connection; a job that cannot be done gives the reason instead.

        Raises Unreachable when the place never answered, Lost when it no longer does.
        """
        return _Round(self, list(jobs), work).results()

    def close(self) -> None:
        """End all connections."""
        while self.idle:
            self.idle.pop().close()


@dataclass(frozen=True)
class _Fatal:
    """What ends the whole round."""

    error: BaseException


class _Round(Generic[Job, Result]):
    """One list of jobs, shared out until it is empty."""

    def __init__(self, crew: Crew, jobs: list[Job], work: Callable[[Remote, Job], Result]) -> None:
        self.crew, self.work = crew, work
        self.left = len(jobs)
        self.waiting = iter(jobs)
        self.done: queue.SimpleQueue[_Fatal | tuple[Job, Result | Unavailable | Interrupted]]
        self.done = queue.SimpleQueue()
        self.stopped = threading.Event()
        self.busy: set[Remote] = set()
        self.lock = threading.Lock()

    def results(self) -> Iterator[tuple[Job, Result | Unavailable]]:
        threads = [
            threading.Thread(target=self._serve, name=f"sync-{index}", daemon=True)
            for index in range(min(WORKERS, self.left))
        ]
        failures = 0
        end: BaseException | None = None
        try:
            for thread in threads:
                thread.start()
            while self.left and end is None:
                outcome = self.done.get()
                if isinstance(outcome, _Fatal):
                    end = outcome.error
                    continue
                job, result = outcome
                if isinstance(result, Interrupted):
                    failures += 1
                    if failures == FAILURES_IN_A_ROW:
                        end = Lost(str(result))
                        continue
                    result = Unavailable(str(result))
                else:
                    failures = 0
                self.left -= 1
                yield job, result
        finally:
            self._stop(threads)
        if end is not None:
            yield from self._still_done()
            raise end

    def _still_done(self) -> Iterator[tuple[Job, Result | Unavailable]]:
        """Give what other workers had finished when the place was lost: it has come."""
        while not self.done.empty():
            outcome = self.done.get()
            if not isinstance(outcome, _Fatal) and not isinstance(outcome[1], Interrupted):
                yield outcome[0], outcome[1]

    def _stop(self, threads: list[threading.Thread]) -> None:
        """Let the workers go; those in the middle of a job lose their connection."""
        self.stopped.set()
        if self.left:
            with self.lock:
                cut = list(self.busy)
            for remote in cut:
                remote.close()
        for thread in threads:
            thread.join()

    def _serve(self) -> None:
        remote: Remote | None = None
        try:
            while not self.stopped.is_set():
                with self.lock:
                    job = next(self.waiting, None)
                if job is None:
                    break
                remote = self._do(remote, job)
        except BaseException as error:
            self.done.put(_Fatal(error))
        finally:
            if remote is not None:
                with self.lock:
                    self.busy.discard(remote)
                    self.crew.idle.append(remote)

    def _do(self, remote: Remote | None, job: Job) -> Remote | None:
        """Do one job, with new connections as long as there is hope; gives the last one back."""
        for pause_s in (*RECONNECT_AFTER_S, None):
            try:
                remote = remote or self._take()
                self.done.put((job, self.work(remote, job)))
                self.crew.answered = True
                return remote
            except Unavailable as reason:
                self.done.put((job, reason))
                return remote
            except Interrupted as cut:
                if remote is not None:
                    with self.lock:
                        self.busy.discard(remote)
                    remote.close()
                    remote = None
                if isinstance(cut, Unreachable) and not self.crew.answered:
                    raise
                if pause_s is None and isinstance(cut, Unreachable):
                    raise Lost(str(cut)) from None
                if pause_s is None:
                    self.done.put((job, cut))
                elif self.stopped.wait(pause_s):
                    return None
        return None

    def _take(self) -> Remote:
        with self.lock:
            remote = self.crew.idle.pop() if self.crew.idle else None
        remote = remote or self.crew.connect()
        with self.lock:
            self.busy.add(remote)
        return remote
