"""Validation: every held-out image once, with the time of each iteration."""

from typing import Any

from timesink.engines.bad_images import BadImages
from timesink.engines.job import Job
from timesink.engines.recorder import Recorder
from timesink.engines.tensorflow.step import FIGURES
from timesink.loaders.tfdata import validation_batches
from timesink.pipelines.order import validation_stream


def validate(
    job: Job, validation_step: Any, recorder: Recorder, *, epoch: int, iteration: int
) -> None:
    """Run the validation split through the network and record its figures."""
    images, asked = job.dataset.validation, job.experiment
    bad = BadImages(
        images,
        job.dataset.root,
        "validation",
        asked.dataset.max_bad,
        validation_stream(images).image_at,
        recorder,
    )
    batches = validation_batches(
        images,
        job.stages,
        asked.pipeline,
        batch_size=asked.training.batch_size,
    )
    totals, seen, number = [0.0, 0.0, 0.0], 0, 0
    while not job.should_stop():
        begin_ns = recorder.now_ns()
        batch = next(batches, None)
        if batch is None:
            bad.saw_the_end(len(images))
            break
        got_ns = recorder.now_ns()
        tensors, labels, positions = batch
        sums = validation_step(tensors, labels).numpy().tolist()
        done_ns = recorder.now_ns()
        count, number = int(labels.shape[0]), number + 1
        recorder.write(
            "step",
            split="validation",
            epoch=epoch,
            iteration=number,
            begin_ns=begin_ns,
            data_ns=got_ns - begin_ns,
            compute_ns=done_ns - got_ns,
            images=count,
            **{name: value / count for name, value in zip(FIGURES, sums, strict=True)},
        )
        totals = [total + value for total, value in zip(totals, sums, strict=True)]
        seen += count
        bad.saw(positions.numpy().tolist())
    else:
        return
    if seen:
        figures = {name: value / seen for name, value in zip(FIGURES, totals, strict=True)}
        recorder.write("validation", epoch=epoch, iteration=iteration, images=seen, **figures)
