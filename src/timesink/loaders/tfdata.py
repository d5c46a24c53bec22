"""Stages and images made into batches of (images, labels, positions) by tf.data.

Random draws are stateless, keyed by seed, epoch, image and stage, so a batch does not depend on
the number of workers. A broken image is left out alone: the gap in the positions tells which.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import tensorflow as tf

from timesink import machine
from timesink.datasets.images import ImageSet
from timesink.datasets.materialized import MaterializedStore
from timesink.errors import OutOfMemoryError
from timesink.experiment import PipelineSection
from timesink.loaders.tfaugment import EPOCH
from timesink.loaders.tfmix import batch_mixer
from timesink.loaders.tfread import Source, Span, open_source
from timesink.loaders.tfstages import apply_stages
from timesink.pipelines.order import Stream, validation_stream
from timesink.pipelines.stages import (
    Stage,
    for_validation,
    in_running_order,
    parse_stages,
    split_for_store,
)

Batch = tuple[Any, Any, Any]
"""Images, labels, positions; labels of mixed images are pairs, as `tfmix` says."""

TO_FLOAT = next(stage for stage in parse_stages("plain") if stage.name == "convert")
"""Behind what is stored as levels of 0 to 255."""


def training_batches(
    images: ImageSet,
    stages: Sequence[Stage],
    pipeline: PipelineSection,
    stream: Stream,
    *,
    first_position: int,
    last_epoch: int,
) -> "Batches":
    """Give the batches of a stream from one position on, to the end of an epoch."""
    if pipeline.source == "synthetic":
        make = _synthetic(images, pipeline, stream, stream.batch_size)
    else:
        online = online_stages(images, stages, pipeline)
        make = _maker(images, online, pipeline, stream, batch_size=stream.batch_size)
    ahead = pipeline.mode != "by_batch"
    span = Span(first_position, last_epoch, careful=False, ahead=ahead)
    if pipeline.mode == "whole_dataset":
        return WholeDataset(make, span, stream, pipeline)
    return Batches(make, span, deterministic=pipeline.deterministic)


def validation_batches(
    images: ImageSet, stages: Sequence[Stage], pipeline: PipelineSection, *, batch_size: int
) -> "Batches":
    """Give every image once, in the order it is stored; the last batch may be smaller.

    `stages` are those of training: what is random in them is left out here.
    """
    stream = validation_stream(images)
    if pipeline.source == "synthetic":
        make = _synthetic(images, pipeline, stream, batch_size)
    else:
        online = online_stages(images, stages, pipeline, validating=True)
        make = _maker(images, online, pipeline, stream, batch_size=batch_size)
    return Batches(make, Span(0, 1, careful=False))


Maker = Callable[[Span], Any]
"""Gives the tf.data.Dataset of a span."""


class Batches(Iterator[Batch]):
    """Batches, quickly as long as no image is broken, and carefully from then on.

    tf.data can make a batch in one go with its images, or pass over those that fail, not both
    (7 % apart). So the first failure only costs what was made ahead.
    """

    def __init__(self, make: Maker, span: Span, *, deterministic: bool = True) -> None:
        self._make, self._span = make, span
        self._deterministic = deterministic
        self._retired: list[Any] = []
        self._low, self._ahead = span.first_position, set[int]()
        self.iterator = iter(make(span))

    @property
    def careful(self) -> bool:
        """Whether a broken image was met."""
        return self._span.careful

    @property
    def in_order(self) -> bool:
        """Whether positions come in their order, so that one that is passed over never comes."""
        return self._deterministic or self.careful

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Batch:
        try:
            batch = next(self.iterator)
        except (
            tf.errors.InvalidArgumentError,
            tf.errors.DataLossError,
            tf.errors.NotFoundError,
            tf.errors.PermissionDeniedError,
            tf.errors.FailedPreconditionError,
            tf.errors.UnknownError,
            tf.errors.InternalError,
            tf.errors.OutOfRangeError,
        ):
            if self.careful:
                raise
            self._go_carefully()
            return next(self)
        self._deliver(batch[2].numpy().tolist())
        return batch

    def _deliver(self, positions: Sequence[int]) -> None:
        if positions[0] == self._low and positions[-1] - self._low == len(positions) - 1:
            self._low = positions[-1] + 1
        else:
            self._ahead.update(positions)
        while self._low in self._ahead:
            self._ahead.discard(self._low)
            self._low += 1

    def _go_carefully(self) -> None:
        # Kept: destroying an iterator can block for seconds on autotune's sleeping thread.
        self._retired.append(self.iterator)
        self._span = replace(
            self._span,
            first_position=self._low,
            careful=True,
            delivered=frozenset(self._ahead),
        )
        self.iterator = iter(self._make(self._span))


class WholeDataset(Batches):
    """All batches of an epoch are made before the first of them is given."""

    def __init__(self, make: Maker, span: Span, stream: Stream, pipeline: PipelineSection) -> None:
        super().__init__(make, span, deterministic=pipeline.deterministic)
        self._stream, self._made = stream, list[Batch]()
        needed = stream.images_per_epoch * pipeline.image_size**2 * 3 * 4
        available = machine.available_memory_bytes()
        if needed > 0.9 * available:
            raise OutOfMemoryError(
                f"pipeline.mode = whole_dataset needs {needed / 2**30:.1f} GiB for an epoch, "
                f"{available / 2**30:.1f} GiB are free; use by_batch or pipelined, or fewer images"
            )

    def __next__(self) -> Batch:
        if not self._made:
            epoch = self._stream.epoch_of(self._low)
            for _ in range(self._stream.steps_per_epoch):
                try:
                    self._made.append(super().__next__())
                except StopIteration:
                    break
                if self._stream.epoch_of(self._low) != epoch:
                    break
            self._made.reverse()
        if not self._made:
            raise StopIteration
        return self._made.pop()


def _maker(
    images: ImageSet,
    online: Sequence[Stage],
    pipeline: PipelineSection,
    stream: Stream,
    *,
    batch_size: int,
) -> Maker:
    drop = batch_size == stream.batch_size
    mix = batch_mixer(online, stream.seed)

    def make(span: Span) -> Any:
        source = open_source(images, stream, span)
        make_image = image_maker(online, pipeline, stream, source)
        load = _with_label(make_image, images, pipeline.image_size)
        order = pipeline.deterministic or span.careful
        if pipeline.mode == "by_batch":
            batches = _one_by_one(source, load, pipeline, batch_size, span.careful, drop)
        else:
            loaded = source.elements.map(
                load, num_parallel_calls=workers_of(pipeline), deterministic=order
            )
            if span.careful:
                loaded = loaded.ignore_errors()
            batches = loaded.batch(batch_size, drop_remainder=drop)
        if mix is not None:
            batches = batches.map(mix)
        if pipeline.mode != "by_batch" and pipeline.prefetch != 0:
            batches = batches.prefetch(
                tf.data.AUTOTUNE if pipeline.prefetch == "auto" else pipeline.prefetch
            )
        return batches.with_options(_options(pipeline))

    return make


def online_stages(
    images: ImageSet,
    stages: Sequence[Stage],
    pipeline: PipelineSection,
    *,
    validating: bool = False,
) -> tuple[Stage, ...]:
    """Give the stages that are left to do when an image is read, in the order they are run."""
    store = images.store if isinstance(images.store, MaterializedStore) else None
    # What was stored is what training does first, also where validation could store more.
    rest = split_for_store(stages, pipeline.stored)[1] if store else tuple(stages)
    rest = for_validation(rest) if validating else rest
    if store is None:
        return in_running_order(rest)
    return in_running_order((TO_FLOAT, *rest)) if store.dtype == "uint8" else rest


def image_maker(
    online: Sequence[Stage],
    pipeline: PipelineSection,
    stream: Stream,
    source: Source,
    *,
    upto: int | None = None,
) -> Callable[..., Any]:
    """Give the function that makes one image, or does its first stages, of an element.

    `online` are the stages left to do. It gives position, index and the image.
    """
    size, seed, images_per_epoch = pipeline.image_size, stream.seed, stream.images_per_epoch
    each = [stage for stage in online if not stage.mixes]

    @tf.autograph.experimental.do_not_convert
    def make(*element: Any) -> Any:
        def key_of(number: int) -> Any:
            epoch = position // images_per_epoch
            return tf.stack([tf.constant(seed * 256 + number, tf.int64), epoch * EPOCH + index])

        with tf.name_scope("read"):
            position, index, *about = source.unpack(*element)
            value = source.read(index, *about)
        return position, index, apply_stages(each, value, key_of, size, upto=upto)

    return make


def _with_label(make: Callable[..., Any], images: ImageSet, size: int) -> Callable[..., Batch]:
    labels = tf.constant(images.labels, tf.int32)

    @tf.autograph.experimental.do_not_convert
    def load(*element: Any) -> Batch:
        position, index, value = make(*element)
        value.set_shape([size, size, 3])
        with tf.name_scope("read"):
            return value, tf.gather(labels, index), position

    return load


def _one_by_one(
    source: Source,
    load: Callable[..., Batch],
    pipeline: PipelineSection,
    batch_size: int,
    careful: bool,
    drop: bool,
) -> Any:
    """Make a batch only when it is asked for, its images by all workers at once."""
    if careful:
        # Workers of their own would make images of the next batch ahead.
        return source.elements.map(load).ignore_errors().batch(batch_size, drop_remainder=drop)

    @tf.autograph.experimental.do_not_convert
    def make_batch(*columns: Any) -> Any:
        images = tf.data.Dataset.from_tensor_slices(columns).map(
            load, num_parallel_calls=workers_of(pipeline), deterministic=pipeline.deterministic
        )
        return images.batch(batch_size, drop_remainder=drop).get_single_element()

    return source.elements.batch(batch_size, drop_remainder=drop).map(make_batch)


def _synthetic(images: ImageSet, pipeline: PipelineSection, stream: Stream, count: int) -> Maker:
    """Give the same batch of so many images again and again: no file, no work."""
    size = pipeline.image_size
    generator = np.random.Generator(np.random.Philox(key=stream.seed))
    constant = tf.constant(generator.random((count, size, size, 3), np.float32))
    labels = tf.constant(images.labels, tf.int32)

    @tf.autograph.experimental.do_not_convert
    def batch(positions: Any) -> Batch:
        images_of = positions % len(images)
        return constant[: tf.size(positions)], tf.gather(labels, images_of), positions

    def make(span: Span) -> Any:
        last = span.last_epoch * stream.images_per_epoch
        positions = tf.data.Dataset.range(span.first_position, last).batch(count)
        return positions.map(batch)

    return make


def workers_of(pipeline: PipelineSection) -> Any:
    """Give what tf.data takes for the workers."""
    return tf.data.AUTOTUNE if pipeline.workers == "auto" else pipeline.workers


def _options(pipeline: PipelineSection) -> Any:
    options = tf.data.Options()
    cores = machine.cores()
    if pipeline.workers != "auto" and pipeline.workers > cores:
        # Else they share as many threads as there are cores, and only so many wait for the disk.
        options.threading.private_threadpool_size = pipeline.workers
    elif cores < machine.schedulable_cpus():
        # AUTOTUNE goes up to the size of the pool, or to the affinity mask where it has none.
        options.threading.private_threadpool_size = cores
    if pipeline.mode == "by_batch":
        options.experimental_optimization.inject_prefetch = False
    return options
