"""The stages as TensorFlow ops on one image, with draws that depend on a key alone."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from timesink.pipelines.stages import Stage, in_running_order

TRIES = 10  # of random_resized_crop, as torchvision has it


def apply_stages(
    stages: Sequence[Stage], value: Any, key_of: Callable[[int], Any], size: int
) -> Any:
    """Take one image through the stages, each in a name scope of its own.

    `key_of` gives the key of a random stage by its number among the random ones, so that a draw
    is the same whether the stages before it are carried out here or were stored.
    """
    draws = 0
    for stage in in_running_order(stages):
        with tf.name_scope(stage.name):
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
            # decode_image tells the format by its content: a PNG named .jpg decodes too.
            image = tf.io.decode_image(value, channels=3, expand_animations=False)
            image.set_shape([None, None, 3])
            return image
        case "convert":
            return tf.cast(value, tf.float32) * np.float32(1 / 255)
        case "resize":
            *sizes, method = stage.arguments or ("bilinear",)
            return _resize(value, int(sizes[0]) if sizes else size, str(method))
        case "center_crop":
            return _square(value, size, lambda room: room // 2)
        case "random_crop":
            draws = tf.random.stateless_uniform([2], key)
            return _square(value, size, lambda room: _whole(draws, room))
        case "random_resized_crop":
            return _random_resized_crop(value, key, size, *map(float, stage.arguments))
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
    raise AssertionError(f"no loader for stage {stage.name}")


def _resize(image: Any, size: int, method: str = "bilinear") -> Any:
    return tf.image.resize(image, [size, size], method=method)


def _whole(draws: Any, most: Any) -> Any:
    """Turn draws from [0, 1) into whole numbers from 0 to `most`, all equally likely."""
    return tf.cast(draws * tf.cast(most + 1, tf.float32), tf.int32)


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


def _random_resized_crop(
    image: Any,
    key: Any,
    size: int,
    min_area: float,
    max_area: float,
    min_ratio: float,
    max_ratio: float,
) -> Any:
    """Cut out a part of a random area and shape, and resize it.

    As torchvision does it: the area is uniform, the logarithm of width / height too; what does
    not fit is drawn again, ten times in all, and then the largest part of an allowed shape is
    taken from the middle. All tries are drawn at once, a row each, with that one as the last.
    (TensorFlow's sample_distorted_bounding_box draws heights, not areas, and plain ratios.)
    """
    sides = tf.shape(image)[:2]
    exact = tf.cast(sides, tf.float32)  # height, width
    draws = tf.random.stateless_uniform([TRIES, 4], key)
    area_draws, shape_draws, places = tf.split(draws, [1, 1, 2], axis=1)
    low, high = math.log(min_ratio) / 2, math.log(max_ratio) / 2
    roots = tf.sqrt((area_draws * (max_area - min_area) + min_area) * tf.reduce_prod(exact))
    shapes = tf.exp(shape_draws * [low - high, high - low] + [-low, low])
    middle = tf.minimum(exact, exact[::-1] * [1 / min_ratio, max_ratio])
    parts = tf.maximum(tf.round(tf.concat([roots * shapes, middle[None]], axis=0)), 1)
    fits = tf.reduce_all(parts <= exact, axis=1)
    chosen = tf.argmax(tf.cast(fits, tf.uint8))  # the first that fits
    part = tf.cast(parts[chosen], tf.int32)
    place = tf.pad(places, [[0, 1], [0, 0]], constant_values=0.5)[chosen]
    begin = _whole(place, sides - part)
    return _resize(tf.strided_slice(image, begin, begin + part), size)


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
