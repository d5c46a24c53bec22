"""A file of TensorFlow's profiler (XPlane), read into `Events` without TensorFlow."""

import os
import re
from pathlib import Path
from typing import Any

from timesink.errors import TraceError
from timesink.traces import hlo
from timesink.traces.events import Events, Kind, Member, Name
from timesink.traces.gpu import read_gpu
from timesink.traces.host import read_host
from timesink.traces.messages import DecodeError, XPlane, XSpace, text
from timesink.traces.table import Table

SUFFIX = ".xplane.pb"

_GPU = re.compile(r"/device:(GPU:\d+)")
# `… 1200 events dropped because total device(activity) events reaches max;` (cupti_collector.cc)
_DROPPED = re.compile(r"(\d+) events dropped")
_GZIP = b"\x1f\x8b"
# A plane (field 1) of some length, perhaps its id (1), and its name (2): `/host:CPU`, `/device:…`
_FIRST_PLANE = re.compile(
    rb"\n[\x80-\xff]*[\x00-\x7f](\x08[\x80-\xff]*[\x00-\x7f])?\x12[\x00-\x7f](/|Task Env)"
)
_RECORD_AGAIN = "record the trace again"


def find_traces(path: Path) -> list[Path]:
    """Find the traces: the file itself, or every `*.xplane.pb` below a directory, in order."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise TraceError(f"{path}: no such file or directory; name a trace or where traces are")

    def refuse(error: OSError) -> None:
        raise TraceError(f"{error.filename}: cannot be read: {error.strerror}") from None

    found = sorted(
        Path(folder, name)
        for folder, _, names in os.walk(path, onerror=refuse)
        for name in names
        if name.endswith(SUFFIX)
    )
    if not found:
        raise TraceError(f"{path}: no traces (*{SUFFIX}) here or below; profile some steps into it")
    return found


def read_xplane(path: Path) -> Events:
    """Read one host's file. It holds at least one event, or it is an error."""
    try:
        host, dropped, planes = _parse(path)
        if not any(plane.name.startswith(b"/") for plane in planes):
            raise TraceError(_foreign(path))
        table, members = _read_planes(planes)
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from None
    except (DecodeError, OverflowError):
        raise TraceError(_diagnose(path)) from None
    if not len(table):
        raise TraceError(f"{path}: empty: it holds no events; profile while steps are running")
    return table.freeze(host, members, dropped)


def _parse(path: Path) -> tuple[str, int, list[Any]]:
    """Give the host, how many events the profiler dropped, and the planes; the rest is let go."""
    content = path.read_bytes()
    if not content:
        raise TraceError(f"{path}: empty: the file has no bytes; {_RECORD_AGAIN}")
    space = XSpace.FromString(content)
    said = " ".join(text(each) for each in (*space.warnings, *space.errors))
    dropped = sum(int(count) for count in _DROPPED.findall(said))
    host = text(space.hostnames[0]) if space.hostnames else ""
    planes = [XPlane.FromString(serialized) for serialized in space.planes]
    return host or path.name.removesuffix(SUFFIX), dropped, planes


def _read_planes(planes: list[Any]) -> tuple[Table, dict[Name, tuple[Member, ...]]]:
    programs = [plane for plane in planes if text(plane.name) == hlo.PLANE]
    shared = hlo.shared_modules(programs)
    table = Table()
    for plane in planes:
        name = text(plane.name)
        if gpu := _GPU.match(name):
            read_gpu(plane, gpu[1], table, shared)
        elif name.startswith("/host:"):
            read_host(plane, table, shared)
    ran = table.names_of(Kind.HLO)
    members: dict[Name, tuple[Member, ...]] = {}
    if ran:
        for plane in programs:
            members |= hlo.read_members(plane, ran, shared)
    return table, members


def _diagnose(path: Path) -> str:
    """Say why a file could not be parsed."""
    content = path.read_bytes()
    if not _FIRST_PLANE.match(content):
        return _foreign(path)
    if _ends_early(content):
        return (
            f"{path}: truncated: it breaks off after {len(content)} bytes; "
            f"copy it again, or {_RECORD_AGAIN}"
        )
    return f"{path}: damaged: it begins as a trace and cannot be parsed; {_RECORD_AGAIN}"


def _foreign(path: Path) -> str:
    with path.open("rb") as file:
        compressed = file.read(len(_GZIP)) == _GZIP
    if compressed:
        return f"{path}: compressed with gzip, not a trace (*{SUFFIX}); gunzip it first"
    return f"{path}: not a trace of TensorFlow's profiler; name a *{SUFFIX} file"


def _ends_early(content: bytes) -> bool:
    """Whether a part of the file (each a tag, a length and that many bytes) runs past its end."""
    place = 0
    while place < len(content):
        length = shift = 0
        place += 1
        while True:
            if place >= len(content):
                return True
            byte = content[place]
            length |= (byte & 0x7F) << shift
            shift += 7
            place += 1
            if byte < 0x80:
                break
        place += length
    return place > len(content)
