"""What tf.data itself counts of a pipeline: elements, bytes, queues, and what AUTOTUNE chose.

Always on: a look takes 70 µs, and there is one every few batches.
"""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class Node:
    """A dataset of the pipeline, as tf.data sees it; counts are those of the measured stretch."""

    name: str
    elements: int
    produced_bytes: int
    processing_ns: int
    """On the clock: waiting for a core is in it."""
    buffered: float | None
    """Elements that lay ready, on average; None where nothing is buffered."""
    chosen: dict[str, float]
    """Parameters and their values, by AUTOTUNE or as asked."""
    autotuned: bool


class Counters:
    """Looks at an iterator from time to time, and tells what happened since the first look."""

    def __init__(self, batches: Any) -> None:
        self._batches = batches
        self._first = self._look()
        self._last = self._first
        self._levels: dict[int, list[int]] = {}

    def sample(self) -> None:
        """Look how full the queues are."""
        self._last = self._look()
        for key, node in self._last.items():
            self._levels.setdefault(key, []).append(node.buffered_elements)

    def nodes(self) -> tuple[Node, ...]:
        """Give what each node did, the last of the pipeline first."""
        self._last = self._look() or self._last
        return tuple(self._node(key, self._last[key]) for key in sorted(self._last))

    def _node(self, key: int, now: Any) -> Node:
        then = self._first.get(key)
        parameters = {each.name: float(each.state_value) for each in now.parameters}
        levels = self._levels.get(key, ())
        holds = "buffer_size" in parameters or "parallelism" in parameters
        return Node(
            name=now.name,
            elements=now.num_elements - (then.num_elements if then else 0),
            produced_bytes=now.bytes_produced - (then.bytes_produced if then else 0),
            processing_ns=now.processing_time - (then.processing_time if then else 0),
            buffered=sum(levels) / len(levels) if levels and holds else None,
            chosen=parameters,
            autotuned=any(each.tunable for each in now.parameters),
        )

    def _look(self) -> dict[int, Any]:
        """Read tf.data's model of the iterator; nothing where it keeps none."""
        iterator = getattr(self._batches, "iterator", self._batches)
        try:
            return dict(tf.data.experimental.get_model_proto(iterator).nodes)
        except (tf.errors.OpError, AttributeError, ValueError, TypeError):
            return {}
