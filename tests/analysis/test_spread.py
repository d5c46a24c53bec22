"""Repetitions: their median and range, what is noise, and how sure a range is."""

import itertools

import pytest

from timesink.analysis.spread import range_confidence, spread


def test_repetitions_are_summed_up_by_median_and_range():
    found = spread([3.0, 1.0, 2.0])
    assert (found.median, found.low, found.high, found.count) == (2.0, 1.0, 3.0, 3)


@pytest.mark.parametrize(
    ("one", "other", "apart"),
    [([1, 2], [3, 4], True), ([3, 4], [1, 2], True), ([1, 3], [2, 4], False), ([1], [1], False)],
)
def test_ranges_that_meet_are_noise(one, other, apart):
    assert spread(one).apart_from(spread(other)) is apart


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_confidence_of_a_range_is_how_often_it_holds_the_median(count):
    # Each repetition is below or above the true median with the same chance.
    sides = list(itertools.product((False, True), repeat=count))
    held = sum(len(set(each)) == 2 for each in sides) / len(sides)
    assert range_confidence(count) == pytest.approx(held)
