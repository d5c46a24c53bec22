"""Which steps are traced: alternating stretches, fewer of them in a short run, never the first."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.engines.windows import plan_windows
from timesink.experiment import ProfileSection


def plan(first, last, **profile):
    windows = plan_windows(ProfileSection(**profile), first, last)
    return [(window.start, window.stop - 1) for window in windows]


def test_by_default_twenty_steps_are_traced_after_twenty():
    assert plan(1, 500) == [(21, 40)]


def test_traced_and_untraced_stretches_alternate():
    assert plan(1, 500, windows=3, steps=10) == [(21, 30), (41, 50), (61, 70)]


def test_the_warm_up_can_be_chosen():
    assert plan(1, 500, start=7, steps=5) == [(8, 12)]


def test_the_first_step_is_never_traced():
    assert plan(1, 500, start=0, steps=5) == [(2, 6)]
    assert plan(1, 500, mode="every", start=0, steps=250) == [(2, 251), (252, 500)]


def test_a_resumed_process_counts_from_its_own_first_step():
    assert plan(101, 600) == [(121, 140)]
    assert plan(101, 130, mode="every", steps=20) == [(102, 121), (122, 130)]


@pytest.mark.parametrize(
    ("steps", "traced"),
    [
        (1, []),
        (2, []),
        (3, [(2, 2)]),
        (4, [(3, 3)]),
        (10, [(5, 7)]),
        (30, [(11, 20)]),
        (59, [(21, 39)]),
        (60, [(21, 40)]),
    ],
)
def test_a_short_run_is_cut_into_untraced_traced_and_untraced(steps, traced):
    assert plan(1, steps) == traced


def test_a_short_run_keeps_all_its_windows_as_long_as_it_has_the_steps():
    assert plan(1, 15, windows=3) == [(4, 5), (8, 9), (12, 13)]
    assert plan(1, 8, windows=3) == [(3, 3), (5, 5), (7, 7)]
    assert plan(1, 5, windows=3) == [(2, 2), (4, 4)]


def test_short_windows_leave_a_short_run_its_warm_up():
    assert plan(1, 45, steps=10) == [(21, 30)]
    assert plan(1, 20, steps=5) == [(11, 15)]


def test_a_chosen_warm_up_is_kept_in_a_short_run_as_far_as_one_step_is_left():
    assert plan(1, 30, start=20) == [(21, 25)]
    assert plan(1, 30, start=29) == [(30, 30)]
    assert plan(1, 30, start=1000) == [(30, 30)]


def test_every_step_is_traced_in_files_back_to_back():
    assert plan(1, 12, mode="every", steps=5) == [(2, 6), (7, 11), (12, 12)]
    assert plan(1, 12, mode="every", steps=5, start=4) == [(5, 9), (10, 12)]


def test_off_traces_nothing():
    assert plan(1, 500, mode="off") == []


@pytest.mark.parametrize("mode", ["window", "every"])
def test_no_steps_give_no_windows(mode):
    assert plan(501, 500, mode=mode) == []


@given(
    first=st.integers(1, 1000),
    count=st.integers(3, 300),
    windows=st.integers(1, 12),
    steps=st.integers(1, 60),
    start=st.none() | st.integers(0, 400),
)
def test_whatever_is_asked_something_is_traced_and_compared(first, count, windows, steps, start):
    last = first + count - 1
    planned = plan(first, last, windows=windows, steps=steps, start=start)
    assert 1 <= len(planned) <= windows
    lengths = {end - begin + 1 for begin, end in planned}
    assert len(lengths) == 1
    (length,) = lengths
    assert 1 <= length <= steps
    # Never the first step, never one that will not be done.
    assert first < planned[0][0]
    assert planned[-1][1] <= last
    # Between two windows as many steps are not traced as in a window; after the last one too,
    # unless a chosen warm-up left a single step.
    for (_, end), (begin, _) in pairwise(planned):
        assert begin - end - 1 == length
    assert last - planned[-1][1] >= length or planned == [(last, last)]
    if start is None and count > 3:
        assert planned[0][0] >= first + 2 or len(planned) > 1


@given(first=st.integers(1, 1000), count=st.integers(0, 300), steps=st.integers(1, 60))
def test_every_leaves_out_only_the_first_step(first, count, steps):
    profile = ProfileSection(mode="every", steps=steps)
    files = plan_windows(profile, first, first + count - 1)
    assert [n for file in files for n in file] == list(range(first + 1, first + count))
    assert all(len(file) == steps for file in files[:-1])
