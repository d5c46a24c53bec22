"""The order of the images: computed, complete, and new each epoch."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from timesink.pipelines.order import Stream

streams = st.builds(
    Stream,
    seed=st.integers(0, 2**31 - 1),
    images=st.integers(8, 300),
    batch_size=st.integers(1, 8),
    shuffle=st.booleans(),
)


@given(streams, st.integers(0, 1000))
def test_an_epoch_holds_no_image_twice(stream, epoch):
    order = stream.order(epoch)
    assert len(order) == stream.images_per_epoch == len(set(order.tolist()))
    assert order.min() >= 0
    assert order.max() < stream.images


@given(streams, st.integers(0, 5000))
def test_a_position_always_names_the_same_image(stream, position):
    epoch, offset = divmod(position, stream.images_per_epoch)
    assert stream.image_at(position) == stream.order(epoch)[offset]
    assert stream.epoch_of(position) == epoch


def test_epochs_and_seeds_have_orders_of_their_own():
    orders = [
        Stream(seed, 100, 10, shuffle=True).order(epoch).tolist()
        for seed in (0, 1)
        for epoch in (0, 1)
    ]
    assert len({tuple(order) for order in orders}) == 4


def test_every_image_is_as_likely_at_every_place():
    stream = Stream(3, 10, 1, shuffle=True)
    counts = np.zeros((10, 10))
    for epoch in range(4000):
        counts[np.arange(10), stream.order(epoch)] += 1
    chi2_per_degree = ((counts - 400) ** 2 / 400).sum() / 81
    assert chi2_per_degree < 1.6


def test_without_shuffling_the_order_is_the_folders():
    assert Stream(0, 7, 2, shuffle=False).order(5).tolist() == [0, 1, 2, 3, 4, 5]
