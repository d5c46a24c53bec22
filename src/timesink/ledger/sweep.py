"""Steps and intervals in, charges out: each step's wall time charged once, to the nanosecond.

    intervals → innermost → cut at steps' borders → split where several run → settled → Charges

All in integers, so neither the intervals' order nor the epoch changes a nanosecond.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNATTRIBUTED = -1
"""The level and the key of the time that no interval covers."""


@dataclass(frozen=True, eq=False)
class Level:
    """Intervals of one strength: what a stronger level covers, this one cannot be charged for."""

    begin_ns: Ints
    end_ns: Ints
    key: Ints
    """Who is charged: the caller's numbers, 0 or more."""
    shared: bool
    """True: an instant is split equally among the intervals that run then. False: it goes to the
    innermost: the one that began last; of those the one that ends first, then the smaller key."""


@dataclass(frozen=True, eq=False)
class Charges:
    """Columns sorted by (step, level, key): a row for each that worked, and one for the rest."""

    step: Ints
    level: Ints
    key: Ints
    work_ns: Ints
    """What its intervals took within the step, hidden or not; those that overlap count each."""
    charged_ns: Ints
    """Its part of the step's wall; the parts of a step sum to its length."""


def sweep(step_begin_ns: Ints, step_end_ns: Ints, levels: Sequence[Level]) -> Charges:
    """Charge every instant of every step to the strongest level that covers it, else to the rest.

    Steps are sorted and disjoint; gaps between them are charged to nobody. Intervals come in any
    order and may reach over steps' borders; those of no or negative length are ignored.
    """
    steps = _Steps(_int64(step_begin_ns), _int64(step_end_ns))
    works = [_cut(*_columns(level, place), steps) for place, level in enumerate(levels)]
    claims = [
        work if level.shared else _cut(*_innermost(*_columns(level, place)), steps)
        for place, (level, work) in enumerate(zip(levels, works, strict=True))
    ]
    borders = _distinct(
        [steps.begin_ns, steps.end_ns, *(side for each in claims for side in each.sides)]
    )
    length_ns = np.diff(borders)
    rest_ns = steps.end_ns - steps.begin_ns
    rows: list[tuple[Ints, Ints, Ints, Ints, Ints]] = []
    for place, (work, claim) in enumerate(zip(works, claims, strict=True)):
        if not len(work.key):
            continue
        keys = _distinct([work.key])
        account = _account(work, keys)
        accounts = _distinct([account])
        step, key = np.divmod(accounts, max(len(keys), 1))
        owner = np.searchsorted(accounts, account)
        work_ns = _sum_by(owner, work.end_ns - work.begin_ns, len(accounts))
        if claim is not work:
            owner = np.searchsorted(accounts, _account(claim, keys))
        del account
        taken_ns, whole_ns, fraction = _share(claim, owner, len(accounts), borders, length_ns)
        length_ns -= taken_ns  # what is left for the weaker levels
        until = _running_sum(taken_ns)
        first, last = (np.searchsorted(borders, side) for side in (steps.begin_ns, steps.end_ns))
        covered_ns = until[last] - until[first]
        offsets = np.searchsorted(step, np.arange(len(rest_ns) + 1))
        charged_ns = _settle(covered_ns, offsets, whole_ns, fraction)
        rest_ns -= covered_ns
        borders, length_ns = _unspent(borders, length_ns)
        rows.append((step, np.full_like(step, place), keys[key], work_ns, charged_ns))
    nobody = np.full_like(rest_ns, UNATTRIBUTED)
    rows.append((np.arange(len(rest_ns)), nobody, nobody, np.zeros_like(rest_ns), rest_ns))
    columns = [np.concatenate(column) for column in zip(*rows, strict=True)]
    order = np.lexsort((columns[1], columns[0]))  # stable: keys are in order already
    return Charges(*(column[order] for column in columns))


def apportion(total_ns: int, weights: Sequence[float]) -> list[int]:
    """Split an integer by weights into integers that sum to it, by largest remainder."""
    offsets = np.array([0, len(weights)])
    parts = apportion_many(np.array([total_ns]), offsets, np.array(weights, np.float64))
    return [int(part) for part in parts]


def apportion_many(totals_ns: Ints, offsets: Ints, weights: Floats) -> Ints:
    """Split each total by its weights, `weights[offsets[i]:offsets[i + 1]]`, by largest remainder.

    Ties go to the first. Weights that are all 0 say nothing: their total is split equally.
    """
    totals_ns, offsets = _int64(totals_ns), _int64(offsets)
    sizes = np.diff(offsets)
    if len(sizes) != len(totals_ns) or offsets[0] != 0 or offsets[-1] != len(weights):
        raise ValueError("offsets must run from 0 to the number of weights, one more than totals")
    if np.any(sizes < 0) or np.any((sizes == 0) & (totals_ns != 0)):
        raise ValueError("every total needs at least one weight")
    if np.any((totals_ns < 0) | (totals_ns > 1 << 62)):
        raise ValueError("a total must be from 0 to 2**62, whatever its weights")
    if not np.all(np.isfinite(weights) & (weights >= 0)):
        raise ValueError("weights must be finite and not negative")
    group = np.repeat(np.arange(len(sizes)), sizes)
    largest = np.zeros(len(sizes))
    np.maximum.at(largest, group, weights)
    weights = np.where(largest[group] == 0, 1.0, weights)
    # By a power of two, which rounds nothing: whole-numbered weights still give exact quotients.
    weights = np.ldexp(weights, -np.frexp(largest)[1][group])
    sums = np.bincount(group, weights, minlength=len(sizes))
    quota = totals_ns[group] * weights / sums[group]
    floor = np.floor(quota)
    # Rounded, so that 1/3 and 4/3 leave the same remainder.
    return _settle(totals_ns, offsets, floor.astype(np.int64), np.rint((quota - floor) * 2.0**24))


class _Steps:
    """The steps' borders, checked."""

    def __init__(self, begin_ns: Ints, end_ns: Ints) -> None:
        if begin_ns.shape != end_ns.shape:
            raise ValueError("every step needs a beginning and an end")
        if np.any(end_ns < begin_ns) or np.any(begin_ns[1:] < end_ns[:-1]):
            raise ValueError("steps must be sorted and disjoint")
        self.begin_ns, self.end_ns = begin_ns, end_ns


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Intervals that lie within one step each."""

    step: Ints
    begin_ns: Ints
    end_ns: Ints
    key: Ints

    @property
    def sides(self) -> tuple[Ints, Ints]:
        return self.begin_ns, self.end_ns


def _int64(column: Ints) -> Ints:
    # An unsigned column would meet a signed one as floats, and lose nanoseconds.
    return np.asarray(column, dtype=np.int64)


def _columns(level: Level, place: int) -> tuple[Ints, Ints, Ints]:
    """Begin, end and key of a level's intervals, checked, in order of beginning."""
    begin_ns, end_ns, key = _int64(level.begin_ns), _int64(level.end_ns), _int64(level.key)
    if not begin_ns.shape == end_ns.shape == key.shape:
        raise ValueError(f"level {place}: columns of different lengths")
    if np.any(key < 0):
        raise ValueError(f"level {place}: a key is negative")
    # Only for speed: searching for scattered times costs more than this sort.
    order = np.argsort(begin_ns)
    return begin_ns[order], end_ns[order], key[order]


def _innermost(begin_ns: Ints, end_ns: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """Flatten intervals to disjoint ones: at each instant the one that began last.

    Before they are cut at steps' borders, because a cut would forget which began last.
    """
    order = np.lexsort((-key, -end_ns, begin_ns))
    flat: list[tuple[int, int, int]] = []
    running: list[tuple[int, int]] = []  # in order of beginning, so the last one is innermost
    at_ns = 0

    def paint(until_ns: int | None) -> None:
        nonlocal at_ns
        while running and (until_ns is None or at_ns < until_ns):
            end, who = running[-1]
            if end <= at_ns:
                running.pop()
                continue
            upto_ns = end if until_ns is None else min(end, until_ns)
            flat.append((at_ns, upto_ns, who))
            at_ns = upto_ns

    columns = (column[order].tolist() for column in (begin_ns, end_ns, key))
    for begin, end, who in zip(*columns, strict=True):
        paint(begin)
        at_ns = begin
        running.append((end, who))
    paint(None)
    begins, ends, keys = np.array(flat, np.int64).reshape(-1, 3).T
    return begins, ends, keys


def _cut(begin_ns: Ints, end_ns: Ints, key: Ints, steps: _Steps) -> _Pieces:
    """Cut intervals at the steps' borders, and drop what lies outside."""
    first = np.searchsorted(steps.end_ns, begin_ns, side="right")
    count = np.searchsorted(steps.begin_ns, end_ns, side="left") - first
    np.maximum(count, 0, out=count)
    source = np.repeat(np.arange(len(key)), count)
    step = np.arange(len(source)) + (first - np.cumsum(count) + count)[source]
    begin_ns = np.maximum(begin_ns[source], steps.begin_ns[step])
    end_ns = np.minimum(end_ns[source], steps.end_ns[step])
    key = key[source]
    real = end_ns > begin_ns  # false for a step or an interval of no length
    if real.all():
        return _Pieces(step, begin_ns, end_ns, key)
    return _Pieces(step[real], begin_ns[real], end_ns[real], key[real])


def _distinct(columns: Sequence[Ints]) -> Ints:
    """Sort all times into one column without repeats."""
    times = np.concatenate(columns)
    times.sort()  # not np.unique: it hashes, which is slow where few are repeated
    fresh = np.ones(len(times), np.bool_)
    np.not_equal(times[1:], times[:-1], out=fresh[1:])
    return times[fresh]


def _unspent(borders: Ints, length_ns: Ints) -> tuple[Ints, Ints]:
    """Merge neighbours that have no time left. Only for speed: ops leave little to the others."""
    left = length_ns > 0
    kept = np.ones(len(borders), np.bool_)
    kept[1:-1] = left[1:] | left[:-1]
    return borders[kept], length_ns[kept[:-1]]


def _running_sum(column: Ints) -> Ints:
    """Give the sum of all before each place, and at the end of all."""
    until = np.zeros(len(column) + 1, np.int64)
    np.cumsum(column, out=until[1:])
    return until


def _account(pieces: _Pieces, keys: Ints) -> Ints:
    """Number each piece's (step, key) so that the numbers sort like the pairs."""
    return pieces.step * len(keys) + np.searchsorted(keys, pieces.key)


def _sum_by(owner: Ints, values: Ints, owners: int) -> Ints:
    sums = np.zeros(owners, np.int64)
    np.add.at(sums, owner, values)  # np.bincount would add as floats
    return sums


def _share(
    pieces: _Pieces, owner: Ints, owners: int, borders: Ints, free_ns: Ints
) -> tuple[Ints, Ints, Ints]:
    """Split the free time between borders equally among the pieces that run there.

    Gives the time taken between borders, and for each owner whole nanoseconds and a fraction.
    A piece's charge is C(end) - C(begin), C(t) the time until t each divided by how many ran: so
    pieces need not be laid out segment by segment. C is kept as whole nanoseconds and a binary
    fraction of as many bits as its sums leave room for.
    """
    size = max(len(borders), len(owner)).bit_length()
    bits = 62 - size
    begin, end = np.searchsorted(borders, pieces.begin_ns), np.searchsorted(borders, pieces.end_ns)
    running = np.bincount(begin, minlength=len(borders))
    running -= np.bincount(end, minlength=len(borders))
    running = np.cumsum(running)[:-1]
    taken_ns = np.where(running > 0, free_ns, 0)
    np.maximum(running, 1, out=running)
    whole, left = np.divmod(taken_ns, running)
    until = _running_sum(whole)
    charge = until[end] - until[begin]
    until = _running_sum((left << bits) // running)
    fraction = until[end] - until[begin]
    del until, whole, left, running
    charge += fraction >> bits
    fraction &= (1 << bits) - 1
    whole_ns = _sum_by(owner, charge, owners)
    fine = _sum_by(owner, fraction, owners)
    # Cutting off below the last bit leaves 1/3 + 2/3 just under 1: to coarser steps, of which all
    # owners' together are still less than a nanosecond, so that whole and equal shares are seen.
    coarse = max(24, size + 1)
    fine = (fine + (1 << (bits - coarse - 1))) >> (bits - coarse)
    return taken_ns, whole_ns + (fine >> coarse), fine & ((1 << coarse) - 1)


def _settle(totals_ns: Ints, offsets: Ints, floor_ns: Ints, remainder: Ints | Floats) -> Ints:
    """Raise floors by 1, the largest remainder first, until each group sums to its total."""
    group = np.repeat(np.arange(len(totals_ns)), np.diff(offsets))
    place = np.arange(len(group)) - offsets[group]
    missing = totals_ns - np.diff(_running_sum(floor_ns)[offsets])
    order = np.lexsort((-remainder, group))  # stable: ties go to the first
    settled = floor_ns.copy()
    settled[order] += place < missing[group]
    drift = totals_ns - np.diff(_running_sum(settled)[offsets])
    if drift.any():  # floats' own error, in totals of weeks: least felt by the largest part
        order = np.lexsort((-settled, group))
        settled[order] += np.where(place == 0, drift[group], 0)
    return settled
