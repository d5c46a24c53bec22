"""A run's directory: made, locked, filled, and read back."""

import fcntl
import json
import os
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from timesink.errors import OutputExistsError, RunError, RunFileError
from timesink.experiment import Experiment, load
from timesink.experiment_toml import to_toml
from timesink.files import TEMPORARY_SUFFIX, replacing, write_atomically
from timesink.ledger.levels import by_layer
from timesink.runs.books import close_books
from timesink.runs.journal import is_journal, read_events
from timesink.runs.record import RunRecord, record_of
from timesink.runs.stage_tables import stages_table
from timesink.runs.step_tables import layers_table, own_cost
from timesink.runs.summary import summarize
from timesink.runs.tables import ledger_table, steps_table, summary_table

COLLECTED = "runs.csv"
"""The one table of many runs, beside them."""
REPORT = "report.html"
"""The page of a run, in its directory; of many runs, beside them."""

RESERVE_BYTES = 256 * 1024
"""Held back on the disk, so that a run that filled it can still write how it ended."""


@dataclass(frozen=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    @property
    def log(self) -> Path:
        """The journal."""
        return self.path / "log.txt"

    @property
    def checkpoints(self) -> Path:
        """Where checkpoints go."""
        return self.path / "checkpoints"

    def experiment(self) -> Experiment:
        """Read the experiment back, as it was resolved."""
        return load(self.path / "experiment.toml")

    def groups(self) -> dict[str, list[str]]:
        """Read which layers the experiment shows as one; none where it cannot be read."""
        try:
            stored = tomllib.loads((self.path / "experiment.toml").read_text())
            return dict(stored["profile"]["groups"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def record(self) -> RunRecord:
        """Read the journal back."""
        if not self.log.is_file():
            raise RunFileError(f"{self.path}: not a run: it has no log.txt")
        try:
            record = record_of(read_events(self.log))
        except (KeyError, TypeError, ValueError) as error:
            raise RunFileError(
                f"{self.log}: not a journal that this version reads: {error!r}"
            ) from error
        if not record.experiment:
            raise RunFileError(f"{self.log}: not the journal of a run: it names no experiment")
        return record

    def write_inputs(self, experiment: Experiment, machine: dict[str, Any]) -> None:
        """Write what is known before training."""
        write_atomically(self.path / "experiment.toml", to_toml(experiment, comments=False))
        write_atomically(self.path / "machine.json", json.dumps(machine, indent=2) + "\n")

    def write_attached(self, experiment: dict[str, Any], machine: dict[str, Any]) -> None:
        """Write what is known of a training that was asked for elsewhere."""
        import tomlkit

        write_atomically(self.path / "experiment.toml", tomlkit.dumps(experiment))
        write_atomically(self.path / "machine.json", json.dumps(machine, indent=2) + "\n")

    def write_tables(self) -> dict[str, Any]:
        """Make the tables and the summary from the journal; gives the summary."""
        run = self.record()
        steps = steps_table(run)
        books = close_books(self.path, run)
        cost = own_cost(run, steps) if run.windows else None
        summary = summarize(run, steps, books, cost)
        traced = None
        if books is not None and not books.ops.is_empty():
            traced = by_layer(books.ops)
            with replacing(self.path / "layers.csv") as temporary:
                layers_table(books, cost.scale if cost else None).write_csv(temporary)
            with replacing(self.path / "memory.csv") as temporary:
                books.memory.write_csv(temporary)
        if summary["stages"]:
            with replacing(self.path / "stages.csv") as temporary:
                stages_table(summary["stages"]).write_csv(temporary)
        with replacing(self.path / "steps.csv") as temporary:
            steps.write_csv(temporary)
        with replacing(self.path / "summary.csv") as temporary:
            summary_table(run, steps).write_csv(temporary)
        with replacing(self.path / "ledger.parquet") as temporary:
            ledger_table(run, traced).write_parquet(temporary)
        text = json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False)
        write_atomically(self.path / "summary.json", text + "\n")
        return summary

    def summary(self) -> dict[str, Any]:
        """Read summary.json; make it from the journal where it is missing or was overtaken."""
        path = self.path / "summary.json"
        try:
            if path.stat().st_mtime_ns >= self.log.stat().st_mtime_ns:
                read: dict[str, Any] = json.loads(path.read_bytes())
                return read
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            raise RunFileError(f"{path}: cannot be read: {error}") from None
        run = self.record()
        steps = steps_table(run)
        cost = own_cost(run, steps) if run.windows else None
        summary = summarize(run, steps, close_books(self.path, run), cost)
        if self.is_running():
            summary["status"] = "running"
        return summary

    def remove_leftovers(self) -> None:
        """Delete what a killed process was still writing; the caller holds the lock."""
        for leftover in self.path.glob(f".*{TEMPORARY_SUFFIX}"):
            leftover.unlink()

    def hold_back_space(self) -> None:
        """Reserve a little of the disk for the end."""
        (self.path / ".reserve").write_bytes(b"\0" * RESERVE_BYTES)

    def release_space(self) -> None:
        """Give the reserve back."""
        (self.path / ".reserve").unlink(missing_ok=True)

    def lock(self) -> int:
        """Take the run; the descriptor holds it until this process and its heirs are gone."""
        descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise RunError(f"{self.path}: another process is working on this run") from None
        return descriptor

    def is_running(self) -> bool:
        """Tell whether some process holds the run."""
        try:
            os.close(self.lock())
        except RunError:
            return True
        except OSError:
            return False
        return False


def create(out: Path | None, name: str, *, force: bool) -> RunDirectory:
    """Make a new, empty run directory; never one that another run has."""
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            out.mkdir()
        except FileExistsError:
            _empty_for_reuse(out, force=force)
        return RunDirectory(out)
    base = Path("runs") / name
    base.mkdir(parents=True, exist_ok=True)
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    for attempt in range(1, 10_000):
        path = base / (stamp if attempt == 1 else f"{stamp}-{attempt}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return RunDirectory(path)
    raise OutputExistsError(f"{base}: no free name for a run")


def _empty_for_reuse(out: Path, *, force: bool) -> None:
    """Clear a run that may be overwritten; anything else that is there is left alone."""
    import shutil

    if not out.is_dir():
        raise OutputExistsError(f"{out} exists and is not a directory")
    if all(member.name == ".lock" for member in out.iterdir()):
        return
    if not force:
        raise OutputExistsError(f"{out} exists; --force overwrites it, --resume goes on with it")
    runs = runs_only(out)
    if not runs:
        raise OutputExistsError(f"{out} exists and is not a run: --force does not delete it")
    for run in runs:
        os.close(run.lock())
    for member in out.iterdir():
        if member.is_dir() and not member.is_symlink():
            shutil.rmtree(member)
        else:
            member.unlink()


def runs_only(out: Path) -> list[RunDirectory]:
    """Give the run, or the repetitions, that a directory holds; none if it holds anything else."""
    if (out / "log.txt").is_file():
        return [RunDirectory(out)]
    members = [member for member in out.iterdir() if member.name not in (COLLECTED, REPORT)]
    if all(member.name.isdigit() and (member / "log.txt").is_file() for member in members):
        return [RunDirectory(member) for member in members]
    return []


def find_runs(path: Path) -> list[RunDirectory]:
    """Find the runs at or below a path, in the order of their names."""
    if not path.is_dir():
        raise RunFileError(f"{path}: no such directory")
    if (path / "log.txt").is_file():
        return [RunDirectory(path)]
    found = sorted(log.parent for log in path.rglob("log.txt") if is_journal(log))
    if not found:
        raise RunFileError(f"{path}: not a run, and no run below it: no log.txt was found")
    return [RunDirectory(each) for each in found]


def collect_table(runs: list[RunDirectory], base: Path) -> pl.DataFrame:
    """Put the summary tables of many runs into one."""
    frames = []
    for run in runs:
        record = run.record()
        table = summary_table(record, steps_table(record))
        name = str(run.path.relative_to(base)) if run.path != base else run.path.name
        frames.append(
            table.select(pl.lit(name).alias("run"), pl.lit(record.status).alias("status"), pl.all())
        )
    return pl.concat(frames, how="diagonal_relaxed")
