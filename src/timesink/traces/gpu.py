"""A GPU's plane: what ran on its streams, put into the table."""

import re
from typing import Any

from timesink.traces.events import Kind, Line, Name
from timesink.traces.hlo import instruction_name
from timesink.traces.messages import XLine, text
from timesink.traces.naming import op_name
from timesink.traces.stats import Stats
from timesink.traces.table import PlainRows, Table

# CUPTI's lines are `Stream #14(Compute,MemcpyH2D)` (cupti_collector.cc). All others of the plane
# were derived from them by the profiler and show the same time again.
_STREAM = "Stream #"

# The driver's, not the stream's work.
_NOT_WORK = frozenset(("MemoryAlloc", "MemoryFree", "MemoryResidency", "Overhead"))

_COPY = re.compile(r"memcpy\W*(?P<source>[hdp])(?:2|to)(?P<target>[hdp])", re.IGNORECASE)
_DETAILS = re.compile(r"kind_src:(?P<source>\w+) kind_dst:(?P<target>\w+)")
_HOST_MEMORY = frozenset(("pageable", "pinned", "h"))


def read_gpu(plane: Any, device: str, table: Table, shared_modules: frozenset[str]) -> None:
    """Put the events of the plane's streams into the table."""
    stats = Stats(plane, ("hlo_op", "hlo_module", "program_id", "tf_op", "memcpy_details"))
    event_names = {entry.key: text(entry.value.name) for entry in plane.event_metadata}
    shared_stats = {entry.key: stats.read(entry.value.stats) for entry in plane.event_metadata}
    told: dict[tuple[Any, ...], tuple[Kind, int] | None] = {}
    for serialized in plane.lines:
        line = XLine.FromString(serialized)
        if not text(line.name).startswith(_STREAM):
            continue
        rows = PlainRows()
        start_ns = line.timestamp_ns
        for event in line.events:
            metadata_id = event.metadata_id
            own_stats = stats.read_alike(event.stats)
            signature = (metadata_id, *own_stats.values())
            if signature not in told:
                said = _tell(
                    event_names.get(metadata_id, ""),
                    shared_stats.get(metadata_id, {}) | own_stats,
                    shared_modules,
                )
                told[signature] = (said[0], table.index_of(said[1])) if said else None
            kind_and_name = told[signature]
            if kind_and_name is None:
                continue
            rows.kind.append(kind_and_name[0])
            rows.name.append(kind_and_name[1])
            offset_ps = event.offset_ps
            rows.begin_ns.append(start_ns + offset_ps // 1000)
            rows.end_ns.append(start_ns + (offset_ps + event.duration_ps) // 1000)
        table.extend(rows, table.add_line(Line(text(line.name), device)))


def _tell(
    event_name: str, stats: dict[str, Any], shared_modules: frozenset[str]
) -> tuple[Kind, Name] | None:
    """Say what an event of a stream is evidence of."""
    if event_name in _NOT_WORK:
        return None
    copied = _COPY.match(event_name) or _DETAILS.search(str(stats.get("memcpy_details", "")))
    tf_op = str(stats.get("tf_op", ""))
    op = op_name(tf_op)
    path = op.text if op else tf_op or event_name
    if copied:
        from_host = copied["source"].lower() in _HOST_MEMORY
        to_host = copied["target"].lower() in _HOST_MEMORY
        if from_host and not to_host:
            return Kind.COPY_IN, Name(path, "MemcpyH2D")
        if to_host and not from_host:
            return Kind.COPY_OUT, Name(path, "MemcpyD2H")
    if "hlo_op" in stats:
        return Kind.HLO, instruction_name(stats, shared_modules)
    if copied:
        return Kind.OP, Name(path, "MemcpyD2D")
    return Kind.OP, op or Name(event_name)
