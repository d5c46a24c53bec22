"""The study of augmentation: cells of three rates each, their table, and what they say."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import polars as pl

from timesink import machine
from timesink.analysis.augmentation import sentences
from timesink.analysis.cells import SIDES, SYNTHETIC, Cell, Setting, prediction, row_of
from timesink.analysis.findings import findings
from timesink.errors import RunFileError
from timesink.experiment import Experiment
from timesink.files import replacing
from timesink.studies.figures.augmentation import figures
from timesink.studies.measured import Done, Measured
from timesink.studies.measuring import SIDES as SIDES_FILE
from timesink.studies.study import Study

AXES = (
    "training.network",
    "training.batch_size",
    "pipeline.image_size",
    "pipeline.stages",
    "machine.cores",
)
"""What may be varied: a cell is told by them."""


def name_of(cell: Experiment) -> str:
    """Name a cell for people."""
    cores = cell.machine.cores or machine.cores()
    return (
        f"{cell.training.network}, batch {cell.training.batch_size}, "
        f"{cell.pipeline.image_size} px, {_category(cell)}, {cores} core{'s' * (cores > 1)}"
    )


def _category(cell: Experiment) -> str:
    if cell.pipeline.source == SYNTHETIC:
        return SYNTHETIC
    asked = cell.pipeline.stages
    return asked if isinstance(asked, str) else ", ".join(asked)


def _facts(measured: Measured, out: Path) -> dict[str, Any]:
    """Say what the cells say; cells.csv and cells.parquet are written on the way."""
    facts = facts_of(cells_of(measured))
    if facts["cells"]:
        table = pl.DataFrame(facts["cells"], infer_schema_length=None)
        with replacing(out / "cells.csv") as temporary:
            table.write_csv(temporary)
        with replacing(out / "cells.parquet") as temporary:
            table.write_parquet(temporary)
    return facts


def facts_of(cells: Sequence[Cell]) -> dict[str, Any]:
    """Put measured cells, and what they say, into plain values for JSON."""
    said = sentences(cells)
    return {
        "cells": [row_of(cell) for cell in cells],
        "sentences": [
            {"about": each.about, **asdict(each.setting), "text": each.text, "value": each.value}
            for each in said
        ],
        "findings": [asdict(each) for each in findings(cells)],
        "prediction": prediction(cells),
    }


def cells_of(measured: Measured) -> list[Cell]:
    """Read the cells back from where they were written."""
    return [_cell(each) for each in measured.done]


def _cell(done: Done) -> Cell:
    path, asked = done.place / SIDES_FILE, done.planned.experiment
    try:
        outcome = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunFileError(f"{path}: cannot be read: {error}") from None
    return measured_cell(asked, outcome)


def measured_cell(cell: Experiment, outcome: dict[str, Any]) -> Cell:
    """Make a cell of the rounds that were measured of it."""
    rounds = {side: [each for each in outcome["rounds"] if each["side"] == side] for side in SIDES}
    rates = {
        side: tuple(each["images"] / each["wall_s"] for each in rounds[side]) for side in SIDES
    }
    busy = {
        side: sum(each["cpu_s"] for each in rounds[side])
        / sum(each["wall_s"] for each in rounds[side])
        for side in SIDES
    }
    return Cell(
        Setting(cell.training.network, cell.training.batch_size, cell.pipeline.image_size),
        _category(cell),
        cell.machine.cores or machine.cores(),
        rates["input"],
        rates["compute"],
        rates["both"],
        (busy["input"], busy["compute"], busy["both"]),
        bool(outcome["shared"]),
        () if isinstance(cell.pipeline.stages, str) else tuple(cell.pipeline.stages),
    )


AUGMENTATION = Study(
    "augmentation",
    "002",
    "How much augmentation slows training",
    lambda measured: figures(cells_of(measured)),
    _facts,
    "cells",
)
