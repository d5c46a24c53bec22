"""Ops that were fused: whose they are, and by how much, from the graph before and after.

The optimized graph holds one op where the traced one had several; it carries the last one's name.
What it swallowed are the traced ops above that name which the optimized graph no longer has.
"""

import math
from collections.abc import Mapping, Sequence

from timesink.engines.tensorflow.graphs import PASSING, Node, OpGraph
from timesink.ledger.opmap import Entry, Share

ANCHORS = frozenset(
    {"Conv2D", "Conv3D", "DepthwiseConv2dNative", "MatMul", "BatchMatMulV2", "FusedBatchNormV3"}
)
"""Ops whose work others are fused into."""

TAILS = frozenset(
    {"BiasAdd", "Add", "AddV2", "Relu", "Relu6", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Gelu"}
)
FREE = PASSING | {"Const", "Reshape", "Squeeze", "ExpandDims", "Shape", "ReadVariableOp", "NoOp"}
LONGEST = 64
"""Ops in one fusion; more means that something else happened to the graph."""
SMALLEST = 1e-4
"""A part of a fusion below this is not told apart."""


def fused_entries(
    optimized: OpGraph,
    optimized_shares: Mapping[int, Share],
    traced: OpGraph,
    traced_shares: Mapping[int, Share],
) -> dict[str, Entry]:
    """Give an entry for each optimized op that stands for traced ops of several layers."""
    entries: dict[str, Entry] = {}
    swallowed_after = _swallowed_activations(optimized, traced)
    for number in optimized_shares:
        node = optimized.nodes[number]
        prefix, last = _find(traced, node.name)
        if last is None:
            continue
        after = swallowed_after.get(number)
        if _plain(node.op) == traced.nodes[last].op and after is None:
            continue
        members = _swallowed(optimized, traced, prefix, last)
        if after is not None:
            members.append(after)
        shares = split(traced, members, traced_shares)
        if len(shares) > 1 or (shares and shares[0] != optimized_shares[number]):
            entries[node.name] = Entry(shares, node.device)
    return entries


def likely_fusions(traced: OpGraph, traced_shares: Mapping[int, Share]) -> dict[str, Entry]:
    """Give the entry that an op would have if it was fused with what stands before it.

    For traces of which no optimized graph was kept: that an op was fused is then seen from the
    type of its events. The key is the op's path and `:fused`.
    """
    entries: dict[str, Entry] = {}
    for number in traced_shares:
        if traced.nodes[number].op not in TAILS:
            continue
        members = _chain_to_anchor(traced, number)
        shares = split(traced, members, traced_shares)
        if members and (len(shares) > 1 or shares[0] != traced_shares[number]):
            node = traced.nodes[number]
            entries[f"{node.name}:fused"] = Entry(shares, node.device)
    return entries


def split(graph: OpGraph, members: Sequence[int], shares: Mapping[int, Share]) -> tuple[Share, ...]:
    """Share one op's time among its members' layers, by floating-point operations."""
    work: dict[Share, float] = {}
    for number in members:
        share = shares.get(number)
        if share is not None:
            work[share] = work.get(share, 0.0) + operations(graph, number)
    total = sum(work.values())
    if total == 0:
        return tuple(work)[:1]
    kept = {share: each / total for share, each in work.items() if each / total >= SMALLEST}
    total = sum(kept.values())
    return tuple(
        Share(share.account, share.layer, share.phase, each / total) for share, each in kept.items()
    )


def operations(graph: OpGraph, number: int) -> float:
    """Count an op's floating-point operations for one image; 0 where it only moves or renames."""
    node = graph.nodes[number]
    if node.op in FREE or not node.shapes:
        return 0.0
    elements = float(math.prod(node.shapes[0]))
    inputs = [graph.nodes[source] for source in node.inputs]
    if node.op in ("Conv2D", "Conv3D") and len(inputs) > 1:
        return 2 * elements * _elements(inputs[1]) / max(_last(inputs[1]), 1)
    if node.op == "DepthwiseConv2dNative" and len(inputs) > 1:
        return 2 * elements * math.prod((inputs[1].shapes or ((1,),))[0][:2])
    if node.op in ("MatMul", "BatchMatMulV2") and len(inputs) > 1:
        return 2 * elements * _elements(inputs[1]) / max(node.shapes[0][-1], 1)
    return elements


def _elements(node: Node) -> float:
    return float(math.prod(node.shapes[0])) if node.shapes else 1.0


def _last(node: Node) -> int:
    return node.shapes[0][-1] if node.shapes and node.shapes[0] else 1


def _plain(op: str) -> str:
    """Give the op that oneDNN's own version of it stands for."""
    for prefix in ("_MklNative", "_Mkl"):
        op = op.removeprefix(prefix)
    return op.removesuffix("WithBias")


def _find(traced: OpGraph, name: str) -> tuple[str, int | None]:
    """Find an optimized op in the traced graph; inlining put something in front of its name."""
    path = name
    while path:
        number = traced.index.get(path)
        if number is not None:
            return name[: len(name) - len(path)], number
        path = path.partition("/")[2]
    return "", None


def _swallowed(optimized: OpGraph, traced: OpGraph, prefix: str, last: int) -> list[int]:
    members, frontier = [last], [last]
    while frontier and len(members) < LONGEST:
        for source in traced.nodes[frontier.pop()].inputs:
            node = traced.nodes[source]
            gone = prefix + node.name not in optimized.index and node.name not in optimized.index
            if gone and source not in members and node.op != "Const":
                members.append(source)
                frontier.append(source)
    return members


def _swallowed_activations(optimized: OpGraph, traced: OpGraph) -> dict[int, int]:
    """Find normalisations that do their activation too: it was left behind as an Identity."""
    found: dict[int, int] = {}
    consumers: list[list[int]] | None = None
    for number, node in enumerate(optimized.nodes):
        if node.activation in ("", "Identity"):
            continue
        consumers = consumers or optimized.consumers()
        for consumer in consumers[number]:
            _, before = _find(traced, optimized.nodes[consumer].name)
            if before is not None and traced.nodes[before].op == node.activation:
                found[number] = before
    return found


def _chain_to_anchor(traced: OpGraph, number: int) -> list[int]:
    members, frontier = [number], [number]
    while frontier and len(members) < LONGEST:
        for source in traced.nodes[frontier.pop()].inputs:
            node = traced.nodes[source]
            if node.op in ANCHORS:
                return [*members, source]
            if node.op in TAILS | PASSING and source not in members:
                members.append(source)
                frontier.append(source)
    return []
