"""Operations that turn and slant an image between its pixels, as Pillow's BILINEAR does.

AugMix' published code has them where the other policies take the nearest pixel. Each takes one
uint8 image [height, width, 3] and a strength, a float32 scalar, and gives an image of the same
shape, equal to Pillow's in every pixel: in float64, as Pillow has it, and cut off, not rounded.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from timesink.loaders.tfgeometry import like, sides_of, turned_back


def rotate(image: Any, degrees: Any) -> Any:
    """Turn counter-clockwise about the middle; not by multiples of 90 degrees but 0."""
    rows, columns = _centres(image)
    cosine, sine, less_x, less_y = turned_back(image, degrees)
    # Subtracted: TensorFlow puts sums of three into another order, which rounds in another way.
    x = cosine * columns + sine * rows - less_x
    y = -sine * columns + cosine * rows - less_y
    height, width = sides_of(image)
    top, bottom, down = _neighbours(y, height)
    left, right, across = _neighbours(x, width)
    pixels = _packed(image)
    upper, lower = (
        _between(_taken(pixels, line * width + left), _taken(pixels, line * width + right), across)
        for line in (top, bottom)
    )
    inside = (x >= 0) & (x < _float(width)) & (y >= 0) & (y < _float(height))
    return _levels(image, _between(upper, lower, down), inside)


def shear_x(image: Any, factor: Any) -> Any:
    """Move each row by `factor` times its distance from the top, to the left."""
    rows, columns = _centres(image)
    height, width = sides_of(image)
    x = columns + tf.cast(factor, tf.float64) * rows
    left, right, across = _neighbours(x, width)
    lines = tf.range(height)[:, None] * width
    return _slanted(image, lines + left, lines + right, across, (x >= 0) & (x < _float(width)))


def shear_y(image: Any, factor: Any) -> Any:
    """Move each column by `factor` times its distance from the left, upwards."""
    rows, columns = _centres(image)
    height, width = sides_of(image)
    y = tf.cast(factor, tf.float64) * columns + rows
    top, bottom, down = _neighbours(y, height)
    columns = tf.range(width)
    inside = (y >= 0) & (y < _float(height))
    return _slanted(image, top * width + columns, bottom * width + columns, down, inside)


INTERPOLATED: dict[str, Callable[[Any, Any], Any]] = {
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
}


def _slanted(image: Any, first: Any, second: Any, share: Any, inside: Any) -> Any:
    pixels = _packed(image)
    return _levels(image, _between(_taken(pixels, first), _taken(pixels, second), share), inside)


def _centres(image: Any) -> tuple[Any, Any]:
    """Give where the middles of rows and of columns are."""
    height, width = sides_of(image)
    rows, columns = (tf.range(_float(side)) + 0.5 for side in (height, width))
    return rows[:, None], columns[None, :]


def _neighbours(places: Any, side: Any) -> tuple[Any, Any, Any]:
    """Give the pixels on both sides of places, none outside, and how far it is to the first."""
    from_middles = places - 0.5
    before = tf.floor(from_middles)
    first = tf.cast(tf.clip_by_value(before, -1.0, _float(side)), tf.int32)
    last = side - 1
    near, far = (tf.clip_by_value(first + step, 0, last) for step in (0, 1))
    return near, far, (from_middles - before)[..., None]


def _packed(image: Any) -> Any:
    """Give each pixel as one number: looking up one takes a third of looking up three."""
    four = tf.pad(image, [[0, 0], [0, 0], [0, 1]])
    return tf.reshape(tf.bitcast(four, tf.int32), [-1])


def _taken(pixels: Any, places: Any) -> Any:
    """Look pixels up; float64, with a fourth colour that is not there."""
    return tf.cast(tf.bitcast(tf.gather(pixels, places), tf.uint8), tf.float64)


def _between(first: Any, second: Any, share: Any) -> Any:
    return first + (second - first) * share


def _levels(image: Any, values: Any, inside: Any) -> Any:
    """Cut values off to levels; black where there is no image."""
    packed = tf.bitcast(tf.cast(values, tf.uint8), tf.int32) * tf.cast(inside, tf.int32)
    return like(image, tf.bitcast(packed, tf.uint8)[..., :3])


def _float(side: Any) -> Any:
    return tf.cast(side, tf.float64)
