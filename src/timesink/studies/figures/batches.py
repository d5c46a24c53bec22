"""Seed 000's Fig. 19, 21 and 22: what a batch takes, by workers and by source."""

from collections.abc import Callable, Sequence
from typing import Any

from timesink.analysis.spread import Spread, spread
from timesink.studies.figures.grouped import by, note
from timesink.studies.figures.seed_figure import (
    Axis,
    Chart,
    SeedFigure,
    agreement_of,
    noise_in,
    range_of,
    times,
)
from timesink.studies.measured import Done, read_pipeline

BATCH = Axis("batch_size", "batch size")
BATCH_MS = Axis("ms", "ms a batch")


def workers(done: Sequence[Done]) -> SeedFigure:
    """Give the time of a batch by batch size and number of workers."""
    rows, cells = _batches(done, "workers", lambda each: each.planned.experiment.pipeline.workers)
    pairs, gains = [], []
    for size in dict.fromkeys(size for size, _ in cells):
        numbers = [workers for other, workers in cells if other == size]
        few, many = cells[size, numbers[0]], cells[size, numbers[-1]]
        if len(numbers) > 1:
            pairs.append((many, few))
            gains.append(
                f"{times(many.median / few.median)} as long with {numbers[-1]} workers as with "
                f"{numbers[0]} at batch {size}"
            )
    here = "Not two numbers of workers were measured."
    if gains:
        here = f"A batch takes {', '.join(gains)}.{noise_in(pairs)}"
    sizes = sorted({size for size, _ in cells})
    if len(sizes) > 1:
        here += _growth(cells, sizes)
    return SeedFigure(
        "fig-19",
        "Fig. 19",
        "Time of a batch in the pipeline, by batch size and workers, cold",
        "A batch takes less time with 4 workers than with 1: the SSD is not the only bottleneck, "
        "the CPU is one as well.",
        here,
        agreement_of(pairs),
        Chart("bars", BATCH, BATCH_MS, Axis("workers", "workers")),
        rows,
        note(f"{_cold(done)}Each batch is made when it is asked for.", list(cells.values())),
    )


def _growth(cells: dict[tuple[int, Any], Spread], sizes: Sequence[int]) -> str:
    fewest = next(workers for _, workers in cells)
    small, large = (cells.get((size, fewest)) for size in (sizes[0], sizes[-1]))
    if small is None or large is None:
        return ""
    return (
        f" From batch {sizes[0]} to {sizes[-1]}, {times(sizes[-1] / sizes[0])} the images, its "
        f"time is {times(large.median / small.median)} as long."
    )


def sources(
    done: Sequence[Done], other: str, number: str, title: str, found: str, unlike: str
) -> SeedFigure:
    """Give the time of a batch by batch size, of raw files and of another source.

    `unlike` says in what it is not the seed's.
    """
    mine = [each for each in done if each.planned.experiment.pipeline.source in ("raw", other)]
    rows, cells = _batches(
        sorted(mine, key=lambda each: each.planned.experiment.pipeline.source != "raw"),
        "source",
        lambda each: each.planned.experiment.pipeline.source,
    )
    pairs, gains = [], []
    for size in dict.fromkeys(size for size, _ in cells):
        if (size, "raw") in cells and (size, other) in cells:
            raw, stored = cells[size, "raw"], cells[size, other]
            pairs.append((stored, raw))
            gains.append(f"{times(stored.median / raw.median)} as long at batch {size}")
    here = "Not both were measured."
    if gains:
        here = f"Against raw files, a batch from {other} takes {', '.join(gains)}.{noise_in(pairs)}"
    return SeedFigure(
        f"fig-{number.rpartition(' ')[2]}",
        number,
        title,
        found,
        here,
        agreement_of(pairs),
        Chart("bars", BATCH, BATCH_MS, Axis("source", "source")),
        rows,
        note(f"{_cold(mine)}{unlike}", list(cells.values())),
    )


def _batches(
    done: Sequence[Done], name: str, series: Callable[[Done], Any]
) -> tuple[list[dict[str, Any]], dict[tuple[int, Any], Spread]]:
    """Give the mean time of a batch by batch size and one thing more."""
    cells: dict[tuple[int, Any], Spread] = {}
    keyed = by(done, lambda each: (each.planned.experiment.training.batch_size, series(each)))
    for key, alike in keyed:
        means = [read_pipeline(each.place)["batch_ms"]["mean"] for each in alike]
        known = [mean for mean in means if mean is not None]
        if known:
            cells[key] = spread(known)
    rows = [
        {
            "batch_size": size,
            name: f"{other}",
            "ms": round(found.median, 4),
            **range_of(found),
        }
        for (size, other), found in cells.items()
    ]
    return rows, cells


def _cold(done: Sequence[Done]) -> str:
    """Say how much of the files was in memory where none should have been."""
    shares = []
    for each in done:
        before = read_pipeline(each.place)["cache_before"]
        if each.planned.experiment.pipeline.cache == "cold" and before:
            shares.append(before["resident_bytes"] / max(before["total_bytes"], 1))
    if not shares:
        return ""
    return f"Cold: before each measurement {100 * max(shares):.0f} % of the files was in memory. "
