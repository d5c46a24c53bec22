"""CPU time of each stage: the pipeline cut off behind it, run alone, less the one cut before it.

No trace has CPU time, and time on the clock is no stand-in where threads share cores. A prefix
gives one number an image, which needs the whole image to have been made, and its size in bytes.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import tensorflow as tf

from timesink.datasets.images import ImageSet
from timesink.engines.tensorflow.quiet import settle
from timesink.experiment import Experiment
from timesink.loaders.tfdata import image_maker, online_stages, training_batches, workers_of
from timesink.loaders.tfread import Span, open_source
from timesink.pipelines.order import training_stream
from timesink.pipelines.stages import Stage, typical_epoch

ROUNDS = 3
"""Each prefix is run so often, in turn with the others; the least time is the least disturbed."""
WARM_UP_BATCHES = 2
"""Before a prefix is measured: its functions are made when they are called first."""
MORE_EPOCHS_THAN_NEEDED = 1_000_000
LONGEST_SETTLING_S = 2.0

_kept: list[Any] = []
"""Until the process ends: destroying an iterator can block for seconds."""


@dataclass(frozen=True)
class PrefixCost:
    """A prefix of the pipeline, by its last stage."""

    stage: str
    cpu_ms_per_image: float
    """Of the whole prefix."""
    bytes_out: float | None
    """Of what the last stage gives, an image."""


def prefix_costs(
    images: ImageSet, stages: Sequence[Stage], asked: Experiment, *, seconds: float
) -> list[PrefixCost]:
    """Run every prefix over as many images; the last is the whole pipeline, with its batches."""
    pipeline = _Pipeline(images, stages, asked)
    prefixes = [pipeline.cut(length) for length in range(len(pipeline.online) + 1)]
    whole = pipeline.whole()
    count = whole.batches_in(seconds / ROUNDS / 2)
    measured = [*prefixes, whole]
    best = [float("inf")] * len(measured)
    for _ in range(ROUNDS):
        for number, prefix in enumerate(measured):
            best[number] = min(best[number], prefix.cpu_ms_per_image(count))
    sizes = [prefix.bytes_per_image for prefix in prefixes]
    names = ["read", *(stage.name for stage in pipeline.online), "batch"]
    return [PrefixCost(*cost) for cost in zip(names, best, [*sizes, sizes[-1]], strict=True)]


class _Prefix:
    """An endless pipeline of which batches are taken: (images, bytes of them) each."""

    def __init__(self, batches: Iterator[tuple[int, int]]) -> None:
        self._batches = batches
        self.images = self.bytes = 0
        _kept.append(batches)
        self.take(WARM_UP_BATCHES)

    @property
    def bytes_per_image(self) -> float:
        """Of what comes out."""
        return self.bytes / max(self.images, 1)

    def take(self, count: int) -> int:
        """Take so many batches; gives their images."""
        taken = 0
        for images, size in islice(self._batches, count):
            taken += images
            self.bytes += size
        self.images += taken
        return taken

    def batches_in(self, seconds: float) -> int:
        """Tell how many batches it gives in a time."""
        begin = time.perf_counter()
        self.take(4)
        return max(round(4 * seconds / (time.perf_counter() - begin)), 1)

    def cpu_ms_per_image(self, count: int) -> float:
        """Give CPU time an image, from one moment with all queues full to another."""
        settle(LONGEST_SETTLING_S)
        begin = time.process_time()
        taken = self.take(count)
        settle(LONGEST_SETTLING_S)
        return 1e3 * (time.process_time() - begin) / max(taken, 1)


class _Pipeline:
    """A pipeline that can be cut anywhere."""

    def __init__(self, images: ImageSet, stages: Sequence[Stage], asked: Experiment) -> None:
        self.images, self.stages, self.asked = images, stages, asked
        self.stream = training_stream(
            images,
            seed=asked.seed,
            batch_size=asked.training.batch_size,
            shuffle=asked.pipeline.shuffle,
        )
        self.epoch = typical_epoch(stages)
        online = online_stages(images, stages, asked.pipeline)
        self.online = [stage for stage in online if not stage.mixes]

    def cut(self, length: int) -> _Prefix:
        """Give the pipeline up to a stage; of every image comes its size, and one pixel."""
        first_position = self.epoch * self.stream.images_per_epoch
        span = Span(first_position, MORE_EPOCHS_THAN_NEEDED, careful=True)
        source = open_source(self.images, self.stream, span)
        make = image_maker(self.online, self.asked.pipeline, self.stream, source, upto=length)

        @tf.autograph.experimental.do_not_convert
        def weigh(*element: Any) -> Any:
            _, _, value = make(*element)
            if value.dtype == tf.string:
                return tf.cast(tf.strings.length(value), tf.int64), 0.0
            size = tf.size(value, tf.int64) * value.dtype.size
            # One pixel of the image: its size alone could be told without making it.
            return size, tf.cast(tf.reshape(value, [-1])[0], tf.float32)

        weighed = source.elements.map(
            weigh, num_parallel_calls=workers_of(self.asked.pipeline), deterministic=True
        )
        batches = weighed.ignore_errors().batch(self.asked.training.batch_size)
        return _Prefix((int(sizes.shape[0]), int(tf.reduce_sum(sizes))) for sizes, _ in batches)

    def whole(self) -> _Prefix:
        """Give the pipeline as training has it, but never an epoch at once: it costs the same."""
        pipeline = self.asked.pipeline
        if pipeline.mode == "whole_dataset":
            pipeline = pipeline.model_copy(update={"mode": "pipelined"})
        batches = training_batches(
            self.images,
            self.stages,
            pipeline,
            self.stream,
            first_position=self.epoch * self.stream.images_per_epoch,
            last_epoch=MORE_EPOCHS_THAN_NEEDED,
        )
        return _Prefix((int(labels.shape[0]), 0) for _, labels, _ in batches)
