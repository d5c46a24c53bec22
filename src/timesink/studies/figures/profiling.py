"""Seed 001's Fig. 4-1 and 4-2: what profiling costs."""

from collections.abc import Callable, Mapping, Sequence

from timesink.analysis.spread import Spread, spread
from timesink.studies.conducting import run_facts
from timesink.studies.figures.layer_cases import PROFILED, TITLES
from timesink.studies.figures.seed_figure import (
    Axis,
    Chart,
    SeedFigure,
    agreement_of,
    file_name,
    range_of,
    repeated,
)
from timesink.studies.measured import (
    Done,
)

MODES = {"off": "no profiling", "window": "a window of steps", "every": "every step"}


def profiling(network: str, done: Sequence[Done]) -> SeedFigure:
    """Give the time of a network's steps without profiling, with a window, and with all of them."""
    number, slower = PROFILED.get(network, ("like Fig. 4-1", None))
    steps_s, whole_s = _by_mode(done, _steps_s), _by_mode(done, lambda each: each.wall_s)
    rows = [
        {"profiling": MODES[mode], "s": round(each.median, 4), **range_of(each)}
        for mode, each in steps_s.items()
    ]
    here, agreement = "Not both ways were measured.", agreement_of([])
    if "off" in steps_s and "every" in steps_s:
        here = f"{_longer(steps_s)}. The whole command, reading the traces included: "
        here += f"{_longer(whole_s)[:1].lower()}{_longer(whole_s)[1:]}."
        twice = steps_s["every"].low > 2 * steps_s["off"].high
        agreement = "agrees" if twice else "differs"
    claimed = f"Profiling makes training {slower} % longer."
    return SeedFigure(
        f"fig-{number.rpartition(' ')[2]}" if slower else f"profiling-{file_name(network)}",
        number,
        f"{TITLES.get(network, network)} with and without profiling",
        claimed if slower else "Profiling makes AlexNet 245 % and VGG-11 235 % longer.",
        here,
        agreement,
        Chart("bars", Axis("profiling", "profiling"), Axis("s", "s of all steps")),
        rows,
        "All steps but the first, which compiles, with starting, stopping and writing traces. "
        f"{repeated(list(steps_s.values()))}",
    )


def _by_mode(done: Sequence[Done], seconds: Callable[[Done], float]) -> dict[str, Spread]:
    found = {}
    for mode in MODES:
        alike = [each for each in done if each.planned.experiment.profile.mode == mode]
        if alike:
            found[mode] = spread([seconds(each) for each in alike])
    return found


def _steps_s(done: Done) -> float:
    rows = run_facts(done.place)["run_accounts"]
    return float(sum(row["s"] for row in rows if row["account"] in ("steps", "profile")))


def _longer(found: Mapping[str, Spread]) -> str:
    """Say how much longer the ways of profiling take than none."""
    off = found["off"]
    text = " and ".join(
        f"{MODES[mode]} {_signed(each.median / off.median - 1)}{_noise(off, each)}"
        for mode, each in found.items()
        if mode != "off"
    )
    return f"Against no profiling, {text}"


def _signed(share: float) -> str:
    text = f"{100 * share:+.0f} %"
    return text.replace("+0 ", "±0 ").replace("-0 ", "±0 ").replace("-", "−")


def _noise(one: Spread, other: Spread) -> str:
    return "" if one.apart_from(other) or one.count == 1 else " (within the noise)"
