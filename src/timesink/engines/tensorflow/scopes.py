"""Which name scope is which layer's: recorded while Keras traces, because names alone mislead.

Keras opens a layer's scope anew each time it is called, and TensorFlow makes each scope unique:
`conv` may become `conv_1` while a layer that is called `conv_1` becomes `conv_1_2`.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import record as tape

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
        taken = [
            *self.graph.inputs,
            # Keras' own function is given an iterator, and takes its batch itself.
            *(
                tensor
                for op in self.graph.get_operations()
                if op.type == "IteratorGetNext"
                for tensor in op.outputs
            ),
        ]
        return " ".join(
            _described(tensor)
            for tensor in taken
            if tensor.dtype.name not in ("resource", "variant")
        )

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


def _described(tensor: Any) -> str:
    if tensor.shape.rank is None:
        return f"{tensor.dtype.name}[…]"
    shape = ",".join("?" if size is None else str(size) for size in tensor.shape)
    return f"{tensor.dtype.name}[{shape}]"


class _Stack(threading.local):
    """The layers that are being called now; each replica is traced by a thread of its own."""

    def __init__(self) -> None:
        self.layers: list[Any] = []


class ScopeRecorder:
    """A hook in Keras that notes every layer called in a graph, from `start` to `stop`."""

    def __init__(self) -> None:
        self.functions: list[TracedFunction] = []
        self._stack = _Stack()
        self._gradients = _CustomGradients()
        self._hook = _Hook(keras.layers.Layer, "_open_name_scope")

    def start(self) -> None:
        """Install the hook; outside of tracing it only looks and passes on."""
        hook = self._hook

        def open_name_scope(layer: Any) -> Any:
            opened = hook.original(layer)
            if hook.over or tf.executing_eagerly():
                return opened
            return _NotedScope(self, layer, opened)

        hook.install(open_name_scope)
        self._gradients.start()

    def stop(self) -> None:
        """Take the hook away."""
        self._hook.remove()
        self._gradients.stop()

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


class _CustomGradients:
    """A hook in TensorFlow's tape that names the ops of custom gradients as it names all others.

    The gradient of an op is made in the scope `gradient_tape/<the op's scope>`; that of a
    `tf.custom_gradient` (`tf.nn.silu` is one) in none, and nothing says whose it is (TensorFlow
    2.21, `_gradient_function` in backprop.py). The interface is private: where it is missing,
    such gradients stay without a layer.
    """

    def __init__(self) -> None:
        self._hook = _Hook(tape, "record_operation")

    def start(self) -> None:
        hook = self._hook
        if not hasattr(tape, "record_operation"):
            return

        def record_operation(
            op_type: Any,
            output_tensors: Any,
            input_tensors: Any,
            backward_function: Any,
            *rest: Any,
            **named: Any,
        ) -> Any:
            if not (hook.over or tf.executing_eagerly()):
                backward_function = _in_scope(backward_function, tf.get_current_name_scope())
            return hook.original(
                op_type, output_tensors, input_tensors, backward_function, *rest, **named
            )

        hook.install(record_operation)

    def stop(self) -> None:
        self._hook.remove()


class _Hook:
    """A function put in the place of another's; two may be taken away in any order."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self.original: Any = None
        self.over = False

    def install(self, function: Any) -> None:
        """Put it there."""
        self.original = getattr(self._owner, self._name)
        function.hook = self
        setattr(self._owner, self._name, function)

    def remove(self) -> None:
        """Take it away, with those below it that were over but could not go."""
        self.over = True
        while (hook := getattr(getattr(self._owner, self._name, None), "hook", None)) and hook.over:
            setattr(self._owner, self._name, hook.original)


def _in_scope(backward: Callable[..., Any], scope: str) -> Callable[..., Any]:
    # The last slash makes it the whole name and not one within what is open.
    whole = f"gradient_tape/{scope}/" if scope else "gradient_tape/"

    def scoped(*gradients: Any) -> Any:
        with tf.name_scope(whole):
            return backward(*gradients)

    return scoped
