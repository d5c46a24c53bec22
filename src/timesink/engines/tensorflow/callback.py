"""A Keras callback that observes `model.fit`: steps, windows, the other callbacks, validation."""

import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

import keras

from timesink.engines.tensorflow.capture import span
from timesink.engines.tensorflow.fit_facts import FitData, network_facts, trace_anew
from timesink.engines.tensorflow.fit_watch import FitWatch
from timesink.engines.tensorflow.observed import ObservedLoop
from timesink.errors import OutputExistsError, RunError
from timesink.experiment import ProfileSection

BATCH_HOOKS = ("on_train_batch_begin", "on_train_batch_end")
OTHER_HOOKS = ("on_epoch_begin", "on_epoch_end", "on_test_begin", "on_test_end")
SAVING = ("ModelCheckpoint", "BackupAndRestore")
TOP1 = ("accuracy", "acc", "sparse_categorical_accuracy", "categorical_accuracy")

UNSAID = RunError("the training ended before its end")
"""What is said of a training that raised, where the exception is not to be had."""

_ABSENT = object()

P = ParamSpec("P")


def harmless(
    method: Callable[Concatenate["FitCallback", P], None],
) -> Callable[Concatenate["FitCallback", P], None]:
    """Let no error of ours fail the training; afterwards nothing is observed."""

    @wraps(method)
    def guarded(self: "FitCallback", *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            method(self, *args, **kwargs)
        except OutputExistsError:  # before the first step, and its user's own mistake
            raise
        except Exception as error:
            print(f"timesink: stopped observing, training goes on: {error!r}", file=sys.stderr)
            self.leave(error)

    return cast(Callable[Concatenate["FitCallback", P], None], guarded)


class FitCallback(keras.callbacks.Callback):
    """Made by `timesink.Callback`.

    `start` is given what is known of the training and makes its run, or gives None where it
    cannot; `end` is told when it is over.
    """

    def __init__(
        self,
        start: Callable[[dict[str, Any]], ObservedLoop | None],
        end: Callable[[BaseException | None], None],
        profile: ProfileSection,
        batch_size: int | None,
    ) -> None:
        super().__init__()
        self._start, self._end, self._profile = start, end, profile
        self._batch_size = batch_size
        self._list: Callable[[], Any] = lambda: None
        self._others: list[Any] = []
        self._wrapped: list[tuple[Any, str, Any]] = []
        self._leaving = threading.Lock()
        self._loop: ObservedLoop | None = None
        self._data: FitData | None = None
        self._watch: FitWatch | None = None
        self._epoch, self._batch = 0, 0

    def set_model(self, model: Any) -> None:
        """Take the model, and the first place among the callbacks.

        Keras' list of callbacks calls this. From the first place a step begins before the others'
        hooks, and their time is told from that of the model's function.
        """
        super().set_model(model)
        caller: Any = sys._getframe(1).f_locals.get("self")
        members = getattr(caller, "callbacks", None)
        if not isinstance(members, list):
            return
        behind = [each for each in members if each is not self]
        self._others = [each for each in behind if not isinstance(each, FitCallback | _Last)]
        caller.callbacks = [self, *behind, _Last(self)]
        self._list = weakref.ref(caller)

    @harmless
    def on_train_begin(self, logs: Any = None) -> None:
        """Begin the run."""
        self.leave(UNSAID)
        watch = self._watch = FitWatch(self._list(), self._fit_is_gone)
        leave_the_abandoned(watch, self._list())
        model, steps = self.model, self.params.get("steps")
        self._data = FitData(model, self._batch_size, steps)
        facts = network_facts(model, steps, self.params.get("epochs") or 1)
        facts |= {
            "batch_size": self._data.batch_size,
            "input": self._data.source,
            "retraced_for_the_map": trace_anew(model),
        }
        self._loop = self._start(facts)
        if self._loop is None:
            self.leave(None)
            return
        _training.add(self)
        self._name_others(self._loop)
        self._loop.begin(self._profile, facts["iterations"], model.steps_per_execution)

    @harmless
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Note the epoch."""
        self._epoch = epoch + 1
        if self._data is not None:
            self._data.begin_epoch()

    @harmless
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Begin a step."""
        if self._loop is None or self._data is None or self._loop.given_up:
            return
        self._batch = batch
        self._data.begin_step()
        self._loop.begin_step()

    @harmless
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Note what the step gave."""
        if self._loop is None or self._data is None or self._loop.given_up:
            return
        with span("timesink"):
            executed = self._data.executed(self._batch, batch)
            logs = logs if isinstance(logs, dict) else {}
            figures = {
                "epoch": self._epoch,
                "images": self._data.images(executed, batch),
                "loss": _number(logs.get("loss")),
                "top1": next((_number(logs[name]) for name in TOP1 if name in logs), None),
            }
            self._loop.end_call(executed=executed, figures=figures)

    def on_train_batch_over(self, batch: int) -> None:
        """Charge what follows an epoch's last step to the gap: Keras makes a new iterator then."""
        steps = self.params.get("steps")
        if steps and batch + 1 >= steps:
            self._charge("epoch_gap")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Charge what follows to the gap between epochs."""
        self._charge("epoch_gap")

    def on_test_begin(self, logs: Any = None) -> None:
        """Charge what follows to validation."""
        self._charge("validation")

    def on_test_end(self, logs: Any = None) -> None:
        """Charge what follows to the gap between epochs."""
        self._charge("epoch_gap")

    def on_train_end(self, logs: Any = None) -> None:
        """End the run, and make its tables."""
        self.leave(None)
        self._others = []

    def is_training(self) -> bool:
        """Tell whether the `fit` that this observes is still running."""
        return self._watch is not None and self._watch.is_training()

    def leave(self, error: BaseException | None) -> None:
        """Take everything back, and end the run, if there is one."""
        with self._leaving:
            loop, self._loop, self._data = self._loop, None, None
            watch, self._watch = self._watch, None
            wrapped, self._wrapped = self._wrapped, []
        _training.discard(self)
        if watch is not None:
            watch.stop()
        for other, hook, before in reversed(wrapped):
            with suppress(AttributeError):
                if before is _ABSENT:
                    delattr(other, hook)
                else:
                    setattr(other, hook, before)
        if loop is not None:
            loop.finish(raised=error is not None)
            self._end(error)

    def _fit_is_gone(self, error: BaseException | None) -> None:
        raised = self._loop.raised if self._loop is not None else None
        self.leave(error or raised or getattr(sys, "last_value", None) or UNSAID)

    def _charge(self, account: str) -> None:
        if self._loop is not None:
            self._loop.account(account)

    def _name_others(self, loop: ObservedLoop) -> None:
        """Let the trace say which callback was running, and time each over the whole run."""
        for other in self._others:
            saving = any(kind.__name__ in SAVING for kind in type(other).__mro__)
            for hook in (*BATCH_HOOKS, *OTHER_HOOKS):
                if _is_default(other, hook):
                    continue
                between = saving and hook in OTHER_HOOKS
                named = _named(loop, other, hook, "checkpoint" if between else None)
                before = getattr(other, "__dict__", {}).get(hook, _ABSENT)
                with suppress(AttributeError):
                    setattr(other, hook, named)
                    self._wrapped.append((other, hook, before))


class _Last(keras.callbacks.Callback):
    """Stands behind all other callbacks, and says when they are through."""

    def __init__(self, first: FitCallback) -> None:
        super().__init__()
        self._first = first

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Pass it on."""
        self._first.on_train_batch_over(batch)


_training: "weakref.WeakSet[FitCallback]" = weakref.WeakSet()


def leave_the_abandoned(beginning: FitWatch | None = None, callbacks: Any = None) -> None:
    """End the runs of trainings that are gone, before their watches have noticed.

    The `fit` that begins may stand where one stood that is gone, with other callbacks.
    """
    for each in list(_training):
        watch = each._watch
        replaced = beginning and watch and watch.watches(beginning) and each._list() != callbacks
        if replaced or not each.is_training():
            each._fit_is_gone(None)


def _is_default(callback: Any, hook: str) -> bool:
    """Tell whether a hook does nothing; `on_train_batch_end` may stand for an `on_batch_end`."""
    plain = keras.callbacks.Callback
    alias = hook.replace("train_batch", "batch")
    return all(
        name not in getattr(callback, "__dict__", {})
        and getattr(type(callback), name, None) is getattr(plain, name)
        for name in {hook, alias}
    )


def _named(loop: ObservedLoop, callback: Any, hook: str, account: str | None) -> Callable[..., Any]:
    original = getattr(callback, hook)
    name = f"callback {type(callback).__name__}.{hook}"

    def called(*args: Any, **kwargs: Any) -> Any:
        with span(name), loop.hook(name, account):
            return original(*args, **kwargs)

    return called


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
