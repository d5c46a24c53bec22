"""The study of augmentation: every cell of a grid measured in a process of its own, resumable.

The journal is the only truth: each cell that was measured is a line of it, and the tables are made
of those lines. So a study that was cut, however, goes on where it was.
"""

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from timesink import machine
from timesink.analysis.augmentation import sentences
from timesink.analysis.cells import SIDES, SYNTHETIC, Cell, Setting, prediction, row_of
from timesink.analysis.findings import findings
from timesink.errors import (
    InterruptedRunError,
    OutOfMemoryError,
    RunError,
    TimesinkError,
)
from timesink.experiment import Experiment
from timesink.files import alone_in, replacing, write_atomically
from timesink.runs.asking import ask
from timesink.studies.grid import Grid, to_toml
from timesink.studies.study_log import StudyLog, clear, minutes

SCHEMA_VERSION = 1
NAME = "augmentation"
AXES = (
    "training.network",
    "training.batch_size",
    "pipeline.image_size",
    "pipeline.stages",
    "machine.cores",
)
"""What may be varied: a cell is told by them."""
STARTUP_S = 12.0
"""What a cell takes beside its rounds, at least: imports, tracing, the first warm-up."""


@dataclass(frozen=True)
class Asked:
    """How each cell is measured."""

    rounds: int = 3
    seconds: float = 2.0
    """Of each side in each round."""
    time_limit_s: float = 3600.0
    """Of a cell."""

    def expected_s(self, cells: int) -> float:
        """Tell how long so many cells take where a step is short."""
        return cells * (STARTUP_S + self.rounds * len(SIDES) * (self.seconds + 1))


@dataclass(frozen=True)
class Watcher:
    """Who looks on."""

    say: Callable[[str], None]
    clock: Callable[[], float] = field(default=time.monotonic)


Outcome = Mapping[str, Any]
"""What the journal has of a cell: `rounds` and `shared`, or `failed`."""


def study(
    grid: Grid,
    cells: Sequence[Experiment],
    asked: Asked,
    out: Path,
    watcher: Watcher,
    *,
    force: bool = False,
    retry: bool = False,
) -> dict[str, Any]:
    """Measure the cells that are still to be measured; gives what study.json says.

    What failed is measured again where `retry` says so.
    """
    if force and out.exists():
        clear(out)
    out.mkdir(parents=True, exist_ok=True)
    plan = {
        "cells": [cell.model_dump(mode="json") for cell in cells],
        "rounds": asked.rounds,
        "seconds": asked.seconds,
    }
    log = StudyLog(out, NAME, plan, to_toml(grid))
    with alone_in(out, "study", RunError):
        done: dict[str, Outcome] = {
            each.fields["key"]: each.fields for each in log.open() if each.name == "cell"
        }
        todo = [
            cell
            for cell in cells
            if key_of(cell) not in done or (retry and "failed" in done[key_of(cell)])
        ]
        # In another order than the grid's: the machine's drift must not look like an effect.
        random.Random(grid.base.get("seed", 0)).shuffle(todo)  # noqa: S311 - nothing secret
        if 0 < len(todo) < len(cells):
            watcher.say(f"{out}: going on: {len(cells) - len(todo)} of {len(cells)} cells are done")
        try:
            for cell, outcome in _measured(todo, asked, log, watcher):
                done[key_of(cell)] = outcome
        finally:
            facts = write_tables(out, cells, done)
    return facts


def key_of(cell: Experiment) -> str:
    """Tell a cell from all others."""
    return json.dumps(
        [
            cell.training.network,
            cell.training.batch_size,
            cell.pipeline.image_size,
            _category(cell),
            cell.machine.cores,
        ]
    )


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


def _measured(
    todo: Sequence[Experiment], asked: Asked, log: StudyLog, watcher: Watcher
) -> Iterator[tuple[Experiment, Outcome]]:
    journal = log.append()
    begin_s = watcher.clock()
    try:
        for number, cell in enumerate(todo):
            left_s = asked.expected_s(len(todo))
            if number:
                left_s = (watcher.clock() - begin_s) / number * (len(todo) - number)
            watcher.say(f"{number + 1} of {len(todo)}, {minutes(left_s)} left: {name_of(cell)}")
            outcome = _outcome(cell, asked)
            if "failed" in outcome:
                watcher.say(f"  failed: {outcome['failed']}")
            journal.write("cell", key=key_of(cell), **outcome)
            yield cell, outcome
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"stopped; the same command goes on with what is left: --out {log.out}", exit_code=130
        ) from None
    finally:
        journal.close()


def _outcome(cell: Experiment, asked: Asked) -> Outcome:
    request = {
        "experiment": cell.model_dump(mode="json"),
        "part": "sides",
        "rounds": asked.rounds,
        "seconds": asked.seconds,
    }
    try:
        return ask(request, time_limit_s=asked.time_limit_s, cores=cell.machine.cores)
    except OutOfMemoryError as error:
        return {"failed": str(error), "kind": "out of memory"}
    except TimesinkError as error:
        return {"failed": str(error), "kind": type(error).__name__}


def write_tables(
    out: Path, cells: Sequence[Experiment], done: Mapping[str, Outcome]
) -> dict[str, Any]:
    """Make cells.csv, cells.parquet and study.json of what was measured."""
    measured = [
        measured_cell(cell, outcome)
        for cell in cells
        if "rounds" in (outcome := done.get(key_of(cell), {}))
    ]
    failed = [
        {"cell": name_of(cell), "reason": outcome["failed"], "kind": outcome["kind"]}
        for cell in cells
        if "failed" in (outcome := done.get(key_of(cell), {}))
    ]
    facts = {
        "schema_version": SCHEMA_VERSION,
        "study": NAME,
        "cells_planned": len(cells),
        "cells_measured": len(measured),
        "failed": failed,
        **facts_of(measured),
    }
    if measured:
        table = pl.DataFrame(facts["cells"], infer_schema_length=None)
        with replacing(out / "cells.csv") as temporary:
            table.write_csv(temporary)
        with replacing(out / "cells.parquet") as temporary:
            table.write_parquet(temporary)
    text = json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(out / "study.json", text + "\n")
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


def measured_cell(cell: Experiment, outcome: Outcome) -> Cell:
    """Read a cell back from what was written of it."""
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
    )
