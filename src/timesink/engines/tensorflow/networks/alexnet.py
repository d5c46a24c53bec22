"""AlexNet on one device, as torchvision has it: 61,100,840 parameters at 224 pixels."""

import keras

from timesink.engines.tensorflow.networks.heads import dense_classifier

MINIMUM_SIZE = 63
"""Below this, the third pool has less than its 3×3 window to look at."""

_DROPOUT = 0.5


def alexnet(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build AlexNet; `dropout` is the rate of both dropout layers."""
    images = keras.Input((image_size, image_size, 3), name="images")
    # "same" would pad by 7 in all and give a map of 56×56 where the published network has 55×55.
    features = keras.layers.ZeroPadding2D(2, name="conv1_pad")(images)
    features = _convolution(64, 11, "conv1", strides=4, padding="valid")(features)
    features = keras.layers.MaxPooling2D(3, strides=2, name="pool1")(features)
    features = _convolution(192, 5, "conv2")(features)
    features = keras.layers.MaxPooling2D(3, strides=2, name="pool2")(features)
    features = _convolution(384, 3, "conv3")(features)
    features = _convolution(256, 3, "conv4")(features)
    features = _convolution(256, 3, "conv5")(features)
    features = keras.layers.MaxPooling2D(3, strides=2, name="pool3")(features)
    scores = dense_classifier(features, classes, _DROPOUT if dropout is None else dropout)
    return keras.Model(images, scores, name="alexnet")


def _convolution(
    filters: int, side: int, name: str, strides: int = 1, padding: str = "same"
) -> keras.layers.Conv2D:
    return keras.layers.Conv2D(
        filters,
        side,
        strides=strides,
        padding=padding,
        activation="relu",
        kernel_initializer="he_normal",
        name=name,
    )
