"""Seed 000's Fig. 2: sequential against pipelined."""

from collections.abc import Sequence
from typing import Any

from timesink.analysis.spread import Spread, spread
from timesink.studies.conducting import run_facts
from timesink.studies.figures.grouped import by, note
from timesink.studies.figures.seed_figure import (
    Axis,
    Chart,
    SeedFigure,
    agreement_of,
    noise_in,
    range_of,
)
from timesink.studies.measured import Done, train_steps

MODES = {
    "whole_dataset": "sequential: all of an epoch first",
    "by_batch": "sequential: batch by batch",
    "pipelined": "pipelined",
}
IN_WORDS = {
    "whole_dataset": "where all of an epoch is made first",
    "by_batch": "where each batch is made when it is needed",
}


def overlap(done: Sequence[Done]) -> SeedFigure:
    """Give what a step waits and computes, by how its batches are made."""
    parts = {"waiting for images": "data_ms", "computing": "compute_ms"}
    rows: list[dict[str, Any]] = []
    totals: dict[str, Spread] = {}
    for mode, alike in by(done, lambda each: each.planned.experiment.pipeline.mode, MODES):
        means = [_mean_parts(each) for each in alike]
        totals[mode] = spread([sum(each.values()) for each in means])
        for part, column in parts.items():
            ms = spread([each[column] for each in means]).median
            rows.append({"mode": MODES[mode], "part": part, "ms": round(ms, 4)})
        rows[-1] |= range_of(totals[mode])
    here, pairs = "Not both ways were measured.", []
    if "pipelined" in totals:
        quick = totals["pipelined"]
        others = {mode: total for mode, total in totals.items() if mode != "pipelined"}
        pairs = [(quick, total) for total in others.values()]
        if others:
            slow = ", ".join(
                f"{total.median:,.1f} ms {IN_WORDS[mode]}" for mode, total in others.items()
            )
            here = f"A step takes {quick.median:,.1f} ms pipelined, {slow}.{noise_in(pairs)}"
            if agreement_of(pairs) != "agrees" and all(_on_the_cpu(each) for each in done):
                here += " Network and input share the cores here: there is little to overlap."
    return SeedFigure(
        "fig-2",
        "Fig. 2",
        "Sequential against pipelined",
        "A drawing, not a measurement: one after the other leaves the GPU without work while the "
        "CPU prepares images; a pipeline overlaps the two.",
        here,
        agreement_of(pairs),
        Chart("stacked", Axis("mode", "input"), Axis("ms", "ms a step"), Axis("part", "part")),
        rows,
        note(
            "Means over the steps; the computing of the first step, which compiles, is left out.",
            list(totals.values()),
        ),
    )


def _on_the_cpu(done: Done) -> bool:
    devices = run_facts(done.place).get("devices") or ()
    return all("CPU" in str(device).upper() for device in devices)


def _mean_parts(done: Done) -> dict[str, float]:
    """Give the mean waiting and computing of a step; the first step compiles, and also waits."""
    steps = train_steps(done.place)
    others = steps.slice(1) if steps.height > 1 else steps
    return {
        "data_ms": float(steps["data_ms"].mean()),  # type: ignore[arg-type]
        "compute_ms": float(others["compute_ms"].mean()),  # type: ignore[arg-type]
    }
