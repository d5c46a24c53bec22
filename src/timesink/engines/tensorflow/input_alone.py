"""A pipeline measured alone: batches are taken as fast as they come, and nothing is trained.

Any iterator of batches will do. What tf.data counts and what AUTOTUNE chose is read from its own
model of the pipeline; the work of each stage stands in the trace of a window at the end.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorflow as tf

from timesink import page_cache
from timesink.engines.tensorflow import profiler
from timesink.engines.tensorflow.capture import span
from timesink.engines.tensorflow.counters import Counters, Node
from timesink.ledger.stages import ALONE

SAMPLE_EVERY = 4
"""Batches between two looks at the queues."""


@dataclass(frozen=True)
class InputAlone:
    """What a pipeline did while it was measured."""

    images: int
    wall_s: float
    cpu_s: float
    batch_ms: tuple[float, ...]
    """Of each batch, the time between the one before it and itself."""
    warm_up_batches: int
    warm_up_s: float
    """Making the first batch and the pipeline itself is in it."""
    read_bytes: int | None
    """From the disk, in all: warm-up and trace too."""
    taken_images: int
    """In all: warm-up and trace too."""
    nodes: tuple[Node, ...]
    trace: Path | None
    trace_images: int
    ended: bool
    """Whether the batches ended before enough of them were measured."""


@dataclass(frozen=True)
class Length:
    """How long each part of a measurement is: both bounds of the warm-up, either of the rest."""

    warm_up_batches: int = 5
    warm_up_s: float = 1.5
    batches: int = 1_000_000
    seconds: float = 5.0
    trace_batches: int = 60
    trace_s: float = 3.0


def measure(batches: Iterator[Any], length: Length, trace_to: Path | None) -> InputAlone:
    """Take batches for a while, count, then trace a few more."""
    read_before = page_cache.disk_read_bytes()
    warm_up = _Stretch(batches)
    warm_up.take(length.warm_up_batches, float("inf"), at_least_s=length.warm_up_s)
    measured = _Stretch(batches)
    measured.take(length.batches, length.seconds)
    if measured.ended and len(measured.taken) < len(warm_up.taken):
        # They come once, and most of them came meanwhile. Then all are measured but the first, for
        # which the pipeline itself was made; unless it is the only one.
        first = min(1, len(warm_up.taken) - 1)
        measured.taken = warm_up.taken[first:] + measured.taken
        measured.counters = warm_up.counters
        warm_up.taken = warm_up.taken[:first]
    traced, file = _Stretch(batches), None
    if trace_to is not None and not measured.ended:
        trace = profiler.Trace(trace_to, "pipeline")
        with span(ALONE):
            traced.take(length.trace_batches, length.trace_s)
        file = trace.stop()
    read_after = page_cache.disk_read_bytes()
    return InputAlone(
        images=measured.images,
        wall_s=measured.wall_s,
        cpu_s=measured.cpu_s,
        batch_ms=tuple(batch.wall_ms for batch in measured.taken),
        warm_up_batches=len(warm_up.taken),
        warm_up_s=warm_up.wall_s,
        read_bytes=None if read_before is None or read_after is None else read_after - read_before,
        taken_images=warm_up.images + measured.images + traced.images,
        nodes=measured.counters.nodes(),
        trace=file,
        trace_images=traced.images,
        ended=measured.ended,
    )


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch that was taken, and what it cost since the one before it."""

    images: int
    wall_ms: float
    cpu_s: float


class _Stretch:
    """Batches that were taken one after the other."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = batches
        self.taken: list[_Batch] = []
        self.ended = False
        self.counters = Counters(batches)

    @property
    def images(self) -> int:
        return sum(batch.images for batch in self.taken)

    @property
    def wall_s(self) -> float:
        return sum(batch.wall_ms for batch in self.taken) / 1e3

    @property
    def cpu_s(self) -> float:
        return sum(batch.cpu_s for batch in self.taken)

    def take(self, most: int, most_s: float, *, at_least_s: float = 0.0) -> None:
        """Take so many batches, or for so long, or until they end."""
        begin, cpu_before = time.perf_counter(), time.process_time()
        before = begin
        while True:
            batch = next(self.batches, None)
            now, cpu_now = time.perf_counter(), time.process_time()
            if batch is None:
                self.ended = True
                break
            self.taken.append(_Batch(images_in(batch), (now - before) * 1e3, cpu_now - cpu_before))
            before, cpu_before = now, cpu_now
            if len(self.taken) % SAMPLE_EVERY == 0:
                self.counters.sample()
            passed = now - begin
            if (len(self.taken) >= most and passed >= at_least_s) or passed >= most_s:
                break


def images_in(batch: Any) -> int:
    """Count the images of an element: its first tensor of four dimensions has them, else one."""
    tensors = tf.nest.flatten(batch)
    for tensor in tensors:
        if getattr(tensor, "shape", None) is not None and tensor.shape.rank == 4:
            return int(tensor.shape[0])
    return 1
