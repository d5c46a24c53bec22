"""A run inside somebody else's process: `timesink.Callback` for Keras' fit, `timesink.capture`."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from timesink.errors import UsageError
from timesink.experiment import ProfileSection, parse
from timesink.ledger.run_ledger import ACCOUNTS
from timesink.runs.attached_run import AttachedRun

if TYPE_CHECKING:
    from timesink.engines.tensorflow.observed import ObservedLoop

Mode = Literal["off", "window", "every"]


def Callback(  # noqa: N802  # it stands where Keras has classes
    out: str | os.PathLike[str],
    *,
    mode: Mode = "window",
    windows: int = 1,
    start: int | None = None,
    steps: int = 20,
    sample_ms: float = 5.0,
    groups: Mapping[str, list[str]] | None = None,
    batch_size: int | None = None,
    force: bool = False,
) -> Any:
    """Give a Keras callback that makes a run directory of a `model.fit`.

    The keys are those of an experiment's `[profile]`. `batch_size` is needed only where Keras does
    not count the images itself. An existing directory is refused unless `force` is set.
    """
    from timesink.engines.tensorflow.callback import FitCallback

    profile = _profile(mode, windows, start, steps, sample_ms, groups)
    run = AttachedRun(Path(out), profile, "keras.Model.fit", force=force)
    return FitCallback(run.begin_or_tell, run.end, profile, batch_size)


class Steps:
    """What `capture` gives: `with t.step(): …` around each iteration."""

    def __init__(self, loop: "ObservedLoop") -> None:
        self._loop: ObservedLoop | None = loop

    @contextmanager
    def step(
        self, *, images: int | None = None, epoch: int = 1
    ) -> Iterator[dict[str, float | None]]:
        """Time one iteration; it lasts until the next one begins.

        Gives a dict into which `loss` and `top1` may be put.
        """
        loop = self._outside_steps("step()")
        figures: dict[str, float | None] = {}
        loop.begin_step()
        try:
            yield figures
        except BaseException:
            loop.abandon_step()
            raise
        known: dict[str, float | None] = {"images": images, "epoch": epoch}
        loop.end_call(figures={**known, **_numbers(figures)})

    def account(self, name: str) -> None:
        """Charge what follows, until the next step, to an account of the run (`validation`, …)."""
        loop = self._outside_steps("account()")
        if name not in ACCOUNTS:
            raise UsageError(f"{name!r} is no account of a run: one of {', '.join(ACCOUNTS)}")
        loop.account(name)

    def end(self) -> None:
        """Take no more steps."""
        self._loop = None

    def _outside_steps(self, asked: str) -> "ObservedLoop":
        if self._loop is None:
            raise UsageError(f"{asked} after the end of timesink.capture: call it inside the with")
        if self._loop.in_step:
            raise UsageError(f"{asked} inside a step: end that one first")
        return self._loop


@contextmanager
def capture(
    out: str | os.PathLike[str],
    *,
    total_steps: int | None = None,
    mode: Mode = "window",
    windows: int = 1,
    start: int | None = None,
    steps: int = 20,
    sample_ms: float = 5.0,
    groups: Mapping[str, list[str]] | None = None,
    force: bool = False,
) -> Iterator[Steps]:
    """Make a run directory of a training loop of one's own.

    `total_steps` are the iterations to come, where that is known: a short loop gets a short window.
    """
    profile = _profile(mode, windows, start, steps, sample_ms, groups)
    run = AttachedRun(Path(out), profile, "timesink.capture", force=force)
    loop = run.begin({"iterations": total_steps})
    told = Steps(loop)
    try:
        loop.begin(profile, total_steps)
        yield told
    except BaseException as error:
        told.end()
        loop.finish(raised=True)
        run.end(error)
        raise
    told.end()
    loop.finish()
    run.end()


def _numbers(figures: Mapping[str, Any]) -> dict[str, float | None]:
    """Take what is a number, or a tensor that holds one."""
    numbers: dict[str, float | None] = {}
    for name in ("loss", "top1", "topn"):
        try:
            numbers[name] = float(figures[name])
        except (KeyError, TypeError, ValueError):
            continue
    return numbers


def _profile(
    mode: Mode,
    windows: int,
    start: int | None,
    steps: int,
    sample_ms: float,
    groups: Mapping[str, list[str]] | None,
) -> ProfileSection:
    keys = {"mode": mode, "windows": windows, "steps": steps, "sample_ms": float(sample_ms)}
    if start is not None:
        keys["start"] = start
    return parse({"profile": {**keys, "groups": dict(groups or {})}}, "timesink").profile
