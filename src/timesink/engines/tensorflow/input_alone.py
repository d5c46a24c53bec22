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
    begin = time.perf_counter()
    taken = _Taken(batches)
    taken.take(length.warm_up_batches, float("inf"), at_least_s=length.warm_up_s)
    warm_batches, warm_s = len(taken.batch_ms), time.perf_counter() - begin
    if taken.ended:  # too few for a warm-up: then all of it is what was measured
        measured, cpu_s, wall_s = taken, taken.cpu_s, warm_s
        warm_batches, warm_s = 0, 0.0
    else:
        measured = _Taken(batches)
        measured.take(length.batches, length.seconds)
        cpu_s, wall_s = measured.cpu_s, measured.wall_s
    traced, file = _Taken(batches), None
    if trace_to is not None and not measured.ended:
        trace = profiler.Trace(trace_to, "pipeline")
        with span(ALONE):
            traced.take(length.trace_batches, length.trace_s)
        file = trace.stop()
    read_after = page_cache.disk_read_bytes()
    totals = (0 if measured is taken else taken.images) + measured.images + traced.images
    return InputAlone(
        images=measured.images,
        wall_s=wall_s,
        cpu_s=cpu_s,
        batch_ms=tuple(measured.batch_ms),
        warm_up_batches=warm_batches,
        warm_up_s=warm_s,
        read_bytes=None if read_before is None or read_after is None else read_after - read_before,
        taken_images=totals,
        nodes=measured.counters.nodes(),
        trace=file,
        trace_images=traced.images,
        ended=measured.ended,
    )


class _Taken:
    """Batches that were taken, and what it cost."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self.batches = batches
        self.images, self.batch_ms, self.ended = 0, list[float](), False
        self.wall_s = self.cpu_s = 0.0
        self.counters = Counters(batches)

    def take(self, most: int, most_s: float, *, at_least_s: float = 0.0) -> None:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        before = begin
        while True:
            batch = next(self.batches, None)
            now = time.perf_counter()
            if batch is None:
                self.ended = True
                break
            self.images += images_in(batch)
            self.batch_ms.append((now - before) * 1e3)
            before = now
            if len(self.batch_ms) % SAMPLE_EVERY == 0:
                self.counters.sample()
            passed = now - begin
            if (len(self.batch_ms) >= most and passed >= at_least_s) or passed >= most_s:
                break
        self.wall_s = time.perf_counter() - begin
        self.cpu_s = time.process_time() - begin_cpu


def images_in(batch: Any) -> int:
    """Count the images of an element: its first tensor of four dimensions has them, else one."""
    tensors = tf.nest.flatten(batch)
    for tensor in tensors:
        if getattr(tensor, "shape", None) is not None and tensor.shape.rank == 4:
            return int(tensor.shape[0])
    return 1
