"""The process that measures what it is asked for: a request on stdin, one JSON object on stdout.

`batches` and `prefixes` are of a pipeline alone, `sides` of a pipeline and a network.

`python -m timesink.runs.measurer PARENT`; what goes wrong is an answer too.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from timesink.engines.users_code import told
from timesink.errors import TimesinkError
from timesink.experiment import Experiment, parse
from timesink.runs.worker import end_with_parent, leave, out_of_memory, prepare_cache


def main(parent: int) -> NoReturn:
    """Measure what the request asks for."""
    end_with_parent(parent)
    request = json.load(sys.stdin)
    # What a user's own code prints must not come between.
    out = os.dup(1)
    os.dup2(2, 1)
    try:
        answer = _answer(request)
    except TimesinkError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    except Exception as error:
        what = "it" if request["part"] == "sides" else "the pipeline"
        message = f"{what} failed: {told(error)}"
        traceback.print_exc()
        answer = {"error": "RunError", "message": message}
    with os.fdopen(out, "w") as file:
        json.dump(answer, file)
    leave(0)  # at once: taking an iterator apart can take seconds


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["part"] == "sides":
        return _sides(parse(request["experiment"], "the request"), request)
    from timesink.engines.tensorflow.devices import size_thread_pools
    from timesink.engines.tensorflow.input_alone import Length, measure

    size_thread_pools()
    trace_to = Path(request["trace_to"]) if request["trace_to"] else None
    length = Length(**request["length"])
    if request["own"] is not None:
        from timesink.engines.tensorflow.own_pipeline import own_batches

        return _plain(measure(own_batches(request["own"]), length, trace_to))
    asked = parse(request["experiment"], "the request")
    if request["part"] == "prefixes":
        from timesink.engines.tensorflow.prefixes import prefix_costs

        dataset, stages = _opened(asked)
        costs = prefix_costs(dataset.train, stages, asked, seconds=request["length"]["seconds"])
        return {"prefixes": [asdict(cost) for cost in costs]}
    batches = _batches(asked)
    measured = _plain(measure(batches, length, trace_to))
    return {**measured, "bad_images": batches.told}


class _Watched(Iterator[Any]):
    """Batches of an experiment, with its broken images named as they are passed over."""

    process = 1

    def __init__(
        self, batches: Any, asked: Experiment, dataset: Any, stream: Any, first_position: int
    ) -> None:
        from timesink.engines.bad_images import BadImages

        self.batches, self.told = batches, list[dict[str, str]]()
        self._bad = BadImages(
            dataset.train,
            dataset.root,
            "training",
            asked.dataset.max_bad,
            stream.image_at,
            self,
            next_position=first_position,
        )

    @property
    def iterator(self) -> Any:
        """What tf.data's counters are asked of."""
        return self.batches.iterator

    def __next__(self) -> Any:
        batch = next(self.batches)
        self._bad.saw(batch[2].numpy().tolist(), in_order=self.batches.in_order)
        return batch

    def now_ns(self) -> int:
        """Do as a run's journal does."""
        return time.monotonic_ns()

    def account(self, name: str) -> None:
        """Do as a run's journal does: nothing is kept of it here."""

    def write(self, event: str, **fields: Any) -> None:
        """Keep what is said of a broken image."""
        self.told.append({"path": fields["path"], "reason": fields["reason"]})


def _batches(asked: Experiment) -> _Watched:
    from timesink.loaders.tfdata import training_batches
    from timesink.pipelines.order import training_stream
    from timesink.pipelines.stages import typical_epoch

    dataset, stages = _opened(asked)
    stream = training_stream(
        dataset.train,
        seed=asked.seed,
        batch_size=asked.training.batch_size,
        shuffle=asked.pipeline.shuffle,
    )
    # Cold images are cold once; else the epochs go on for as long as the measurement.
    first = typical_epoch(stages)
    first_position = first * stream.images_per_epoch
    epochs = 1 if asked.pipeline.cache == "cold" else 1_000_000
    batches = training_batches(
        dataset.train,
        stages,
        asked.pipeline,
        stream,
        first_position=first_position,
        last_epoch=first + epochs,
    )
    return _Watched(batches, asked, dataset, stream, first_position)


def _sides(asked: Experiment, request: dict[str, Any]) -> dict[str, Any]:
    from timesink.engines.job import Job
    from timesink.engines.tensorflow.devices import shares_cores
    from timesink.engines.tensorflow.sides import alternate

    dataset, stages = _opened(asked)
    nowhere = Path(os.devnull)  # no checkpoint and no trace is written
    job = Job(asked, dataset, stages, nowhere, nowhere, should_stop=lambda: False)
    job.check()
    prepare_cache(job)
    try:
        rounds = alternate(job, rounds=request["rounds"], seconds=request["seconds"])
        return {"rounds": [asdict(each) for each in rounds], "shared": shares_cores()}
    except Exception as error:
        raise out_of_memory(error, asked.training.batch_size) or error from None


def _opened(asked: Experiment) -> Any:
    from timesink.pipelines.source import open_images
    from timesink.pipelines.stages import parse_stages

    return open_images(asked), parse_stages(asked.pipeline.stages)


def _plain(measured: Any) -> dict[str, Any]:
    return {**asdict(measured), "trace": str(measured.trace) if measured.trace else None}


if __name__ == "__main__":
    main(int(sys.argv[1]))
