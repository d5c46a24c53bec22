"""`timesink show`: a run at a glance."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@_options.as_json
def show(run: Path, as_json: bool) -> None:
    """Show a run at a glance: its times, figures and ledger.

    Reads only the run's directory; needs no framework. Works while the run goes on and
    after it was killed.

    \b
    Examples:
      timesink show runs/experiment/20261116-093000
      timesink show runs/experiment/20261116-093000 --json | jq .step_ms.median
    """
    from timesink.cli._console import print_json
    from timesink.cli._show import print_repetitions, print_run
    from timesink.runs.directory import find_runs

    runs = find_runs(run)
    if as_json:
        summaries = [each.summary() for each in runs]
        print_json(summaries[0] if len(runs) == 1 else {"runs": summaries})
    elif len(runs) == 1:
        print_run(runs[0])
    else:
        print_repetitions(runs)
