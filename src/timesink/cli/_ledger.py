"""A step's ledger as tables for the terminal, 80 columns wide: layers, other accounts, closure."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.cli._console import out
from timesink.errors import UsageError
from timesink.ledger.levels import shown_as
from timesink.ledger.opmap import LAYER
from timesink.report.text import ms_places

Row = Mapping[str, Any]

PHASES = ("forward", "backward", "update")
ACCOUNTS = (
    *("input_wait", "host_to_device", "loss", "collective", "device_to_host"),
    *("runtime", "python", "idle", "unattributed"),
)
TOP_LAYERS, TOP_PLACES, MOST_DEVICES = 15, 3, 2
NAME_WIDTH, MS_WIDTH, SHARE_WIDTH, BAR_WIDTH = 26, 8, 6, 10
PLACE_WIDTH = NAME_WIDTH + len(PHASES) * (MS_WIDTH + 1)
"""Where there are no phases, the name has their room."""
EIGHTHS = " ▏▎▍▌▋▊▉"
NOT_TRACED = "No step was traced: --set profile.mode=window shows where a step's time goes"
BETWEEN = "between calls, too short to be seen"
TRACING = "tracing "
ESTIMATED = "≈ from ops fused out of several layers: split by work, not measured apart"


@dataclass(frozen=True)
class View:
    """What of a ledger is shown."""

    depth: int | None = None
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    device: str | None = None
    show_all: bool = False

    def name(self, row: Row) -> str:
        """Name the layer, the model or the group that a row is shown as."""
        return shown_as(row["layer"], row["phase"], depth=self.depth, groups=self.groups)


@dataclass
class _Sum:
    """What is shown as one line."""

    ms: float = 0.0
    share: float = 0.0
    estimated: bool = False
    phases: dict[str, float] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.ms += row["charged_ms"]
        self.share += row["share"]
        self.estimated |= bool(row.get("estimated"))
        if row["phase"]:
            self.phases[row["phase"]] = self.phases.get(row["phase"], 0.0) + row["charged_ms"]


def print_ledger(facts: Mapping[str, Any], view: View) -> None:
    """Print the ledger of the traced steps; `facts` are those of summary.json."""
    rows = facts["accounts"]
    if not rows:
        out.print()
        _print_notes(facts)
        if not facts.get("notes"):
            out.print(f"[dim]{NOT_TRACED}[/]")
        return
    devices = devices_of(rows)
    chosen = [chosen_device(devices, view)] if view.device else devices
    for device in chosen if len(chosen) <= MOST_DEVICES else chosen[:1]:
        mine = [row for row in rows if row["device"] == device]
        _print_device(device, mine, facts, view)
    if len(chosen) > MOST_DEVICES:
        others = ", ".join(chosen[1:4]) + (", …" if len(chosen) > 4 else "")
        out.print(f"[dim]{len(chosen)} devices: --device shows another ({escape(others)})[/]")
    _print_slowdown(facts.get("slowdown") or {})
    _print_memory(facts["memory"])
    _print_retraces(facts)
    _print_notes(facts)
    if facts["look_first"]:
        out.print("\n[bold]Look first:[/]")
        for sentence in facts["look_first"]:
            lines = textwrap.wrap(sentence, out.width - 4)
            out.print(escape("  • " + "\n    ".join(lines)))


def devices_of(rows: Sequence[Row]) -> list[str]:
    """Give the devices, in order."""
    return sorted({row["device"] for row in rows})


def chosen_device(devices: Sequence[str], view: View) -> str:
    """Check the device that was asked for."""
    if view.device is None or view.device not in devices:
        raise UsageError(f"--device {view.device}: no such device; there are {', '.join(devices)}")
    return view.device


def _print_device(device: str, rows: Sequence[Row], facts: Mapping[str, Any], view: View) -> None:
    layers: dict[str, _Sum] = {}
    others: dict[str, _Sum] = {}
    places: dict[str, _Sum] = {}
    for row in rows:
        if row["account"] == LAYER:
            layers.setdefault(view.name(row), _Sum()).add(row)
            continue
        others.setdefault(row["account"], _Sum()).add(row)
        if row["account"] == "python":
            places.setdefault(row["place"] or BETWEEN, _Sum()).add(row)
    step_ms = sum(row["charged_ms"] for row in rows)
    largest = max((each.share for each in (*layers.values(), *others.values())), default=0)
    paper = Paper(ms_places(step_ms), largest or 1.0)
    traced = {each["device"]: each for each in facts.get("traced", [])}.get(device, {})
    steps = traced.get("steps", facts["traced_steps"])
    out.print(
        f"\n[bold]Where a step's {paper.ms(step_ms)} ms went[/]  "
        f"[dim]mean of {steps} traced step{'s' * (steps != 1)}, {escape(device)}[/]\n"
    )
    paper.print_layers(layers, show_all=view.show_all)
    paper.print_others(others, places)
    if any(each.estimated for each in layers.values()):
        out.print(f"[dim]{ESTIMATED}[/]")
    _print_closure(rows, traced.get("step_ms", step_ms), paper)


class Paper:
    """Tables of equal columns, in ms of equal places, with bars of one scale."""

    def __init__(self, places: int, largest_share: float) -> None:
        self.places = places
        self.largest = largest_share

    def ms(self, value: float | None) -> str:
        if value is None:
            return ""
        text = f"{value:,.{self.places}f}"
        return text if len(text) <= MS_WIDTH else f"{value:.0f}"

    def print_layers(self, layers: Mapping[str, _Sum], *, show_all: bool) -> None:
        table = self._table("layer", NAME_WIDTH, PHASES)
        ranked = sorted(layers.items(), key=lambda item: -item[1].ms)
        shown = ranked if show_all else ranked[:TOP_LAYERS]
        for name, each in shown:
            label = escape(shortened(name, NAME_WIDTH - 2 * each.estimated))
            mark = " [yellow]≈[/]" if each.estimated else ""
            self._add(table, label + mark, each, [each.phases.get(phase) for phase in PHASES])
        rest = [each for _, each in ranked[len(shown) :]]
        if rest:
            more = f"[dim]… {len(rest)} more layer{'s' * (len(rest) > 1)}[/]"
            self._add(table, more, _total(rest), [None] * len(PHASES), bar=False)
        out.print(table)

    def print_others(self, others: Mapping[str, _Sum], places: Mapping[str, _Sum]) -> None:
        table = self._table("beside layers", PLACE_WIDTH)
        for account in ACCOUNTS:
            each = others.get(account, _Sum())
            if each.ms or account == "unattributed":
                self._add(table, account, each)
            if account == "python":
                self._add_places(table, places)
        out.print()
        out.print(table)

    def _add_places(self, table: Table, places: Mapping[str, _Sum]) -> None:
        ranked = sorted(places.items(), key=lambda item: -item[1].ms)
        for place, each in ranked[:TOP_PLACES]:
            label = f"[dim]  {escape(shortened(place, PLACE_WIDTH - 2))}[/]"
            self._add(table, label, each, bar=False)
        rest = [each for _, each in ranked[TOP_PLACES:]]
        if rest:
            more = f"[dim]  … {len(rest)} more place{'s' * (len(rest) > 1)}[/]"
            self._add(table, more, _total(rest), bar=False)

    def _table(self, title: str, width: int, phases: Sequence[str] = ()) -> Table:
        table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 1, 0, 0))
        table.add_column(title, width=width, no_wrap=True)
        for phase in (*phases, "ms"):
            table.add_column(phase, justify="right", width=MS_WIDTH, no_wrap=True)
        table.add_column("share", justify="right", width=SHARE_WIDTH, no_wrap=True)
        table.add_column("", width=BAR_WIDTH, no_wrap=True)
        return table

    def _add(
        self,
        table: Table,
        label: str,
        each: _Sum,
        phases_ms: Sequence[float | None] = (),
        *,
        bar: bool = True,
    ) -> None:
        drawn = f"[cyan]{bar_of(each.share / self.largest)}[/]" if bar else ""
        times = [self.ms(value) for value in (*phases_ms, each.ms)]
        table.add_row(label, *times, f"{each.share:.1%}", drawn)


def _total(sums: Sequence[_Sum]) -> _Sum:
    return _Sum(sum(each.ms for each in sums), sum(each.share for each in sums))


def _print_closure(rows: Sequence[Row], wall_ms: float, paper: Paper) -> None:
    charged_ms = sum(row["charged_ms"] for row in rows)
    missing = sum(row["share"] for row in rows if row["account"] == "unattributed")
    layers = [row for row in rows if row["account"] == LAYER]
    op_ms = sum(row["op_ms"] or 0.0 for row in layers)
    share = sum(row["share"] for row in layers)
    error = 100 * (charged_ms - op_ms) / charged_ms if charged_ms else 0.0
    out.print(
        f"\nclosed: {paper.ms(charged_ms)} ms of {paper.ms(wall_ms)} ms, "
        f"unattributed {100 * missing:.1f} %; layers {100 * share:.1f} % of the step"
    )
    sign = "−" if error < 0 else ""
    out.print(
        f"summed op times {paper.ms(op_ms)} ms: percent error {sign}{abs(error):.1f} % "
        "as the older program counts"
    )


def _print_slowdown(slowdown: Mapping[str, Any]) -> None:
    if slowdown.get("window") is None:
        if slowdown.get("reason"):
            out.print(f"slowdown by tracing is unknown: {escape(slowdown['reason'])}")
        return
    parts = [_ratio(slowdown, "window", "traced steps")]
    if slowdown.get("run") is not None:
        parts.append(_ratio(slowdown, "run", "whole run"))
    out.print(f"slowdown: {', '.join(parts)}")


def _ratio(slowdown: Mapping[str, Any], key: str, what: str) -> str:
    low, high = slowdown.get(f"{key}_interval") or (None, None)
    interval = f" [{low:.2f}, {high:.2f}]" if low is not None and high is not None else ""
    return f"{what} ×{slowdown[key]:.2f}{escape(interval)}"


def _print_memory(memory: Sequence[Row]) -> None:
    if not memory:
        return
    most = max(memory, key=lambda row: row["peak_bytes"])
    out.print(
        f"memory peak of a step {most['peak_bytes'] / 2**20:,.0f} MiB "
        f"(allocator {escape(most['allocator'])})"
    )


def _print_retraces(facts: Mapping[str, Any]) -> None:
    """Say what was traced again: as the journal counts, and as the windows show."""
    count = facts.get("retraces") or 0
    names = {each["function"] for each in facts.get("retraced") or ()}
    places = [row["place"] or "" for row in facts["accounts"] if row["account"] == "python"]
    names |= {place.removeprefix(TRACING) for place in places if place.startswith(TRACING)}
    if count or names:
        times = f" {count} time{'s' * (count != 1)}" if count else ""
        out.print(f"[yellow]retraced{times}[/]: {escape(', '.join(sorted(names)))}")


def _print_notes(facts: Mapping[str, Any]) -> None:
    for note in facts.get("notes", ()):
        out.print(f"[yellow]note:[/] {escape(note)}")


def shortened(name: str, width: int) -> str:
    """Cut a long name in its middle, where layers of one network differ least."""
    if len(name) <= width:
        return name
    tail = (width - 1) * 2 // 3
    return f"{name[: width - 1 - tail]}…{name[len(name) - tail :]}"


def bar_of(part: float, width: int = BAR_WIDTH) -> str:
    """Draw a part of the whole width, to an eighth of a column."""
    whole, eighth = divmod(round(part * width * 8), 8)
    return "█" * whole + EIGHTHS[eighth].strip()
