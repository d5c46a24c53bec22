"""The input pipeline's stages as a page lists them, each with the operations that it drew."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timesink.analysis.stages import FRAMEWORK, by_stage, operations_in

Row = Mapping[str, Any]


@dataclass(frozen=True)
class StageRow:
    """A stage, or an operation of one."""

    name: str
    work_ms: float | None
    """Of an image, by the clock, summed over the pipeline's threads."""
    share: float
    parallelism: float | None
    calls: float | None
    ms_a_call: float | None
    of_framework: bool = False
    operations: tuple["StageRow", ...] = ()


def stage_rows(stages: Sequence[Row]) -> list[StageRow]:
    """Give the stages in the pipeline's order; an operation stands below its stage."""
    drawn = operations_in(stages)
    return [_row(row, drawn.get(row["stage"], ())) for row in by_stage(stages)]


def _row(row: Row, operations: Sequence[Row] = ()) -> StageRow:
    ranked = sorted(operations, key=lambda each: -each["share"])
    work_ms, calls = row["work_ms_per_image"], row.get("calls_per_image")
    # Of a stage that draws, the table has the time of drawing alone; this is with what was drawn.
    with_drawn_ms = work_ms / calls if ranked and work_ms and calls else row.get("ms_per_call")
    return StageRow(
        row["stage"],
        work_ms,
        row["share"],
        row["parallelism"],
        calls,
        with_drawn_ms,
        row["kind"] == FRAMEWORK,
        tuple(_row(each) for each in ranked),
    )
