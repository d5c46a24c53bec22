"""A seed's whole experiment measured here: its cells, then study.json with its figures."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timesink.files import write_atomically
from timesink.studies.conducting import Asked, Ended, Watcher, conduct, room_for
from timesink.studies.figures.seed_figure import SeedFigure, told_apart
from timesink.studies.measured import Done, Failed, Measured
from timesink.studies.plan import Part, Planned, to_toml
from timesink.studies.results import write_results
from timesink.studies.stores import with_stores

SCHEMA_VERSION = 1
FACTS = "study.json"


@dataclass(frozen=True)
class Study:
    """A study that comes with Timesink."""

    name: str
    seed: str
    title: str
    figures: Callable[[Measured], list[SeedFigure]]
    facts: Callable[[Measured, Path], Mapping[str, Any]] = lambda _measured, _out: {}
    """What it says beside its figures; it may write tables of its own."""
    unit: str = "runs"
    """What its measurements are called."""


def conduct_study(
    study: Study,
    parts: Sequence[Part],
    planned: Sequence[Planned],
    asked: Asked,
    out: Path,
    watcher: Watcher,
    *,
    force: bool = False,
) -> dict[str, Any]:
    """Measure what is still to be measured; gives what study.json says."""
    facts: dict[str, Any] = {}
    with room_for("study", out, force=force):
        cells = with_stores(planned, out, watcher.say)

        def write(ended: Ended) -> None:
            facts.update(write_facts(study, cells, ended, out))

        conduct(study.name, cells, to_toml(parts), asked, out, watcher, write)
    return facts


def write_facts(
    study: Study, planned: Sequence[Planned], ended: Ended, out: Path
) -> dict[str, Any]:
    """Make the tables and study.json of what has ended."""
    measured = Measured(
        [
            Done(each, out / each.place, ended[each.number]["wall_s"])
            for each in planned
            if each.number in ended and ended[each.number]["exit"] == 0
        ],
        [
            Failed(each, ended[each.number])
            for each in planned
            if each.number in ended and ended[each.number]["exit"] != 0
        ],
    )
    write_results(out, planned, ended)
    facts = {
        "schema_version": SCHEMA_VERSION,
        "study": study.name,
        "seed": study.seed,
        "title": study.title,
        "unit": study.unit,
        "planned": len(planned),
        "measured": len(measured.done),
        "failed": [
            {
                "run": each.planned.place,
                "name": each.planned.name,
                "reason": each.outcome["reason"],
                "kind": each.outcome["kind"],
            }
            for each in measured.failed
        ],
        **study.facts(measured, out),
        "figures": [figure.plain() for figure in told_apart(study.figures(measured))],
    }
    text = json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(out / FACTS, text + "\n")
    return facts
