"""Traces of a training loop: opens and closes windows, marks steps, and says where Python was.

A loop calls `before_step`, `begin_step` and `end_step`, `interrupt` before it does other work that
no trace should hold, and `close` at its end. Nothing here fails a training: what goes wrong is
recorded as `profile_failed`, and no further window is opened.
"""

import gc
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tensorflow as tf

from timesink.engines.recorder import Recorder
from timesink.engines.sampler import Sampler
from timesink.engines.tensorflow import profiler

Mark = tf.profiler.experimental.Trace
"""An event of the trace, of the thread that makes it; next to nothing where there is no trace."""


class Capture:
    """The traces of one process: a window is a range of iterations, and gives a file."""

    def __init__(
        self,
        directory: Path,
        recorder: Recorder,
        windows: Sequence[range],
        *,
        sample_ms: float = 0.0,
    ) -> None:
        self.directory, self.recorder, self.sample_ms = directory, recorder, sample_ms
        self._ahead = list(reversed(windows))
        self._window: _Window | None = None
        self._files = 0
        self._waits = False
        self._step: Any = None
        if windows:
            profiler.remove_leftovers(directory)

    @property
    def planned(self) -> bool:
        """Whether anything will be traced."""
        return bool(self._ahead) or self._window is not None

    def before_step(self, iteration: int) -> None:
        """Close and open windows, where this iteration asks for it, on the account `profile`."""
        window = self._window
        if window is not None:
            if iteration in window.planned:
                return
        elif not self._ahead or iteration < self._ahead[-1].start:
            return
        self.recorder.account("profile")
        self._close_window()
        while self._ahead and iteration >= self._ahead[-1].stop:
            self._ahead.pop()
        if self._ahead and iteration in self._ahead[-1]:
            self._open_window(self._ahead[-1], iteration)
        self.recorder.account("steps")

    def begin_step(self, iteration: int) -> int:
        """Mark the beginning of a step; gives its time on the recorder's clock."""
        begin_ns = self.recorder.now_ns()
        if self._window is not None:
            # `_r=1` tells XProf that this is a step; `host_ns` ties the trace's clock to ours.
            self._step = Mark("train", step_num=iteration, _r=1, host_ns=begin_ns)
        return begin_ns

    def end_step(self, iteration: int) -> None:
        """Mark the end of a step, with all that belongs to it."""
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None
        if self._window is not None:
            self._window.last = iteration

    def interrupt(self) -> None:
        """End the trace before other work; the rest of its window is traced into another file."""
        if self._window is not None:
            self.recorder.account("profile")
            self._close_window()
        # Only now: a step that was not ended has no marker, because the trace is over.
        self._step = None

    def close(self) -> None:
        """End what is open, and keep it; no more is traced."""
        self._ahead = []
        self.interrupt()

    def _open_window(self, planned: range, iteration: int) -> None:
        begin_ns = self.recorder.now_ns()
        self._files += 1
        stamp = datetime.now(UTC).strftime("%Y_%m_%d_%H_%M_%S")
        name = f"{stamp}_p{self.recorder.process}_w{self._files:03d}"
        try:
            trace = profiler.Trace(self.directory, name)
        except profiler.BusyError as error:
            # Another's trace ends sooner or later: the next step of the window tries again.
            if not self._waits:
                self.recorder.write("profile_failed", reason=str(error))
            self._waits = True
            return
        except Exception as error:
            self._fail(error)
            return
        self._window = _Window(planned, iteration, trace, self._files, self.sample_ms)
        self._window.start_ns = self.recorder.now_ns() - begin_ns

    def _close_window(self) -> None:
        window, self._window = self._window, None
        if window is None:
            return
        begin_ns = self.recorder.now_ns()
        window.watch.stop()
        try:
            if window.last is None:
                window.trace.discard()
                return
            file = window.trace.stop()
            size = file.stat().st_size
        except Exception as error:
            self._fail(error)
            return
        self.recorder.write(
            "profile_window",
            window=window.number,
            first=window.first,
            last=window.last,
            file=str(file.relative_to(self.directory.parent)),
            bytes=size,
            start_ns=window.start_ns,
            stop_ns=self.recorder.now_ns() - begin_ns,
        )

    def _fail(self, error: Exception) -> None:
        self._ahead = []
        said = str(error).strip().splitlines()
        reason = said[0][:300] if said else type(error).__name__
        self.recorder.write("profile_failed", reason=reason)


class _Window:
    """A trace that is being taken, and what watches Python meanwhile."""

    def __init__(
        self, planned: range, first: int, trace: profiler.Trace, number: int, sample_ms: float
    ) -> None:
        self.planned, self.first, self.trace, self.number = planned, first, trace, number
        self.last: int | None = None
        self.start_ns = 0
        self.watch = PythonWatch(sample_ms)


class PythonWatch:
    """Puts into the trace what Python leaves no event of: garbage collections and samples."""

    def __init__(self, sample_ms: float) -> None:
        self._collections: dict[int, Any] = {}
        gc.callbacks.append(self._on_collection)
        self._sampler = Sampler(sample_ms, _mark_sample) if sample_ms > 0 else None
        if self._sampler is not None:
            self._sampler.start()

    def stop(self) -> None:
        """Watch no more."""
        gc.callbacks.remove(self._on_collection)
        if self._sampler is not None:
            self._sampler.stop()

    def _on_collection(self, phase: str, about: dict[str, int]) -> None:
        # A collection runs on whatever thread made the last straw of garbage.
        thread = threading.get_ident()
        if phase == "start":
            self._collections[thread] = Mark(f"timesink:gc generation {about['generation']}")
        elif thread in self._collections:
            self._collections.pop(thread).__exit__(None, None, None)


def _mark_sample(place: str) -> None:
    with Mark(f"timesink:sample {_plain(place)}"):
        pass


def span(name: str) -> AbstractContextManager[Any]:
    """Name a stretch of host code in the trace, if there is one: `with span("callback X"):`."""
    return Mark(f"timesink:{_plain(name)}")


def _plain(name: str) -> str:
    return name.replace("#", "_")  # a '#' begins an event's metadata
