"""`timesink dataset`: get images onto the disk, and know what is there."""

import click

from timesink.cli.dataset.convert import convert
from timesink.cli.dataset.import_ import import_
from timesink.cli.dataset.info import info
from timesink.cli.dataset.make import make
from timesink.cli.dataset.sync import sync
from timesink.cli.dataset.verify import verify


@click.group()
def dataset() -> None:
    """Get images onto the disk, and know what is there."""


dataset.add_command(make)
dataset.add_command(import_)
dataset.add_command(sync)
dataset.add_command(convert)
dataset.add_command(info)
dataset.add_command(verify)
