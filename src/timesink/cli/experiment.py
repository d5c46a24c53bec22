"""`timesink experiment init|check|schema`: write, validate and describe an experiment's file."""

from pathlib import Path

import click

from timesink.cli import _options


@click.group()
def experiment() -> None:
    """Describe an experiment in one file."""


@experiment.command()
@click.argument("path", type=click.Path(path_type=Path), default="experiment.toml")
@_options.settings
@_options.force
def init(path: Path, settings: tuple[str, ...], force: bool) -> None:
    """Write a commented experiment file with every key.

    \b
    Examples:
      timesink experiment init
      timesink experiment init mine.toml --set training.network=resnet50
    """
    from timesink.cli._console import next_command
    from timesink.experiment import load
    from timesink.experiment_toml import to_toml
    from timesink.files import write_atomically

    write_atomically(path, to_toml(load(None, settings), comments=True), force=force)
    click.echo(f"wrote {path}")
    next_command(f"timesink run {path}")


@experiment.command()
@click.argument("path", type=click.Path(path_type=Path))
@_options.settings
def check(path: Path, settings: tuple[str, ...]) -> None:
    """Validate an experiment file.

    A mistake is one line that names the file, the key, what was found and what is
    allowed; the exit code is then 2.

    \b
    Examples:
      timesink experiment check experiment.toml
      timesink experiment check conf.xml --set training.batch_size=64
    """
    from timesink.cli._experiment import load_experiment

    asked = load_experiment(path, settings)
    click.echo(
        f"{path}: ok: {asked.training.network}, batch {asked.training.batch_size}, "
        f"seed {asked.seed}, {asked.repetitions} repetition(s)"
    )


@experiment.command()
def schema() -> None:
    """Print the JSON schema of an experiment.

    \b
    Examples:
      timesink experiment schema > experiment.schema.json
    """
    from timesink.cli._console import print_json
    from timesink.experiment import Experiment

    print_json(Experiment.model_json_schema())
