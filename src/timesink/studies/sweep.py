"""A sweep: every experiment of a grid as a run of its own, one process each, one table at the end.

The journal says of each run that it began and how it ended. One that began and did not end was
cut: it is run again from its beginning. One that ended, well or badly, is not.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from timesink.errors import (
    DiskFullError,
    InterruptedRunError,
    OutOfMemoryError,
    RunError,
    TimesinkError,
)
from timesink.experiment import Experiment
from timesink.experiment_toml import to_toml as experiment_toml
from timesink.files import alone_in, replacing, write_atomically
from timesink.runs.directory import RunDirectory
from timesink.studies.grid import Grid, to_toml
from timesink.studies.study_log import StudyLog, clear, minutes

KIND = "sweep"
LOOK_S = 0.1
GRACE_S = 60.0
"""What a run is given to stop at the end of a step."""
KINDS = {
    OutOfMemoryError.exit_code: "out of memory",
    DiskFullError.exit_code: "disk full",
}


Outcome = Mapping[str, Any]
"""What the journal has of a run's end: `exit`, `reason`, `kind`, `wall_s`."""


@dataclass(frozen=True)
class Planned:
    """One run of the sweep."""

    number: int
    """From 1, in the order of the grid; its directory is named by it."""
    values: Mapping[str, Any]
    """What is varied, by key."""
    repetition: int
    experiment: Experiment

    @property
    def name(self) -> str:
        """Name it for people."""
        varied = ", ".join(
            f"{key.rpartition('.')[2]} {value}" for key, value in self.values.items()
        )
        again = f", repetition {self.repetition}" if self.repetition > 1 else ""
        return f"{varied or self.experiment.name}{again}"


@dataclass(frozen=True)
class Asked:
    """How a sweep is run."""

    in_order: bool = False
    time_limit_s: float | None = None
    """Of a run."""
    retry: bool = False
    """Whether what failed is run again."""


def plan_of(grid: Grid, cells: Sequence[Experiment]) -> list[Planned]:
    """Give the runs of a sweep: each cell as often as it asks, a run each."""
    planned: list[Planned] = []
    for values, cell in zip(grid.values(), cells, strict=True):
        once = cell.model_copy(update={"repetitions": 1})
        for repetition in range(1, cell.repetitions + 1):
            planned.append(Planned(len(planned) + 1, values, repetition, once))
    return planned


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


def sweep(
    grid: Grid,
    cells: Sequence[Experiment],
    asked: Asked,
    out: Path,
    say: Callable[[str], None],
    *,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Run what is still to be run; gives the rows of results.csv."""
    if force and out.exists():
        clear(out)
    out.mkdir(parents=True, exist_ok=True)
    planned = plan_of(grid, cells)
    resolved = [each.experiment.model_dump(mode="json") for each in planned]
    log = StudyLog(out, KIND, {"runs": resolved}, to_toml(grid))
    with alone_in(out, KIND, RunError):
        events = log.open()
        ended: dict[int, Outcome] = {
            event.fields["number"]: event.fields for event in events if event.name == "ended"
        }
        _wait_for_the_cut(out, {e.fields["number"] for e in events if e.name == "began"}, say)
        todo = [
            each
            for each in planned
            if each.number not in ended or (asked.retry and ended[each.number]["exit"] != 0)
        ]
        if not asked.in_order:
            todo = in_running_order(todo, planned[0].experiment.seed)
        if 0 < len(todo) < len(planned):
            say(f"{out}: going on: {len(planned) - len(todo)} of {len(planned)} runs are done")
        try:
            _run_all(todo, asked, log, ended, say)
        finally:
            rows = write_results(out, planned, ended)
    return rows


def _wait_for_the_cut(out: Path, began: set[int], say: Callable[[str], None]) -> None:
    """Wait until a run whose sweep was killed has stopped: it would be at work beside the next."""
    until_s, told = time.monotonic() + GRACE_S, False
    while time.monotonic() < until_s:
        alive = [n for n in began if RunDirectory(out / f"{n:04d}").is_running()]
        if not alive:
            return
        if not told:
            say(f"waiting for run {alive[0]:04d} to stop, which was cut")
            told = True
        time.sleep(LOOK_S)
    raise RunError(f"{out}: run {alive[0]:04d}, which was cut, is still at work; end it first")


def _run_all(
    todo: Sequence[Planned],
    asked: Asked,
    log: StudyLog,
    ended: dict[int, Outcome],
    say: Callable[[str], None],
) -> None:
    journal = log.append()
    begin_s, best = time.monotonic(), _Best()
    for number, outcome in ended.items():
        best.look_at(log.out, number, outcome)
    try:
        for done, each in enumerate(todo):
            left = ""
            if done:
                left_s = (time.monotonic() - begin_s) / done * (len(todo) - done)
                left = f", {minutes(left_s)} left"
            say(f"{done + 1} of {len(todo)}{left}{best}: {each.name}")
            journal.write("began", number=each.number)
            outcome = _run(each, log.out, asked.time_limit_s)
            journal.write("ended", number=each.number, **outcome)
            ended[each.number] = outcome
            if outcome["exit"] != 0:
                say(f"  failed: {outcome['reason']}")
            best.look_at(log.out, each.number, outcome)
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"stopped; the same command goes on with what is left: --out {log.out}", exit_code=130
        ) from None
    finally:
        journal.close()


class _Best:
    """The quickest run so far."""

    def __init__(self) -> None:
        self.number, self.images_per_s = 0, 0.0

    def look_at(self, out: Path, number: int, outcome: Outcome) -> None:
        """Take a run that ended into account."""
        rate = _facts(out, number).get("images_per_s") if outcome["exit"] == 0 else None
        if rate is not None and rate > self.images_per_s:
            self.number, self.images_per_s = number, rate

    def __str__(self) -> str:
        if not self.number:
            return ""
        return f", best so far {self.images_per_s:,.1f} images/s (run {self.number:04d})"


def _run(each: Planned, out: Path, time_limit_s: float | None) -> dict[str, Any]:
    """Run one experiment in a process of its own; gives how it ended."""
    place = out / f"{each.number:04d}"
    asked = out / f".{each.number:04d}.toml.tmp"
    write_atomically(asked, experiment_toml(each.experiment, comments=False))
    begin_s = time.monotonic()
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "timesink.studies.one_run"),
            *(str(asked), str(place), str(os.getpid())),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = False
    try:
        try:
            _, said = child.communicate(timeout=time_limit_s)
        except subprocess.TimeoutExpired:
            late = True
            said = _stop(child)
    except BaseException:
        _stop(child)
        raise
    finally:
        asked.unlink(missing_ok=True)
    wall_s = time.monotonic() - begin_s
    if late:
        reason = f"it took longer than {time_limit_s:g} s"
        return {
            "exit": RunError.exit_code,
            "reason": reason,
            "kind": "time limit",
            "wall_s": wall_s,
        }
    return {
        "exit": child.returncode,
        "reason": _reason(child.returncode, said),
        "kind": "" if child.returncode == 0 else KINDS.get(child.returncode, "failed"),
        "wall_s": wall_s,
    }


def _stop(child: subprocess.Popen[str]) -> str:
    """Let a run stop at the end of its step, or end it; nothing of it is left."""
    for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is None:
            child.send_signal(number)
        try:
            _, said = child.communicate(timeout=GRACE_S)
            return said
        except subprocess.TimeoutExpired:
            continue
    return ""


def _reason(code: int, said: str) -> str:
    if code == 0:
        return ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    return lines[-1][:400] if lines else f"it ended with code {code}"


def _facts(out: Path, number: int) -> dict[str, Any]:
    try:
        return RunDirectory(out / f"{number:04d}").summary()
    except TimesinkError:
        return {}


def write_results(
    out: Path, planned: Sequence[Planned], ended: Mapping[int, Outcome]
) -> list[dict[str, Any]]:
    """Write results.csv and results.parquet: a row a run, what is varied first."""
    rows = [_row(out, each, ended.get(each.number)) for each in planned]
    table = pl.DataFrame(rows, infer_schema_length=None)
    with replacing(out / "results.csv") as temporary:
        table.write_csv(temporary)
    with replacing(out / "results.parquet") as temporary:
        table.write_parquet(temporary)
    return rows


def _row(out: Path, each: Planned, outcome: Outcome | None) -> dict[str, Any]:
    facts = _facts(out, each.number) if outcome is not None else {}
    status = "planned" if outcome is None else "complete" if outcome["exit"] == 0 else "failed"
    verdict = facts.get("verdict") or {}
    slowdown = facts.get("slowdown") or {}
    return {
        "run": f"{each.number:04d}",
        **{key: _plain(value) for key, value in each.values.items()},
        "repetition": each.repetition,
        "status": status,
        "kind": outcome["kind"] if outcome else None,
        "reason": outcome["reason"] if outcome else None,
        "wall_s": outcome["wall_s"] if outcome else None,
        **{
            f"{key}_{part}": (facts.get(key) or {}).get(part)
            for key in ("step_ms", "data_ms", "compute_ms")
            for part in ("median", "p95")
        },
        **{
            key: facts.get(key)
            for key in ("images_per_s", "loss", "top1", "topn", "explained", "layer_share")
        },
        "slowdown_window": slowdown.get("window"),
        "bound": verdict.get("bound"),
        "bound_share": verdict.get("share"),
        "peak_memory_bytes": facts.get("peak_memory_bytes"),
    }


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, list | dict) else value
