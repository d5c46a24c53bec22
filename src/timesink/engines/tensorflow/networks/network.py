"""A network ready to be trained: the Keras model and what the loss must know of its outputs."""

from dataclasses import dataclass

import keras

AUXILIARY_WEIGHT = 0.3
"""The part of an auxiliary head in the loss, as GoogLeNet's paper has it."""


@dataclass(frozen=True)
class Network:
    """A model from images to scores: the main head first, the auxiliary heads after it."""

    name: str
    model: keras.Model
    loss_weights: tuple[float, ...]
    """One an output."""
    from_logits: bool
    """Whether the outputs are logits; otherwise they are probabilities (a softmax's)."""
