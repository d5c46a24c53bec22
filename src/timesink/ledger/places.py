"""Where the host's Python was: the sampler's instants made into stretches of time with a place."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timesink.traces.events import Events, Kind

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """Disjoint stretches, each with a place."""

    begin_ns: Ints
    end_ns: Ints
    place: tuple[str, ...]


def python_places(events: Events, busy: Ints, spans: Ints) -> Cells:
    """Give each stretch between calls into the framework the places seen in it.

    `busy` are the events in which the main thread was not in Python of its own; `spans` those that
    name a piece of host code, where a stretch ends too. A stretch with several samples is cut
    halfway between them; one without is not given: it was too short to be seen.
    """
    samples = np.flatnonzero(events.kind == Kind.SAMPLE)
    samples = samples[np.lexsort((events.name[samples], events.begin_ns[samples]))]
    if not len(samples):
        empty = np.zeros(0, np.int64)
        return Cells(empty, empty, ())
    at = events.begin_ns[samples]
    free_begin, free_end = _free(events.begin_ns[busy], events.end_ns[busy], events)
    free_begin, free_end = _cut(free_begin, free_end, spans, events)
    gap = np.searchsorted(free_begin, at, side="right") - 1
    inside = (gap >= 0) & (at < free_end[np.maximum(gap, 0)])
    samples, at, gap = samples[inside], at[inside], gap[inside]
    begin, end = free_begin[gap].copy(), free_end[gap].copy()
    together = gap[1:] == gap[:-1]
    middle = (at[1:] + at[:-1]) // 2
    begin[1:][together] = middle[together]
    end[:-1][together] = middle[together]
    return Cells(begin, end, tuple(_name(events, int(sample), spans) for sample in samples))


def _free(begin_ns: Ints, end_ns: Ints, events: Events) -> tuple[Ints, Ints]:
    """Give the stretches between intervals, from the first event of the file to the last."""
    order = np.argsort(begin_ns, kind="stable")
    begin, reach = begin_ns[order], np.maximum.accumulate(end_ns[order])
    first, last = events.begin_ns.min(), events.end_ns.max() + 1
    free_begin = np.concatenate([[first], reach]).astype(np.int64)
    free_end = np.concatenate([begin, [last]]).astype(np.int64)
    real = free_end > free_begin
    return free_begin[real], free_end[real]


def _cut(free_begin: Ints, free_end: Ints, spans: Ints, events: Events) -> tuple[Ints, Ints]:
    """Cut stretches where a named piece of code begins or ends."""
    cuts = np.concatenate([events.begin_ns[spans], events.end_ns[spans]])
    borders = np.unique(np.concatenate([free_begin, free_end, cuts]))
    begin, end = borders[:-1], borders[1:]
    around = np.searchsorted(free_begin, begin, side="right") - 1
    free = (around >= 0) & (begin < free_end[np.maximum(around, 0)])
    return begin[free], end[free]


def _name(events: Events, sample: int, spans: Ints) -> str:
    """Say where a sample was taken: the named piece of code, and the line in it."""
    line: str = events.names[events.name[sample]].text
    at = events.begin_ns[sample]
    around = spans[(events.begin_ns[spans] <= at) & (at < events.end_ns[spans])]
    if not len(around):
        return line
    innermost = around[np.argmax(events.begin_ns[around])]
    return f"{events.names[events.name[innermost]].text}, {line}"
