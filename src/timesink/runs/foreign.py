"""Traces wherever they lie made into books: a file, a profiler's directory or a run's, made by
anyone. What no journal and no map of ops says is told from the traces alone, and noted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timesink.errors import TimesinkError, TraceError
from timesink.ledger.by_name import opmap_from_names
from timesink.ledger.opmap import OpMap, read_opmap
from timesink.ledger.steps import spans_from_trace
from timesink.runs.books import NO_MAP, OPMAP, Books, bound, close_trace, dropped_note
from timesink.traces.events import Events, Kind
from timesink.traces.xplane import find_traces, read_xplane

# TensorFlow names a session by the time it was written; Timesink adds process and window.
_STAMP = re.compile(r"\d{4}(_\d\d){5}")
_FEW = 0.5
"""A map that knows fewer than this part of a trace's ops is the map of something else."""


@dataclass(frozen=True)
class Source:
    """What was read."""

    files: tuple[Path, ...]
    sessions: tuple[str, ...]
    """Of traces without a journal, in the order of the column `process`, which counts them."""


def read_traces(
    path: Path, *, opmap: OpMap | None = None, all_sessions: bool = False
) -> tuple[Books, Source]:
    """Read the newest session at or below a path, or all of them, and close their books."""
    sessions = _sessions(find_traces(path))
    notes: list[str] = []
    if len(sessions) > 1 and not all_sessions:
        notes.append(
            f"read the newest of {len(sessions)} sessions, {sessions[-1][0].parent.name}; "
            "--all-sessions reads all"
        )
        sessions = sessions[-1:]
    reader = _Reader(path, opmap, notes, several=any(len(files) > 1 for files in sessions))
    parts = [
        part
        for number, files in enumerate(sessions, start=1)
        for part in reader.read_session(number, files)
    ]
    if not parts:
        raise reader.errors[0]
    notes += map(str, reader.errors)
    if parts[0].found_by == "calls":
        notes.append(f"no step markers: a step is a call of `{parts[0].step_name}`")
    elif parts[0].found_by == "whole file":
        notes.append("no step markers and no calls of a function: the whole file is one step")
    names = tuple(files[0].parent.name for files in sessions)
    return bound(parts, notes), Source(tuple(reader.files), names)


class _Reader:
    """Reads sessions one after the other, and keeps what there is to say of them."""

    def __init__(self, path: Path, opmap: OpMap | None, notes: list[str], *, several: bool) -> None:
        self.path = path
        self.named = opmap
        self.notes = notes
        self.several = several
        self.files: list[Path] = []
        self.errors: list[TimesinkError] = []

    def read_session(self, number: int, files: Sequence[Path]) -> list[Books]:
        """Close the books of each host; a file that cannot be read is left for the notes."""
        parts = []
        taken: set[str] = set()
        for file in files:
            try:
                events = read_xplane(file)
            except TraceError as error:
                self.errors.append(error)
                continue
            # Machines that all call themselves `localhost` still have files of their own.
            host = events.host if events.host not in taken else file.name.partition(".")[0]
            taken.add(host)
            part = close_trace(
                events,
                spans_from_trace(events),
                self._map_for(file, events),
                process=number,
                prefix=f"{host}/" if self.several else "",
            )
            if not int(part.walls["wall_ns"].sum()):
                self.errors.append(TraceError(f"{file}: no step in it takes any time"))
                continue
            parts.append(part)
            self.files.append(file)
            if events.dropped:
                self.notes.append(dropped_note(file, events))
        return parts

    def _map_for(self, file: Path, events: Events) -> OpMap:
        stored = self.named or self._stored_map(file)
        if stored is None:
            self._note_once(NO_MAP)
            return opmap_from_names(events)
        known = _known(events, stored)
        if known < _FEW:
            self._note_once(
                f"the map of ops knows {known:.0%} of the trace's ops: is it of another network?"
            )
        return stored

    def _stored_map(self, file: Path) -> OpMap | None:
        """Find the map beside a trace, or in the run whose `profile/` holds it."""
        file = file.resolve()
        places = [file.parent]
        if file.parent.parent.parts[-2:] == ("plugins", "profile"):
            logdir = file.parents[3]
            places += [logdir, *([logdir.parent] if logdir.name == "profile" else [])]
        if self.path.is_dir():
            places.append(self.path)
        for place in places:
            if (place / OPMAP).is_file():
                self._note_once(f"layers as {place / OPMAP} says")
                return read_opmap(place / OPMAP)
        return None

    def _note_once(self, note: str) -> None:
        if note not in self.notes:
            self.notes.append(note)


def _sessions(files: Sequence[Path]) -> list[list[Path]]:
    """Put the files of one session together, the newest session last."""
    folders: dict[Path, list[Path]] = {}
    for file in files:
        folders.setdefault(file.parent, []).append(file)

    def age(folder: Path) -> tuple[str, int, Path]:
        # The name outlives a copy, the file's own time does not.
        stamp = folder.name if _STAMP.match(folder.name) else ""
        return stamp, max(file.stat().st_mtime_ns for file in folders[folder]), folder

    return [folders[folder] for folder in sorted(folders, key=age)]


def _known(events: Events, opmap: OpMap) -> float:
    """Tell which part of a trace's ops a map knows."""
    inputs = np.array([line.input for line in events.lines], bool)
    ran = (events.kind == Kind.OP) & ~inputs[events.line]
    names = [events.names[number] for number in np.unique(events.name[ran])]
    paths = [(name.text, name.type) for name in names]
    paths += [(member.path, "") for members in events.hlo.values() for member in members]
    known = sum(opmap.find(*path) is not None for path in paths)
    return known / len(paths) if paths else 1.0
