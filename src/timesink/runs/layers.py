"""What `timesink layers` gives: a run or any traces in; a table and facts of its layers out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from timesink.errors import RunFileError
from timesink.ledger.levels import ROW, by_layer, ops_of, rolled_up
from timesink.ledger.opmap import LAYER, OpMap, read_opmap
from timesink.runs.books import Books, close_books
from timesink.runs.foreign import Source, read_traces
from timesink.runs.journal import is_journal
from timesink.runs.step_tables import (
    LAYER_COLUMNS,
    OwnCost,
    layers_table,
    mean_step,
    own_cost,
    step_facts,
)
from timesink.runs.tables import steps_table
from timesink.traces.xplane import SUFFIX

SCHEMA_VERSION = 1

Groups = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Layers:
    """Closed books and where they come from."""

    books: Books
    source: Source
    cost: OwnCost | None = None
    """Of a run; nobody knows what tracing cost where there are no untraced steps."""
    groups: Groups = field(default_factory=dict)
    """Of the experiment."""

    def at_level(self, depth: int | None, groups: Groups) -> "Layers":
        """Sum layers to groups and models; ops are gone then."""
        rows = rolled_up(by_layer(self.books.ops), depth=depth, groups=groups)
        return replace(self, books=replace(self.books, ops=rows))

    def table(self) -> pl.DataFrame:
        """Give layers.csv."""
        return layers_table(self.books, self.cost.scale if self.cost else None)

    def facts(self) -> dict[str, Any]:
        """Give everything as plain values."""
        facts = step_facts(self.books, self.cost)
        walls_ns = self.books.walls["wall_ns"]
        return {
            "schema_version": SCHEMA_VERSION,
            "source": {
                "files": [str(file) for file in self.source.files],
                "sessions": list(self.source.sessions),
                "hosts": list(self.books.hosts),
                "steps": {
                    "count": facts["traced_steps"],
                    "found_by": self.books.found_by,
                    "name": self.books.step_name or None,
                },
                "attribution": self.books.origin,
            },
            "step_ms": {"mean": walls_ns.mean() / 1e6},  # type: ignore[operator]
            **facts,
            "retraces": len(self.books.retraced),
        }


def read_layers(path: Path, *, opmap: Path | None = None, all_sessions: bool = False) -> Layers:
    """Read a run by its journal, anything else by its traces alone."""
    named = read_opmap(opmap) if opmap else None
    if path.is_dir() and is_journal(path / "log.txt"):
        run = _of_run(path, named)
        if run is not None:
            return run
        if not any(path.rglob(f"*{SUFFIX}")):
            raise RunFileError(
                f"{path}: no step was traced; `timesink run --set profile.mode=window` traces some"
            )
    books, source = read_traces(path, opmap=named, all_sessions=all_sessions)
    return Layers(books, source)


def mean_ops(books: Books, name: str, groups: Groups) -> list[dict[str, Any]]:
    """Give the ops of a layer, model or group, a step's mean, longest first; none if unknown."""
    rows = ops_of(books.ops, name, groups=groups)
    return mean_step(rows, by=(*ROW, "op", "type"), of=books.ops).to_dicts()


def layer_names(books: Books, groups: Groups) -> list[str]:
    """Give every name that `mean_ops` knows."""
    layers = books.ops.filter(pl.col("account") == LAYER)["layer"].drop_nulls().unique().to_list()
    models = {layer.rpartition("/")[0] for layer in layers} - {""}
    return sorted({*layers, *models, *groups})


def is_layers_table(path: Path) -> bool:
    """Tell whether a file is a table as `Layers.table` gives it, by its first line."""
    try:
        with path.open("rb") as file:
            return file.readline(4096).strip() == ",".join(LAYER_COLUMNS).encode()
    except OSError:
        return False


def _of_run(path: Path, opmap: OpMap | None) -> Layers | None:
    """Read the windows that a run's journal tells of; None where it tells of none."""
    # Here, because a run's directory knows experiments, whose models take longest to import.
    from timesink.runs.directory import RunDirectory

    record = RunDirectory(path).record()
    books = close_books(path, record, opmap)
    if books is None:
        return None
    if books.ops.is_empty():
        raise RunFileError(books.notes[0])
    files = tuple(path / window["file"] for window in record.windows)
    groups = record.experiment.get("profile", {}).get("groups", {})
    cost = own_cost(record, steps_table(record))
    return Layers(books, Source(files, ()), cost, groups)
