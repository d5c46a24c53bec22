"""`timesink sweep`: an experiment run for every value of its grid."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="EXPERIMENT")
@_options.settings
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where it goes; a sweep that is there is gone on with. [default: sweeps/<name>]",
)
@click.option("--dry-run", is_flag=True, help="Say what would be run, and how long it takes.")
@click.option("--in-order", is_flag=True, help="Run in the order of the grid, not shuffled.")
@_options.time_limit
@_options.retry
@_options.force
@_options.as_json
def sweep(
    path: Path,
    settings: tuple[str, ...],
    out: Path | None,
    dry_run: bool,
    in_order: bool,
    time_limit: float | None,
    retry: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Run an experiment for every value of its grid.

    EXPERIMENT is a TOML file with a [grid]: lists of values for any key, each crossed with
    all others, or in [grid.zipped] taken together. Each run is a process and a directory of
    its own, as often as `repetitions` says, in a shuffled order, so that what the machine
    does meanwhile looks like no effect. Stopped or killed, the same command goes on with
    what is left. A run that fails is written down, and the others are run.

    \b
    Examples:
      timesink sweep mine.toml --dry-run
      timesink sweep mine.toml --out results --time-limit 600
      timesink sweep mine.toml --out results --retry
    """
    from dataclasses import replace

    from timesink.cli._console import err, next_command, print_json
    from timesink.cli._plan import print_plan
    from timesink.cli._sweep import print_results
    from timesink.cli._watch import RunWatch
    from timesink.errors import RunError
    from timesink.pipelines.stages import parse_stages
    from timesink.runs import start
    from timesink.studies import sweep as sweeping
    from timesink.studies.conducting import Asked, Watcher
    from timesink.studies.grid import changed
    from timesink.studies.plan import plan_of, read_parts

    parts = [
        replace(part, grid=changed(part.grid, settings, {})) for part in read_parts(path, path.stem)
    ]
    planned = plan_of(parts)
    for each in planned:
        parse_stages(each.experiment.pipeline.stages)
    place = out or Path("sweeps") / planned[0].experiment.name
    if dry_run:
        print_plan(planned, place)
        return
    watch = RunWatch(err)
    try:
        experiments = start.prepare_all([each.experiment for each in planned], watch.watcher())
    finally:
        watch.close()
    say = lambda line: err.print(line, style="dim", markup=False, soft_wrap=True)  # noqa: E731
    rows = sweeping.sweep(
        parts,
        [replace(each, experiment=one) for each, one in zip(planned, experiments, strict=True)],
        Asked(in_order, time_limit, retry),
        place,
        Watcher(say),
        force=force,
    )
    failed = [row for row in rows if row["status"] == "failed"]
    if as_json:
        print_json({"schema_version": 1, "out": str(place), "runs": rows})
    else:
        print_results(rows)
        next_command(f"timesink report {place}")
    if failed:
        raise RunError(
            f"{len(failed)} of {len(rows)} runs failed; {place / 'results.csv'} says why"
        )
