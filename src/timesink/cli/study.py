"""`timesink study`: a seed's whole experiment on this machine, one page at the end."""

import click

from timesink.cli import _options


def _words(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(",") if word.strip()) if value else ()


def _categories(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.split(";") if word.strip()) if value else ()


def _numbers(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[int, ...]:
    words = _words(context, parameter, value)
    for word in words:
        if not word.isdecimal() or int(word) < 1:
            raise click.BadParameter(f"{word!r} is not a whole number from 1")
    return tuple(int(word) for word in words)


@click.group()
def study() -> None:
    """Repeat a whole study on this machine and these images.

    Each ends with its figures, what its authors found and what this machine shows, and writes
    them as a page, report.html, into its directory.
    """


@study.command()
@_options.study
@_options.time_limit
def pipeline(**asked: object) -> None:
    """Measure what an input pipeline takes, as seed 000 did.

    Sequential against pipelined; accuracy by epoch for each batch size; the time of a batch by
    batch size and workers, cold; the share of each stage; raw files against TFRecords and
    against preprocessed images. The stores that it compares are made in its own directory.

    STUDY is a TOML file like the one that --toml prints; without one it is that one. Stopped
    or killed, the same command goes on where it was.

    \b
    Examples:
      timesink study pipeline --quick
      timesink study pipeline --data photos --set training.network=mobilenetv2
      timesink study pipeline --toml > mine.toml
    """
    from timesink.cli._study import Request, run_study
    from timesink.studies.pipeline import PIPELINE

    run_study(PIPELINE, Request(**asked))  # type: ignore[arg-type]


@study.command()
@_options.study
@_options.time_limit
def layers(**asked: object) -> None:
    """Measure each layer, and what seeing it costs (seed 001).

    AlexNet and VGG-11 with and without profiling; the time of each layer at each iteration, on
    two devices, forward and backward; the layers' time against the iteration's, and the
    percentage error. Where there are no two GPUs, two logical devices share the CPU.

    STUDY is a TOML file like the one that --toml prints; without one it is that one. Stopped
    or killed, the same command goes on where it was.

    \b
    Examples:
      timesink study layers --quick
      timesink study layers --data photos --time-limit 3600
      timesink study layers --toml > mine.toml
    """
    from timesink.cli._study import Request, run_study
    from timesink.studies.layers import LAYERS

    run_study(LAYERS, Request(**asked))  # type: ignore[arg-type]


@study.command()
@_options.study
@_options.time_limit
@click.option("--networks", callback=_words, metavar="A,B,…", help="Measure each of these.")
@click.option("--batch-sizes", callback=_numbers, metavar="N,N,…", help="With each of these.")
@click.option("--cores", callback=_numbers, metavar="N,N,…", help="On each of these numbers.")
@click.option(
    "--categories",
    callback=_categories,
    metavar="'A; B; …'",
    help="Fed by each of these, such as 'basic; basic+randaugment(2, 9)'.",
)
@click.option(
    "--rounds",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="How often a cell's sides alternate.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 3600),
    metavar="S",
    help="How long a side is measured in a round.",
)
def augmentation(
    networks: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    cores: tuple[int, ...],
    categories: tuple[str, ...],
    rounds: int | None,
    seconds: float | None,
    **asked: object,
) -> None:
    """Measure how much augmentation slows training (seed 002).

    Each cell of the grid, network × category of input × cores × batch size, is measured
    three ways: the input alone, the computing alone on synthetic images, and both. From them
    come the bound, how much slower training is than on synthetic images, how many layers of
    RandAugment the cores can feed, and what a model of the two alone predicts for both.

    STUDY is a TOML file with a [grid]; without one it is the study of seed 002 on this
    machine's cores. Stopped, the same command goes on where it was.

    \b
    Examples:
      timesink study augmentation --quick
      timesink study augmentation --data photos --networks resnet50 --cores 2,4
      timesink study augmentation --categories 'basic; basic+autoaugment'
      timesink study augmentation --toml > mine.toml
    """
    from timesink.cli._augmentation import print_study
    from timesink.cli._study import Request, run_study
    from timesink.studies.augmentation import AUGMENTATION, AXES, name_of
    from timesink.studies.grid import on_all_cores

    axes = {
        "training.network": networks,
        "training.batch_size": batch_sizes,
        "pipeline.stages": categories,
        "machine.cores": cores,
    }
    said = {"how": "sides", "rounds": rounds, "seconds": seconds}
    measure = {key: value for key, value in said.items() if value is not None}
    request = Request(**asked, axes=axes, measure=measure, allowed=AXES)  # type: ignore[arg-type]
    run_study(
        AUGMENTATION,
        request,
        name_of=lambda each: name_of(each.experiment),
        complete=on_all_cores,
        show=print_study,
    )
