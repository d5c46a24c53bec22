"""From the experiment's `training.network` to a Keras model: Timesink's six or the user's own."""

from collections.abc import Callable

import keras

from timesink.engines.tensorflow.networks import alexnet, googlenet, published, vgg
from timesink.engines.tensorflow.networks.network import AUXILIARY_WEIGHT, Network
from timesink.engines.tensorflow.networks.own import build_own
from timesink.errors import NetworkError
from timesink.experiment import TrainingSection

__all__ = ["Network", "build_network"]

_BUILDERS: dict[str, tuple[Callable[[int, int, float | None], keras.Model], int]] = {
    "alexnet": (alexnet.alexnet, alexnet.MINIMUM_SIZE),
    "vgg11": (vgg.vgg11, vgg.MINIMUM_SIZE),
    "vgg16": (vgg.vgg16, vgg.MINIMUM_SIZE),
    "googlenet": (googlenet.googlenet, googlenet.MINIMUM_SIZE),
    "resnet50": (published.resnet50, published.MINIMUM_SIZE),
    "mobilenetv2": (published.mobilenetv2, published.MINIMUM_SIZE),
}


def build_network(training: TrainingSection, image_size: int, classes: int) -> Network:
    """Build the network for square images of this size and so many classes.

    The caller sets Keras' dtype policy and seed, and enters its distribution strategy, before.
    """
    if training.network in _BUILDERS:
        network = _build_known(training, image_size, classes)
    else:
        network = build_own(training, image_size, classes)
    if training.synchronized_batch_norm:
        _synchronize_batch_norm(network.model)
    return network


def _build_known(training: TrainingSection, image_size: int, classes: int) -> Network:
    build, minimum = _BUILDERS[training.network]
    if image_size < minimum:
        raise NetworkError(
            f"{training.network} needs images of at least {minimum} pixels: "
            f"found {image_size}; set pipeline.image_size"
        )
    model = build(image_size, classes, training.dropout)
    weights = (1.0, *[AUXILIARY_WEIGHT] * (len(model.outputs) - 1))
    return Network(training.network, model, weights, from_logits=True)


def _synchronize_batch_norm(model: keras.Model) -> None:
    # In place, because the layer reads the flag at each call (Keras 3.15, `_moments`): a clone
    # would lose a user's weights and cannot be made of a subclassed model.
    for layer in model._flatten_layers():
        if isinstance(layer, keras.layers.BatchNormalization):
            layer.synchronized = True
