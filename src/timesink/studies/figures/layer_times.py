"""The time of each layer by iteration, in so few points that they can be drawn."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from timesink.studies.figures.seed_figure import (
    Axis,
)

MOST_POINTS = 200
"""Of a line; of more iterations, each point is the median of several."""
ITERATION, MS = Axis("iteration", "iteration"), Axis("ms", "ms")


def layer_phases(table: pl.DataFrame) -> pl.DataFrame:
    """Give the time of each layer that has weights, by iteration, device and phase."""
    trained = table.filter(pl.col("phase") == "update")["layer"].unique()
    return (
        table.filter(pl.col("layer").is_in(trained.implode()))
        .group_by("iteration", "device", "layer", "phase", maintain_order=True)
        .agg(pl.col("op_ms").sum())
        .sort("iteration", maintain_order=True)
        .with_columns(pl.col("layer").cast(pl.String))
    )


def both_phases(times: pl.DataFrame) -> pl.DataFrame:
    """Give a layer's forward and backward time together, as the seed counts it."""
    return (
        times.filter(pl.col("phase") != "update")
        .group_by("iteration", "device", "layer", maintain_order=True)
        .agg(pl.col("op_ms").sum())
    )


def thinned(times: pl.DataFrame, series: str, order: Sequence[str]) -> list[dict[str, Any]]:
    """Give each series in its order, in so few points that they can be drawn."""
    iterations = times["iteration"].unique().sort()
    each = max(1, -(-len(iterations) // MOST_POINTS))
    stretch = {number: rank // each for rank, number in enumerate(iterations.to_list())}
    table = (
        times.with_columns(
            stretch=pl.col("iteration").replace_strict(stretch, return_dtype=pl.Int64)
        )
        .group_by("stretch", series)
        .agg(pl.col("iteration").min(), pl.col("op_ms").median().round(4).alias("ms"))
        .sort("iteration")
        .select("iteration", series, "ms")
    )
    rows = table.to_dicts()
    place = {name: rank for rank, name in enumerate(order)}
    return sorted(rows, key=lambda row: place.get(row[series], len(place)))


def points(times: pl.DataFrame) -> str:
    """Say how many iterations are drawn."""
    count = times["iteration"].n_unique()
    each = max(1, -(-count // MOST_POINTS))
    text = f"{count} traced iterations; the first, which compiles, is not traced."
    return text + (f" Each point is the median of {each}." if each > 1 else "")
