"""Options that several verbs share."""

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

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else."
)
