"""Optimizers: their rates step by step, what decays and what does not, and their whole state."""

import math
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from timesink.engines.tensorflow.optimizers import build_optimizer, l2_gradients
from timesink.experiment import TrainingSection

KINDS = ("sgd", "adam", "adamw", "rmsprop")


def variables() -> list[keras.Variable]:
    """A kernel, a depthwise kernel, a bias and a scale, all ones."""
    shapes = {"kernel": (3, 2), "depthwise": (3, 3, 2, 1), "bias": (2,), "gamma": (2,)}
    return [keras.Variable(np.ones(shape), name=name) for name, shape in shapes.items()]


def rate_at(training: TrainingSection, step: int) -> float:
    optimizer = build_optimizer(training, steps_per_epoch=10, total_steps=200)
    optimizer.iterations.assign(step)
    return float(optimizer.learning_rate)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("constant", {0: 0.5, 199: 0.5}),
        ("step", {0: 0.5, 19: 0.5, 20: 0.05, 39: 0.05, 40: 0.005, 199: 0.5e-9}),
        ("exponential", {0: 0.5, 10: 0.5 * 10**-0.5, 20: 0.05, 30: 0.5 * 10**-1.5}),
        ("cosine", {0: 0.5, 50: 0.25 * (1 + math.sqrt(0.5)), 100: 0.25, 200: 0.0, 300: 0.0}),
    ],
)
def test_a_schedule_gives_the_rate_of_each_step(schedule: Any, rates: dict[int, float]) -> None:
    training = TrainingSection(learning_rate=0.5, schedule=schedule, decay_epochs=2.0)
    for step, rate in rates.items():
        assert rate_at(training, step) == pytest.approx(rate, rel=1e-5, abs=1e-8)


def test_a_decay_of_less_than_a_step_is_one_factor_a_step() -> None:
    training = TrainingSection(
        learning_rate=1.0, schedule="step", decay_epochs=0.001, decay_factor=0.5
    )
    assert rate_at(training, 3) == pytest.approx(0.125)


def test_each_kind_is_what_it_is_called() -> None:
    built = {
        kind: build_optimizer(TrainingSection(optimizer=kind, momentum=0.7, weight_decay=0.1), 1, 1)
        for kind in KINDS
    }
    assert isinstance(built["sgd"], keras.optimizers.SGD)
    assert isinstance(built["rmsprop"], keras.optimizers.RMSprop)
    assert isinstance(built["adam"], keras.optimizers.Adam)
    assert isinstance(built["adamw"], keras.optimizers.AdamW)
    assert built["sgd"].momentum == built["rmsprop"].momentum == 0.7
    assert [optimizer.name for optimizer in built.values()] == list(KINDS)


def test_only_adamw_decays_by_itself() -> None:
    for kind in KINDS:
        optimizer = build_optimizer(TrainingSection(optimizer=kind, weight_decay=0.1), 1, 1)
        assert optimizer.weight_decay == (0.1 if kind == "adamw" else None)
    assert build_optimizer(TrainingSection(optimizer="adamw"), 1, 1).weight_decay is None


@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_a_step_without_gradient_shrinks_the_kernels_and_nothing_else(
    kind: Any, precision: Any
) -> None:
    training = TrainingSection(
        optimizer=kind,
        learning_rate=0.5,
        momentum=0.0,
        weight_decay=0.1,
        precision=precision,
    )
    weights = variables()
    optimizer = build_optimizer(training, 1, 1)
    optimizer.build(weights)
    gradients = [tf.zeros(weight.shape) for weight in weights]
    if kind != "adamw":
        gradients = l2_gradients(gradients, weights, optimizer.scale_loss(tf.constant(0.1)))
    optimizer.apply(gradients, weights)
    assert [float(weight.numpy().mean()) for weight in weights] == pytest.approx(
        [0.95, 0.95, 1.0, 1.0]
    )


def test_l2_adds_to_kernels_and_leaves_the_rest_as_it_was() -> None:
    weights = variables()
    gradients = [None, tf.zeros((3, 3, 2, 1)), tf.zeros(2), None]
    decayed = l2_gradients(gradients, weights, 0.25)
    assert decayed[0] is None
    assert np.all(decayed[1].numpy() == 0.25)
    assert decayed[2] is gradients[2]
    assert decayed[3] is None


def test_l2_takes_the_sparse_gradient_of_an_embedding() -> None:
    table = keras.Variable(np.ones((3, 2)))
    sparse = tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1]), tf.constant([3, 2]))
    (decayed,) = l2_gradients([sparse], [table], 0.5)
    assert decayed.numpy().tolist() == [[0.5, 0.5], [1.5, 1.5], [0.5, 0.5]]


def test_float16_scales_the_loss_and_bfloat16_does_not() -> None:
    scaled = build_optimizer(TrainingSection(precision="mixed_float16", learning_rate=0.25), 1, 1)
    assert isinstance(scaled, keras.optimizers.LossScaleOptimizer)
    assert float(scaled.learning_rate) == 0.25
    plain = build_optimizer(TrainingSection(precision="mixed_bfloat16"), 1, 1)
    assert isinstance(plain, keras.optimizers.SGD)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", ["float32", "mixed_float16"])
def test_the_variables_hold_the_whole_state(kind: Any, precision: Any) -> None:
    # GIVEN two steps of one optimizer
    training = TrainingSection(
        optimizer=kind, precision=precision, schedule="cosine", weight_decay=0.01
    )

    def built() -> tuple[list[keras.Variable], keras.optimizers.Optimizer]:
        weights = variables()
        optimizer = build_optimizer(training, 1, 10)
        optimizer.build(weights)
        return weights, optimizer

    def step(weights: list[keras.Variable], optimizer: keras.optimizers.Optimizer) -> None:
        optimizer.apply([tf.ones(weight.shape) * 64.0 for weight in weights], weights)

    weights, optimizer = built()
    step(weights, optimizer)
    step(weights, optimizer)
    # WHEN its variables are copied into a new one
    resumed_weights, resumed = built()
    pairs = list(
        zip(
            [*resumed_weights, *resumed.variables],
            [*weights, *optimizer.variables],
            strict=True,
        )
    )
    for new, old in pairs:
        new.assign(old)
    # THEN the third step is the same in both
    step(weights, optimizer)
    step(resumed_weights, resumed)
    assert int(resumed.iterations) == 3
    for new, old in pairs:
        np.testing.assert_array_equal(new.numpy(), old.numpy())
    paths = [variable.path for variable in optimizer.variables]
    assert len(set(paths)) == len(paths)
