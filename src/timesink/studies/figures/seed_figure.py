"""A figure of a seed made again: what the seed found, what this machine shows, do they agree."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from timesink.analysis.spread import Pair, Spread, compared, first_is_smaller, range_confidence

Agreement = Literal["agrees", "differs", "undecided", "not measured"]
Shape = Literal["bars", "stacked", "lines"]


@dataclass(frozen=True)
class Axis:
    """A column of the rows, and how it is called."""

    field: str
    title: str


@dataclass(frozen=True)
class Chart:
    """How rows are drawn.

    `bars` and `stacked` have a bar for each value of `x`, as long as `y`; `lines` go over `x`.
    Rows may have `low` and `high`: the range of the repetitions.
    """

    shape: Shape
    x: Axis
    y: Axis
    series: Axis | None = None


@dataclass(frozen=True)
class SeedFigure:
    """One figure of a seed, made from our own measurements."""

    name: str
    """Of its files."""
    number: str
    """As the seed has it."""
    title: str
    found: str
    """What the seed found."""
    here: str
    """What this machine shows."""
    agreement: Agreement
    chart: Chart
    rows: Sequence[Mapping[str, Any]]
    note: str = ""
    """What the reader has to know: what is counted, what is left out, how sure it is."""

    def plain(self) -> dict[str, Any]:
        """Give it as plain values for JSON."""
        return {**asdict(self), "rows": [dict(row) for row in self.rows]}


def range_of(value: Spread) -> dict[str, float]:
    """Give the columns of a range."""
    return {"low": round(value.low, 6), "high": round(value.high, 6)}


def repeated(spreads: Sequence[Spread]) -> str:
    """Say what the lines on bars are, and how far they are to be trusted."""
    fewest = min((each.count for each in spreads), default=0)
    if not fewest:
        return ""
    if fewest == 1:
        return "Measured once: how much of a difference is noise is not known."
    return (
        f"Medians of {fewest} repetitions; lines are their range, which holds the true median with "
        f"{100 * range_confidence(fewest):.0f} % confidence."
    )


def agreement_of(pairs: Sequence[Pair]) -> Agreement:
    """Judge a claim that the first of each pair is the smaller one."""
    if not pairs:
        return "not measured"
    smaller = first_is_smaller(pairs)
    return "undecided" if smaller is None else "agrees" if smaller else "differs"


def noise_in(pairs: Sequence[Pair]) -> str:
    """Warn where the noise is larger than what is compared; empty where it is not."""
    within = compared(pairs)[2]
    if not within or all(min(one.count, other.count) == 1 for one, other in pairs):
        return ""
    if len(pairs) == 1:
        return " The noise is larger than the difference."
    return f" In {within} of {len(pairs)} comparisons the noise is larger than the difference."


def times(value: float) -> str:
    """Write how many times as much: 1.04 times, 12 times."""
    return f"{value:.2f} times" if value < 10 else f"{value:,.0f} times"


def file_name(name: str) -> str:
    """Give a name that a file may have."""
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def told_apart(figures: Sequence[SeedFigure]) -> list[SeedFigure]:
    """Give figures whose names have become the same, such as those of a.1 and a-1, names apart."""
    taken: dict[str, int] = {}
    made = []
    for figure in figures:
        number = taken[figure.name] = taken.get(figure.name, 0) + 1
        made.append(replace(figure, name=f"{figure.name}-{number}") if number > 1 else figure)
    return made
