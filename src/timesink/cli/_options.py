"""Options that several verbs share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

settings = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the experiment, e.g. training.batch_size=64; "
    "without a value, forget it. Repeatable.",
)

force = click.option("--force", is_flag=True, help="Overwrite what is there.")

retry = click.option("--retry", is_flag=True, help="Try again what failed before.")

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else."
)


def _groups(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for value in values:
        name, _, patterns = value.partition("=")
        words = [word.strip() for word in patterns.split(",") if word.strip()]
        if not name.strip() or not words:
            raise click.BadParameter(f"{value!r} is not NAME=PATTERN[,PATTERN]")
        groups.setdefault(name.strip(), []).extend(words)
    return groups


def ledger_view(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what of a step's ledger is shown."""
    for option in (
        click.option("--all", "show_all", is_flag=True, help="Show all layers, not the first 15."),
        click.option(
            "--depth",
            type=click.IntRange(min=1),
            metavar="N",
            help="Sum layers inside nested models to N names.",
        ),
        click.option(
            "--group",
            "groups",
            multiple=True,
            callback=_groups,
            metavar="NAME=PATTERN[,PATTERN]",
            help="Show layers as one, e.g. fc1=dense,dropout*. Repeatable.",
        ),
        click.option("--ops", metavar="LAYER", help="Show the ops of a layer, model or group."),
        click.option("--device", metavar="DEVICE", help="Show this device, e.g. CPU:1."),
    ):
        command = option(command)
    return command


time_limit = click.option(
    "--time-limit",
    type=click.FloatRange(1, 10_000_000),
    metavar="S",
    help="End what takes longer: a run, or another measurement.",
)


def study(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what every study takes."""
    path = click.Path(path_type=Path)
    for option in (
        as_json,
        force,
        retry,
        click.option("--toml", is_flag=True, help="Print the study's file, to copy and change."),
        click.option(
            "--dry-run", is_flag=True, help="Say what would be measured, and how long it takes."
        ),
        click.option(
            "--out",
            type=path,
            metavar="DIR",
            help="Where it goes; a study that is there is gone on with. [default: studies/<name>]",
        ),
        click.option(
            "--quick", is_flag=True, help="Small images and few steps: about five minutes."
        ),
        click.option("--data", type=path, metavar="DIR", help="The images."),
        settings,
        click.argument("path", type=path, required=False, metavar="[STUDY]"),
    ):
        command = option(command)
    return command
