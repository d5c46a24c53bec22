"""Runs beside each other: how fast each was, how well that is known, what is more than noise."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from timesink.analysis.noise import FEWEST_STEPS, correlation, mean_of_steps
from timesink.analysis.student import two_sided_t
from timesink.report.reading import RunFacts
from timesink.report.settings import NOT_SETTINGS, flat, written
from timesink.report.step_times import steady
from timesink.report.text import percent, times

CONFIDENCE = 0.95
EQUAL = 0.0005
"""A lead that would be written as 0.0 %."""


@dataclass(frozen=True)
class Rate:
    """Images a second of one run, with the interval that its own steps give."""

    run: str
    images_per_s: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Repeated:
    """Runs of one experiment."""

    runs: tuple[str, ...]
    images_per_s: float
    """The median."""
    least: float
    most: float

    @property
    def rate(self) -> Rate:
        """As one: what differs among them is its interval."""
        name = f"{self.runs[0]} with its {times(len(self.runs) - 1, 'repetition')}"
        return Rate(name, self.images_per_s, self.least, self.most)


def rate_of(facts: RunFacts) -> Rate | None:
    """Give a run's rate; its interval counts how steps that follow one another are alike."""
    found = facts.summary["images_per_s"]
    if found is None:
        return None
    steps_ms = steady(facts.steps).filter(pl.col("images").is_not_null())["step_ms"].to_numpy()
    if len(steps_ms) < FEWEST_STEPS:
        return Rate(facts.name, found, None, None)
    column = steps_ms.astype(np.float64)[:, None]
    mean = mean_of_steps(column, correlation([column]))
    assert mean.variance is not None
    degrees = np.array([float(mean.degrees)])
    reach = float((two_sided_t(1 - CONFIDENCE, degrees) * np.sqrt(mean.variance))[0])
    mean_ms = float(mean.mean[0])
    slow = found * mean_ms / (mean_ms + reach)
    fast = found * mean_ms / (mean_ms - reach) if reach < mean_ms else None
    return Rate(facts.name, found, slow, fast)


def fastest(rates: Sequence[Rate]) -> str:
    """Say which was fastest, and whether the next is slower by more than noise."""
    ranked = sorted(rates, key=lambda rate: -rate.images_per_s)
    if len(ranked) < 2:
        return ""
    first, second = ranked[:2]
    text = f"{first.run} is the fastest with {first.images_per_s:,.1f} images/s"
    lead = first.images_per_s / second.images_per_s - 1
    if lead < EQUAL:
        rate = f"{first.images_per_s:,.1f} images/s"
        return f"{first.run} and {second.run} are equally fast with {rate}."
    if first.low is None or second.high is None:
        return f"{text}; how much of its lead of {percent(lead)} is noise is not known."
    if first.low <= second.high:
        return (
            f"{text}, but its lead of {percent(lead)} over {second.run} is within noise: "
            "their intervals overlap."
        )
    return f"{text}, {percent(lead)} ahead of {second.run} and beyond the noise of their steps."


def findings(runs: Sequence[RunFacts], rates: Sequence[Rate]) -> list[str]:
    """Say what the runs show together; repetitions of one experiment count as one."""
    repeated = repetitions(runs)
    once = {name for each in repeated for name in each.runs}
    sides = [each.rate for each in repeated] + [rate for rate in rates if rate.run not in once]
    return [*filter(None, [fastest(sides)]), *map(repeated_sentence, repeated)]


def repetitions(runs: Sequence[RunFacts]) -> list[Repeated]:
    """Put runs of the same experiment together: what differs among them is noise."""
    alike: dict[str, list[RunFacts]] = {}
    for facts in runs:
        if facts.summary["images_per_s"] is not None:
            alike.setdefault(_experiment(facts.experiment), []).append(facts)
    found = []
    for group in alike.values():
        rates = [each.summary["images_per_s"] for each in group]
        if len(group) > 1:
            names = tuple(each.name for each in group)
            found.append(Repeated(names, median(rates), min(rates), max(rates)))
    return sorted(found, key=lambda each: -each.images_per_s)


def repeated_sentence(each: Repeated) -> str:
    """Say how far runs of one experiment are apart."""
    spread = each.most / each.least - 1 if each.least else 0.0
    shown = ", ".join(each.runs[:4]) + (", …" if len(each.runs) > 4 else "")
    return (
        f"{times(len(each.runs), 'run')} of one experiment ({shown}): median "
        f"{each.images_per_s:,.1f} images/s, from {each.least:,.1f} to {each.most:,.1f}. "
        f"Differences below {percent(spread)} are noise there."
    )


def _experiment(experiment: dict[str, Any]) -> str:
    return "\n".join(
        f"{key}={written(value)}"
        for key, value in sorted(flat(experiment).items())
        if key.partition(".")[0] not in NOT_SETTINGS
    )
