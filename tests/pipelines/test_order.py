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
    shuffle=st.one_of(st.booleans(), st.integers(2, 400)),
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


@given(st.integers(0, 100), st.integers(2, 50), st.integers(0, 20))
def test_a_buffer_gives_no_image_more_than_its_size_before_its_turn(seed, size, epoch):
    order = Stream(seed, 60, 6, shuffle=size).order(epoch)
    assert all(image - place < size for place, image in enumerate(order.tolist()))


chunked = st.lists(st.integers(1, 7), min_size=1, max_size=12)


def in_chunks(sizes):
    ends = np.cumsum(sizes).tolist()
    return tuple(tuple(range(end - size, end)) for size, end in zip(sizes, ends, strict=True))


@given(chunked, st.integers(0, 50), st.one_of(st.booleans(), st.integers(2, 30)))
def test_chunks_are_read_once_each_and_hold_every_image(sizes, epoch, shuffle):
    stream = Stream(7, sum(sizes), 1, shuffle, in_chunks(sizes))
    schedule = stream.schedule(epoch)
    assert sorted(number for number, _ in schedule) == list(range(len(sizes)))
    assert sorted(stream.order(epoch).tolist()) == list(range(sum(sizes)))


@given(chunked, st.integers(0, 50), st.integers(2, 30))
def test_only_so_many_chunks_are_open_at_once(sizes, epoch, shuffle):
    stream = Stream(7, sum(sizes), 1, shuffle, in_chunks(sizes))
    left = {number: set(images.tolist()) for number, images in stream.schedule(epoch)}
    chunk_of = {image: number for number, images in left.items() for image in images}
    opened, most = set(), 0
    for image in stream.order(epoch).tolist():
        opened.add(chunk_of[image])
        left[chunk_of[image]].discard(image)
        most = max(most, len(opened))
        opened -= {number for number in opened if not left[number]}
    assert most <= stream.cycle


def test_unshuffled_chunks_come_as_they_are_stored():
    stream = Stream(0, 6, 1, False, ((0, 3), (1, 4), (2, 5)))
    assert stream.order(9).tolist() == [0, 3, 1, 4, 2, 5]
