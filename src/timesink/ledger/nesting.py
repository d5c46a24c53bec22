"""Which intervals of a thread lie within which, and what time of each is no inner one's.

Intervals come in order: by thread, then by beginning; of those that begin together, the longest
first. At each instant the one that began last has the time.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def in_order(thread: Ints, begin_ns: Ints, end_ns: Ints) -> Ints:
    """Give the places of intervals in the order that is wanted here."""
    order: Ints = np.lexsort((-end_ns, begin_ns, thread))
    return order


def on_one_axis(thread: Ints, begin_ns: Ints, end_ns: Ints) -> tuple[Ints, Ints]:
    """Lay the threads one behind the other, so that their intervals never meet."""
    if not len(thread):
        return begin_ns, end_ns
    first_ns = int(begin_ns.min())
    shift = thread.astype(np.int64) * (int(end_ns.max()) - first_ns + 1) - first_ns
    return begin_ns + shift, end_ns + shift


def within(thread: Ints, begin_ns: Ints, end_ns: Ints, outer: Mask) -> Mask:
    """Tell which intervals lie within an earlier one that is an outer one."""
    inside = np.zeros(len(thread), bool)
    if len(thread):
        _, end = on_one_axis(thread, begin_ns, end_ns)
        reach = np.maximum.accumulate(np.where(outer, end, np.int64(-1)))
        inside[1:] = end[1:] <= reach[:-1]
    return inside


class Nesting:
    """Intervals in order, each with the one around it."""

    def __init__(self, thread: Ints, begin_ns: Ints, end_ns: Ints) -> None:
        begin, end = on_one_axis(thread, begin_ns, end_ns)
        self.parent = _parents(end)
        """The place of the innermost one around it; -1 where there is none."""
        self._begin_ns = begin_ns
        self._end_ns = end_ns - end + _until(begin, end, self.parent)

    def own_parts(self, chosen: Mask) -> tuple[Ints, Ints, Ints]:
        """Give the stretches of some intervals that no inner one has: whose, begin, end."""
        inner = np.flatnonzero(self.parent >= 0)
        inner = inner[chosen[self.parent[inner]]]
        inner = inner[np.argsort(self.parent[inner], kind="stable")]
        whose = self.parent[inner]
        after = np.empty(len(inner), np.int64)
        if len(inner):
            first = np.ones(len(inner), bool)
            first[1:] = whose[1:] != whose[:-1]
            after = np.where(first, self._begin_ns[whose], np.roll(self._end_ns[inner], 1))
        rest_of = np.flatnonzero(chosen)
        rest_ns = self._begin_ns.copy()
        rest_ns[whose] = self._end_ns[inner]  # of several the last one stays
        return (
            np.concatenate([whose, rest_of]),
            np.concatenate([after, rest_ns[rest_of]]),
            np.concatenate([self._begin_ns[inner], self._end_ns[rest_of]]),
        )

    def own_ns(self, from_ns: int, to_ns: int) -> Ints:
        """Give of each interval the time in a window that no inner one has."""
        length_ns = np.clip(self._end_ns, from_ns, to_ns) - np.clip(self._begin_ns, from_ns, to_ns)
        own_ns: Ints = length_ns.copy()
        inner = self.parent >= 0
        np.subtract.at(own_ns, self.parent[inner], length_ns[inner])
        return own_ns


def _parents(end: Ints) -> Ints:
    """Give for each the last one before it that ends no sooner.

    Who was passed over by one that ends sooner still is passed over by all that end later: so
    each looks on where the other stopped, and all do at once.
    """
    parent: Ints = np.arange(-1, len(end) - 1)
    looking = np.flatnonzero(parent >= 0)
    while len(looking):
        looking = looking[end[parent[looking]] < end[looking]]
        parent[looking] = parent[parent[looking]]
        looking = looking[parent[looking] >= 0]
    return parent


def _until(begin: Ints, end: Ints, parent: Ints) -> Ints:
    """End each where the next one begins that is within the same and reaches further.

    The profiler's events of one thread overlap so now and then, by less than a microsecond.
    """
    end = end.copy()
    order = np.argsort(parent, kind="stable")
    siblings = parent[order[1:]] == parent[order[:-1]]
    early, late = order[:-1][siblings], order[1:][siblings]
    end[early] = np.minimum(end[early], begin[late])
    inner = np.flatnonzero(parent >= 0)
    while len(inner):
        inner = inner[end[inner] > end[parent[inner]]]
        end[inner] = end[parent[inner]]
        # Whose end came nearer may now be passed by those within: look at them again.
        inner = np.flatnonzero(np.isin(parent, inner)) if len(inner) else inner
    return end
