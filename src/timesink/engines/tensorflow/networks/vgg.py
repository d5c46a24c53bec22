"""VGG-11 and VGG-16 without batch normalisation: 132,863,336 and 138,357,544 parameters."""

from collections.abc import Sequence

import keras

from timesink.engines.tensorflow.networks.heads import dense_classifier

MINIMUM_SIZE = 32
"""Five pools halve the image."""

_DROPOUT = 0.5
_VGG11_BLOCKS = ((64,), (128,), (256, 256), (512, 512), (512, 512))
_VGG16_BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))


def vgg11(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build VGG-11: `conv1` to `conv8`."""
    return _vgg("vgg11", _VGG11_BLOCKS, image_size, classes, dropout)


def vgg16(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build VGG-16: `conv1` to `conv13`."""
    return _vgg("vgg16", _VGG16_BLOCKS, image_size, classes, dropout)


def _vgg(
    name: str,
    blocks: Sequence[Sequence[int]],
    image_size: int,
    classes: int,
    dropout: float | None,
) -> keras.Model:
    images = keras.Input((image_size, image_size, 3), name="images")
    features = images
    convolutions = 0
    for pool, block in enumerate(blocks, start=1):
        for filters in block:
            convolutions += 1
            features = keras.layers.Conv2D(
                filters,
                3,
                padding="same",
                activation="relu",
                kernel_initializer="he_normal",
                name=f"conv{convolutions}",
            )(features)
        features = keras.layers.MaxPooling2D(2, name=f"pool{pool}")(features)
    scores = dense_classifier(features, classes, _DROPOUT if dropout is None else dropout)
    return keras.Model(images, scores, name=name)
