"""`timesink dataset verify`: find the images that would trip the training, and damaged stores."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from timesink.cli import _options

if TYPE_CHECKING:
    from timesink.datasets.sources import There
    from timesink.datasets.verify import Fault, Quarantined
    from timesink.datasets.verify_store import Verified

FAULTS_SHOWN = 20


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--quarantine", is_flag=True, help="Move what has a fault to PATH/quarantine.")
@click.option(
    "--max-megapixels",
    type=click.FloatRange(0, min_open=True),
    metavar="N",
    default=40.0,
    show_default=True,
    help="An image with more is oversized.",
)
@_options.as_json
@click.pass_context
def verify(
    context: click.Context, path: Path, quarantine: bool, max_megapixels: float, as_json: bool
) -> None:
    """Find broken images, and flipped bits in stores.

    \b
    Broken:   missing, unreadable, empty, not an image, undecodable format, oversized,
              truncated, corrupt
    Usable:   wrong extension, CMYK: TensorFlow decodes them

    The exit code is 3 when broken images are found and stay; images that are usable are
    listed and do not count. --quarantine moves both kinds to PATH/quarantine, under the
    same relative path, and takes them out of an imported dataset's lists; a file outside
    of PATH is never moved.

    PATH may be a store of `dataset convert`, or hold TFRecords; a dataset's own stores are
    looked at with it. A bit that is not as it was written is named by file, record, image.

    \b
    Examples:
      timesink dataset verify data/photos
      timesink dataset verify data/photos --quarantine
      timesink dataset verify data/photos/.timesink/tfrecord
    """
    from timesink.cli._console import err, print_json
    from timesink.cli._progress import progress
    from timesink.cli.dataset._stores import print_verified, verified_facts
    from timesink.cli.dataset._text import printable
    from timesink.datasets import verify as verifying
    from timesink.datasets.sources import look
    from timesink.errors import UsageError

    there = look(path)
    dataset = there.dataset
    if quarantine and dataset is None:
        raise UsageError(f"{path}: no image files here that could be moved; convert again instead")
    faults: list[Fault] = []
    put, total = None, 0
    if dataset is not None:
        total = len(dataset.train) + len(dataset.validation)
        with progress(err, "decoding", total, "images") as advance:
            faults = verifying.find_faults(
                dataset, max_pixels=round(max_megapixels * 1e6), advance=advance
            )
        put = verifying.quarantine(dataset.root, faults) if quarantine else None
    verified = _verify_stores(there)
    gone = {*put.moved, *put.unlisted} if put else set()
    staying = [fault for fault in faults if fault.path not in gone and not fault.usable]
    notes = dataset.notes if dataset is not None else there.records.notes if there.records else ()
    if as_json:
        print_json(
            {
                "schema_version": 1,
                "path": printable(dataset.root if dataset is not None else path.absolute()),
                "images": total,
                "broken": sum(not fault.usable for fault in faults),
                "usable": sum(fault.usable for fault in faults),
                "faults": [
                    {
                        "path": printable(fault.path),
                        "fault": fault.fault,
                        "usable": fault.usable,
                        "quarantined": fault.path in gone,
                    }
                    for fault in faults
                ],
                "stores": [verified_facts(store) for store in verified],
                "notes": [printable(note) for note in notes],
            }
        )
    else:
        for note in notes:
            click.echo(f"note: {printable(note)}", err=True)
        if dataset is not None:
            _print(dataset.root, total, faults)
            if put is not None:
                _print_quarantine(dataset.root, put)
        for store in verified:
            print_verified(store)
    if staying or any(not fault.usable for store in verified for fault in store.faults):
        context.exit(3)


def _verify_stores(there: "There") -> "list[Verified]":
    """Check a dataset's stores; their images are decoded where the files were not."""
    from timesink.cli._console import err
    from timesink.cli._progress import progress
    from timesink.datasets.verify_store import verify_records, verify_store

    verified = []
    for store in there.stores:
        with progress(err, f"checking {store.name}", None, "images") as advance:
            decode = there.dataset is None
            verified.append(verify_store(store, decode=decode, advance=advance))
    if there.records is not None:
        count = len(there.records.index)
        with progress(err, "checking TFRecords", count, "images") as advance:
            verified.append(verify_records(there.records, advance=advance))
    return verified


def _print(root: Path, total: int, faults: "list[Fault]") -> None:
    from collections import Counter

    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import out
    from timesink.cli.dataset._text import printable

    if not faults:
        out.print(f"[green]all {total:,} images are whole[/green]")
        return
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, min_width=18)
    table.add_column(overflow="fold")
    for fault in faults[:FAULTS_SHOWN]:
        style = "yellow" if fault.usable else "red"
        shown = escape(printable(fault.path.removeprefix(f"{root}/")))
        table.add_row(f"[{style}]{fault.fault}[/{style}]", shown)
    out.print(table)
    if len(faults) > FAULTS_SHOWN:
        out.print(f"… and {len(faults) - FAULTS_SHOWN:,} more; --json lists all", style="dim")
    broken = Counter(fault.fault for fault in faults if not fault.usable)
    usable = Counter(fault.fault for fault in faults if fault.usable)
    for what, style, counts in (
        ("are broken", "red", broken),
        ("have a fault that TensorFlow gets over", "yellow", usable),
    ):
        if counts:
            kinds = ", ".join(f"{count:,} {name}" for name, count in counts.most_common())
            out.print(
                f"\n[{style}]{counts.total():,} of {total:,} images {what}[/{style}]: {kinds}"
            )


def _print_quarantine(root: Path, put: "Quarantined") -> None:
    from rich.markup import escape

    from timesink.cli._console import out
    from timesink.cli.dataset._text import printable

    for paths, what in (
        (put.moved, f"moved to {printable(root / 'quarantine')}"),
        (put.unlisted, "taken out of the lists; the files lie elsewhere and stay there"),
        (put.left, "left: not below this folder, and in no list"),
    ):
        if paths:
            out.print(f"{len(paths):,} {escape(what)}", soft_wrap=True)
