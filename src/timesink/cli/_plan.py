"""What a sweep or a study would measure, and about how long that takes."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from timesink.cli._console import out
from timesink.runs.journal import read_events
from timesink.studies.guess import guesses, left_s, speed_of_a_core
from timesink.studies.plan import Planned
from timesink.studies.study_log import NAME, minutes


def print_plan(planned: Sequence[Planned], place: Path, unit: str = "runs") -> None:
    """Say what would be measured, what of it is done, and how long the rest takes."""
    took_s = _took_s(place)
    for each in planned:
        state = "done" if each.number in took_s else "    "
        out.print(f"{each.place}  {state}  {escape(each.name)}", soft_wrap=True)
    left = [each.number for each in planned if each.number not in took_s]
    out.print(f"{len(planned)} {unit}, {len(left)} to do{_how_long(planned, took_s, left)}")


def _how_long(planned: Sequence[Planned], took_s: dict[int, float], left: Sequence[int]) -> str:
    if not left:
        return ""
    guessed = guesses(planned, speed_of_a_core())
    text = f": {minutes(left_s(guessed, took_s, left))}"
    if took_s:
        return f"{text}, by what the others took"
    unknown = [each for each in planned if not guessed[each.number].steps]
    if not unknown:
        return f"{text} (a guess from the networks' arithmetic)"
    names = ", ".join(dict.fromkeys(each.experiment.training.network for each in unknown))
    return f"{text} and what the steps of {escape(names)} take"


def _took_s(place: Path) -> dict[int, float]:
    """Read how long those took that ended already."""
    log = place / NAME
    if not log.is_file():
        return {}
    return {
        event.fields["number"]: event.fields["wall_s"]
        for event in read_events(log)
        if event.name == "ended"
    }
