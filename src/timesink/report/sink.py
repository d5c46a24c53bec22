"""The biggest time sink of a step: the ledger's rows in; its name, its share, what is in it out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from timesink.analysis.stages import by_stage
from timesink.ledger.opmap import LAYER
from timesink.report.accounts import MEANING, StepParts
from timesink.report.text import percent

Row = Mapping[str, Any]

ALONE = 0.2
"""Of a step: a layer that takes more is named before the layers together."""
BETWEEN = "between calls, too short to be seen"
LAYERS = "the layers"
NAMES = {LAYER: "computing the layers", "input_wait": "waiting for images"}


@dataclass(frozen=True)
class Sink:
    """What takes most of a step."""

    name: str
    share: float
    clause: str
    """As the end of a sentence: `waiting for images takes 71 % of a step`."""
    within: str
    """What of it takes most; empty where nothing says."""
    section: str
    """Where on the page there is more of it."""
    more: str = ""
    """What else is known of that."""
    second: str = ""
    """What takes a large part besides, as the end of a sentence; empty where nothing does."""


def biggest_sink(
    accounts: Sequence[Row], steps: Sequence[StepParts], stages: Sequence[Row]
) -> Sink | None:
    """Find it among the accounts, with all layers as one; None where no step was timed."""
    sink, shares = _biggest(accounts, steps, stages)
    others = sorted(shares, key=lambda account: -shares[account])[1:2]
    if sink is None or not others or shares[others[0]] < ALONE:
        return sink
    (account,) = others
    again = percent(shares[account], 0)
    second = f"{NAMES.get(account, account)} takes another {again}"
    if account == "input_wait":
        within = waiting(shares[account], stages).within
        second += f", and {within}" if within else ""
    return replace(sink, second=second)


def _biggest(
    accounts: Sequence[Row], steps: Sequence[StepParts], stages: Sequence[Row]
) -> tuple[Sink | None, Mapping[str, float]]:
    """Find it, and what each account takes of a traced step."""
    if not steps:
        return None, {}
    if not steps[0].traced:
        return _of_timed(steps[0]), {}
    devices = len(steps)
    shares: dict[str, float] = {}
    for row in accounts:
        shares[row["account"]] = shares.get(row["account"], 0.0) + row["share"] / devices
    if not shares:
        return None, {}
    account = max(shares, key=shares.__getitem__)
    share = shares[account]
    if account == LAYER:
        return _of_layers(accounts, devices, share), shares
    if account == "input_wait":
        return waiting(share, stages), shares
    if account == "python":
        return _of_python(accounts, devices, share), shares
    clause = f"{account} takes {percent(share, 0)} of a step"
    return Sink(account, share, clause, MEANING.get(account, ""), "ledger"), shares


def waiting(share: float, stages: Sequence[Row]) -> Sink:
    """Describe waiting for images, with the stage that makes them slowest."""
    clause = f"waiting for images takes {percent(share, 0)} of a step"
    ranked = [row for row in by_stage(stages) if row["kind"] == "stage"]
    largest = max(ranked, key=lambda row: row["share"], default=None)
    within = ""
    if largest is not None and largest["share"]:
        within = f"{largest['stage']} is {percent(largest['share'], 0)} of the pipeline’s work"
    return Sink("waiting for images", share, clause, within, "stages" if within else "iterations")


def _of_layers(accounts: Sequence[Row], devices: int, share: float) -> Sink:
    sums: dict[str, dict[str, float]] = {}
    for row in accounts:
        if row["account"] == LAYER and row["layer"] is not None:
            phases = sums.setdefault(row["layer"], {})
            phase = row["phase"] or "forward"
            phases[phase] = phases.get(phase, 0.0) + row["share"] / devices
    if not sums:
        clause = f"computing takes {percent(share, 0)} of a step"
        return Sink("computing", share, clause, "the layers cannot be told apart", "ledger")
    layer = max(sums, key=lambda name: sum(sums[name].values()))
    phases = sums[layer]
    mine, phase = sum(phases.values()), max(phases, key=phases.__getitem__)
    if mine >= ALONE:
        clause = f"the layer {layer} alone takes {percent(mine, 0)} of a step"
        more = f"all layers together take {percent(share, 0)}"
        return Sink(layer, mine, clause, _most_of_it(phases, phase), "ledger", more)
    clause = f"computing the layers takes {percent(share, 0)} of a step"
    within = f"{layer} most of all with {percent(mine)}"
    return Sink(LAYERS, share, clause, within, "ledger", _most_of_it(phases, phase))


def _most_of_it(parts: Mapping[str, float], largest: str) -> str:
    """Name what takes most; where that is less than half, with its part."""
    part = parts[largest] / (sum(parts.values()) or 1.0)
    if part > 0.5:
        return f"most of it {largest}"
    return f"the longest part of it {largest} with {percent(part, 0)}"


def _of_python(accounts: Sequence[Row], devices: int, share: float) -> Sink:
    places: dict[str, float] = {}
    for row in accounts:
        if row["account"] == "python":
            place = row["place"] or BETWEEN
            places[place] = places.get(place, 0.0) + row["share"] / devices
    place = max(places, key=places.__getitem__)
    clause = f"Python beside the network takes {percent(share, 0)} of a step"
    within = _most_of_it(places, place)
    return Sink("python", share, clause, within, "ledger")


def _of_timed(step: StepParts) -> Sink:
    part = max(step.parts, key=lambda part: part.share)
    if part.account == "input_wait":
        return waiting(part.share, ())
    if part.account == "compute":
        clause = f"computing takes {percent(part.share, 0)} of a step"
        return Sink(
            "computing", part.share, clause, "", "iterations", "not traced: of what is unknown"
        )
    clause = f"what is between compiled steps takes {percent(part.share, 0)} of a step"
    return Sink(part.account, part.share, clause, MEANING[part.account], "iterations")
