"""The books of traced steps: one trace, or the windows of a run with its journal and its map."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from timesink.errors import RunFileError, TimesinkError
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.memory import memory_by_step
from timesink.ledger.opmap import LAYER, OpMap, read_opmap
from timesink.ledger.step_ledger import close_steps
from timesink.ledger.steps import StepSpans, spans_from_journal, spans_from_trace
from timesink.runs.record import RunRecord
from timesink.runs.stage_tables import StepInput, known_stages, summed, window_input
from timesink.runs.tables import step_spans
from timesink.traces.events import Events
from timesink.traces.xplane import read_xplane

OPMAP = "opmap.json"
NO_MAP = f"no map of ops ({OPMAP}): layers are told by names alone"
EAGER = "run_eagerly: ops ran one by one from Python, and layers cannot be told apart"


@dataclass(frozen=True)
class Books:
    """What is known of the traced steps."""

    ops: pl.DataFrame
    """A row for each process, iteration, device, account and op."""
    memory: pl.DataFrame
    walls: pl.DataFrame = field(default_factory=pl.DataFrame)
    """How long each step was on the clock, whatever was charged: process, iteration, device."""
    types: dict[str, str] = field(default_factory=dict)
    """Layer → its type, in the order of the network."""
    origin: str = "names"
    """What the attribution rests on."""
    hosts: tuple[str, ...] = ()
    found_by: str = ""
    """What said where steps begin: `journal`, `markers`, `calls`, `whole file`."""
    step_name: str = ""
    """Of the markers, or of the function that was called."""
    retraced: tuple[str, ...] = ()
    """Functions that were traced again within a window, each time they were."""
    notes: tuple[str, ...] = ()
    """What could not be read, or is known to be incomplete."""
    input: StepInput | None = None
    """What the input pipeline did meanwhile; known of runs, whose journal counts the images."""


def close_books(path: Path, record: RunRecord, opmap: OpMap | None = None) -> Books | None:
    """Read all windows of a run; None where there is none. A bad file is noted, not fatal.

    The map of ops is the run's own, unless one is given.
    """
    notes: list[str] = []
    stored = opmap or _stored_map(path, notes)
    parts: list[Books] = []
    stages = known_stages(record)
    for window in record.windows:
        process = record.processes[window["process"]]
        try:
            events = read_xplane(_inside(path, window["file"]))
        except TimesinkError as error:
            notes.append(str(error))
            continue
        spans = spans_from_journal(events, step_spans(process)) or spans_from_trace(events)
        used = stored or opmap_from_names(events)
        closed = close_trace(events, spans, used, process=process.number)
        did = window_input(events, spans, process, stages)
        parts.append(replace(closed, ops=with_places(closed.ops, record), input=did))
        if events.dropped:
            notes.append(dropped_note(window["file"], events))
    if not parts:
        return Books(pl.DataFrame(), pl.DataFrame(), notes=tuple(notes)) if notes else None
    if record.network.get("eager"):
        notes.append(EAGER)
    elif stored is None:
        notes.append(NO_MAP)
    return bound(parts, notes)


def close_trace(
    events: Events, spans: StepSpans, opmap: OpMap, *, process: int, prefix: str = ""
) -> Books:
    """Close the books of one trace; a prefix tells its devices from those of other hosts."""
    ops, memory = close_steps(events, spans, opmap), memory_by_step(events, spans)
    if prefix:
        ops = ops.with_columns(device=pl.lit(prefix) + pl.col("device"))
        memory = memory.with_columns(allocator=pl.lit(prefix) + pl.col("allocator"))
    lengths = pl.DataFrame({"iteration": spans.iteration, "wall_ns": spans.end_ns - spans.begin_ns})
    devices = ops.select(pl.col("device").unique(maintain_order=True))
    walls = lengths.join(devices, how="cross")
    number = pl.lit(process, pl.Int64).alias("process")
    return Books(
        ops.select(number, pl.all()),
        memory.select(number, pl.all()),
        walls.select(number, "iteration", "device", "wall_ns"),
        dict(opmap.layers),
        opmap.origin,
        (prefix.rstrip("/") or events.host,),
        spans.source,
        spans.name,
        tuple(name for name, _ in events.retraced),
    )


def with_places(ops: pl.DataFrame, record: RunRecord) -> pl.DataFrame:
    """Say whose Python an op of a graph called, and what was waited for; a layer says enough."""
    source = pl.lit(record.network.get("input"), pl.String)
    called = pl.lit(None, pl.String)
    for name, place in record.py_functions.items():
        is_it = (pl.col("op") == name) | pl.col("op").str.ends_with(f"/{name}")
        called = pl.when(is_it & pl.col("layer").is_null()).then(pl.lit(place)).otherwise(called)
    named = ops.with_columns(
        place=pl.coalesce("place", called, pl.when(pl.col("account") == "input_wait").then(source))
    )
    # Outside the layers, the losses and the metrics, an op that only calls Python is Python.
    of_no_layer = called.is_not_null() & (pl.col("account") == LAYER)
    return named.with_columns(
        account=pl.when(of_no_layer).then(pl.lit("python")).otherwise("account"),
        phase=pl.when(of_no_layer).then(None).otherwise("phase"),
    )


def bound(parts: Sequence[Books], notes: Sequence[str]) -> Books:
    """Put the books of several traces together."""
    return Books(
        pl.concat(part.ops for part in parts),
        pl.concat(part.memory for part in parts),
        pl.concat(part.walls for part in parts),
        {layer: kind for part in parts for layer, kind in part.types.items()},
        parts[0].origin,
        tuple(dict.fromkeys(host for part in parts for host in part.hosts)),
        parts[0].found_by,
        parts[0].step_name,
        tuple(name for part in parts for name in part.retraced),
        (*notes, *(note for part in parts for note in part.notes)),
        summed(part.input for part in parts),
    )


def dropped_note(file: object, events: Events) -> str:
    """Say that a trace is incomplete."""
    return f"{file}: the profiler dropped {events.dropped} events"


def _stored_map(path: Path, notes: list[str]) -> OpMap | None:
    if not (path / OPMAP).exists():
        return None
    try:
        return read_opmap(path / OPMAP)
    except RunFileError as error:
        notes.append(str(error))
        return None


def _inside(path: Path, name: str) -> Path:
    """Give a file of the run; a journal that points elsewhere is not believed."""
    file = (path / name).resolve()
    if not file.is_relative_to(path.resolve()):
        raise RunFileError(f"{path}: its journal names a trace outside of it: {name}")
    return file
