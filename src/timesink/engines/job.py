"""What an engine is given: the experiment, its images and stages, and places to write to."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from timesink.datasets.images import ImageDataset
from timesink.experiment import Experiment
from timesink.pipelines.order import Stream, training_stream
from timesink.pipelines.source import check_batch
from timesink.pipelines.stages import Stage


@dataclass(frozen=True)
class Job:
    """One training run, as plain values."""

    experiment: Experiment
    dataset: ImageDataset
    stages: tuple[Stage, ...]
    checkpoints: Path
    profile: Path
    should_stop: Callable[[], bool]

    @property
    def opmap(self) -> Path:
        """Where the map from op to layer goes, beside the traces."""
        return self.profile.parent / "opmap.json"

    @cached_property
    def stream(self) -> Stream:
        """The training images in the order they will come."""
        asked = self.experiment
        return training_stream(
            self.dataset.train,
            seed=asked.seed,
            batch_size=asked.training.batch_size,
            shuffle=asked.pipeline.shuffle,
        )

    @property
    def iterations(self) -> int:
        """Training steps in all."""
        training = self.experiment.training
        return training.iterations or training.epochs * self.stream.steps_per_epoch

    def check(self) -> None:
        """Refuse what the images do not allow."""
        check_batch(self.dataset, self.experiment.training.batch_size)
