"""What a study has measured so far, and the tables of each measurement as it reads them."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from timesink.errors import RunFileError
from timesink.studies.measuring import Outcome
from timesink.studies.plan import Planned

PIPELINE = "pipeline.json"


@dataclass(frozen=True)
class Done:
    """One measurement that ended well."""

    planned: Planned
    place: Path
    wall_s: float
    """What it took from beginning to end."""


@dataclass(frozen=True)
class Failed:
    """One that did not."""

    planned: Planned
    outcome: Outcome


@dataclass(frozen=True)
class Measured:
    """All that was measured so far."""

    done: Sequence[Done]
    failed: Sequence[Failed]

    def of(self, part: str) -> "Measured":
        """Give what belongs to one part."""
        return Measured(
            [each for each in self.done if each.planned.part == part],
            [each for each in self.failed if each.planned.part == part],
        )


def read_pipeline(place: Path) -> Mapping[str, Any]:
    """Read what was measured of an input pipeline alone."""
    path = place / PIPELINE
    try:
        read: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunFileError(f"{path}: cannot be read: {error}") from None
    return read


def train_steps(place: Path) -> pl.DataFrame:
    """Read the training steps of a run."""
    return _read(place / "steps.csv").filter(pl.col("split") == "train").sort("iteration")


def layer_times(place: Path) -> pl.DataFrame:
    """Read what each layer took in each traced step; empty where none was traced."""
    path = place / "layers.csv"
    return _read(path) if path.is_file() else pl.DataFrame()


def median_of(values: pl.Series) -> float:
    """Give the median of numbers; of none, not a number."""
    return float(np.median(values.to_numpy())) if len(values) else math.nan


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunFileError(f"{path}: cannot be read: {error}") from None
