"""What a study of augmentation found, as tables and sentences for the terminal, 80 columns wide."""

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.analysis.verdict import rate
from timesink.cli._console import out
from timesink.cli._ledger import shortened

Row = Mapping[str, Any]

WIDTH, CATEGORY_WIDTH = 80, 24
LEGEND = (
    "",
    "images/s, medians of the rounds. input, compute: each alone. both: training.",
    "model: what the two alone let expect of both, and its error. slower: than on",
    "synthetic images. ≈: the sides differ by less than 10 %.",
)


def print_study(facts: Mapping[str, Any]) -> None:
    """Print tables, sentences, findings, and how good the model's predictions are."""
    rows = sorted(facts["cells"], key=lambda row: (*_setting(row), row["cores"]))
    for (network, batch_size, image_size), group in groupby(rows, key=_setting):
        out.print(f"\n[bold]{escape(network)}, batch {batch_size}, {image_size} px[/]")
        for cores, cells in groupby(group, key=lambda row: row["cores"]):
            out.print()
            out.print(_table(cores, list(cells)))
        out.print()
        for said in facts["sentences"]:
            if _setting(said) == (network, batch_size, image_size):
                _print_wrapped(said["text"])
    if not facts["cells"]:
        out.print("no cell was measured")
        return
    for line in LEGEND:
        out.print(f"[dim]{line}[/]", soft_wrap=True)
    _print_findings(facts)


def _setting(row: Row) -> tuple[str, int, int]:
    return row["network"], row["batch_size"], row["image_size"]


def _table(cores: int, rows: Sequence[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
    on = f"on {cores} core{'s' * (cores > 1)}"
    table.add_column(on, width=CATEGORY_WIDTH, no_wrap=True)
    for title, width in (
        ("input", 7),
        ("compute", 7),
        ("both", 7),
        ("model", 7),
        ("error", 6),
        ("slower", 6),
    ):
        table.add_column(title, justify="right", width=width, no_wrap=True)
    table.add_column("bound", width=9, no_wrap=True)
    for row in rows:
        table.add_row(
            escape(shortened(row["category"], CATEGORY_WIDTH)),
            *(
                rate(row[f"{side}_images_per_s"])
                for side in ("input", "compute", "both", "predicted")
            ),
            f"{100 * row['prediction_error']:+.0f} %",
            f"{100 * row['slower_than_synthetic']:.0f} %",
            f"{row['bound']}{' ≈' if row['even'] else ''}",
        )
    return table


def _print_findings(facts: Mapping[str, Any]) -> None:
    out.print("\n[bold]What seed 002 found, on this machine[/]")
    for finding in facts["findings"]:
        _print_wrapped(finding["text"])
    found = facts["prediction"]
    if not found["cells"]:
        return
    out.print(
        f"\nmodel against measurement over {found['cells']} cells: median error "
        f"{100 * found['median_error']:.1f} %, worst {100 * found['worst_error']:.1f} %"
    )


def _print_wrapped(text: str) -> None:
    out.print(
        escape(
            textwrap.fill(
                text,
                WIDTH - 2,
                initial_indent="• ",
                subsequent_indent="  ",
                break_on_hyphens=False,
            )
        ),
        soft_wrap=True,
    )
