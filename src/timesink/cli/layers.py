"""`timesink layers`: where a step's time goes, from any trace."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("layers.csv"),
    metavar="FILE",
    help="Where the table goes. [default: layers.csv]",
)
@click.option(
    "--opmap",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A run's opmap.json: which op belongs to which layer.",
)
@click.option("--all-sessions", is_flag=True, help="Read every session, not only the newest.")
@_options.ledger_view
@_options.force
@_options.as_json
def layers(
    path: Path,
    out: Path,
    opmap: Path | None,
    all_sessions: bool,
    depth: int | None,
    groups: dict[str, list[str]],
    ops: str | None,
    device: str | None,
    show_all: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Show each layer's time in a step, from any trace.

    PATH is a run, a directory that TensorFlow's profiler wrote (TensorBoard's log
    directory, or one session in it) or one .xplane.pb file; Timesink need not have made
    it. Needs no framework. A row for each step, layer and phase is written as CSV.

    \b
    Examples:
      timesink layers logs
      timesink layers runs/experiment/20261116-093000 --ops conv1
      timesink layers host.xplane.pb --opmap RUN/opmap.json --json
    """
    from timesink.cli import _ledger
    from timesink.cli._console import print_json
    from timesink.errors import OutputExistsError
    from timesink.files import replacing
    from timesink.runs.layers import is_layers_table, read_layers

    if out.exists() and not force and not is_layers_table(out):
        raise OutputExistsError(f"{out} exists and is no table of layers; --force overwrites it")
    found = read_layers(path, opmap=opmap, all_sessions=all_sessions)
    view = _ledger.View(depth, groups | dict(found.groups), device, show_all)
    shown = found.at_level(view.depth, view.groups)
    facts = shown.facts()
    if device:
        _ledger.chosen_device(_ledger.devices_of(facts["accounts"]), view)
    of_layer = []
    if ops:
        from timesink.cli._ops import ops_at, print_ops

        of_layer = ops_at(found.books, ops, view)
    with replacing(out) as temporary:
        shown.table().write_csv(temporary)
    if as_json:
        print_json({**facts, "ops": of_layer} if ops else facts)
    elif ops:
        print_ops(of_layer, ops, view)
    else:
        _ledger.print_ledger(facts, view)
    click.echo(f"wrote {out}", err=True)
