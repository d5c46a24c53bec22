"""A trace's file as plain values, read with TensorFlow's own messages."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TracedEvent:
    name: str
    thread: int
    begin_ps: int
    end_ps: int
    stats: dict[str, Any]


def read_events(file: Path) -> list[TracedEvent]:
    """Give all events of the host."""
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    space = xplane_pb2.XSpace.FromString(file.read_bytes())
    (plane,) = (plane for plane in space.planes if plane.name == "/host:CPU")
    events = []
    for line in plane.lines:
        for event in line.events:
            stats = {
                plane.stat_metadata[stat.metadata_id].name: getattr(stat, stat.WhichOneof("value"))
                for stat in event.stats
            }
            begin_ps = line.timestamp_ns * 1000 + event.offset_ps
            name = plane.event_metadata[event.metadata_id].name
            events.append(TracedEvent(name, line.id, begin_ps, begin_ps + event.duration_ps, stats))
    return events
