"""A sweep: each experiment of a grid as a run of its own, one table at the end."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timesink.studies.conducting import Asked, Ended, Watcher, conduct, room_for
from timesink.studies.plan import Part, Planned, to_toml
from timesink.studies.results import write_results

KIND = "sweep"


def sweep(
    parts: Sequence[Part],
    planned: Sequence[Planned],
    asked: Asked,
    out: Path,
    watcher: Watcher,
    *,
    force: bool = False,
) -> list[dict[str, Any]]:
    """Run what is still to be run; gives the rows of results.csv."""
    rows: list[dict[str, Any]] = []

    def write(ended: Ended) -> None:
        rows[:] = write_results(out, planned, ended)

    with room_for(KIND, out, force=force):
        conduct(KIND, planned, to_toml(parts), asked, out, watcher, write)
    return rows
