"""`timesink pipeline`: measure an input pipeline alone, stage by stage."""

from pathlib import Path

import click

from timesink.cli import _options

MOST_WORKERS = 16


def _sizes(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int, ...]:
    return tuple(_whole(word, 1, 1_000_000) for word in _words(value))


def _workers(_: click.Context, __: click.Parameter, value: str | None) -> tuple[int | str, ...]:
    return tuple(w if w == "auto" else _whole(w, 1, MOST_WORKERS) for w in _words(value))


def _words(value: str | None) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()] if value else []


def _whole(word: str, least: int, most: int) -> int:
    if word.isdecimal() and least <= int(word) <= most:
        return int(word)
    raise click.BadParameter(f"{word!r} is not a whole number from {least} to {most:,}")


@click.command()
@click.argument("experiment", required=False, metavar="[EXPERIMENT]")
@_options.settings
@click.option("--batch-sizes", callback=_sizes, metavar="N,N,…", help="Measure each of these.")
@click.option("--workers", callback=_workers, metavar="N,N,…", help="With each of these, or auto.")
@click.option(
    "--seconds",
    type=click.FloatRange(0.2, 3600),
    metavar="S",
    default=5.0,
    show_default=True,
    help="How long each is measured.",
)
@click.option("--no-cpu", is_flag=True, help="Leave out CPU time by stage: fewer measurements.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Also write pipeline.json and stages.csv there.",
)
@_options.force
@_options.as_json
def pipeline(
    experiment: str | None,
    settings: tuple[str, ...],
    batch_sizes: tuple[int, ...],
    workers: tuple[int | str, ...],
    seconds: float,
    no_cpu: bool,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Measure an input pipeline alone, stage by stage.

    Nothing is trained. EXPERIMENT is a TOML or XML file, or package.module:function, which
    returns a tf.data.Dataset of yours. Batches are taken as fast as they come, in a process
    of its own: images a second, the time of a batch, the work of each stage, how full the
    queues are, what AUTOTUNE chose.

    \b
    Examples:
      timesink pipeline
      timesink pipeline mine.toml --batch-sizes 16,32,64 --workers 1,4
      timesink pipeline mine.toml --set pipeline.cache=cold
      timesink pipeline mine.toml --set pipeline.source=tfrecord
      timesink pipeline my_input:training_set
    """
    from timesink.cli._console import err, print_json
    from timesink.cli._experiment import load_experiment
    from timesink.cli._pipeline import print_pipeline
    from timesink.cli._watch import RunWatch
    from timesink.errors import UsageError
    from timesink.runs import pipeline as measuring
    from timesink.runs import start

    start.check_framework()
    asked = measuring.Asked(batch_sizes, workers, seconds, cpu=not no_cpu)
    files = measuring.Files(out, force=force) if out is not None else None
    say = lambda line: err.print(line, style="dim", highlight=False)  # noqa: E731
    if experiment is not None and ":" in experiment and not Path(experiment).exists():
        if settings or batch_sizes or workers:
            raise UsageError(
                f"{experiment} is your own pipeline: --set and the like change nothing"
            )
        facts = measuring.measure_own(experiment, asked, say)
    else:
        watch = RunWatch(err)
        try:
            loaded = load_experiment(Path(experiment) if experiment else None, settings)
            loaded = start.prepare(loaded, watch.watcher())
        finally:
            watch.close()
        facts = measuring.measure_pipeline(loaded, asked, say)
    if files is not None:
        files.write(facts)
    if as_json:
        print_json(facts)
    else:
        print_pipeline(facts)
