"""Seed 000's Fig. 20: the share of each stage."""

from collections.abc import Sequence

from timesink.analysis.spread import spread
from timesink.studies.figures.grouped import note
from timesink.studies.figures.seed_figure import Agreement, Axis, Chart, SeedFigure
from timesink.studies.measured import Done, read_pipeline

NOT_PREPROCESSING = ("read", "batch")
HALF, A_FIFTH = (0.4, 0.6), (0.1, 0.3)
"""What is called about half, and about a fifth."""


def stages(done: Sequence[Done]) -> SeedFigure:
    """Give the share of each stage of the pipeline's CPU time."""
    shares: dict[str, list[float]] = {}
    of_cpu: dict[str, list[float]] = {}
    for each in done:
        table = read_pipeline(each.place)["stages"]
        cpu = sum(row["cpu_ms_per_image"] or 0.0 for row in table)
        for row in table:
            shares.setdefault(row["stage"], []).append(row["share"])
            if cpu and row["cpu_ms_per_image"] is not None:
                of_cpu.setdefault(row["stage"], []).append(row["cpu_ms_per_image"] / cpu)
    best = of_cpu or shares
    kinds = {
        row["stage"]: row["kind"] for each in done for row in read_pipeline(each.place)["stages"]
    }
    found = {stage: spread(values) for stage, values in best.items()}
    rows = [
        {
            "stage": stage,
            "share": round(100 * each.median, 4),
            "low": round(100 * each.low, 4),
            "high": round(100 * each.high, 4),
        }
        for stage, each in found.items()
    ]
    here = "The stages were not measured."
    agreement: Agreement = "not measured"
    if found:
        reading = found.get("read", spread([0.0]))
        made = [
            stage for stage in best if kinds[stage] == "stage" and stage not in NOT_PREPROCESSING
        ]
        preprocessing = spread(
            [sum(each) for each in zip(*(best[stage] for stage in made), strict=True)] or [0.0]
        )
        largest = max(made, key=lambda stage: found[stage].median, default="none")
        here = (
            f"Preprocessing takes {100 * preprocessing.median:.0f} % of the pipeline's "
            f"{'CPU time' if of_cpu else 'work'}, {largest} alone "
            f"{100 * found[largest].median if made else 0:.0f} %; reading takes "
            f"{100 * reading.median:.0f} %."
        )
        alike = HALF[0] <= preprocessing.median <= HALF[1]
        alike = alike and A_FIFTH[0] <= reading.median <= A_FIFTH[1]
        agreement = "agrees" if alike else "differs"
    return SeedFigure(
        "fig-20",
        "Fig. 20",
        "Share of each stage",
        "Preprocessing takes about half of the CPU time, reading about a fifth.",
        here,
        agreement,
        Chart("bars", Axis("stage", "stage"), Axis("share", "% of the pipeline's CPU time")),
        rows,
        note(
            "CPU time of the pipeline alone: the difference of what it takes with and without a "
            "stage. The seed calls its shares once of CPU time, once of time in the pipeline, and "
            "took them from TensorFlow's profiler while it trained.",
            list(found.values()),
        ),
    )
