"""`timesink report`: a run, several, or a study as one page that anybody can open."""

from pathlib import Path

import click

from timesink.cli import _options


@click.command()
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where the page goes. [default: report.html in the run's directory, or above several]",
)
@click.option(
    "--figures",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Write every figure there too, as PNG and SVG.",
)
@_options.force
def report(paths: tuple[Path, ...], out: Path | None, figures: Path | None, force: bool) -> None:
    """Write one HTML page of a run, of several, or of a study.

    Several stand beside each other. A PATH is a run's directory, any directory above runs, or
    that of a study. The page is one file that loads nothing: it opens from disk, can be sent
    by mail, and prints. Reads only; needs no framework.

    \b
    Examples:
      timesink report runs/experiment/20261116-093000
      timesink report runs/experiment --out compared.html
      timesink report runs/main/1 runs/mine/1 --figures figures
      timesink report studies/pipeline --figures figures
    """
    from timesink.cli._console import err
    from timesink.errors import OutputExistsError, UsageError
    from timesink.report.study_page import is_study
    from timesink.report.writing import make_report, make_study_report, place_of, runs_at
    from timesink.runs.directory import REPORT

    given = list(paths)
    studies = [path for path in given if is_study(path)]
    if studies and len(given) > 1:
        raise UsageError(f"{studies[0]}: a study has a page of its own: name it alone")
    runs = [] if studies else runs_at(given)
    place = out or (studies[0] / REPORT if studies else place_of(given, runs))
    if place.exists() and not force:
        raise OutputExistsError(f"{place} exists; --force overwrites it")
    made = make_study_report(studies[0], place) if studies else make_report(runs, place)
    if figures is not None:
        made.write_figures(figures, force=force)
        click.echo(f"wrote {2 * len(made.figures)} files to {figures}/", err=True)
    made.write(force=force)
    for each in made.unread:
        err.print(f"note: {each.name} is left out: {each.reason}", style="yellow", markup=False)
    click.echo(f"wrote {place}", err=True)
