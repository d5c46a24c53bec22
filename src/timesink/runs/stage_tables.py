"""The input pipeline's work in the traced steps, summed over windows: stages.csv and its facts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from timesink.analysis.stages import stage_rows
from timesink.errors import ExperimentError
from timesink.ledger.stages import PipelineWork, StageWork, stage_work
from timesink.ledger.steps import StepSpans
from timesink.pipelines.stages import Stage, in_running_order, operations_of, parse_stages, row_of
from timesink.runs.record import ProcessRecord, RunRecord
from timesink.traces.events import Events

STAGE_COLUMNS = {
    "stage": pl.String,
    "work_ms_per_image": pl.Float64,
    "cpu_ms_per_image": pl.Float64,
    "share": pl.Float64,
    "parallelism": pl.Float64,
    "calls_per_image": pl.Float64,
    "ms_per_call": pl.Float64,
    "bytes_in": pl.Int64,
    "bytes_out": pl.Int64,
}


@dataclass(frozen=True)
class StepInput:
    """What the pipeline did while some steps ran."""

    work: PipelineWork
    steps: int
    images: int
    """That the steps took; 0 where nobody knows."""


def window_input(
    events: Events, spans: StepSpans, process: ProcessRecord, known: Sequence[str]
) -> StepInput | None:
    """Read the pipeline's work in one window, from its first step to the end of its last."""
    if not len(spans):
        return None
    work = stage_work(events, int(spans.begin_ns[0]), int(spans.end_ns[-1]), known)
    return StepInput(work, len(spans), _images(process, set(spans.iteration.tolist())))


def known_stages(run: RunRecord) -> list[str]:
    """Name the stages that the experiment asks for, in their order; none of a foreign loop."""
    asked = run.experiment.get("pipeline", {}).get("stages")
    if asked is None:
        return []
    try:
        return stage_names(parse_stages(asked))
    except ExperimentError:  # a stage that this version no longer has
        return []


def stage_names(stages: Sequence[Stage]) -> list[str]:
    """Name everything a pipeline of ours does, in the order it is run."""
    names = [
        name
        for stage in in_running_order(stages)
        for name in (stage.name, *(row_of(stage.name, each) for each in operations_of(stage)))
        if not stage.mixes
    ]
    mixing = [stage.name for stage in stages if stage.mixes]
    return list(dict.fromkeys(["shuffle", "read", *names, "batch", *mixing]))


def summed(parts: Iterable[StepInput | None]) -> StepInput | None:
    """Put windows together; None where there is none."""
    found = [part for part in parts if part is not None]
    if not found:
        return None
    works = [part.work for part in found]
    stages: dict[tuple[str, str], StageWork] = {}
    unplaced: dict[str, tuple[int, int]] = {}
    for each in (stage for work in works for stage in work.stages):
        before = stages.get((each.kind, each.stage))
        work_ns, calls = (before.work_ns, before.calls) if before else (0, 0)
        stages[each.kind, each.stage] = StageWork(
            each.stage, work_ns + each.work_ns, calls + each.calls, each.kind
        )
    for name, work_ns, calls in (row for work in works for row in work.unplaced):
        before_ns, before_calls = unplaced.get(name, (0, 0))
        unplaced[name] = (before_ns + work_ns, before_calls + calls)
    work = PipelineWork(
        wall_ns=sum(each.wall_ns for each in works),
        busy_ns=sum(each.busy_ns for each in works),
        wait_ns=sum(each.wait_ns for each in works),
        stages=tuple(sorted(stages.values(), key=lambda each: each.kind == "framework")),
        unplaced=tuple((name, *figures) for name, figures in unplaced.items()),
    )
    images = 0 if any(not part.images for part in found) else sum(part.images for part in found)
    return StepInput(work, sum(part.steps for part in found), images)


def stage_facts(
    found: StepInput | None, accounts: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> dict[str, Any]:
    """Give what summary.json says of the stages; `accounts` are the steps' mean ledger."""
    if found is None or not found.work.busy_ns:
        return {
            "stages": [],
            "stages_explained": None,
            "stages_unplaced": [],
            "input_per_step": None,
        }
    table = stage_rows(found.work, found.images, known=known)
    devices = {row["device"] for row in accounts}
    wait_ms = sum(row["charged_ms"] for row in accounts if row["account"] == "input_wait")
    return {
        "stages": table["stages"],
        "stages_explained": table["closure"],
        "stages_unplaced": table["unplaced"],
        "input_per_step": {
            "work_ms": found.work.busy_ns / found.steps / 1e6,
            "wait_ms": wait_ms / max(len(devices), 1),
        },
    }


def counter_facts(nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Give what tf.data counted: parameters and who chose them, how full the queues were."""
    return {
        "autotune": [
            {"node": node["name"], "parameter": name, "value": value, "tuned": node["autotuned"]}
            for node in nodes
            for name, value in node["chosen"].items()
        ],
        "queues": [
            {
                "node": node["name"],
                "filled": node["buffered"],
                "room": node["chosen"].get("buffer_size"),
            }
            for node in nodes
            if node["buffered"] is not None
        ],
        "nodes": list(nodes),
    }


def stages_table(rows: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Give stages.csv; what was not measured is empty."""
    columns = {name: [row[name] for row in rows] for name in STAGE_COLUMNS}
    return pl.DataFrame(columns, schema=STAGE_COLUMNS, strict=False)


def _images(process: ProcessRecord, iterations: set[int]) -> int:
    columns = process.steps.integers
    counts = [
        images
        for split, iteration, images in zip(
            process.steps.split, columns["iteration"], columns["images"], strict=True
        )
        if split == "train" and iteration in iterations
    ]
    return sum(counts) if all(count > 0 for count in counts) else 0
