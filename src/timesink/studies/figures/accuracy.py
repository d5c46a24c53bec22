"""Seed 000's Fig. 18: accuracy by epoch for each batch size."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from timesink.analysis.spread import Spread, spread
from timesink.studies.figures.grouped import by, note
from timesink.studies.figures.seed_figure import Axis, Chart, SeedFigure, agreement_of
from timesink.studies.measured import Done, Measured, train_steps

GOAL = 0.9
"""The accuracy that the seed looked for."""
LARGE = 50
"""Batches above this are the seed's large ones."""


def accuracy(measured: Measured) -> SeedFigure:
    """Give the accuracy of each epoch, and when all got as far as all did."""
    rows: list[dict[str, Any]] = []
    curves: dict[int, list[Spread]] = {}
    for size, alike in by(measured.done, lambda each: each.planned.experiment.training.batch_size):
        by_epoch = [_accuracy_by_epoch(each) for each in alike]
        epochs = min(len(each) for each in by_epoch)
        curves[size] = [spread([run[epoch] for run in by_epoch]) for epoch in range(epochs)]
        rows += [
            {
                "epoch": epoch,
                "batch_size": f"{size}",
                "accuracy": round(100 * found.median, 4),
                "low": round(100 * found.low, 4),
                "high": round(100 * found.high, 4),
            }
            for epoch, found in enumerate(curves[size], 1)
        ]
    here, pairs = _epochs_needed(curves)
    too_large = sorted(
        {
            each.planned.experiment.training.batch_size
            for each in measured.failed
            if each.outcome["kind"] == "out of memory"
        }
    )
    if too_large:
        here += f" Batches of {' and '.join(map(str, too_large))} did not fit into memory."
    return SeedFigure(
        "fig-18",
        "Fig. 18",
        "Accuracy by epoch for each batch size",
        "Larger batches reach a high accuracy in fewer epochs: those above 50 about 90 % in "
        "about 12 epochs, smaller ones in 30. Batches above 160 did not fit into memory.",
        here,
        agreement_of(pairs),
        Chart(
            "lines",
            Axis("epoch", "epoch"),
            Axis("accuracy", "training accuracy, %"),
            Axis("batch_size", "batch size"),
        ),
        rows,
        note(
            "Top-1 accuracy of the training images while they are trained on. Optimizer and "
            "learning rate are the same for every batch size; the seed does not say which it used.",
            [found for curve in curves.values() for found in curve],
        ),
    )


def _accuracy_by_epoch(done: Done) -> list[float]:
    weighted = pl.col("top1") * pl.col("images")
    table = (
        train_steps(done.place)
        .filter(pl.col("top1").is_not_null())
        .group_by("epoch", maintain_order=True)
        .agg((weighted.sum() / pl.col("images").sum()).alias("top1"))
        .sort("epoch")
    )
    return table["top1"].to_list()


def _epochs_needed(curves: dict[int, list[Spread]]) -> tuple[str, list[tuple[Spread, Spread]]]:
    """Say when each batch size got as far as all of them did; the large ones beside the small.

    All of a kind are one comparison: a batch size in two of them would count twice.
    """
    if len(curves) < 2:
        return "Not two batch sizes were measured.", []
    goal = min(GOAL, *(max(found.median for found in curve) for curve in curves.values()))
    needed = {size: _reached(curve, goal) for size, curve in sorted(curves.items())}
    text = ", ".join(f"batch {size} after {found.median:.0f}" for size, found in needed.items())
    here = f"{100 * goal:.0f} % was reached by {text} epochs."
    large, small = (
        [found.median for size, found in needed.items() if (size > LARGE) == above]
        for above in (True, False)
    )
    return here, [(spread(large), spread(small))] if large and small else []


def _reached(curve: Sequence[Spread], goal: float) -> Spread:
    """Give the epoch in which an accuracy was reached; the best repetition is there first."""
    first, earliest, latest = (
        next(
            (float(n) for n, found in enumerate(curve, 1) if getattr(found, part) >= goal),
            len(curve) + 1.0,
        )
        for part in ("median", "high", "low")
    )
    return Spread(first, earliest, latest, curve[0].count)
