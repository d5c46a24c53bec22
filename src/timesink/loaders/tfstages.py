"""The stages as TensorFlow ops on one image, with draws that depend on a key alone."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from timesink.loaders.tfaugment import augment, random_erasing
from timesink.loaders.tfcrop import cut, decode, decode_part, whole_up_to
from timesink.pipelines.stages import Stage, in_running_order, operations_of

PARTS = "random_resized_crop"
"""Right behind `decode` it is drawn first, and only its part is decoded."""


def apply_stages(
    stages: Sequence[Stage],
    value: Any,
    key_of: Callable[[int], Any],
    size: int,
    *,
    upto: int | None = None,
) -> Any:
    """Take one image through the stages, or the first of them, each in a name scope of its own.

    `key_of` gives the key of a random stage by its number among the random ones, so that a draw
    is the same whether the stages before it are carried out here or were stored.
    """
    draws, parted = 0, False
    ordered = in_running_order(stages)
    followers = [stage.name for stage in ordered[1:]]
    for number, stage in enumerate(ordered[:upto]):
        with tf.name_scope(stage.name):
            if stage.name == "decode" and followers[number : number + 1] == [PARTS]:
                value = decode_part(value, key_of(draws), _numbers(ordered[number + 1]))
                parted = True
            elif stage.name == PARTS and parted:
                value = _resize(value, size)
            else:
                key = key_of(draws) if stage.random else None
                value = apply_stage(stage, value, key, size)
        draws += stage.random
    return value


def apply_stage(stage: Stage, value: Any, key: Any, size: int) -> Any:
    """Take one image through one stage; `key`, int64[2], is looked at by random ones only.

    Before `convert` an image has levels from 0 to 255: uint8, or floats once it was resized.
    """
    match stage.name:
        case "read":
            return tf.io.read_file(value)
        case "decode":
            return decode(value)
        case "convert":
            return tf.cast(value, tf.float32) * np.float32(1 / 255)
        case "resize":
            *sizes, method = stage.arguments or ("bilinear",)
            return _resize(value, int(sizes[0]) if sizes else size, str(method))
        case "center_crop":
            return _square(value, size, lambda room: room // 2)
        case "random_crop":
            draws = tf.random.stateless_uniform([2], key)
            return _square(value, size, lambda room: whole_up_to(draws, room))
        case "random_resized_crop":
            return _resize(cut(value, key, _numbers(stage)), size)
        case "random_flip":
            return tf.image.stateless_random_flip_left_right(value, key)
        case "random_brightness":
            return tf.image.stateless_random_brightness(value, stage.arguments[0], key)
        case "random_contrast":
            # Not stateless_random_contrast: it refuses lower = upper.
            return tf.image.adjust_contrast(
                value, tf.random.stateless_uniform([], key, *stage.arguments)
            )
        case "clip":
            return tf.clip_by_value(value, *stage.arguments)
        case "normalise":
            return _normalise(value, *np.reshape(stage.arguments, (2, 3)))
        case "standardise":
            return tf.image.per_image_standardization(value)
        case "random_erasing":
            return random_erasing(value, key, _numbers(stage))
    if operations_of(stage):
        return augment(stage, value, key)
    raise AssertionError(f"no loader for stage {stage.name}")


def _numbers(stage: Stage) -> list[float]:
    return [float(argument) for argument in stage.arguments]


def _resize(image: Any, size: int, method: str = "bilinear") -> Any:
    return tf.image.resize(image, [size, size], method=method)


def _square(image: Any, size: int, offset_in: Callable[[Any], Any]) -> Any:
    """Cut a square of `size` out of an image; out of a smaller one all that fits, scaled up."""
    sides = tf.shape(image)[:2]
    side = tf.minimum(tf.reduce_min(sides), size)
    begin = offset_in(sides - side)
    cut = tf.strided_slice(image, begin, begin + side)
    if None not in image.shape[:2] and min(image.shape[:2]) >= size:
        cut.set_shape([size, size, 3])
        return cut
    # An image that has this size already is no more than cast.
    return _resize(cut, size)


def _normalise(image: Any, means: Any, stds: Any) -> Any:
    """Subtract the colours' means and divide by their deviations.

    Done on rows of pixels: three numbers spread over an image pixel by pixel take eight times
    as long.
    """
    width = image.shape[1] or tf.shape(image)[1]
    rows = tf.reshape(image, [-1, width * 3])
    scale = tf.tile(tf.constant(1 / stds, tf.float32), [width])
    shift = tf.tile(tf.constant(-means / stds, tf.float32), [width])
    return tf.reshape(rows * scale + shift, tf.shape(image))
