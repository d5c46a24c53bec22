"""Intervals within intervals: whose the time is, against a count nanosecond by nanosecond."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from timesink.ledger.nesting import Nesting, in_order, within

interval = st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12))


def columns(intervals):
    """Threads, begins and ends, in order."""
    thread, begin, length = np.array(intervals, np.int64).reshape(-1, 3).T
    order = in_order(thread, begin, begin + length)
    return thread[order], begin[order], (begin + length)[order]


def counted(thread, begin, end, from_ns, to_ns):
    """Give each instant to the interval that began last; of those, to the last in order."""
    own = Counter()
    for each in set(thread.tolist()):
        for instant in range(from_ns, to_ns):
            running = np.flatnonzero((thread == each) & (begin <= instant) & (instant < end))
            if len(running):
                own[int(running[-1])] += 1
    return [own[place] for place in range(len(thread))]


@given(st.lists(interval, max_size=12), st.integers(0, 20), st.integers(0, 25))
def test_at_each_instant_the_interval_that_began_last_has_the_time(intervals, from_ns, length):
    thread, begin, end = columns(intervals)
    own_ns = Nesting(thread, begin, end).own_ns(from_ns, from_ns + length)
    assert own_ns.tolist() == counted(thread, begin, end, from_ns, from_ns + length)


@given(st.lists(interval, max_size=12), st.sets(st.integers(0, 11)))
def test_the_parts_of_an_interval_sum_to_its_own_time(intervals, chosen):
    thread, begin, end = columns(intervals)
    nesting = Nesting(thread, begin, end)
    mask = np.isin(np.arange(len(thread)), list(chosen))
    whose, part_begin, part_end = nesting.own_parts(mask)
    summed = np.zeros(len(thread), np.int64)
    np.add.at(summed, whose, part_end - part_begin)
    assert (part_end >= part_begin).all()
    assert summed[mask].tolist() == nesting.own_ns(0, 1000)[mask].tolist()
    assert not summed[~mask].any()


@given(st.lists(interval, max_size=12))
def test_the_one_around_an_interval_holds_all_of_it_on_the_same_thread(intervals):
    thread, begin, end = columns(intervals)
    for place, parent in enumerate(Nesting(thread, begin, end).parent):
        if parent >= 0:
            assert thread[parent] == thread[place]
            assert begin[parent] <= begin[place] <= end[place] <= end[parent]


def test_the_innermost_of_several_around_an_interval_is_its_parent():
    thread, begin, end = columns([(0, 0, 30), (0, 5, 10), (0, 6, 4), (0, 20, 5), (1, 7, 1)])
    assert Nesting(thread, begin, end).parent.tolist() == [-1, 0, 1, 0, -1]


def test_what_lies_within_an_outer_one_is_found_through_those_between():
    thread, begin, end = columns([(0, 0, 30), (0, 5, 10), (0, 6, 4), (0, 31, 5), (1, 7, 1)])
    outer = np.array([True, False, False, False, False])
    assert within(thread, begin, end, outer).tolist() == [False, True, True, False, False]


def test_times_of_a_wall_clock_and_many_threads_lose_no_nanosecond():
    epoch = 1_790_000_000_000_000_000
    thread = np.arange(5000) // 2
    begin = np.where(np.arange(5000) % 2, epoch + 1, epoch)
    end = np.where(np.arange(5000) % 2, epoch + 2, epoch + 1_000_000_000)
    own_ns = Nesting(thread, begin, end).own_ns(epoch, epoch + 2_000_000_000)
    assert own_ns[:2].tolist() == [999_999_999, 1]
    assert own_ns.sum() == 2500 * 1_000_000_000
