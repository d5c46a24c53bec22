"""Traces written by hand: planes, threads, streams, events and XLA's programs.

    trace = Trace(host="worker-0")
    python = trace.host().line("python")
    python.event("train", 0, 900, step_num=1).event("x/MatMul:MatMul", 100, 400)
    trace.gpu(0).line("Stream #7(Compute)").event("kernel", 0, 50, tf_op="x/MatMul:MatMul")
    events = trace.read(tmp_path)

Times are nanoseconds. Stats are the events' keywords: an int is stored as a number, a str once
and referred to, as the profiler does, an `Inline` in the event itself.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from timesink.traces.events import Events
from timesink.traces.messages import HloProto, XLine, XPlane, XSpace
from timesink.traces.xplane import read_xplane

F32 = 11


class Inline(str):
    """A text stored in the event."""


class Trace:
    """One host's file."""

    def __init__(self, host: str | None = "host") -> None:
        self.planes: list[Plane] = []
        self.space = XSpace()
        if host is not None:
            self.space.hostnames.append(host.encode())

    def plane(self, name: str) -> "Plane":
        self.planes.append(Plane(name))
        return self.planes[-1]

    def host(self) -> "Plane":
        return self.plane("/host:CPU")

    def gpu(self, number: int) -> "Plane":
        return self.plane(f"/device:GPU:{number}")

    def program(self, module: str, program_id: int = 1) -> "Program":
        """Add a program of XLA's; it is written with the trace."""
        named = [plane for plane in self.planes if plane.name == "/host:metadata"]
        plane = named[0] if named else self.plane("/host:metadata")
        program = Program(module, program_id)
        plane.programs.append(program)
        return program

    def warn(self, warning: str) -> "Trace":
        self.space.warnings.append(warning.encode())
        return self

    def serialize(self) -> bytes:
        del self.space.planes[:]
        self.space.planes.extend(plane.serialize() for plane in self.planes)
        return self.space.SerializeToString()

    def write(self, folder: Path, name: str = "host.xplane.pb") -> Path:
        path = folder / name
        path.write_bytes(self.serialize())
        return path

    def read(self, folder: Path) -> Events:
        return read_xplane(self.write(folder))


class Plane:
    """A host or a device: its lines, and the names that they share."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[Thread] = []
        self.programs: list[Program] = []
        self.message = XPlane(name=name.encode())
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}

    def line(self, name: str, start_ns: int = 0) -> "Thread":
        self.lines.append(Thread(self, name, start_ns))
        return self.lines[-1]

    def event_id(self, name: str) -> int:
        if name not in self._events:
            self._events[name] = len(self._events) + 1
            entry = self.message.event_metadata.add(key=self._events[name])
            entry.value.id, entry.value.name = entry.key, name.encode()
        return self._events[name]

    def stat_id(self, name: str) -> int:
        if name not in self._stats:
            self._stats[name] = len(self._stats) + 1
            entry = self.message.stat_metadata.add(key=self._stats[name])
            entry.value.id, entry.value.name = entry.key, name.encode()
        return self._stats[name]

    def share(self, event_name: str, **stats: Any) -> "Plane":
        """Give stats to all events of the name at once."""
        ident = self.event_id(event_name)
        for entry in self.message.event_metadata:
            if entry.key == ident:
                self.add_stats(entry.value.stats, stats)
        return self

    def add_stats(self, target: Any, stats: dict[str, Any]) -> None:
        for name, value in stats.items():
            stat = target.add(metadata_id=self.stat_id(name))
            if isinstance(value, Inline):
                stat.str_value = value.encode()
            elif isinstance(value, str):
                stat.ref_value = self.stat_id(value)
            elif isinstance(value, bytes):
                stat.bytes_value = value
            elif isinstance(value, float):
                stat.double_value = value
            else:
                stat.int64_value = value

    def serialize(self) -> bytes:
        for program in self.programs:
            self.share(f"{program.module}({program.program_id})", **{"Hlo Proto": program.bytes()})
        self.programs = []
        del self.message.lines[:]
        self.message.lines.extend(line.message.SerializeToString() for line in self.lines)
        return self.message.SerializeToString()


class Thread:
    """A line: a thread of the host, or a stream of a device."""

    def __init__(self, plane: Plane, name: str, start_ns: int) -> None:
        self._plane = plane
        self._start_ns = start_ns
        self.message = XLine(name=name.encode(), timestamp_ns=start_ns)

    def event(self, name: str, begin_ns: int, end_ns: int, **stats: Any) -> "Thread":
        event = self.message.events.add(metadata_id=self._plane.event_id(name))
        event.offset_ps = (begin_ns - self._start_ns) * 1000
        event.duration_ps = (end_ns - begin_ns) * 1000
        self._plane.add_stats(event.stats, stats)
        return self


class Program:
    """A module of XLA's."""

    def __init__(self, module: str, program_id: int) -> None:
        self.module = module
        self.program_id = program_id
        self._proto = HloProto()
        self._proto.hlo_module.name = module.encode()
        self._proto.hlo_module.id = program_id

    def computation(self, name: str) -> "Computation":
        return Computation(self._proto.hlo_module.computations, name)

    def bytes(self) -> bytes:
        return self._proto.SerializeToString()


class Computation:
    """A body of instructions: the program's entry, or what a fusion holds."""

    def __init__(self, computations: Any, name: str) -> None:
        self.id = len(computations) + 1
        self._message = computations.add(name=name.encode(), id=self.id)

    def add(
        self,
        name: str,
        opcode: str,
        op_name: str = "",
        *,
        shape: Sequence[int] = (),
        operands: Sequence[int] = (),
        calls: Sequence["Computation"] = (),
        contracts: Sequence[int] = (),
        filters_at: int = 0,
        element_type: int = F32,
    ) -> int:
        """Add an instruction; its id, for who takes it as operand, is given back."""
        instruction = self._message.instructions.add(name=name.encode(), opcode=opcode.encode())
        instruction.id = 1000 * self.id + len(self._message.instructions)
        instruction.metadata.op_name = op_name.encode()
        instruction.shape.element_type = element_type
        instruction.shape.dimensions.extend(shape)
        instruction.operand_ids.extend(operands)
        instruction.called_computation_ids.extend(each.id for each in calls)
        instruction.dot_dimension_numbers.lhs_contracting_dimensions.extend(contracts)
        instruction.convolution_dimension_numbers.kernel_output_feature_dimension = filters_at
        return instruction.id
