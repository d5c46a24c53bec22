"""A run's summary as tables for the terminal, 80 columns wide."""

import statistics
import textwrap
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.cli._console import out
from timesink.cli._ledger import View, print_ledger
from timesink.cli._stages import print_stages, print_waited
from timesink.runs.directory import RunDirectory

BAR_WIDTH = 24
STATUS_STYLE = {"complete": "green", "running": "cyan", "stopped": "yellow"}


def print_run(run: RunDirectory, view: View | None = None) -> None:
    """Print one run at a glance."""
    view = view or View(groups=run.groups())
    summary = run.summary()
    _print_head(run, summary)
    _print_steps(summary)
    print_ledger(summary, view)
    _print_stages(summary)
    _print_validation(summary)
    _print_accounts(summary)
    _print_foot(run, summary)
    _print_verdict(summary["verdict"])


def print_repetitions(runs: list[RunDirectory]) -> None:
    """Print several runs beside each other, with their spread."""
    table = Table(title=f"{len(runs)} runs", title_justify="left", box=None, pad_edge=False)
    for column in ("run", "status", "steps", "step ms", "images/s", "loss", "val top-1"):
        table.add_column(column, justify="left" if column in ("run", "status") else "right")
    medians, rates = [], []
    for run in runs:
        summary = run.summary()
        validation = summary["validation"] or {}
        table.add_row(
            escape(run.path.name),
            summary["status"],
            f"{summary['steps']}",
            _number(summary["step_ms"]["median"], ".1f"),
            _number(summary["images_per_s"], ".1f"),
            _number(summary["loss"], ".4f"),
            _number(validation.get("top1"), ".1%"),
        )
        if summary["step_ms"]["median"] is not None:
            medians.append(summary["step_ms"]["median"])
            rates.append(summary["images_per_s"])
    if len(medians) > 1:
        table.add_section()
        table.add_row("mean ± sd", "", "", _mean_sd(medians), _mean_sd(rates), "", "")
    out.print(table)


def _print_head(run: RunDirectory, summary: dict[str, Any]) -> None:
    status = summary["status"]
    style = STATUS_STYLE.get(status, "red")
    parameters = summary["parameters"]
    network = summary["network"] + (f" ({parameters:,} parameters)" if parameters else "")
    out.print(f"\n[bold]{escape(network)}[/bold]  [{style}]{status}[/{style}]")
    dataset = summary["dataset"]
    if dataset:
        out.print(
            f"{dataset['classes']} classes, {dataset['train']} training and "
            f"{dataset['validation']} validation images, batch {summary['batch_size']}, "
            f"{', '.join(summary['devices'])}",
        )
    if summary["error"]:
        out.print(f"[red]{escape(summary['error'])}[/red]")


def _print_steps(summary: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, title="Steps", title_justify="left")
    table.add_column("")
    table.add_column("median ms", justify="right")
    table.add_column("p95 ms", justify="right")
    for label, key in (("step", "step_ms"), ("data wait", "data_ms"), ("compute", "compute_ms")):
        spread = summary[key]
        table.add_row(label, _number(spread["median"], ",.2f"), _number(spread["p95"], ",.2f"))
    out.print()
    out.print(table)
    planned = summary["steps_planned"]
    of = f" of {planned}" if planned and planned != summary["steps"] else ""
    out.print(
        f"{summary['steps']}{of} steps in {summary['epochs']} epoch(s), "
        f"{_number(summary['images_per_s'], ',.1f')} images/s"
    )
    out.print(
        f"last loss {_number(summary['loss'], '.4f')}, top-1 {_number(summary['top1'], '.1%')}, "
        f"top-{summary['n']} {_number(summary['topn'], '.1%')}"
    )


def _print_stages(summary: dict[str, Any]) -> None:
    if not summary.get("stages"):
        return
    steps = summary["traced_steps"]
    print_stages(
        summary["stages"],
        explained=summary["stages_explained"],
        unplaced=summary["stages_unplaced"],
        about=f"over {steps} traced step{'s' * (steps != 1)}",
    )
    print_waited(summary["input_per_step"])


def _print_verdict(verdict: dict[str, Any] | None) -> None:
    if verdict is None:
        return
    out.print()
    for text in (verdict["sentence"], f"First: {verdict['first']}."):
        # A figure stays with its sign.
        wrapped = textwrap.fill(text.replace(" %", "\xa0%"), out.width).replace("\xa0", " ")
        head, _, rest = wrapped.partition(":")
        out.print(f"[bold]{escape(head)}:[/]{escape(rest)}")
    for note in verdict["notes"]:
        out.print(f"[yellow]note:[/] {escape(note)}")


def _print_validation(summary: dict[str, Any]) -> None:
    validation = summary["validation"]
    if validation is None:
        return
    title = f"Validation on {validation['images']} images"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    for column in ("epoch", "loss", "top-1", f"top-{summary['n']}"):
        table.add_column(column, justify="right")
    for row in validation["history"][-10:]:
        table.add_row(
            str(row["epoch"]),
            _number(row["loss"], ".4f"),
            _number(row["top1"], ".1%"),
            _number(row["topn"], ".1%"),
        )
    out.print()
    out.print(table)
    out.print(f"{_number(validation['step_ms']['median'], ',.2f')} ms an iteration (median)")


def _print_accounts(summary: dict[str, Any]) -> None:
    accounts = summary["run_accounts"]
    wall_s = sum(row["s"] for row in accounts)
    processes = len(summary["processes"])
    title = f"Where the run's {wall_s:,.2f} s went"
    if processes > 1:
        title += f" ({processes} processes)"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left")
    table.add_column("account")
    table.add_column("s", justify="right")
    table.add_column("share", justify="right")
    table.add_column("")
    for row in accounts:
        bar = "█" * round(row["share"] * BAR_WIDTH)
        table.add_row(row["account"], f"{row['s']:,.2f}", f"{row['share']:.1%}", f"[cyan]{bar}[/]")
    out.print()
    out.print(table)


def _print_foot(run: RunDirectory, summary: dict[str, Any]) -> None:
    out.print()
    _print_cpu(summary.get("cpu"))
    if summary["peak_memory_bytes"]:
        out.print(f"peak memory   {summary['peak_memory_bytes'] / 2**30:.2f} GiB")
    if summary["peak_device_bytes"]:
        out.print(f"peak of a GPU {summary['peak_device_bytes'] / 2**30:.2f} GiB")
    bad = summary["bad_images"]
    if bad:
        out.print(f"[yellow]{len(bad)} broken image(s) skipped[/], e.g. {escape(bad[0]['path'])}")
    out.print(f"all of it in  {escape(str(run.path))}/", soft_wrap=True)


def _print_cpu(cpu: dict[str, Any] | None) -> None:
    if cpu is None:
        return
    cores = f"{cpu['cores']} core{'s' * (cpu['cores'] != 1)}"
    share = "" if cpu["share"] is None else f" ({100 * cpu['share']:.0f} %)"
    out.print(f"CPU time      {cpu['cpu_s']:,.1f} s of {cores} × {cpu['wall_s']:,.1f} s{share}")
    if not cpu["within"]:
        out.print(f"[yellow]note:[/] that is more than {cores} have: it ran on others too,")
        out.print("or a container's quota is no whole number and was rounded down")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _mean_sd(values: list[float]) -> str:
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"
