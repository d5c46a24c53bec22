"""What a running `model.fit` does not tell its callbacks: its data, how many images, how far."""

import sys
from contextlib import suppress
from typing import Any

import tensorflow as tf

from timesink.engines.tensorflow.devices import device_names
from timesink.engines.tensorflow.py_functions import place_of

EXACT = 2**24
"""Up to here a float32, in which Keras counts, holds every whole number."""


def network_facts(model: Any, steps: int | None, epochs: int) -> dict[str, Any]:
    """Give what the journal says of the model and how it is trained."""
    strategy = getattr(model, "distribute_strategy", None) or tf.distribute.get_strategy()
    return {
        "network": model.name,
        "parameters": model.count_params() if model.built else None,
        "devices": device_names(strategy),
        "iterations": steps * epochs if steps else None,
        "steps_per_epoch": steps,
        "steps_per_execution": model.steps_per_execution,
        "epochs": epochs,
        "optimizer": type(model.optimizer).__name__ if model.optimizer is not None else None,
        "xla": bool(model.jit_compile),
        "eager": bool(model.run_eagerly),
        "precision": model.dtype_policy.name,
        "replicas": strategy.num_replicas_in_sync,
        "tensorflow": tf.__version__,
    }


def trace_anew(model: Any) -> bool:
    """Have a train function that was traced before traced again, for its graphs.

    Keras 3.15 hides the tf.function in the closure of a plain one.
    """
    function = model.train_function
    cells = getattr(function, "__closure__", None) or ()
    for each in (function, *(cell.cell_contents for cell in cells)):
        counted = getattr(each, "experimental_get_tracing_count", None)
        if counted is not None and counted():
            model.make_train_function(force=True)
            return True
    return False


class FitData:
    """Where the data of a `fit` come from, and how many images its steps take."""

    def __init__(self, model: Any, batch_size: int | None, steps: int | None) -> None:
        self._model, self._told = model, batch_size
        self._adapter = _adapter()
        self._fixed = _fixed_batch(self._adapter)
        self._last = _last_of_an_epoch(self._adapter, steps)
        self._position, self._counted = 0, 0.0

    @property
    def batch_size(self) -> int | None:
        """The images of a whole batch, where that is known."""
        return self._told or self._fixed or getattr(self._adapter, "batch_size", None)

    @property
    def source(self) -> str | None:
        """Name where batches come from: what a user passed to `fit`."""
        adapter = self._adapter
        if adapter is None:
            return None
        dataset = getattr(adapter, "py_dataset", None)
        if dataset is not None:
            method = getattr(type(dataset), "__getitem__", type(dataset))
            return f"PyDataset {type(dataset).__name__}, {place_of(method)}"
        generator = _generator_of(adapter)
        if generator is not None:
            return f"generator {place_of(generator)}"
        kind = type(adapter).__name__
        return SOURCES.get(kind, kind)

    def begin_epoch(self) -> None:
        """Note that Keras begins to count anew."""
        self._counted = 0.0

    def begin_step(self) -> None:
        """Note how many updates there were before an execution of several steps."""
        if self._model.steps_per_execution > 1:
            self._position = _updates(self._model)

    def executed(self, first: int, last: int) -> int:
        """Give how many steps an execution did; Keras tells its callbacks as if all were whole."""
        asked = last - first + 1
        if asked == 1:
            return 1
        done = _updates(self._model) - self._position
        return done if 0 < done <= asked else asked

    def images(self, executed: int, last: int) -> int | None:
        """Give how many images the steps just done took; None where nobody knows."""
        if self._last is not None:
            number, size, whole = self._last
            return whole * (executed - 1) + (size if last >= number else whole)
        if self._fixed:
            return self._fixed * executed
        seen, self._counted = self._counted, _images_counted(self._model)
        if self._counted - seen > 0 and self._counted < EXACT:
            return int(self._counted - seen)
        return self._told * executed if self._told else None


SOURCES = {"ArrayDataAdapter": "arrays", "TFDatasetAdapter": "tf.data"}
"""How the data of an adapter of Keras' are called; others by the adapter's own name."""


def _updates(model: Any) -> int:
    """Read how often the optimizer was applied."""
    return int(_read(getattr(model.optimizer, "_iterations", None)))


def _images_counted(model: Any) -> float:
    """Read how many images Keras has averaged this epoch's loss over."""
    return _read(getattr(getattr(model, "_loss_tracker", None), "count", None))


def _read(counter: Any) -> float:
    """Read a variable of Keras'; 0 where there is none. Keras' own way takes twice as long."""
    value = getattr(counter, "_value", None)
    with suppress(Exception):
        if value is not None and type(value).__name__ == "ResourceVariable":
            return float(tf.raw_ops.ReadVariableOp(resource=value.handle, dtype=value.dtype))
        return float(tf.convert_to_tensor(value))
    return 0.0


def _adapter() -> Any:
    """Find the data of the `fit` that is calling."""
    frame = sys._getframe(1)
    while frame is not None:
        adapter = getattr(frame.f_locals.get("epoch_iterator"), "data_adapter", None)
        if adapter is not None:
            return adapter
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _fixed_batch(adapter: Any) -> int | None:
    """Give the size of every batch, where no batch can have another."""
    with suppress(AttributeError, NotImplementedError):
        if adapter.batch_size and adapter.has_partial_batch is False:
            return int(adapter.batch_size)
    if type(adapter).__name__ == "TFDatasetAdapter":
        with suppress(Exception):
            return int(tf.nest.flatten(adapter.get_tf_dataset().element_spec)[0].shape[0])
    return None


def _last_of_an_epoch(adapter: Any, steps: int | None) -> tuple[int, int, int] | None:
    """Give the number and the size of arrays' last batch, where it is smaller, and of a whole."""
    if type(adapter).__name__ != "ArrayDataAdapter" or not steps or steps != adapter.num_batches:
        return None
    partial = adapter.partial_batch_size
    return (steps - 1, int(partial), int(adapter.batch_size)) if partial else None


def _generator_of(adapter: Any) -> Any:
    """Find the user's generator, which Keras wraps so that its first batches can be seen."""
    wrapped = getattr(adapter, "generator", None)
    for cell in getattr(wrapped, "__closure__", None) or ():
        if hasattr(cell.cell_contents, "__next__"):
            return cell.cell_contents
    return None
