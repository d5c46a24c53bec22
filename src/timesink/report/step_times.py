"""Times by iteration and their distribution: the steps in; few enough points to draw out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

MOST_POINTS = 600
MOST_BARS = 120
MOST_BINS = 48
FEWEST_BINS = 8
TAIL = 0.99
"""Slower steps stand in the last bar: one that took a second would flatten all others."""


@dataclass(frozen=True)
class Series:
    """Rows to draw, and how many steps each stands for."""

    rows: list[dict[str, Any]]
    steps_a_point: int


@dataclass(frozen=True)
class Distribution:
    """Step times by how often they occurred."""

    rows: list[dict[str, Any]]
    median_ms: float
    p95_ms: float
    beyond: int
    """Steps in the last bar that are longer than it is wide."""
    longest_ms: float


def steady(steps: pl.DataFrame) -> pl.DataFrame:
    """Leave out each process's first step, which traces and compiles, unless there is no other."""
    others = steps.filter(~pl.col("first"))
    return others if others.height else steps


def by_iteration(steps: pl.DataFrame, most: int = MOST_POINTS) -> Series:
    """Give median, least and most of the step and of its waiting, for stretches of iterations."""
    counted = steady(steps)
    each = max(1, -(-counted.height // most))
    rows: list[dict[str, Any]] = []
    for series, column in (("step", "step_ms"), ("waiting for images", "data_ms")):
        stretches = (
            counted.with_row_index("row")
            .filter(pl.col(column).is_not_null())
            .group_by(pl.col("row") // each, maintain_order=True)
            .agg(
                pl.col("iteration").first(),
                pl.col("iteration").last().alias("last_iteration"),
                pl.col(column).median().alias("median_ms"),
                pl.col(column).min().alias("least_ms"),
                pl.col(column).max().alias("most_ms"),
            )
        )
        rows += stretches.select(
            pl.lit(series).alias("series"), pl.exclude("row").round(4)
        ).to_dicts()
    return Series(rows, each)


def traced_stretches(steps: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the first and last iterations of what was traced without a break."""
    if steps.is_empty():
        return []
    runs = steps.with_columns(pl.col("traced").rle_id().alias("stretch"))
    return (
        runs.filter(pl.col("traced"))
        .group_by("stretch", maintain_order=True)
        .agg(pl.col("iteration").first().alias("first"), pl.col("iteration").last().alias("last"))
        .select("first", "last")
        .to_dicts()
    )


def distribution(steps: pl.DataFrame) -> Distribution | None:
    """Count steps by their time, traced ones apart; None where there are too few."""
    counted = steady(steps)
    if counted.height < 2:
        return None
    step_ms = counted["step_ms"].to_numpy()
    longest = float(step_ms.max())
    top = longest if counted.height < 100 else float(np.quantile(step_ms, TAIL))
    edges = _edges(step_ms[step_ms <= top])
    rows = []
    for word, traced in (("untraced", False), ("traced", True)):
        mine = counted.filter(pl.col("traced") == traced)["step_ms"].to_numpy()
        counts, _ = np.histogram(np.minimum(mine, edges[-1]), edges)
        rows += [
            {"from_ms": round(float(low), 4), "to_ms": round(float(high), 4)}
            | {"steps": int(count), "what": word}
            for low, high, count in zip(edges, edges[1:], counts, strict=False)
            if count
        ]
    return Distribution(
        rows,
        float(np.median(step_ms)),
        float(np.quantile(step_ms, 0.95)),
        int((step_ms > edges[-1]).sum()),
        longest,
    )


def accounts_by_iteration(ledger: pl.DataFrame, most: int = MOST_BARS) -> Series:
    """Give each account's mean time in stretches of traced steps.

    `ledger` has process, iteration, account and ms: what each station took of each traced step.
    """
    if ledger.is_empty():
        return Series([], 1)
    order = ("process", "iteration")
    numbered = ledger.sort(*order).with_columns(
        (pl.struct(order).rank("dense") - 1).alias("row").cast(pl.Int64)
    )
    count = int(numbered["row"].max()) + 1  # type: ignore[arg-type]
    each = max(1, -(-count // most))
    stretches = numbered.with_columns(pl.col("row") // each)
    lengths = stretches.group_by("row").agg(
        pl.struct(order).n_unique().alias("steps"), pl.col("iteration").min().alias("first")
    )
    rows = (
        stretches.group_by("row", "account")
        .agg(pl.col("ms").sum())
        .join(lengths, on="row")
        .select(
            pl.col("first").alias("iteration"),
            "account",
            (pl.col("ms") / pl.col("steps")).round(4).alias("ms"),
        )
        .sort("iteration", "account")
    )
    return Series(rows.to_dicts(), each)


def _edges(values: np.ndarray[Any, np.dtype[np.float64]]) -> np.ndarray[Any, Any]:
    """Choose bins by Freedman and Diaconis, neither so few nor so many that nothing is seen."""
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.array([low, low + max(abs(low), 1.0) * 0.01])
    quarter, three_quarters = np.quantile(values, (0.25, 0.75))
    width = 2 * (three_quarters - quarter) / len(values) ** (1 / 3)
    bins = (high - low) / width if width > 0 else FEWEST_BINS
    return np.linspace(low, high, int(np.clip(round(bins), FEWEST_BINS, MOST_BINS)) + 1)
