"""The tf.data pipelines that an expert would write by hand for seed 000's output.

All give (float32 images in [0, 1], labels), shuffled over all images and endlessly, each image with
a random brightness of its own. They differ in what is said to help: which decoder, scaling before
or after the resize, how many calls at once, order, threads, the tail on whole batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

BRIGHTNESS = 32 / 255


@dataclass(frozen=True)
class Expert:
    """One way to write it."""

    decoder: Any = tf.io.decode_jpeg
    scaled_first: bool = False
    """To [0, 1] before the resize, as TensorFlow's documentation has it; else after it."""
    raw_resize: bool = False
    calls_a_core: int | None = None
    """Parallel calls; None is AUTOTUNE."""
    ordered: bool = False
    private_threads: bool = False
    tail_on_batch: bool = False
    """Scaling, brightness and clip behind the batch."""
    read_apart: bool = False
    """Reading in a map of its own."""

    def dataset(
        self, paths: Sequence[str], labels: Sequence[int], size: int, batch_size: int, cores: int
    ) -> Any:
        """Write it."""
        calls = tf.data.AUTOTUNE if self.calls_a_core is None else self.calls_a_core * cores
        files = tf.data.Dataset.from_tensor_slices((list(paths), list(labels)))
        files = files.shuffle(len(paths)).repeat()
        if self.read_apart:
            files = files.map(lambda path, label: (tf.io.read_file(path), label), calls)

        def load(path: Any, label: Any) -> Any:
            image = self._image(path if self.read_apart else tf.io.read_file(path), size)
            return (image if self.tail_on_batch else self._tail(image, [])), label

        batches = files.map(load, calls).batch(batch_size, drop_remainder=True)
        if self.tail_on_batch:
            each = [batch_size, 1, 1, 1]
            batches = batches.map(lambda images, label: (self._tail(images, each), label), calls)
        options = tf.data.Options()
        options.deterministic = self.ordered
        if self.private_threads:
            options.threading.private_threadpool_size = cores
            options.threading.max_intra_op_parallelism = 1
        return batches.prefetch(tf.data.AUTOTUNE).with_options(options)

    def _image(self, encoded: Any, size: int) -> Any:
        if self.decoder is tf.io.decode_image:
            image = tf.io.decode_image(encoded, channels=3, expand_animations=False)
            image.set_shape([None, None, 3])
        else:
            image = tf.io.decode_jpeg(encoded, channels=3)
        if self.scaled_first:
            image = tf.image.convert_image_dtype(image, tf.float32)
        if self.raw_resize:
            resized = tf.raw_ops.ResizeBilinear(
                images=image[None], size=[size, size], half_pixel_centers=True
            )
            return tf.reshape(resized, [size, size, 3])
        return tf.image.resize(image, [size, size])

    def _tail(self, images: Any, each: list[int]) -> Any:
        if not self.scaled_first:
            images = images * (1 / 255)
        images += tf.random.uniform(each, -BRIGHTNESS, BRIGHTNESS)
        return tf.clip_by_value(images, 0.0, 1.0)


EXPERTS = {
    "decode_image, scaled first": Expert(tf.io.decode_image, scaled_first=True),
    "decode_jpeg, scaled first": Expert(scaled_first=True),
    "decode_jpeg": Expert(),
    "decode_image": Expert(tf.io.decode_image),
    "raw resize": Expert(raw_resize=True),
    "in order": Expert(ordered=True),
    "a call a core": Expert(calls_a_core=1),
    "two calls a core": Expert(calls_a_core=2),
    "private threads": Expert(private_threads=True),
    "tail on batch": Expert(tail_on_batch=True),
    "tail on batch, private threads": Expert(tail_on_batch=True, private_threads=True),
    "reading apart": Expert(read_apart=True),
}
