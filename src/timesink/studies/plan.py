"""A study's file as a list of measurements: parts with a grid each, and how each is measured."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from timesink.errors import ExperimentError
from timesink.experiment import Experiment
from timesink.experiment_words import mistake
from timesink.studies.grid import Grid, grid_of, laid_over, read_values, table_of, where_of

MEASURE, PARTS, GRID = "measure", "parts", "grid"


class Measure(BaseModel):
    """How a cell is measured: the table `[measure]` of a study's file."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    how: Literal["run", "pipeline", "sides"] = Field(
        "run",
        description="a training run; the input pipeline alone; input alone, compute alone and both",
    )
    seconds: float = Field(3.0, gt=0, le=3600, description="of the pipeline, or of each side")
    rounds: int = Field(3, ge=1, le=1000, description="of sides: how often they alternate")
    stages: bool = Field(False, description="of the pipeline: CPU time by stage too")


@dataclass(frozen=True)
class Part:
    """Cells of a study that are measured alike."""

    name: str
    """Empty where a study has no parts."""
    measure: Measure
    grid: Grid


@dataclass(frozen=True)
class Planned:
    """One measurement."""

    number: int
    """From 1, in the order of the file; its directory is named by it."""
    part: str
    measure: Measure
    values: Mapping[str, Any]
    """What is varied, by key."""
    repetition: int
    experiment: Experiment
    name: str
    """For people."""

    @property
    def place(self) -> str:
        """The name of its directory."""
        return f"{self.number:04d}"


def read_parts(
    path: Path | None,
    name: str,
    *,
    quick: bool = False,
    measure: Mapping[str, Any] | None = None,
    allowed: Sequence[str] | None = None,
) -> list[Part]:
    """Read a study's file, or the one that comes with Timesink, into its parts.

    A part has what the file says outside of all parts, and what it says itself on top; `measure`
    is what the caller asks for instead of the file.
    """
    where = where_of(path, name)
    values = read_values(path, name, quick=quick)
    tables = values.pop(PARTS, None)
    if tables is None:
        return [_part("", values, where, GRID, measure or {}, allowed)]
    if not isinstance(tables, dict) or not all(isinstance(each, dict) for each in tables.values()):
        raise ExperimentError(f"{where}: {PARTS}: found {tables!r}, allowed: tables with names")
    if GRID in values:
        raise ExperimentError(f"{where}: {GRID}: a study with parts has its grids in them")
    return [
        _part(
            part, laid_over(values, table), where, f"{PARTS}.{part}.{GRID}", measure or {}, allowed
        )
        for part, table in tables.items()
    ]


def _part(
    name: str,
    values: Mapping[str, Any],
    where: str,
    place: str,
    measure: Mapping[str, Any],
    allowed: Sequence[str] | None,
) -> Part:
    rest = dict(values)
    found = rest.pop(MEASURE, {})
    if isinstance(found, dict):
        found = {**found, **measure}
    try:
        how = Measure.model_validate(found)
    except ValidationError as error:
        before = f"{where}: {place.removesuffix(GRID)}{MEASURE}"
        lines = (mistake(detail, _schema(), before, {}) for detail in error.errors())
        raise ExperimentError("\ntimesink: ".join(dict.fromkeys(lines))) from None
    return Part(name, how, grid_of(rest, where, place, allowed))


@cache
def _schema() -> dict[str, Any]:
    return Measure.model_json_schema()


def plan_of(parts: Sequence[Part]) -> list[Planned]:
    """Give every measurement: each cell as often as its experiment asks, one each."""
    planned: list[Planned] = []
    for part in parts:
        for values, cell in zip(part.grid.values(), part.grid.cells(), strict=True):
            once = cell.model_copy(update={"repetitions": 1})
            for repetition in range(1, cell.repetitions + 1):
                name = _name(part.name, values, repetition) or cell.name
                planned.append(
                    Planned(
                        len(planned) + 1, part.name, part.measure, values, repetition, once, name
                    )
                )
    return planned


def _name(part: str, values: Mapping[str, Any], repetition: int) -> str:
    varied = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in values.items())
    again = f"repetition {repetition}" if repetition > 1 else ""
    return ": ".join(filter(None, (part, ", ".join(filter(None, (varied, again))))))


def in_running_order(planned: Sequence[Planned], seed: int) -> list[Planned]:
    """Shuffle the cells anew within each repetition.

    So the machine's drift looks like no effect, and the first repetition is whole early.
    """
    generator = random.Random(seed)  # noqa: S311 - nothing secret
    ordered: list[Planned] = []
    for repetition in sorted({each.repetition for each in planned}):
        some = [each for each in planned if each.repetition == repetition]
        generator.shuffle(some)
        ordered += some
    return ordered


def to_toml(parts: Sequence[Part]) -> str:
    """Write parts as the file that gives them again."""
    import tomlkit

    document = tomlkit.document()
    if len(parts) == 1 and not parts[0].name:
        document.update(_table(parts[0]))
    else:
        document.add(PARTS, {part.name: _table(part) for part in parts})
    return tomlkit.dumps(document)


def _table(part: Part) -> dict[str, Any]:
    asked = part.measure.model_dump(exclude_unset=True)
    return {**({MEASURE: asked} if asked else {}), **table_of(part.grid)}
