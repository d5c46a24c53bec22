"""Broken images are gaps in the positions that came; out of order, a gap may still be filled."""

from pathlib import Path

import pytest

from timesink.datasets.images import ImageSet
from timesink.engines.bad_images import BadImages
from timesink.errors import BadImagesError


class Told:
    """A journal that keeps what it is told."""

    process = 1

    def __init__(self):
        self.paths = []

    def now_ns(self):
        return 0

    def account(self, name):
        raise AssertionError(name)

    def write(self, event, **fields):
        self.paths.append(fields["path"])


@pytest.fixture
def told():
    return Told()


def bad_images(told, max_bad=1.0):
    images = ImageSet(tuple(f"/photos/{n}.jpg" for n in range(10)), tuple(range(10)))
    return BadImages(images, Path("/photos"), "training", max_bad, lambda p: p % 10, told)


def test_a_position_that_is_passed_over_is_broken_and_told_once(told):
    bad = bad_images(told)
    bad.saw([0, 1, 3])
    bad.saw([4, 6])
    bad.saw([10, 11, 13])
    assert told.paths == ["2.jpg", "5.jpg", "7.jpg", "8.jpg", "9.jpg"]
    assert bad.next_position == 14


def test_out_of_order_a_gap_may_still_be_filled(told):
    bad = bad_images(told)
    bad.saw([0, 1, 4, 5], in_order=False)
    assert (told.paths, bad.next_position) == ([], 2)
    bad.saw([3, 2], in_order=False)
    assert (told.paths, bad.next_position) == ([], 6)


def test_when_order_comes_back_what_is_still_missing_is_broken(told):
    bad = bad_images(told)
    bad.saw([0, 1, 4, 5], in_order=False)
    bad.saw([3, 6, 7])
    assert (told.paths, bad.next_position) == (["2.jpg"], 8)


def test_at_the_end_only_what_does_not_decode_is_broken(told):
    bad = bad_images(told)
    bad.saw([0, 1, 2, 3, 4, 6], in_order=False)
    bad.saw_the_end(8)
    assert told.paths == ["5.jpg", "7.jpg"]  # there are no such files


def test_more_than_the_budget_is_an_error_that_names_the_last(told):
    bad = bad_images(told, max_bad=0.1)
    bad.saw([0, 2])
    with pytest.raises(BadImagesError, match=r"2 of 10 training images.*3\.jpg \(missing\)"):
        bad.saw([4])
