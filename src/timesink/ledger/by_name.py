"""A map of ops from their names alone, for traces that came without one: the best that names say.

Keras names an op `<model>/<layer>/…`, its gradient `gradient_tape/<model>/<layer>/…`, and an
optimizer's op `<optimizer>/…`. Layers' names come out as the scopes that TensorFlow made of them;
the number that it put behind a name is taken off where no two names become one by that.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from timesink.ledger.opmap import GRADIENT, LAYER, Entry, OpMap, Share
from timesink.traces.events import Events, Kind

OPTIMIZERS = frozenset(
    {"sgd", "adam", "adamw", "adamax", "nadam", "rmsprop", "adagrad", "adadelta", "ftrl", "lion"}
    | {"lamb", "adafactor", "muon", "loss_scale_optimizer", "momentum"}
)
LOSSES = ("compile_loss", "loss", "losses", "compile_metrics", "metrics")
# What inlining a function puts in front of an op's own path.
INLINED = re.compile(
    r"^(?:(?:Stateful|Stateless)?PartitionedCall(?:_\d+)?|cluster\w*|XlaLaunch|replica_\d+"
    r"|(?:while|cond)(?:_\d+)?/(?:body|then|else|cond)/_\d+/(?:while|cond)(?:_\d+)?"
    r"|ArithmeticOptimizer|ConstantFolding)/"
)
# Scopes that a layer's own ops open; what follows is no layer.
INNER = frozenset(
    {"convolution", "batchnorm", "moments", "dropout", "stateless_dropout", "separable_conv2d"}
    | {"depthwise", "einsum", "split", "strided_slice", "add", "mul", "sub", "truediv"}
    | {"stateless_random_uniform", "random_uniform"}
)
NUMBERED = re.compile(r"^(.*?)_\d+$")
CONVOLUTION = re.compile(r"Conv\dD|DepthwiseConv|MatMul")


@dataclass(frozen=True)
class _Op:
    path: str
    type: str
    first_ns: int
    scope: tuple[str, ...]
    """Model, nested models, layer; empty where no layer is named."""
    backward: bool


def opmap_from_names(events: Events) -> OpMap:
    """Make a map for all ops of a trace."""
    ops = _ops(events)
    layers = _layer_names(dict.fromkeys(op.scope for op in ops if op.scope))
    entries = {op.path: Entry((_share(op, layers),), _device(op.path)) for op in ops}
    entries |= _fused_elsewhere(ops, layers)
    named = dict.fromkeys(layers.values(), "")
    return OpMap(entries, named, "names")


def _ops(events: Events) -> list[_Op]:
    """Read every op's name once, in the order in which they first ran."""
    inputs = np.array([line.input for line in events.lines], bool)
    ran = (events.kind == Kind.OP) & ~inputs[events.line]
    never = np.iinfo(np.int64).max
    first_ns = np.full(len(events.names), never)
    np.minimum.at(first_ns, events.name[ran], events.begin_ns[ran])
    order = np.argsort(first_ns, kind="stable")
    first = {
        (events.names[number].text, events.names[number].type): int(first_ns[number])
        for number in order[first_ns[order] < never]
    }
    for members in events.hlo.values():
        for member in members:
            first.setdefault((member.path, ""), 0)
    roots = _roots(path for path, _ in first)
    return [_read(path, op_type, begin_ns, roots) for (path, op_type), begin_ns in first.items()]


def _bare(path: str) -> str:
    while (match := INLINED.match(path)) is not None:
        path = path[match.end() :]
    return path


def _roots(paths: Iterable[str]) -> set[str]:
    """Find the models: what stands first in gradients' paths and is no loss."""
    roots = set()
    for path in paths:
        bare = _bare(path)
        if GRADIENT in bare:
            parts = _bare(bare.partition(f"{GRADIENT}/")[2]).split("/")
            if len(parts) > 2 and _plain(parts[0]) not in LOSSES:
                roots.add(parts[0])
    return roots


def _read(path: str, op_type: str, first_ns: int, roots: set[str]) -> _Op:
    bare = _bare(path)
    backward = f"{GRADIENT}/" in bare
    if backward:
        bare = _bare(bare.partition(f"{GRADIENT}/")[2])
    parts = bare.split("/")[:-1]
    scope: list[str] = []
    if parts and parts[0] in roots:
        scope.append(parts[0])
        # What stands first in a model is a layer, whatever it is called.
        for depth, part in enumerate(parts[1:]):
            if depth and (_plain(part) in INNER or _plain(part)[:1].isupper()):
                break
            scope.append(part)
    return _Op(path, op_type, first_ns, tuple(scope), backward)


def _plain(name: str) -> str:
    match = NUMBERED.match(name)
    return match[1] if match else name


def _layer_names(scopes: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """Name each scope, without the model around it and, where it is safe, without numbers."""
    scopes = list(scopes)
    single = len({scope[0] for scope in scopes}) <= 1
    inner = {scope: scope[1:] if single and len(scope) > 1 else scope for scope in scopes}
    plain: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for scope, parts in inner.items():
        plain.setdefault(tuple(map(_plain, parts)), []).append(scope)
    return {
        scope: "/".join(short if len(same) == 1 else inner[scope])
        for short, same in plain.items()
        for scope in sorted(same)
    }


def _device(path: str) -> str | None:
    """Tell the replica from the path; the device of the first is not said."""
    match = re.search(r"(?:^|/)replica_(\d+)/", path)
    return f"CPU:{match[1]}" if match else None


def _share(op: _Op, layers: Mapping[tuple[str, ...], str]) -> Share:
    if op.scope:
        return Share(LAYER, layers[op.scope], "backward" if op.backward else "forward")
    if "Collective" in op.type or "Nccl" in op.type:
        return Share("collective")
    if op.type.startswith(("_Send", "_Recv", "_HostSend", "_HostRecv")):
        return Share("host_to_device")
    bare = _bare(op.path)
    first = _plain(bare.partition("/")[0])
    if first.lower() in OPTIMIZERS or op.type.startswith(("ResourceApply", "ResourceSparse")):
        return Share(LAYER, None, "update")
    if op.type == "AddN" and "/" not in bare:
        return Share(LAYER, None, "backward")
    return Share("loss")


def _fused_elsewhere(ops: list[_Op], layers: Mapping[tuple[str, ...], str]) -> dict[str, Entry]:
    """Give fused convolutions back to the layers that lost theirs.

    A convolution fused with a later layer carries that one's name, and its own layer is left with
    a gradient and no forward op. Where there are as many of the ones as of the others, the n-th
    to run forward is the n-th from the end to run backward.
    """
    forward = {op.scope for op in ops if op.scope and not op.backward and _computes(op)}
    backward: dict[tuple[str, ...], int] = {}
    for op in ops:
        if op.scope and op.backward and _computes(op):
            backward[op.scope] = max(op.first_ns, backward.get(op.scope, op.first_ns))
    orphans = sorted(set(backward) - forward, key=lambda scope: -backward[scope])
    strangers = sorted(
        (
            op
            for op in ops
            if op.scope and not op.backward and "Fused" in op.type and op.scope not in backward
        ),
        key=lambda op: op.first_ns,
    )
    if len(orphans) != len(strangers):
        return {}
    return {
        op.path: Entry((Share(LAYER, layers[scope], "forward"),), _device(op.path))
        for op, scope in zip(strangers, orphans, strict=True)
    }


def _computes(op: _Op) -> bool:
    return CONVOLUTION.search(op.type) is not None
