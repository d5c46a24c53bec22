"""Seed 002's figures from our own cells: throughput by category, input alone, by cores."""

from collections.abc import Sequence
from typing import Any

from timesink.analysis.cells import SYNTHETIC, Cell, augmented, families, grouped
from timesink.analysis.findings import findings
from timesink.analysis.spread import Spread, spread
from timesink.analysis.verdict import NOISE
from timesink.studies.figures.seed_figure import (
    Agreement,
    Axis,
    Chart,
    SeedFigure,
    agreement_of,
    file_name,
    noise_in,
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
    made = [_by_category(at_most, most), _input_alone(at_most, most)]
    networks = dict.fromkeys([*BY_CORES, *(cell.setting.network for cell in cells)])
    for network in networks:
        mine = [cell for cell in cells if cell.setting.network == network]
        if mine or network in BY_CORES:
            made.append(_by_cores(network, mine))
    return made


def _by_category(cells: Sequence[Cell], cores: int) -> SeedFigure:
    several = _several(cells)
    rows = [
        _row(
            cell.category,
            "series",
            f"training {cell.setting.network}{_beside(cell) if several else ''}",
            _training(cell, cells),
        )
        for cell in cells
    ]
    rows += _input_rows(cells, series=True)
    bound_words, bound = _falls_where_input_bound(cells)
    by_model = findings(cells)[0]
    there = f"On {cores} core{'s' * (cores > 1)}: {by_model.text[:1].lower()}{by_model.text[1:]}"
    agreement = _both(bound, VERDICTS[by_model.verdict])
    return SeedFigure(
        "fig-1",
        "Fig. 1",
        "Training by category of input, and the input alone",
        "Training falls below what synthetic images allow once the input alone is slower than "
        "that; a small model (MobileNetV2) is held back with fewer layers than a large one "
        "(ResNet-50).",
        " ".join(filter(None, (bound_words, there if cells else by_model.text))),
        agreement,
        Chart("bars", CATEGORY, RATE, Axis("series", "what runs")),
        rows,
        _note(cells, cores),
    )


def _falls_where_input_bound(cells: Sequence[Cell]) -> tuple[str, Agreement]:
    """Put it to the cells: where the input is the slower side training falls, elsewhere not."""
    counted = [cell for cell in augmented(cells) if not cell.disturbed and not cell.even]
    slower_side = [cell for cell in counted if cell.input_bound]
    others = [cell for cell in counted if not cell.input_bound]
    if not counted:
        return "", "not measured"
    fell, fell_too = (sum(_falls(cell) for cell in some) for some in (slower_side, others))
    if not slower_side:
        text = "In no category is the input alone slower than the network"
        if fell_too:
            text += f"; training is slowed in {fell_too} of {len(others)} all the same"
            text += _shared_cores(others)
        return f"{text}.", "undecided"
    text = (
        f"Where the input alone is slower than the network, training is slowed in {fell} of "
        f"{len(slower_side)} cells"
    )
    if others:
        text += f"; elsewhere in {fell_too} of {len(others)}"
        text += _shared_cores(others) if fell_too else ""
    right, wrong = fell + len(others) - fell_too, len(slower_side) - fell + fell_too
    return f"{text}.", "agrees" if right > wrong else "differs" if wrong > right else "undecided"


def _falls(cell: Cell) -> bool:
    """Tell whether training is slowed by more than two measurements of one thing differ."""
    return cell.slower.low > 0 and cell.slower.median > NOISE


def _shared_cores(cells: Sequence[Cell]) -> str:
    return ", because both share the cores" if any(cell.shared for cell in cells) else ""


def _both(one: Agreement, other: Agreement) -> Agreement:
    """Judge two claims together: as the worse of them."""
    order: tuple[Agreement, ...] = ("differs", "undecided", "not measured", "agrees")
    return min(one, other, key=order.index)


def _input_alone(cells: Sequence[Cell], cores: int) -> SeedFigure:
    pairs, words = [], []
    counted = [cell for cell in augmented(cells) if not cell.disturbed]
    several = len({_of_input(cell) for cell in counted}) > 1
    for _, alike in grouped(counted, _of_input):
        for _, points in families(alike):
            least, most = points[min(points)], points[max(points)]
            few, many = (
                _input_of([cell for cell in alike if cell.category == end.category])
                for end in (least, most)
            )
            pairs.append((many, few))
            change = 1 - many.median / few.median
            words.append(
                f"{least.category} makes {few.median:,.0f} images/s{_beside(least) * several}, "
                f"{most.category} {many.median:,.0f}: {100 * abs(change):.0f} % "
                f"{'fewer' if change >= 0 else 'more'}"
            )
    here = "Not two numbers of layers were measured." if counted else "The input was not measured."
    if words:
        here = f"{'; '.join(words)}.{noise_in(pairs)}"
    return SeedFigure(
        "fig-2",
        "Fig. 2",
        "The input pipeline alone",
        "The more layers of augmentation, the fewer images a second the CPU makes.",
        here,
        agreement_of(pairs),
        Chart("bars", CATEGORY, RATE),
        _input_rows(cells, series=False),
        _note(cells, cores),
    )


def _of_input(cell: Cell) -> tuple[int, int]:
    """Tell what an input alone depends on beside its category: it knows no network."""
    return cell.setting.batch_size, cell.setting.image_size


def _input_of(cells: Sequence[Cell]) -> Spread:
    """Give the input's rates in all rounds of some cells."""
    return spread([rate for cell in cells for rate in cell.input_rates])


def _by_cores(network: str, cells: Sequence[Cell]) -> SeedFigure:
    several = _several(cells)
    rows = [
        _row(
            cell.category,
            "cores",
            f"{cell.cores}{_beside(cell) if several else ''}",
            _training(cell, cells),
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
    here = "Only one number of cores was measured." if counted else "It was not measured."
    if lost:
        here = f"Against synthetic images {'; '.join(lost)}.{noise_in(pairs)}"
    number = BY_CORES.get(network, "like Fig. 3")
    return SeedFigure(
        f"fig-{number.rpartition(' ')[2]}"
        if network in BY_CORES
        else f"cores-{file_name(network)}",
        number,
        f"Training {network} by cores",
        "The fewer cores beside the GPU, the more training is slowed.",
        here,
        agreement_of(pairs),
        Chart("bars", CATEGORY, RATE, Axis("cores", "cores")),
        rows,
        _note(cells, 0),
    )


def _training(cell: Cell, cells: Sequence[Cell]) -> Spread:
    """Give what is drawn of a cell; of synthetic images all rounds, of every cell that had them.

    So the bar is what the other cells are compared with.
    """
    if cell.category != SYNTHETIC:
        return spread(cell.both_rates)
    alike = [each for each in cells if (each.setting, each.cores) == (cell.setting, cell.cores)]
    return spread([rate for each in alike for rate in each.compute_rates])


def _several(cells: Sequence[Cell]) -> bool:
    """Tell whether a network was trained in several ways."""
    return len({cell.setting for cell in cells}) > len({cell.setting.network for cell in cells})


def _beside(cell: Cell) -> str:
    return f", batch {cell.setting.batch_size}, {cell.setting.image_size} px"


def _row(category: str, series: str, name: str, found: Spread) -> dict[str, Any]:
    rate = {"images_per_s": round(found.median, 4), **range_of(found)}
    return {"category": category, series: name, **rate}


def _input_rows(cells: Sequence[Cell], *, series: bool) -> list[dict[str, Any]]:
    """Give the input's rates by category; what nothing has to be done for is left out."""
    counted = augmented(cells)
    several = len({_of_input(cell) for cell in counted}) > 1
    rows = []
    for (category, _), alike in grouped(counted, lambda cell: (cell.category, _of_input(cell))):
        beside = _beside(alike[0]) if several else ""
        row = _row(category, "series", f"{INPUT}{beside}", _input_of(alike))
        if not series:
            del row["series"]
            row["category"] += beside
        rows.append(row)
    return rows


def _note(cells: Sequence[Cell], cores: int) -> str:
    """Say where it was, and how sure it is; `cores` is 0 where the figure tells them."""
    if not cells:
        return ""
    rounds = repeated([spread(cell.both_rates) for cell in cells])
    where = f"On {cores} core{'s' * (cores > 1)}. " if cores else ""
    about = f"{SYNTHETIC}: the network alone, on random images, as it was measured in every cell. "
    return where + about + rounds.replace("repetitions", "rounds")
