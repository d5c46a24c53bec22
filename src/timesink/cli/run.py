"""`timesink run`: train as an experiment asks and find where the time went."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument(
    "experiment", type=click.Path(path_type=Path), required=False, metavar="[EXPERIMENT]"
)
@_options.settings
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The run's own directory. [default: runs/<name>/<timestamp>]",
)
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Go on with a run from its newest checkpoint.",
)
@_options.force
def run(
    experiment: Path | None,
    settings: tuple[str, ...],
    out: Path | None,
    resume: Path | None,
    force: bool,
) -> None:
    """Train a network and find where the time went.

    EXPERIMENT is a TOML file (see `timesink experiment init`) or the XML of the older
    program. Without one, every key has its default: a small image set is generated and
    MobileNetV2 trained on it.

    Ctrl-C stops at the end of the step with a checkpoint; `--resume` goes on.

    \b
    Examples:
      timesink run
      timesink run mine.toml --out results/first
      timesink run --set training.network=resnet50 --set dataset.path=photos
      timesink run --set training.network=my_models:build
      timesink run --resume runs/experiment/20261116-093000
    """
    from timesink.cli._console import err, next_command
    from timesink.cli._experiment import load_experiment
    from timesink.cli._show import print_repetitions, print_run
    from timesink.cli._watch import RunWatch
    from timesink.errors import UsageError
    from timesink.runs import start

    watch = RunWatch(err)
    try:
        if resume is not None:
            if experiment is not None or settings or out is not None:
                raise UsageError("--resume takes the run's own experiment: give it alone")
            runs = [start.resume(resume, watch.watcher())]
        else:
            asked = start.prepare(load_experiment(experiment, settings), watch.watcher())
            runs = start.start(asked, out, watch.watcher(), force=force)
    finally:
        watch.close()
    if len(runs) == 1:
        print_run(runs[0])
        next_command(f"timesink show {runs[0].path}")
    else:
        print_repetitions(runs)
        next_command(f"timesink collect {runs[0].path.parent}")
