"""Somebody else's training loop, observed: its steps timed, traced in windows, and mapped.

`Callback` and `capture` are two faces of it. What goes wrong here never fails the training.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from timesink.engines.recorder import Recorder
from timesink.engines.tensorflow.capture import Capture
from timesink.engines.tensorflow.opmap import ModelWatch
from timesink.engines.tensorflow.py_functions import py_functions
from timesink.engines.windows import plan_windows
from timesink.errors import RunError
from timesink.experiment import ProfileSection

UNKNOWN_STEPS = 100_000
"""Where nobody knows how long the training is, windows are planned as for one of this length."""
SOON = 5
"""How many steps go before the first window there: it may be over any moment."""

P = ParamSpec("P")
R = TypeVar("R")


def harmless(
    method: Callable[Concatenate["ObservedLoop", P], R],
) -> Callable[Concatenate["ObservedLoop", P], R | None]:
    """Turn an error into a line on stderr, after which nothing more is observed."""

    @wraps(method)
    def guarded(self: "ObservedLoop", *args: P.args, **kwargs: P.kwargs) -> R | None:
        if self.given_up:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            # No warning: scripts turn those into errors.
            print(f"timesink: stopped observing, training goes on: {error}", file=sys.stderr)
            self.give_up()
            return None

    return cast(Callable[Concatenate["ObservedLoop", P], R | None], guarded)


class ObservedLoop:
    """Keeps the accounts, the steps and the windows of a loop that it does not run."""

    def __init__(self, recorder: Recorder, directory: Path, iteration: int = 0) -> None:
        self.recorder, self.directory = recorder, directory
        self.iteration = iteration
        self.given_up = False
        self.raised: BaseException | None = None
        self._capture = Capture(directory / "profile", recorder, ())
        self._watch = ModelWatch(directory / "opmap.json", recorder)
        self._open: dict[str, Any] | None = None
        self._first = True
        self._account = ""
        self._known_functions = 0
        self._hooks: dict[str, list[int]] = {}
        self._last_sign_ns = recorder.now_ns()

    @harmless
    def begin(self, profile: ProfileSection, steps: int | None, per_execution: int = 1) -> None:
        """Begin to observe; `steps` are the iterations to come, `per_execution` at a time."""
        if not steps and profile.start is None:
            profile = profile.model_copy(update={"start": SOON})
        executions = -(-(steps or UNKNOWN_STEPS) // per_execution)
        done = self.iteration
        windows = [
            range(
                done + (window.start - 1) * per_execution + 1,
                done + (window.stop - 1) * per_execution + 1,
            )
            for window in plan_windows(profile, 1, executions)
        ]
        self._capture = Capture(
            self.directory / "profile", self.recorder, windows, sample_ms=profile.sample_ms
        )
        self._watch.start()
        self.account("tracing")

    @property
    def in_step(self) -> bool:
        """Whether a step was begun whose call has not returned."""
        return self._open is not None and "done_ns" not in self._open

    @harmless
    def account(self, name: str) -> None:
        """Charge what follows to another account of the run; no trace holds it."""
        came_to_nothing_ns = self._finish_step()
        if name != self._account:
            if came_to_nothing_ns is not None:
                self.recorder.write("account", account=name, begin_ns=came_to_nothing_ns)
            if name not in ("steps", "tracing"):
                self._capture.interrupt()
            self.recorder.account(name)
            self._account = name
            self._last_sign_ns = self.recorder.now_ns()

    @harmless
    def begin_step(self) -> None:
        """Begin an iteration, or as many as one call executes; ends the one before."""
        if self.in_step:
            self.end_call(figures={})
        self._finish_step()
        if self._account != "steps" and not self._first:
            self.recorder.account("steps")
            self._account = "steps"
        self._capture.before_step(self.iteration + 1)
        self._known_functions = len(self._watch.scopes.functions)
        begin_ns = self._capture.begin_step(self.iteration + 1)
        self._open = {"begin_ns": begin_ns, "executed": 1}

    @harmless
    def end_call(self, *, executed: int = 1, figures: Mapping[str, float | None]) -> None:
        """Note that the step's function has returned, and what it gave."""
        if self._open is not None:
            self._last_sign_ns = self.recorder.now_ns()
            self._open |= {"done_ns": self._last_sign_ns, "executed": executed}
            self._open |= {name: value for name, value in figures.items() if value is not None}

    @harmless
    def abandon_step(self) -> None:
        """Forget the open step, which raised; its trace ends, because it may not be marked."""
        self._open = None
        self._capture.interrupt()
        self._account = ""

    @contextmanager
    def hook(self, name: str, account: str | None = None) -> Iterator[None]:
        """Time a piece of the loop's own code over the whole run; charge it to an account."""
        before = self._account
        if account is not None:
            self.account(account)
        begin_ns = self.recorder.now_ns()
        try:
            yield
        except BaseException as error:
            # Not the exception itself: its traceback would keep the `fit` alive.
            said = f"{type(error).__name__}: {error}"
            interrupted = isinstance(error, KeyboardInterrupt)
            self.raised = KeyboardInterrupt() if interrupted else RunError(said)
            raise
        finally:
            times = self._hooks.setdefault(name, [0, 0])
            times[0] += 1
            self._last_sign_ns = self.recorder.now_ns()
            times[1] += self._last_sign_ns - begin_ns
            if account is not None and self._account == account:
                self.account(before)

    @harmless
    def finish(self, *, raised: bool = False) -> None:
        """End what is open; nothing more is observed. One that raised was over at its last sign."""
        came_to_nothing_ns = self._finish_step()
        if raised:
            over_ns = came_to_nothing_ns or self._last_sign_ns
            self.recorder.write("account", account="teardown", begin_ns=over_ns)
        self._capture.close()
        self._watch.stop()
        if self._hooks:
            told = [[name, *times] for name, times in self._hooks.items()]
            self.recorder.write("hooks", hooks=told)
        self.given_up = True

    def give_up(self) -> None:
        """Leave the process as it was, without another word."""
        self.given_up = True
        self._open = None
        self._capture.recorder = self._watch.recorder = _Mute(self.recorder)
        for leave in (self._capture.close, self._watch.stop):
            with suppress(Exception):
                leave()

    def _finish_step(self) -> int | None:
        """Write the open step; gives the beginning of one that came to nothing.

        Keras begins a step and only then finds that the data are at their end; in a step that
        raised nothing was trained either. What the trace has of it has no marker.
        """
        step, self._open = self._open, None
        if step is None:
            return None
        executed, begin_ns = step.pop("executed"), int(step.pop("begin_ns"))
        done_ns = step.pop("done_ns", None)
        if done_ns is None:
            return begin_ns
        self.recorder.write(
            "step",
            split="train",
            iteration=self.iteration + 1,
            executed=executed,
            begin_ns=begin_ns,
            compute_ns=done_ns - begin_ns,
            **{"epoch": 1, **step},
        )
        self._capture.end_step(self.iteration + 1)
        if self._first:
            self._end_tracing()
        else:
            self._note_retraces()
        self.iteration += executed
        return None

    def _end_tracing(self) -> None:
        """Make the map while the model is at hand: the first step has traced and compiled it."""
        self._first = False
        self.recorder.account("profile")
        self._watch.finish()
        if named := py_functions(function.graph for function in self._watch.scopes.functions):
            self.recorder.write("py_functions", places=named)
        self.recorder.account("steps")
        self._account = "steps"

    def _note_retraces(self) -> None:
        for function in self._watch.scopes.functions[self._known_functions :]:
            self.recorder.write(
                "retrace",
                iteration=self.iteration + 1,
                function=function.name,
                inputs=function.inputs(),
            )


class _Mute:
    """A recorder for after the journal could not be written."""

    def __init__(self, recorder: Recorder) -> None:
        self.process, self.now_ns = recorder.process, recorder.now_ns

    def account(self, name: str) -> None:
        """Record nothing."""

    def write(self, event: str, **fields: Any) -> None:
        """Record nothing."""
