"""ResNet-50 and MobileNetV2 as keras.applications has them, untrained and with logits."""

import keras

from timesink.engines.tensorflow.networks.heads import logits

MINIMUM_SIZE = 32
"""What keras.applications asks of both."""


def resnet50(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build ResNet-50; it has a dropout layer only where a rate is asked for."""
    backbone = keras.applications.ResNet50(
        include_top=False, weights=None, input_shape=(image_size, image_size, 3)
    )
    return _with_head(backbone, classes, dropout, "resnet50")


def mobilenetv2(image_size: int, classes: int, dropout: float | None) -> keras.Model:
    """Build MobileNetV2; it has a dropout layer only where a rate is asked for."""
    backbone = keras.applications.MobileNetV2(
        include_top=False, weights=None, input_shape=(image_size, image_size, 3)
    )
    return _with_head(backbone, classes, dropout, "mobilenetv2")


def _with_head(
    backbone: keras.Model, classes: int, dropout: float | None, name: str
) -> keras.Model:
    # With pooling="avg" MobileNetV2's pool has no name of its own and Keras numbers it,
    # differently at each build.
    features = keras.layers.GlobalAveragePooling2D(name="avg_pool")(backbone.output)
    for layer in backbone.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            # Keras' 0.999 (MobileNetV2) needs thousands of steps before validation sees what
            # was learned; the other frameworks' value is 0.9.
            layer.momentum = 0.9
    if dropout:
        features = keras.layers.Dropout(dropout, name="avg_pool_dropout")(features)
    return keras.Model(backbone.input, logits(features, classes), name=name)
