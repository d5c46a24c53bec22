"""What a sweep would run and what it found, as tables for the terminal, 80 columns wide."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.analysis.verdict import rate
from timesink.cli._console import out
from timesink.cli._ledger import shortened
from timesink.runs.journal import read_events
from timesink.studies.study_log import NAME, minutes
from timesink.studies.sweep import Planned

Row = Mapping[str, Any]

NAME_WIDTH, REASON_WIDTH = 34, 66
GUESS_S = 30.0
"""Of a run, besides its steps: start, compiling, the verdict's measurements."""


def print_plan(planned: Sequence[Planned], place: Path) -> None:
    """Say what would be run, and what is known of how long it takes."""
    done = _walls_s(place)
    for each in planned:
        state = "done" if each.number in done else "    "
        out.print(f"{each.number:04d}  {state}  {escape(each.name)}", soft_wrap=True)
    left = [each for each in planned if each.number not in done]
    text = f"{len(planned)} runs, {len(left)} to do"
    if done:
        mean_s = sum(done.values()) / len(done)
        text += f": {minutes(mean_s * len(left))}, at {mean_s:.0f} s a run as so far"
    else:
        text += f": {minutes(GUESS_S * len(left))} and what their steps take"
    out.print(text, soft_wrap=True)


def print_results(rows: Sequence[Row]) -> None:
    """Print a row a run, and why some failed."""
    varied = [key for key in rows[0] if "." in key]
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    table.add_column("run", width=4)
    table.add_column(" / ".join(key.rpartition(".")[2] for key in varied), width=NAME_WIDTH)
    for title, width in (("images/s", 9), ("step ms", 9), ("wait ms", 8)):
        table.add_column(title, justify="right", width=width, no_wrap=True)
    table.add_column("bound", width=8, no_wrap=True)
    for row in rows:
        name = " / ".join(str(row[key]) for key in varied)
        again = f" ({row['repetition']})" if row["repetition"] > 1 else ""
        cells = [row["run"], escape(shortened(name + again, NAME_WIDTH))]
        if row["status"] == "complete":
            cells += [_rate(row["images_per_s"]), _ms(row["step_ms_median"])]
            cells += [_ms(row["data_ms_median"]), row["bound"] or ""]
        else:
            cells += [f"[red]{escape(row['kind'] or row['status'])}[/]", "", "", ""]
        table.add_row(*cells)
    out.print()
    out.print(table)
    for row in rows:
        if row["status"] == "failed":
            reason = shortened(row["reason"], REASON_WIDTH)
            out.print(f"[red]{row['run']} failed:[/] {escape(reason)}", soft_wrap=True)


def _rate(value: float | None) -> str:
    return "" if value is None else rate(value)


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.2f}"


def _walls_s(place: Path) -> dict[int, float]:
    """Read how long the runs took that ended already."""
    log = place / NAME
    if not log.is_file():
        return {}
    return {
        event.fields["number"]: event.fields["wall_s"]
        for event in read_events(log)
        if event.name == "ended"
    }
