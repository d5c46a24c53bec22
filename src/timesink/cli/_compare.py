"""A comparison for the terminal, 80 columns wide."""

from collections import Counter
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.analysis.compare import Difference
from timesink.analysis.noise import FEWEST_STEPS
from timesink.cli._comparison import Comparison, figures, in_ms, verdict
from timesink.cli._console import out

MOST_ROWS = 20
LABEL_WIDTH = 32
STYLE = {"slower": "red", "faster": "green"}


def print_comparison(comparison: Comparison) -> None:
    """Print what changed, what did not, and what to be wary of."""
    for name, row in (("step", comparison.step), ("data wait", comparison.data)):
        if row is None:
            continue
        word = verdict(row)
        style = STYLE.get(word, "bold")
        out.print(f"{escape(figures(name, row))}: [{style}]{word}[/]", soft_wrap=True)
    _print_rows(comparison)
    out.print()
    sides = (comparison.before, comparison.after)
    for name, side, steps in zip(("before", "after"), sides, comparison.steps_counted, strict=True):
        runs = f"{len(side.runs)} runs, " if len(side.runs) > 1 else ""
        place = escape(str(side.path))
        out.print(f"{name:<7} {place}: {runs}{steps} steps, {side.traced_steps} traced")
    out.print(f"counted {comparison.counted}")
    _print_differing(comparison.differs)
    for note in comparison.notes:
        out.print(f"[yellow]note[/]    {escape(note)}")


def _print_rows(comparison: Comparison) -> None:
    rows = comparison.rows
    if not rows:
        return
    out.print()
    if rows[0].reason is not None:
        out.print(f"accounts: {rows[0].reason}; each run needs {FEWEST_STEPS} that were traced")
        return
    changed = [row for row in rows if row.changed]
    still = [row for row in rows if not row.changed]
    devices = len({row.device for row in rows})
    # The whole of an account stands above its parts; small ones may show only together.
    parts = Counter(row.account for row in rows)
    wholes = [row for row in comparison.accounts if row.changed and parts[row.account] > 1]
    if changed or wholes:
        _print_table(wholes, changed[:MOST_ROWS], several_devices=devices > 1)
    if len(changed) > MOST_ROWS:
        out.print(f"and {len(changed) - MOST_ROWS} smaller changes (--json has all)")
    if still:
        # Each device has the whole step: of several, the mean adds up to the step.
        before_ms = sum(row.before_ms for row in still) / devices
        after_ms = sum(row.after_ms for row in still) / devices
        count = "1 row" if len(still) == 1 else f"{len(still)} rows"
        out.print(f"no change beyond noise: {count}, together {in_ms(before_ms, after_ms)} ms")


def _print_table(
    wholes: list[Difference], changed: list[Difference], *, several_devices: bool
) -> None:
    table = Table(box=None, pad_edge=False, title="What changed, ms a step", title_justify="left")
    table.add_column("account", no_wrap=True, max_width=LABEL_WIDTH)
    for column in ("before", "after", "change", "95 % interval"):
        table.add_column(column, justify="right", no_wrap=True)
    labels = [f"{row.account}, in all" for row in wholes]
    labels += [_label(row, several_devices=several_devices) for row in changed]
    for label, row in zip(labels, (*wholes, *changed), strict=True):
        style = "red" if row.difference_ms > 0 else "green"
        table.add_row(
            escape(label),
            f"{row.before_ms:,.3f}",
            f"{row.after_ms:,.3f}",
            f"[{style}]{row.difference_ms:+,.3f}[/]",
            f"{row.low_ms:+,.3f} to {row.high_ms:+,.3f}",
        )
    out.print(table)


def _label(row: Difference, *, several_devices: bool) -> str:
    device = f" {row.device}" if several_devices and row.device else ""
    if row.account == "layer":
        name, tail = row.layer or "(all layers)", f" {row.phase or ''}{device}"
    else:
        name, tail = " ".join(filter(None, (row.account, row.place))), device
    room = LABEL_WIDTH - len(tail)
    if len(name) > room:
        head = room // 3
        name = f"{name[:head]}…{name[len(name) - (room - head - 1) :]}"
    return name + tail


def _print_differing(differs: list[dict[str, Any]]) -> None:
    for row in differs:
        values = (_short(row[side]) for side in ("before", "after"))
        out.print(f"[yellow]differs[/] {escape(row['key'])}: {escape(' → '.join(values))}")


def _short(value: Any) -> str:
    text = "–" if value is None else f"{value}"
    return text if len(text) <= LABEL_WIDTH else f"{text[: LABEL_WIDTH - 1]}…"
