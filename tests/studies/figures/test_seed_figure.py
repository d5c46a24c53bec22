"""The verdict on a figure: by comparisons beyond the noise, and a warning where noise is larger."""

import pytest

from timesink.analysis.spread import compared, spread
from timesink.studies.figures.seed_figure import agreement_of, noise_in, repeated

SMALLER = (spread([1, 2]), spread([3, 4]))
LARGER = (spread([5, 6]), spread([3, 4]))
NOISE = (spread([1, 4]), spread([3, 5]))
ONCE = (spread([1]), spread([2]))
OF_THREE = (spread([1, 1, 2]), spread([3, 4, 4]))
NOISE_OF_THREE = (spread([1, 2, 4]), spread([3, 4, 5]))


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([], "not measured"),
        ([NOISE], "undecided"),
        ([SMALLER, SMALLER], "agrees"),
        ([LARGER, LARGER], "differs"),
        ([OF_THREE], "agrees"),
        ([OF_THREE, NOISE_OF_THREE], "undecided"),
        ([OF_THREE, OF_THREE, NOISE_OF_THREE], "agrees"),
        ([OF_THREE, OF_THREE, *[NOISE_OF_THREE] * 3], "undecided"),
        ([*[SMALLER] * 3, *[LARGER] * 3], "undecided"),
        ([*[LARGER] * 5, SMALLER], "differs"),
    ],
)
def test_most_comparisons_have_to_point_one_way_beyond_the_noise(pairs, verdict):
    assert agreement_of(pairs) == verdict


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        # Two values below two others: one case of six where nothing differs.
        ([SMALLER], "undecided"),
        ([SMALLER, NOISE], "undecided"),
        ([ONCE], "undecided"),
        ([ONCE] * 4, "undecided"),
        ([ONCE] * 5, "agrees"),
    ],
)
def test_what_points_one_way_by_chance_too_often_decides_nothing(pairs, verdict):
    assert agreement_of(pairs) == verdict


def test_comparisons_are_counted():
    assert compared([SMALLER, LARGER, NOISE, NOISE]) == (1, 1, 2)


def test_noise_that_is_larger_than_the_difference_is_said():
    assert noise_in([SMALLER]) == ""
    assert noise_in([NOISE]) == " The noise is larger than the difference."
    assert noise_in([SMALLER, NOISE]).startswith(" In 1 of 2 comparisons the noise is larger")
    # Of one measurement each nobody knows: `repeated` says so.
    assert noise_in([(spread([1]), spread([1]))]) == ""


def test_what_repetitions_are_worth_is_said():
    assert "Measured once" in repeated([spread([1])])
    words = repeated([spread([1, 2, 3]), spread([1, 2, 3, 4])])
    assert words.startswith("Medians of 3 repetitions")
    assert "75 % confidence" in words
    assert repeated([]) == ""
