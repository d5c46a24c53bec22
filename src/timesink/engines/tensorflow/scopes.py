"""Which name scope is which layer's: recorded while Keras traces, because names alone mislead.

Keras opens a layer's scope anew each time it is called, and TensorFlow makes each scope unique:
`conv` may become `conv_1` while a layer that is called `conv_1` becomes `conv_1_2`.
"""

import threading
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

SCRATCH = "scratch_graph"
"""How Keras names the graphs in which it only finds out shapes."""


@dataclass
class TracedFunction:
    """A tf.function's graph, and the layers that were called while it was traced."""

    graph: Any
    layers: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    """Scope → layers from the outermost model to the layer itself."""

    @property
    def name(self) -> str:
        """The function's name in Python."""
        return str(self.graph.name)

    def inputs(self) -> str:
        """Say what it was traced for: `float32[16,96,96,3] int32[16]`."""
        shown = []
        for tensor in self.graph.inputs:
            if tensor.dtype.name not in ("resource", "variant"):
                shape = ",".join("?" if size is None else str(size) for size in tensor.shape)
                shown.append(f"{tensor.dtype.name}[{shape}]")
        return " ".join(shown)

    def layer_names(self) -> tuple[dict[str, str], dict[str, str]]:
        """Give scope → layer, and layer → type, in the order in which layers were called.

        A layer is named from the outermost model inwards. A model that holds everything says
        nothing and is left out, except for what it does itself.
        """
        paths = {tuple(map(id, path)): path for path in self.layers.values()}
        outermost = {path[0] for path in paths}
        whole = len(outermost) == 1 and any(len(path) > 1 for path in paths)
        named: dict[tuple[int, ...], str] = {}
        owner: dict[str, int] = {}
        types: dict[str, str] = {}
        for key, path in paths.items():
            inner = path[1:] if whole and len(path) > 1 else path
            plain = name = "/".join(layer.name for layer in inner)
            number = 1
            while owner.setdefault(name, key[-1]) != key[-1]:
                number += 1
                name = f"{plain} ({number})"
            named[key] = name
            types[name] = type(path[-1]).__name__
        return {scope: named[tuple(map(id, path))] for scope, path in self.layers.items()}, types


class _Stack(threading.local):
    """The layers that are being called now; each replica is traced by a thread of its own."""

    def __init__(self) -> None:
        self.layers: list[Any] = []


class ScopeRecorder:
    """A hook in Keras that notes every layer called in a graph, from `start` to `stop`."""

    def __init__(self) -> None:
        self.functions: list[TracedFunction] = []
        self._stack = _Stack()
        self._original: Any = None
        self._installed: Any = None

    def start(self) -> None:
        """Install the hook; outside of tracing it only looks and passes on."""
        original = self._original = keras.layers.Layer._open_name_scope

        def open_name_scope(layer: Any) -> Any:
            opened = original(layer)
            return opened if tf.executing_eagerly() else _NotedScope(self, layer, opened)

        self._installed = open_name_scope
        keras.layers.Layer._open_name_scope = open_name_scope

    def stop(self) -> None:
        """Take the hook away, unless somebody else put one on top of it."""
        if keras.layers.Layer._open_name_scope is self._installed:
            keras.layers.Layer._open_name_scope = self._original

    def entered(self, layer: Any) -> None:
        """Note that a layer's scope was opened in the graph being traced."""
        stack = self._stack.layers
        stack.append(layer)
        scope = tf.get_current_name_scope()
        graph = tf.compat.v1.get_default_graph()
        scratch = graph.name.startswith(SCRATCH)
        while isinstance(outer := getattr(graph, "outer_graph", None), type(graph)):
            graph = outer
            scratch = scratch or graph.name.startswith(SCRATCH)
        if not scope or scratch:
            return
        function = next((each for each in self.functions if each.graph is graph), None)
        if function is None:
            function = TracedFunction(graph)
            self.functions.append(function)
        function.layers[scope] = tuple(
            each for i, each in enumerate(stack) if i == 0 or each is not stack[i - 1]
        )

    def left(self) -> None:
        """Note that the innermost scope was closed."""
        self._stack.layers.pop()


class _NotedScope:
    """A layer's scope, noted once it is open."""

    def __init__(self, recorder: ScopeRecorder, layer: Any, opened: Any) -> None:
        self._recorder, self._layer, self._opened = recorder, layer, opened

    def __enter__(self) -> Any:
        entered = self._opened.__enter__()
        self._recorder.entered(self._layer)
        return entered

    def __exit__(self, *error: Any) -> Any:
        self._recorder.left()
        return self._opened.__exit__(*error)
