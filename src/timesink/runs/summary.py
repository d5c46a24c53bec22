"""summary.json: the facts of a run for machines, from its record alone."""

from typing import Any

import polars as pl

from timesink.runs.books import Books
from timesink.runs.cpu_time import cpu_facts
from timesink.runs.record import RunRecord
from timesink.runs.stage_tables import counter_facts, known_stages, stage_facts
from timesink.runs.step_tables import OwnCost, step_facts
from timesink.runs.tables import images_per_s, peak_memory_bytes, training_lineage
from timesink.runs.verdict import verdict_facts

SCHEMA_VERSION = 1


def summarize(
    run: RunRecord, steps: pl.DataFrame, books: Books | None = None, cost: OwnCost | None = None
) -> dict[str, Any]:
    """Give the run's facts as plain values; what was not measured is null."""
    lineage = training_lineage(steps)
    steady = _without_first_steps(lineage)
    last = lineage.row(-1, named=True) if lineage.height else {}
    validation_steps = steps.filter(pl.col("split") == "validation")
    facts = step_facts(books, cost)
    facts |= stage_facts(books.input if books else None, facts["accounts"], known_stages(run))
    verdict, why_none = verdict_facts(run, steps, facts)
    untraced = [f"not traced: {why}" for why in run.profile_failures]
    last_process = run.processes[max(run.processes)] if run.processes else None
    return {
        "schema_version": SCHEMA_VERSION,
        "name": run.experiment.get("name"),
        "status": run.status,
        "error": last_process.error["message"] if last_process and last_process.error else None,
        "network": run.network.get("network") or run.experiment.get("training", {}).get("network"),
        "parameters": run.network.get("parameters"),
        "devices": run.network.get("devices", []),
        "batch_size": run.experiment.get("training", {}).get("batch_size"),
        "dataset": run.dataset or None,
        "steps": int(lineage["executed"].sum()),
        "steps_planned": run.network.get("iterations"),
        "epochs": last.get("epoch", 0),
        "step_ms": _spread(steady["step_ms"]),
        "data_ms": _spread(steady["data_ms"]),
        "compute_ms": _spread(steady["compute_ms"]),
        "images_per_s": images_per_s(steady),
        "loss": _finite(last.get("loss")),
        "top1": _finite(last.get("top1")),
        "topn": _finite(last.get("topn")),
        "n": _n(run),
        "validation": _validation(run, validation_steps),
        **facts,
        "notes": [*facts["notes"], *untraced, *why_none],
        "verdict": verdict,
        "run_accounts": _accounts(run),
        "processes": [
            {
                "process": process.number,
                "started_utc": process.started_utc,
                "resumed_at": process.resumed_at,
                "wall_s": process.end_ns / 1e9,
                "exit": process.ended["exit"] if process.ended else None,
                "accounts_ns": process.accounts(),
            }
            for process in run.processes.values()
        ],
        "cpu": cpu_facts(run),
        "input_counters": counter_facts(run.input_nodes),
        "cache": run.cache,
        "disk_read_bytes": run.disk_read_bytes,
        "peak_memory_bytes": peak_memory_bytes(run),
        "peak_device_bytes": run.peak_device_bytes,
        "retraces": len(run.retraces),
        "retraced": run.retraces,
        "attached": run.attached,
        "input": run.network.get("input"),
        "hooks": [
            {"place": name, "calls": calls, "s": took_ns / 1e9}
            for name, (calls, took_ns) in sorted(run.hooks.items(), key=lambda hook: -hook[1][1])
        ],
        "steps_per_execution": run.network.get("steps_per_execution", 1),
        "bad_images": [
            {"path": path.encode(errors="replace").decode(), "reason": reason}
            for path, reason in run.bad_images.items()
        ],
        "checkpoints": run.checkpoints,
    }


def _without_first_steps(lineage: pl.DataFrame) -> pl.DataFrame:
    """Leave out each process's first step, which traces and compiles, unless there is no other."""
    steady = lineage.filter(pl.col("iteration") != pl.col("iteration").min().over("process"))
    return steady if steady.height else lineage


def _spread(times: pl.Series) -> dict[str, float | None]:
    times = times.drop_nulls()
    if times.is_empty():
        return {"median": None, "p95": None}
    return {
        "median": float(times.median()),  # type: ignore[arg-type]
        "p95": float(times.quantile(0.95, "linear")),  # type: ignore[arg-type]
    }


def _n(run: RunRecord) -> int | None:
    """Give the n of top-n: as asked, or all classes where there are fewer."""
    asked: int | None = run.experiment.get("training", {}).get("topn")
    classes: int | None = run.dataset.get("classes")
    return min(asked, classes) if asked and classes else asked


def _finite(value: float | None) -> float | None:
    return value if value is not None and abs(value) < float("inf") else None


def _validation(run: RunRecord, steps: pl.DataFrame) -> dict[str, Any] | None:
    if not run.validations:
        return None
    last = run.validations[-1]
    return {
        **{name: _finite(float(last[name])) for name in ("loss", "top1", "topn")},
        "images": last["images"],
        "step_ms": _spread(steps["step_ms"]),
        "history": [
            {
                "epoch": each["epoch"],
                "iteration": each["iteration"],
                **{name: _finite(float(each[name])) for name in ("loss", "top1", "topn")},
            }
            for each in run.validations
        ],
    }


def _accounts(run: RunRecord) -> list[dict[str, Any]]:
    total: dict[str, int] = {}
    for process in run.processes.values():
        for account, charged_ns in process.accounts().items():
            total[account] = total.get(account, 0) + charged_ns
    wall_ns = sum(total.values())
    return [
        {"account": account, "s": ns / 1e9, "share": ns / wall_ns if wall_ns else 0.0}
        for account, ns in total.items()
        if ns or account == "unattributed"
    ]
