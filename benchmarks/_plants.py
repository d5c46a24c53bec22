"""A small network with delays planted in it: which is on at which step, and how long it was."""

import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import keras
import numpy as np
import tensorflow as tf

BATCH, SIZE, CLASSES = 16, 32, 10
WARM_UP = 10


@dataclass(frozen=True)
class Plant:
    """A delay and the account in which it should be found."""

    name: str
    account: str
    figure: str = "charged"
    """`op` where another op runs beside it: then it is charged half, and `op_ms` has the whole."""
    planted: str = "clock"
    """`step`: the input is made while the step runs, so only the excess can land."""


PLANTS = (
    Plant("forward", "slow forward"),
    Plant("backward", "slow backward"),
    Plant("update", "first update"),
    Plant("loss", "loss"),
    Plant("metric", "loss"),
    Plant("callback", "python: callback Delays.on_train_batch_end"),
    Plant("collection", "python: garbage collection (generation 2)"),
    Plant("beside", "left forward", figure="op"),
)
INPUT = Plant("input", "input_wait")
PREFETCHED = Plant("prefetched input", "input_wait", planted="step")


class Switchboard:
    """Which plant is on at which step, and what each delay took by its own clock."""

    def __init__(self, plants: tuple[Plant, ...], rounds: int, steps: int, delay_ms: float) -> None:
        self.delay_s, self.steps = delay_ms / 1e3, steps
        blocks = [name for _ in range(rounds) for plant in plants for name in ("", plant.name)]
        self.schedule = [""] * WARM_UP + [name for name in blocks for _ in range(steps)] + ["", ""]
        self.on = ""
        self.measured_ms: defaultdict[str, list[float]] = defaultdict(list)

    def sleep(self, name: str) -> None:
        """Sleep if this plant is on."""
        if self.on == name:
            self.sleep_now(name)

    def sleep_now(self, name: str) -> None:
        """Sleep, and note how long it was."""
        begin_ns = time.perf_counter_ns()
        time.sleep(self.delay_s)
        self.measured_ms[name].append((time.perf_counter_ns() - begin_ns) / 1e6)

    def op(self, name: str, values: Any) -> Any:
        """Give the values, after an op that depends on them and sleeps if the plant is on."""

        def nothing(_: Any) -> Any:
            self.sleep(name)
            return np.float32(0)

        one = tf.reshape(values, [-1])[0]
        return values + tf.stop_gradient(scalar(nothing, one))

    def blocks(self, name: str, settling: int) -> Iterator[tuple[list[int], list[int]]]:
        """Give the iterations of each pair of blocks, off and on."""
        for first in range(WARM_UP, len(self.schedule) - 2, 2 * self.steps):
            off = range(first + 1 + settling, first + 1 + self.steps)
            on = range(first + 1 + self.steps + settling, first + 1 + 2 * self.steps)
            if self.schedule[on[0] - 1] == name:
                yield list(off), list(on)


class Sleepy(keras.layers.Layer):
    """A layer that hands its input on, with a delay in each direction."""

    def __init__(self, board: Switchboard, forward: str, backward: str, **options: Any) -> None:
        super().__init__(**options)
        self.board, self.plants = board, (forward, backward)

    def call(self, values: Any) -> Any:
        """Hand on."""

        @tf.custom_gradient
        def handed_on(values: Any) -> tuple[Any, Callable[[Any], Any]]:
            forward, backward = self.plants
            return self.board.op(forward, values), lambda gradient: self.board.op(
                backward, gradient
            )

        return handed_on(values)


class SlowSgd(keras.optimizers.SGD):
    """SGD with a delay in the update of the first kernel, whose gradient comes last."""

    board: Switchboard

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update one variable."""
        if variable.name.startswith("first/kernel"):
            gradient = self.board.op("update", gradient)
        super().update_step(gradient, variable, learning_rate)


class KernelSize(keras.metrics.Mean):
    """A slow metric. It looks at the first kernel, so that it runs after all updates, alone."""

    def __init__(self, board: Switchboard, kernel: Any) -> None:
        super().__init__(name="kernel_size")
        self.board, self.kernel = board, kernel

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Compare the scores' size with the updated kernel's."""
        sizes = tf.reduce_max(y_pred) * tf.reduce_max(tf.convert_to_tensor(self.kernel))
        super().update_state(self.board.op("metric", sizes))


class Delays(keras.callbacks.Callback):
    """Switches the plants, and is the slow callback itself."""

    def __init__(self, board: Switchboard) -> None:
        super().__init__()
        self.board = board
        self._collecting_ns = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        """Switch."""
        self.board.on = self.board.schedule[batch]

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Sleep, or collect garbage."""
        self.board.sleep("callback")
        if self.board.on == "collection":
            gc.callbacks.append(self._time)
            gc.collect()
            gc.callbacks.remove(self._time)

    def _time(self, phase: str, about: dict[str, int]) -> None:
        if phase == "start":
            self._collecting_ns = time.perf_counter_ns()
        else:
            took_ms = (time.perf_counter_ns() - self._collecting_ns) / 1e6
            self.board.measured_ms["collection"].append(took_ms)


def network(board: Switchboard) -> keras.Model:
    """Build the network; behind `slow` there are no gradients of weights to run beside it."""

    def convolution(name: str) -> keras.layers.Layer:
        return keras.layers.Conv2D(32, 3, padding="same", activation="relu", name=name)

    images = keras.Input((SIZE, SIZE, 3))
    x = convolution("second")(convolution("first")(images))
    left = Sleepy(board, "beside", "never", name="left")(x)
    right = Sleepy(board, "beside", "never", name="right")(x)
    x = convolution("third")(keras.layers.Add(name="join")([left, right]))
    x = Sleepy(board, "forward", "backward", name="slow")(x)
    x = keras.layers.GlobalAveragePooling2D(name="pool")(x)
    model = keras.Model(images, keras.layers.Dense(CLASSES, name="last")(x))
    entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = SlowSgd(0.01)
    optimizer.board = board
    model.compile(
        optimizer=optimizer,
        loss=lambda labels, scores: entropy(labels, board.op("loss", scores)),
        metrics=[KernelSize(board, model.get_layer("first").kernel)],
        jit_compile=False,
    )
    return model


def batches(board: Switchboard, plant: Plant | None) -> tf.data.Dataset:
    """Give a batch for each step; the input's delays go by its number, for it may run ahead."""
    rng = np.random.default_rng(0)
    images = tf.constant(rng.random((BATCH, SIZE, SIZE, 3)), tf.float32)
    labels = tf.constant(rng.integers(0, CLASSES, BATCH), tf.int32)
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    dataset = tf.data.Dataset.range(len(board.schedule)).with_options(options)
    if plant is None:
        return dataset.map(lambda _: (images, labels)).prefetch(2)

    def wait(number: Any) -> Any:
        if board.schedule[int(number)] == plant.name:
            board.sleep_now(plant.name)
        return np.float32(0)

    # Stateful, or tf.data would run the map in parallel, ahead of the step.
    made = dataset.map(lambda number: (images + scalar(wait, number, stateful=True), labels))
    return made.prefetch(1) if plant is PREFETCHED else made


def scalar(function: Callable[[Any], Any], argument: Any, *, stateful: bool = False) -> Any:
    """Give an op that calls a function of Python, which gives one number.

    Stateful ops of one graph wait for each other (TensorFlow 2.21, auto_control_deps.py).
    """
    number = tf.numpy_function(function, [argument], tf.float32, stateful=stateful)
    return tf.ensure_shape(number, [])
