"""`timesink dataset info`: how many images there are, how large, in which formats."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from timesink.cli import _options

if TYPE_CHECKING:
    from timesink.datasets.images import ImageDataset
    from timesink.datasets.sources import There
    from timesink.datasets.statistics import Bin, Measured

CLASSES_SHOWN = 10
BAR_WIDTH = 44


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@_options.as_json
def info(path: Path, as_json: bool) -> None:
    """Show what a dataset holds: counts, sizes, formats.

    Only headers are read. An image whose header cannot be read is counted as unreadable;
    `timesink dataset verify` says why. What `dataset convert` made of the images is listed
    with its size; PATH may be such a store itself, or hold somebody's TFRecords.

    \b
    Examples:
      timesink dataset info data/generated
      timesink dataset info data/generated --json
    """
    from timesink.cli._console import err, print_json
    from timesink.cli._progress import progress
    from timesink.cli.dataset._stores import print_stores, records_facts, store_facts
    from timesink.datasets.sources import look
    from timesink.datasets.statistics import measure

    there = look(path)
    stores = [store_facts(store) for store in there.stores]
    if there.records is not None:
        stores.append(records_facts(there.records))
    dataset = there.dataset or _images_of(there)
    # Of images in a store, no headers are read.
    files = dataset if there.dataset is not None else _without_images(dataset)
    total = len(files.train) + len(files.validation)
    with progress(err, "reading headers", total, "images") as advance:
        measured = measure(files, advance=advance)
    if as_json:
        print_json(_object(dataset, measured) | {"stores": stores})
    else:
        _print(dataset, measured, in_files=there.dataset is not None)
        print_stores(stores, dataset.root)


def _images_of(there: "There") -> "ImageDataset":
    """Give the images of a store or of TFRecords that stand alone."""
    from timesink.datasets.stores.contents import read_store
    from timesink.datasets.stores.opening import open_foreign, open_store
    from timesink.experiment import DatasetSection

    everything = DatasetSection(validation_fraction=0)  # type: ignore[call-arg]  # defaults
    if there.records is not None:
        return open_foreign(there.records, everything)
    store = read_store(there.stores[0])
    return open_store(store, everything, store.root)


def _without_images(dataset: "ImageDataset") -> "ImageDataset":
    from dataclasses import replace

    from timesink.datasets.images import ImageSet

    return replace(dataset, train=ImageSet((), ()), validation=ImageSet((), ()))


def _object(dataset: "ImageDataset", measured: "Measured") -> dict[str, Any]:
    from dataclasses import asdict

    from timesink.cli.dataset._text import printable
    from timesink.datasets.statistics import count_classes, orientation_shares, spread

    columns = {
        "width_px": measured.width,
        "height_px": measured.height,
        "pixels": measured.width * measured.height,
        "bytes": measured.file_bytes,
    }
    return {
        "schema_version": 1,
        "path": printable(dataset.root),
        "images": {"train": len(dataset.train), "validation": len(dataset.validation)},
        "classes": [
            asdict(count) | {"name": printable(count.name)} for count in count_classes(dataset)
        ],
        **{
            name: asdict(spread(values)) if len(values) else None
            for name, values in columns.items()
        },
        "orientation": orientation_shares(measured),
        "formats": dict(measured.formats.most_common()),
        "modes": dict(measured.modes.most_common()),
        "unreadable": [printable(path) for path in measured.unreadable],
        "notes": [printable(note) for note in dataset.notes],
    }


def _print(dataset: "ImageDataset", measured: "Measured", *, in_files: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import out
    from timesink.cli.dataset._text import byte_size, printable
    from timesink.datasets.statistics import histogram, orientation_shares, spread

    images = len(dataset.train) + len(dataset.validation)
    out.print(f"\n[bold]{escape(printable(dataset.root))}[/bold]", soft_wrap=True)
    out.print(
        f"{len(dataset.classes):,} classes, {images:,} images: {len(dataset.train):,} train, "
        f"{len(dataset.validation):,} validation"
        + (f"; {byte_size(measured.file_bytes.sum())}" if in_files else "")
    )
    for note in dataset.notes:
        out.print(f"[yellow]note:[/yellow] {escape(printable(note))}")
    if measured.unreadable:
        count = len(measured.unreadable)
        out.print(
            f"[red]{count:,} unreadable[/red], e.g. {escape(printable(measured.unreadable[0]))}"
        )
    _print_classes(dataset)
    if not len(measured.width):
        return

    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("sizes", min_width=12)
    for heading in ("mean", "median", "95 %", "min", "max"):
        table.add_column(heading, justify="right", min_width=9)
    pixels = measured.width * measured.height
    for name, values, write in (
        ("width", measured.width, lambda v: f"{v:,.0f} px"),
        ("height", measured.height, lambda v: f"{v:,.0f} px"),
        ("pixels", pixels, lambda v: f"{v / 1000:,.4g} k"),
        ("file", measured.file_bytes, byte_size),
    ):
        s = spread(values)
        table.add_row(name, *(write(v) for v in (s.mean, s.median, s.p95, s.min, s.max)))
    out.print(table)
    out.print()
    shares = [f"{name} {share:.0%}" for name, share in orientation_shares(measured).items()]
    kinds = [f"{kind} {count:,}" for kind, count in measured.formats.most_common()]
    modes = [f"{mode} {count:,}" for mode, count in measured.modes.most_common()]
    for name, parts in (("orientation", shares), ("formats", kinds), ("modes", modes)):
        out.print(f"{name:<14}{', '.join(parts)}")
    _print_histogram("file, kB", histogram(measured.file_bytes), 1000)
    _print_histogram("pixels, thousands", histogram(pixels), 1000)


def _print_classes(dataset: "ImageDataset") -> None:
    from rich.markup import escape
    from rich.table import Table

    from timesink.cli._console import out
    from timesink.cli.dataset._text import printable
    from timesink.datasets.statistics import count_classes

    counts = count_classes(dataset)
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("class", min_width=12, max_width=44, no_wrap=True)
    for heading in ("train", "validation"):
        table.add_column(heading, justify="right", min_width=9)
    for count in counts[:CLASSES_SHOWN]:
        table.add_row(escape(printable(count.name)), f"{count.train:,}", f"{count.validation:,}")
    out.print()
    out.print(table)
    if len(counts) > CLASSES_SHOWN:
        least, most = min(c.train for c in counts), max(c.train for c in counts)
        images = f"{least:,}" if least == most else f"{least:,} to {most:,}"
        out.print(
            f"… and {len(counts) - CLASSES_SHOWN:,} more; {images} training images a class",
            style="dim",
        )
    out.print()


def _print_histogram(title: str, bins: "list[Bin]", unit: int) -> None:
    from timesink.cli._console import out

    most = max(b.count for b in bins)
    out.print(f"\n[dim]{title}[/dim]")
    for number, b in enumerate(bins):
        last = number == len(bins) - 1
        # The last takes what is far out as well.
        edges = f"{b.low / unit:,.4g} –" if last else f"{b.low / unit:,.4g} – {b.high / unit:,.4g}"
        out.print(f"{edges:>14}  [cyan]{_bar(b.count / most):<{BAR_WIDTH}}[/cyan] {b.count:>9,}")


def _bar(share: float) -> str:
    """Draw a bar in eighths of a character."""
    eighths = round(share * BAR_WIDTH * 8)
    if share > 0:
        eighths = max(eighths, 1)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()
