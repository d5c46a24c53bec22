"""`timesink dataset make`: generate a folder of images that a network can learn."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--classes",
    type=click.IntRange(2, 1000),
    metavar="N",
    default=10,
    show_default=True,
    help="How many classes.",
)
@click.option(
    "--images",
    type=click.IntRange(1),
    metavar="N",
    default=100,
    show_default=True,
    help="Training images a class.",
)
@click.option(
    "--validation-images",
    type=click.IntRange(0),
    metavar="N",
    default=20,
    show_default=True,
    help="Validation images a class.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**31 - 1),
    metavar="N",
    default=0,
    show_default=True,
    help="The same seed gives the same images.",
)
@click.option(
    "--mean-kb",
    type=click.FloatRange(15, 300),
    metavar="N",
    default=110,
    show_default=True,
    help="Mean size of a file, in units of 1000 bytes; ImageNet's is 110.",
)
@_options.force
def make(
    out: Path,
    classes: int,
    images: int,
    validation_images: int,
    seed: int,
    mean_kb: float,
    force: bool,
) -> None:
    """Generate images like ImageNet's in size and layout.

    OUT gets train/<class>/*.JPEG and val/<class>/*.JPEG. The classes differ in shape,
    stripes and hue, and take a few epochs to learn. All cores work; stopped, the same
    command goes on where it was. --force first deletes the images of an earlier `make`
    with other options; a folder with anything else in it is always refused.

    \b
    Examples:
      timesink dataset make data/generated
      timesink dataset make data/small --classes 4 --images 50 --mean-kb 50
    """
    import shlex
    import time

    from rich.markup import escape

    from timesink.cli._console import err, next_command
    from timesink.cli._progress import progress
    from timesink.cli.dataset._text import printable
    from timesink.datasets.generate import count_images, make_images

    total = count_images(classes=classes, images=images, validation_images=validation_images)
    started = time.monotonic()
    with progress(err, "generating", total, "images") as advance:
        make_images(
            out,
            classes=classes,
            images=images,
            validation_images=validation_images,
            seed=seed,
            mean_bytes=round(mean_kb * 1000),
            force=force,
            advance=advance,
        )
    elapsed_s = time.monotonic() - started
    click.echo(
        f"{printable(out)}: {total:,} images of {classes} classes "
        f"({classes * images:,} train, {classes * validation_images:,} val), {elapsed_s:.1f} s"
    )
    next_command(f"timesink run --set {escape(shlex.quote(f'dataset.path={printable(out)}'))}")
