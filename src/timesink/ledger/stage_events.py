"""Which events of a trace are the input pipeline's, in order, each with the one around it."""

from collections.abc import Callable

import numpy as np

from timesink.ledger.nesting import Ints, Mask, Nesting, in_order, on_one_axis, within
from timesink.ledger.opmap import CALLS
from timesink.ledger.stage_names import is_iterator_event, says_nothing
from timesink.traces.events import Events, Kind, Name

WORK = (Kind.OP, Kind.HLO)


class PipelineEvents:
    """The pipeline's events, thread by thread and in order of time.

    Whatever runs within an op is left out: all of an op's time is its own, also what a Python
    function calls. So is an event whose name says nothing, within one whose name does.
    """

    def __init__(self, events: Events) -> None:
        chosen = _chosen(events)
        chosen = chosen[in_order(*_columns(events, chosen))]
        chosen = chosen[~within(*_columns(events, chosen), _computes(events, chosen))]
        strange = events.kind[chosen] == Kind.PIPELINE
        strange &= _names_that(events, chosen, lambda name: says_nothing(name.text))
        chosen = chosen[~(strange & within(*_columns(events, chosen), ~strange))]
        self._events, self._chosen = events, chosen
        self.begin_ns, self.end_ns = events.begin_ns[chosen], events.end_ns[chosen]
        self.kind, self.name = events.kind[chosen], events.name[chosen].astype(np.int64)
        self.run: Ints = np.where(self.kind == Kind.PIPELINE, events.number[chosen], 0)
        """Of a call, its executor and its end: which run of a function it is; else 0."""
        self.on_pipeline = _on_pipeline(events)[events.line[chosen]]
        """Whether it stands on a thread of the pipeline's, not on that of who asks for batches."""
        self.nesting = Nesting(*_columns(events, chosen))

    def __len__(self) -> int:
        return len(self._chosen)

    def named(self, number: int) -> Name:
        """Give a name by its number."""
        return self._events.names[number]

    def op(self, number: int) -> Name:
        """Give an op's name; of a compiled instruction, that of the op it has most of."""
        name = self.named(number)
        members = self._events.hlo.get(name)
        return Name(max(members, key=lambda each: each.weight).path) if members else name

    def that(self, *kinds: Kind, name: Callable[[Name], bool]) -> Mask:
        """Tell which events are of these kinds, and of a name that passes the test."""
        found: Mask = np.isin(self.kind, kinds)
        return found & _names_that(self._events, self._chosen, name)


def _columns(events: Events, chosen: Ints) -> tuple[Ints, Ints, Ints]:
    thread: Ints = events.line[chosen].astype(np.int64)
    return thread, events.begin_ns[chosen], events.end_ns[chosen]


def _on_pipeline(events: Events) -> Mask:
    return np.array([line.input for line in events.lines], bool)


def _chosen(events: Events) -> Ints:
    """Find the pipeline's events: on its threads all, elsewhere what an iterator ran itself."""
    here = _on_pipeline(events)[events.line]
    lasted = events.end_ns >= events.begin_ns  # not so only in a damaged file
    worked = np.isin(events.kind, WORK) & lasted
    bookkeeping = (events.kind == Kind.PIPELINE) & lasted
    own = np.flatnonzero(here & (worked | bookkeeping | (lasted & (events.kind == Kind.INPUT))))
    asking = np.flatnonzero(~here & bookkeeping)
    asking = asking[_names_that(events, asking, lambda name: is_iterator_event(name.text))]
    if not len(asking):
        return own
    # A network's ops may be a million: they are not sorted, only looked up.
    asking = asking[in_order(*_columns(events, asking))]
    beside = np.isin(events.line, np.unique(events.line[asking]))
    others = np.flatnonzero(~here & (worked | bookkeeping) & beside)
    begin, end = on_one_axis(*_columns(events, np.concatenate([asking, others])))
    count = len(asking)
    reach = np.maximum.accumulate(end[:count])
    around = np.searchsorted(begin[:count], begin[count:], side="right") - 1
    inside = (around >= 0) & (end[count:] <= reach[np.maximum(around, 0)])
    return np.concatenate([own, others[inside]])


def _computes(events: Events, chosen: Ints) -> Mask:
    """Tell which are ops or compiled instructions, and do not only run others."""
    runs_others = _names_that(events, chosen, lambda name: name.type in CALLS)
    found: Mask = np.isin(events.kind[chosen], WORK)
    return found & ~runs_others


def _names_that(events: Events, chosen: Ints, test: Callable[[Name], bool]) -> Mask:
    """Tell which events have a name that passes the test; each name is tested once."""
    passes = np.zeros(len(events.names), bool)
    used = np.flatnonzero(np.bincount(events.name[chosen], minlength=len(passes)))
    passes[used] = [test(events.names[number]) for number in used]
    found: Mask = passes[events.name[chosen]]
    return found
