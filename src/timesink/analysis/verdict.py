"""What holds a training back: three rates in; input-bound or compute-bound, by how much, out.

The input alone, the computing alone and both together are measured. Taking one side away leaves
the other alone, so of a step would go

    without the input        1 − both / compute
    without the computing    1 − both / input

The bound is the side whose going would shorten the step more: the one that is slower alone. It
holds whether the two share cores or not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from timesink.analysis.first_look import HINTS
from timesink.ledger.opmap import LAYER

Bound = Literal["input", "compute", "balanced"]

NOISE = 0.10
"""Rates that differ by less are the same: two measurements of one thing differ as much."""
WORTH_SAYING = 0.05
"""Of a step."""
BUSY = 0.8
"""Of the cores; from here on there is no room for more workers."""


@dataclass(frozen=True)
class Rates:
    """The three measurements."""

    input_images_per_s: float
    compute_images_per_s: float
    both_images_per_s: float
    waited: float | None
    """Of the steps' time in training, the share that went by waiting for a batch."""
    cores: int
    input_cores: float
    """How many cores the input alone kept busy; `compute_cores` the computing alone."""
    compute_cores: float
    shares_cores: bool
    """Whether the network is computed on the cores that make the images."""


@dataclass(frozen=True)
class InputWork:
    """How the images are made."""

    mode: str
    workers: int | str
    prefetch: int | str
    stages: Sequence[tuple[str, float]] = ()
    """Each stage and its share of the pipeline's work; none where nothing was traced."""
    storable: Sequence[str] = ()
    """Stages that a conversion of the images would do once for all epochs."""


@dataclass(frozen=True)
class StepWork:
    """What a step does besides waiting; empty where none was traced."""

    accounts: Mapping[str, float] = field(default_factory=dict)
    """Account → share of the step, all layers as one."""
    layer: str | None = None
    """The layer that takes most."""
    layer_share: float = 0.0


@dataclass(frozen=True)
class Verdict:
    """What holds the training back."""

    bound: Bound
    share: float
    """Of a step, what would go if the bound were lifted and the other side alone were left."""
    sentence: str
    first: str
    """What would change it first."""
    notes: tuple[str, ...] = ()


def judge(rates: Rates, images: InputWork, step: StepWork) -> Verdict:
    """Weigh the two sides."""
    both = rates.both_images_per_s
    # What training did, each side can do: a slower measurement of it alone was disturbed.
    made, taken = (max(each, both) for each in _alone(rates))
    slower, faster = min(made, taken), max(made, taken)
    bound: Bound = "balanced"
    if slower < (1 - NOISE) * faster:
        bound = "input" if made < taken else "compute"
    sentence = _sentence(
        bound, rates, without_input=1 - both / taken, without_compute=1 - both / made
    )
    return Verdict(
        bound, 1 - both / faster, sentence, _first(bound, rates, images, step), _notes(rates)
    )


def _alone(rates: Rates) -> tuple[float, float]:
    return rates.input_images_per_s, rates.compute_images_per_s


def _sentence(bound: Bound, rates: Rates, *, without_input: float, without_compute: float) -> str:
    made, taken = (rate(each) for each in _alone(rates))
    if bound == "input":
        sides = (
            f"Input-bound: the pipeline alone makes {made} images/s, "
            f"the network alone could take {taken}"
        )
    elif bound == "compute":
        sides = (
            f"Compute-bound: the network alone takes {taken} images/s, "
            f"the pipeline alone could make {made}"
        )
    else:
        sides = (
            f"Balanced: the pipeline alone makes {made} images/s, the network alone takes {taken}"
        )
    text = (
        f"{sides}; training ran at {rate(rates.both_images_per_s)}, so a step would be "
        f"{percent(without_input)} shorter without the input, "
        f"{percent(without_compute)} without the computing."
    )
    return text + _contention(rates, without_input)


def _contention(rates: Rates, without_input: float) -> str:
    """Say what the input costs besides waiting, where both want the same cores."""
    if not rates.shares_cores:
        return ""
    words = (
        f" Input and compute share the {rates.cores} cores"
        if rates.cores > 1
        else (" Input and compute share one core")
    )
    slowed = without_input - (rates.waited or 0.0)
    if rates.waited is None or slowed < WORTH_SAYING:
        return f"{words}."
    return (
        f"{words}: {percent(rates.waited)} of a step is waiting for images, "
        f"{percent(slowed)} is lost by making them beside the computing."
    )


def _first(bound: Bound, rates: Rates, images: InputWork, step: StepWork) -> str:
    return (
        _overlap_first(rates, images)
        or (_compute_first(rates, step) if bound == "compute" else None)
        or _workers_first(rates, images)
        or _stage_first(images)
    )


def _overlap_first(rates: Rates, images: InputWork) -> str | None:
    """Do both at once, where they take turns."""
    if images.mode == "pipelined" and images.prefetch != 0:
        return None
    made, taken = _alone(rates)
    longest_s = max(1 / made, 1 / taken)
    if rates.shares_cores:
        longest_s = max(longest_s, _core_s(rates) / rates.cores)
    gain = 1 - longest_s * rates.both_images_per_s
    if gain < WORTH_SAYING:
        return None
    key = 'mode = "pipelined"' if images.mode != "pipelined" else 'prefetch = "auto"'
    return (
        f"pipeline.{key} makes the next batch while the step computes: "
        f"a step would be up to {percent(gain)} shorter"
    )


def _workers_first(rates: Rates, images: InputWork) -> str | None:
    """Use the cores, where some are idle for want of workers."""
    busy = _core_s(rates) * rates.both_images_per_s
    if images.workers == "auto" or int(images.workers) >= rates.cores:
        return None
    if busy > BUSY * rates.cores:
        return None
    return (
        f'pipeline.workers = "auto" instead of {images.workers}: input and compute together '
        f"keep {busy:.1f} of the {rates.cores} cores busy"
    )


def _stage_first(images: InputWork) -> str:
    if not images.stages:
        return "`timesink pipeline` on this experiment says which stage of the input costs most"
    largest, share = max(images.stages, key=lambda stage: stage[1])
    text = f"{largest} is {percent(share)} of the pipeline's work"
    if largest not in images.storable:
        return f"{text}: a cheaper one, or none, changes most"
    stored = [(name, part) for name, part in images.stages if name in images.storable]
    words = " and ".join(filter(None, (", ".join(name for name, _ in stored[:-1]), stored[-1][0])))
    together = f" ({percent(sum(part for _, part in stored))})" if len(stored) > 1 else ""
    return (
        f"{text}: `timesink dataset convert --to materialized` does {words}{together} "
        "once instead of every epoch"
    )


def _compute_first(rates: Rates, step: StepWork) -> str:
    layers = step.accounts.get(LAYER, 0.0)
    others = {
        name: part for name, part in step.accounts.items() if name not in (LAYER, "input_wait")
    }
    largest = max(others, key=others.__getitem__, default="")
    if largest and others[largest] > layers:
        hint = HINTS.get(largest, "the ledger names the place")
        return f"{largest} is {percent(others[largest])} of a step: {hint}"
    text = "a faster device, a lighter network or smaller images"
    if step.layer is not None:
        text = (
            f"the layers are {percent(layers)} of a step, {step.layer} most of all with "
            f"{percent(step.layer_share)}: {text}"
        )
    made, taken = _alone(rates)
    if not rates.shares_cores:
        text += f"; the pipeline could feed a network {made / taken:,.1f} times as fast"
    return text


def _core_s(rates: Rates) -> float:
    """Give the CPU time that an image needs on both sides together."""
    made, taken = _alone(rates)
    return rates.input_cores / made + rates.compute_cores / taken


def _notes(rates: Rates) -> tuple[str, ...]:
    both = rates.both_images_per_s
    return tuple(
        f"training ran at {rate(both)} images/s and {what} alone at {rate(alone)}: "
        "the machine was busier then, and the verdict is no more than a hint"
        for what, alone in (
            ("the pipeline", rates.input_images_per_s),
            ("the network", rates.compute_images_per_s),
        )
        if alone < (1 - NOISE) * both
    )


def rate(images_per_s: float) -> str:
    """Write a rate with three figures or more."""
    places = 0 if images_per_s >= 100 else 1 if images_per_s >= 10 else 2
    return f"{images_per_s:,.{places}f}"


def percent(share: float) -> str:
    """Write a share in whole per cent."""
    return f"{100 * share:.0f} %"
