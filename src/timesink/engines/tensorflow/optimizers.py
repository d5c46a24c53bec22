"""From the experiment's `[training]` to a Keras optimizer with its schedule and weight decay."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from timesink.experiment import TrainingSection


class KernelAdamW(keras.optimizers.AdamW):
    """AdamW whose decay leaves biases and normalisations alone."""

    def build(self, variables: Sequence[Any]) -> None:
        """Make the state; Keras takes what is excluded only before this."""
        if not self.built:
            self.exclude_from_weight_decay(
                var_list=[variable for variable in variables if not _is_kernel(variable)]
            )
        super().build(variables)


def build_optimizer(
    training: TrainingSection, steps_per_epoch: int, total_steps: int
) -> keras.optimizers.Optimizer:
    """Build the optimizer; for all but adamw the train step adds the decay (`l2_gradients`)."""
    rate = _learning_rate(training, steps_per_epoch, total_steps)
    optimizer = _bare(training, rate)
    if training.precision == "mixed_float16":
        return keras.mixed_precision.LossScaleOptimizer(optimizer, name="loss_scale")
    return optimizer


def l2_gradients(
    gradients: Sequence[Any], variables: Sequence[Any], weight_decay: Any
) -> list[Any]:
    """Add `weight_decay · variable` to the gradients of kernels; None stays None.

    Keras' `apply` divides gradients by the loss scale and sums (not averages) them over the
    replicas: a train step gives `optimizer.scale_loss(weight_decay / replicas)`.
    """
    return [
        tf.convert_to_tensor(gradient)
        + tf.cast(weight_decay, gradient.dtype) * tf.cast(variable, gradient.dtype)
        if gradient is not None and _is_kernel(variable)
        else gradient
        for gradient, variable in zip(gradients, variables, strict=True)
    ]


def _is_kernel(variable: Any) -> bool:
    return len(variable.shape) >= 2


def _bare(training: TrainingSection, rate: Any) -> keras.optimizers.Optimizer:
    # Named, because Keras numbers the names of optimizers and their ops carry the name.
    name = training.optimizer
    match name:
        case "sgd":
            return keras.optimizers.SGD(rate, momentum=training.momentum, name=name)
        case "rmsprop":
            return keras.optimizers.RMSprop(rate, momentum=training.momentum, name=name)
        case "adamw" if training.weight_decay > 0:
            return KernelAdamW(rate, weight_decay=training.weight_decay, name=name)
        case "adam" | "adamw":  # Keras' AdamW multiplies every weight by a decay of zero too.
            return keras.optimizers.Adam(rate, name=name)


def _learning_rate(
    training: TrainingSection, steps_per_epoch: int, total_steps: int
) -> float | keras.optimizers.schedules.LearningRateSchedule:
    if training.schedule == "constant":
        return training.learning_rate
    if training.schedule == "cosine":
        return keras.optimizers.schedules.CosineDecay(training.learning_rate, total_steps)
    return keras.optimizers.schedules.ExponentialDecay(
        training.learning_rate,
        decay_steps=max(1, round(training.decay_epochs * steps_per_epoch)),
        decay_rate=training.decay_factor,
        staircase=training.schedule == "step",
    )
