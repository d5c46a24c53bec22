"""XLA's programs, as they stand in a trace: of each compiled instruction, the ops it came from.

An instruction's `op_name` is the path of the op it was compiled from. A fusion has one too, of
whichever op XLA took, while its time is that of all it holds: so its members are the ops of the
instructions within, each weighted by its work.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

from timesink.traces.events import Member, Name
from timesink.traces.messages import HloProto, text
from timesink.traces.stats import Stats

PLANE = "/host:metadata"

# Instructions that are what they call. A reduction also calls a computation, but that one says
# only how two numbers become one.
_CALLS = frozenset(("fusion", "call", "while", "conditional", "async-start", "command-buffer"))

# Inside a fusion these only say where a number is found.
_FREE = frozenset(
    (
        "parameter",
        "constant",
        "tuple",
        "get-tuple-element",
        "bitcast",
        "reshape",
        "broadcast",
        "iota",
        "after-all",
    )
)
# These go through what they read, and write little.
_READS = frozenset(("reduce", "reduce-window", "select-and-scatter"))

# What stands for the program's own edge and is no op.
_NOT_OPS = frozenset(("", "XLA_Args", "XLA_Retvals"))

_ELEMENT_BYTES = {3: 2, 7: 2, 10: 2, 16: 2, 4: 4, 8: 4, 11: 4, 5: 8, 9: 8, 12: 8, 15: 8, 18: 16}
"""By XLA's number of the type; all others take a byte, or stand for nothing."""
_NO_BYTES = frozenset((0, 14, 17))
_TUPLE = 13


def shared_modules(planes: Iterable[Any]) -> frozenset[str]:
    """Give the names that several programs have.

    A function compiled once for whole batches and once for an epoch's last one gives two programs
    of one module name, whose instructions share names too.
    """
    programs: Counter[str] = Counter()
    for plane in planes:
        # The plane lists a program as `module(program_id)`.
        programs.update(text(e.value.name).rpartition("(")[0] for e in plane.event_metadata)
    return frozenset(module for module, count in programs.items() if count > 1)


def instruction_name(stats: Mapping[str, Any], shared: frozenset[str]) -> Name:
    """Name the instruction that an event's stats tell of, by its module.

    A module whose name others share has its program's id behind it.
    """
    module = str(stats.get("hlo_module", ""))
    if module in shared and "program_id" in stats:
        module = f"{module}({stats['program_id']})"
    return Name(str(stats["hlo_op"]), module)


def read_members(
    plane: Any, ran: Iterable[Name], shared: frozenset[str]
) -> dict[Name, tuple[Member, ...]]:
    """Give the members of every instruction that ran, from the plane `/host:metadata`."""
    wanted: defaultdict[str, set[str]] = defaultdict(set)
    for name in ran:
        wanted[name.type].add(name.text)
    stats = Stats(plane, ("Hlo Proto",))
    members: dict[Name, tuple[Member, ...]] = {}
    for entry in plane.event_metadata:
        serialized = stats.read(entry.value.stats).get("Hlo Proto")
        if not isinstance(serialized, bytes):
            continue
        module = HloProto.FromString(serialized).hlo_module
        module_name = text(module.name)
        if module_name in shared:
            module_name = text(entry.value.name)
        if module_name in wanted:
            for instruction, parts in _Module(module).members(wanted[module_name]).items():
                members[Name(instruction, module_name)] = parts
    return members


class _Module:
    def __init__(self, module: Any) -> None:
        self.computations = {each.id: _Computation(each) for each in module.computations}

    def members(self, wanted: set[str]) -> dict[str, tuple[Member, ...]]:
        return {
            name: self._members(computation, instruction)
            for computation in self.computations.values()
            for instruction in computation.instructions.values()
            if (name := text(instruction.name)) in wanted
        }

    def _members(self, computation: "_Computation", instruction: Any) -> tuple[Member, ...]:
        own_path = computation.path(instruction)
        work: defaultdict[str, float] = defaultdict(float)
        for path, amount in self._work_within(instruction, frozenset()).items():
            work[path or own_path] += amount
        total = sum(work.values())
        if not total:
            return (Member(own_path, 1.0),)
        return tuple(Member(path, amount / total) for path, amount in work.items() if amount)

    def _work_within(self, instruction: Any, within: frozenset[int]) -> dict[str, float]:
        """Add up the work of what the instruction calls, by path; a path may be empty."""
        work: defaultdict[str, float] = defaultdict(float)
        if text(instruction.opcode) not in _CALLS:
            return work
        for ident in instruction.called_computation_ids:
            computation = self.computations.get(ident)
            if computation is None or ident in within:
                continue
            for inner in computation.instructions.values():
                if text(inner.opcode) in _CALLS:
                    for path, amount in self._work_within(inner, within | {ident}).items():
                        work[path or computation.path(inner)] += amount
                elif amount := computation.work(inner):
                    work[computation.path(inner)] += amount
        return work


class _Computation:
    def __init__(self, computation: Any) -> None:
        self.instructions = {each.id: each for each in computation.instructions}
        self.operands = {ident: list(each.operand_ids) for ident, each in self.instructions.items()}
        self.users: defaultdict[int, list[int]] = defaultdict(list)
        for user, operands in self.operands.items():
            for operand in operands:
                self.users[operand].append(user)

    def path(self, instruction: Any) -> str:
        """Give the path of the op it came from; borrow one where XLA added the instruction.

        A copy or a transposition that has no `op_name` was made for the sake of who uses it: so
        the nearest user lends its path, else the nearest operand. Empty where nobody has one.
        """
        own = text(instruction.metadata.op_name)
        if own not in _NOT_OPS:
            return own
        return self._borrow(instruction, self.users) or self._borrow(instruction, self.operands)

    def work(self, instruction: Any) -> float:
        """Give floating-point operations where they can be counted, else the bytes it makes."""
        opcode = text(instruction.opcode)
        if opcode in _FREE:
            return 0.0
        operands = [self.instructions.get(ident) for ident in instruction.operand_ids]
        shapes = [each.shape for each in operands if each is not None]
        outputs = prod(_sizes(instruction.shape))
        if opcode == "dot" and shapes:
            sizes = _sizes(shapes[0])
            contracted = instruction.dot_dimension_numbers.lhs_contracting_dimensions
            summed = prod(sizes[at] for at in contracted if 0 <= at < len(sizes))
            return float(2 * outputs * summed)
        if opcode == "convolution" and len(shapes) > 1:
            sizes = _sizes(shapes[1])
            feature: int = instruction.convolution_dimension_numbers.kernel_output_feature_dimension
            filters = sizes[feature] if 0 <= feature < len(sizes) else 1
            return 2 * outputs * prod(sizes) / filters
        if opcode in _READS and shapes:
            return _bytes(shapes[0])
        return _bytes(instruction.shape)

    def _borrow(self, instruction: Any, neighbours: Mapping[int, list[int]]) -> str:
        seen = {instruction.id}
        ring = [instruction]
        while ring:
            following = []
            for each in ring:
                for ident in neighbours.get(each.id, ()):
                    near = self.instructions.get(ident)
                    if near is None or ident in seen:
                        continue
                    path = text(near.metadata.op_name)
                    if path not in _NOT_OPS:
                        return path
                    seen.add(ident)
                    following.append(near)
            ring = following
        return ""


def _sizes(shape: Any) -> list[int]:
    # A dimension whose size is not known is negative.
    return [max(size, 1) for size in shape.dimensions]


def _bytes(shape: Any) -> int:
    if shape.element_type == _TUPLE:
        return sum(_bytes(each) for each in shape.tuple_shapes)
    if shape.element_type in _NO_BYTES:
        return 0
    return prod(_sizes(shape)) * _ELEMENT_BYTES.get(shape.element_type, 1)
