"""Image operations that move pixels, as TensorFlow ops that give what Pillow gives.

Each takes one uint8 image [height, width, 3] and a strength, a float32 scalar, and gives an image
of the same shape: its pixels moved to the nearest places, black where none came.

Pillow walks through the source in steps of 1/65536 of a pixel, as integers, and so do these. Where
a corner comes from 32,768 pixels away or further, which those do not reach, it takes floats, and so
do the shears. A rotation does not: images of which a corner is that far away come out wrong.
"""

import math
from typing import Any

import numpy as np
import tensorflow as tf

STEPS = 65536.0  # in a pixel, where Pillow counts in integers
REACH = 32768.0  # pixels: what is this far away does not fit into 32 bits
BLOCK = 4  # pixels that shear_x takes at once


def rotate(image: Any, degrees: Any) -> Any:
    """Turn counter-clockwise about the middle, as `Image.rotate` does.

    Multiples of 90 degrees need nothing of their own: Pillow's short cuts give the same.
    """
    height, width = sides_of(image)
    cosine, sine, less_x, less_y = turned_back(image, degrees)
    rows, columns = (tf.range(tf.cast(side, tf.float64)) for side in (height, width))
    from_rows = _pair(
        _steps(-less_y + -sine * 0.5 + cosine * 0.5) + rows * _steps(cosine),
        _steps(-less_x + cosine * 0.5 + sine * 0.5) + rows * _steps(sine),
    )
    from_columns = _pair(columns * _steps(-sine), columns * _steps(cosine))
    # What is negative becomes, without a sign, a place far outside. (And is shifted quicker.)
    steps = tf.bitcast(from_rows[:, None] + from_columns, tf.uint32)
    return _pick(image, image, tf.bitcast(tf.bitwise.right_shift(steps, np.uint32(16)), tf.int32))


def turned_back(image: Any, degrees: Any) -> tuple[Any, Any, Any, Any]:
    """Give cosine and sine of the way from a turned image back, and by how much x and y are less.

    The numbers of `Image.rotate`; the last two with the sign changed.
    """
    height, width = sides_of(image)
    angle = -tf.math.floormod(tf.cast(degrees, tf.float64), 360.0) * (math.pi / 180)
    cosine, sine = (tf.round(part * 1e15) / 1e15 for part in (tf.cos(angle), tf.sin(angle)))
    middle_x, middle_y = (tf.cast(side, tf.float64) / 2 for side in (width, height))
    less_x = cosine * middle_x + sine * middle_y - middle_x
    less_y = -sine * middle_x + cosine * middle_y - middle_y
    return cosine, sine, less_x, less_y


def shear_x(image: Any, factor: Any) -> Any:
    """Move each row by `factor` times its distance from the top, to the left.

    Rows begin anywhere, and TensorFlow looks up only what stands at whole multiples of its size.
    So the image is laid down four times, each time a pixel further from such a place: a row is
    then found four pixels with a look-up, wherever it begins.
    """
    height, width = sides_of(image)
    shifts = _shear_shifts(factor, height, width)
    most = tf.reduce_max(tf.abs(shifts))
    room = most + tf.math.floormod(-(most + width), BLOCK)  # black, to the left of each row
    pitch = room + width
    black = tf.zeros([height, room * 3], tf.uint8)
    rows = tf.reshape(tf.concat([black, rows_of(image)], axis=1), [-1])
    pixel = tf.zeros([3], tf.uint8)
    rest = tf.zeros([(room + BLOCK) // BLOCK * BLOCK * 3], tf.uint8)
    laid_down = tf.concat([rows, pixel] * BLOCK + [rest], axis=0)
    begins = tf.range(height) * pitch + room + shifts
    begins += tf.math.floormod(-begins, BLOCK) * (height * pitch + 1)
    blocks = begins[:, None] // BLOCK + tf.range((width + BLOCK - 1) // BLOCK)
    found = tf.gather_nd(tf.reshape(laid_down, [-1, BLOCK * 3]), blocks[..., None])
    found = tf.reshape(found, [height, -1])
    if not isinstance(width, int) or width % BLOCK:
        found = found[:, : width * 3]
    return like(image, found)


def shear_y(image: Any, factor: Any) -> Any:
    """Move each column by `factor` times its distance from the left, upwards."""
    height, width = sides_of(image)
    shifts = _shear_shifts(factor, width, height)
    # Counted through the image: a row above or below it is outside in this count, too.
    places = (tf.range(height) * width)[:, None] + (shifts * width + tf.range(width))
    return _pick(image, tf.reshape(image, [-1, 3]), places[..., None])


def translate_x(image: Any, pixels: Any) -> Any:
    """Move everything to the left."""
    _, width = sides_of(image)
    left, right = _margins(pixels, width)
    rows = rows_of(image)[:, right * 3 : (width - left) * 3]
    return like(image, tf.pad(rows, [[0, 0], [left * 3, right * 3]]))


def translate_y(image: Any, pixels: Any) -> Any:
    """Move everything upwards."""
    height, _ = sides_of(image)
    top, bottom = _margins(pixels, height)
    rows = rows_of(image)[bottom : height - top]
    return like(image, tf.pad(rows, [[top, bottom], [0, 0]]))


def sides_of(image: Any) -> tuple[Any, Any]:
    """Give an image's height and width: numbers where the graph knows them, else tensors."""
    sides = tf.shape(image)
    height, width = image.shape[:2]
    return sides[0] if height is None else height, sides[1] if width is None else width


def rows_of(image: Any) -> Any:
    """Give an image as a matrix of height × (3 width).

    What is spread over three colours takes eight times as long as what is spread over a row.
    """
    height, width = sides_of(image)
    return tf.reshape(image, [height, width * 3])


def like(image: Any, values: Any) -> Any:
    """Give values the shape of an image."""
    shaped = tf.reshape(values, tf.shape(image))
    shaped.set_shape(image.shape)
    return shaped


def _pick(image: Any, pixels: Any, places: Any) -> Any:
    """Take a pixel for each pixel of an image; black from where there is none."""
    return like(image, tf.gather_nd(pixels, places, bad_indices_policy="IGNORE"))


def _pair(row: Any, column: Any) -> Any:
    """Put two numbers of 32 bits into one of 64, so that both are added at once.

    A negative row takes one from its column: that place is outside of the image anyway.
    """
    return tf.cast(row, tf.int64) + tf.cast(column, tf.int64) * 2**32


def _steps(pixels: Any) -> Any:
    """Round to Pillow's steps; float64, whole."""
    return tf.floor(pixels * STEPS + 0.5)


def _shear_shifts(factor: Any, lines: Any, length: Any) -> Any:
    """Tell by how many pixels each of `lines` lines, `length` long, is moved; int32[lines]."""
    factor = tf.cast(factor, tf.float64)
    across, along = tf.cast(lines, tf.float64), tf.cast(length, tf.float64)
    corners = tf.stack([across, along, factor * across, factor * across + along])
    near = tf.reduce_all(tf.abs(corners) < REACH)
    begin, by = (
        tf.where(near, _steps(part) / STEPS, part) for part in (0.5 + factor * 0.5, factor)
    )
    shifts = tf.floor(begin + by * tf.range(across, dtype=tf.float64))
    # No line is moved further than out of the image.
    return tf.cast(tf.clip_by_value(shifts, -along, along), tf.int32)


def _margins(pixels: Any, side: Any) -> tuple[Any, Any]:
    """Tell how many lines come out black before and behind a translated image."""
    by = tf.floor(tf.cast(pixels, tf.float64) + 0.5)
    by = tf.clip_by_value(by, -tf.cast(side, tf.float64), tf.cast(side, tf.float64))
    whole = tf.cast(by, tf.int32)
    return tf.maximum(-whole, 0), tf.maximum(whole, 0)
