"""The ends of the networks: from a feature map or vector to float32 logits."""

from typing import Any

import keras


def logits(
    features: Any, classes: int, name: str = "output", kernel_initializer: Any = "glorot_uniform"
) -> Any:
    """Score the classes, in float32 also where the rest of the network computes in 16 bits."""
    return keras.layers.Dense(
        classes, kernel_initializer=kernel_initializer, dtype="float32", name=name
    )(features)


def dense_classifier(features: Any, classes: int, dropout: float) -> Any:
    """End AlexNet and VGG: `fc1`, `fc2`, `output`; `fc1_dropout` drops what `fc1` gives.

    The feature map is flattened as it is, so that `fc1` grows with the images: torchvision pools
    it to one size first, which changes nothing at 224 pixels.
    """
    hidden = keras.layers.Flatten(name="flatten")(features)
    for name in ("fc1", "fc2"):
        hidden = keras.layers.Dense(
            4096, activation="relu", kernel_initializer="he_normal", name=name
        )(hidden)
        hidden = keras.layers.Dropout(dropout, name=f"{name}_dropout")(hidden)
    # torchvision's small weights: without normalisation before it, Keras' default starts far
    # above log(classes) and the first steps of SGD jump.
    small = keras.initializers.RandomNormal(stddev=0.01)
    return logits(hidden, classes, kernel_initializer=small)
