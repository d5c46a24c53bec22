"""Which batches of a pipeline are measured, and which are warm-up."""

import pytest
import tensorflow as tf

from timesink.engines.tensorflow.input_alone import Length, measure


def batches(count: int, images: int = 4):
    """Batches that are there at once."""
    return iter([tf.zeros((images, 2, 2, 3))] * count)


def test_warm_up_is_not_measured():
    found = measure(batches(100), Length(warm_up_batches=5, warm_up_s=0, batches=20), None)
    assert (found.warm_up_batches, len(found.batch_ms), found.images) == (5, 20, 80)
    assert found.taken_images == 100
    assert not found.ended


@pytest.mark.parametrize("count", [2, 6, 10])
def test_of_batches_that_come_once_only_the_first_is_warm_up_where_most_came_in_it(count):
    found = measure(batches(count), Length(warm_up_batches=6, warm_up_s=0), None)
    assert (found.warm_up_batches, len(found.batch_ms)) == (1, count - 1)
    assert found.images == 4 * (count - 1)
    assert found.taken_images == 4 * count
    assert found.wall_s == pytest.approx(sum(found.batch_ms) / 1e3)
    assert found.ended


def test_a_warm_up_that_leaves_enough_stays_one():
    found = measure(batches(12), Length(warm_up_batches=5, warm_up_s=0), None)
    assert (found.warm_up_batches, len(found.batch_ms), found.ended) == (5, 7, True)


def test_the_only_batch_is_measured():
    found = measure(batches(1), Length(), None)
    assert (found.warm_up_batches, len(found.batch_ms), found.images) == (0, 1, 4)


def test_nothing_is_nothing():
    found = measure(batches(0), Length(), None)
    assert (found.images, found.batch_ms, found.taken_images) == (0, (), 0)
