"""GoogLeNet with batch normalisation and both auxiliary heads, as torchvision has it.

13,004,888 trainable parameters at 224 pixels, 6,624,904 of them on the way to the main head.
torchvision's third branch has a 3×3 kernel where the paper has 5×5; the published counts and
weights are those of 3×3, so the branches are numbered here and not named after their kernels.
"""

from typing import Any

import keras

from timesink.engines.tensorflow.networks.heads import logits

MINIMUM_SIZE = 32
"""The network halves the image five times."""

_DROPOUT = 0.2
_AUXILIARY_DROPOUT = 0.7

# The filters of an inception module: branch 1; branch 2 reduced, full; branch 3 reduced, full;
# branch 4 after its pool.
_INCEPTIONS = {
    "3a": (64, 96, 128, 16, 32, 32),
    "3b": (128, 128, 192, 32, 96, 64),
    "4a": (192, 96, 208, 16, 48, 64),
    "4b": (160, 112, 224, 24, 64, 64),
    "4c": (128, 128, 256, 24, 64, 64),
    "4d": (112, 144, 288, 32, 64, 64),
    "4e": (256, 160, 320, 32, 128, 128),
    "5a": (256, 160, 320, 32, 128, 128),
    "5b": (384, 192, 384, 48, 128, 128),
}
_POOL_AFTER = {"3b": ("pool3", 3), "4e": ("pool4", 2)}
_HEAD_AFTER = {"4a": "aux1", "4d": "aux2"}


def googlenet(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build GoogLeNet with the outputs main, aux1, aux2; `dropout` is the rate of all three."""
    images = keras.Input((image_size, image_size, 3), name="images")
    features = _convolution(images, 64, 7, "conv1", strides=2)
    features = _pool(features, 3, "pool1")
    features = _convolution(features, 64, 1, "conv2")
    features = _convolution(features, 192, 3, "conv3")
    features = _pool(features, 3, "pool2")
    auxiliary = []
    for name, filters in _INCEPTIONS.items():
        features = _inception(features, filters, f"inception_{name}")
        if name in _POOL_AFTER:
            pool, side = _POOL_AFTER[name]
            features = _pool(features, side, pool)
        if name in _HEAD_AFTER:
            auxiliary.append(_auxiliary_head(features, classes, dropout, _HEAD_AFTER[name]))
    features = keras.layers.GlobalAveragePooling2D(name="avg_pool")(features)
    rate = _DROPOUT if dropout is None else dropout
    features = keras.layers.Dropout(rate, name="avg_pool_dropout")(features)
    return keras.Model(images, [logits(features, classes), *auxiliary], name="googlenet")


def _convolution(features: Any, filters: int, side: int, name: str, strides: int = 1) -> Any:
    features = keras.layers.Conv2D(
        filters,
        side,
        strides=strides,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
        name=name,
    )(features)
    # torchvision's momentum of 0.1 is 0.9 in Keras, which weighs the past and not the new.
    features = keras.layers.BatchNormalization(momentum=0.9, epsilon=1e-3, name=f"{name}_bn")(
        features
    )
    return keras.layers.Activation("relu", name=f"{name}_relu")(features)


def _pool(features: Any, side: int, name: str) -> Any:
    return keras.layers.MaxPooling2D(side, strides=2, padding="same", name=name)(features)


def _inception(features: Any, filters: tuple[int, int, int, int, int, int], name: str) -> Any:
    direct, reduced2, full2, reduced3, full3, pooled = filters
    branch1 = _convolution(features, direct, 1, f"{name}_branch1")
    branch2 = _convolution(features, reduced2, 1, f"{name}_branch2_reduce")
    branch2 = _convolution(branch2, full2, 3, f"{name}_branch2")
    branch3 = _convolution(features, reduced3, 1, f"{name}_branch3_reduce")
    branch3 = _convolution(branch3, full3, 3, f"{name}_branch3")
    branch4 = keras.layers.MaxPooling2D(3, strides=1, padding="same", name=f"{name}_pool")(features)
    branch4 = _convolution(branch4, pooled, 1, f"{name}_branch4")
    return keras.layers.Concatenate(name=f"{name}_concat")([branch1, branch2, branch3, branch4])


def _auxiliary_head(features: Any, classes: int, dropout: float | None, name: str) -> Any:
    # The paper's 5×5 window: 4×4 values at 224 pixels, fewer and so a smaller fc1 at other sizes.
    window = min(5, features.shape[1])
    features = keras.layers.AveragePooling2D(window, strides=3, name=f"{name}_pool")(features)
    features = _convolution(features, 128, 1, f"{name}_conv")
    features = keras.layers.Flatten(name=f"{name}_flatten")(features)
    features = keras.layers.Dense(
        1024, activation="relu", kernel_initializer="he_normal", name=f"{name}_fc1"
    )(features)
    rate = _AUXILIARY_DROPOUT if dropout is None else dropout
    features = keras.layers.Dropout(rate, name=f"{name}_fc1_dropout")(features)
    return logits(features, classes, name=f"{name}_output")
