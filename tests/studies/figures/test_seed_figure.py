"""The verdict on a figure: by comparisons beyond the noise, and a warning where noise is larger."""

import pytest

from timesink.analysis.spread import spread
from timesink.studies.figures.seed_figure import agreement_of, compared, noise_in, repeated

SMALLER = (spread([1, 2]), spread([3, 4]))
LARGER = (spread([5, 6]), spread([3, 4]))
NOISE = (spread([1, 4]), spread([3, 5]))


@pytest.mark.parametrize(
    ("pairs", "verdict"),
    [
        ([], "not measured"),
        ([SMALLER], "agrees"),
        ([LARGER], "differs"),
        ([NOISE], "undecided"),
        ([SMALLER, NOISE], "agrees"),
        ([SMALLER, NOISE, NOISE], "undecided"),
        ([SMALLER, LARGER], "undecided"),
        ([LARGER, LARGER, SMALLER], "differs"),
    ],
)
def test_most_comparisons_have_to_point_one_way_beyond_the_noise(pairs, verdict):
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
