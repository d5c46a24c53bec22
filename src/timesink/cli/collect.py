"""`timesink collect`: make a run's tables again from its journal, or one table of many runs."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the one table of many runs goes. [default: PATH/runs.csv]",
)
@_options.as_json
def collect(path: Path, out: Path | None, as_json: bool) -> None:
    """Make the tables of runs again from their logs.

    Of a run: steps.csv, summary.csv, summary.json and ledger.parquet from log.txt, and
    layers.csv, memory.csv and stages.csv from the traces in profile/ and opmap.json. Of a
    directory of runs: the same for each, and one CSV with the summaries of all.

    \b
    Examples:
      timesink collect runs/experiment/20261116-093000
      timesink collect runs --out all-runs.csv
    """
    from timesink.cli._console import next_command, print_json
    from timesink.errors import TimesinkError
    from timesink.files import replacing
    from timesink.runs.directory import COLLECTED, collect_table, find_runs

    runs = find_runs(path)
    summaries, whole = [], []
    for run in runs:
        try:
            summaries.append(run.write_tables())
            whole.append(run)
        except TimesinkError as error:
            if len(runs) == 1:
                raise
            click.echo(f"timesink: {error}; passed over", err=True)
    if len(runs) > 1:
        table = out or path / COLLECTED
        with replacing(table) as temporary:
            collect_table(whole, path).write_csv(temporary)
        click.echo(f"{len(whole)} runs in {table}", err=True)
    if as_json:
        print_json(summaries[0] if len(runs) == 1 else {"runs": summaries})
    elif len(runs) == 1:
        traced = "layers.csv, memory.csv, " if summaries[0]["traced_steps"] else ""
        traced += "stages.csv, " if summaries[0]["stages"] else ""
        click.echo(
            f"made steps.csv, {traced}summary.csv, summary.json and ledger.parquet in {path}"
        )
        next_command(f"timesink show {path}")
