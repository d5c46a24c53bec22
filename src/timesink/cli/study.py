"""`timesink study augmentation`: a whole study, cell by cell, and what its numbers say."""

from pathlib import Path

import click

from timesink.cli import _options

QUICK = {"pipeline.image_size": 64, "training.batch_size": 32}
QUICK_CATEGORIES = ("synthetic", "basic", "basic+randaugment(2)", "basic+randaugment(8)")
QUICK_ROUNDS, QUICK_SECONDS = 2, 1.0


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
    """Repeat a whole study on this machine and these images."""


@study.command()
@click.argument("path", type=click.Path(path_type=Path), required=False, metavar="[STUDY]")
@_options.settings
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="The images.")
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
@click.option("--quick", is_flag=True, help="A small grid of small images: about five minutes.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where it goes; a study that is there is gone on with. [default: studies/augmentation]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be measured, and how long it takes.")
@click.option("--toml", is_flag=True, help="Print the study's file, to copy and change.")
@_options.retry
@_options.force
@_options.as_json
def augmentation(
    path: Path | None,
    settings: tuple[str, ...],
    data: Path | None,
    networks: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    cores: tuple[int, ...],
    categories: tuple[str, ...],
    rounds: int | None,
    seconds: float | None,
    quick: bool,
    out: Path | None,
    dry_run: bool,
    toml: bool,
    retry: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Measure how much augmentation slows training, for which network, on how many cores.

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
    from timesink.cli._console import err, next_command, print_json
    from timesink.cli._study import print_plan, print_study
    from timesink.cli._watch import RunWatch
    from timesink.errors import RunError
    from timesink.pipelines.stages import parse_stages
    from timesink.runs import start
    from timesink.studies import augmentation as studying
    from timesink.studies.grid import changed, on_all_cores, packaged, read_grid

    if toml:
        click.echo(packaged(studying.NAME), nl=False)
        return
    sets = [f"{key}={value}" for key, value in QUICK.items()] if quick and path is None else []
    sets += [*settings, *([f"dataset.path={data}"] if data else [])]
    axes = {
        "training.network": networks,
        "training.batch_size": batch_sizes,
        "pipeline.stages": categories or (QUICK_CATEGORIES if quick and path is None else ()),
        "machine.cores": cores,
    }
    grid = on_all_cores(changed(read_grid(path, studying.NAME, studying.AXES), sets, axes))
    for cell in grid.cells():
        parse_stages(cell.pipeline.stages)
    asked = studying.Asked(
        rounds or (QUICK_ROUNDS if quick else studying.Asked.rounds),
        seconds or (QUICK_SECONDS if quick else studying.Asked.seconds),
    )
    place = out or Path("studies") / studying.NAME
    if dry_run:
        print_plan(grid.cells(), asked)
        return
    watch = RunWatch(err)
    try:
        cells = start.prepare_all(grid.cells(), watch.watcher())
        watcher = studying.Watcher(
            lambda line: err.print(line, style="dim", markup=False, soft_wrap=True)
        )
        facts = studying.study(grid, cells, asked, place, watcher, force=force, retry=retry)
    finally:
        watch.close()
    if as_json:
        print_json(facts)
    else:
        print_study(facts)
        if facts["cells"]:
            next_command(f"column -s, -t {place / 'cells.csv'} | less -S")
    if facts["failed"]:
        raise RunError(f"{len(facts['failed'])} of {len(cells)} cells failed; see above")
