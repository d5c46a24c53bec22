"""The map from op to layer of what was traced and run, made once while the model is at hand."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorflow.python.eager import context

from timesink.engines.recorder import Recorder
from timesink.engines.tensorflow.attribution import Attribution
from timesink.engines.tensorflow.fusion import fused_entries, likely_fusions
from timesink.engines.tensorflow.graphs import OpGraph, flatten, join_partitions
from timesink.engines.tensorflow.scopes import ScopeRecorder, TracedFunction
from timesink.files import write_atomically
from timesink.ledger.opmap import GRADIENT, LAYER, Entry, OpMap, Share, read_opmap


class OptimizedGraphs:
    """The graphs as they are run, which TensorFlow gives only while it first runs them.

    The interface is private: where it is missing, the traced graphs must do.
    """

    def __init__(self) -> None:
        self._functions: list[list[Any]] = []

    def start(self) -> None:
        """Begin to collect."""
        try:
            context.context().enable_graph_collection()
        except AttributeError:
            return

    def stop(self) -> None:
        """Keep what was collected, and collect no more."""
        try:
            metadata = context.context().export_run_metadata()
            context.context().disable_graph_collection()
        except (AttributeError, RuntimeError):
            return
        if metadata is not None:
            self._functions += [
                list(function.partition_graphs) for function in metadata.function_graphs
            ]

    def joined(self, smallest: int = 16) -> list[OpGraph]:
        """Give each function's graph; eager ops run as tiny functions, which are left out."""
        return [
            join_partitions(partitions)
            for partitions in self._functions
            if sum(len(partition.node) for partition in partitions) >= smallest
        ]


class ModelWatch:
    """Looks on while a model's functions are traced and first run, then writes opmap.json."""

    def __init__(self, file: Path, recorder: Recorder) -> None:
        self.file, self.recorder = file, recorder
        self.scopes = ScopeRecorder()
        self._graphs = OptimizedGraphs()
        self._done = False

    def start(self) -> None:
        """Begin; functions that were traced before are not seen."""
        self.scopes.start()
        self._graphs.start()

    def finish(self) -> None:
        """Write the map. A failure of it fails no training: names must then do."""
        if self._done:
            return
        self._done = True
        self._graphs.stop()
        try:
            if self.scopes.functions:
                opmap = build_opmap(self.scopes.functions, self._graphs)
                write_atomically(self.file, self._with_earlier(opmap).to_json())
        except Exception as error:
            self.recorder.write("profile_failed", reason=f"opmap.json: {error!r}"[:300])

    def _with_earlier(self, opmap: OpMap) -> OpMap:
        """Keep what an earlier process of the run knew: it may have trained another model."""
        if self.recorder.process == 1 or not self.file.exists():
            return opmap
        earlier = read_opmap(self.file)
        return OpMap(
            {**earlier.entries, **opmap.entries}, {**earlier.layers, **opmap.layers}, opmap.origin
        )

    def stop(self) -> None:
        """Look on no more."""
        self.finish()
        self.scopes.stop()


def build_opmap(functions: Sequence[TracedFunction], optimized: OptimizedGraphs) -> OpMap:
    """Make the map for the functions that train; of all of them where none has gradients."""
    flat = [(function, flatten(_definition(function.graph))) for function in functions]
    training = [each for each in flat if any(GRADIENT in node.name for node in each[1].nodes)]
    graphs = optimized.joined()
    entries: dict[str, Entry] = {}
    layers: dict[str, str] = {}
    run_as_optimized = False
    for function, traced in training or flat:
        scopes, types = function.layer_names()
        layers |= types
        attribution = Attribution(traced, scopes)
        shares = attribution.run()
        entries |= likely_fusions(traced, shares)
        entries |= _entries(traced, shares)
        entries |= _calls(traced, attribution)
        for graph in graphs:
            attribution = Attribution(graph, scopes)
            if not any(attribution.layer_of(node.name) for node in graph.nodes):
                continue
            run_as_optimized = True
            found = attribution.run()
            entries |= _calls(graph, attribution)
            entries |= _entries(graph, found)
            entries |= fused_entries(graph, found, traced, shares)
    return OpMap(entries, layers, "optimized graph" if run_as_optimized else "traced graph")


def _definition(graph: Any) -> Any:
    return graph.as_graph_def(add_shapes=True)


def _entries(graph: OpGraph, shares: dict[int, Share]) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    for number, share in sorted(shares.items(), reverse=True):
        node = graph.nodes[number]
        entries[node.name] = Entry((share,), node.device)
        if node.inner:
            entries.setdefault(node.inner, entries[node.name])
    return entries


def _calls(graph: OpGraph, attribution: Attribution) -> dict[str, Entry]:
    """Give an entry to each function that layers call: XLA names what it compiled by it alone.

    Keras compiles some convolutions that way. Where several layers call one function, nobody can
    tell whose turn it was: they share equally.
    """
    callers: dict[str, list[Share]] = {}
    for node in graph.nodes:
        layer = attribution.layer_of(node.name) if node.called else None
        if layer is not None:
            phase = "backward" if GRADIENT in node.name else "forward"
            for function in node.called:
                callers.setdefault(function.strip("_"), []).append(Share(LAYER, layer, phase))
    return {
        f"{function}:": Entry(
            tuple(
                Share(share.account, share.layer, share.phase, shares.count(share) / len(shares))
                for share in dict.fromkeys(shares)
            )
        )
        for function, shares in callers.items()
    }
