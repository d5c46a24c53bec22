"""CPU time of each stage: the pipeline cut off behind it, run alone, less the one cut before it.

No trace has CPU time, and time on the clock is no stand-in where threads share cores. A prefix
gives one number an image, which needs the whole image to have been made, and its size in bytes.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from timesink.datasets.images import ImageSet
from timesink.experiment import Experiment
from timesink.loaders.tfdata import image_maker, online_stages, training_batches, workers_of
from timesink.loaders.tfread import Span, open_source
from timesink.pipelines.order import training_stream
from timesink.pipelines.stages import Stage

ROUNDS = 3
"""Each prefix is run so often, in turn with the others; the least time is the least disturbed."""


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
    """Run every prefix over the same images; the last is the whole pipeline, with its batches."""
    pipeline = _Pipeline(images, stages, asked)
    lengths = range(len(pipeline.online) + 1)
    count = pipeline.images_in(seconds / ROUNDS / 2)
    best = [float("inf")] * (len(lengths) + 1)
    sizes = [0.0] * len(lengths)
    for _ in range(ROUNDS):
        for length in lengths:
            cpu_ms, sizes[length] = pipeline.run_prefix(length, count)
            best[length] = min(best[length], cpu_ms)
        best[-1] = min(best[-1], pipeline.run_whole(count))
    names = ["read", *(stage.name for stage in pipeline.online)]
    costs = [PrefixCost(names[n], best[n], sizes[n]) for n in lengths]
    return [*costs, PrefixCost("batch", best[-1], sizes[-1])]


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
        self.online = online_stages(images, stages, asked.pipeline)

    def images_in(self, seconds: float) -> int:
        """Choose how many images a prefix is run over: what the whole pipeline does meanwhile."""
        batch_size = self.asked.training.batch_size
        self._take_whole(batch_size)
        begin, count = time.perf_counter(), 4 * batch_size
        self._take_whole(count)
        batches = count * seconds / (time.perf_counter() - begin) / batch_size
        return max(round(batches), 1) * batch_size

    def run_prefix(self, length: int, count: int) -> tuple[float, float]:
        """Give CPU time an image, and bytes an image of what comes out."""
        span = Span(0, self._epochs(count), careful=True)
        source = open_source(self.images, self.stream, span)
        make = image_maker(
            self.images, self.stages, self.asked.pipeline, self.stream, source, upto=length
        )

        @tf.autograph.experimental.do_not_convert
        def weigh(*element: Any) -> Any:
            _, _, value = make(*element)
            if value.dtype == tf.string:
                return tf.cast(tf.strings.length(value), tf.int64), 0.0
            size = tf.size(value, tf.int64) * value.dtype.size
            # One pixel of the image: its size alone could be told without making it.
            return size, tf.cast(tf.reshape(value, [-1])[0], tf.float32)

        weighed = source.elements.take(count).map(
            weigh, num_parallel_calls=workers_of(self.asked.pipeline), deterministic=True
        )
        batches = weighed.ignore_errors().batch(self.asked.training.batch_size)
        begin, size, seen = time.process_time(), 0, 0
        for sizes, _ in batches:
            size += int(tf.reduce_sum(sizes))
            seen += int(sizes.shape[0])
        cpu_s = time.process_time() - begin
        return 1e3 * cpu_s / max(seen, 1), size / max(seen, 1)

    def run_whole(self, count: int) -> float:
        """Give CPU time an image of the pipeline as training has it."""
        begin = time.process_time()
        seen = self._take_whole(count)
        return 1e3 * (time.process_time() - begin) / max(seen, 1)

    def _take_whole(self, count: int) -> int:
        """Take the last so many images of a stream: to its end, so that nothing goes on behind."""
        epochs = self._epochs(count)
        batches = training_batches(
            self.images,
            self.stages,
            self.asked.pipeline,
            self.stream,
            first_position=epochs * self.stream.images_per_epoch - count,
            last_epoch=epochs,
        )
        return sum(int(labels.shape[0]) for _, labels, _ in batches)

    def _epochs(self, count: int) -> int:
        return -(-count // self.stream.images_per_epoch)
