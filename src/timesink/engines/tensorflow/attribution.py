"""Each op's account, layer and phase, from the graph: who made it, what it feeds, what it assigns.

Takes a flat graph and the layers' scopes, gives op → Entry. The rules, strongest first:

1. An op in a layer's scope is the layer's: forward, or backward under `gradient_tape/`.
2. A sum of gradients belongs to the backward phase of the layer they come from; where those of
   several layers meet, to the layer that the sum goes on to: the one whose output branched.
3. Collectives, and the packing around them, are `collective`; what crosses devices is a copy.
4. What leads from gradients to the assignment of a layer's variable is that layer's update; what
   many layers' updates need is the update of no one layer. The variable's layer is the one that
   reads it in the forward phase: the optimizer's names are not looked at.
5. What the forward phase needs before the first layer is forward, of no layer.
6. All else is `loss`: losses, their gradients, and metrics.
"""

from collections.abc import Iterable, Mapping

from timesink.engines.tensorflow.graphs import PASSING, OpGraph
from timesink.ledger.opmap import CALLS, COPIES, GRADIENT, LAYER, Share

SUMS = frozenset({"AddN", "Add", "AddV2", "_MklAddN"})
HANDLES = frozenset({"_Arg", "Placeholder", "VarHandleOp"})
STORES = frozenset({"_Arg", "Placeholder", "VarHandleOp", "Const", "_Retval", "NoOp"})


class Attribution:
    """The rules applied to one graph, step by step."""

    def __init__(self, graph: OpGraph, scopes: Mapping[str, str]) -> None:
        self.graph, self.scopes = graph, scopes
        self.nodes = graph.nodes
        self.feeds = graph.consumers()
        self._roots = {scope.partition("/")[0] for scope in scopes}
        self._found: dict[str, str | None] = {}
        self.shares: dict[int, Share] = {}

    def run(self) -> dict[int, Share]:
        """Give each op's share, by its number in the graph."""
        self._by_scope()
        self._gradient_sums()
        self._collectives_and_copies()
        self._updates()
        self._before_the_layers()
        for number, node in enumerate(self.nodes):
            if number not in self.shares and node.op not in STORES:
                self.shares[number] = Share("runtime" if node.op in CALLS else "loss")
        return self.shares

    def layer_of(self, path: str) -> str | None:
        """Find the innermost layer in whose scope an op was made."""
        parts = path.split("/")
        for start, part in enumerate(parts):
            if part not in self._roots:
                continue
            for end in range(len(parts), start, -1):
                layer = self.scopes.get("/".join(parts[start:end]))
                if layer is not None:
                    return layer
        return None

    def _by_scope(self) -> None:
        for number, node in enumerate(self.nodes):
            if node.op in CALLS:
                continue
            place = node.name.rpartition("/")[0]
            if place not in self._found:
                self._found[place] = self.layer_of(place)
            layer = self._found[place]
            if layer is not None:
                backward = GRADIENT in node.name
                self.shares[number] = Share(LAYER, layer, "backward" if backward else "forward")
            elif "IteratorGetNext" in node.op:
                self.shares[number] = Share("input_wait")

    def _is_backward(self, number: int) -> bool:
        share = self.shares.get(number)
        if share is not None:
            return share.phase == "backward"
        return GRADIENT in self.nodes[number].name

    def _gradient_sums(self) -> None:
        """Charge a sum of gradients to the layer whose output's, or whose weights', they are."""
        sums = {
            number
            for number, node in enumerate(self.nodes)
            if number not in self.shares and node.op in SUMS and node.inputs
        }
        changed = True
        while changed and sums:
            changed = False
            for number in sorted(sums, reverse=True):
                inputs = self.nodes[number].inputs
                if not all(self._is_backward(source) for source in inputs):
                    continue
                meeting = {self.shares[s].layer for s in inputs if s in self.shares}
                one = next(iter(meeting)) if len(meeting) == 1 else None
                layer = (
                    one
                    or self._next_layer(number)
                    or next(iter(sorted(filter(None, meeting))), None)
                )
                if layer is not None:
                    self.shares[number] = Share(LAYER, layer, "backward")
                    sums.discard(number)
                    changed = True

    def _next_layer(self, number: int) -> str | None:
        """Give the layer whose backward phase takes this value, across ops that pass it on."""
        seen, frontier = {number}, [number]
        while frontier:
            following: list[int] = []
            for current in frontier:
                for consumer in self.feeds[current]:
                    share = self.shares.get(consumer)
                    if share is not None and share.phase == "backward":
                        return share.layer
                    if consumer not in seen and self.nodes[consumer].op in PASSING | SUMS:
                        seen.add(consumer)
                        following.append(consumer)
            frontier = following
        return None

    def _collectives_and_copies(self) -> None:
        reduces = [n for n, node in enumerate(self.nodes) if _is_collective(node.op)]
        for number in reduces:
            self.shares[number] = Share("collective")
        # Gradients are packed into one tensor before they are reduced, and unpacked after.
        for number in self._upstream(reduces):
            if self._touches_gradients(number):
                self.shares[number] = Share("collective")
        for number, node in enumerate(self.nodes):
            if number in self.shares or not node.op.startswith(("_Send", "_Recv", "_Host")):
                continue
            away = node.device is not None and not node.device.startswith("CPU:0")
            inward = away == ("Recv" in node.op)
            self.shares[number] = Share("host_to_device" if inward else "device_to_host")

    def _touches_gradients(self, number: int) -> bool:
        return any(
            self._is_backward(source) or self.shares.get(source) == Share("collective")
            for source in self.nodes[number].inputs
        )

    def _updates(self) -> None:
        """Go from each assignment back to the gradient.

        An optimizer's slots (momentum, second moments) are variables too: what a layer's update
        reads belongs to that layer, and so does the assignment of it, and what that one reads.
        """
        owner: dict[int, set[str]] = {
            variable: {layer} for variable, layer in self._variable_layers().items()
        }
        assigns = [
            (number, self._variable(node.inputs[0]))
            for number, node in enumerate(self.nodes)
            if number not in self.shares and _assigns(node.op) and node.inputs
        ]
        reached: dict[int, set[str]] = {}
        changed = True
        while changed:
            changed = False
            for number, variable in assigns:
                layers = owner.get(variable, set()) - reached.get(number, set())
                if not layers:
                    continue
                changed = True
                for upstream in [number, *self._upstream([number])]:
                    reached.setdefault(upstream, set()).update(layers)
                    for source in self.nodes[upstream].inputs:
                        read = self._variable(source)
                        if self.nodes[read].op in HANDLES:
                            owner.setdefault(read, set()).update(layers)
        collective = {n for n, share in self.shares.items() if share.account == "collective"}
        for number, layers in reached.items():
            before = {
                self.shares[source].layer
                for source in self.nodes[number].inputs
                if self._is_backward(source) and source in self.shares
            }
            if len(layers) == 1 or len(before) == 1:
                layer = next(iter(layers if len(layers) == 1 else before))
                self.shares[number] = Share(LAYER, layer, "update")
            elif collective.intersection(self.nodes[number].inputs):
                self.shares[number] = Share("collective")
            else:
                self.shares[number] = Share(LAYER, None, "update")
        # The count of steps feeds nothing; it is known by depending on nothing but itself.
        for number, _ in assigns:
            sources = self._upstream([number])
            if number not in self.shares and not any(
                source in self.shares for each in sources for source in self.nodes[each].inputs
            ):
                for each in [number, *sources]:
                    self.shares[each] = Share(LAYER, None, "update")

    def _variable_layers(self) -> dict[int, str]:
        """Give each variable's layer: the one whose forward phase reads it."""
        owner: dict[int, str] = {}
        for number, share in self.shares.items():
            if share.phase == "forward" and share.layer is not None:
                for source in self.nodes[number].inputs:
                    variable = self._variable(source)
                    if self.nodes[variable].op in HANDLES:
                        owner.setdefault(variable, share.layer)
        return owner

    def _variable(self, number: int) -> int:
        """Follow a resource to where it enters the graph."""
        for _ in range(64):
            node = self.nodes[number]
            if node.op not in PASSING or not node.inputs:
                break
            number = node.inputs[0]
        return number

    def _upstream(self, numbers: Iterable[int]) -> list[int]:
        """Give all ops without a share that lead to these, as far as ops that have one."""
        found: dict[int, None] = {}
        frontier = list(numbers)
        while frontier:
            for source in self.nodes[frontier.pop()].inputs:
                node, share = self.nodes[source], self.shares.get(source)
                if source in found or node.op in STORES or GRADIENT in node.name:
                    continue
                if share is None or share.account in COPIES:
                    found[source] = None
                    frontier.append(source)
        return [number for number in found if number not in self.shares]

    def _before_the_layers(self) -> None:
        forward = [n for n, share in self.shares.items() if share.phase == "forward"]
        for number in self._upstream(forward):
            self.shares[number] = Share(LAYER, None, "forward")


def _is_collective(op: str) -> bool:
    return "Collective" in op or "Nccl" in op


def _assigns(op: str) -> bool:
    return op.startswith(("Assign", "ResourceApply", "ResourceScatter", "ResourceSparseApply")) or (
        "FusedApply" in op
    )
