"""What a reader sees first of a run: its verdict, biggest sink and closure, and what is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from timesink.report.accounts import StepParts, mean_share
from timesink.report.sink import Sink, waiting
from timesink.report.text import NONE, SPACE, milliseconds, percent, ratio

BOUND_WORDS = {"input": "Input-bound", "compute": "Compute-bound", "balanced": "Balanced"}
UNEXPLAINED = 0.05
"""Of a step; with more in no account, the ledger is not to be relied on."""


@dataclass(frozen=True)
class Missing:
    """Something that a whole report would have."""

    what: str
    how: str = ""
    """How to get it; a command where it is one."""
    bad: bool = False
    """Whether it is a failure of the run."""


@dataclass(frozen=True)
class Tile:
    """One figure with its name and what it means."""

    name: str
    figure: str
    note: str
    section: str = ""


@dataclass(frozen=True)
class FirstScreen:
    """The answer, before any table."""

    headline: str
    sentence: str
    advice: tuple[str, ...]
    tiles: tuple[Tile, ...]
    missing: tuple[Missing, ...]


def first_screen(
    summary: Mapping[str, Any],
    steps: Sequence[StepParts],
    sink: Sink | None,
    place: str,
) -> FirstScreen:
    """Say what matters of a run; `place` is its directory, for commands that name it."""
    verdict = summary["verdict"]
    advice = [f"First: {verdict['first']}."] if verdict else []
    if not verdict:
        advice += [f"{each}." for each in summary.get("look_first", ())]
    return FirstScreen(
        headline(summary, steps, sink),
        _after_colon(verdict["sentence"]) if verdict else "",
        tuple(advice),
        (*_sink_tiles(sink), _speed(summary), *_closure(steps), _own_cost(summary)),
        tuple(missing(summary, steps, place)),
    )


def headline(summary: Mapping[str, Any], steps: Sequence[StepParts], sink: Sink | None) -> str:
    """Say the verdict in one sentence, and where the time goes."""
    if sink is None:
        over = summary["status"] not in ("running", "stopped", "killed")
        return f"No step was finished: there is nothing to see{'' if over else ' yet'}."
    verdict = summary["verdict"]
    if verdict is None:
        return _sentence(sink)
    word = BOUND_WORDS.get(verdict["bound"], verdict["bound"])
    if verdict["bound"] == "input" and sink.name != "waiting for images":
        # The two share cores: making images slows the computing, and is waited for less.
        sink = waiting(mean_share(steps, "input_wait"), summary.get("stages") or ())
        clause = f"making the images takes longer than computing; {sink.clause}"
        return f"{word}: {clause}{_and_within(sink)}."
    return f"{word}: {sink.clause}{_and_within(sink)}{_and_second(sink)}."


def missing(summary: Mapping[str, Any], steps: Sequence[StepParts], place: str) -> list[Missing]:
    """List what this run cannot show, each with the way to it."""
    found = [*_unfinished(summary, place)]
    attached = summary.get("attached")
    notes = list(summary.get("notes") or ())
    untraced = not any(each.traced for each in steps)
    if untraced and summary["steps"]:
        how = "timesink run … --set profile.mode=window"
        if attached:
            how = 'timesink.Callback("runs/mine", mode="window")'
        what = "No step was traced: only waiting and computing are told apart"
        what += "." if attached or summary["verdict"] else ", and there is no verdict."
        found.append(Missing(what, how))
    if summary["verdict"] is None and summary["status"] == "complete":
        if attached:
            what = "A training in your own code gets no verdict: its parts are not run alone."
            found.append(Missing(what))
        elif not any(note.startswith("no verdict") for note in notes) and not untraced:
            what = "No verdict was asked for: whether input or computing holds it back is not told."
            found.append(Missing(what, "timesink run … --set profile.verdict=true"))
    found += [Missing(_capital(note)) for note in notes]
    if summary["verdict"]:
        found += [Missing(_capital(note)) for note in summary["verdict"]["notes"]]
    gap = mean_share(steps, "unattributed")
    if gap > UNEXPLAINED:
        what = f"{percent(gap)} of a step is in no account: read the ledger with care."
        found.append(Missing(what))
    return found


def _unfinished(summary: Mapping[str, Any], place: str) -> list[Missing]:
    status, done, planned = summary["status"], summary["steps"], summary["steps_planned"]
    of = f" of {planned:,}" if planned else ""
    until = f"after {done:,}{of} steps"
    if status == "running":
        again = f"timesink report {place} --force"
        return [Missing(f"Still running: this is what it had done {until}.", again)]
    if status == "complete":
        return []
    error = f": {summary['error']}" if summary["error"] else "."
    what = f"The run {'was ' if status in ('killed', 'stopped') else ''}{status} {until}{error}"
    how = "" if summary.get("attached") else f"timesink run --resume {place}"
    return [Missing(what, how, bad=status != "stopped")]


def _sink_tiles(sink: Sink | None) -> list[Tile]:
    if sink is None:
        return []
    note = "; ".join(filter(None, (", ".join(filter(None, (sink.within, sink.more))), sink.second)))
    return [Tile("Biggest sink", f"{sink.name} {percent(sink.share)}", note, sink.section)]


def _speed(summary: Mapping[str, Any]) -> Tile:
    step_ms, rate = summary["step_ms"], summary["images_per_s"]
    figure = NONE if rate is None else f"{rate:,.1f} images/s"
    note = (
        f"a step takes {milliseconds(step_ms['median'])} ms (median of all, traced or not; 95 % "
        f"are below "
        f"{milliseconds(step_ms['p95'])}); first steps left out"
        if step_ms["median"] is not None
        else "no step was finished"
    )
    return Tile("Speed", figure, note, "distribution")


def _closure(steps: Sequence[StepParts]) -> list[Tile]:
    if not steps or not steps[0].traced:
        return []
    worst = max(steps, key=lambda each: abs(each.wall_ms - each.charged_ms))
    charged, wall = milliseconds(worst.charged_ms), milliseconds(worst.wall_ms)
    gap = mean_share(steps, "unattributed")
    figure = f"{charged} of {wall}{SPACE}ms"
    counted = f"mean of {steps[0].steps} traced steps"
    return [Tile("Closed", figure, f"unattributed {percent(gap)}; {counted}", "ledger")]


def _own_cost(summary: Mapping[str, Any]) -> Tile:
    slowdown = summary.get("slowdown") or {}
    window = slowdown.get("window")
    if window is None:
        reason = slowdown.get("reason") or "nothing was traced"
        return Tile("Timesink’s own cost", NONE, reason, "reading")
    interval = slowdown.get("window_interval") or [None, None]
    low, high = interval
    known = low is not None and high is not None
    between = f" [{low:.2f}, {high:.2f}]" if known else ""
    within = ", within noise" if known and low <= 1 <= high else ""
    whole = slowdown.get("run")
    figure = ratio(window) if whole is None else f"{ratio(whole)} over the run"
    return Tile(
        "Timesink’s own cost", figure, f"traced steps {ratio(window)}{between}{within}", "reading"
    )


def _and_within(sink: Sink) -> str:
    link = ", and " if sink.section == "stages" else ", "
    return f"{link}{sink.within}" if sink.within else ""


def _sentence(sink: Sink) -> str:
    return f"{_capital(sink.clause)}{_and_within(sink)}{_and_second(sink)}."


def _and_second(sink: Sink) -> str:
    return f"; {sink.second}" if sink.second else ""


def _after_colon(sentence: str) -> str:
    _, _, rest = sentence.partition(": ")
    return _capital(rest or sentence)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
