"""Stages and images made into a tf.data.Dataset of (images, labels, positions).

Random draws are stateless, keyed by seed, epoch, image and stage, so a batch does not depend on
the number of workers. A broken image is left out alone: the gap in the positions tells which.
"""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from timesink.datasets.folder import ImageSet
from timesink.experiment import PipelineSection
from timesink.pipelines.order import Stream
from timesink.pipelines.stages import Stage


def training_batches(
    images: ImageSet,
    stages: Sequence[Stage],
    pipeline: PipelineSection,
    stream: Stream,
    *,
    first_position: int,
    last_epoch: int,
) -> Any:
    """Give the batches of a stream from one position on, to the end of an epoch."""
    first_epoch, offset = divmod(first_position, stream.images_per_epoch)

    @tf.autograph.experimental.do_not_convert
    def epoch_images(epoch: Any) -> Any:
        order = tf.numpy_function(
            lambda e: stream.order(int(e))[offset if e == first_epoch else 0 :], [epoch], tf.int64
        )
        order.set_shape([None])
        return tf.data.Dataset.from_tensor_slices(order)

    indices = tf.data.Dataset.range(first_epoch, last_epoch).flat_map(epoch_images)
    positions = indices.enumerate(start=first_position)
    loaded = _load(positions, images, stages, pipeline, stream.seed, stream.images_per_epoch)
    return _finish(loaded.batch(stream.batch_size, drop_remainder=True), pipeline)


def validation_batches(
    images: ImageSet, stages: Sequence[Stage], pipeline: PipelineSection, *, batch_size: int
) -> Any:
    """Give every image once, in order; the last batch may be smaller."""
    indices = tf.data.Dataset.range(len(images)).enumerate()
    loaded = _load(indices, images, stages, pipeline, seed=0, images_per_epoch=len(images))
    return _finish(loaded.batch(batch_size), pipeline)


def _load(
    positions: Any,
    images: ImageSet,
    stages: Sequence[Stage],
    pipeline: PipelineSection,
    seed: int,
    images_per_epoch: int,
) -> Any:
    paths = tf.constant(images.paths, tf.string)
    labels = tf.constant(images.labels, tf.int32)
    size = pipeline.image_size

    @tf.autograph.experimental.do_not_convert
    def load(position: Any, index: Any) -> Any:
        epoch = position // images_per_epoch
        with tf.name_scope("read"):
            value = tf.io.read_file(tf.gather(paths, index))
        for number, stage in enumerate(stages):
            key = tf.stack([tf.constant(seed * 256 + number, tf.int64), epoch * 2**40 + index])
            with tf.name_scope(stage.name):
                value = _apply(stage, value, key, size)
        value.set_shape([size, size, 3])
        return value, tf.gather(labels, index), position

    workers = tf.data.AUTOTUNE if pipeline.workers == "auto" else pipeline.workers
    return positions.map(load, num_parallel_calls=workers, deterministic=True).ignore_errors()


def _apply(stage: Stage, value: Any, key: Any, size: int) -> Any:
    match stage.name:
        case "decode":
            # decode_image tells the format by its content: a PNG named .jpg decodes too.
            return tf.io.decode_image(value, channels=3, expand_animations=False)
        case "convert":
            value.set_shape([None, None, 3])
            return tf.image.convert_image_dtype(value, tf.float32)
        case "resize":
            return tf.image.resize(value, [size, size])
        case "random_flip":
            return tf.image.stateless_random_flip_left_right(value, key)
        case "random_brightness":
            return tf.image.stateless_random_brightness(value, stage.arguments[0], key)
        case "clip":
            return tf.clip_by_value(value, *stage.arguments)
    raise AssertionError(f"no loader for stage {stage.name}")


def _finish(batches: Any, pipeline: PipelineSection) -> Any:
    if pipeline.prefetch != 0:
        depth = tf.data.AUTOTUNE if pipeline.prefetch == "auto" else pipeline.prefetch
        batches = batches.prefetch(depth)
    options = tf.data.Options()
    options.deterministic = True
    return batches.with_options(options)
