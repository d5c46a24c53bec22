"""What tracing itself costs, from the untraced steps that stand beside each traced stretch.

In the window. A traced stretch i is compared with up to n untraced steps directly before it and up
to n directly after it, so that a machine that grows slower over the run does not look like cost:

    log ratio_i = log median(traced_i) − mean(log median(before_i), log median(after_i))
    ratio       = exp(median over i of log ratio_i)

Its interval comes from stretches where nothing was traced. The same comparison (so many steps
before, in the middle, after) is made at random places of the untraced steps, where the truth is 1,
once for each stretch, and the median taken as above, 2,000 times over; the 95 % of these that lie
nearest to 1 give the interval. Whole stretches are drawn, never single steps, so noise that lasts
for several steps stays whole. Where traced steps scatter more than untraced ones, the middle is
scaled to their scatter; where the untraced steps are few, the reach is widened by Student's t with
3 × (untraced steps / steps in a comparison) degrees of freedom.

Over the run. T is the time of the traced steps, U of the untraced ones, P the account `profile`
(starting, stopping, writing traces), r the ratio in the window:

    ratio = (U + T + P) / (U + T/r) = 1 + (T − T/r + P) / (U + T/r)

with the interval that r's bounds give.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timesink.analysis.student import Floats, two_sided_t

NEIGHBOURS = 10
FEWEST_NEIGHBOURS = 3
"""On a side of a stretch; a side with fewer is not compared with."""
FEWEST_UNTRACED = 12
"""In the whole run; with fewer, nothing is known of the noise."""
DRAWS = 2000
MOST_PLACES = 5000
"""Where a run is long, so many places of it are tried, evenly spread."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Slowdown:
    """How much slower traced steps were than untraced ones; 1 is not at all."""

    ratio: float | None
    low: float | None
    high: float | None
    traced_median_ms: float | None
    untraced_median_ms: float | None
    traced_steps: int
    untraced_steps: int
    reason: str | None = None
    """Why there is no ratio."""


@dataclass(frozen=True)
class RunSlowdown:
    """How much longer the run took for having been traced; 1 is not at all."""

    ratio: float | None
    low: float | None
    high: float | None
    reason: str | None = None


@dataclass(frozen=True)
class _Stretch:
    """A traced stretch and its neighbours: log times."""

    before: Floats
    traced: Floats
    after: Floats


def slowdown(
    step_ms: Floats,
    traced: npt.NDArray[np.bool_],
    process: npt.NDArray[np.int64],
    excluded: npt.NDArray[np.bool_] | None = None,
    *,
    neighbours: int = NEIGHBOURS,
    seed: int = 0,
) -> Slowdown:
    """Give the slowdown in the window from a run's steps, in the order they ran.

    `excluded` are steps that are neither: a process's first one, which compiles, and those that the
    starting or stopping of a trace fell into.
    """
    counted = step_ms > 0
    if excluded is not None:
        counted &= ~excluded
    step_ms, traced, process = step_ms[counted], traced[counted], process[counted]
    untraced_ms, traced_ms = step_ms[~traced], step_ms[traced]
    stretches = list(_stretches(np.log(step_ms), traced, process, neighbours))

    def given(bounds: tuple[float, float, float] | None, reason: str | None = None) -> Slowdown:
        ratio, low, high = bounds or (None, None, None)
        return Slowdown(
            ratio=ratio,
            low=low,
            high=high,
            traced_median_ms=_median(traced_ms),
            untraced_median_ms=_median(untraced_ms),
            traced_steps=len(traced_ms),
            untraced_steps=len(untraced_ms),
            reason=reason,
        )

    if not len(traced_ms):
        return given(None, "no step was traced")
    if len(untraced_ms) < FEWEST_UNTRACED:
        return given(
            None,
            f"too few untraced steps to compare with: {len(untraced_ms)}, "
            f"at least {FEWEST_UNTRACED} are needed",
        )
    if not stretches:
        return given(None, f"no {FEWEST_NEIGHBOURS} untraced steps stand beside a traced stretch")
    centre = float(np.median([_log_ratio(each) for each in stretches]))
    reach = _reach(stretches, _untraced_noise(step_ms, traced, process), seed)
    low, ratio, high = np.exp([centre - reach, centre, centre + reach])
    return given((float(ratio), float(low), float(high)))


def run_slowdown(
    window: Slowdown, *, traced_ms: float, untraced_ms: float, profile_ms: float
) -> RunSlowdown:
    """Give the slowdown of the whole run from the total times of its steps and of `profile`."""
    if traced_ms == 0 and profile_ms == 0:
        return RunSlowdown(1.0, 1.0, 1.0)
    if window.ratio is None or window.low is None or window.high is None:
        return RunSlowdown(None, None, None, window.reason)
    spent_ms = untraced_ms + traced_ms + profile_ms
    low, ratio, high = (
        spent_ms / (untraced_ms + traced_ms / each)
        for each in (window.low, window.ratio, window.high)
    )
    return RunSlowdown(ratio, low, high)


def _stretches(
    log_ms: Floats,
    traced: npt.NDArray[np.bool_],
    process: npt.NDArray[np.int64],
    neighbours: int,
) -> Iterator[_Stretch]:
    """Find the traced stretches that have untraced neighbours in their own process."""
    change = (np.diff(traced.astype(np.int8)) != 0) | (np.diff(process) != 0)
    bounds = [0, *(np.flatnonzero(change) + 1).tolist(), len(traced)]
    parts = list(itertools.pairwise(bounds))
    nothing = log_ms[:0]
    for at, (begin, end) in enumerate(parts):
        if begin == end or not traced[begin]:
            continue
        before = after = nothing
        if at > 0 and process[begin - 1] == process[begin]:
            before = log_ms[max(parts[at - 1][0], begin - neighbours) : begin]
        if at + 1 < len(parts) and process[end] == process[begin]:
            after = log_ms[end : min(parts[at + 1][1], end + neighbours)]
        before, after = (
            side if len(side) >= FEWEST_NEIGHBOURS else nothing for side in (before, after)
        )
        if len(before) or len(after):
            yield _Stretch(before, log_ms[begin:end], after)


def _log_ratio(stretch: _Stretch) -> float:
    sides = [np.median(side) for side in (stretch.before, stretch.after) if len(side)]
    return float(np.median(stretch.traced) - np.mean(sides))


def _untraced_noise(
    step_ms: Floats, traced: npt.NDArray[np.bool_], process: npt.NDArray[np.int64]
) -> Floats:
    """Give the untraced steps' log times one after another, each process around its own median."""
    log_ms, process = np.log(step_ms[~traced]), process[~traced]
    return np.concatenate(
        [
            log_ms[process == each] - np.median(log_ms[process == each])
            for each in np.unique(process)
        ]
    )


def _reach(stretches: list[_Stretch], noise: Floats, seed: int) -> float:
    """Give how far from 0 the log ratio lies, in 95 of 100 draws, where nothing was traced."""
    shapes = [_fitted(each, len(noise)) for each in stretches]
    placebos = {shape: _placebo_log_ratios(shape, noise, stretches) for shape in set(shapes)}
    generator = np.random.default_rng(seed)
    draws = np.stack([generator.choice(placebos[shape], DRAWS) for shape in shapes])
    reach = float(np.quantile(np.abs(np.median(draws, axis=0)), CONFIDENCE))
    longest = max(sum(shape) for shape in shapes)
    degrees = np.array([3 * len(noise) / longest, 1e6])
    few, many = two_sided_t(1 - CONFIDENCE, degrees)
    return reach * float(few / many)


def _fitted(stretch: _Stretch, untraced_steps: int) -> tuple[int, int, int]:
    """Give the lengths of a comparison, shortened in proportion to fit into half the steps."""
    lengths = len(stretch.before), len(stretch.traced), len(stretch.after)
    part = min(1.0, untraced_steps / 2 / sum(lengths))
    before, traced, after = (
        max(min(length, FEWEST_NEIGHBOURS), int(length * part)) for length in lengths
    )
    return before, traced, after


def _placebo_log_ratios(
    shape: tuple[int, int, int], noise: Floats, stretches: list[_Stretch]
) -> Floats:
    """Compare as the stretches are compared, at many places of the untraced steps."""
    before, middle, after = shape
    places = np.lib.stride_tricks.sliding_window_view(noise, before + middle + after)
    places = places[:: max(1, len(places) // MOST_PLACES)]
    sides = [
        np.median(side, axis=1)
        for side in (places[:, :before], places[:, before + middle :])
        if side.shape[1]
    ]
    traced = places[:, before : before + middle]
    own = np.median(traced, axis=1)
    scatter = np.median(np.abs(traced - own[:, None]))
    traced_scatter = np.median(
        np.concatenate([np.abs(each.traced - np.median(each.traced)) for each in stretches])
    )
    wider = max(1.0, float(traced_scatter / scatter)) if scatter > 0 else 1.0
    return np.asarray(own * wider - np.mean(sides, axis=0))


def _median(times_ms: Floats) -> float | None:
    return float(np.median(times_ms)) if len(times_ms) else None
