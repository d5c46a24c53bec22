"""How `info` and `verify` write what a dataset is stored as besides its image files."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from timesink.datasets.stores.foreign_index import RecordIndex
    from timesink.datasets.verify_store import Verified

FAULTS_SHOWN = 20


def store_facts(path: Path) -> dict[str, Any]:
    """Say what a store is and how large, from its manifest."""
    from timesink.cli.dataset._text import printable
    from timesink.datasets.stores import contents
    from timesink.errors import DatasetError

    facts: dict[str, Any] = {"path": printable(path), "kind": None, "problem": None}
    if not contents.is_whole(path):
        return facts | {"problem": "not finished: convert again to go on"}
    try:
        manifest = contents.read_manifest(path)
    except DatasetError as error:
        return facts | {"problem": printable(str(error))}
    return facts | {
        "kind": manifest.kind,
        "images": sum(shard.records for shard in manifest.shards),
        "left_out": manifest.left_out_images,
        "files": len(manifest.shards),
        "bytes": manifest.store_bytes,
        "ratio": manifest.store_bytes / max(1, manifest.raw_bytes),
        "stages": manifest.stages,
        "image_size": manifest.image_size,
        "dtype": manifest.dtype,
    }


def records_facts(records: "RecordIndex") -> dict[str, Any]:
    """Say what somebody's TFRecords are and how large."""
    from timesink.cli.dataset._text import printable

    return {
        "path": printable(records.root),
        "kind": "tfrecord",
        "problem": None,
        "images": len(records.index),
        "left_out": 0,
        "files": len(records.files),
        "bytes": sum(file.bytes for file in records.files),
        "ratio": None,
        "stages": [],
        "image_size": None,
        "dtype": None,
    }


def print_stores(stores: Sequence[dict[str, Any]], root: Path) -> None:
    """Print a line for each store: what it is, its size, and that of the image files beside it."""
    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import out
    from timesink.cli.dataset._text import byte_size, printable

    if not stores:
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stored as", no_wrap=True)
    for heading in ("images", "files", "on disk"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for facts in stores:
        if facts["problem"] is not None:
            place = facts["path"].removeprefix(f"{printable(root)}/")
            table.add_row("[red]?[/red]", "", "", "", escape(f"{place}: {facts['problem']}"))
            continue
        what = "TFRecords"
        if facts["dtype"] is not None:
            what = f"{facts['image_size']} px {facts['dtype']}"
        beside = "" if facts["ratio"] is None else f"{facts['ratio']:.4g} × the image files"
        size = byte_size(facts["bytes"])
        table.add_row(what, f"{facts['images']:,}", f"{facts['files']:,}", size, beside)
    out.print()
    out.print(table)


def verified_facts(verified: "Verified") -> dict[str, Any]:
    """Say what is wrong with a store, as plain values."""
    from timesink.cli.dataset._text import printable

    return {
        "path": printable(verified.path),
        "kind": verified.kind,
        "images": verified.images,
        "faults": [
            {
                "file": printable(fault.file),
                "record": fault.record,
                "image": None if fault.image is None else printable(fault.image),
                "fault": fault.fault,
                "usable": fault.usable,
            }
            for fault in verified.faults
        ],
    }


def print_verified(verified: "Verified") -> None:
    """Print what is wrong with a store: file, record and image."""
    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import out
    from timesink.cli.dataset._text import printable
    from timesink.datasets.stores.contents import is_store
    from timesink.datasets.verify import CHECKSUM

    place = escape(printable(verified.path))
    if not verified.faults:
        words = f"[green]{place}: all {verified.images:,} images are as they were written[/green]"
        out.print(words, soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold", min_width=18)
    table.add_column(overflow="fold")
    for fault in verified.faults[:FAULTS_SHOWN]:
        style = "yellow" if fault.usable else "red"
        where = printable(fault.file)
        if fault.record is not None:
            where += f", record {fault.record}: {printable(fault.image or '')}"
        table.add_row(f"[{style}]{escape(fault.fault)}[/{style}]", escape(where))
    out.print(table)
    if len(verified.faults) > FAULTS_SHOWN:
        more = len(verified.faults) - FAULTS_SHOWN
        out.print(f"… and {more:,} more; --json lists all", style="dim")
    broken = sum(not fault.usable for fault in verified.faults)
    if broken:
        # What is as it was written, and broken all the same, would be copied again as it is.
        damaged = any(fault.record is None or fault.fault == CHECKSUM for fault in verified.faults)
        hint = "; convert again" if damaged and is_store(verified.path) else ""
        words = "1 fault" if broken == 1 else f"{broken:,} faults"
        out.print(f"[red]{place}: {words}[/red]{hint}", soft_wrap=True)
