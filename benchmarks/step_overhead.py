"""Our training loop against Keras' `fit`: time a step on the same network and batch, as a ratio.

Both train in this one process, in short stretches that alternate, so that what else the machine
does falls on both. A step is timed from its beginning to the next one's: of ours as the run's
journal has it, of `fit` between two `on_train_batch_begin`. `fit` is compiled with the same
optimizer, loss and metrics, and is fed the same batch by the same kind of dataset.

    python benchmarks/step_overhead.py [--network mobilenetv2] [--pairs 12] [--steps 25]
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

from timesink.datasets.images import ImageDataset, ImageSet
from timesink.engines.job import Job
from timesink.engines.tensorflow.networks import build_network
from timesink.engines.tensorflow.train import Trainer
from timesink.experiment import load
from timesink.pipelines.stages import parse_stages
from timesink.runs.journal import Journal

CLASSES = 10
TO_REACH = 1.02


class StepTimes(keras.callbacks.Callback):
    """When each step of `fit` began."""

    def __init__(self) -> None:
        super().__init__()
        self.begins: list[int] = []

    def on_train_batch_begin(self, batch, logs=None) -> None:
        """Take the time."""
        self.begins.append(time.monotonic_ns())


class Peer:
    """Keras' own fit, compiled as a user would."""

    def __init__(self, asked, batch) -> None:
        training = asked.training
        network = build_network(training, asked.pipeline.image_size, CLASSES)
        self.model = network.model
        self.model.compile(
            optimizer=keras.optimizers.SGD(training.learning_rate, momentum=training.momentum),
            loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=[
                keras.metrics.SparseCategoricalAccuracy(),
                keras.metrics.SparseTopKCategoricalAccuracy(5),
            ],
            jit_compile=False,
        )
        self.dataset = tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)

    def stretch(self, steps: int) -> list[float]:
        """Time the steps of one stretch, without the first."""
        times = StepTimes()
        self.model.fit(self.dataset, steps_per_epoch=steps + 2, verbose=0, callbacks=[times])
        return np.diff(times.begins)[1:].tolist()


class Ours:
    """The loop that `timesink run` runs, with its journal on the disk."""

    def __init__(self, asked, batch, directory: Path) -> None:
        images = ImageSet(("unused.jpg",) * 10**6, (0,) * 10**6)
        dataset = ImageDataset(directory, tuple(map(str, range(CLASSES))), images, images, ())
        stages = parse_stages(asked.pipeline.stages)
        job = Job(asked, dataset, stages, directory / "checkpoints", lambda: False)
        self.journal = Journal(directory / "log.txt", 1, time.monotonic_ns())
        self.trainer = Trainer(job, self.journal)
        size = asked.training.batch_size
        numbered = tf.data.Dataset.range(10**9).map(
            lambda i: (*batch, i * size + tf.range(size, dtype=tf.int64))
        )
        self.batches = iter(numbered.prefetch(2))

    def stretch(self, steps: int) -> list[float]:
        """Time the steps of one stretch, without the first."""
        begins = []
        for _ in range(steps + 2):
            begins.append(self.journal.now_ns())
            self.trainer.step(self.batches)
            self.trainer.between_steps()
        return np.diff(begins)[1:].tolist()


def compare(network: str, batch_size: int, image_size: int, pairs: int, steps: int) -> float:
    """Print the ratio of one network's step times; gives its median over the pairs."""
    asked = load(
        None,
        [
            f"training.network={network}",
            f"training.batch_size={batch_size}",
            f"pipeline.image_size={image_size}",
            "training.iterations=1000000",
        ],
    )
    rng = np.random.default_rng(0)
    batch = (
        tf.constant(rng.random((batch_size, image_size, image_size, 3)), tf.float32),
        tf.constant(rng.integers(0, CLASSES, batch_size), tf.int32),
    )
    with tempfile.TemporaryDirectory() as directory:
        ours = Ours(asked, batch, Path(directory))
        peer = Peer(asked, batch)
        ours.stretch(3), peer.stretch(3)
        ratios, ours_ms, peer_ms = [], [], []
        for pair in range(pairs):
            order = (ours, peer) if pair % 2 == 0 else (peer, ours)
            medians = {who: statistics.median(who.stretch(steps)) for who in order}
            ratios.append(medians[ours] / medians[peer])
            ours_ms.append(medians[ours] / 1e6)
            peer_ms.append(medians[peer] / 1e6)
    median = statistics.median(ratios)
    low, high = interval(ratios)
    print(
        f"{network:12} {batch_size:5} {image_size:5} {statistics.median(ours_ms):9.2f} "
        f"{statistics.median(peer_ms):9.2f} {median:7.3f}  [{low:.3f}, {high:.3f}]"
    )
    return median


def interval(ratios: list[float]) -> tuple[float, float]:
    """Give the 95 % interval of the median, by resampling the pairs."""
    rng = np.random.default_rng(0)
    drawn = rng.choice(ratios, (4000, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Compare the networks asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--network", action="append")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--steps", type=int, default=25)
    options = parser.parse_args()
    cases = {"mobilenetv2": (16, 64), "resnet50": (8, 64), "alexnet": (16, 96)}
    print("Time a step: ours over Keras' fit (to reach: at most 1.02)")
    print("network      batch  size   ours ms    fit ms   ratio  95 % interval")
    worst = max(
        compare(network, *cases.get(network, (16, 96)), options.pairs, options.steps)
        for network in options.network or cases
    )
    print(f"worst: {worst:.3f} ({'reached' if worst <= TO_REACH else 'NOT reached'})")


if __name__ == "__main__":
    main()
