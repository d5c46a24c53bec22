"""The ops of one layer as a table for the terminal, 80 columns wide."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.cli._console import out
from timesink.cli._ledger import (
    ESTIMATED,
    TOP_LAYERS,
    View,
    chosen_device,
    devices_of,
    shortened,
)
from timesink.errors import UsageError
from timesink.report.text import ms_places
from timesink.runs.books import Books
from timesink.runs.layers import layer_names, mean_ops

Row = Mapping[str, Any]


def ops_at(books: Books, layer: str, view: View) -> list[dict[str, Any]]:
    """Find the ops of a layer, model or group, on the device asked for."""
    ops = mean_ops(books, layer, view.groups)
    if not ops:
        raise _unknown(layer, layer_names(books, view.groups))
    if view.device:
        device = chosen_device(sorted(books.ops["device"].unique().to_list()), view)
        ops = [row for row in ops if row["device"] == device]
    return ops


def print_ops(ops: Sequence[Row], layer: str, view: View) -> None:
    """Print the ops of a layer, longest first."""
    devices = devices_of(ops)
    several = len(devices) > 1
    total_ms = sum(row["charged_ms"] for row in ops)
    places = ms_places(max((row["op_ms"] or 0.0 for row in ops), default=0.0))
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    table.add_column("op", width=24 if several else 35, no_wrap=True)
    table.add_column("type", width=12, no_wrap=True)
    table.add_column("phase", width=8, no_wrap=True)
    if several:
        table.add_column("device", width=10, no_wrap=True)
    for column in ("op ms", "ms"):
        table.add_column(column, justify="right", width=7, no_wrap=True)
    table.add_column("share", justify="right", width=6, no_wrap=True)
    shown = ops if view.show_all else ops[:TOP_LAYERS]
    for row in shown:
        mark = "≈" if row["estimated"] else ""
        width = (24 if several else 35) - len(mark)
        table.add_row(
            escape(shortened(row["op"] or "–", width)) + mark,
            escape(shortened(row["type"] or "–", 12)),
            row["phase"] or "–",
            *([escape(shortened(row["device"], 10))] if several else []),
            f"{row['op_ms'] or 0.0:,.{places}f}",
            f"{row['charged_ms']:,.{places}f}",
            f"{row['share']:.1%}",
        )
    share = sum(row["share"] for row in ops) / max(len(devices), 1)
    out.print(
        f"\n[bold]Ops of {escape(shortened(layer, 40))}[/]  "
        f"[dim]{total_ms / max(len(devices), 1):,.{places}f} ms of a step, {share:.1%}[/]\n"
    )
    out.print(table)
    if len(ops) > len(shown):
        rest = ops[len(shown) :]
        rest_ms = sum(row["charged_ms"] for row in rest)
        out.print(f"[dim]… {len(rest)} more ops, {rest_ms:,.{places}f} ms; --all shows them[/]")
    if any(row["estimated"] for row in shown):
        out.print(f"[dim]{ESTIMATED}[/]")


def _unknown(asked: str, names: Sequence[str]) -> UsageError:
    """Say that there is no such layer, and which is meant."""
    close = difflib.get_close_matches(asked, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else "--all lists the layers"
    return UsageError(f"--ops {asked}: no layer of that name; {hint}")
