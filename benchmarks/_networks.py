"""Networks that come with no framework: a light one, and two on a device that is not there.

The light one is so quick that on a CPU its input takes as long as it does. The emulated device
takes so many images a second and nothing of the cores: each step waits as long as it would take.
Every figure of it is printed as emulated.
"""

import time
from typing import Any

import keras
import tensorflow as tf


def light(input_shape: Any, classes: int) -> keras.Model:
    """Give a network of four small convolutions."""
    return keras.Sequential(
        [
            keras.Input(input_shape),
            *(
                keras.layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")
                for filters in (16, 32, 64, 96)
            ),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(classes),
        ]
    )


class Device(keras.layers.Layer):
    """Passes images on after the time that a device of some speed needs for them."""

    def __init__(self, images_per_s: float) -> None:
        super().__init__()
        self.images_per_s = images_per_s

    def call(self, images: Any) -> Any:
        """Wait, once a step."""

        def wait(count: Any) -> Any:
            time.sleep(int(count) / self.images_per_s)
            return count

        count = tf.shape(images)[0]
        waited = tf.numpy_function(wait, [count], tf.int32, stateful=True)
        with tf.control_dependencies([waited]):
            return tf.identity(images[:, :1, :1])


def _network(images_per_s: float, input_shape: Any, classes: int) -> keras.Model:
    made = keras.Input(input_shape)
    waited = Device(images_per_s)(made)
    return keras.Model(made, keras.layers.Dense(classes)(keras.layers.Flatten()(waited)))


def small(input_shape: Any, classes: int) -> keras.Model:
    """Stand for a small network: 1,200 images/s."""
    return _network(1200, input_shape, classes)


def large(input_shape: Any, classes: int) -> keras.Model:
    """Stand for a large network: 500 images/s."""
    return _network(500, input_shape, classes)
