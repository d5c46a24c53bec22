"""A cell of the study of augmentation as a value: three rates in; prediction, bound and row out.

A cell is a network, a category of input, a number of cores and a batch size, with three rates: the
input alone, the computing alone (synthetic), both together.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from timesink.analysis.sharing import Alone, together
from timesink.analysis.spread import Spread, spread
from timesink.analysis.verdict import NOISE
from timesink.pipelines.stages import parse_stages

SIDES = ("input", "compute", "both")
SYNTHETIC = "synthetic"
"""The category that is no work at all: what the others are compared with, and not one of them."""


@dataclass(frozen=True)
class Setting:
    """A network as it is trained: what cells are compared within."""

    network: str
    batch_size: int
    image_size: int


@dataclass(frozen=True)
class Cell:
    """One cell, measured; the rates are images/s, round by round."""

    setting: Setting
    category: str
    cores: int
    input_rates: tuple[float, ...]
    compute_rates: tuple[float, ...]
    both_rates: tuple[float, ...]
    busy: tuple[float, float, float]
    """How many cores each kept busy: input, compute, both."""
    shared: bool
    """Whether the network is computed on the cores that make the images."""
    listed: tuple[str, ...] = ()
    """The stages, where they are a list: then `category` is only what they are called."""

    @property
    def stages(self) -> str | list[str]:
        """The stages as an experiment has them."""
        return list(self.listed) or self.category

    @property
    def input(self) -> float:
        """The pipeline alone."""
        return statistics.median(self.input_rates)

    @property
    def compute(self) -> float:
        """The network alone, on synthetic images."""
        return statistics.median(self.compute_rates)

    @property
    def both(self) -> float:
        """Training."""
        return statistics.median(self.both_rates)

    @property
    def predicted(self) -> float:
        """What the two alone let expect of both."""
        made, taken, _ = self.busy
        return together(Alone(self.input, made), Alone(self.compute, taken), self.cores)

    @property
    def error(self) -> float:
        """The prediction's, of what was measured."""
        return self.predicted / self.both - 1

    @property
    def load(self) -> float:
        """Time of an image in the input over its time in the network; above 1 is input-bound."""
        return self.compute / self.input

    @property
    def input_bound(self) -> bool:
        """Whether the input alone is the slower side."""
        return self.load > 1

    @property
    def even(self) -> bool:
        """Whether the sides differ by less than two measurements of one thing do."""
        return min(self.load, 1 / self.load) > 1 - NOISE

    @property
    def disturbed(self) -> bool:
        """Whether both together were quicker than a side of them alone, in every round.

        That cannot be: something else was at work while the side was measured.
        """
        alone = min(max(self.input_rates), max(self.compute_rates))
        return min(self.both_rates) > alone

    @property
    def slower(self) -> Spread:
        """How much slower training is than on synthetic images: 0 is not at all."""
        pairs = zip(self.both_rates, self.compute_rates, strict=True)
        return spread([1 - both / compute for both, compute in pairs])


@dataclass(frozen=True)
class Family:
    """What categories have in common that differ by the layers of RandAugment alone."""

    others: tuple[str, ...]
    magnitudes: tuple[int, ...]
    """Of each of its stages; none where there are no layers: it belongs to every family with these
    others."""


def family_of(category: str | list[str]) -> tuple[Family, int]:
    """Part a category, or a list of stages, into its family and its layers of RandAugment."""
    stages = parse_stages(category)
    drawn = [stage for stage in stages if stage.name == "randaugment"]
    others = tuple(str(stage) for stage in stages if stage.name != "randaugment")
    numbers = [[int(number) for number in stage.arguments] for stage in drawn]
    magnitudes = tuple(magnitude for _, magnitude in numbers)
    return Family(others, magnitudes), sum(layers for layers, _ in numbers)


def _rates(cell: Cell) -> tuple[tuple[float, ...], ...]:
    return cell.input_rates, cell.compute_rates, cell.both_rates


def row_of(cell: Cell) -> dict[str, Any]:
    """Give a cell as a row of cells.csv."""
    rates = {
        f"{side}_images_per_s{end}": getattr(spread(values), part)
        for side, values in zip(SIDES, _rates(cell), strict=True)
        for end, part in (("", "median"), ("_low", "low"), ("_high", "high"))
    }
    return {
        **asdict(cell.setting),
        "cores": cell.cores,
        "category": cell.category,
        "layers": None if cell.category == SYNTHETIC else family_of(cell.stages)[1],
        **rates,
        **{f"{side}_cores": each for side, each in zip(SIDES, cell.busy, strict=True)},
        "predicted_images_per_s": cell.predicted,
        "prediction_error": cell.error,
        "slower_than_synthetic": cell.slower.median,
        "bound": "input" if cell.input_bound else "compute",
        "even": cell.even,
        "disturbed": cell.disturbed,
        "shared_cores": cell.shared,
    }


def prediction(cells: Sequence[Cell]) -> dict[str, Any]:
    """Sum up how far the predictions were off."""
    errors = sorted(abs(cell.error) for cell in augmented(cells))
    return {
        "cells": len(errors),
        "median_error": statistics.median(errors) if errors else None,
        "worst_error": errors[-1] if errors else None,
    }


def augmented(cells: Sequence[Cell]) -> list[Cell]:
    """Give the cells that are no synthetic images."""
    return [cell for cell in cells if cell.category != SYNTHETIC]


def families(cells: Sequence[Cell]) -> list[tuple[Family, dict[int, Cell]]]:
    """Give, for each family with two numbers of layers or more, its cells by that number."""
    parted = [(*family_of(cell.stages), cell) for cell in cells]
    found = []
    for family in dict.fromkeys(family for family, layers, _ in parted if layers):
        points = {
            layers: cell
            for each, layers, cell in parted
            if each == family or (not layers and each.others == family.others)
        }
        if len(points) > 1:
            found.append((family, points))
    return found


def grouped(cells: Sequence[Cell], key: Any) -> list[tuple[Any, list[Cell]]]:
    """Group cells, in the order in which their keys come first."""
    groups: dict[Any, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return list(groups.items())
