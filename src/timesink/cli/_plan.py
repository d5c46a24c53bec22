"""What a sweep or a study would measure, and what is known of how long that takes."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape

from timesink.cli._console import out
from timesink.runs.journal import read_events
from timesink.studies.plan import Measure, Planned
from timesink.studies.study_log import NAME, minutes

RUN_S = 30.0
"""Of a run, besides its steps: start, compiling, the verdict's measurements."""
MEASURER_S = 8.0
"""Of a measurement, besides its seconds: start, the first batches."""
SIDES_S = 12.0
"""Of a cell of three sides, besides its seconds: start, compiling, warming up."""
PREFIXES = 6
"""About how often a pipeline is measured where CPU time is told by stage."""


def print_plan(planned: Sequence[Planned], place: Path, unit: str = "runs") -> None:
    """Say what would be measured, what of it is done, and how long the rest takes."""
    done = _walls_s(place)
    for each in planned:
        state = "done" if each.number in done else "    "
        out.print(f"{each.place}  {state}  {escape(each.name)}", soft_wrap=True)
    left = [each for each in planned if each.number not in done]
    text = f"{len(planned)} {unit}, {len(left)} to do"
    if done:
        mean_s = sum(done.values()) / len(done)
        text += f": {minutes(mean_s * len(left))}, at {mean_s:.0f} s each as so far"
    elif left:
        text += f": {minutes(sum(_least_s(each.measure) for each in left))}"
        text += (
            " and what their steps take"
            if any(each.measure.how != "pipeline" for each in left)
            else ""
        )
    out.print(text, soft_wrap=True)


def _least_s(measure: Measure) -> float:
    """Tell how long a measurement takes where a step takes nothing."""
    if measure.how == "run":
        return RUN_S
    if measure.how == "pipeline":
        return MEASURER_S + measure.seconds * (1 + PREFIXES * measure.stages)
    return SIDES_S + 3 * measure.rounds * (measure.seconds + 1)


def _walls_s(place: Path) -> dict[int, float]:
    """Read how long those took that ended already."""
    log = place / NAME
    if not log.is_file():
        return {}
    return {
        event.fields["number"]: event.fields["wall_s"]
        for event in read_events(log)
        if event.name == "ended"
    }
