"""Seed 001's figures of what the layers' times leave unexplained of an iteration."""

import numpy as np
import polars as pl

from timesink.studies.conducting import run_facts
from timesink.studies.figures.layer_cases import Case
from timesink.studies.figures.layer_times import ITERATION, MS, thinned
from timesink.studies.figures.seed_figure import Axis, Chart, SeedFigure
from timesink.studies.measured import Done, layer_times, median_of, train_steps

LARGE_PART = 20
"""Per cent of the iteration, from which on the unexplained part is called large."""


def errors(
    name: str, case: Case, done: Done, times: pl.DataFrame, repetitions: int
) -> list[SeedFigure]:
    """Give the iteration beside its layers' time, and the error that the seed computes of them."""
    facts = run_facts(done.place)
    devices = times["device"].n_unique()
    profiled = (
        layer_times(done.place).group_by("iteration").agg(pl.col("op_ms").sum() / devices)
    ).rename({"op_ms": "layers"})
    beside = (
        train_steps(done.place)
        .select("iteration", pl.col("step_ms").alias("iteration_ms"))
        .join(profiled, on="iteration")
        .with_columns(
            error=100 * (pl.col("iteration_ms") - pl.col("layers")) / pl.col("iteration_ms")
        )
        .sort("iteration")
    )
    low, high = np.quantile(beside["error"].to_numpy(), (0.05, 0.95))
    least, most = case.error_range
    unexplained = facts["percent_unexplained"]
    inside = least <= median_of(beside["error"]) <= most
    lines = beside.unpivot(["iteration_ms", "layers"], index="iteration").select(
        "iteration",
        pl.col("variable")
        .replace({"iteration_ms": "the iteration", "layers": "its layers’ ops"})
        .alias("layer"),
        pl.col("value").alias("op_ms"),
    )
    total_rows = [
        {"iteration": row["iteration"], "time": row["layer"], "ms": row["ms"]}
        for row in thinned(lines, "layer", ["the iteration", "its layers’ ops"])
    ]
    error_rows = [
        {"iteration": row["iteration"], "error": row["ms"]}
        for row in thinned(
            beside.select(
                "iteration", pl.lit("error").alias("layer"), pl.col("error").alias("op_ms")
            ),
            "layer",
            ["error"],
        )
    ]
    closed = (
        f"Of the same iterations {unexplained:.2f} % is in no account: "
        f"{100 * facts['layer_share']:.1f} % is charged to layers, the rest to waiting, runtime, "
        "Python and the sums over devices, each by name."
    )
    alike = f"{repetitions} runs; drawn is the first." if repetitions > 1 else ""
    return [
        SeedFigure(
            f"{name}-total",
            case.total,
            f"{case.title}: the iteration against its layers’ time",
            "The layers’ summed times leave a large part of each iteration unexplained.",
            closed,
            "agrees" if median_of(beside["error"]) >= LARGE_PART else "differs",
            Chart("lines", ITERATION, MS, Axis("time", "time of")),
            total_rows,
            f"Summed op times, the mean of the devices; ops that run at once count twice. {alike}",
        ),
        SeedFigure(
            f"{name}-error",
            case.error,
            f"{case.title}: percentage error",
            f"Between {least} and {most} % of each iteration is not in the layers’ times.",
            f"As the seed counts, the error is between {low:.0f} and {high:.0f} % (nine of ten "
            f"iterations){_negative(low)}. In the closed ledger {unexplained:.2f} % is "
            "unexplained.",
            "agrees" if inside else "differs",
            Chart("lines", ITERATION, Axis("error", "error, % of the iteration")),
            error_rows,
            f"(iteration − summed op times) / iteration. {alike}",
        ),
    ]


def _negative(low: float) -> str:
    if low >= 0:
        return ""
    return "; below zero, because ops of several layers run at once and their times sum to more"
