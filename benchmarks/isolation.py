"""The ledger's time of AlexNet's layers against each layer alone, forward and backward.

AlexNet is trained in this process by `fit`, in traced windows. After each step between them every
layer is run by itself, at the shapes and the batch it has in the network, in tf.functions of its
own: one that calls it, and one that also gives the gradients of its input and weights, as a step
needs them; `backward` is what the second takes longer. What a function costs that does nothing is
taken off. The ledger's figure is `op_ms`, what the layer's ops took.

    python benchmarks/isolation.py [--batch-size 16] [--image-size 224] [--threads 1]

They need not agree: in the step the gradients of a layer's input and of its weights run at once,
each on half of the cores, and `op_ms` has the time of both, while alone only the wall is taken;
an update of another layer may run beside them; and a layer alone finds its weights out of the
cache. With `--threads 1` no two ops run at once, so that this difference is gone.
"""

import argparse
import contextlib
import io
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import polars as pl
import tensorflow as tf

import timesink
from timesink.engines.tensorflow.networks import build_network
from timesink.experiment import load

CLASSES = 10
SMALL = 0.005
"""Of the network's time: a layer that takes less is shown, and not part of the worst ratio."""

WARM_UP = 4

Key = tuple[str, str]
"""Layer and phase."""
Times = dict[Key, float]
"""In ms."""


def build(batch_size: int, image_size: int) -> keras.Model:
    """Build and compile AlexNet."""
    asked = load(None, ["training.network=alexnet", f"training.batch_size={batch_size}"])
    model = build_network(asked.training, image_size, CLASSES).model
    model.compile(
        optimizer=keras.optimizers.SGD(0.001),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=False,
    )
    return model


class Alone(keras.callbacks.Callback):
    """Runs every layer by itself after the steps that are not traced."""

    def __init__(self, model: keras.Model, batch_size: int, traced: Callable[[int], bool]) -> None:
        super().__init__()
        self.traced = traced
        self.calls: dict[Key, Callable[[], Any]] = {}
        self.took_ms: defaultdict[Key, list[float]] = defaultdict(list)
        for layer in model.layers:
            if isinstance(layer, keras.layers.InputLayer):
                continue
            values = tf.nn.relu(tf.random.normal((batch_size, *layer.input.shape[1:])))
            upstream = tf.random.normal((batch_size, *layer.output.shape[1:]))
            # Before the first weights there are only images, whose gradient no step needs.
            first = layer.name in ("conv1_pad", "conv1")
            for phase, call in functions(layer, wants_input=not first).items():
                self.calls[layer.name, phase] = lambda c=call, v=values, u=upstream: c(v, u)
        for call in self.calls.values():
            call()
            call()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """Time each layer once."""
        if self.traced(batch + 1):
            return
        for key, call in self.calls.items():
            begin_ns = time.perf_counter_ns()
            call()
            self.took_ms[key].append((time.perf_counter_ns() - begin_ns) / 1e6)

    def times(self) -> Times:
        """Give the medians, without what a call costs that does nothing."""
        middle = {key: statistics.median(each) for key, each in self.took_ms.items()}
        found: Times = {}
        for layer in dict.fromkeys(layer for layer, _ in self.calls):
            found[layer, "forward"] = max(middle[layer, "forward"] - middle[layer, "nothing"], 0.0)
            if (layer, "both") in middle:
                pairs = zip(
                    self.took_ms[layer, "both"], self.took_ms[layer, "forward"], strict=True
                )
                found[layer, "backward"] = max(statistics.median(b - f for b, f in pairs), 0.0)
        return found


def compare(
    model: keras.Model, batch: tuple[Any, Any], windows: int, steps: int
) -> tuple[Times, Times]:
    """Train with traced windows, and between them the layers alone; gives alone and `op_ms`."""
    dataset = tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)
    total = WARM_UP + 2 * windows * steps
    alone = Alone(
        model,
        batch[0].shape[0],
        lambda step: step <= WARM_UP or (step - WARM_UP - 1) // steps % 2 == 0,
    )
    with tempfile.TemporaryDirectory() as directory, contextlib.redirect_stderr(io.StringIO()):
        run = Path(directory) / "run"
        observed = timesink.Callback(
            run, mode="window", start=WARM_UP, windows=windows, steps=steps, force=True
        )
        model.fit(dataset, steps_per_epoch=total, verbose=0, callbacks=[alone, observed])
        layers = pl.read_csv(run / "layers.csv")
    assert layers["iteration"].n_unique() == windows * steps
    medians = layers.group_by("layer", "phase").agg(pl.col("op_ms").median())
    ledger = {(layer, phase): took for layer, phase, took in medians.iter_rows() if layer}
    return alone.times(), ledger


def functions(layer: Any, *, wants_input: bool) -> dict[str, Callable[[Any, Any], Any]]:
    """Give the layer's call, and its call with the gradients that a step asks for."""
    weights = [variable.value for variable in layer.trainable_variables]

    @tf.function(autograph=False)
    def nothing(values: Any, upstream: Any) -> Any:
        return tf.reshape(values, [-1])[0]

    @tf.function(autograph=False)
    def forward(values: Any, upstream: Any) -> Any:
        # Only a number leaves the function: else the result would have to outlive it.
        return tf.reshape(layer(values, training=True), [-1])[0]

    @tf.function(autograph=False)
    def both(values: Any, upstream: Any) -> Any:
        sources = [*([values] if wants_input else []), *weights]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(sources)
            result = layer(values, training=True)
        gradients = tape.gradient(result, sources, output_gradients=upstream)
        return [tf.reshape(each, [-1])[0] for each in [result, *gradients]]

    made = {"nothing": nothing, "forward": forward, "both": both}
    if not wants_input and not weights:
        del made["both"]
    return made


def show(model: keras.Model, by_itself: Times, ledger: Times) -> None:
    """Print the table, how the two go together, and the worst ratio."""
    total_ms = sum(by_itself.values())
    print(
        f"{'layer':14} {'alone fwd':>10} {'ledger fwd':>10} {'ratio':>6}"
        f" {'alone bwd':>10} {'ledger bwd':>10} {'ratio':>6}"
    )
    for layer in model.layers:
        if (layer.name, "forward") in by_itself:
            cells = (cell(by_itself, ledger, layer.name, p) for p in ("forward", "backward"))
            print(f"{layer.name:14} {' '.join(cells)}")
    both = sorted(set(by_itself) & set(ledger))
    x, y = np.array([by_itself[key] for key in both]), np.array([ledger[key] for key in both])
    print(
        f"{'all':14} alone {x.sum():.1f} ms, ledger {y.sum():.1f} ms, ratio {y.sum() / x.sum():.3f}"
    )
    ranks = [np.argsort(np.argsort(each)) for each in (x, y)]
    print(
        f"{len(both)} figures: Pearson {np.corrcoef(x, y)[0, 1]:.4f},"
        f" Spearman {np.corrcoef(*ranks)[0, 1]:.4f}"
    )
    large = x >= SMALL * total_ms
    ratio = np.where(large, y / np.maximum(x, 1e-9), 1)
    place = int(np.argmax(np.abs(np.log(np.maximum(ratio, 1e-9)))))
    layer, phase = both[place]
    print(
        f"worst ratio of the {large.sum()} that take over {100 * SMALL:.1f} % each:"
        f" {ratio[place]:.3f} ({layer}, {phase})"
    )


def cell(by_itself: Times, ledger: Times, layer: str, phase: str) -> str:
    """Give the three figures of one phase."""
    single, step = by_itself.get((layer, phase)), ledger.get((layer, phase))
    figures = [f"{each:10.3f}" if each is not None else f"{'–':>10}" for each in (single, step)]
    ratio = f"{step / single:6.2f}" if single and step else f"{'–':>6}"
    return " ".join([*figures, ratio])


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--windows", type=int, default=6, help="of traced steps")
    parser.add_argument("--steps", type=int, default=3, help="a window, and layers alone after it")
    parser.add_argument("--threads", type=int, default=0, help="ops at once; 0: as many as cores")
    options = parser.parse_args()
    tf.get_logger().setLevel("ERROR")  # a function for each layer is meant
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    rng = np.random.default_rng(0)
    shape = (options.batch_size, options.image_size, options.image_size, 3)
    batch = (
        tf.constant(rng.random(shape), tf.float32),
        tf.constant(rng.integers(0, CLASSES, options.batch_size), tf.int32),
    )
    model = build(options.batch_size, options.image_size)
    by_itself, ledger = compare(model, batch, options.windows, options.steps)
    print(
        f"AlexNet, batch {options.batch_size}, {options.image_size} pixels, ms: each layer alone,"
        f" and `op_ms` in the ledger; medians of {options.windows * options.steps}"
    )
    show(model, by_itself, ledger)


if __name__ == "__main__":
    main()
