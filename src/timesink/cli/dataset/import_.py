"""`timesink dataset import`: a folder of images as a label dictionary and lists."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command(name="import")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    metavar="OUT",
    help="Where to write.",
)
@click.option(
    "--class",
    "classes",
    multiple=True,
    metavar="CLASS",
    help="Take only this class. Repeatable, labelled in this order; all when left out.",
)
@click.option(
    "--images-per-class",
    type=click.IntRange(1),
    metavar="N",
    help="Take at most so many training images a class.",
)
@click.option(
    "--validation-fraction",
    type=click.FloatRange(0, 1, max_open=True),
    metavar="F",
    default=0.2,
    show_default=True,
    help="Held out where there is no val/; 0 is none.",
)
@click.option("--copy", is_flag=True, help="Copy the images too; without it they stay in DIR.")
@_options.force
def import_(
    folder: Path,
    out: Path,
    classes: tuple[str, ...],
    images_per_class: int | None,
    validation_fraction: float,
    copy: bool,
    force: bool,
) -> None:
    """Make lists of the images in a folder.

    DIR holds train/<class>/… and val/<class>/…, or just <class>/…; then a part of each
    class is held out, always the same. OUT gets labels.json (class to label), train.csv
    and val.csv (path,label) and dataset.json. With --copy the images go to OUT/train and
    OUT/val, and a copy that was stopped goes on with the same command. --force writes the
    lists again; copies from before that are in no list any more stay on the disk.

    \b
    Examples:
      timesink dataset import photos --out data/photos
      timesink dataset import /imagenet --out data/two --class n01440764 --class n01443537
      timesink dataset import photos --out data/photos --copy --images-per-class 500
    """
    import shlex

    from rich.markup import escape

    from timesink.cli._console import err, next_command
    from timesink.cli._progress import progress
    from timesink.cli.dataset._text import printable
    from timesink.datasets.folder import open_dataset
    from timesink.datasets.importing import import_dataset

    dataset = open_dataset(
        folder,
        classes=classes,
        images_per_class=images_per_class,
        validation_fraction=validation_fraction,
    )
    total = len(dataset.train) + len(dataset.validation)
    if copy:
        with progress(err, "copying", total, "images") as advance:
            import_dataset(dataset, out, copy=True, force=force, advance=advance)
    else:
        import_dataset(dataset, out, force=force)
    click.echo(
        f"{printable(out)}: {len(dataset.classes)} classes, {len(dataset.train):,} train and "
        f"{len(dataset.validation):,} validation images, {'copied' if copy else 'not copied'}"
    )
    for note in dataset.notes:
        click.echo(f"note: {printable(note)}", err=True)
    next_command(f"timesink run --set {escape(shlex.quote(f'dataset.path={printable(out)}'))}")
