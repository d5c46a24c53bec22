"""The order of the images: a permutation computed from seed and epoch, never a buffer's state."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Stream:
    """The images of a training run as one endless numbered row.

    Position p is image `order(p // images_per_epoch)[p % images_per_epoch]`. An epoch is a
    whole number of batches: the images left over differ from epoch to epoch as the order does.
    """

    seed: int
    images: int
    batch_size: int
    shuffle: bool

    @property
    def steps_per_epoch(self) -> int:
        """Whole batches in one epoch."""
        return self.images // self.batch_size

    @property
    def images_per_epoch(self) -> int:
        """Images that one epoch uses."""
        return self.steps_per_epoch * self.batch_size

    def epoch_of(self, position: int) -> int:
        """Tell the epoch, from 0, that a position lies in."""
        return position // self.images_per_epoch

    def order(self, epoch: int) -> NDArray[np.int64]:
        """Give the images of one epoch in their order."""
        if not self.shuffle:
            return np.arange(self.images_per_epoch, dtype=np.int64)
        generator = np.random.Generator(np.random.Philox(key=[self.seed, epoch]))
        return generator.permutation(self.images)[: self.images_per_epoch].astype(np.int64)

    def image_at(self, position: int) -> int:
        """Tell which image stands at a position."""
        epoch, offset = divmod(position, self.images_per_epoch)
        return int(self.order(epoch)[offset])
