"""MixUp and CutMix: the images of a batch mixed with each other, by draws that depend on a key.

A mixed image has two labels. So labels become float32 [batch, 3]: label, the other's label, and
the share that the first has in the image; `engines/` makes a target of them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from timesink.loaders.tfaugment import fill
from timesink.pipelines.kinds import Stage

Mix = Callable[[Any, Any, Any], Any]
"""Takes images, labels and positions; gives them."""


def batch_mixer(stages: Sequence[Stage], seed: int) -> Mix | None:
    """Give the function that mixes a batch, or None where no stage does."""
    random = [stage for stage in stages if stage.random]
    if not random or not random[-1].mixes:
        return None
    stage, number = random[-1], len(random) - 1

    @tf.autograph.experimental.do_not_convert
    def mix(images: Any, labels: Any, positions: Any) -> Any:
        with tf.name_scope(stage.name):
            key = tf.stack([tf.constant(seed * 256 + number, tf.int64), positions[0]])
            return *_mixed(stage, images, labels, key), positions

    return mix


def _mixed(stage: Stage, images: Any, labels: Any, key: Any) -> tuple[Any, Any]:
    """Mix a batch with a permutation of itself, as the papers do: one share for the batch."""
    (alpha,) = map(float, stage.arguments)
    others = tf.argsort(tf.random.stateless_uniform(tf.shape(labels), key))
    share = _beta(alpha, tf.add(key, [1 << 56, 0]))
    partners = tf.gather(images, others)
    if stage.name == "mixup":
        images = images * share + partners * (1 - share)
    else:
        images, share = _pasted(images, partners, share, tf.add(key, [1 << 57, 0]))
    pairs = [labels, tf.gather(labels, others)]
    columns = [*(tf.cast(each, tf.float32) for each in pairs), tf.fill(tf.shape(labels), share)]
    return images, tf.stack(columns, axis=1)


def _beta(alpha: float, key: Any) -> Any:
    """Draw from Beta(alpha, alpha): one of two gammas by their sum.

    By their logarithms: gammas of a small parameter are too small for floats, TensorFlow clamps
    both to the same number, and every sixth share of 0.01 was a half. One of a larger parameter by
    a power of a uniform draw is the same.
    """
    larger = tf.random.stateless_gamma([2], key, alpha + 1.0)
    powers = tf.math.log1p(-tf.random.stateless_uniform([2], tf.add(key, [1 << 58, 0]))) / alpha
    first, second = tf.unstack(tf.math.log(larger) + powers)
    return tf.sigmoid(first - second)


def _pasted(images: Any, partners: Any, share: Any, key: Any) -> tuple[Any, Any]:
    """Paste a part of the others, about a random place; gives what is left of the first."""
    sides = tf.cast(tf.shape(images)[1:3], tf.float32)
    part = tf.floor(sides * tf.sqrt(1 - share))
    middle = tf.floor(tf.random.stateless_uniform([2], key) * sides)
    begin = tf.maximum(middle - tf.floor(part / 2), 0)
    end = tf.minimum(middle + tf.floor(part / 2), sides)
    left = fill(tf.ones(tf.shape(images)[1:]), begin, end, (0, 0, 0))
    kept = 1 - tf.reduce_prod(end - begin) / tf.reduce_prod(sides)
    return images * left + partners * (1 - left), kept
