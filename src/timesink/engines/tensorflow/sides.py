"""Input alone, compute alone, both: one pipeline and one compiled step, in rounds that alternate.

So whatever else the machine does falls on all three, and what they say of each other holds. A
round of the input ends with empty queues, where the round of both begins; before the computing is
measured alone, the pipeline has filled its queues again and rests.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from timesink.engines.job import Job
from timesink.engines.tensorflow.assembly import assemble, cached_batch
from timesink.engines.tensorflow.quiet import settle
from timesink.errors import RunError
from timesink.loaders.tfdata import training_batches
from timesink.pipelines.stages import typical_epoch

Side = Literal["input", "both", "compute"]
SIDES: tuple[Side, ...] = ("input", "both", "compute")

MORE_EPOCHS_THAN_NEEDED = 1_000_000
FIRST_WARM_UP, WARM_UP = 1.5, 0.35
"""Of a round: AUTOTUNE needs some time at first, later only the queues have to get as they will
be."""
WARM_UP_CALLS, FEWEST_CALLS = 2, 3
LONGEST_SETTLING_S = 10.0

_kept: list[Any] = []
"""Until the process ends: destroying an iterator can block for seconds."""


@dataclass(frozen=True)
class Round:
    """One stretch of one side."""

    side: Side
    images: int
    wall_s: float
    cpu_s: float


def alternate(job: Job, *, rounds: int, seconds: float) -> Iterator[Round]:
    """Measure each side once a round, for so many seconds or a few batches, if that is longer."""
    do = _sides(job)
    for number in range(rounds):
        for side in SIDES:
            if side == "compute":
                settle(LONGEST_SETTLING_S)
            warm_up = FIRST_WARM_UP if number == 0 and side != "compute" else WARM_UP
            _stretch(side, do[side], warm_up * seconds, WARM_UP_CALLS)
            yield _stretch(side, do[side], seconds, FEWEST_CALLS)


def _sides(job: Job) -> dict[Side, Callable[[], int]]:
    """Give, for each side, what does one batch of it and gives its images."""
    train_step = assemble(job, on_trace=lambda: None).train_step
    random_images, _ = cached_batch(job)
    batches = training_batches(
        job.dataset.train,
        job.stages,
        job.experiment.pipeline,
        job.stream,
        first_position=typical_epoch(job.stages) * job.stream.images_per_epoch,
        last_epoch=MORE_EPOCHS_THAN_NEEDED,
    )
    _kept.append(batches)

    def take() -> Any:
        batch = next(batches, None)
        if batch is None:
            raise RunError("the images ended before enough of them were measured")
        return batch

    images, labels, _ = take()
    train_step(images, labels).numpy()  # compiles

    def make() -> int:
        return len(take()[2])

    def train() -> int:
        images, labels, positions = take()
        train_step(images, labels).numpy()
        return len(positions)

    def compute() -> int:
        train_step(random_images, labels).numpy()
        return len(labels)

    return {"input": make, "both": train, "compute": compute}


def _stretch(side: Side, once: Callable[[], int], seconds: float, fewest: int) -> Round:
    from_s, cpu_from_s = time.perf_counter(), time.process_time()
    images = calls = 0
    while True:
        images += once()
        calls += 1
        wall_s = time.perf_counter() - from_s
        if wall_s >= seconds and calls >= fewest:
            return Round(side, images, wall_s, time.process_time() - cpu_from_s)
