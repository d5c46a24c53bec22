"""The command line: the list of verbs, by what a person wants to do, and the way errors end."""

import errno
import sys

import click

import timesink
from timesink.cli._group import SectionedGroup
from timesink.cli.collect import collect
from timesink.cli.compare import compare
from timesink.cli.dataset import dataset
from timesink.cli.experiment import experiment
from timesink.cli.layers import layers
from timesink.cli.pipeline import pipeline
from timesink.cli.report import report
from timesink.cli.run import run
from timesink.cli.show import show
from timesink.cli.study import study
from timesink.cli.sweep import sweep
from timesink.errors import DiskFullError, TimesinkError

FULL = (errno.ENOSPC, errno.EDQUOT)


@click.group(
    cls=SectionedGroup,
    sections={
        "Train and measure": [run, pipeline, sweep, study],
        "Look at results": [show, report, layers, compare, collect],
        "Get images": [dataset],
        "Describe an experiment": [experiment],
    },
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.version_option(timesink.__version__, prog_name="timesink")
def cli() -> None:
    """See where every millisecond of training an image classifier goes.

    Start with `timesink run`: it makes a small image set, trains a network on it and
    prints where the time went.
    """


def main() -> None:
    """Run the command line; an error of ours is one line and an exit code, never a traceback."""
    try:
        sys.exit(cli(standalone_mode=False) or 0)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as mistake:
        mistake.show()
        sys.exit(mistake.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("timesink: stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # `timesink show RUN | head` closed the pipe; nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
    except TimesinkError as error:
        click.echo(f"timesink: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None and error.errno not in FULL:
            raise
        where = f"{error.filename}: " if error.filename is not None else ""
        click.echo(f"timesink: {where}{error.strerror}", err=True)
        sys.exit(DiskFullError.exit_code if error.errno in FULL else TimesinkError.exit_code)
