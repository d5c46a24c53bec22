"""Random parts of an image as TensorFlow ops; of a JPEG only the part that was drawn is decoded."""

import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from timesink.loaders.tfaugment import TRIES

MARGIN = 2
"""Pixels decoded around a part: colours at its edge are made of their neighbours too."""


def decode(content: Any) -> Any:
    """Decode a whole image."""
    # decode_image tells the format by its content: a PNG named .jpg decodes too.
    image = tf.io.decode_image(content, channels=3, expand_animations=False)
    image.set_shape([None, None, 3])
    return image


def decode_part(content: Any, key: Any, numbers: Sequence[float]) -> Any:
    """Decode what `cut` would leave of the image, pixel for pixel."""

    def of_jpeg(content: Any, key: Any) -> Any:
        sides = tf.image.extract_jpeg_shape(content)[:2]
        with tf.name_scope("random_resized_crop"):
            begin, part = draw_part(sides, key, numbers)
            before = tf.minimum(begin, MARGIN)
            around = tf.minimum(before + part + MARGIN, sides - begin + before)
        with tf.name_scope("decode"):
            window = tf.concat([begin - before, around], axis=0)
            image = tf.image.decode_and_crop_jpeg(content, window, channels=3)
            return tf.strided_slice(image, before, before + part)

    def of_others(content: Any, key: Any) -> Any:
        with tf.name_scope("decode"):
            image = decode(content)
        with tf.name_scope("random_resized_crop"):
            return cut(image, key, numbers)

    shape = tf.TensorShape([None, None, 3])
    branches = [
        tf.function(branch, autograph=False).get_concrete_function(
            tf.TensorSpec([], tf.string), tf.TensorSpec([2], tf.int64)
        )
        for branch in (of_jpeg, of_others)
    ]
    (image,) = tf.raw_ops.StatelessIf(
        cond=tf.io.is_jpeg(content),
        input=[content, key],
        Tout=[tf.uint8],
        then_branch=branches[0],
        else_branch=branches[1],
        output_shapes=[shape],
    )
    image.set_shape(shape)
    return image


def cut(image: Any, key: Any, numbers: Sequence[float]) -> Any:
    """Cut a random part out of an image."""
    begin, part = draw_part(tf.shape(image)[:2], key, numbers)
    return tf.strided_slice(image, begin, begin + part)


def draw_part(sides: Any, key: Any, numbers: Sequence[float]) -> tuple[Any, Any]:
    """Draw a part of a random area and shape: where it begins, and its height and width.

    As torchvision does it: the area is uniform, the logarithm of width / height too; what does
    not fit is drawn again, ten times in all, and then the largest part of an allowed shape is
    taken from the middle. All tries are drawn at once, a row each, with that one as the last.
    (TensorFlow's sample_distorted_bounding_box draws heights, not areas, and plain ratios.)
    """
    min_area, max_area, min_ratio, max_ratio = numbers
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
    place = tf.pad(places, [[0, 1], [0, 0]])[chosen]
    begin = tf.where(chosen < TRIES, whole_up_to(place, sides - part), (sides - part) // 2)
    return begin, part


def whole_up_to(draws: Any, most: Any) -> Any:
    """Turn draws from [0, 1) into whole numbers from 0 to `most`, all equally likely."""
    return tf.cast(draws * tf.cast(most + 1, tf.float32), tf.int32)
