"""Seed 002's three findings, put to measured cells: which comparisons say so, which do not."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from timesink.analysis.cells import Cell, augmented, families, grouped
from timesink.analysis.spread import compared, first_is_smaller
from timesink.analysis.verdict import NOISE


@dataclass(frozen=True)
class Finding:
    """One of the study's three findings, put to our cells."""

    claim: str
    verdict: str
    """`agrees`, `disagrees`, `undecided` or `not measured`."""
    worse: int
    """Comparisons in which it got worse as claimed; `better`: the other way round."""
    better: int
    noise: int
    """Comparisons in which both were the same within the spread of their rounds."""
    text: str


Pair = tuple[Cell, Cell]


def findings(cells: Sequence[Cell]) -> list[Finding]:
    """Put to the test: a smaller model, fewer cores and more layers each make it worse."""
    cells = [cell for cell in augmented(cells) if not cell.disturbed]
    return [
        _finding("the smaller the model", _by_network(cells)),
        _finding("the fewer the cores", _by_cores(cells)),
        _finding("the more the layers", _by_layers(cells)),
    ]


def _by_network(cells: Sequence[Cell]) -> list[Pair]:
    """Pair the quickest network with the slowest; a model is small by the time it takes.

    Networks that are as quick as each other are no smaller and larger one.
    """
    pairs = []
    for _, alike in grouped(cells, _beside_the_network):
        ordered = sorted(alike, key=lambda cell: -cell.compute)
        if ordered[0].compute * (1 - NOISE) > ordered[-1].compute:
            pairs.append((ordered[0], ordered[-1]))
    return pairs


def _beside_the_network(cell: Cell) -> tuple[Any, ...]:
    return cell.category, cell.cores, cell.setting.batch_size, cell.setting.image_size


def _by_cores(cells: Sequence[Cell]) -> list[Pair]:
    groups = grouped(cells, lambda cell: (cell.setting, cell.category))
    ends = [
        (min(group, key=lambda cell: cell.cores), max(group, key=lambda cell: cell.cores))
        for _, group in groups
    ]
    return [(few, many) for few, many in ends if few.cores < many.cores]


def _by_layers(cells: Sequence[Cell]) -> list[Pair]:
    return [
        (points[max(points)], points[min(points)])
        for _, group in grouped(cells, lambda cell: (cell.setting, cell.cores))
        for _, points in families(group)
    ]


def _finding(claim: str, pairs: Sequence[Pair]) -> Finding:
    """Compare pairs of a cell that should be slowed more, and one that should be less."""
    slowed = [(less.slower, more.slower) for more, less in pairs]
    worse, better, noise = compared(slowed)
    more_is_worse = first_is_smaller(slowed)
    verdict = "not measured"
    if pairs:
        words = {True: "agrees", False: "disagrees", None: "undecided"}
        verdict = words[more_is_worse]
    gaps = [more.slower.median - less.slower.median for more, less in pairs]
    text = f"{claim[0].upper()}{claim[1:]}, the more augmentation slows training: {verdict}"
    if pairs:
        text += (
            f". {worse} of {len(pairs)} comparisons say so, {better} the opposite, {noise} are "
            f"within the noise; the median difference is {100 * statistics.median(gaps):+.1f} "
            "points"
        )
    return Finding(claim, verdict, worse, better, noise, f"{text}.")
