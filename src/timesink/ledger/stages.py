"""The work of each stage of the input pipeline: events in, rows of summed time on threads out.

On each thread, at each instant, the innermost event decides. An op's time is its stage's, an
iterator's its dataset's, an executor's that of the ops it runs. Time in which a thread waited for
another is apart, and so is what the framework spends on handing elements over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from timesink.ledger.nesting import Ints
from timesink.ledger.stage_events import WORK, PipelineEvents
from timesink.ledger.stage_names import OpPlaces, Place, place_event
from timesink.ledger.stage_runs import WAITING, Runs
from timesink.traces.events import Events, Kind

KINDS = max(Kind) + 1


ALONE = "pipeline"
"""Names the stretch of a trace in which a pipeline ran alone."""


@dataclass(frozen=True)
class StageWork:
    """What one stage did."""

    stage: str
    work_ns: int
    """Summed over threads: it may exceed the wall."""
    calls: int
    """How often the op or iterator ran that took most of it."""
    kind: Literal["stage", "framework"] = "stage"
    """`framework`: executor and iterators' bookkeeping, which belongs to no stage."""


@dataclass(frozen=True)
class PipelineWork:
    """What the pipeline's threads did in a window."""

    wall_ns: int
    busy_ns: int
    """Time in which they did something: stages, framework and what could not be placed."""
    wait_ns: int
    """Time within events in which its own threads waited: for an element, for room, or for a core
    where one thread wakes another."""
    stages: tuple[StageWork, ...]
    """As the known stages are ordered, then by work; the framework's rows come last."""
    unplaced: tuple[tuple[str, int, int], ...]
    """Of what could not be placed: its name, work in ns, calls; the most work first."""

    @property
    def explained(self) -> float:
        """The share of the busy time that stages took; 1 where there was none."""
        staged_ns = sum(row.work_ns for row in self.stages if row.kind == "stage")
        return staged_ns / self.busy_ns if self.busy_ns else 1.0


def stage_work(
    events: Events, begin_ns: int | None, end_ns: int | None, known: Sequence[str] = ()
) -> PipelineWork:
    """Add up the work of the stages between two instants, by default from the first to the last.

    `known` are names of stages, in order, whose ops stand in name scopes of their own.
    """
    running = PipelineEvents(events)
    runs = Runs(running)
    if begin_ns is None:
        begin_ns = int(running.begin_ns.min()) if len(running) else 0
    if end_ns is None:
        end_ns = max(int(running.end_ns.max()), begin_ns) if len(running) else begin_ns
    places, place = _places(running, runs, known)
    waits = np.array([each.kind == "wait" for each in places], bool)
    own_ns = running.nesting.own_ns(begin_ns, end_ns)
    # Who waits for a batch on a thread of his own is none of the pipeline's threads.
    own_ns[waits[place] & ~running.on_pipeline] = 0
    work_ns = np.zeros(len(places), np.int64)
    np.add.at(work_ns, place, own_ns)
    moved = runs.moved()
    moved_ns = np.clip(moved.end_ns, begin_ns, end_ns) - np.clip(moved.begin_ns, begin_ns, end_ns)
    np.subtract.at(work_ns, place[moved.event], moved_ns)
    np.add.at(work_ns, np.where(moved.to == WAITING, 0, place[moved.to]), moved_ns)
    began = (begin_ns <= running.begin_ns) & (running.begin_ns < end_ns)
    calls = np.bincount(place[began], minlength=len(places))
    rows, unplaced = _rows(places, work_ns, calls)
    return PipelineWork(
        wall_ns=end_ns - begin_ns,
        busy_ns=int(work_ns[~waits].sum()),
        wait_ns=int(work_ns[waits].sum()),
        stages=_in_order(rows, known),
        unplaced=unplaced,
    )


def _places(running: PipelineEvents, runs: Runs, known: Sequence[str]) -> tuple[list[Place], Ints]:
    """Give every place that occurs, waiting first, and the number of each event's."""
    worked = np.isin(running.kind, WORK)
    ops = OpPlaces([running.op(int(n)) for n in np.unique(running.name[worked])], known)
    numbers = {Place("wait"): 0}

    def number(place: Place) -> int:
        return numbers.setdefault(place, len(numbers))

    def place_of(name: int, kind: int) -> Place:
        if kind in WORK:
            return ops.place(running.op(name))
        if kind == Kind.INPUT:
            return Place("wait", label="IteratorGetNext")
        return place_event(running.named(name).text)

    # A name may be an op's here and another event's there: so by kind and name.
    pair = running.name * KINDS + running.kind
    used = np.flatnonzero(np.bincount(pair))
    of_pair = np.zeros(int(used.max(initial=0)) + 1, np.int64)
    of_pair[used] = [number(place_of(*divmod(int(each), KINDS))) for each in used]
    placed: Ints = of_pair[pair]
    for found, place in runs.placed():
        placed[found] = number(place)
    return list(numbers), placed


def _rows(
    places: list[Place], work_ns: Ints, calls: Ints
) -> tuple[list[StageWork], tuple[tuple[str, int, int], ...]]:
    """Sum places of one stage; its calls are those of the place that took most."""
    rows: dict[tuple[str, str], tuple[int, int, int]] = {}
    unplaced = []
    for place, work, count in zip(places, work_ns.tolist(), calls.tolist(), strict=True):
        if place.kind in ("unplaced", "inside") and work:
            unplaced.append((place.label, work, count))
        elif place.kind in ("stage", "framework"):
            total, most, most_count = rows.get((place.kind, place.stage), (0, -1, 0))
            leads = work > most
            rows[place.kind, place.stage] = (
                total + work,
                work if leads else most,
                count if leads else most_count,
            )
    stages = [
        StageWork(stage, total, count, "stage" if kind == "stage" else "framework")
        for (kind, stage), (total, _, count) in rows.items()
        if total
    ]
    return stages, tuple(sorted(unplaced, key=lambda row: (-row[1], row[0])))


def _in_order(rows: list[StageWork], known: Sequence[str]) -> tuple[StageWork, ...]:
    order = {stage: place for place, stage in reversed(list(enumerate(known)))}

    def key(row: StageWork) -> tuple[bool, int, int, str]:
        known_place = order.get(row.stage, len(order)) if row.kind == "stage" else 0
        return row.kind == "framework", known_place, -row.work_ns, row.stage

    return tuple(sorted(rows, key=key))
