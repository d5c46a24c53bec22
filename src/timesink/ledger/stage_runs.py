"""What is known of an event by the run of a function that it belongs to.

A function of the pipeline (that of a `map`, a `filter`, a generator) is called on one thread and
executed on others; call, executor and end carry the same number.
"""

from dataclasses import dataclass

import numpy as np

from timesink.ledger import stage_names as names
from timesink.ledger.nesting import Ints, Mask
from timesink.ledger.stage_events import WORK, PipelineEvents
from timesink.ledger.stage_names import Place
from timesink.traces.events import Kind

WAITING = -1
USUAL, TIMES_USUAL, ENOUGH = 0.25, 2, 8
"""A hand-over of more than twice the quickest quarter's waited, where there are some to compare."""


@dataclass(frozen=True, eq=False)
class Moved:
    """Stretches of events' own time that are another one's."""

    event: Ints
    to: Ints
    """The event whose time it is, or `WAITING`."""
    begin_ns: Ints
    end_ns: Ints


class Runs:
    """The runs of functions in a trace."""

    def __init__(self, running: PipelineEvents) -> None:
        self._running, self._parent = running, running.nesting.parent
        self._numbered = running.run > 0
        self._calls = self._named(lambda text: text.startswith(names.CALL))
        self._starts = self._named(lambda text: text == names.CALL_STARTS)
        self._executors = self._named(lambda text: text == names.EXECUTES)
        self._ends = self._named(lambda text: text == names.CALL_ENDS)
        nested = self._parent >= 0
        worked = np.isin(running.kind, WORK) & nested & self._executors[self._parent]
        self._run_of_op = np.where(worked, running.run[self._parent], 0)

    def placed(self) -> list[tuple[Mask, Place]]:
        """Give what a run alone tells.

        When a run ends that a fused map and batch began, its element is copied into the batch. A
        generator's element comes from a Python function. The ops of a function may all be too
        cheap to be traced: then the executor's time is the work of who called it.
        """
        running, run = self._running, self._running.run
        fused = self._called_in(self._named(lambda text: text == names.FUSED_BATCH))
        generators = self._called_in(
            self._named(lambda text: text.endswith("::" + names.GENERATOR))
        )
        python = running.that(Kind.OP, name=names.is_python)
        found = [
            (self._ends & np.isin(run, fused), Place("stage", names.BATCH, names.CALL_ENDS)),
            (
                python & np.isin(self._run_of_op, generators),
                Place("stage", names.FROM_GENERATOR, "PyFunc"),
            ),
            (self._in_place(), Place("unplaced", label=names.CALL + "Run")),
        ]
        return found + self._without_ops()

    def moved(self) -> Moved:
        """Give all time that is not the event's whose it seems."""
        parts = (self._executor_time(), self._handing_over())
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return Moved(*(np.concatenate(column) for column in columns))

    def _executor_time(self) -> Moved:
        """Give each stretch before an op to the op that follows in the run, on whatever thread.

        What the executor does there is running ops that are too cheap to be traced, and starting
        the next. What it does beside an op that began elsewhere is no stage's, nor what it does
        behind the last one.
        """
        running = self._running
        ops = np.flatnonzero(self._run_of_op)
        executor, begin_ns, end_ns = running.nesting.own_parts(
            self._executors & np.isin(running.run, self._run_of_op[ops]) & self._numbered
        )
        if not len(executor):
            return Moved(executor, executor, begin_ns, end_ns)
        runs, run_of_op = np.unique(self._run_of_op[ops], return_inverse=True)
        run = np.searchsorted(runs, running.run[executor])
        # Runs one behind the other on one axis, as if each were a thread.
        first_ns, last_ns = int(running.begin_ns.min()), int(running.end_ns.max())
        span_ns = last_ns - first_ns + 1
        at = run_of_op * span_ns + running.begin_ns[ops] - first_ns
        order = np.argsort(at, kind="stable")
        ops, at, run_of_op = ops[order], at[order], run_of_op[order]
        following = np.searchsorted(at, run * span_ns + begin_ns - first_ns)
        followed = following < len(ops)
        followed[followed] = run_of_op[following[followed]] == run[followed]
        op = ops[following[followed]]
        until_ns = np.minimum(end_ns[followed], running.begin_ns[op])
        return Moved(executor[followed], op, begin_ns[followed], until_ns)

    def _handing_over(self) -> Moved:
        """Find the waiting where a run is handed to another thread, or its element.

        There a thread wakes another, and often loses its core to it for milliseconds, or waits for
        its turn at the batch. The work itself takes as long each time: the elements of one batch
        are of one size. So what goes far beyond the usual was waiting.
        """
        running, run = self._running, self._running.run
        fused = self._named(lambda text: text == names.FUSED_BATCH)
        inputs = np.flatnonzero(self._named(names.is_iterator_event) & (self._parent >= 0))
        inputs = inputs[fused[self._parent[inputs]]]
        leaf = np.ones(len(running), bool)
        leaf[self._parent[self._parent >= 0]] = False
        groups = [leaf & self._starts]
        rest = leaf & self._ends
        datasets: dict[str, list[int]] = {}
        for name in np.unique(running.name[inputs]):
            text = names.without_elements(running.named(int(name)).text)
            datasets.setdefault(text, []).append(int(name))
        for of_dataset in datasets.values():
            producers = np.zeros(len(running), bool)
            producers[self._parent[inputs[np.isin(running.name[inputs], of_dataset)]]] = True
            mine = rest & np.isin(run, self._called_in(producers))
            groups.append(mine)
            rest &= ~mine
        event, begin_ns = [], []
        for group in (np.flatnonzero(each) for each in (*groups, rest)):
            if len(group) >= ENOUGH:
                length_ns = running.end_ns[group] - running.begin_ns[group]
                usual_ns = int(np.quantile(length_ns, USUAL))
                late = group[length_ns > TIMES_USUAL * usual_ns]
                event.append(late)
                begin_ns.append(running.begin_ns[late] + TIMES_USUAL * usual_ns)
        late = np.concatenate([np.zeros(0, np.int64), *event])
        waited_ns = np.concatenate([np.zeros(0, np.int64), *begin_ns])
        return Moved(late, np.full(len(late), WAITING), waited_ns, running.end_ns[late])

    def _named(self, test: names.Test) -> Mask:
        return self._running.that(Kind.PIPELINE, name=lambda name: test(name.text))

    def _called_in(self, callers: Mask) -> Ints:
        """Give the runs that were called within some events."""
        return self._running.run[
            self._calls & (self._parent >= 0) & callers[self._parent] & self._numbered
        ]

    def _in_place(self) -> Mask:
        """Find the calls that ran the function themselves, and so show none of its ops.

        None of those within one dataset was carried out by an executor: a single one may have
        been cut off by the end of the trace.
        """
        running, run = self._running, self._running.run
        calls = np.flatnonzero(self._named(names.waits_for_its_run) & self._numbered)
        carried_out = np.isin(run[calls], run[self._executors | self._ends])
        nested = self._parent[calls] >= 0
        callers, which = np.unique(
            np.where(nested, running.name[self._parent[calls]], -1), return_inverse=True
        )
        texts = [
            names.without_elements(running.named(int(caller)).text) if caller >= 0 else ""
            for caller in callers
        ]
        numbers = {text: number for number, text in enumerate(texts)}
        dataset = np.array([numbers[text] for text in texts], np.int64)[which]
        in_place = np.zeros(len(run), bool)
        in_place[calls[~np.isin(dataset, dataset[carried_out])]] = True
        return in_place

    def _without_ops(self) -> list[tuple[Mask, Place]]:
        """Place the executors of runs that show no op, by who called the run."""
        running, run = self._running, self._running.run
        bare = self._executors & self._numbered & ~np.isin(run, self._run_of_op)
        called = self._calls & (self._parent >= 0) & np.isin(run, run[bare])
        caller = running.name[self._parent]
        of_stage: dict[str, list[int]] = {}
        for number in np.unique(caller[called]):
            stage = names.stage_of_caller(running.named(int(number)).text)
            if stage:
                of_stage.setdefault(stage, []).append(int(number))
        return [
            (
                bare & np.isin(run, run[called & np.isin(caller, callers)]),
                Place("stage", stage, names.EXECUTES),
            )
            for stage, callers in of_stage.items()
        ]
