"""The traced steps' books made into tables and facts: layers.csv, the step's accounts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from timesink.analysis.cost import RunSlowdown, Slowdown, run_slowdown, slowdown
from timesink.analysis.first_look import first_look
from timesink.ledger.levels import ROW, by_layer
from timesink.ledger.opmap import LAYER
from timesink.runs.books import Books
from timesink.runs.record import RunRecord

LAYER_COLUMNS = {
    "process": pl.Int64,
    "iteration": pl.Int64,
    "device": pl.String,
    "layer": pl.String,
    "type": pl.String,
    "phase": pl.String,
    "op_ms": pl.Float64,
    "charged_ms": pl.Float64,
    "rescaled_ms": pl.Float64,
    "estimated": pl.Boolean,
}


@dataclass(frozen=True)
class OwnCost:
    """What the tool's own tracing cost."""

    window: Slowdown
    run: RunSlowdown

    @property
    def scale(self) -> float | None:
        """What a traced time is multiplied by to be as long as it would have been untraced."""
        return 1 / self.window.ratio if self.window.ratio else None


def own_cost(run: RunRecord, steps: pl.DataFrame) -> OwnCost:
    """Compare the traced steps with the untraced ones beside them."""
    train = steps.filter(pl.col("split") == "train").sort("process", "iteration")
    traced = is_traced(run, train)
    first = (
        train.select(pl.col("iteration") == pl.col("iteration").min().over("process"))
        .to_series()
        .to_numpy()
    )
    step_ms = train["step_ms"].to_numpy()
    window = slowdown(step_ms, traced, train["process"].to_numpy(), first)
    profile_ns = sum(process.accounts()["profile"] for process in run.processes.values())
    whole = run_slowdown(
        window,
        traced_ms=float(step_ms[traced & ~first].sum()),
        untraced_ms=float(step_ms[~traced & ~first].sum()),
        profile_ms=profile_ns / 1e6,
    )
    return OwnCost(window, whole)


def is_traced(run: RunRecord, train: pl.DataFrame) -> np.typing.NDArray[np.bool_]:
    """Tell of each training step whether a window holds it."""
    process, iteration = train["process"].to_numpy(), train["iteration"].to_numpy()
    traced = np.zeros(train.height, bool)
    for window in run.windows:
        inside = (iteration >= window["first"]) & (iteration <= window["last"])
        traced |= (process == window["process"]) & inside
    return traced


def layers_table(books: Books, scale: float | None) -> pl.DataFrame:
    """Give the layers' part of the books for people; rescaled is as long as without tracing."""
    rows = by_layer(books.ops).filter(pl.col("account") == LAYER)
    known = {layer: kind for layer, kind in books.types.items() if kind}
    types = pl.col("layer").replace_strict(known, default=None, return_dtype=pl.String)
    return rows.with_columns(
        type=types,
        op_ms=pl.col("op_ns") / 1e6,
        charged_ms=pl.col("charged_ns") / 1e6,
        rescaled_ms=pl.col("charged_ns") / 1e6 * pl.lit(scale, pl.Float64),
    ).select(pl.col(name).cast(kind) for name, kind in LAYER_COLUMNS.items())


def mean_step(
    rows: pl.DataFrame, *, by: Sequence[str] = ROW, of: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Give each row's mean over the traced steps of its device, longest first.

    Iterations in which a row does not occur count as nothing. Where `rows` are not the whole
    ledger, `of` is.
    """
    steps = (
        (rows if of is None else of)
        .group_by("device")
        .agg(
            pl.struct("process", "iteration").n_unique().alias("steps"),
            pl.col("charged_ns").sum().alias("wall_ns"),
        )
    )
    return (
        rows.group_by(by)
        .agg(
            pl.when(pl.col("op_ns").count() > 0).then(pl.col("op_ns").sum()).alias("op_ns"),
            pl.col("charged_ns").sum(),
            pl.col("estimated").any(),
        )
        .join(steps, on="device")
        .select(
            *by,
            (pl.col("op_ns") / pl.col("steps") / 1e6).alias("op_ms"),
            (pl.col("charged_ns") / pl.col("steps") / 1e6).alias("charged_ms"),
            (pl.col("charged_ns") / pl.col("wall_ns")).alias("share"),
            "estimated",
        )
        .sort("charged_ms", *by, descending=[True, *[False] * len(by)], nulls_last=True)
    )


def step_facts(books: Books | None, cost: OwnCost | None) -> dict[str, Any]:
    """Give what summary.json says of the traced steps; null where nothing was traced."""
    facts: dict[str, Any] = {
        "traced_steps": 0,
        "explained": None,
        "percent_unexplained": None,
        "layer_share": None,
        "percent_error": None,
        "attribution": None,
        "slowdown": {"window": None, "run": None},
        "look_first": [],
        "traced": [],
        "accounts": [],
        "retraced": [{"function": name} for name in books.retraced] if books else [],
        "memory": [],
        "notes": list(books.notes) if books else [],
    }
    if cost is not None:
        facts["slowdown"] = {
            "window": cost.window.ratio,
            "run": cost.run.ratio,
            "window_interval": [cost.window.low, cost.window.high],
            "run_interval": [cost.run.low, cost.run.high],
            "reason": cost.window.reason,
        }
    if books is None or books.ops.is_empty():
        return facts
    rows = by_layer(books.ops)
    wall_ns = int(rows["charged_ns"].sum())
    if not wall_ns:
        return facts
    layers = rows.filter(pl.col("account") == LAYER)
    missing_ns = int(rows.filter(pl.col("account") == "unattributed")["charged_ns"].sum())
    means = mean_step(rows)
    facts |= {
        "traced_steps": rows.select(pl.struct("process", "iteration").n_unique()).item(),
        "explained": 1 - missing_ns / wall_ns,
        "percent_unexplained": 100 * missing_ns / wall_ns,
        "layer_share": int(layers["charged_ns"].sum()) / wall_ns,
        "percent_error": 100 * (wall_ns - int(layers["op_ns"].sum())) / wall_ns,
        "attribution": books.origin,
        "look_first": first_look(means),
        "traced": books.walls.group_by("device")
        .agg(pl.len().alias("steps"), (pl.col("wall_ns").mean() / 1e6).alias("step_ms"))
        .sort("device")
        .to_dicts(),
        "accounts": means.to_dicts(),
        "memory": books.memory.group_by("allocator")
        .agg(
            pl.col("peak_bytes").max(),
            pl.col("peak_bytes").median().cast(pl.Int64).alias("median_peak_bytes"),
            pl.col("changes").mean().alias("changes_per_step"),
        )
        .sort("allocator")
        .to_dicts(),
    }
    return facts
