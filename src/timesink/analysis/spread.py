"""A figure over its repetitions: median and range, and whether two of them differ beyond noise."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """What repeated measurements of one thing gave."""

    median: float
    low: float
    high: float
    count: int

    def apart_from(self, other: "Spread") -> bool:
        """Tell whether the ranges do not meet: the difference is more than repeating it gives."""
        return self.low > other.high or self.high < other.low


def spread(values: Sequence[float]) -> Spread:
    """Sum up repetitions."""
    return Spread(statistics.median(values), min(values), max(values), len(values))


def range_confidence(count: int) -> float:
    """Give the chance with which the range of so many repetitions holds the true median.

    It misses it only where all of them lie on the same side of it.
    """
    return 1 - 2.0 ** (1 - count)
