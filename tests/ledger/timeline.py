"""Events written by hand, and their books as plain values.

line = Timeline()
line.step(1, 0, 1000)
line.op("net/conv/Conv2D", 100, 900)
charged(line.events(), opmap)  →  {("layer", "conv", "forward", None): 800, …}
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from timesink.ledger.opmap import LAYER, Entry, OpMap, Share
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import spans_from_trace
from timesink.traces.events import Events, Kind, Line, Member, Name


class Timeline:
    """One host's events; everything is on the thread `python` unless said otherwise."""

    def __init__(self) -> None:
        self.lines = [Line("python")]
        self.names: dict[Name, int] = {}
        self.rows: list[tuple[int, int, int, int, int, int]] = []
        self.retraced: list[tuple[str, int]] = []
        self.marks: dict[int, int] = {}
        self.hlo: dict[Name, tuple[Member, ...]] = {}

    def thread(self, name: str = "tf_Compute", *, device: str | None = None, input: bool = False):
        self.lines.append(Line(name, device, input))
        return len(self.lines) - 1

    def add(self, kind: Kind, name: str, begin_ns: int, end_ns: int, *, on=0, type="", number=0):
        index = self.names.setdefault(Name(name, type), len(self.names))
        self.rows.append((begin_ns, end_ns, int(kind), on, index, number))
        return self

    def step(self, number: int, begin_ns: int, end_ns: int, *, host_ns: int | None = None):
        if host_ns is not None:
            self.marks[number] = host_ns
        return self.add(Kind.STEP, "train", begin_ns, end_ns, number=number)

    def op(self, path: str, begin_ns: int, end_ns: int, *, on=0, type=""):
        type = type or path.rpartition("/")[2]
        return self.add(Kind.OP, path, begin_ns, end_ns, on=on, type=type)

    def call(self, name: str, begin_ns: int, end_ns: int, *, retraced: bool = False):
        if retraced:
            self.retraced.append((name, begin_ns))
        return self.add(Kind.FUNCTION, name, begin_ns, end_ns)

    def events(self, order: Sequence[int] | None = None) -> Events:
        rows = [self.rows[place] for place in order] if order is not None else self.rows
        columns = np.array(rows, np.int64).reshape(-1, 6).T
        return Events(
            "host",
            columns[0],
            columns[1],
            columns[2].astype(np.int8),
            columns[3].astype(np.int32),
            columns[4].astype(np.int32),
            columns[5],
            tuple(self.lines),
            tuple(self.names),
            self.hlo,
            tuple(self.retraced),
            self.marks,
        )


def layer(name: str | None, phase: str, *, device: str | None = None) -> Entry:
    """An op that belongs to one layer."""
    return Entry((Share(LAYER, name, phase),), device)


def books(events: Events, opmap: OpMap) -> pl.DataFrame:
    return close_steps(events, spans_from_trace(events), opmap)


def charged(events: Events, opmap: OpMap, device: str = "CPU:0") -> dict[tuple, int]:
    """What each account, layer, phase and place was charged on a device, where it was anything."""
    rows = (
        books(events, opmap)
        .filter((pl.col("device") == device) & (pl.col("charged_ns") > 0))
        .group_by("account", "layer", "phase", "place")
        .agg(pl.sum("charged_ns"))
    )
    return {row[:4]: row[4] for row in rows.iter_rows()}


def account(name: str, place: str | None = None) -> tuple:
    """The key of an account that is no layer's."""
    return (name, None, None, place)


def of_layer(name: str | None, phase: str) -> tuple:
    return (LAYER, name, phase, None)
