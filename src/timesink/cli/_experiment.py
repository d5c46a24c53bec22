"""An experiment as a verb is given it: read, checked, and what it passes over said on stderr."""

from pathlib import Path

import click

from timesink.experiment import Experiment, load
from timesink.pipelines.stages import parse_stages


def load_experiment(path: Path | None, settings: tuple[str, ...]) -> Experiment:
    """Read an experiment and check all of it that needs no images."""
    asked = load(path, settings)
    parse_stages(asked.pipeline.stages)
    if path is not None and path.suffix.lower() == ".xml":
        from timesink.experiment_xml import ignored_elements

        names = ignored_elements(path.read_bytes(), str(path))
        if names:
            click.echo(f"{path}: no meaning here, passed over: {', '.join(names)}", err=True)
    return asked
