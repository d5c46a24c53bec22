"""The order of the images: a permutation computed from seed and epoch, never a buffer's state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from timesink.datasets.images import ImageSet
from timesink.datasets.tfrecord import RecordStore

CHUNKS_AT_ONCE = 8
"""Chunks whose images are mixed where all of them should be: a chunk is some megabytes.

More mix better and are slower, 1 % from 4 to 16: what was read is no longer in the CPU's cache.
"""

_ORDERS_KEPT = 2

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Stream:
    """The images of a training run as one endless numbered row.

    Position p is image `order(p // images_per_epoch)[p % images_per_epoch]`. An epoch is a
    whole number of batches: the images left over differ from epoch to epoch as the order does.
    """

    seed: int
    images: int
    batch_size: int
    shuffle: bool | int
    """A number is that of a buffer: an image comes at most so many places before its turn."""
    chunks: tuple[tuple[int, ...], ...] = ()
    """Images that are read at once; then order is made of chunks, so that each is read once."""
    _orders: dict[int, Indices] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one epoch."""
        return self.images // self.batch_size

    @property
    def images_per_epoch(self) -> int:
        """Images that one epoch uses."""
        return self.steps_per_epoch * self.batch_size

    @property
    def cycle(self) -> int:
        """How many chunks are open at once."""
        if not self.shuffle:
            return 1
        if self.shuffle is True:
            return CHUNKS_AT_ONCE
        return max(1, -(-self.shuffle * len(self.chunks) // self.images))

    def epoch_of(self, position: int) -> int:
        """Tell the epoch, from 0, that a position lies in."""
        return position // self.images_per_epoch

    def order(self, epoch: int) -> Indices:
        """Give the images of one epoch in their order."""
        order = self._orders.get(epoch)
        if order is None:
            order = self._make_order(epoch)[: self.images_per_epoch]
            for old in list(self._orders)[: 1 - _ORDERS_KEPT]:
                self._orders.pop(old, None)
            self._orders[epoch] = order
        return order

    def schedule(self, epoch: int) -> list[tuple[int, Indices]]:
        """Give the chunks of one epoch in the order they are read, each with its images' order."""
        if not self.shuffle:
            return [(n, np.array(chunk, np.int64)) for n, chunk in enumerate(self.chunks)]
        generator = self._generator(epoch)
        return [
            (int(n), generator.permutation(np.array(self.chunks[n], np.int64)))
            for n in generator.permutation(len(self.chunks))
        ]

    def image_at(self, position: int) -> int:
        """Tell which image stands at a position."""
        epoch, offset = divmod(position, self.images_per_epoch)
        return int(self.order(epoch)[offset])

    def _make_order(self, epoch: int) -> Indices:
        if self.chunks:
            parts = [images.tolist() for _, images in self.schedule(epoch)]
            return np.array(interleave(parts, self.cycle), np.int64)
        if not self.shuffle:
            return np.arange(self.images, dtype=np.int64)
        generator = self._generator(epoch)
        if self.shuffle is True or self.shuffle >= self.images:
            return generator.permutation(self.images).astype(np.int64)
        return _through_a_buffer(self.images, self.shuffle, generator)

    def _generator(self, epoch: int) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(key=[self.seed, epoch]))


def training_stream(images: ImageSet, *, seed: int, batch_size: int, shuffle: bool | int) -> Stream:
    """Give the order that training takes images in."""
    return Stream(seed, len(images), batch_size, shuffle, chunks_of(images))


def validation_stream(images: ImageSet) -> Stream:
    """Give the order that validation takes images in: as they are stored, each once."""
    return Stream(0, len(images), 1, False, chunks_of(images))


def chunks_of(images: ImageSet) -> tuple[tuple[int, ...], ...]:
    """Tell which images are read at once; none where each is read alone."""
    if not isinstance(images.store, RecordStore):
        return ()
    records = np.array(images.records, np.int64)
    chunk = images.store.record_chunk[records]
    order = np.lexsort((images.store.record_offset[records], chunk))
    cuts = np.flatnonzero(np.diff(chunk[order])) + 1
    return tuple(tuple(part.tolist()) for part in np.split(order, cuts))


def interleave(parts: Sequence[Sequence[int]], cycle: int) -> list[int]:
    """Take one of each of `cycle` parts in turn, exactly as tf.data's interleave does.

    A part that is used up is noticed only at its next turn, which is then passed over; the place
    is filled with the next part one round later.
    """
    coming, out, turn, taken, more = iter(parts), list[int](), 0, 0, True
    places: list[list[int] | None] = [None] * cycle
    while more or taken:
        place = places[turn]
        if place is None and more:
            part = next(coming, None)
            more = part is not None
            if part is not None:
                places[turn] = list(reversed(part))
                taken += 1
            continue
        if place:
            out.append(place.pop())
        elif place is not None:
            places[turn] = None
            taken -= 1
        turn = (turn + 1) % cycle
    return out


def _through_a_buffer(images: int, size: int, generator: np.random.Generator) -> Indices:
    """Fill a buffer, then give one of it at random for each that comes."""
    buffer = list(range(size))
    draws = generator.integers(0, size, images - size).tolist()
    out = []
    for image, place in enumerate(draws, start=size):
        out.append(buffer[place])
        buffer[place] = image
    return np.fromiter(
        chain(out, generator.permutation(np.array(buffer)).tolist()), np.int64, images
    )
