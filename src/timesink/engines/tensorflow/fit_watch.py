"""Tells when a `fit` is gone without a word: it raised, and Keras tells no callback so."""

import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

EVERY_S = 0.5


class FitWatch:
    """Watches the `fit` that is calling, until it is stopped.

    Keras' list of callbacks lives as long as `fit` does: when it is freed, `gone` is told at once,
    with the exception that is passing. A notebook keeps the traceback, and all in it, alive:
    therefore a thread looks twice a second whether `fit` is still on the stack.
    """

    def __init__(self, callbacks: Any, gone: Callable[[BaseException | None], None]) -> None:
        fit = _caller()
        # The frame itself would keep the data alive.
        self._frame, self._code, self._stack = id(fit), fit.f_code, threading.get_ident()
        self._gone, self._over = gone, threading.Event()
        self._freed: weakref.finalize[..., Any] | None = None
        if callbacks is not None:
            self._freed = weakref.finalize(callbacks, self._was_freed)
            self._freed.atexit = False
        # Not a daemon: a script that raised ends only when its run was ended.
        self._thread = threading.Thread(target=self._look, name="timesink-fit-watch")
        self._thread.start()

    def is_training(self) -> bool:
        """Tell whether the `fit` is still running."""
        frame: FrameType | None = sys._current_frames().get(self._stack)
        while frame is not None:
            if id(frame) == self._frame and frame.f_code is self._code:
                return True
            frame = frame.f_back
        return False

    def watches(self, other: "FitWatch") -> bool:
        """Tell whether another watches the same call."""
        return (self._frame, self._stack) == (other._frame, other._stack)

    def stop(self) -> None:
        """Watch no more."""
        if self._freed is not None:
            self._freed.detach()
        self._over.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _was_freed(self) -> None:
        self._gone(sys.exc_info()[1])

    def _look(self) -> None:
        while not self._over.wait(EVERY_S):
            if not (self.is_training() and threading.main_thread().is_alive()):
                self._gone(None)
                return


def _caller() -> FrameType:
    """Find who called the callbacks' `on_train_begin`."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (
        frame.f_globals.get("__name__", "").startswith("timesink.")
        or frame.f_code.co_name == "on_train_begin"
    ):
        frame = frame.f_back
    return frame
