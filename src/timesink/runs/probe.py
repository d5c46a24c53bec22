"""One side of a run measured alone: `python -m timesink.runs.probe DIRECTORY KIND PARENT`.

KIND is `input` (the pipeline makes batches that nobody uses) or `compute` (the network trains on
one batch that lies in memory). Prints one line of JSON; the run's directory is only read.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from timesink.errors import RunError, TimesinkError
from timesink.runs.directory import RunDirectory
from timesink.runs.worker import end_with_parent, leave, open_job, prepare_cache

if TYPE_CHECKING:
    from timesink.engines.job import Job

BEGAN_NS = time.monotonic_ns()

WARM_UP_CALLS, WARM_UP_S, LONGEST_WARM_UP_S = 3, 1.0, 5.0
"""AUTOTUNE and the caches need some time, not only some calls."""
FEWEST_CALLS = {"input": 30, "compute": 10}
SHORTEST_S, LONGEST_S = 3.0, 10.0
MORE_EPOCHS_THAN_NEEDED = 1_000_000

_kept: list[Any] = []
"""Until the process ends: destroying an iterator can block for seconds."""

Once = Callable[[], int]
"""Does one batch; gives its images, 0 where there are no more."""


def main(arguments: list[str]) -> NoReturn:
    """Measure, and print the figures or what went wrong."""
    directory, kind, parent = arguments
    end_with_parent(int(parent))
    # What a network of the user's prints must not come between.
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        job = open_job(RunDirectory(Path(directory)), should_stop=lambda: False)
        figures = measure_input(job) if kind == "input" else measure_compute(job)
        code = 0
    except TimesinkError as error:
        figures, code = {"failed": str(error)}, error.exit_code
    except Exception as error:
        first_line = (str(error).splitlines() or [""])[0]
        figures, code = {"failed": f"{type(error).__name__}: {first_line[:200]}"}, 1
    os.write(answer, json.dumps(figures).encode() + b"\n")
    leave(code)


def measure_input(job: "Job") -> dict[str, Any]:
    """Take batches from the training's own pipeline as fast as they come."""
    from timesink.engines.tensorflow.devices import prepare_devices
    from timesink.loaders.tfdata import training_batches

    pipeline = job.experiment.pipeline
    prepare_devices(job.experiment)  # op determinism changes how tf.data runs
    prepare_cache(job)
    cold = pipeline.cache == "cold"
    batches = iter(
        training_batches(
            job.dataset.train,
            job.stages,
            pipeline,
            job.stream,
            first_position=0,
            last_epoch=1 if cold else MORE_EPOCHS_THAN_NEEDED,
        )
    )
    _kept.append(batches)

    def once() -> int:
        batch = next(batches, None)
        return 0 if batch is None else len(batch[2])

    whole = pipeline.mode == "whole_dataset"
    return measure(
        once,
        "input",
        # Cold is only what is read for the first time, and an epoch that is made as a whole
        # has its work in the first batch.
        warm_up=not cold and not whole,
        of=job.stream.steps_per_epoch if whole else 1,
    )


def measure_compute(job: "Job") -> dict[str, Any]:
    """Train on one batch again and again."""
    from timesink.engines.tensorflow.assembly import cached_step

    return measure(cached_step(job), "compute")


def measure(
    once: Once,
    kind: str,
    *,
    warm_up: bool = True,
    of: int = 1,
    clock_ns: Callable[[], int] = time.monotonic_ns,
    cpu_ns: Callable[[], int] = time.process_time_ns,
) -> dict[str, Any]:
    """Time `once` until there is enough of it, in whole groups of so many calls."""
    if warm_up:
        _warm_up(once, clock_ns)
    startup_s = (clock_ns() - BEGAN_NS) / 1e9
    cpu_from_ns, from_ns = cpu_ns(), clock_ns()
    times_ms: list[float] = []
    images, at_ns = 0, from_ns
    while done := once():
        now_ns = clock_ns()
        times_ms.append((now_ns - at_ns) / 1e6)
        images, at_ns = images + done, now_ns
        wall_s = (at_ns - from_ns) / 1e9
        enough = wall_s >= SHORTEST_S and len(times_ms) >= FEWEST_CALLS[kind]
        if len(times_ms) % of == 0 and (enough or wall_s >= LONGEST_S):
            break
    if not times_ms or at_ns == from_ns:
        raise RunError("there were too few batches")
    wall_s = (at_ns - from_ns) / 1e9
    calls, each_ms = ("batches", "batch_ms") if kind == "input" else ("steps", "step_ms")
    return {
        "images_per_s": images / wall_s,
        calls: len(times_ms),
        each_ms: {
            "median": float(np.median(times_ms)),
            "p95": float(np.quantile(times_ms, 0.95)),
        },
        "wall_s": wall_s,
        "cpu_s": (cpu_ns() - cpu_from_ns) / 1e9,
        "startup_s": startup_s,
    }


def _warm_up(once: Once, clock_ns: Callable[[], int]) -> None:
    from_ns, calls = clock_ns(), 0
    while once():
        calls += 1
        took_s = (clock_ns() - from_ns) / 1e9
        if (calls >= WARM_UP_CALLS and took_s >= WARM_UP_S) or took_s >= LONGEST_WARM_UP_S:
            return


if __name__ == "__main__":
    main(sys.argv[1:])
