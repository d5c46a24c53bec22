"""What changed between two runs, or two sets of repetitions: by account, and told from noise.

Times are means over steps, because means add up: the differences of the accounts sum to the
difference of the step. The test is Welch's, on units that can be called independent:

- one run a side: blocks of consecutive steps (see `noise`). What differs from run to run without
  a cause is then invisible, and counts as change;
- three runs or more in all: the runs. A side of one run is given the other side's variance.

A row has changed where its p value passes Benjamini and Hochberg's procedure over all rows, so
that of the rows named at most 5 % are expected to be noise; the step as a whole is one question
and passes at 5 %. The interval is the same test's, at 95 %, for the row alone.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from timesink.analysis.noise import (
    FEWEST_STEPS,
    Mean,
    correlation,
    mean_of_runs,
    mean_of_steps,
)
from timesink.analysis.student import Floats, two_sided_p, two_sided_t

KEY = ("account", "layer", "phase", "place", "device")
SIGNIFICANCE = 0.05
TOO_FEW = "too few steps to tell"

Key = tuple[str | None, ...]


@dataclass(frozen=True)
class Measured:
    """One run as it is compared."""

    step_ms: Floats
    """Wall of the steps that count, in order; at least one."""
    charged: pl.DataFrame
    """`step` (a number that grows), the columns of KEY, `charged_ms`. No row of a key is 0 ms."""


@dataclass(frozen=True)
class Difference:
    """A row of the comparison; times are means a step."""

    account: str
    layer: str | None
    phase: str | None
    place: str | None
    device: str | None
    before_ms: float
    after_ms: float
    difference_ms: float
    ratio: float | None
    """After by before; None where before is nothing."""
    low_ms: float | None
    high_ms: float | None
    p: float | None
    changed: bool
    reason: str | None = None
    """Why there is no interval and no p."""


def compare(before: Sequence[Measured], after: Sequence[Measured]) -> list[Difference]:
    """Give the step as a whole, then every row by the size of its difference."""
    return [compare_steps(before, after), *compare_charged(before, after)]


def compare_steps(before: Sequence[Measured], after: Sequence[Measured]) -> Difference:
    """Compare the steps as a whole."""
    sides = [[run.step_ms[:, None] for run in side] for side in (before, after)]
    (row,) = _differences([("step", None, None, None, None)], sides[0], sides[1])
    return row


def compare_charged(before: Sequence[Measured], after: Sequence[Measured]) -> list[Difference]:
    """Compare what was charged, row by row."""
    frames = [run.charged for run in itertools.chain(before, after)]
    if any(frame.is_empty() for frame in frames):
        return []
    keys = (
        pl.concat([frame.select(pl.col(KEY).cast(pl.String)) for frame in frames])
        .unique()
        .sort(KEY, nulls_last=False)
        .rows()
    )
    places = {key: number for number, key in enumerate(keys)}
    charged = [_by_step(frame, places) for frame in frames]
    rows = _differences(keys, charged[: len(before)], charged[len(before) :])
    return sorted(rows, key=lambda row: -abs(row.difference_ms))


def _by_step(charged: pl.DataFrame, places: dict[Key, int]) -> Floats:
    """Spread a run's rows out: a line a step, a column a key."""
    steps = charged["step"].rank("dense").to_numpy().astype(np.int64) - 1
    keys = charged.select(pl.col(KEY).cast(pl.String)).rows()
    columns = np.array([places[key] for key in keys], np.int64)
    spread = np.zeros((int(steps.max()) + 1, len(places)))
    np.add.at(spread, (steps, columns), charged["charged_ms"].to_numpy())
    return spread


def _differences(
    keys: Sequence[Key], before: Sequence[Floats], after: Sequence[Floats]
) -> list[Difference]:
    """Compare the rows of the keys; each run is an array of step by key."""
    one_run_each = len(before) == len(after) == 1
    if one_run_each and min(len(before[0]), len(after[0])) < FEWEST_STEPS:
        means = zip(keys, before[0].mean(axis=0), after[0].mean(axis=0), strict=True)
        return [_row(key, float(b), float(a), reason=TOO_FEW) for key, b, a in means]
    first, second = _sides(before, after)
    low, high, p = _welch(first, second)
    changed = _discoveries(p)
    return [
        _row(
            key,
            float(first.mean[at]),
            float(second.mean[at]),
            bounds=(float(low[at]), float(high[at])),
            p=float(p[at]),
            changed=bool(changed[at]),
        )
        for at, key in enumerate(keys)
    ]


def _sides(before: Sequence[Floats], after: Sequence[Floats]) -> tuple[Mean, Mean]:
    if len(before) == len(after) == 1:
        rho = correlation([before[0], after[0]])
        return mean_of_steps(before[0], rho), mean_of_steps(after[0], rho)
    first, second = (
        mean_of_runs(np.array([run.mean(axis=0) for run in side])) for side in (before, after)
    )
    return _with_variance(first, second, len(after)), _with_variance(second, first, len(before))


def _with_variance(side: Mean, other: Mean, runs_of_other: int) -> Mean:
    """Give a side of one run the variance of one run of the other side; it adds no knowledge."""
    if side.variance is not None or other.variance is None:
        return side
    return Mean(side.mean, other.variance * runs_of_other, 0)


def _welch(before: Mean, after: Mean) -> tuple[Floats, Floats, Floats]:
    """Give the interval of after − before, and the p value of no difference."""
    assert before.variance is not None and after.variance is not None
    difference = after.mean - before.mean
    variance = before.variance + after.variance
    # A variance that is only rounding error would make a difference of rounding error certain.
    scale = np.maximum(np.abs(before.mean), np.abs(after.mean))
    difference = np.where(np.abs(difference) <= 1e-12 * scale, 0.0, difference)
    varies = variance > np.square(1e-12 * np.maximum(scale, 1e-6))  # nothing is below 1e-18 ms
    if before.degrees and after.degrees:
        doubt = np.square(before.variance) / before.degrees
        doubt += np.square(after.variance) / after.degrees
        degrees = np.divide(np.square(variance), doubt, out=np.ones_like(doubt), where=varies)
    else:
        degrees = np.full_like(variance, before.degrees + after.degrees)
    error = np.sqrt(np.where(varies, variance, 0.0))
    t = np.divide(difference, error, out=np.zeros_like(difference), where=varies)
    certain = np.where(difference == 0, 1.0, 0.0)
    p = np.where(varies, two_sided_p(t, degrees), certain)
    reach = two_sided_t(SIGNIFICANCE, degrees) * error
    return difference - reach, difference + reach, p


def _discoveries(p: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Tell which rows pass Benjamini and Hochberg's procedure."""
    order = np.sort(p)
    passing = order <= SIGNIFICANCE * np.arange(1, len(p) + 1) / len(p)
    limit = order[passing][-1] if passing.any() else -1.0
    return np.asarray(p <= limit)


def _row(
    key: Key,
    before_ms: float,
    after_ms: float,
    *,
    bounds: tuple[float, float] | None = None,
    p: float | None = None,
    changed: bool = False,
    reason: str | None = None,
) -> Difference:
    account, layer, phase, place, device = key
    assert account is not None
    return Difference(
        account=account,
        layer=layer,
        phase=phase,
        place=place,
        device=device,
        before_ms=before_ms,
        after_ms=after_ms,
        difference_ms=after_ms - before_ms,
        ratio=after_ms / before_ms if before_ms else None,
        low_ms=bounds[0] if bounds else None,
        high_ms=bounds[1] if bounds else None,
        p=p,
        changed=changed,
        reason=reason,
    )
