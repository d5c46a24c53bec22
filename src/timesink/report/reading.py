"""A run's directory read for a report: its facts as plain values that anybody may see."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from timesink.errors import RunFileError
from timesink.ledger.opmap import LAYER
from timesink.report.accounts import StepParts, timed_parts, traced_parts
from timesink.report.discreet import discreet, discreet_text
from timesink.report.step_times import steady
from timesink.runs.directory import RunDirectory
from timesink.runs.record import RunRecord
from timesink.runs.step_tables import is_traced
from timesink.runs.tables import steps_table, training_lineage

LEDGER_COLUMNS = {
    "process": pl.Int64,
    "iteration": pl.Int64,
    "account": pl.String,
    "ms": pl.Float64,
}


@dataclass(frozen=True)
class RunFacts:
    """What a run's directory says."""

    name: str
    path: Path
    place: str
    """Its directory as it may be shown."""
    started_utc: str
    summary: dict[str, Any]
    experiment: dict[str, Any]
    machine: dict[str, Any]
    groups: dict[str, list[str]]
    steps: pl.DataFrame
    """The training steps of steps.csv, with `traced` and `first`: whether it is its process's."""
    ledger: pl.DataFrame
    """What each station took of each traced step, as the mean of the devices."""
    parts: tuple[StepParts, ...]
    """The mean step of each device; without a trace the mean step as it was timed."""


@dataclass(frozen=True)
class Unread:
    """A run that cannot be read."""

    name: str
    reason: str


def read_run(run: RunDirectory, name: str | None = None) -> RunFacts:
    """Read one run; `name` is what it is called among others."""
    record = run.record()
    path = run.path.resolve()
    steps = _steps(record)
    summary = discreet(run.summary())
    machine = discreet(record.machine)
    last = record.processes[max(record.processes)] if record.processes else None
    return RunFacts(
        name=discreet_text(name or path.name),
        path=path,
        place=discreet_text(str(path)),
        started_utc=last.started_utc if last else "",
        summary=summary,
        experiment=discreet(record.experiment),
        machine=machine,
        groups=run.groups(),
        steps=steps,
        ledger=_ledger(path / "ledger.parquet"),
        parts=_parts(summary, steps),
    )


def read_runs(runs: Sequence[RunDirectory], base: Path) -> tuple[list[RunFacts], list[Unread]]:
    """Read several runs, named by their place below a directory; what cannot be read is said."""
    found: list[RunFacts] = []
    unread: list[Unread] = []
    for run in runs:
        name = str(run.path.resolve().relative_to(base)) if run.path.resolve() != base else "."
        try:
            found.append(read_run(run, name))
        except RunFileError as error:
            unread.append(Unread(discreet_text(name), discreet_text(str(error))))
    if not found:
        raise RunFileError(f"none of {len(runs)} runs can be read: {unread[0].reason}")
    return found, unread


def _steps(record: RunRecord) -> pl.DataFrame:
    lineage = training_lineage(steps_table(record))
    return lineage.with_columns(
        first=pl.col("iteration") == pl.col("iteration").min().over("process"),
        traced=pl.Series(is_traced(record, lineage), dtype=pl.Boolean),
    )


def _ledger(path: Path) -> pl.DataFrame:
    """Read the traced steps' ledger by station; it is not there before a run has ended."""
    try:
        rows = pl.read_parquet(path).filter(pl.col("scope") == "step")
    except (OSError, pl.exceptions.PolarsError):
        return pl.DataFrame(schema=LEDGER_COLUMNS)
    station = (
        pl.when(pl.col("account") == LAYER)
        .then(pl.col("phase").fill_null("forward"))
        .otherwise("account")
    )
    devices = max(rows["device"].n_unique(), 1)
    return (
        rows.with_columns(account=station)
        .group_by("process", "iteration", "account")
        .agg((pl.col("charged_ns").sum() / devices / 1e6).alias("ms"))
        .select(pl.col(name).cast(kind) for name, kind in LEDGER_COLUMNS.items())
    )


def _parts(summary: dict[str, Any], steps: pl.DataFrame) -> tuple[StepParts, ...]:
    traced = traced_parts(summary)
    if traced:
        return tuple(traced)
    counted = steady(steps)
    columns = (counted[name].to_list() for name in ("step_ms", "data_ms", "compute_ms"))
    timed = timed_parts(*columns)
    return (timed,) if timed else ()
