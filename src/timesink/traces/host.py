"""A host's plane: the events of its threads, put into the table."""

from collections.abc import Callable
from functools import partial
from typing import Any

from timesink.traces.events import Kind, Line, Name
from timesink.traces.hlo import instruction_name
from timesink.traces.messages import XLine, text
from timesink.traces.naming import is_idle_talk, is_iterator, is_of_a_run, is_pipeline, kind_of
from timesink.traces.stats import Stats, as_int
from timesink.traces.table import PlainRows, Table
from timesink.traces.thunks import Thunks

_END = "end: "
_INPUT_LINES = "tf_data_"
_ASKED = (
    "step_num",
    "host_ns",
    "tf_function_call",
    "is_func",
    "eager_op",
    "hlo_op",
    "hlo_module",
    "program_id",
    "_p",
)

# A name of Timesink's may be a step's marker, and a function's may be within a call from Python.
_UNSURE = (Kind.SPAN, Kind.FUNCTION)

_63_BITS = (1 << 63) - 1

_Rule = tuple[Kind, int] | Callable[[Any, int, int], None]


def read_host(plane: Any, table: Table, shared_modules: frozenset[str]) -> None:
    """Put the plane's events into the table."""
    _Host(plane, table, shared_modules).read()


class _Host:
    """A plane while it is read: one rule an event name, made once.

    Where the name says everything, a rule is the kind and the name's index; else it is a
    function that is given the event. The input pipeline's own threads have more rules: there
    no event is thrown away but the thread pool's.
    """

    def __init__(self, plane: Any, table: Table, shared_modules: frozenset[str]) -> None:
        self.plane = plane
        self.table = table
        self.shared_modules = shared_modules
        self.asked = Stats(plane, _ASKED)
        self.memory = Stats(plane, ("allocator_name", "bytes_allocated"))
        self.consumed = Stats(plane, ("_c",))
        self.run = Stats(plane, ("id",))
        self.thunks = Thunks(table)
        self.allocators: dict[Any, int] = {}
        self.line = 0
        self.on_pipeline = False
        self.calls: list[tuple[int, int, str, bool]] = []
        self.rules: dict[int, _Rule] = {}
        self.pipeline_rules: dict[int, _Rule] = {}
        for entry in plane.event_metadata:
            name = text(entry.value.name)
            rule = self._rule(name, entry.value.stats)
            if rule:
                self.rules[entry.key] = rule
            if is_pipeline(name) or (rule is None and not is_idle_talk(name)):
                rule = self._pipeline_rule(name)
            if rule:
                self.pipeline_rules[entry.key] = rule

    def read(self) -> None:
        for serialized in self.plane.lines:
            line = XLine.FromString(serialized)
            name = text(line.name)
            self.on_pipeline = name.startswith(_INPUT_LINES)
            self.line = self.table.add_line(Line(name, input=self.on_pipeline))
            self._read_line(line)
            self._settle_calls()
        self.thunks.settle()

    def _read_line(self, line: Any) -> None:
        rows = PlainRows()
        kinds, begins, ends, names = rows.kind, rows.begin_ns, rows.end_ns, rows.name
        rules = self.pipeline_rules if self.on_pipeline else self.rules
        start_ns, find = line.timestamp_ns, rules.get
        for event in line.events:
            rule = find(event.metadata_id)
            if rule is None:
                continue
            offset_ps = event.offset_ps
            begin_ns = start_ns + offset_ps // 1000
            end_ns = start_ns + (offset_ps + event.duration_ps) // 1000
            if isinstance(rule, tuple):
                kind, name = rule
                kinds.append(kind)
                begins.append(begin_ns)
                ends.append(end_ns)
                names.append(name)
            else:
                rule(event, begin_ns, end_ns)
        self.table.extend(rows, self.line)

    def _rule(self, name: str, shared_stats: Any) -> _Rule | None:
        if name in ("MemoryAllocation", "MemoryDeallocation"):
            return self._read_memory
        if name.startswith(_END):
            return partial(self._read_end, name.removeprefix(_END))
        if is_idle_talk(name):
            return None
        if is_iterator(name):
            return self._pipeline_rule(name)
        told = kind_of(name)
        if told and told[0] not in _UNSURE:
            return told[0], self.table.index_of(told[1])
        if told or self.asked:
            return partial(self._ask, name, told, self.asked.read(shared_stats))
        return None

    def _pipeline_rule(self, name: str) -> _Rule:
        index = self.table.index_of(Name(name))
        return partial(self._read_run, index) if is_of_a_run(name) else (Kind.PIPELINE, index)

    def _ask(
        self,
        name: str,
        told: tuple[Kind, Name] | None,
        shared_stats: dict[str, Any],
        event: Any,
        begin_ns: int,
        end_ns: int,
    ) -> None:
        """Let the event's stats say what it is; of one name, each event may be another thing."""
        stats = shared_stats | self.asked.read(event.stats)
        if "hlo_op" in stats:
            index = self.table.index_of(instruction_name(stats, self.shared_modules))
            row = self.table.add(Kind.HLO, begin_ns, end_ns, self.line, index)
            if "_p" in stats:
                self.thunks.launch(name, stats["_p"], row)
        elif (number := as_int(stats.get("step_num"))) is not None:
            index = self.table.index_of(Name(name))
            self.table.add(Kind.STEP, begin_ns, end_ns, self.line, index, number)
            if (host_ns := as_int(stats.get("host_ns"))) is not None:
                self.table.marks[number] = host_ns
        elif "tf_function_call" in stats:
            self.calls.append((begin_ns, end_ns, name, True))
            if str(stats["tf_function_call"]).startswith("traced"):
                self.table.retraced.append((name, begin_ns))
        elif stats.get("is_func") == 1:
            self.calls.append((begin_ns, end_ns, str(stats.get("eager_op", name)), False))
        elif told and told[0] == Kind.FUNCTION:
            self.calls.append((begin_ns, end_ns, told[1].text, False))
        elif told:
            self.table.add(told[0], begin_ns, end_ns, self.line, self.table.index_of(told[1]))
        elif self.on_pipeline:
            index = self.table.index_of(Name(name))
            self.table.add(Kind.PIPELINE, begin_ns, end_ns, self.line, index)

    def _settle_calls(self) -> None:
        """Add the line's functions: what runs within a call from Python is that call."""
        covered_ns = -1
        for begin_ns, end_ns, name, from_python in sorted(
            self.calls, key=lambda call: (call[0], -call[1], not call[3])
        ):
            if from_python or begin_ns >= covered_ns:
                index = self.table.index_of(Name(name))
                self.table.add(Kind.FUNCTION, begin_ns, end_ns, self.line, index)
                covered_ns = max(covered_ns, end_ns)
        self.calls.clear()

    def _read_run(self, index: int, event: Any, begin_ns: int, end_ns: int) -> None:
        run = as_int(self.run.read_alike(event.stats).get("id")) or 0
        # A run's number is a random one, of 64 bits and perhaps negative.
        self.table.add(Kind.PIPELINE, begin_ns, end_ns, self.line, index, run & _63_BITS)

    def _read_end(self, instruction: str, event: Any, begin_ns: int, end_ns: int) -> None:
        stats = self.consumed.read(event.stats)
        if "_c" in stats:
            self.thunks.end(instruction, stats["_c"], end_ns)

    def _read_memory(self, event: Any, begin_ns: int, end_ns: int) -> None:
        stats = self.memory.read_alike(event.stats)
        in_use = as_int(stats.get("bytes_allocated"))
        if in_use is not None:
            allocator = stats.get("allocator_name", "")
            index = self.allocators.get(allocator)
            if index is None:
                index = self.allocators[allocator] = self.table.index_of(Name(str(allocator)))
            self.table.add(Kind.MEMORY, begin_ns, end_ns, self.line, index, in_use)
