"""Seed 002's figures from our own cells: throughput by category, input alone, by cores."""

from collections.abc import Sequence
from typing import Any

from timesink.analysis.cells import SYNTHETIC, Cell, augmented, grouped
from timesink.analysis.findings import Finding, findings
from timesink.analysis.spread import spread
from timesink.studies.figures.seed_figure import (
    Agreement,
    Axis,
    Chart,
    SeedFigure,
    agreement_of,
    file_name,
    range_of,
    repeated,
)

CATEGORY = Axis("category", "input")
RATE = Axis("images_per_s", "images/s")
INPUT = "input alone"
BY_CORES = {"mobilenetv2": "Fig. 3", "resnet50": "Fig. 4"}
VERDICTS: dict[str, Agreement] = {
    "agrees": "agrees",
    "disagrees": "differs",
    "undecided": "undecided",
    "not measured": "not measured",
}


def figures(cells: Sequence[Cell]) -> list[SeedFigure]:
    """Make all of them; a network beside the seed's two has one by cores as well."""
    most = max((cell.cores for cell in cells), default=0)
    at_most = [cell for cell in cells if cell.cores == most]
    by_model, by_cores, _ = findings(cells)
    made = [_by_category(at_most, by_model, most), _input_alone(at_most, most)]
    networks = dict.fromkeys([*BY_CORES, *(cell.setting.network for cell in cells)])
    for network in networks:
        mine = [cell for cell in cells if cell.setting.network == network]
        if mine or network in BY_CORES:
            made.append(_by_cores(network, mine, by_cores))
    return made


def _by_category(cells: Sequence[Cell], finding: Finding, cores: int) -> SeedFigure:
    several = _several(cells)
    rows = [
        _row(
            cell.category,
            "series",
            f"training {cell.setting.network}{_beside(cell) if several else ''}",
            cell.both_rates,
        )
        for cell in cells
    ]
    rows += _input_rows(cells, series=True)
    return SeedFigure(
        "fig-1",
        "Fig. 1",
        "Training by category of input, and the input alone",
        "Training falls below what synthetic images allow once the input alone is slower than "
        "that; a small model (MobileNetV2) is held back with fewer layers than a large one "
        "(ResNet-50).",
        finding.text,
        VERDICTS[finding.verdict],
        Chart("bars", CATEGORY, RATE, Axis("series", "what runs")),
        rows,
        _note(cells, cores),
    )


def _input_alone(cells: Sequence[Cell], cores: int) -> SeedFigure:
    rows = _input_rows(cells, series=False)
    made = _input_rates(augmented(cells))
    order = list(made)
    here, agreement = "The input was not measured.", agreement_of([])
    if len(order) > 1:
        first, last = spread(made[order[0]]), spread(made[order[-1]])
        agreement = agreement_of([(last, first)])
        here = (
            f"{order[0]} makes {first.median:,.0f} images/s, {order[-1]} "
            f"{last.median:,.0f}: {100 * (1 - last.median / first.median):.0f} % fewer."
        )
    return SeedFigure(
        "fig-2",
        "Fig. 2",
        "The input pipeline alone",
        "The more layers of augmentation, the fewer images a second the CPU makes.",
        here,
        agreement,
        Chart("bars", CATEGORY, RATE),
        rows,
        _note(cells, cores),
    )


def _by_cores(network: str, cells: Sequence[Cell], finding: Finding) -> SeedFigure:
    several = _several(cells)
    rows = [
        _row(
            cell.category,
            "cores",
            f"{cell.cores}{_beside(cell) if several else ''}",
            cell.both_rates,
        )
        for cell in sorted(cells, key=lambda cell: cell.cores)
    ]
    pairs = []
    lost: list[str] = []
    counted = [cell for cell in augmented(cells) if not cell.disturbed]
    for (category, _), alike in grouped(counted, lambda cell: (cell.category, cell.setting)):
        few, many = (pick(alike, key=lambda cell: cell.cores) for pick in (min, max))
        if few.cores < many.cores:
            pairs.append((many.slower, few.slower))
            lost.append(
                f"{category}{_beside(few) if several else ''} costs "
                f"{100 * few.slower.median:.0f} % on {few.cores} and "
                f"{100 * many.slower.median:.0f} % on {many.cores}"
            )
    here = "Only one number of cores was measured."
    if lost:
        here = f"Against synthetic images {'; '.join(lost)}."
    number = BY_CORES.get(network, "like Fig. 3")
    return SeedFigure(
        f"fig-{number.rpartition(' ')[2]}"
        if network in BY_CORES
        else f"cores-{file_name(network)}",
        number,
        f"Training {network} by cores",
        "The fewer cores beside the GPU, the more training is slowed; MobileNetV2 far more than "
        "ResNet-50.",
        here,
        agreement_of(pairs),
        Chart("bars", CATEGORY, RATE, Axis("cores", "cores")),
        rows,
        finding.text if pairs else "",
    )


def _several(cells: Sequence[Cell]) -> bool:
    """Tell whether a network was trained in several ways."""
    return len({cell.setting for cell in cells}) > len({cell.setting.network for cell in cells})


def _beside(cell: Cell) -> str:
    return f", batch {cell.setting.batch_size}, {cell.setting.image_size} px"


def _row(category: str, series: str, name: str, rates: Sequence[float]) -> dict[str, Any]:
    found = spread(rates)
    rate = {"images_per_s": round(found.median, 4), **range_of(found)}
    return {"category": category, series: name, **rate}


def _input_rows(cells: Sequence[Cell], *, series: bool) -> list[dict[str, Any]]:
    """Give the input's rates by category; what nothing has to be done for is left out."""
    rows = []
    for category, rates in _input_rates(augmented(cells)).items():
        row = _row(category, "series", INPUT, rates)
        rows.append(row if series else {k: v for k, v in row.items() if k != "series"})
    return rows


def _input_rates(cells: Sequence[Cell]) -> dict[str, list[float]]:
    made: dict[str, list[float]] = {}
    for cell in cells:
        made.setdefault(cell.category, []).extend(cell.input_rates)
    return made


def _note(cells: Sequence[Cell], cores: int) -> str:
    if not cells:
        return ""
    rounds = repeated([spread(cell.both_rates) for cell in cells])
    where = f"On {cores} core{'s' * (cores > 1)}. "
    left_out = f"{SYNTHETIC} takes nothing of the input and has no bar there. "
    return where + left_out + rounds.replace("repetitions", "rounds")
