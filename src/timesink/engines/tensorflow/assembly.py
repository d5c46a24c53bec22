"""A network, its optimizer and its compiled step, put together as an experiment asks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from timesink.engines.job import Job
from timesink.engines.tensorflow.devices import prepare_devices
from timesink.engines.tensorflow.networks import Network, build_network
from timesink.engines.tensorflow.optimizers import build_optimizer
from timesink.engines.tensorflow.step import make_train_step


@dataclass(frozen=True)
class Assembly:
    """What trains."""

    strategy: Any
    network: Network
    optimizer: Any
    train_step: Any


def assemble(job: Job, on_trace: Callable[[], None]) -> Assembly:
    """Build on the devices asked for; `on_trace` is called whenever the step is traced."""
    asked, classes = job.experiment.training, len(job.dataset.classes)
    strategy = prepare_devices(job.experiment)
    with strategy.scope():
        network = build_network(asked, job.experiment.pipeline.image_size, classes)
        optimizer = build_optimizer(asked, job.stream.steps_per_epoch, job.iterations)
        optimizer.build(network.model.trainable_variables)
    train_step = make_train_step(network, optimizer, strategy, asked, classes, on_trace)
    return Assembly(strategy, network, optimizer, train_step)


def cached_batch(job: Job) -> tuple[Any, Any]:
    """Make one batch of random images and labels: what the source `synthetic` gives, made once.

    It lies where the pipeline's do, in the host's memory.
    """
    count, size = job.experiment.training.batch_size, job.experiment.pipeline.image_size
    generator = np.random.default_rng(job.experiment.seed)
    with tf.device("CPU:0"):
        images = tf.constant(generator.random((count, size, size, 3), np.float32))
        labels = tf.constant(generator.integers(len(job.dataset.classes), size=count), tf.int32)
    return images, labels


def cached_step(job: Job) -> Callable[[], int]:
    """Give a function that trains once on a batch that is always the same; it gives its images."""
    train_step = assemble(job, on_trace=lambda: None).train_step
    images, labels = cached_batch(job)

    def step() -> int:
        train_step(images, labels).numpy()
        return len(labels)

    return step
