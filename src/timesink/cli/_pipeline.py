"""What `timesink pipeline` measured, as tables for the terminal, 80 columns wide."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from timesink.cli._console import out
from timesink.cli._stages import print_stages
from timesink.cli.dataset._text import byte_size, printable

Facts = Mapping[str, Any]

BAD_SHOWN = 5


def print_pipeline(facts: Facts) -> None:
    """Print a measured pipeline at a glance."""
    out.print(f"\n[bold]{escape(_title(facts))}[/bold]")
    for note in facts["notes"]:
        out.print(f"[yellow]note:[/yellow] {escape(note)}")
    _print_first(facts)
    if len(facts["cells"]) > 1:
        _print_cells(facts["cells"])
    print_stages(
        facts["stages"], explained=facts["closure"], unplaced=facts["unplaced"], about=_of(facts)
    )
    _print_queues(facts)
    _print_sizes(facts)


def _title(facts: Facts) -> str:
    if facts["own"]:
        return f"{facts['own']}, alone"
    return f"source {facts['source']}: {', '.join(facts['stages_asked'])}"


def _of(facts: Facts) -> str:
    if facts["own"] or len(facts["cells"]) == 1:
        return ""
    return f"batch {facts['batch_size']}, workers {facts['workers']}"


def _print_first(facts: Facts) -> None:
    rate, batch = facts["images_per_s"], facts["batch_ms"]
    if rate is None:
        out.print("no batch came")
        return
    out.print(
        f"{rate:,.0f} images/s; a batch takes {batch['mean']:,.1f} ms "
        f"(median {batch['median']:,.1f}, 95 % {batch['p95']:,.1f})"
    )
    out.print(
        f"{facts['cpu_ms_per_image']:,.3f} ms of CPU time an image, {facts['cores_used']:.2f} of "
        f"{facts['cores']} cores; {facts['batches']:,} batches in {facts['measured_s']:,.1f} s"
    )
    _print_cache(facts)
    bad = facts["bad_images"]
    if bad:
        out.print(f"[yellow]{len(bad):,} broken image(s) left out:[/]")
    for image in bad[:BAD_SHOWN]:
        out.print(f"  {escape(printable(image['path']))}: {escape(image['reason'])}")
    if len(bad) > BAD_SHOWN:
        out.print(f"  [dim]… and {len(bad) - BAD_SHOWN:,} more; --json lists all[/]")
    if facts["ended"]:
        out.print("[yellow]the images ended before the time was up[/]")


def _print_cache(facts: Facts) -> None:
    before, read = facts["cache_before"], facts["bytes_read"]
    if before is not None:
        share = before["resident_bytes"] / before["total_bytes"] if before["total_bytes"] else 0
        state = "cold" if facts["cache"] == "cold" else "warm"
        out.print(
            f"{state} cache: {share:.1%} of {byte_size(before['total_bytes'])} in "
            f"{before['files']:,} files was in memory before"
        )
    if read is not None and (read or before is not None):
        of = f" for {facts['taken_images']:,} images" if facts["taken_images"] else ""
        out.print(f"read from the disk: {byte_size(read)}{of}")


def _print_cells(cells: Sequence[Facts]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 2, 0, 0))
    for title in ("batch", "workers", "images/s", "mean ms", "median ms", "95 % ms", "cores"):
        table.add_column(title, justify="right")
    for cell in cells:
        if cell["images_per_s"] is None:
            continue
        table.add_row(
            str(cell["batch_size"]),
            str(cell["workers"]),
            f"{cell['images_per_s']:,.0f}",
            *(f"{cell['batch_ms'][key]:,.1f}" for key in ("mean", "median", "p95")),
            f"{cell['cores_used']:.2f}",
        )
    out.print()
    out.print(table)


def _print_queues(facts: Facts) -> None:
    out.print()
    for queue in facts["queues"]:
        room = f" of {queue['room']:.0f}" if queue["room"] else ""
        out.print(f"{queue['node']}: {queue['filled']:.1f}{room} elements lay ready, on average")
    chosen = [
        f"{each['node']} {each['parameter']} {each['value']:.0f}"
        for each in facts["autotune"]
        if each["tuned"]
    ]
    if chosen:
        out.print(f"AUTOTUNE chose {', '.join(chosen)}")


def _print_sizes(facts: Facts) -> None:
    sizes = facts["sizes"]
    if not sizes:
        return
    table = Table(box=None, pad_edge=False, header_style="bold dim", padding=(0, 2, 0, 0))
    table.add_column("source", min_width=26, no_wrap=True)
    for title in ("on disk", "an image", "of raw"):
        table.add_column(title, justify="right", min_width=9)
    raw = next((each["disk_bytes"] for each in sizes if each["source"] == "raw"), None)
    for each in sizes:
        ratio = f"{each['disk_bytes'] / raw:.3f} ×" if raw else ""
        name = each["source"] + (" (this)" if each["measured"] else "")
        table.add_row(
            escape(name), byte_size(each["disk_bytes"]), byte_size(each["bytes_per_image"]), ratio
        )
    out.print()
    out.print(table)
    out.print(
        f"in memory an image is {byte_size(facts['memory_bytes_per_image'])}, as the network "
        "takes it"
    )
