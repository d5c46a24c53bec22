"""The training loop: one explicit `next(iterator)` and one compiled step an iteration, each timed.

Waiting for data and computing are told apart at every step without a profiler. A step runs from
its beginning to the next one's, so recording it is part of it.
"""

import math
from dataclasses import asdict
from typing import Any

import tensorflow as tf

from timesink import page_cache
from timesink.engines.bad_images import BadImages
from timesink.engines.job import Job
from timesink.engines.recorder import Recorder
from timesink.engines.tensorflow import checkpoint
from timesink.engines.tensorflow.assembly import assemble
from timesink.engines.tensorflow.capture import Capture
from timesink.engines.tensorflow.counters import Counters
from timesink.engines.tensorflow.devices import device_names, peak_device_bytes, thread_pools
from timesink.engines.tensorflow.evaluate import validate
from timesink.engines.tensorflow.opmap import ModelWatch
from timesink.engines.tensorflow.step import FIGURES, make_validation_step
from timesink.engines.windows import plan_windows
from timesink.errors import DatasetError, RunFileError
from timesink.loaders.tfdata import training_batches

SAMPLE_EVERY = 10
"""Steps between two looks at the pipeline's queues."""


class Trainer:
    """One process of a run: builds everything once, then trains from where the last one ended."""

    def __init__(self, job: Job, recorder: Recorder) -> None:
        self.job, self.recorder = job, recorder
        self.asked = job.experiment.training
        self.stream = job.stream
        self.traces = 0
        self.batches: Any = None
        classes = len(job.dataset.classes)
        built = assemble(job, self._on_trace)
        self.network, self.optimizer = built.network, built.optimizer
        self.train_step = built.train_step
        self.validation_step = make_validation_step(self.network, self.asked, classes)
        self.variables = [*self.network.model.variables, *self.optimizer.variables]
        self.devices = device_names(built.strategy)
        progress = checkpoint.restore(job.checkpoints, self.variables)
        images = job.dataset.fingerprint()
        if progress is not None and progress.images != images:
            raise RunFileError(
                f"{job.dataset.root}: the images are not those of the checkpoint; going on would "
                "repeat some and miss others: start a new run"
            )
        self.images = images
        self.iteration = progress.iteration if progress else 0
        self.saved_at = self.iteration if progress else None
        profile = job.experiment.profile
        self.capture = Capture(
            job.profile,
            recorder,
            plan_windows(profile, self.iteration + 1, job.iterations),
            sample_ms=profile.sample_ms,
        )
        self.bad = BadImages(
            job.dataset.train,
            job.dataset.root,
            "training",
            job.experiment.dataset.max_bad,
            self.stream.image_at,
            recorder,
            next_position=progress.next_position if progress else 0,
            known=progress.bad_images if progress else (),
        )
        recorder.write(
            "network",
            network=self.network.name,
            parameters=self.network.model.count_params(),
            devices=self.devices,
            threads=thread_pools(),
            iterations=job.iterations,
            steps_per_epoch=self.stream.steps_per_epoch,
            resumed_at=self.iteration,
            tensorflow=tf.__version__,
        )

    def run(self) -> bool:
        """Train, checkpoint and validate to the end; False when asked to stop before."""
        try:
            completed = self._train()
        finally:
            self.capture.close()
        self._checkpoint()
        if completed and self.asked.validation:
            completed = self._validate()
        self.recorder.account("teardown")
        self.recorder.write("traces", count=self.traces)
        read_bytes = page_cache.disk_read_bytes()
        if read_bytes is not None:
            self.recorder.write("disk_read", bytes=read_bytes)
        peak = peak_device_bytes(self.devices)
        if peak is not None:
            self.recorder.write("device_memory", peak_bytes=peak)
        return completed

    def _train(self) -> bool:
        last_epoch = self._last_epoch()
        if self.iteration >= self.job.iterations:
            return True
        # Kept until the process ends: destroying an iterator can block for seconds on
        # autotune's sleeping model thread.
        self.batches = batches = training_batches(
            self.job.dataset.train,
            self.job.stages,
            self.job.experiment.pipeline,
            self.stream,
            first_position=self.bad.next_position,
            last_epoch=last_epoch,
        )
        self.recorder.account("tracing")
        watch = ModelWatch(self.job.opmap, self.recorder)
        if self.capture.planned:
            watch.start()
        counters: Counters | None = None
        first = True
        while self.iteration < self.job.iterations:
            self.capture.before_step(self.iteration + 1)
            if not self.step(batches):
                self.bad.saw_the_end(last_epoch * self.stream.images_per_epoch)
                break
            if counters is not None and self.iteration % SAMPLE_EVERY == 0:
                counters.sample()
            if self.job.should_stop():
                return False
            self.between_steps()
            if first:
                if self.capture.planned:
                    self.recorder.account("profile")
                watch.stop()
                counters = Counters(batches)
                self.recorder.account("steps")
                first = False
        if counters is not None:
            self.recorder.write("input_counters", nodes=[asdict(n) for n in counters.nodes()])
        if self.iteration == 0:
            raise DatasetError(
                f"{self.job.dataset.root}: too few images could be decoded for a batch"
            )
        return True

    def step(self, batches: Any) -> bool:
        """Wait for a batch, compute, record; False where the batches end."""
        now_ns = self.recorder.now_ns
        begin_ns = self.capture.begin_step(self.iteration + 1)
        batch = next(batches, None)
        if batch is None:
            return False
        got_ns = now_ns()
        images, labels, positions = batch
        figures = self.train_step(images, labels).numpy().tolist()
        done_ns = now_ns()
        self.iteration += 1
        came = positions.numpy().tolist()
        self.recorder.write(
            "step",
            split="train",
            epoch=self.stream.epoch_of(came[0]) + 1,
            iteration=self.iteration,
            begin_ns=begin_ns,
            data_ns=got_ns - begin_ns,
            compute_ns=done_ns - got_ns,
            images=len(came),
            **dict(zip(FIGURES, figures, strict=True)),
        )
        self.bad.saw(came, in_order=batches.in_order)
        self.capture.end_step(self.iteration)
        return True

    def between_steps(self) -> None:
        """Do what is due after this iteration: validation, then a checkpoint."""
        last = self.iteration == self.job.iterations
        epoch, rest = divmod(self.iteration, self.stream.steps_per_epoch)
        every = self.asked.validate_every
        did = False
        if every and not last and rest == 0 and epoch % every == 0:
            self._validate()
            did = True
        if self.asked.checkpoint_every and self.iteration % self.asked.checkpoint_every == 0:
            self._checkpoint()
            did = True
        if did:
            self.recorder.account("steps")

    def _validate(self) -> bool:
        if len(self.job.dataset.validation) == 0:
            return True
        self.capture.interrupt()
        self.recorder.account("validation")
        epoch = math.ceil(self.iteration / self.stream.steps_per_epoch)
        validate(
            self.job, self.validation_step, self.recorder, epoch=epoch, iteration=self.iteration
        )
        return not self.job.should_stop()

    def _checkpoint(self) -> None:
        if self.saved_at == self.iteration or self.asked.checkpoint_keep == 0:
            return
        self.recorder.account("checkpoint")
        progress = checkpoint.Progress(
            self.iteration, self.bad.next_position, tuple(sorted(self.bad.known)), self.images
        )
        path = checkpoint.save(
            self.job.checkpoints, progress, self.variables, self.asked.checkpoint_keep
        )
        self.saved_at = self.iteration
        self.recorder.write("checkpoint", iteration=self.iteration, name=path.name)

    def _last_epoch(self) -> int:
        """Bound the stream: it must end even if every image of it is broken."""
        if self.asked.iterations is None:
            return self.asked.epochs
        whole = math.ceil(self.asked.iterations / self.stream.steps_per_epoch)
        return math.ceil(whole / max(1 - self.job.experiment.dataset.max_bad, 0.1)) + 1

    def _on_trace(self) -> None:
        self.traces += 1
        if self.traces > 1:
            self.recorder.write(
                "retrace", iteration=self.iteration + 1, function="train_step", inputs=""
            )
