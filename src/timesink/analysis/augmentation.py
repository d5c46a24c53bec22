"""What a grid of cells says of augmentation, in sentences: what cores feed, how many it takes."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from timesink.analysis.cells import Cell, Family, Setting, augmented, families, grouped
from timesink.analysis.sharing import cores_to_feed, scaling
from timesink.analysis.verdict import NOISE, percent

FURTHEST = 4
"""How many times the most layers measured are looked ahead: noise grows with the way."""


@dataclass(frozen=True)
class Sentence:
    """What the numbers say, and of which cells."""

    about: str
    """`layers`, `cores`, `slower` or `noise`."""
    setting: Setting
    text: str
    value: float | None = None
    """Of `layers`, how many the cores can feed; of `cores`, from how many on they do."""


def sentences(cells: Sequence[Cell]) -> list[Sentence]:
    """Say what cores can feed, how many it takes, and what augmentation costs."""
    said = []
    for setting, all_of_it in grouped(augmented(cells), lambda cell: cell.setting):
        group = [cell for cell in all_of_it if not cell.disturbed]
        for cores, there in grouped(group, lambda cell: cell.cores):
            found = families(there)
            for family, points in found:
                which = _which(family, [other for other, _ in found])
                fed = layers_fed(points)
                text = _layers(setting, cores, points, fed, which)
                value = fed if math.isfinite(fed) else None
                said.append(Sentence("layers", setting, text, value))
        for category, there in grouped(group, lambda cell: cell.category):
            by_cores = {cell.cores: cell for cell in there}
            if any(cell.input_bound for cell in there):
                text, needed = _cores(setting, category, by_cores)
                said.append(Sentence("cores", setting, text, needed))
        most = max((cell.cores for cell in group), default=0)
        there = [cell for cell in group if cell.cores == most]
        if there:
            said.append(Sentence("slower", setting, _slower(setting, most, there)))
        said += [
            Sentence("noise", setting, _disturbed(cell)) for cell in all_of_it if cell.disturbed
        ]
    return said


def _which(family: Family, families: Sequence[Family]) -> str:
    """Tell a family from the others there, in words."""
    words = ""
    if len({other.magnitudes for other in families}) > 1:
        words = f" of magnitude {_listed(family.magnitudes)}"
    if len({other.others for other in families}) > 1:
        shared = set.intersection(*(set(other.others) for other in families))
        own = [stage for stage in family.others if stage not in shared]
        words += f" with {' and '.join(own)}" if own else " and nothing else"
    return words


def layers_fed(points: Mapping[int, Cell]) -> float:
    """Tell how many layers of RandAugment the cores can make as fast as the network takes them.

    Between measured numbers of layers it is interpolated, beyond them extrapolated by the time
    that a layer takes on average; below 0 not even the input without layers keeps up.
    """
    loads = {layers: points[layers].load for layers in sorted(points)}
    # More layers are no less work: where it seems so, that is noise.
    highest, known = 0.0, []
    for layers, load in loads.items():
        highest = max(highest, load)
        known.append((layers, highest))
    for (before, low), (after, high) in pairwise(known):
        if low <= 1 < high:
            return before + (after - before) * (1 - low) / (high - low)
    middle, mean = statistics.fmean(loads), statistics.fmean(loads.values())
    products = sum((layers - middle) * (load - mean) for layers, load in loads.items())
    slope = products / sum((layers - middle) ** 2 for layers in loads)
    least, most = known[0], known[-1]
    if least[1] > 1:
        return least[0] - (least[1] - 1) / slope if slope > 0 else -math.inf
    return most[0] + (1 - most[1]) / slope if slope > 0 else math.inf


def _layers(
    setting: Setting, cores: int, points: Mapping[int, Cell], fed: float, which: str
) -> str:
    who, where = _who(setting), _on(cores)
    least, most = min(points), max(points)
    if points[least].input_bound:
        alone = points[least].category
        return f"{who} is input-bound with {alone} already {where}."
    if fed < most:
        first = math.floor(fed) + 1
        close = [layers for layers in sorted(points) if points[layers].even]
        if not close:
            return f"{who} becomes input-bound at N = {first}{which} {where}."
        at = f"at N = {_listed(close)} the sides differ by less than {percent(NOISE)}"
        return f"{who} becomes input-bound at about N = {first}{which} {where}: {at}."
    far = FURTHEST * most
    could = f"about {fed:,.0f}" if fed <= far else f"more than {far:,}"
    return (
        f"{who} stays compute-bound up to N = {most}{which} {where}, which could feed {could} "
        "layers."
    )


def _cores(setting: Setting, category: str, by_cores: Mapping[int, Cell]) -> tuple[str, int | None]:
    """Say on how many cores a category would no longer hold the network back."""
    who = f"With {category}, {_who(setting)}"
    fed = [cores for cores, cell in sorted(by_cores.items()) if not cell.input_bound]
    starved = [cores for cores, cell in sorted(by_cores.items()) if cell.input_bound]
    shared = any(cell.shared for cell in by_cores.values())
    made = scaling({cores: cell.input for cores, cell in by_cores.items()})
    taken = scaling({cores: cell.compute for cores, cell in by_cores.items()}, of_cores=shared)
    needed = cores_to_feed(made, taken)
    if fed and min(fed) > max(starved):
        last, first = max(starved), min(fed)
        if first == last + 1:
            return f"{who} is compute-bound from {first} cores on.", first
        needed = min(max(needed or first, last + 1), first)
        measured = f"(interpolated between {last} and {first})"
        return f"{who} is compute-bound from about {needed} cores on {measured}.", needed
    if fed:
        where = f"input-bound on {_listed(starved)}, compute-bound on {_listed(fed)} cores"
        return f"{who} is {where}.", None
    if len(by_cores) == 1:
        return _from_one(who, max(by_cores), needed, shared)
    measured = f"(extrapolated from {_listed(sorted(by_cores))})"
    if needed is not None:
        needed = max(needed, max(by_cores) + 1)
        return f"{who} would be compute-bound from about {needed} cores on {measured}.", needed
    few, many = made.at(min(by_cores)), made.at(max(by_cores))
    gained = few / many >= taken.at(min(by_cores)) / taken.at(max(by_cores))
    why = "the network gains as much from each" if gained else "the network gains more from each"
    if not shared:
        why = "the input hardly gains from more"
    return f"{who} would stay input-bound on any number of cores {measured}: {why}.", None


def _from_one(who: str, cores: int, needed: int | None, shared: bool) -> tuple[str, int | None]:
    """Say what one number of cores lets expect of others: as much as is assumed."""
    if shared or needed is None:
        where = f"{who} is input-bound {_on(cores)}; on how many it would not be"
        return f"{where}, one number of cores does not tell.", None
    needed = max(needed, cores + 1)
    text = f"{who} would be compute-bound from about {needed} cores on, if the input is as many"
    return f"{text} times as quick on them (only {cores} measured).", needed


def _slower(setting: Setting, cores: int, cells: Sequence[Cell]) -> str:
    """Say what the lightest input costs, and the heaviest."""
    ordered = sorted(cells, key=lambda cell: cell.load)
    least, most = ordered[0], ordered[-1]
    text = f"{_who(setting)} {_on(cores)}: {_lost(least)}"
    if least is most:
        return f"{text}."
    within = "" if least.slower.apart_from(most.slower) else ", a difference within the noise"
    return f"{text}; {_lost(most)}{within}."


def _lost(cell: Cell) -> str:
    slower = cell.slower
    if slower.median < 0.005:
        return f"{cell.category} costs nothing against synthetic images"
    text = f"{cell.category} makes training {percent(slower.median)} slower than synthetic images"
    return f"{text} do"


def _disturbed(cell: Cell) -> str:
    side = "the input" if cell.input < cell.compute else "the computing"
    ahead = cell.both / min(cell.input, cell.compute) - 1
    return (
        f"{_who(cell.setting)} {_on(cell.cores)} with {cell.category}: training was "
        f"{percent(ahead)} quicker than {side} alone, which cannot be: the machine was busy with "
        "something else meanwhile. No comparison counts this cell."
    )


def _who(setting: Setting) -> str:
    return f"{setting.network} at batch {setting.batch_size}"


def _on(cores: int) -> str:
    return f"on {cores} cores" if cores > 1 else "on 1 core"


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(
        filter(None, (", ".join(str(each) for each in numbers[:-1]), str(numbers[-1])))
    )
