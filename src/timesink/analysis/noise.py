"""How well a mean is known, when it is of steps that follow one another or of repeated runs.

Steps of one run are not independent: what disturbs one (another program, the clock rate, the page
cache) lasts for the next. `s / √n` would then be far too small, and noise would look like change.

So a run is cut into up to 8 blocks of consecutive steps, whose means are the sample. What of the
dependence reaches across blocks is estimated from ρ, the correlation of neighbouring steps in both
runs together (with Kendall's correction for its bias, (1 + 3ρ)/n), and the variance is raised by
the factor by which blocks of such a series would understate it:

    v(m)   = [(1+ρ)/(1−ρ) − 2ρ(1−ρ^m) / (m(1−ρ)²)] / m     variance of the mean of m steps
    factor = v(n) / [(v(n/k) − v(n)) / (k − 1)]            n steps in k blocks; at least 1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from timesink.analysis.student import Floats

FEWEST_STEPS = 12
"""With fewer steps in a run nothing is said of its noise: 4 blocks of 3 are the least."""
MOST_BLOCKS = 8
STEPS_A_BLOCK = 5
MOST_CORRELATION = 0.95


@dataclass(frozen=True)
class Mean:
    """The means of some rows, and what is known of their error; one element a row."""

    mean: Floats
    variance: Floats | None
    """Of the mean; None where a single value stands for the whole."""
    degrees: int
    """Degrees of freedom of the variance."""


def correlation(runs: Sequence[Floats]) -> Floats:
    """Give the correlation of neighbouring steps (axis 0) in runs of the same rows; 0 at least."""
    rests = [run - run.mean(axis=0) for run in runs]
    squares = sum((np.square(rest).sum(axis=0) for rest in rests), np.zeros(runs[0].shape[1]))
    products = sum(((rest[1:] * rest[:-1]).sum(axis=0) for rest in rests), np.zeros_like(squares))
    found = np.divide(products, squares, out=np.zeros_like(squares), where=squares > 0)
    unbiased = found + (1 + 3 * found) / np.mean([len(run) for run in runs])
    # A series that does not vary has no correlation to correct.
    return np.where(squares > 0, np.clip(unbiased, 0.0, MOST_CORRELATION), 0.0)


def mean_of_steps(steps: Floats, rho: Floats) -> Mean:
    """Give the means over one run's steps (axis 0), with the variance that its blocks show."""
    count = len(steps)
    blocks = min(MOST_BLOCKS, max(FEWEST_STEPS // 3, count // STEPS_A_BLOCK))
    sizes = np.full(blocks, count // blocks)
    sizes[: count % blocks] += 1
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means = np.add.reduceat(steps, begins, axis=0) / sizes[:, None]
    whole, block = _variance_of_mean(rho, count), _variance_of_mean(rho, count / blocks)
    factor = np.maximum(1.0, whole / ((block - whole) / (blocks - 1)))
    variance = means.var(axis=0, ddof=1) / blocks * factor
    return Mean(steps.mean(axis=0), variance, blocks - 1)


def mean_of_runs(means: Floats) -> Mean:
    """Give the means over runs (axis 0): what differs from run to run is the noise."""
    count = len(means)
    variance = means.var(axis=0, ddof=1) / count if count > 1 else None
    return Mean(means.mean(axis=0), variance, count - 1)


def _variance_of_mean(rho: Floats, count: float) -> Floats:
    within = (1 + rho) / (1 - rho)
    ends = 2 * rho * (1 - np.power(rho, count)) / (count * np.square(1 - rho))
    return np.asarray((within - ends) / count)
