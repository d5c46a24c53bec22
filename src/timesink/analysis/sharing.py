"""How fast input and compute run together, from how fast each runs alone.

Alone, a side takes some time an image and keeps some of the cores busy. Together they take, an
image,

    t = longer + CONTENTION · displaced · shorter
    displaced = (busy of one + busy of the other − cores) / cores, and no less than 0

where longer and shorter are the two times. While both run they want so many cores that are not
there, and that work is done in time of its own. So with a device that takes next to nothing of the
cores the slower side decides; on a CPU that both fill, times add up, and a quarter more: each
pushes the other out of the caches, and a parallel op waits for the last of its threads.

The other way round, what a side takes alone on some numbers of cores says what it would take on
others: t(cores) = whatever the cores do not change + the rest / cores.
"""

from collections.abc import Mapping
from dataclasses import dataclass

CONTENTION = 1.25
"""Measured once, on cells that docs/augmentation.md names; no part of a study is fitted to it."""
MOST_CORES = 1024
"""As far as is looked for a number of cores."""


@dataclass(frozen=True)
class Alone:
    """One side, measured alone."""

    images_per_s: float
    busy_cores: float


def together(one: Alone, other: Alone, cores: int) -> float:
    """Predict images/s of both at once."""
    times = sorted(1 / side.images_per_s for side in (one, other))
    displaced = max(one.busy_cores + other.busy_cores - cores, 0.0) / cores
    return 1 / (times[1] + CONTENTION * displaced * times[0])


@dataclass(frozen=True)
class Scaling:
    """Time an image by cores: `fixed_s + per_core_s / cores`."""

    fixed_s: float
    per_core_s: float

    def at(self, cores: int) -> float:
        """Give the seconds an image takes."""
        return self.fixed_s + self.per_core_s / cores


def scaling(images_per_s: Mapping[int, float], *, of_cores: bool = True) -> Scaling:
    """Fit how a side scales to rates by cores; `of_cores` tells whether it uses them at all.

    By least squares of the relative error, with no negative part. One number of cores says nothing
    of the fixed part: then there is none.
    """
    times = {cores: 1 / rate for cores, rate in images_per_s.items()}
    mean_s = sum(times.values()) / len(times)
    if not of_cores:
        return Scaling(mean_s, 0.0)
    if len(times) == 1:
        ((cores, time_s),) = times.items()
        return Scaling(0.0, time_s * cores)
    # Each row divided by its time, so that what is squared is a relative error.
    rows = [(1 / time_s, 1 / cores / time_s) for cores, time_s in times.items()]
    aa, ab, bb = (sum(r[i] * r[j] for r in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = (sum(r[i] for r in rows) for i in (0, 1))
    determinant = aa * bb - ab * ab
    fixed, per_core = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if fixed < 0:
        return Scaling(0.0, b / bb)
    if per_core < 0:
        return Scaling(a / aa, 0.0)
    return Scaling(fixed, per_core)


def cores_to_feed(made: Scaling, taken: Scaling) -> int | None:
    """Tell the fewest cores on which input is no longer the slower side; None where there are none.

    It is looked for up to a thousand cores: what scales like the other side never overtakes it.
    """
    for cores in range(1, MOST_CORES + 1):
        if made.at(cores) <= taken.at(cores):
            return cores
    return None
