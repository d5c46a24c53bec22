"""The input pipeline's stages as a table for the terminal, 80 columns wide."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.analysis.stages import by_stage, operations_in
from timesink.cli._console import out
from timesink.cli._ledger import bar_of, shortened

Row = Mapping[str, Any]

NAME_WIDTH, NARROW_NAME_WIDTH, FIGURE_WIDTH, BAR_WIDTH = 26, 17, 8, 8
TOP_UNPLACED = 3
SMALL = 0.005
"""Shares below are shown as one row, unless they are of a stage that was asked for."""


def print_stages(
    rows: Sequence[Row],
    *,
    explained: float | None,
    unplaced: Sequence[Row] = (),
    about: str = "",
) -> None:
    """Print the rows of stages.csv; columns that nothing was measured for are left out.

    `explained` is how much of the busy time the stages are, `unplaced` the ops that are of none,
    `about` what was measured.
    """
    if not rows:
        return
    total_ms = sum(row["work_ms_per_image"] or 0.0 for row in rows)
    head = f": {total_ms:,.3f} ms of work an image" if total_ms else ""
    out.print(f"\n[bold]The input pipeline{head}[/]" + (f"  [dim]{escape(about)}[/]" * bool(about)))
    out.print()
    out.print(_table(by_stage(rows)))
    for stage, operations in operations_in(rows).items():
        _print_operations(stage, operations)
    _print_unplaced(explained, unplaced)


def _print_operations(stage: str, rows: Sequence[Row]) -> None:
    """Print what a stage drew: how often an image met each operation, and what it cost."""
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    table.add_column(f"{stage} drew", width=NAME_WIDTH, no_wrap=True)
    for title in ("an image", "ms each", "ms/image", "share"):
        table.add_column(title, justify="right", width=FIGURE_WIDTH, no_wrap=True)
    table.add_column("", width=BAR_WIDTH, no_wrap=True)
    largest = max(row["share"] for row in rows) or 1.0
    for row in sorted(rows, key=lambda row: -row["share"]):
        often = row["calls_per_image"]
        table.add_row(
            escape(row["stage"]),
            "" if often is None else f"{often:.3f} ×",
            _ms(row["ms_per_call"]),
            _ms(row["work_ms_per_image"]),
            f"{row['share']:.1%}" if often is not None else "",
            f"[cyan]{bar_of(row['share'] / largest, BAR_WIDTH)}[/]",
        )
    out.print()
    out.print(table)
    if any(row["calls_per_image"] is None for row in rows):
        out.print("[dim]without figures: too quick for the profiler to see, or never drawn[/]")


def print_waited(per_step: Row | None) -> None:
    """Say how much of the pipeline's work a step really waited for."""
    if per_step is not None:
        out.print(
            f"the step waited {per_step['wait_ms']:,.2f} ms for its images, which need "
            f"{per_step['work_ms']:,.2f} ms of the pipeline's work"
        )


def _table(rows: Sequence[Row]) -> Table:
    has_cpu = any(row["cpu_ms_per_image"] is not None for row in rows)
    has_bytes = any(row[key] is not None for row in rows for key in ("bytes_in", "bytes_out"))
    name_width = NARROW_NAME_WIDTH if has_bytes else NAME_WIDTH
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    table.add_column("stage", width=name_width, no_wrap=True)
    figures = ["ms/image", *(["CPU ms"] if has_cpu else [])]
    for title in (*figures, "share"):
        width = 6 if title == "share" else FIGURE_WIDTH
        table.add_column(title, justify="right", width=width, no_wrap=True)
    table.add_column("", width=BAR_WIDTH, no_wrap=True)
    for title in ("parallel", *(("in", "out") if has_bytes else ())):
        table.add_column(title, justify="right", width=FIGURE_WIDTH, no_wrap=True)
    largest = max(row["share"] for row in rows) or 1.0
    shown = [row for row in rows if row["share"] >= SMALL or row["cpu_ms_per_image"] is not None]
    small = [row for row in rows if row not in shown]
    if len(small) > 1:
        shown.append(_together(small))
    for row in shown if len(small) > 1 else rows:
        name = escape(shortened(row["stage"], name_width))
        of_no_stage = row["kind"] == "framework"
        cells = [f"[dim]{name}[/]" if of_no_stage else name, _ms(row["work_ms_per_image"])]
        if has_cpu:
            cells.append(_ms(row["cpu_ms_per_image"]))
        cells += [
            f"{row['share']:.1%}",
            f"[cyan]{bar_of(row['share'] / largest, BAR_WIDTH)}[/]",
            f"{row['parallelism']:.2f}",
        ]
        if has_bytes:
            cells += [_bytes(row["bytes_in"]), _bytes(row["bytes_out"])]
        table.add_row(*cells)
    return table


def _together(rows: Sequence[Row]) -> Row:
    sums = {key: sum(row[key] or 0.0 for row in rows) for key in ("share", "parallelism")}
    work_ms = sum(row["work_ms_per_image"] or 0.0 for row in rows)
    nothing = dict.fromkeys(("cpu_ms_per_image", "bytes_in", "bytes_out"))
    name = f"… {len(rows)} smaller"
    return {"stage": name, "kind": "framework", "work_ms_per_image": work_ms, **sums, **nothing}


def _print_unplaced(explained: float | None, unplaced: Sequence[Row]) -> None:
    if explained is not None:
        out.print(f"\nstages explain {100 * explained:.1f} % of the pipeline threads' busy time")
    ranked = sorted(unplaced, key=lambda row: -(row["work_ms_per_image"] or 0.0))
    for row in ranked[:TOP_UNPLACED]:
        ms = row["work_ms_per_image"]
        figure = f", {ms:.3f} ms an image" if ms is not None else ""
        out.print(f"[dim]of no stage: {escape(shortened(row['name'], 40))}{figure}[/]")
    if len(ranked) > TOP_UNPLACED:
        out.print(f"[dim]of no stage: {len(ranked) - TOP_UNPLACED} more[/]")


def _ms(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}" if value < 100 else f"{value:,.0f}"


def _bytes(count: float | None) -> str:
    """Write a number of bytes in seven columns."""
    if count is None:
        return ""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} GB"
