"""The operations of RandAugment, AutoAugment and PBA as TensorFlow ops that give what Pillow gives.

`OPERATIONS` has them by name. Each takes one uint8 image [height, width, 3] and a strength, a
float32 scalar, and gives an image of the same shape, equal to Pillow's in every pixel.

They are written for time: TensorFlow runs over 150,000 numbers in some 10 µs, but takes 3 ns for
each look-up. So tables are avoided; where one is needed, two values are looked up at once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from timesink.loaders.tfgeometry import (
    like,
    rotate,
    rows_of,
    shear_x,
    shear_y,
    sides_of,
    translate_x,
    translate_y,
)

LEVELS = 256
EACH_BYTE, EACH_PAIR = 0x0101010101010101, 0x0001000100010001  # of an int64
# Sums of these times levels are exact in float32, in any order: Pillow has them in 65536ths.
LUMA = np.array([19595, 38470, 7471], np.float32) / np.float32(65536)


def _identity(image: Any, strength: Any) -> Any:
    return image


def _invert(image: Any, strength: Any) -> Any:
    return _from_words(image, tf.bitwise.invert(_to_words(image)))


def _posterise(image: Any, bits: Any) -> Any:
    """Keep the highest bits, a whole number from 0 to 8."""
    mask = tf.bitwise.left_shift(LEVELS - 1, 8 - tf.cast(bits, tf.int32))
    words = _to_words(image)
    # Through uint8, which leaves the eight lowest bits.
    masks = tf.cast(tf.cast(mask, tf.uint8), words.dtype)
    if words.dtype == tf.int64:
        masks *= EACH_BYTE
    return _from_words(image, tf.bitwise.bitwise_and(words, masks))


def _solarise(image: Any, threshold: Any) -> Any:
    """Invert the levels from the threshold on."""
    first = tf.cast(tf.clip_by_value(tf.math.ceil(threshold), 0, LEVELS), tf.int32)
    above = image >= tf.cast(tf.minimum(first, LEVELS - 1), tf.uint8)
    words = _to_words(image)
    # 256 is no uint8, and inverts nothing.
    flip = tf.cast(tf.where(first < LEVELS, LEVELS - 1, 0), words.dtype)
    return _from_words(
        image, tf.bitwise.bitwise_xor(words, _to_words(tf.cast(above, tf.uint8)) * flip)
    )


def _to_words(image: Any) -> Any:
    """Give an image eight bytes with a number, int64, where its size is known to allow that.

    TensorFlow takes eight times as long over bytes that it may overwrite: its loops over them are
    the compiler's, which gives up where input and output are the same.
    """
    size = image.shape.num_elements()
    if size is None or size % 8:
        return image
    return tf.bitcast(tf.reshape(image, [-1, 8]), tf.int64)


def _from_words(image: Any, words: Any) -> Any:
    return words if words.dtype == tf.uint8 else like(image, tf.bitcast(words, tf.uint8))


def _autocontrast(image: Any, strength: Any) -> Any:
    """Stretch each colour so that it reaches from 0 to 255."""
    _, width = sides_of(image)
    rows = rows_of(image)
    exact = tf.cast(rows, tf.float32)  # quicker to compare than uint8
    low, high = (
        tf.cast(reduce(tf.reshape(reduce(exact, 0), [width, 3]), 0), tf.float64)
        for reduce in (tf.reduce_min, tf.reduce_max)
    )
    flat = high <= low
    scale = tf.where(flat, tf.ones_like(low), 255.0 / tf.where(flat, tf.ones_like(low), high - low))
    offset = tf.where(flat, tf.zeros_like(low), -low * scale)
    # In float64, as Pillow has it: what should be a whole number often is a little less, and is
    # cut off then.
    stretched = tf.cast(rows, tf.float64) * tf.tile(scale, [width]) + tf.tile(offset, [width])
    return like(image, tf.cast(stretched, tf.uint8))


def _equalise(image: Any, strength: Any) -> Any:
    """Spread the levels of each colour so that all are about equally frequent."""
    height, width = sides_of(image)
    begins = tf.tile(tf.constant([0, LEVELS, 2 * LEVELS]), [width])
    places = tf.nn.bias_add(tf.cast(rows_of(image), tf.int32), begins)  # quicker than +
    counts = tf.raw_ops.Bincount(
        arr=places, size=3 * LEVELS, weights=tf.constant([], dtype=tf.int32)
    )
    below = tf.cumsum(tf.reshape(counts, [3, LEVELS]), axis=1, exclusive=True)
    darker = tf.where(below < height * width, below, 0)  # than the lightest level there is
    step = tf.reduce_max(darker, axis=1, keepdims=True) // (LEVELS - 1)
    spread = (step // 2 + below) // tf.maximum(step, 1)
    tables = tf.where(step > 0, tf.minimum(spread, LEVELS - 1), tf.range(LEVELS))
    if isinstance(height, int) and isinstance(width, int) and height * width % 2 == 0:
        return like(image, _look_up_pairs(image, tables))
    return like(image, tf.gather_nd(tf.cast(tf.reshape(tables, [-1]), tf.uint8), places[..., None]))


def _look_up_pairs(image: Any, tables: Any) -> Any:
    """Look up two values at once, by tables int32[3, 256], in an image of evenly many pixels.

    Two pixels are three pairs of colours: red and green, blue and red, green and blue. The first
    of a pair is its lower byte.
    """
    first = tf.reshape(tf.cast(tf.gather(tables, [0, 2, 1]), tf.uint16), [3, 1, -1, 4])
    second = tf.cast(tf.gather(tables, [1, 0, 2]), tf.int64)[:, :, None]
    # Four entries with one addition.
    fours = tf.bitcast(first, tf.int64) + second * (LEVELS * EACH_PAIR)
    pairs = tf.reshape(tf.bitcast(fours, tf.uint16), [-1])
    width = image.shape[1]
    pixels = width if width % 2 == 0 else 2 * width
    values = tf.cast(tf.bitcast(tf.reshape(image, [-1, pixels * 3 // 2, 2]), tf.uint16), tf.int32)
    begins = np.tile(np.arange(3, dtype=np.int32) * LEVELS**2, pixels // 2)
    return tf.bitcast(tf.gather_nd(pairs, tf.nn.bias_add(values, begins)[..., None]), tf.uint8)


def _colour(image: Any, factor: Any) -> Any:
    """Blend with the image in shades of grey."""
    values = tf.cast(image, tf.float32)
    return _blend(like(image, _luma(image, values, 3)), values, factor)


def _contrast(image: Any, factor: Any) -> Any:
    """Blend with the mean grey."""
    values = tf.cast(image, tf.float32)
    greys = tf.reshape(tf.cast(_luma(image, values, 1), tf.int32), sides_of(image))
    total = tf.reduce_sum(tf.cast(tf.reduce_sum(greys, axis=0), tf.float64))
    mean = total / tf.cast(tf.size(greys), tf.float64)
    return _blend(tf.cast(tf.floor(mean + 0.5), tf.float32), values, factor)


def _brightness(image: Any, factor: Any) -> Any:
    """Blend with black."""
    return tf.cast(tf.minimum(tf.cast(image, tf.float32) * factor, 255.0), tf.uint8)


def _sharpness(image: Any, factor: Any) -> Any:
    """Blend with the image smoothed; its border stays as it is."""
    height, width = sides_of(image)
    rows = rows_of(image)
    values = tf.cast(rows, tf.float32)  # whole numbers, exact in any order of adding
    columns = values[:-2] + values[1:-1] + values[2:]
    inner = values[1:-1, 3:-3]
    sums = columns[:, :-6] + columns[:, 3:-3] + columns[:, 6:] + inner * 4.0
    # In 13ths and a half: never near a whole number, so that any rounding gives the same.
    blended = _blend(tf.floor(sums * np.float32(1 / 13) + 0.5), inner, factor)
    # Not from the end: what is one pixel high or wide has its border once.
    bottom, right = tf.maximum(height - 1, 1), tf.maximum(width - 1, 1) * 3
    middle = tf.concat([rows[1:-1, :3], blended, rows[1:-1, right:]], axis=1)
    return like(image, tf.concat([rows[:1], middle, rows[bottom:]], axis=0))


def _luma(image: Any, values: Any, copies: int) -> Any:
    """Give each pixel's grey, as many times as wanted, in float32 [., pixels × copies].

    As a product of matrices, which is quickest with four pixels in a row.
    """
    height, width = image.shape[:2]
    pixels = 4 if height and width and height * width % 4 == 0 else 1
    weights = np.kron(np.eye(pixels, dtype=np.float32), np.tile(LUMA[:, None], copies))
    return tf.floor(tf.reshape(values, [-1, pixels * 3]) @ weights + 0.5)


def _blend(degenerate: Any, values: Any, factor: Any) -> Any:
    """Go from `degenerate` (at factor 0) to `values` (at 1) and beyond, in float32 as Pillow."""
    blended = degenerate + (values - degenerate) * factor
    return tf.cast(tf.maximum(tf.minimum(blended, 255.0), 0.0), tf.uint8)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "identity": _identity,
    "autocontrast": _autocontrast,
    "equalise": _equalise,
    "invert": _invert,
    "rotate": rotate,
    "shear_x": shear_x,
    "shear_y": shear_y,
    "translate_x": translate_x,
    "translate_y": translate_y,
    "posterise": _posterise,
    "solarise": _solarise,
    "colour": _colour,
    "contrast": _contrast,
    "brightness": _brightness,
    "sharpness": _sharpness,
}
