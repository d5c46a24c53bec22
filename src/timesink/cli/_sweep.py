"""What a sweep found, as a table for the terminal, 80 columns wide."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.analysis.verdict import rate
from timesink.cli._console import out
from timesink.cli._ledger import shortened

Row = Mapping[str, Any]

NAME_WIDTH, REASON_WIDTH = 34, 66


def print_results(rows: Sequence[Row]) -> None:
    """Print a row a run, and why some failed."""
    varied = [key for key in dict.fromkeys(key for row in rows for key in row) if "." in key]
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    table.add_column("run", width=4)
    table.add_column(" / ".join(key.rpartition(".")[2] for key in varied), width=NAME_WIDTH)
    for title, width in (("images/s", 9), ("step ms", 9), ("wait ms", 8)):
        table.add_column(title, justify="right", width=width, no_wrap=True)
    table.add_column("bound", width=8, no_wrap=True)
    for row in rows:
        name = " / ".join(str(row[key]) for key in varied if key in row)
        again = f" ({row['repetition']})" if row["repetition"] > 1 else ""
        cells = [row["run"], escape(shortened(name + again, NAME_WIDTH))]
        if row["status"] == "complete":
            cells += [_rate(row["images_per_s"]), _ms(row.get("step_ms_median"))]
            cells += [_ms(row.get("data_ms_median")), row.get("bound") or ""]
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
