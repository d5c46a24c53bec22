"""What a profiler's file says, as one columnar table of events: the value that `traces/` gives.

One `Events` is one host's file. Times are integer nanoseconds on that file's own clock. An event
that no account could use (thread-pool bookkeeping) is not in the table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class Kind(IntEnum):
    """What an event is evidence of."""

    OP = 1
    """An op of a graph ran; the name is `path/of/the/op`, its type stands beside it."""
    HLO = 2
    """An instruction compiled by XLA ran; the name is the instruction's, the module beside it.

    Where it was launched to end elsewhere, `number` is the time that the launch took: from then on
    it ran, or waited for a thread; nothing says which."""
    STEP = 3
    """A training step; `number` is its step_num."""
    FUNCTION = 4
    """A tf.function was running, from its call in Python to its return."""
    INPUT = 5
    """Somebody waited for the next element of a dataset."""
    COPY_IN = 6
    """Host to device."""
    COPY_OUT = 7
    """Device to host."""
    SPAN = 8
    """A stretch of host code named by Timesink: `gc generation 2`, `callback X.on_epoch_end`."""
    SAMPLE = 9
    """An instant at which the main thread was seen at a place; the name is the place."""
    MEMORY = 10
    """An allocator's state changed; `number` is the bytes then in use, the name its name."""
    BLOCKED = 11
    """The host waited for something that is none of these."""
    PIPELINE = 12
    """The input pipeline's bookkeeping: an iterator asked for an element, a function of the user's
    called, the executor of its ops, or any other event of the pipeline's own threads.

    `number` says which run of a function a call, its executor and its end belong to."""


@dataclass(frozen=True)
class Line:
    """A thread of the host, or a stream of a device."""

    name: str
    device: str | None = None
    """`GPU:0` for a stream; None for a thread of the host."""
    input: bool = False
    """Whether this is one of the input pipeline's threads."""


@dataclass(frozen=True)
class Name:
    """What an event is called; many events share one."""

    text: str
    type: str = ""
    """Of an op, its type; of an HLO instruction, its module."""


@dataclass(frozen=True)
class Member:
    """A part of a compiled instruction: the path of the op it came from, and its weight."""

    path: str
    weight: float


@dataclass(frozen=True)
class Events:
    """One host's file."""

    host: str
    begin_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    kind: npt.NDArray[np.int8]
    line: npt.NDArray[np.int32]
    """Index into `lines`."""
    name: npt.NDArray[np.int32]
    """Index into `names`."""
    number: npt.NDArray[np.int64]
    """What its kind says; else 0."""
    lines: tuple[Line, ...]
    names: tuple[Name, ...]
    hlo: Mapping[Name, tuple[Member, ...]] = field(default_factory=dict)
    """Of a compiled instruction, the ops it was made of. Weights of one instruction sum to 1."""
    retraced: tuple[tuple[str, int], ...] = ()
    """Functions that were traced within the file: name, and when."""
    marks: Mapping[int, int] = field(default_factory=dict)
    """Of a step (by its number), the host clock's reading when its marker began, in ns."""
    dropped: int = 0
    """Events the profiler said it had dropped."""

    def __len__(self) -> int:
        return len(self.begin_ns)
