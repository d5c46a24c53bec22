"""Every instant of a step is charged once, to whom it belongs, whatever the timeline."""

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.ledger.sweep import UNATTRIBUTED, Level, apportion, apportion_many, sweep

EPOCH_NS = 1_800_000_000_000_000_000
REST = (UNATTRIBUTED, UNATTRIBUTED)


def level(*intervals, shared=True):
    columns = np.array(intervals, np.int64).reshape(-1, 3).T
    return Level(*columns, shared=shared)


def swept(steps, levels):
    """(step, level, key) → (work, charged), with the promises that every result keeps."""
    begin, end = np.array(steps, np.int64).reshape(-1, 2).T
    charges = sweep(begin, end, levels)
    columns = (charges.step, charges.level, charges.key, charges.work_ns, charges.charged_ns)
    assert {column.dtype for column in columns} == {np.dtype(np.int64)}
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    found = {row[:3]: row[3:] for row in rows}
    assert list(found) == sorted(row[:3] for row in rows)
    for number, (step_begin, step_end) in enumerate(steps):
        assert (number, *REST) in found
        of_step = [charged for (step, _, _), (_, charged) in found.items() if step == number]
        assert sum(of_step) == step_end - step_begin
        assert min(of_step) >= 0
    return found


def charged(steps, levels):
    return {place: charged for place, (_, charged) in swept(steps, levels).items()}


# The same rules once more, slow and in fractions.


def reference(steps, levels):
    """(step, level, key) → work, and → exact charge."""
    work, exact = Counter(), Counter()
    for number, (step_begin, step_end) in enumerate(steps):
        cut = [
            [
                (max(begin, step_begin), min(end, step_end), key, (begin, -end, -key))
                for begin, end, key in zip(*(c.tolist() for c in columns), strict=True)
                if max(begin, step_begin) < min(end, step_end) and begin < end
            ]
            for columns in ((each.begin_ns, each.end_ns, each.key) for each in levels)
        ]
        for place, pieces in enumerate(cut):
            for begin, end, key, _ in pieces:
                work[number, place, key] += end - begin
        times = {step_begin, step_end, *(t for pieces in cut for p in pieces for t in p[:2])}
        borders = sorted(times)
        for left, right in pairwise(borders):
            for place, pieces in enumerate(cut):
                running = [p for p in pieces if p[0] <= left and right <= p[1]]
                if not running:
                    continue
                if not levels[place].shared:
                    running = [max(running, key=lambda piece: piece[3])]
                for _, _, key, _ in running:
                    exact[number, place, key] += Fraction(right - left, len(running))
                break
            else:
                exact[(number, *REST)] += right - left
    return work, exact


def largest_remainder(quotas):
    """Round a dict of fractions to integers of the same sum; ties go to the smaller key."""
    rounded = {key: quota.__floor__() for key, quota in quotas.items()}
    missing = sum(quotas.values()) - sum(rounded.values())
    for key in sorted(quotas, key=lambda key: (rounded[key] - quotas[key], key))[: int(missing)]:
        rounded[key] += 1
    return rounded


# Up to 16 at once: their shares then differ by 1/720720 or not at all, so roundings must agree.
# Few distinct times, so that borders often meet.
bases = st.sampled_from([0, -30, EPOCH_NS])
times = st.integers(0, 20)
intervals = st.lists(st.tuples(times, times, st.integers(0, 4)), max_size=16)
shared_levels = intervals.map(lambda rows: level(*rows))
levels_of_any_kind = st.lists(
    st.builds(lambda rows, shared: level(*rows, shared=shared), intervals, st.booleans()),
    max_size=3,
)
step_lists = st.lists(st.integers(2, 18), max_size=8).map(
    lambda times: list(zip(*[iter(sorted(times))] * 2, strict=False))
)


def shifted(each, by_ns):
    return Level(each.begin_ns + by_ns, each.end_ns + by_ns, each.key, each.shared)


@given(step_lists, levels_of_any_kind, bases)
def test_charges_are_those_of_the_slow_and_exact_model(steps, levels, base):
    steps = [(begin + base, end + base) for begin, end in steps]
    levels = [shifted(each, base) for each in levels]
    found = swept(steps, levels)
    work, exact = reference(steps, levels)
    assert {k: w for k, (w, _) in found.items() if k[1:] != REST} == dict(work)
    for place, (_, charge) in found.items():
        assert abs(charge - exact[place]) < 1
    for group in {place[:2] for place in work}:
        quotas = {place: exact[place] for place in work if place[:2] == group}
        assert {place: found[place][1] for place in quotas} == largest_remainder(quotas)


@given(step_lists, levels_of_any_kind)
def test_no_instant_is_counted_twice_and_none_is_lost(steps, levels):
    found = charged(steps, levels)
    for number, (step_begin, step_end) in enumerate(steps):
        free = set(range(step_begin, step_end))
        for place, each in enumerate(levels):
            running = {
                instant
                for begin, end in zip(each.begin_ns.tolist(), each.end_ns.tolist(), strict=True)
                for instant in range(begin, end)
            }
            of_level = [ns for (s, p, _), ns in found.items() if (s, p) == (number, place)]
            assert sum(of_level) == len(free & running)
            free -= running
        assert found[(number, *REST)] == len(free)


@given(step_lists, levels_of_any_kind)
def test_nobody_is_charged_more_than_it_worked(steps, levels):
    for place, (work, charge) in swept(steps, levels).items():
        assert charge <= work or place[1:] == REST


@given(step_lists, levels_of_any_kind, st.randoms())
def test_the_order_of_the_intervals_does_not_matter(steps, levels, random):
    mixed = []
    for each in levels:
        order = np.array(random.sample(range(len(each.key)), len(each.key)), np.int64)
        columns = (each.begin_ns[order], each.end_ns[order], each.key[order])
        mixed.append(Level(*columns, shared=each.shared))
    assert swept(steps, mixed) == swept(steps, levels)


@given(step_lists, intervals, shared_levels, st.data())
def test_an_interval_split_in_two_is_charged_as_before(steps, rows, weaker, data):
    halves = []
    for begin, end, key in rows:
        at = data.draw(st.integers(min(begin, end), max(begin, end)))
        halves += [(begin, at, key), (at, end, key)] if begin < end else []
    assert swept(steps, [level(*halves), weaker]) == swept(steps, [level(*rows), weaker])


@given(step_lists, levels_of_any_kind, shared_levels)
def test_a_weaker_level_takes_only_from_the_unattributed(steps, levels, weaker):
    before, after = swept(steps, levels), swept(steps, [*levels, weaker])
    for number in range(len(steps)):
        rest = (number, *REST)
        added = sum(ns for p, (_, ns) in after.items() if p[:2] == (number, len(levels)))
        assert before.pop(rest)[1] == after.pop(rest)[1] + added
    assert {place: row for place, row in after.items() if place[1] < len(levels)} == before


@pytest.mark.parametrize("longest_ns", [10_000, 3_000_000])
def test_many_intervals_of_real_lengths_stay_within_a_nanosecond(longest_ns):
    random = np.random.default_rng(longest_ns)
    steps = [(EPOCH_NS + at, EPOCH_NS + at + 900_001) for at in (0, 900_001, 2_000_000)]
    begin = EPOCH_NS + random.integers(-1_000_000, 3_000_000, 150)
    ops = Level(
        begin, begin + random.integers(0, longest_ns, 150), random.integers(0, 9, 150), True
    )
    waits = shifted(Level(ops.begin_ns, ops.end_ns, ops.key, False), 70_007)
    found = swept(steps, [ops, waits])
    _, exact = reference(steps, [ops, waits])
    assert all(abs(charge - exact[place]) < 1 for place, (_, charge) in found.items())


def test_no_fraction_is_lost_among_thousands_at_once():
    # GIVEN pairs of equal intervals, each pair within the one before
    pairs = [(at, 10**9 - 3 * at, key) for at in range(0, 60_000, 3) for key in (0, 1)]
    # WHEN, THEN the two keys are charged half each
    assert charged([(0, 10**9)], [level(*pairs)]) == {
        (0, *REST): 0,
        (0, 0, 0): 500_000_000,
        (0, 0, 1): 500_000_000,
    }


def test_two_ops_at_once_are_charged_half_each():
    # GIVEN two ops of which the second starts while the first runs
    ops = level((0, 60, 1), (40, 100, 2))
    # WHEN the step is charged
    found = swept([(0, 100)], [ops])
    # THEN the 20 ns of overlap are split, while each one's work counts whole
    assert found == {(0, *REST): (0, 0), (0, 0, 1): (60, 50), (0, 0, 2): (60, 50)}


def test_nanoseconds_that_cannot_be_split_go_to_the_smaller_keys():
    # GIVEN three ops that run for the same 11 ns
    ops = level((0, 11, 7), (0, 11, 5), (0, 11, 6))
    # WHEN, THEN 3⅔ each is rounded so that the sum is 11
    assert charged([(0, 11)], [ops]) == {
        (0, *REST): 0,
        (0, 0, 5): 4,
        (0, 0, 6): 4,
        (0, 0, 7): 3,
    }


def test_thirds_that_make_a_whole_are_whole():
    # GIVEN one key that has a third of three times 1 ns, beside others
    ops = level(*[(at, at + 1, key) for at in range(3) for key in (9, 2 * at, 2 * at + 1)])
    # WHEN, THEN it is charged 1, and the other 2 ns go to the smallest of the equal thirds
    found = charged([(0, 3)], [ops])
    assert found == {
        (0, *REST): 0,
        **{(0, 0, key): int(key in (0, 1, 9)) for key in (*range(6), 9)},
    }


def test_a_third_and_a_sixth_tie_with_a_half():
    # GIVEN key 1 with ⅓ + ⅙ ns, keys 2 to 5 with ½ each, and others with less
    at_once = [(1, 6, 7), (1, 8, 9, 10, 11, 12), (2, 3), (4, 5)]
    ops = level(*[(at, at + 1, key) for at, keys in enumerate(at_once) for key in keys])
    # WHEN, THEN the 4 ns go to the smallest keys of those that have a half
    found = charged([(0, 4)], [ops])
    assert [key for (_, _, key), ns in found.items() if ns] == [1, 2, 3, 4]


def test_an_op_over_a_steps_border_is_charged_to_both_steps_but_not_to_the_gap():
    # GIVEN an op that begins in the first step and ends in the third; the second is short
    ops = level((90, 230, 0))
    # WHEN the steps are charged; there is a gap from 120 to 200
    found = charged([(0, 100), (100, 120), (200, 300)], [ops])
    # THEN each step is charged for what lies within it
    assert found == {
        (0, *REST): 90,
        (0, 0, 0): 10,
        (1, *REST): 0,
        (1, 0, 0): 20,
        (2, *REST): 70,
        (2, 0, 0): 30,
    }


def test_a_nested_callback_takes_its_time_from_the_one_that_called_it():
    # GIVEN a callback (0) that calls another (1), which calls a third (2)
    callbacks = level((10, 90, 0), (20, 60, 1), (30, 40, 2), shared=False)
    # WHEN the step is charged
    found = swept([(0, 100)], [callbacks])
    # THEN each is charged for the time in which it had called nobody
    assert found == {
        (0, *REST): (0, 20),
        (0, 0, 0): (80, 40),
        (0, 0, 1): (40, 30),
        (0, 0, 2): (10, 10),
    }


@pytest.mark.parametrize(
    ("rows", "charges"),
    [
        ([(0, 9, 0), (0, 4, 1)], {0: 5, 1: 4}),  # the one that ends first
        ([(0, 9, 1), (0, 9, 0)], {0: 9, 1: 0}),  # then the smaller key
    ],
)
def test_of_those_that_began_together_one_is_the_innermost(rows, charges):
    found = charged([(0, 9)], [level(*rows, shared=False)])
    assert {key: ns for (_, _, key), ns in found.items() if key >= 0} == charges


def test_the_innermost_stays_the_innermost_in_the_next_step():
    # GIVEN two callbacks that both began before the step, the inner one with the larger key
    callbacks = level((0, 300, 0), (50, 300, 1), shared=False)
    # WHEN, THEN the later step still knows which one began last
    assert charged([(100, 200)], [callbacks])[0, 0, 1] == 100


def test_a_wait_is_charged_only_while_no_op_runs():
    # GIVEN an op within a wait
    ops, waits = level((20, 50, 3)), level((10, 80, 4), shared=False)
    # WHEN the step is charged
    found = swept([(0, 100)], [ops, waits])
    # THEN the wait's work counts whole, its charge without the op; the gaps are unattributed
    assert found == {(0, *REST): (0, 30), (0, 0, 3): (30, 30), (0, 1, 4): (70, 40)}


def test_steps_without_intervals_are_unattributed_and_no_steps_give_no_rows():
    assert charged([(0, 5), (5, 5), (9, 10)], [level()]) == {
        (i, *REST): (5, 0, 1)[i] for i in range(3)
    }
    assert charged([], [level((0, 9, 0)), level((0, 9, 0), shared=False)]) == {}


def test_unsigned_times_lose_no_nanosecond():
    # GIVEN columns as a trace's reader may hold them
    begin, end, key = (np.array([n], np.uint64) for n in (EPOCH_NS + 1, EPOCH_NS + 4, 0))
    # WHEN, THEN no float comes between
    found = charged([(EPOCH_NS, EPOCH_NS + 7)], [Level(begin, end, key, shared=True)])
    assert found == {(0, *REST): 4, (0, 0, 0): 3}


@pytest.mark.parametrize("steps", [[(0, 10), (9, 20)], [(10, 20), (0, 5)], [(5, 0)]])
def test_steps_that_overlap_or_run_backwards_are_refused(steps):
    with pytest.raises(ValueError, match="sorted and disjoint"):
        swept(steps, [])


def test_a_negative_key_is_refused_because_it_means_unattributed():
    with pytest.raises(ValueError, match="level 1: a key is negative"):
        swept([(0, 1)], [level(), level((0, 1, -1))])


# Splitting one integer.

weight_lists = st.lists(st.floats(0, 1e300), min_size=1, max_size=12)


@given(st.integers(0, 10**12), weight_lists)
def test_parts_sum_to_the_total_and_are_near_their_quota(total, weights):
    parts = apportion(total, weights)
    assert sum(parts) == total
    whole = sum(map(Fraction, weights))
    for part, weight in zip(parts, weights, strict=True):
        quota = total * Fraction(weight) / whole if whole else Fraction(total, len(weights))
        assert part >= 0
        assert abs(part - quota) < 1 + Fraction(1, 10**3)
        assert part == 0 or weight > 0 or not whole


@given(st.integers(0, 10**6), st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_whole_numbered_weights_are_rounded_by_largest_remainder(total, weights):
    whole = sum(weights) or len(weights)
    quotas = {i: Fraction(total * (w if any(weights) else 1), whole) for i, w in enumerate(weights)}
    assert apportion(total, weights) == list(largest_remainder(quotas).values())


def test_equal_remainders_go_to_the_first_also_beside_larger_quotas():
    assert apportion(3, [1, 1, 7]) == [1, 0, 2]  # ⅓, ⅓, 2⅓


@given(st.integers(2**52, 2**62), weight_lists)
def test_totals_beyond_a_floats_precision_still_sum(total, weights):
    parts = apportion(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 0


@given(st.lists(st.tuples(st.integers(0, 10**9), weight_lists), max_size=6))
def test_many_totals_are_split_as_each_alone(groups):
    offsets = np.cumsum([0, *(len(weights) for _, weights in groups)])
    weights = np.array([w for _, weights in groups for w in weights], np.float64)
    parts = apportion_many(np.array([t for t, _ in groups], np.int64), offsets, weights)
    assert parts.tolist() == [p for total, weights in groups for p in apportion(total, weights)]


@pytest.mark.parametrize(
    ("total", "weights"),
    [(1, []), (-1, [1.0]), (2**63 - 1, [1.0]), (1, [-1.0, 2.0]), (1, [float("nan")])],
)
def test_what_cannot_be_split_is_refused(total, weights):
    with pytest.raises(ValueError, match="weight"):
        apportion(total, weights)
