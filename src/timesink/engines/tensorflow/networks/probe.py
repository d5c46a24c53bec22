"""A user's model tried on three images: what it takes and gives, or a NetworkError.

One real call shows the outputs' shapes whatever kind of model it is, and tells probabilities
from logits also where no layer says "softmax".
"""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
from numpy.typing import NDArray

from timesink.errors import NetworkError


@dataclass(frozen=True)
class Outputs:
    """What a model gives for a batch of images."""

    count: int
    probabilities: bool
    """Whether every output sums to one over the classes, as a softmax does."""


def probe(model: keras.Model, spec: str, image_size: int, classes: int) -> Outputs:
    """Call the model as training will, check what it takes and gives."""
    if not getattr(model, "inputs", None):
        # With a batch of open size: a real one would fix its size in a Sequential.
        model(keras.Input((image_size, image_size, 3)))
    _check_input(model, spec, image_size)
    given = model(_images(image_size), training=False)
    if isinstance(given, dict):
        raise NetworkError(
            f"training.network: {spec} gives a dict of outputs "
            f"({', '.join(map(str, given))}): return a list, the main output first"
        )
    outputs = list(given) if isinstance(given, list | tuple) else [given]
    for position, output in enumerate(outputs):
        _check_output(output, position, spec, classes)
    if not model.trainable_variables:
        raise NetworkError(f"training.network: {spec} has no trainable weights")
    probable = [_sums_to_one(output) for output in outputs]
    if any(probable) and not all(probable):
        raise NetworkError(
            f"training.network: {spec} mixes outputs with and without softmax: "
            "give all of them the same"
        )
    return Outputs(len(outputs), all(probable))


def _images(image_size: int) -> NDArray[np.float32]:
    """Three images far apart, so that no logits sum to one on all of them by accident."""
    shape = (image_size, image_size, 3)
    ramp = np.linspace(0.0, 1.0, image_size * image_size * 3).reshape(shape)
    noise = np.random.default_rng(0).random(shape)
    return np.stack([ramp, noise, 4.0 * (1.0 - ramp)]).astype(np.float32)


def _check_input(model: keras.Model, spec: str, image_size: int) -> None:
    """Compare the inputs that a model declares; a subclassed one declares none."""
    declared = getattr(model, "inputs", None)
    if not declared:
        return
    if len(declared) != 1:
        raise NetworkError(
            f"training.network: {spec} takes {len(declared)} inputs: it must take one, the images"
        )
    wanted = (None, image_size, image_size, 3)
    shape = tuple(declared[0].shape)
    fits = len(shape) == 4 and all(
        side is None or side == wanted[axis] for axis, side in enumerate(shape)
    )
    if not fits:
        raise NetworkError(
            f"training.network: {spec} takes {shape}, but the images are {wanted}: "
            "set pipeline.image_size, or use the input_shape that is given"
        )


def _check_output(output: Any, position: int, spec: str, classes: int) -> None:
    which = "output" if position == 0 else f"auxiliary output {position}"
    if not hasattr(output, "shape"):
        raise NetworkError(
            f"training.network: {spec}: the {which} is a {type(output).__name__}, not a tensor"
        )
    shape = (None, *tuple(output.shape)[1:])
    if shape != (None, classes):
        raise NetworkError(
            f"training.network: {spec}: the {which} is {shape}: "
            f"it must be {(None, classes)}, one score a class"
        )


def _sums_to_one(output: Any) -> bool:
    scores = keras.ops.convert_to_numpy(keras.ops.cast(output, "float32"))
    half = keras.backend.standardize_dtype(output.dtype) in ("float16", "bfloat16")
    tolerance = 2e-2 if half else 1e-4
    return bool((scores >= 0).all() and (abs(scores.sum(axis=-1) - 1) < tolerance).all())
