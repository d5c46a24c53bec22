"""What `compare` reads of run directories: the steps that count, what they were charged to, what
was asked for and on which machine."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from timesink.analysis.compare import KEY, Measured
from timesink.analysis.noise import FEWEST_STEPS
from timesink.errors import RunFileError
from timesink.runs.directory import RunDirectory, find_runs
from timesink.runs.journal import read_events
from timesink.runs.tables import STEP_COLUMNS, WARM_UP_ITERATIONS, steps_table

COLUMNS = ("process", "split", "iteration", "step_ms", "data_ms")
READ = {name: STEP_COLUMNS[name] for name in COLUMNS}

# Which steps count, the best first, and how many of them every run must have.
CHOICES = (
    (
        f"untraced steps after each process's first {WARM_UP_ITERATIONS}",
        ~pl.col("traced") & (pl.col("nth") > WARM_UP_ITERATIONS),
        2 * FEWEST_STEPS,
    ),
    (
        "untraced steps after each process's first",
        ~pl.col("traced") & (pl.col("nth") > 1),
        FEWEST_STEPS,
    ),
    ("steps after each process's first", pl.col("nth") > 1, 1),
    ("all steps", pl.lit(True), 1),
)

# What may differ between two runs without bearing on their times.
NO_MATTER = {
    "name",
    "seed",
    "repetitions",
    "dataset.path",
    "training.checkpoint_keep",
    "profile.verdict",
    "host.cpu.cores_asked",  # machine.cores says it
    "host.cpu.cpus_chosen",
    "host.disk.free_bytes",
    "host.disk.total_bytes",
    "host.git.modified",
}


@dataclass(frozen=True)
class RunTimes:
    """One run, read."""

    steps: pl.DataFrame
    """Training steps in order: step_ms, data_ms, traced, and nth of its process."""
    charged: pl.DataFrame
    asked: dict[str, Any]
    """Experiment and, under `host.`, the machine: `a.b.c` → value."""


@dataclass(frozen=True)
class Side:
    """What stands on one side of a comparison: a run or its repetitions."""

    path: Path
    runs: list[RunTimes]

    @property
    def has_ledger(self) -> bool:
        """Whether every run has a ledger of steps."""
        return all(not run.charged.is_empty() for run in self.runs)

    @property
    def traced_steps(self) -> int:
        """How many steps the ledgers are of."""
        return sum(run.charged["step"].n_unique() for run in self.runs)


def read_side(path: Path) -> Side:
    """Read the run, or the runs, at a path."""
    return Side(path, [_read(run) for run in find_runs(path)])


def choose_steps(sides: Sequence[Side]) -> tuple[str, list[list[pl.DataFrame]]]:
    """Give the steps of each run that count, chosen by one rule for all, and that rule."""
    for rule, condition, fewest in CHOICES:
        chosen = [[run.steps.filter(condition) for run in side.runs] for side in sides]
        if min(steps.height for side in chosen for steps in side) >= fewest:
            return rule, chosen
    raise AssertionError("a run without steps is refused when it is read")


def measured(side: Side, chosen: Sequence[pl.DataFrame], column: str) -> list[Measured]:
    """Give the runs of a side as they are compared."""
    return [
        Measured(steps[column].fill_null(math.nan).to_numpy(), run.charged)
        for run, steps in zip(side.runs, chosen, strict=True)
    ]


def totals(runs: Sequence[Measured]) -> list[Measured]:
    """Sum what was charged by account alone; over several devices it is their mean."""
    nothing = [pl.lit(None, pl.String).alias(name) for name in KEY if name != "account"]
    return [
        Measured(
            run.step_ms,
            run.charged.group_by("step", "account", maintain_order=True)
            .agg(pl.col("charged_ms").sum() / max(1, run.charged["device"].n_unique()))
            .with_columns(nothing),
        )
        for run in runs
    ]


def differing(before: Side, after: Side) -> list[dict[str, Any]]:
    """List the keys of experiment and machine that are not the same in all runs."""
    keys = dict.fromkeys(key for side in (before, after) for run in side.runs for key in run.asked)
    rows = []
    for key in keys:
        values = [_distinct(run.asked.get(key) for run in side.runs) for side in (before, after)]
        if key not in NO_MATTER and (values[0] != values[1] or len(values[0]) > 1):
            first, second = (each[0] if len(each) == 1 else each for each in values)
            rows.append({"key": key, "before": first, "after": second})
    return rows


def _distinct(values: Iterator[Any]) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _read(run: RunDirectory) -> RunTimes:
    asked = _asked(run)
    ledger = _step_ledger(run)
    steps = (
        _steps(run)
        .filter(pl.col("split") == "train")
        .sort("process", "iteration")
        .with_columns(
            (pl.col("iteration") - pl.col("iteration").min().over("process") + 1).alias("nth")
        )
        .join(
            ledger.select("process", "iteration", pl.lit(True).alias("traced")).unique(),
            on=["process", "iteration"],
            how="left",
            maintain_order="left",
        )
        .with_columns(pl.col("traced").fill_null(False))
    )
    if steps.is_empty():
        raise RunFileError(f"{run.path}: no training step to compare")
    # A process's first step compiles; traced or not, it is no step like the others.
    charged = ledger.join(
        steps.filter(pl.col("nth") > 1), on=["process", "iteration"], how="semi"
    ).select(
        (pl.col("process") * 2**40 + pl.col("iteration")).alias("step"),
        *KEY,
        (pl.col("charged_ns") / 1e6).alias("charged_ms"),
    )
    return RunTimes(steps, charged, asked)


def _steps(run: RunDirectory) -> pl.DataFrame:
    """Read steps.csv, or make it from the journal where it is missing or was overtaken."""
    path = run.path / "steps.csv"
    try:
        if path.stat().st_mtime_ns >= run.log.stat().st_mtime_ns:
            return pl.read_csv(path, columns=COLUMNS, schema_overrides=READ)
    except FileNotFoundError:
        pass
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None
    return steps_table(run.record())


def _step_ledger(run: RunDirectory) -> pl.DataFrame:
    path = run.path / "ledger.parquet"
    integers = dict.fromkeys(("process", "iteration", "charged_ns"), pl.Int64)
    kinds = {**integers, **dict.fromkeys(KEY, pl.String)}
    if not path.is_file():
        return pl.DataFrame(schema=kinds)
    try:
        return (
            pl.read_parquet(path)
            .filter(pl.col("scope") == "step")
            .select(pl.col(name).cast(kind) for name, kind in kinds.items())
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(path, error) from None


def _asked(run: RunDirectory) -> dict[str, Any]:
    for event in read_events(run.log):
        if event.name == "run":
            experiment, machine = event.fields.get("experiment"), event.fields.get("machine")
            return dict(_flat("", experiment)) | dict(_flat("host.", machine))
    raise RunFileError(f"{run.log}: not the journal of a run: it names no experiment")


def _flat(prefix: str, values: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(values, dict):
        for name, value in values.items():
            if isinstance(value, dict):
                yield from _flat(f"{prefix}{name}.", value)
            else:
                yield f"{prefix}{name}", value


def _unreadable(path: Path, error: Exception) -> RunFileError:
    first_line = str(error).partition("\n")[0]
    return RunFileError(f"{path}: cannot be read: {first_line}; `timesink collect` makes it again")
