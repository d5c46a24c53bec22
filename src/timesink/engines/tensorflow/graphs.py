"""TensorFlow's graphs as one flat graph of ops: as traced, and as optimized and really run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timesink.ledger.opmap import CALLS

PASSING = frozenset({"Identity", "IdentityN", "Switch", "Merge", "Enter", "Exit", "NextIteration"})
"""Ops that hand a value on unchanged."""


@dataclass
class Node:
    """One op."""

    name: str
    op: str
    inputs: list[int] = field(default_factory=list)
    """Data inputs, as indices of nodes."""
    device: str | None = None
    shapes: tuple[tuple[int, ...], ...] = ()
    """Of the outputs; an unknown dimension is 1. Empty where nothing is known."""
    inner: str = ""
    """Of an inlined op, `function:name`, its name within its own function: XLA calls it that."""
    called: tuple[str, ...] = ()
    """Functions that it calls."""
    activation: str = ""
    """Of a fused normalisation, the activation that it swallowed."""


@dataclass
class OpGraph:
    """Ops and who feeds whom."""

    nodes: list[Node] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    def add(self, node: Node) -> int:
        """Append a node; of two with one name the first is found by it."""
        self.nodes.append(node)
        return self.index.setdefault(node.name, len(self.nodes) - 1)

    def consumers(self) -> list[list[int]]:
        """Give for each node the nodes it feeds."""
        fed: list[list[int]] = [[] for _ in self.nodes]
        for number, node in enumerate(self.nodes):
            for source in node.inputs:
                fed[source].append(number)
        return fed


def join_partitions(partitions: Iterable[Any]) -> OpGraph:
    """Make one graph of a function's parts, one a device, as they were run (GraphDefs).

    Everything is inlined there. What crosses devices goes through a _Send and a _Recv.
    """
    graph = OpGraph()
    sends: dict[str, int] = {}
    receives: list[tuple[int, str]] = []
    pending: list[tuple[int, dict[str, int], Sequence[str]]] = []
    for partition in partitions:
        local: dict[str, int] = {}
        for definition in partition.node:
            node = Node(
                definition.name,
                definition.op,
                device=_short_device(definition.device),
                activation=definition.attr["activation_mode"].s.decode()
                if "activation_mode" in definition.attr
                else "",
            )
            node.called = tuple(_called(definition))
            graph.nodes.append(node)
            number = len(graph.nodes) - 1
            graph.index.setdefault(node.name, number)
            local[node.name] = number
            pending.append((number, local, definition.input))
            if "tensor_name" in definition.attr:
                tensor = definition.attr["tensor_name"].s.decode()
                if "Send" in definition.op:
                    sends[tensor] = number
                elif "Recv" in definition.op:
                    receives.append((number, tensor))
    for number, local, inputs in pending:
        graph.nodes[number].inputs = [
            local[source] for source in map(_source, inputs) if source in local
        ]
    for number, tensor in receives:
        if tensor in sends:
            graph.nodes[number].inputs.append(sends[tensor])
    return graph


def flatten(definition: Any) -> OpGraph:
    """Make one graph of a traced function (a GraphDef with its library), calls inlined.

    Inlined ops are named as Grappler would: the call's name, a slash, the op's name.
    """
    functions = {function.signature.name: function for function in definition.library.function}
    graph = OpGraph()
    _inline(graph, functions, definition.node, ("", ""), {}, depth=0)
    return graph


def _inline(
    graph: OpGraph,
    functions: Mapping[str, Any],
    definitions: Iterable[Any],
    within: tuple[str, str],
    arguments: Mapping[str, int],
    depth: int,
) -> dict[str, int]:
    """Add the nodes of a call (its name and its function's) to a graph; gives their numbers."""
    prefix, own_function = within
    local = dict(arguments)
    pending: list[tuple[int, Any]] = []
    for definition in definitions:
        local[definition.name] = len(graph.nodes)
        node = Node(
            prefix + definition.name,
            definition.op,
            device=_short_device(definition.device),
            shapes=_shapes(definition),
            inner=f"{own_function}:{definition.name}" if own_function else "",
            called=tuple(_called(definition)),
        )
        pending.append((len(graph.nodes), definition))
        graph.nodes.append(node)
        graph.index.setdefault(node.name, local[definition.name])
    for number, definition in pending:
        node = graph.nodes[number]
        node.inputs = [
            local[source] for source in map(_source, definition.input) if source in local
        ]
        if depth > 32:  # functions may call themselves
            continue
        returned: list[int] = []
        for called in node.called:
            function = functions.get(called)
            if function is None:
                continue
            # If and Case take the decision first, then what they pass on.
            passed = node.inputs[1:] if definition.op.endswith(("If", "Case")) else node.inputs
            names = [argument.name for argument in function.signature.input_arg]
            inner = _inline(
                graph,
                functions,
                function.node_def,
                (node.name + "/", called.strip("_")),
                dict(zip(names, passed, strict=False)),
                depth + 1,
            )
            returned += [
                inner[source] for source in map(_source, function.ret.values()) if source in inner
            ]
        # What a call was given is read inside it; the call itself gives what that returned.
        node.inputs = returned or node.inputs
    return local


def _called(definition: Any) -> Iterator[str]:
    if definition.op not in CALLS:
        return
    for attribute in definition.attr.values():
        if attribute.HasField("func"):
            yield attribute.func.name
        for function in attribute.list.func:
            yield function.name


def _source(reference: str) -> str:
    """Give the node of `node`, `node:1` or `node:output:0`; a control input has none."""
    return "" if reference.startswith("^") else reference.partition(":")[0]


def _short_device(device: str) -> str | None:
    """Make `CPU:1` of `/job:localhost/replica:0/task:0/device:CPU:1`."""
    return device.rpartition("device:")[2] or None


def _shapes(definition: Any) -> tuple[tuple[int, ...], ...]:
    if "_output_shapes" not in definition.attr:
        return ()
    return tuple(
        () if shape.unknown_rank else tuple(max(dim.size, 1) for dim in shape.dim)
        for shape in definition.attr["_output_shapes"].list.shape
    )
