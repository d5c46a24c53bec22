"""The deterministic stages run once over a list of files, in order: what a store is made of."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from timesink import machine
from timesink.loaders.tfstages import apply_stages
from timesink.pipelines.stages import Stage, in_running_order, size_after

MOST_BATCH_IMAGES, MOST_BATCH_BYTES = 32, 16 << 20
"""Images given at once: an element of tf.data alone costs a tenth of a millisecond in Python."""


def render(
    paths: Sequence[str],
    stages: Sequence[Stage],
    image_size: int,
    stored: Literal["uint8", "float32"],
    *,
    workers: int | None = None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Give batches of rising numbers of files and their images; a file that fails is left out."""
    side = size_after(stages, image_size)
    assert side is not None
    files = tf.constant(list(paths), tf.string)

    @tf.autograph.experimental.do_not_convert
    def load(number: Any) -> Any:
        with tf.name_scope("read"):
            value = tf.io.read_file(tf.gather(files, number))
        value = apply_stages(applied, value, _no_key, image_size)
        value.set_shape([side, side, 3])
        return number, as_levels(value) if stored == "uint8" else value

    applied = in_running_order(stages)
    as_levels: Callable[[Any], Any] = to_levels
    if stored == "uint8" and applied[-1].name == "convert":
        applied = applied[:-1]  # it would divide by 255 only for levels to be made of it again
        as_levels = _rounded
    image_bytes = side * side * 3 * np.dtype(stored).itemsize
    batch_images = max(1, min(MOST_BATCH_IMAGES, MOST_BATCH_BYTES // image_bytes))

    def batches(first: int, *, careful: bool) -> Any:
        loaded = tf.data.Dataset.range(first, len(paths)).map(
            load, num_parallel_calls=workers or machine.cores(), deterministic=True
        )
        # Only without it can tf.data make images right into their batch.
        loaded = loaded.ignore_errors() if careful else loaded
        return loaded.batch(batch_images).prefetch(2).as_numpy_iterator()

    done = 0
    try:
        for numbers, images in batches(0, careful=False):
            yield numbers, images
            done = int(numbers[-1]) + 1
    except tf.errors.OpError:
        yield from batches(done, careful=True)


def to_levels(image: Any) -> Any:
    """Turn a float image into what is stored as uint8: levels round(255·x)."""
    return _rounded(image * 255)


def _rounded(levels: Any) -> Any:
    # What can leave 0 to 255 is never stored as uint8: `split_for_store` sees to it.
    return tf.cast(tf.round(levels), tf.uint8)


def _no_key(number: int) -> Any:
    raise AssertionError(f"stage {number} is random: it cannot be stored")
