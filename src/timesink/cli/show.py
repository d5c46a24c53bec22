"""`timesink show`: a run at a glance."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@_options.ledger_view
@_options.as_json
def show(
    run: Path,
    as_json: bool,
    depth: int | None,
    groups: dict[str, list[str]],
    ops: str | None,
    device: str | None,
    show_all: bool,
) -> None:
    """Show a run at a glance: its times, figures and ledger.

    Reads only the run's directory; needs no framework. Works while the run goes on and
    after it was killed. The experiment's [profile] groups apply, after those of --group.

    \b
    Examples:
      timesink show runs/experiment/20261116-093000
      timesink show runs/experiment/20261116-093000 --group 'fc1=dense,dropout*'
      timesink show runs/experiment/20261116-093000 --ops conv1
      timesink show runs/experiment/20261116-093000 --json | jq .step_ms.median
    """
    from timesink.cli._console import print_json
    from timesink.cli._ledger import View
    from timesink.cli._show import print_repetitions, print_run
    from timesink.errors import UsageError
    from timesink.runs.directory import find_runs

    runs = find_runs(run)
    if as_json:
        summaries = [each.summary() for each in runs]
        print_json(summaries[0] if len(runs) == 1 else {"runs": summaries})
        return
    if len(runs) > 1:
        if ops or groups or depth or device:
            raise UsageError(f"{run} holds {len(runs)} runs: a ledger is of one; name that one")
        print_repetitions(runs)
        return
    view = View(depth, groups | runs[0].groups(), device, show_all)
    if ops:
        from timesink.cli._ops import ops_at, print_ops
        from timesink.runs.layers import read_layers

        print_ops(ops_at(read_layers(runs[0].path).books, ops, view), ops, view)
    else:
        print_run(runs[0], view)
