"""The two compiled functions: a training step and a validation step."""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from timesink.engines.tensorflow.networks import Network
from timesink.engines.tensorflow.optimizers import l2_gradients
from timesink.experiment import TrainingSection

FIGURES = ("loss", "top1", "topn")
"""What a step returns, in this order, as one vector: one copy off the device a step."""


def make_train_step(
    network: Network,
    optimizer: Any,
    strategy: Any,
    training: TrainingSection,
    classes: int,
    on_trace: Callable[[], None],
) -> Any:
    """Give a tf.function (images, labels) → [loss, top-1, top-n] that updates the weights once."""
    replicas = training.replicas
    share = training.batch_size // replicas
    topn = min(training.topn, classes)
    decay = 0.0 if training.optimizer == "adamw" else training.weight_decay

    def on_replica(images: Any, labels: Any) -> Any:
        if replicas > 1:
            # Slicing on the host sends each device its own part only.
            first = tf.distribute.get_replica_context().replica_id_in_sync_group * share
            with tf.device("CPU:0"):
                images, labels = images[first : first + share], labels[first : first + share]
        variables = network.model.trainable_variables
        with tf.GradientTape() as tape:
            outputs = _outputs(network.model(images, training=True))
            with tf.name_scope("loss"):
                losses = [
                    weight * tf.reduce_sum(_cross_entropy(labels, output, network, training))
                    for weight, output in zip(network.loss_weights, outputs, strict=True)
                ]
                loss = tf.add_n(losses) / training.batch_size
                # A network's own penalties are per replica, and replicas' gradients are summed.
                penalties = [tf.cast(p, loss.dtype) / replicas for p in network.model.losses]
                objective = tf.add_n([loss, *penalties])
                scaled = optimizer.scale_loss(objective)
        gradients = tape.gradient(scaled, variables)
        if decay:
            scale = optimizer.scale_loss(tf.constant(decay / replicas))
            gradients = l2_gradients(gradients, variables, scale)
        optimizer.apply_gradients(zip(gradients, variables, strict=True))
        with tf.name_scope("metrics"):
            hits = _hits(labels, outputs[0], topn)
            return tf.stack([objective, *(count / training.batch_size for count in hits)])

    @tf.function(autograph=False, jit_compile=training.xla)
    def train_step(images: Any, labels: Any) -> Any:
        on_trace()
        if replicas == 1:
            return on_replica(images, labels)
        figures = strategy.run(on_replica, args=(images, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, figures, axis=None)

    return train_step


def make_validation_step(network: Network, training: TrainingSection, classes: int) -> Any:
    """Give a tf.function (images, labels) → sums of [loss, top-1, top-n] over the batch."""
    topn = min(training.topn, classes)

    @tf.function(autograph=False, reduce_retracing=True)
    def validation_step(images: Any, labels: Any) -> Any:
        output = _outputs(network.model(images, training=False))[0]
        loss = tf.reduce_sum(
            keras.losses.sparse_categorical_crossentropy(
                labels, output, from_logits=network.from_logits
            )
        )
        return tf.stack([loss, *_hits(labels, output, topn)])

    return validation_step


def _outputs(called: Any) -> list[Any]:
    outputs = called if isinstance(called, list | tuple) else [called]
    return [tf.cast(output, tf.float32) for output in outputs]


def _cross_entropy(labels: Any, output: Any, network: Network, training: TrainingSection) -> Any:
    if labels.shape.rank == 2:
        return keras.losses.categorical_crossentropy(
            _target(labels, output.shape[-1]),
            output,
            from_logits=network.from_logits,
            label_smoothing=training.label_smoothing,
        )
    if training.label_smoothing == 0:
        return keras.losses.sparse_categorical_crossentropy(
            labels, output, from_logits=network.from_logits
        )
    return keras.losses.categorical_crossentropy(
        tf.one_hot(labels, output.shape[-1]),
        output,
        from_logits=network.from_logits,
        label_smoothing=training.label_smoothing,
    )


def _target(pairs: Any, classes: int) -> Any:
    """Give what a mixed image should be taken for: both of its classes, by their shares."""
    labels, others, share = tf.unstack(pairs, axis=1)
    first, second = (tf.one_hot(tf.cast(each, tf.int32), classes) for each in (labels, others))
    return first * share[:, None] + second * (1 - share[:, None])


def _hits(labels: Any, output: Any, topn: int) -> tuple[Any, Any]:
    """Count the images whose label is the best answer, and among the best n.

    Of a mixed image it is the label of what it has most of.
    """
    if labels.shape.rank == 2:
        first, second, share = tf.unstack(labels, axis=1)
        labels = tf.cast(tf.where(share >= 0.5, first, second), tf.int32)
    return tuple(
        tf.reduce_sum(tf.cast(tf.math.in_top_k(labels, output, k), tf.float32)) for k in (1, topn)
    )
