"""`timesink compare`: what changed between two runs, told from noise."""

import math
from pathlib import Path

import click

from timesink.cli import _options


def _as_ratio(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:
    """Read a share, `5%` or `0.05`. A bare `5` could be meant as either, and is refused."""
    if value is None:
        return None
    percent = value.strip().endswith("%")
    try:
        number = float(value.strip().removesuffix("%"))
    except ValueError:
        number = math.nan
    if math.isfinite(number) and number >= 0 and (percent or number < 1):
        return number / 100 if percent else number
    raise click.BadParameter(f"found {value!r}, allowed: a percentage or a ratio, as 5% or 0.05")


@click.command()
@click.argument("before", type=click.Path(path_type=Path), metavar="RUN")
@click.argument("after", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--fail-over",
    callback=_as_ratio,
    metavar="LIMIT",
    help="End with exit code 7 where the second is slower by more than 5% (or 0.05) "
    "and beyond noise.",
)
@click.option(
    "--account", metavar="NAME", help="What --fail-over judges, e.g. input_wait. [default: step]"
)
@_options.as_json
def compare(
    before: Path, after: Path, fail_over: float | None, account: str | None, as_json: bool
) -> None:
    """Compare two runs: what is slower, what is only noise.

    A RUN is a run's directory, or a directory of its repetitions. Reads only these; needs no
    framework. Steps are compared as a whole and, where both runs were profiled, by account,
    layer and phase.

    \b
    Examples:
      timesink compare runs/main/1 runs/mine/1
      timesink compare runs/main runs/mine --fail-over 5%
      timesink compare runs/main runs/mine --fail-over 20% --account input_wait
    """
    from timesink.cli._compare import print_comparison
    from timesink.cli._comparison import (
        as_object,
        compare_sides,
        exceeds,
        figures,
        judged_row,
    )
    from timesink.cli._console import print_json
    from timesink.cli._measured import read_side
    from timesink.errors import RegressionError, UsageError

    if account is not None and fail_over is None:
        raise UsageError("--account names what --fail-over judges: give --fail-over too, as 5%")
    comparison = compare_sides(read_side(before), read_side(after))
    judged = None if fail_over is None else judged_row(comparison, account)
    if as_json:
        print_json(as_object(comparison, judged, fail_over))
    else:
        print_comparison(comparison)
    if judged is not None and fail_over is not None and exceeds(judged, fail_over):
        raise RegressionError(
            f"{figures(judged.account, judged)}: slower by more than the "
            f"{100 * fail_over:g} % that --fail-over allows"
        )
