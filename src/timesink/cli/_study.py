"""A study from its options to its page: planned, measured, shown, as `timesink study` does."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from rich.markup import escape

from timesink.cli._console import err, next_command, out, print_json
from timesink.cli._plan import print_plan
from timesink.cli._watch import RunWatch
from timesink.errors import RunError
from timesink.pipelines.stages import parse_stages
from timesink.report.writing import make_study_report
from timesink.runs import start
from timesink.runs.directory import REPORT
from timesink.studies import conducting
from timesink.studies.grid import Grid, changed, packaged
from timesink.studies.plan import Part, Planned, plan_of, read_parts
from timesink.studies.study import Study, conduct_study

WIDTH = 80


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    path: Path | None
    settings: tuple[str, ...]
    data: Path | None
    quick: bool
    out: Path | None
    dry_run: bool
    toml: bool
    retry: bool
    force: bool
    as_json: bool
    time_limit: float | None
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    measure: Mapping[str, Any] = field(default_factory=dict)
    allowed: Sequence[str] | None = None


def run_study(
    study: Study,
    asked: Request,
    *,
    name_of: Callable[[Planned], str] = lambda each: each.name,
    complete: Callable[[Grid], Grid] = lambda grid: grid,
    show: "Callable[[Mapping[str, Any]], None] | None" = None,
) -> None:
    """Do what was asked for."""
    if asked.toml:
        click.echo(packaged(study.name), nl=False)
        return
    parts = _parts(study, asked, complete)
    planned = [replace(each, name=name_of(each)) for each in plan_of(parts)]
    for each in planned:
        parse_stages(each.experiment.pipeline.stages)
    place = asked.out or Path("studies") / study.name
    if asked.dry_run:
        print_plan(planned, place, study.unit)
        return
    facts = _conducted(study, parts, planned, place, asked)
    page = make_study_report(place, place / REPORT)
    page.write(force=True)
    if asked.as_json:
        print_json(facts)
    else:
        (show or print_figures)(facts)
        if show:
            print_figures(facts)
        for failed in facts["failed"]:
            out.print(f"[red]failed:[/] {escape(failed['name'])}: {escape(failed['reason'])}")
        next_command(f"xdg-open {place / REPORT}")
    if facts["failed"]:
        raise RunError(f"{len(facts['failed'])} of {len(planned)} {study.unit} failed; see above")


def _parts(study: Study, asked: Request, complete: Callable[[Grid], Grid]) -> list[Part]:
    parts = read_parts(
        asked.path,
        study.name,
        quick=asked.quick,
        measure=asked.measure,
        allowed=asked.allowed,
    )
    settings = [*asked.settings, *([f"dataset.path={asked.data}"] if asked.data else [])]
    return [
        replace(part, grid=complete(changed(part.grid, settings, asked.axes))) for part in parts
    ]


def _conducted(
    study: Study, parts: Sequence[Part], planned: Sequence[Planned], place: Path, asked: Request
) -> dict[str, Any]:
    say = lambda line: err.print(line, style="dim", markup=False, soft_wrap=True)  # noqa: E731
    watch = RunWatch(err)
    try:
        experiments = start.prepare_all([each.experiment for each in planned], watch.watcher())
    finally:
        watch.close()
    cells = [
        replace(each, experiment=experiment)
        for each, experiment in zip(planned, experiments, strict=True)
    ]
    return conduct_study(
        study,
        parts,
        cells,
        conducting.Asked(time_limit_s=asked.time_limit, retry=asked.retry),
        place,
        conducting.Watcher(say),
        force=asked.force,
    )


def print_figures(facts: Mapping[str, Any]) -> None:
    """Print what the seed found and what this machine shows, figure by figure."""
    out.print(f"\n[bold]Seed {facts['seed']}: {escape(facts['title'])}[/]")
    for figure in facts["figures"]:
        if figure["agreement"] == "not measured" and not figure["rows"]:
            continue
        out.print()
        title = f"{figure['title']}: {figure['agreement']}"
        _print_wrapped(f"{figure['number']}  ", title, style="bold")
        for label, text in (("seed", figure["found"]), ("here", figure["here"])):
            _print_wrapped(f"{label}  ", text)
    missing = [
        each["number"]
        for each in facts["figures"]
        if each["agreement"] == "not measured" and not each["rows"]
    ]
    if missing:
        out.print()
        _print_wrapped("not measured: ", ", ".join(missing))


def _print_wrapped(before: str, text: str, *, style: str | None = None) -> None:
    indent = " " * 6
    lines = textwrap.fill(
        text, WIDTH - 2, initial_indent=before, subsequent_indent=indent, break_on_hyphens=False
    )
    out.print(escape(lines), soft_wrap=True, style=style)
