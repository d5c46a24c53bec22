"""A figure over its repetitions: median and range, and whether two of them differ beyond noise.

Two ranges that do not meet are no proof: of two repetitions each, that comes about by chance in one
comparison of three. So a claim is judged by all its comparisons together, and by how likely so many
of them would point its way if nothing differed.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

BY_CHANCE = 0.05
"""What points one way by chance more often than this decides nothing."""


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


Pair = tuple[Spread, Spread]


def compared(pairs: Sequence[Pair]) -> tuple[int, int, int]:
    """Count pairs whose first is smaller beyond noise, whose first is larger, and the others."""
    apart = [(one, other) for one, other in pairs if one.apart_from(other)]
    smaller = sum(one.median < other.median for one, other in apart)
    return smaller, len(apart) - smaller, len(pairs) - len(apart)


def first_is_smaller(pairs: Sequence[Pair]) -> bool | None:
    """Judge whether the first of each pair is the smaller; None where that is undecided.

    At least half of the pairs have to point one way, and more than point the other; and by chance
    so many would in less than one case of twenty.
    """
    smaller, larger, _ = compared(pairs)
    most = max(smaller, larger)
    if smaller == larger or most < len(pairs) / 2 or by_chance(pairs, most) > BY_CHANCE:
        return None
    return smaller > larger


def by_chance(pairs: Sequence[Pair], pointing: int) -> float:
    """Give the chance that so many pairs, or more, point to the same side if nothing differs.

    A pair does where all values of the one happen to lie below all of the other.
    """
    chance = max((1 / comb(a.count + b.count, a.count) for a, b in pairs), default=1.0)
    count = len(pairs)
    return sum(
        comb(count, some) * chance**some * (1 - chance) ** (count - some)
        for some in range(pointing, count + 1)
    )


def by_sign(pointing: int, count: int) -> float:
    """Give the chance that so many of some comparisons, or more, point to the same side."""
    ways = sum(comb(count, some) for some in range(pointing, count + 1))
    return min(1.0, 2 * ways / float(2**count))
