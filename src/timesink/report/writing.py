"""A report from directories to files: runs are read, their page is made, written whole or not."""

import re
from dataclasses import dataclass
from os.path import commonpath
from pathlib import Path

from timesink.errors import UsageError
from timesink.files import write_atomically
from timesink.report.discreet import discreet_text
from timesink.report.figure import Figure
from timesink.report.page import run_html, runs_html, study_html
from timesink.report.reading import Unread, read_run, read_runs
from timesink.report.run_page import run_page
from timesink.report.runs_page import runs_page
from timesink.report.study_page import study_page
from timesink.runs.directory import REPORT, RunDirectory, find_runs


@dataclass(frozen=True)
class Report:
    """A page with its figures, made and not yet written."""

    out: Path
    html: str
    figures: tuple[Figure, ...]
    unread: tuple[Unread, ...] = ()

    def write(self, *, force: bool) -> None:
        """Write the page."""
        write_atomically(self.out, self.html, force=force)

    def write_figures(self, folder: Path, *, force: bool) -> list[Path]:
        """Write every figure as PNG and SVG; gives the files."""
        return [file for figure in self.figures for file in figure.write(folder, force=force)]


def runs_at(paths: list[Path]) -> list[RunDirectory]:
    """Find the runs at or below some paths, each once."""
    found = {run.path.resolve(): run for path in paths for run in find_runs(path)}
    return [found[path] for path in sorted(found, key=_by_number)]


def _by_number(path: Path) -> list[list[tuple[int, str]]]:
    """Order repetitions 9 and 10 as people count."""
    return [
        [(int(word), "") if word.isdecimal() else (0, word) for word in re.split(r"(\d+)", part)]
        for part in path.parts
    ]


def place_of(paths: list[Path], runs: list[RunDirectory]) -> Path:
    """Give where the report of some runs belongs, unless a place is named."""
    if len(runs) == 1:
        return runs[0].path / REPORT
    base = Path(commonpath([path.resolve() for path in paths]))
    if base == Path(base.anchor):
        raise UsageError("these runs have no directory in common: name the page with --out FILE")
    return (paths[0] if len(paths) == 1 else base) / REPORT


def make_study_report(path: Path, out: Path) -> Report:
    """Make the page of a study."""
    page = study_page(path)
    return Report(out, study_html(page), tuple(page.figures.values()))


def make_report(runs: list[RunDirectory], out: Path) -> Report:
    """Make the page of one run, or of several."""
    if len(runs) == 1:
        page = run_page(read_run(runs[0]))
        return Report(out, run_html(page), tuple(page.figures.values()))
    base = Path(commonpath([run.path.resolve() for run in runs]))
    facts, unread = read_runs(runs, base)
    several = runs_page(facts, unread, discreet_text(str(base)), out.resolve())
    return Report(out, runs_html(several), tuple(several.figures.values()), tuple(unread))
