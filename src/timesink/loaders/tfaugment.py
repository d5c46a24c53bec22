"""Augmentation policies as TensorFlow ops on one image: operations are drawn, and only they run.

Every draw comes from the key alone. An operation is a branch of a Case that is run as a function
of its own: inlined, as tf.switch_case does it, each layer costs the switches of all its branches.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from timesink.loaders.tfinterpolation import INTERPOLATED
from timesink.loaders.tfoperations import OPERATIONS
from timesink.pipelines import augmentations
from timesink.pipelines.augmentations import IDENTITY, Strength
from timesink.pipelines.stages import Stage, operations_of, row_of

CUTOUT_FILL = (125, 122, 113)
"""What PBA's published code fills a hole with."""
TRIES = 10
"""Of random_erasing and random_resized_crop, as torchvision has it."""
EPOCH = 2**40
"""What an epoch adds to the second half of a key; the image's number is the rest."""


def augment(stage: Stage, image: Any, key: Any) -> Any:
    """Take an image of levels through what a policy draws for it; gives levels."""
    levels = to_levels(image)
    side = levels.shape[1]
    names = (IDENTITY, *(name for name in operations_of(stage) if name != IDENTITY))
    do = partial(_in_turn, branches=[_branch(stage.name, name, levels.shape) for name in names])
    match stage.name, [int(argument) for argument in stage.arguments]:
        case "randaugment", [layers, magnitude]:
            return do(levels, _randaugment(key, names, layers, magnitude, side))
        case "autoaugment", _:
            return do(levels, _autoaugment(key, names, side))
        case "pba", [epochs]:
            return do(levels, _pba(key, names, epochs, side))
        case "augmix", [_, width, depth]:
            severity = float(stage.arguments[0])
            chains, mixed, parts = _augmix(key, names, severity, width, depth, side)
            made = [tf.cast(do(levels, chain), tf.float32) for chain in chains]
            mixture = (1 - mixed) * tf.cast(levels, tf.float32)
            return tf.add_n([mixture, *(parts[n] * image for n, image in enumerate(made))])
    raise AssertionError(f"no policy for stage {stage.name}")


def to_levels(image: Any) -> Any:
    """Round what was resized to whole levels; bicubic may have left their range."""
    if image.dtype == tf.uint8:
        return image
    return tf.cast(tf.clip_by_value(tf.round(image), 0, 255), tf.uint8)


class Drawn(NamedTuple):
    """What an image meets, in turn: numbers of operations, their strengths, their places."""

    operations: Any
    strengths: Any
    places: Any


def _in_turn(image: Any, drawn: Drawn, branches: Sequence[Any]) -> Any:
    """Do the drawn operations, one after the other."""
    for layer in range(drawn.operations.shape[0]):
        (image,) = tf.raw_ops.StatelessCase(
            branch_index=drawn.operations[layer],
            input=[image, drawn.strengths[layer], drawn.places[layer]],
            Tout=[tf.uint8],
            branches=branches,
            output_shapes=[image.shape],
        )
    return image


def _branch(stage: str, name: str, shape: Any) -> Any:
    """Give an operation as a function; its scope is how a trace tells it from the others."""
    operations = {**OPERATIONS, **INTERPOLATED} if stage == "augmix" else OPERATIONS

    def operation(image: Any, strength: Any, place: Any) -> Any:
        with tf.name_scope(row_of(stage, name)):
            if name == "cutout":
                return cutout(image, strength, place)
            return tf.ensure_shape(operations[name](image, strength), shape)

    return tf.function(operation, autograph=False).get_concrete_function(
        tf.TensorSpec(shape, tf.uint8),
        tf.TensorSpec([], tf.float32),
        tf.TensorSpec([2], tf.float32),
    )


def _numbers(draws: Any, count: int) -> Any:
    """Turn draws from [0, 1) into whole numbers below `count`."""
    return tf.cast(draws * count, tf.int32)


def _randaugment(key: Any, names: Sequence[str], layers: int, magnitude: int, side: int) -> Drawn:
    share = magnitude / augmentations.LARGEST_MAGNITUDE
    # Operation and sign are one draw: each operation stands there twice.
    both = _table([augmentations.strength(name, share, side) for name in names])
    drawn = _numbers(tf.random.stateless_uniform([layers], key), both.size)
    return Drawn(drawn // 2, tf.gather(both.reshape(-1), drawn), _nowhere(layers))


def _autoaugment(key: Any, names: Sequence[str], side: int) -> Drawn:
    policy = augmentations.AUTOAUGMENT_IMAGENET
    parts = [part for pair in policy for part in pair]
    both = _table(
        [
            augmentations.strength(name, level / augmentations.LARGEST_LEVEL, side)
            for name, _, level in parts
        ]
    )
    draws = tf.random.stateless_uniform([5], key)
    rows = _numbers(draws[0], len(policy)) * 2 + [0, 1]
    met = draws[1:3] < tf.gather(tf.constant([likelihood for _, likelihood, _ in parts]), rows)
    drawn = tf.gather([names.index(name) for name, _, _ in parts], rows)
    strengths = tf.gather(both.reshape(-1), rows * 2 + _numbers(draws[3:5], 2))
    return Drawn(drawn * tf.cast(met, tf.int32), strengths, _nowhere(2))


def _pba(key: Any, names: Sequence[str], epochs: int, side: int) -> Drawn:
    """Draw as the published code does: the first one or two that are met, in a random order."""
    phases = augmentations.PBA_CIFAR10
    lengths = [length for length, _ in phases]
    ends = (np.cumsum(lengths)[:-1] * epochs / sum(lengths)).astype(np.float32)
    digits = np.array([digits for _, digits in phases]).reshape(len(phases), -1, 2)
    count = digits.shape[1]
    numbers = tf.constant([names.index(name) for name in augmentations.PBA] * 2)
    levels = range(augmentations.LARGEST_PBA_LEVEL + 1)
    scales = [augmentations.pba_scale(name, side) for name in names]
    both = np.stack([_table([scale.at(level) for level in levels]) for scale in scales])
    phase = tf.reduce_sum(tf.cast(tf.cast(key[1] // EPOCH, tf.float32) >= ends, tf.int32))
    met, order, draws = tf.split(
        tf.random.stateless_uniform([2 * count + 7], key), [count, count, 7]
    )
    likely = tf.gather((digits[..., 0] / 10).astype(np.float32), phase)
    turns = tf.where(met < likely, order, 2.0)  # what is not met comes last
    firsts = tf.argsort(turns)[:2]
    none, one, _ = np.cumsum(augmentations.PBA_COUNTS)
    done = (tf.gather(turns, firsts) < 2.0) & (draws[0] >= [none, one])
    operations = tf.gather(numbers, firsts)
    level = tf.gather(tf.gather(digits[..., 1].astype(np.int32), phase), firsts)
    at = (operations * len(levels) + level) * 2 + _numbers(draws[1:3], 2)
    return Drawn(
        operations * tf.cast(done, tf.int32),
        tf.gather(both.reshape(-1), at),
        tf.reshape(draws[3:], [2, 2]),
    )


def _augmix(
    key: Any, names: Sequence[str], severity: float, width: int, depth: int, side: int
) -> tuple[list[Drawn], Any, Any]:
    """Draw chains of operations, the share of the image that they take, and of it each one's."""
    scales = [augmentations.augmix_scale(name, side) for name in names]
    draws = tf.random.stateless_uniform([width, 3 * depth + 2], key)
    drawn = 1 + _numbers(draws[:, :depth], len(names) - 1)
    level = 0.1 + draws[:, depth : 2 * depth] * (severity - 0.1)
    amount = tf.gather(tf.constant([scale.gain for scale in scales]), drawn) * level
    whole = tf.gather(np.array([scale.whole for scale in scales]), drawn)
    amount = tf.where(whole, tf.sign(amount) * tf.floor(tf.abs(amount)), amount)
    signed = tf.gather(np.array([scale.signed for scale in scales]), drawn)
    amount = tf.where(signed & (draws[:, 2 * depth : 3 * depth] < 0.5), -amount, amount)
    strengths = tf.gather(tf.constant([scale.offset for scale in scales]), drawn) + amount
    drawn = tf.where(np.arange(depth) < 1 + _numbers(draws[:, -2:-1], depth), drawn, 0)
    # Of parameters that are all one, Dirichlet's weights are exponential draws by their sum.
    parts = -tf.math.log1p(-draws[:, -1])
    # And Beta's is uniform; of a key of its own, since it is one for all chains.
    mixed = tf.random.stateless_uniform([], tf.add(key, [1 << 56, 0]))
    chains = [Drawn(drawn[n], strengths[n], _nowhere(depth)) for n in range(width)]
    return chains, mixed, mixed * parts / tf.reduce_sum(parts)


def _table(strengths: Sequence[Strength]) -> Any:
    """Give the two strengths of each."""
    return np.array([strength.both for strength in strengths], np.float32)


def _nowhere(layers: int) -> Any:
    """Give places for operations that have none."""
    return tf.zeros([layers, 2], tf.float32)


def cutout(image: Any, side: Any, place: Any) -> Any:
    """Fill a square about a place (row, column, each from 0 to 1) that may reach over the edge."""
    sides = tf.cast(tf.shape(image)[:2], tf.float32)
    middle = tf.floor(place * sides)
    half = tf.floor(side / 2)
    return fill(image, tf.maximum(middle - half, 0), tf.minimum(middle + half, sides), CUTOUT_FILL)


def random_erasing(image: Any, key: Any, numbers: Sequence[float]) -> Any:
    """Fill a random part with 0, as torchvision does: ten tries to find one that fits."""
    likelihood, min_area, max_area, min_ratio, max_ratio = numbers
    sides = tf.cast(tf.shape(image)[:2], tf.float32)
    draws = tf.random.stateless_uniform([1 + 4 * TRIES], key)
    area, shape, top, left = tf.unstack(tf.reshape(draws[1:], [4, TRIES]))
    area = (min_area + area * (max_area - min_area)) * tf.reduce_prod(sides)
    low, high = math.log(min_ratio), math.log(max_ratio)
    ratio = tf.exp(low + shape * (high - low))
    parts = tf.round(tf.stack([tf.sqrt(area * ratio), tf.sqrt(area / ratio)], axis=1))
    fits = tf.reduce_all(parts < sides, axis=1)
    first = tf.argmax(tf.cast(fits, tf.uint8))
    part = parts[first] * tf.cast(fits[first] & (draws[0] < likelihood), tf.float32)
    begin = tf.floor(tf.stack([top[first], left[first]]) * (sides - part + 1))
    return fill(image, begin, begin + part, (0, 0, 0))


def fill(image: Any, begin: Any, end: Any, colour: Sequence[float]) -> Any:
    """Give an image one colour from (row, column) to before another.

    On rows of numbers, and by arithmetic: a choice pixel by pixel takes ten times as long.
    """
    height, width = tf.unstack(tf.shape(image)[:2])
    inside = [
        tf.cast((line >= begin[axis]) & (line < end[axis]), image.dtype)
        for axis, line in enumerate(tf.range(tf.cast(n, tf.float32)) for n in (height, width))
    ]
    columns = tf.repeat(inside[1], 3)
    hole = inside[0][:, None] * columns[None, :]
    rows = tf.reshape(image, [height, width * 3])
    filled = rows * (1 - hole)
    if any(colour):
        filled += hole * tf.tile(tf.constant(colour, image.dtype), [width])[None, :]
    return tf.ensure_shape(tf.reshape(filled, tf.shape(image)), image.shape)
