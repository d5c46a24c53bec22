"""The page of a study: what its study.json says in, everything that its template shows out."""

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from timesink.errors import RunFileError
from timesink.report import settings
from timesink.report.discreet import discreet, discreet_text
from timesink.report.figure import Figure
from timesink.report.study_charts import study_chart
from timesink.report.text import times

FACTS = "study.json"
SCHEMA_VERSION = 1
"""Of that file, as far as it is known here."""
ORDER = ("agrees", "differs", "undecided", "not measured")
LIKE = "like "
"""How the numbers of figures begin that the seed did not have."""
WORDS = {
    "agrees": ("agrees with the seed", "agree with the seed"),
    "differs": ("differs", "differ"),
    "undecided": ("is undecided", "are undecided"),
    "not measured": ("was not measured", "were not measured"),
}


@dataclass(frozen=True)
class StudyFigure:
    """One of the seed's figures, and what both sides say."""

    name: str
    number: str
    title: str
    found: str
    here: str
    agreement: str
    figure: Figure | None
    """None where nothing was measured."""

    @property
    def style(self) -> str:
        """Name the class of its mark."""
        return self.agreement.replace(" ", "-")


@dataclass(frozen=True)
class StudyPage:
    """What the page of a study shows."""

    place: str
    seed: str
    title: str
    headline: str
    sentences: tuple[str, ...]
    failed: tuple[Mapping[str, Any], ...]
    seed_figures: tuple[StudyFigure, ...]
    columns: tuple[str, ...]
    """Of the table of measurements."""
    rows: tuple[tuple[Any, ...], ...]
    figures: Mapping[str, Figure]
    machine: tuple[tuple[str, str], ...]
    study: tuple[tuple[str, str], ...]
    planned: int
    measured: int
    unit: str

    @property
    def left(self) -> int:
        """How many are still to be measured."""
        return self.planned - self.measured - len(self.failed)

    def is_number(self, column: int) -> bool:
        """Tell whether a column of the measurements holds numbers."""
        return any(isinstance(row[column], int | float) for row in self.rows)


def is_study(path: Path) -> bool:
    """Tell whether a directory is that of a study."""
    return (path / FACTS).is_file()


def study_page(path: Path) -> StudyPage:
    """Make the values of a study's page."""
    facts = discreet(_json(path / FACTS))
    try:
        if facts["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version {facts['schema_version']}")
        return _page(path, facts)
    except (KeyError, TypeError, ValueError) as error:
        raise RunFileError(
            f"{path / FACTS}: not a study that this version reads: {error!r}"
        ) from error


def _page(path: Path, facts: Mapping[str, Any]) -> StudyPage:
    seed_figures = tuple(_figure(each) for each in facts["figures"])
    columns, rows = _table(path / "results.csv")
    machine = path / "machine.json"
    return StudyPage(
        place=discreet_text(str(path.resolve())),
        seed=facts["seed"],
        title=facts["title"],
        headline=headline(facts["seed"], facts["title"], seed_figures, _how_much(facts)),
        sentences=tuple(each["text"] for each in facts.get("sentences", ())),
        failed=tuple(facts["failed"]),
        seed_figures=seed_figures,
        columns=columns,
        rows=rows,
        figures={each.name: each.figure for each in seed_figures if each.figure is not None},
        machine=tuple(
            settings.machine_lines(discreet(_json(machine)) if machine.is_file() else {})
        ),
        study=tuple(settings.setting_lines(discreet(_toml(path / "study.toml")))),
        planned=facts["planned"],
        measured=facts["measured"],
        unit=facts["unit"],
    )


def headline(seed: str, title: str, figures: Sequence[StudyFigure], measured: str) -> str:
    """Say in one sentence how many of the seed's figures hold here.

    `measured` says how much there is, such as `4 of 16 cells`; empty where there is nothing.
    Figures of networks that the seed did not have are not counted.
    """
    figures = [each for each in figures if not each.number.startswith(LIKE)]
    counts = Counter(each.agreement for each in figures)
    if not measured:
        return f"{title} (seed {seed}): nothing was measured yet."
    if set(counts) <= {"not measured"}:
        what = "none of the seed's figures can be made of them"
        return f"{title} (seed {seed}): of {measured} that were measured, {what}."
    parts = [f"{counts[each]} {WORDS[each][counts[each] > 1]}" for each in ORDER if counts[each]]
    if len(parts) == 1 and len(figures) > 1:
        word = next(iter(counts))
        return (
            f"{title}: all {len(figures)} figures of seed {seed} {WORDS[word][1]} on this machine."
        )
    listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
    return f"{title}: of {times(len(figures), 'figure')} of seed {seed}, {listed} on this machine."


def _how_much(facts: Mapping[str, Any]) -> str:
    measured, planned = facts["measured"], facts["planned"]
    return f"{measured} of {planned} {facts['unit']}" if measured else ""


def _figure(facts: Mapping[str, Any]) -> StudyFigure:
    figure = None
    if facts["rows"]:
        title = f"{facts['number']}: {facts['title']}"
        chart = study_chart(facts["chart"], facts["rows"])
        figure = Figure(facts["name"], title, facts["note"], facts["rows"], chart)
    return StudyFigure(
        facts["name"],
        facts["number"],
        facts["title"],
        facts["found"],
        facts["here"],
        facts["agreement"],
        figure,
    )


def _table(path: Path) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
    """Read the measurements; columns that say nothing are left out."""
    try:
        table = pl.read_csv(path, infer_schema_length=None, schema_overrides={"run": pl.String})
    except (OSError, pl.exceptions.PolarsError):
        return (), ()
    kept = [name for name in table.columns if any(each not in (None, "") for each in table[name])]
    rows = table.select(kept).rows()
    return tuple(kept), tuple(tuple(discreet(list(row))) for row in rows)


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise RunFileError(f"{path}: cannot be read: {error}") from None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return {}
