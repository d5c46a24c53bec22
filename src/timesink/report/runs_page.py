"""The page of several runs: a table and charts that compare them, and the answer of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from timesink.report import settings
from timesink.report.accounts import mean_share
from timesink.report.comparison import Rate, findings, rate_of
from timesink.report.comparison_charts import rate_dots, run_bars
from timesink.report.figure import Figure
from timesink.report.first_screen import FirstScreen, first_screen
from timesink.report.ledger_rows import LedgerRow, ledger_rows
from timesink.report.reading import RunFacts, Unread
from timesink.report.run_page import Station, stations
from timesink.report.sink import biggest_sink
from timesink.runs.directory import REPORT

MOST_SETTINGS = 4
MOST_NAMED = 10
MOST_LAYERS = 5
SMALL_LAYER = 0.005
MOST_OPEN = 6
"""So many runs stand open on the page; of more, the reader opens the ones that matter."""


@dataclass(frozen=True)
class RunLine:
    """A run in the table, and its answer below it."""

    number: int
    facts: RunFacts
    settings: tuple[str, ...]
    """Its values of the settings that differ."""
    rate: Rate | None
    first: FirstScreen
    stations: tuple[Station, ...]
    layers: tuple[LedgerRow, ...]
    """Those that take most."""
    own_page: str | None
    """The way to its own report from this one; None where there is none."""

    @property
    def wait_share(self) -> float | None:
        """Of a step, what went by waiting for images."""
        return mean_share(self.facts.parts, "input_wait") if self.facts.parts else None


@dataclass(frozen=True)
class RunsPage:
    """What the page of several runs shows."""

    place: str
    runs: tuple[RunLine, ...]
    unread: tuple[Unread, ...]
    settings: tuple[str, ...]
    """The settings that differ, as far as there is room."""
    more_settings: tuple[str, ...]
    findings: tuple[str, ...]
    figures: Mapping[str, Figure]
    open: bool


def runs_page(
    runs: Sequence[RunFacts], unread: Sequence[Unread], place: str, out: Path
) -> RunsPage:
    """Make the values of a page that will stand at `out`."""
    differing = [
        key
        for key in settings.differing([each.experiment for each in runs])
        if key not in ("training.network", "training.batch_size")  # columns of their own
    ]
    shown = tuple(differing[:MOST_SETTINGS])
    lines = tuple(_line(number, each, shown, out) for number, each in enumerate(runs, 1))
    rates = [line.rate for line in lines if line.rate is not None]
    return RunsPage(
        place,
        lines,
        tuple(unread),
        shown,
        tuple(differing[MOST_SETTINGS:][:MOST_NAMED]),
        tuple(findings(runs, rates)),
        {figure.name: figure for figure in _figures(lines, rates)},
        len(lines) <= MOST_OPEN,
    )


def _line(number: int, facts: RunFacts, shown: Sequence[str], out: Path) -> RunLine:
    summary = facts.summary
    sink = biggest_sink(summary["accounts"], facts.parts, summary.get("stages") or [])
    flat = settings.flat(facts.experiment)
    rows = ledger_rows(summary["accounts"], facts.groups)
    return RunLine(
        number,
        facts,
        tuple(settings.written(flat.get(key)) for key in shown),
        rate_of(facts),
        first_screen(summary, facts.parts, sink, facts.place),
        stations(facts.parts),
        tuple([row for row in rows if row.is_layer and row.share >= SMALL_LAYER][:MOST_LAYERS]),
        _own_page(facts.path / REPORT, out),
    )


def _own_page(page: Path, out: Path) -> str | None:
    """Give the address of a run's report as seen from this page, if it lies below it."""
    if page == out or not page.is_file() or not page.is_relative_to(out.parent):
        return None
    return quote(page.relative_to(out.parent).as_posix())


def _figures(lines: Sequence[RunLine], rates: Sequence[Rate]) -> list[Figure]:
    found = []
    if rates:
        rows: list[dict[str, Any]] = [
            {"run": r.run, "images_per_s": r.images_per_s, "low": r.low, "high": r.high}
            for r in rates
        ]
        note = (
            "The line is the 95 % interval of a run’s own steps, first steps left out; "
            "where lines overlap, a difference may be noise."
        )
        found.append(Figure("rates", "Images a second", note, rows, rate_dots(rows)))
    bars = [
        {
            "run": line.facts.name,
            "account": station.account,
            "ms": round(station.ms, 4),
            "share": round(station.share, 6),
        }
        for line in lines
        for station in line.stations
    ]
    if bars:
        note = "The mean traced step; of an untraced run only waiting and computing are known."
        found.append(Figure("steps", "Where a step’s time goes", note, bars, run_bars(bars)))
    return found
