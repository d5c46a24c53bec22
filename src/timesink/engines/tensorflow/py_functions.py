"""Which Python a graph calls: the functions behind `tf.py_function`, and where they are written."""

import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PY_FUNCTIONS = frozenset({"EagerPyFunc", "PyFunc", "PyFuncStateless"})


def py_functions(graphs: Iterable[Any]) -> dict[str, str]:
    """Give the name of each op that calls Python, and the place of what it calls."""
    places: dict[str, str] = {}
    for graph in graphs:
        for node in _nodes(graph.as_graph_def()):
            if node.op in PY_FUNCTIONS and node.name not in places:
                called = _called(node.attr["token"].s)
                if called is not None:
                    places[node.name] = f"py_function {place_of(called)}"
    return places


def place_of(called: Any) -> str:
    """Name a function, or a class, by where it is written: `train.py:12 augment`."""
    name = getattr(called, "__name__", None) or type(called).__name__
    try:
        plain = inspect.unwrap(called)
        code = getattr(plain, "__code__", None) or getattr(plain, "gi_code", None)
        if code is not None:
            file, line = code.co_filename, code.co_firstlineno
        else:
            kind = plain if inspect.isclass(plain) else type(plain)
            file, line = inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)[1]
    except (TypeError, OSError, ValueError):
        return str(name)
    return f"{Path(file).name}:{line} {name}" if file else str(name)


def _nodes(definition: Any) -> Iterator[Any]:
    yield from definition.node
    for function in definition.library.function:
        yield from function.node_def


def _called(token: bytes) -> Any:
    """Find the function; the registry is private, and where it is missing there is no name."""
    try:
        from tensorflow.python.ops import script_ops

        found = script_ops._py_funcs.get(token.decode())
    except (ImportError, AttributeError, UnicodeDecodeError):
        return None
    return getattr(found, "_func", found)
