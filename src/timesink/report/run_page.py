"""The page of one run: what its directory says in, everything that its template shows out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from timesink.report import charts, settings
from timesink.report.accounts import MEANING, StepParts
from timesink.report.figure import Figure
from timesink.report.first_screen import FirstScreen, first_screen
from timesink.report.ledger_rows import LedgerRow, ledger_rows
from timesink.report.reading import RunFacts
from timesink.report.sink import biggest_sink
from timesink.report.stage_rows import StageRow, stage_rows
from timesink.report.step_times import (
    Series,
    accounts_by_iteration,
    by_iteration,
    distribution,
    steady,
    traced_stretches,
)
from timesink.report.text import milliseconds, percent, times
from timesink.report.theme import colour_of

SMALL_STAGE = 0.002
"""Shares below are not drawn, only listed."""


@dataclass(frozen=True)
class Station:
    """A line beside the step's bar."""

    account: str
    meaning: str
    ms: float
    share: float
    colour: str


@dataclass(frozen=True)
class RunPage:
    """What the page of one run shows."""

    facts: RunFacts
    first: FirstScreen
    stations: tuple[Station, ...]
    ledger: tuple[LedgerRow, ...]
    stages: tuple[StageRow, ...]
    figures: Mapping[str, Figure]
    machine: tuple[tuple[str, str], ...]
    experiment: tuple[tuple[str, str], ...]

    @property
    def largest_share(self) -> float:
        """Of the ledger's rows: what the bars are drawn against."""
        return max((row.share for row in self.ledger), default=0.0) or 1.0


def run_page(facts: RunFacts) -> RunPage:
    """Make the values of a run's page."""
    summary = facts.summary
    stages = summary.get("stages") or []
    sink = biggest_sink(summary["accounts"], facts.parts, stages)
    return RunPage(
        facts,
        first_screen(summary, facts.parts, sink, facts.place),
        stations(facts.parts),
        tuple(ledger_rows(summary["accounts"], facts.groups)),
        tuple(stage_rows(stages)),
        {figure.name: figure for figure in _figures(facts)},
        tuple(settings.machine_lines(facts.machine)),
        tuple(settings.setting_lines(facts.experiment)),
    )


def stations(steps: tuple[StepParts, ...]) -> tuple[Station, ...]:
    """List what a step is made of, in the order of the data's way; the mean of the devices."""
    sums: dict[str, tuple[float, float]] = {}
    for step in steps:
        for part in step.parts:
            ms, share = sums.get(part.account, (0.0, 0.0))
            sums[part.account] = ms + part.ms / len(steps), share + part.share / len(steps)
    order = [*MEANING, *sums]
    return tuple(
        Station(account, MEANING.get(account, ""), *sums[account], colour_of(account))
        for account in sorted(sums, key=order.index)
    )


def _figures(facts: RunFacts) -> list[Figure]:
    found = [_step(facts), _iterations(facts), _accounts(facts), _distribution(facts)]
    return [each for each in (*found, _stages(facts), _run(facts)) if each is not None]


def _step(facts: RunFacts) -> Figure | None:
    if not facts.parts or not facts.parts[0].wall_ms:
        return None
    rows = charts.step_rows(facts.parts)
    first = facts.parts[0]
    how = "traced" if first.traced else "untraced"
    title = f"A step of {milliseconds(first.wall_ms)} ms, from disk to update"
    note = f"Mean of {times(first.steps, f'{how} step')}; every nanosecond is in one part."
    if not first.traced:
        note = f"Mean of {times(first.steps, 'step')}, timed without a trace; first steps left out."
    if len(facts.parts) > 1:
        note += f" A bar for each of {len(facts.parts)} devices; figures are their mean."
    return Figure("step", title, note, rows, charts.step_bar(rows), legend_on_page=False)


def _iterations(facts: RunFacts) -> Figure | None:
    if facts.steps.is_empty():
        return None
    drawn = by_iteration(facts.steps)
    stretches = traced_stretches(facts.steps)
    words = [_first_steps(facts)]
    if drawn.steps_a_point > 1:
        words.append(
            f"Each point is the median of {drawn.steps_a_point} steps, the band their range."
        )
    if stretches:
        words.append("Traced steps are shaded.")
    chart = charts.iteration_lines(drawn, stretches)
    return Figure("iterations", "Each step and its waiting", " ".join(words), drawn.rows, chart)


def _accounts(facts: RunFacts) -> Figure | None:
    drawn: Series = accounts_by_iteration(facts.ledger)
    if not drawn.rows:
        return None
    note = "The traced steps one by one, each closed."
    if drawn.steps_a_point > 1:
        note = f"Each bar is the mean of {drawn.steps_a_point} traced steps."
    title = "The traced steps by account"
    return Figure("accounts", title, note, drawn.rows, charts.account_bars(drawn))


def _distribution(facts: RunFacts) -> Figure | None:
    found = distribution(facts.steps)
    if found is None:
        return None
    words = [_first_steps(facts)]
    if found.beyond:
        longest = f"the longest took {milliseconds(found.longest_ms)} ms"
        words.append(f"{times(found.beyond, 'longer step')} in the last bar: {longest}.")
    chart = charts.distribution_bars(found)
    return Figure("distribution", "How long steps took", " ".join(words), found.rows, chart)


def _stages(facts: RunFacts) -> Figure | None:
    stages: list[Mapping[str, Any]] = facts.summary.get("stages") or []
    per_image = all(row["work_ms_per_image"] is not None for row in stages if row["share"])
    rows = [
        {
            "stage": row["stage"],
            "work": row["work_ms_per_image"] if per_image else round(100 * row["share"], 4),
            "share": row["share"],
        }
        for row in stages
        if row["share"] >= SMALL_STAGE
    ]
    if not rows:
        return None
    title = "ms of work an image" if per_image else "% of the pipeline’s work"
    note = "Work is time on the pipeline’s threads, summed over them: it may exceed the step."
    per_step = facts.summary.get("input_per_step")
    if per_step:
        note += (
            f" A step’s images need {milliseconds(per_step['work_ms'])} ms of it, "
            f"and the step waited {milliseconds(per_step['wait_ms'])} ms for them."
        )
    chart = charts.share_bars(rows, name="stage", figure="work", title=title)
    return Figure("stages", "The work of an image, stage by stage", note, rows, chart)


def _run(facts: RunFacts) -> Figure | None:
    rows = [dict(row) for row in facts.summary["run_accounts"]]
    wall_s = sum(row["s"] for row in rows)
    if not wall_s:
        return None
    gap = sum(row["share"] for row in rows if row["account"] == "unattributed")
    note = (
        f"From the start of the process to its end, and what was measured after it: "
        f"{wall_s:,.1f} s, unattributed {percent(gap)}."
    )
    chart = charts.share_bars(rows, name="account", figure="s", title="s")
    return Figure("run", "Where the whole run’s time went", note, rows, chart)


def _first_steps(facts: RunFacts) -> str:
    left_out = facts.steps.height - steady(facts.steps).height
    if not left_out:
        return "Only first steps were finished: they trace and compile, and stand for no others."
    longest = milliseconds(facts.steps["step_ms"].filter(facts.steps["first"]).max())  # type: ignore[arg-type]
    if left_out == 1:
        return f"The first step ({longest} ms) traces and compiles, and is left out."
    return f"Each process’s first step (up to {longest} ms) traces and compiles, and is left out."
