"""Seed 001's figures of layers by iteration: all of a device, each forward and backward."""

from collections.abc import Sequence

import polars as pl

from timesink.analysis.spread import BY_CHANCE, by_sign
from timesink.studies.figures.errors import errors
from timesink.studies.figures.layer_cases import Case
from timesink.studies.figures.layer_times import (
    ITERATION,
    MS,
    both_phases,
    layer_phases,
    points,
    thinned,
)
from timesink.studies.figures.seed_figure import Agreement, Axis, Chart, SeedFigure, file_name
from timesink.studies.measured import (
    Done,
    layer_times,
    median_of,
)

ALIKE = 0.1
"""Devices whose layers differ by less are called alike."""
RANKED = 0.7
"""Spearman's correlation from which on two orders of layers are called the same."""


def layers(name: str, case: Case, done: Sequence[Done]) -> list[SeedFigure]:
    """Give all figures of one of the seed's experiments."""
    if not done or layer_times(done[0].place).is_empty():
        return _not_measured(name, case)
    first = done[0]  # its repetitions say how far medians are apart, not what one run looked like
    times = layer_phases(layer_times(first.place))
    devices = times["device"].unique(maintain_order=True).to_list()
    order = _forward_order(times["layer"].unique(maintain_order=True).to_list(), case)
    made = [
        _device(name, case, times.filter(pl.col("device") == device), device, index, order)
        for index, device in enumerate(devices)
    ]
    if len(devices) > 1:
        made[1] = _beside(made[1], case, times, devices)
    else:
        made.append(_not_measured(name, case)[1])
    own = times.filter(pl.col("device") == devices[0])
    made += [
        _one_layer(name, case, own.filter(pl.col("layer") == layer), layer, devices[0])
        for layer in order
    ]
    return [*made, *errors(name, case, first, times, len(done))]


def _device(
    name: str, case: Case, times: pl.DataFrame, device: str, index: int, order: Sequence[str]
) -> SeedFigure:
    both = both_phases(times)
    medians = {layer: median_of(both.filter(pl.col("layer") == layer)["op_ms"]) for layer in order}
    ranked = sorted(medians, key=lambda layer: -medians[layer])
    here = f"Longest first: {', '.join(f'{each} {medians[each]:,.1f} ms' for each in ranked)}."
    agreement: Agreement = "not measured"
    if case.order and set(case.order) == set(ranked):
        likeness = _rank_correlation(case.order, ranked)
        agreement = "agrees" if likeness >= RANKED else "differs"
        here += f" The two orders correlate by {likeness:.2f} (1 is the same, 0 no relation)."
    number = case.devices[index] if index < len(case.devices) else f"like {case.devices[0]}"
    return SeedFigure(
        f"{name}-{file_name(device).lower()}",
        number,
        f"{case.title}: layers by iteration, {device}",
        f"{case.order_words[:1].upper()}{case.order_words[1:]}."
        if case.order_words
        else "The seed did not measure this one.",
        here,
        agreement,
        Chart("lines", ITERATION, MS, Axis("layer", "layer")),
        thinned(both, "layer", list(medians)),
        points(times) + " The time of a layer is that of its forward and backward ops.",
    )


def _forward_order(found: Sequence[str], case: Case) -> list[str]:
    known = [layer for layer in case.layers if layer in found]
    return [*known, *(layer for layer in found if layer not in known)]


def _beside(
    figure: SeedFigure, case: Case, times: pl.DataFrame, devices: Sequence[str]
) -> SeedFigure:
    """Say of the second device how far its layers are from the first's."""
    medians = (
        both_phases(times)
        .group_by("device", "layer")
        .agg(pl.col("op_ms").median())
        .pivot("device", index="layer", values="op_ms")
    )
    ratio = (medians[devices[1]] / medians[devices[0]] - 1).abs()
    middle, worst = median_of(ratio), int(ratio.arg_max() or 0)
    here = (
        f"The median difference of a layer between {devices[0]} and {devices[1]} is "
        f"{100 * middle:.0f} %; the largest {100 * float(ratio[worst]):.0f} % "
        f"({medians['layer'][worst]})."
    )
    return SeedFigure(
        figure.name,
        figure.number,
        figure.title,
        f"{case.second_words}." if case.second_words else "The seed did not measure this one.",
        here,
        ("agrees" if middle <= ALIKE else "differs") if case.order else "not measured",
        figure.chart,
        figure.rows,
        figure.note,
    )


def _one_layer(name: str, case: Case, times: pl.DataFrame, layer: str, device: str) -> SeedFigure:
    phases = times.filter(pl.col("phase") != "update")
    beside = phases.pivot("phase", index="iteration", values="op_ms")
    here, agreement = "Not both phases were seen.", "not measured"
    if {"forward", "backward"} <= set(beside.columns):
        beside = beside.drop_nulls()
        shorter = int((beside["forward"] < beside["backward"]).sum())
        forward, backward = (median_of(beside[each]) for each in ("forward", "backward"))
        here = (
            f"Forward takes {forward:,.2f} ms, backward {backward:,.2f} ms (medians); forward was "
            f"the shorter in {shorter} of {beside.height} iterations."
        )
        agreement = "undecided"
        if by_sign(max(shorter, beside.height - shorter), beside.height) <= BY_CHANCE:
            agreement = "agrees" if 2 * shorter > beside.height else "differs"
    found = "Forward takes less than backward."
    if layer == "output" and case.output_words:
        found = f"{case.output_words}."
        if case.output_overlaps:
            agreement = "agrees" if agreement == "undecided" else agreement
    rows = thinned(
        phases.select("iteration", pl.col("phase").alias("layer"), "op_ms"),
        "layer",
        ["forward", "backward"],
    )
    return SeedFigure(
        f"{name}-{file_name(layer)}",
        case.layers.get(layer, "like Fig. 4-5"),
        f"{case.title}: {layer} by iteration, {device}",
        found,
        here,
        agreement,  # type: ignore[arg-type]
        Chart("lines", ITERATION, MS, Axis("phase", "phase")),
        [{("phase" if key == "layer" else key): row[key] for key in row} for row in rows],
        points(times),
    )


def _not_measured(name: str, case: Case) -> list[SeedFigure]:
    chart = Chart("lines", ITERATION, MS)
    numbers = {
        f"{name}-first": (case.devices[0], "layers by iteration, first device"),
        f"{name}-second": (case.devices[1], "layers by iteration, second device"),
        **{
            f"{name}-{layer}": (number, f"{layer} by iteration")
            for layer, number in case.layers.items()
        },
        f"{name}-total": (case.total, "the iteration against its layers’ time"),
        f"{name}-error": (case.error, "percentage error"),
    }
    return [
        SeedFigure(
            key,
            number,
            f"{case.title}: {what}",
            "",
            "It was not measured.",
            "not measured",
            chart,
            [],
        )
        for key, (number, what) in numbers.items()
    ]


def _rank_correlation(one: Sequence[str], other: Sequence[str]) -> float:
    """Give Spearman's correlation of two orders of the same things."""
    places = {name: rank for rank, name in enumerate(other)}
    count = len(one)
    squares = sum((rank - places[name]) ** 2 for rank, name in enumerate(one))
    return 1 - 6 * squares / (count * (count**2 - 1)) if count > 1 else 1.0
