"""Where each step begins and ends on a trace's clock: from the journal, markers, or calls."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from timesink.traces.events import Events, Kind

Source = Literal["journal", "markers", "calls", "whole file"]


@dataclass(frozen=True)
class StepSpans:
    """Disjoint steps in order."""

    iteration: npt.NDArray[np.int64]
    begin_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    source: Source
    name: str = ""
    """What the markers, or the function that was called, are named."""

    def __len__(self) -> int:
        return len(self.iteration)


def spans_from_journal(events: Events, steps: Sequence[tuple[int, int, int]]) -> StepSpans | None:
    """Put a run's steps (iteration, begin and end on the host's clock) on the trace's clock.

    The markers tie the clocks: each carries the host's reading from just before it began, so the
    smallest difference is the true one plus the cost of a call. Only steps that the trace holds
    whole are given. None where the file has no such marker.
    """
    markers = events.kind == Kind.STEP
    numbers, begins = events.number[markers], events.begin_ns[markers]
    differences = [
        int(begin) - events.marks[int(number)]
        for number, begin in zip(numbers, begins, strict=True)
        if int(number) in events.marks
    ]
    if not differences:
        return None
    offset_ns = min(differences)
    marked = set(map(int, numbers))
    inside = sorted(
        (begin + offset_ns, end + offset_ns, iteration)
        for iteration, begin, end in steps
        if iteration in marked
    )
    columns = np.array(inside, np.int64).reshape(-1, 3)
    begin, end = columns[:, 0], columns[:, 1]
    # Two runs written into one journal overlap; a step ends where the next one begins.
    end[:-1] = np.minimum(end[:-1], begin[1:])
    return StepSpans(columns[:, 2], begin, end, "journal")


def spans_from_trace(events: Events) -> StepSpans:
    """Find the steps in a trace alone: by markers, else by the calls of one function."""
    chosen = np.flatnonzero(events.kind == Kind.STEP)
    if len(chosen):
        chosen = _most_time(events, chosen)
        chosen = _in_order(events, chosen)
        return _until_the_next(events, chosen, events.number[chosen], "markers")
    chosen = np.flatnonzero(events.kind == Kind.FUNCTION)
    if len(chosen):
        chosen = _not_nested(events, _in_order(events, _most_time(events, chosen)))
        return _until_the_next(events, chosen, np.arange(1, len(chosen) + 1), "calls")
    worked = np.isin(events.kind, (Kind.OP, Kind.HLO))
    if not worked.any():
        worked = np.ones(len(events), bool)
    begin, end = events.begin_ns[worked].min(), events.end_ns[worked].max()
    one = np.ones(1, np.int64)
    return StepSpans(one, one * begin, one * end, "whole file")


def _most_time(events: Events, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Keep the events of the name that took longest in all: the training step, not its helpers."""
    names = events.name[chosen]
    total = np.bincount(names, events.end_ns[chosen] - events.begin_ns[chosen])
    most: npt.NDArray[np.int64] = chosen[names == np.argmax(total)]
    return most


def _in_order(events: Events, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Sort by beginning; of those that begin together, the one around the others comes first."""
    order = np.lexsort((events.number[chosen], -events.end_ns[chosen], events.begin_ns[chosen]))
    return chosen[order]


def _not_nested(events: Events, chosen: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    ends = np.maximum.accumulate(events.end_ns[chosen])
    outer = np.ones(len(chosen), bool)
    outer[1:] = events.begin_ns[chosen][1:] >= ends[:-1]
    return chosen[outer]


def _until_the_next(
    events: Events,
    chosen: npt.NDArray[np.int64],
    iteration: npt.NDArray[np.int64],
    source: Source,
) -> StepSpans:
    """Let each step run to the next one's beginning, as a step does; the last to its own end."""
    begin, end = events.begin_ns[chosen], events.end_ns[chosen].copy()
    end[:-1] = begin[1:]
    name = events.names[events.name[chosen[0]]].text
    return StepSpans(iteration.astype(np.int64), begin, end, source, name)
