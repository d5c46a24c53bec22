"""Many measurements one after the other, resumable: each as its plan says, none twice.

The journal says of each that it began and how it ended. One that began and did not end was cut, and
so was one that somebody killed: it is measured again from its beginning. One that ended by itself,
well or badly, is not.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timesink.errors import InterruptedRunError, RunError, TimesinkError
from timesink.files import alone_in
from timesink.runs.directory import RunDirectory
from timesink.studies.guess import guesses, left_s, speed_of_a_core
from timesink.studies.measuring import GRACE_S, KILLED, Outcome, carry_out
from timesink.studies.plan import Planned, in_running_order
from timesink.studies.study_log import StudyLog, clear, minutes

LOOK_S = 0.1
WRITTEN_EVERY_S = 60.0
"""The tables while it goes on: who looks sees what there is, and a kill leaves them."""

Ended = dict[int, Outcome]
"""How measurements ended, by their numbers."""


@dataclass(frozen=True)
class Asked:
    """How a study is conducted."""

    in_order: bool = False
    time_limit_s: float | None = None
    """Of a measurement."""
    retry: bool = False
    """Whether what failed is measured again."""


@dataclass(frozen=True)
class Watcher:
    """Who looks on, and by which clock."""

    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic


def conduct(
    kind: str,
    planned: Sequence[Planned],
    toml: str,
    asked: Asked,
    out: Path,
    watcher: Watcher,
    write: Callable[[Ended], None],
) -> None:
    """Measure what is still to be measured; `write` makes tables of what ended, however far.

    The caller has the directory for itself.
    """
    resolved = [
        {
            "part": each.part,
            "measure": each.measure.model_dump(mode="json"),
            "experiment": each.experiment.model_dump(mode="json"),
        }
        for each in planned
    ]
    log = StudyLog(out, kind, {"runs": resolved}, toml)
    events = log.open()
    ended: Ended = {
        event.fields["number"]: event.fields for event in events if event.name == "ended"
    }
    _wait_for_the_cut(out, {e.fields["number"] for e in events if e.name == "began"}, watcher)
    todo = [
        each
        for each in planned
        if each.number not in ended
        or ended[each.number]["kind"] == KILLED
        or (asked.retry and ended[each.number]["exit"] != 0)
    ]
    if not asked.in_order:
        todo = in_running_order(todo, planned[0].experiment.seed)
    if 0 < len(todo) < len(planned):
        done = len(planned) - len(todo)
        watcher.say(f"{out}: going on: {done} of {len(planned)} are done")
    write(ended)  # who looks in the first minute finds a study, and what there is
    try:
        _measure_all(planned, todo, asked, log, ended, watcher, write)
    finally:
        write(ended)


@contextmanager
def room_for(what: str, out: Path, *, force: bool) -> Iterator[None]:
    """Have a directory for a study alone; one that is there is gone on with, or deleted."""
    if force and out.exists():
        clear(out)
    out.mkdir(parents=True, exist_ok=True)
    with alone_in(out, what, RunError):
        yield


def _wait_for_the_cut(out: Path, begun: set[int], watcher: Watcher) -> None:
    """Wait until a run whose study was killed has stopped: it would be at work beside the next."""
    until_s, told = time.monotonic() + GRACE_S, False
    while time.monotonic() < until_s:
        alive = [n for n in begun if RunDirectory(out / f"{n:04d}").is_running()]
        if not alive:
            return
        if not told:
            watcher.say(f"waiting for run {alive[0]:04d} to stop, which was cut")
            told = True
        time.sleep(LOOK_S)
    raise RunError(f"{out}: run {alive[0]:04d}, which was cut, is still at work; end it first")


def _measure_all(
    planned: Sequence[Planned],
    todo: Sequence[Planned],
    asked: Asked,
    log: StudyLog,
    ended: Ended,
    watcher: Watcher,
    write: Callable[[Ended], None],
) -> None:
    journal = log.append()
    guessed = guesses(planned, speed_of_a_core())
    written_s, best = watcher.clock(), _Best()
    for number, outcome in ended.items():
        best.look_at(log.out, number, outcome)
    try:
        for done, each in enumerate(todo):
            took_s = {n: how["wall_s"] for n, how in ended.items() if how["exit"] == 0}
            left = minutes(left_s(guessed, took_s, [other.number for other in todo[done:]]))
            watcher.say(f"{done + 1} of {len(todo)}, {left} left{best}: {each.name}")
            journal.write("began", number=each.number)
            outcome = carry_out(each, log.out, asked.time_limit_s)
            journal.write("ended", number=each.number, **outcome)
            ended[each.number] = outcome
            if outcome["exit"] != 0:
                watcher.say(f"  failed: {outcome['reason']}")
            best.look_at(log.out, each.number, outcome)
            if watcher.clock() - written_s >= WRITTEN_EVERY_S:
                write(ended)
                written_s = watcher.clock()
    except KeyboardInterrupt:
        raise InterruptedRunError(
            f"stopped; the same command goes on with what is left: --out {log.out}", exit_code=130
        ) from None
    finally:
        journal.close()


class _Best:
    """The quickest run so far."""

    def __init__(self) -> None:
        self.number, self.images_per_s = 0, 0.0

    def look_at(self, out: Path, number: int, outcome: Outcome) -> None:
        """Take a run that ended into account."""
        if outcome["exit"] != 0:
            return
        rate = run_facts(out / f"{number:04d}").get("images_per_s")
        if rate is not None and rate > self.images_per_s:
            self.number, self.images_per_s = number, rate

    def __str__(self) -> str:
        if not self.number:
            return ""
        return f", best so far {self.images_per_s:,.1f} images/s (run {self.number:04d})"


def run_facts(place: Path) -> Mapping[str, Any]:
    """Give what a training run's directory says; nothing where it says nothing."""
    try:
        return RunDirectory(place).summary()
    except TimesinkError:
        return {}
