"""The table of events while it grows, row by row, and the `Events` it becomes."""

from array import array
from collections.abc import Mapping

import numpy as np

from timesink.traces.events import Events, Kind, Line, Member, Name


class PlainRows:
    """Rows of one line that have no number: filled by its reader, added to the table at once."""

    def __init__(self) -> None:
        self.kind = array("b")
        self.begin_ns = array("q")
        self.end_ns = array("q")
        self.name = array("i")


class Table:
    """Columns of events; names and lines are stored once."""

    def __init__(self) -> None:
        self.begin_ns = array("q")
        self.end_ns = array("q")
        self.kind = array("b")
        self.line = array("i")
        self.name = array("i")
        self.number = array("q")
        self.retraced: list[tuple[str, int]] = []
        self.marks: dict[int, int] = {}
        self._lines: list[Line] = []
        self._names: dict[Name, int] = {}

    def __len__(self) -> int:
        return len(self.begin_ns)

    def add_line(self, line: Line) -> int:
        """Give the line its index; a thread and a stream of one name are two lines."""
        self._lines.append(line)
        return len(self._lines) - 1

    def index_of(self, name: Name) -> int:
        """Give the name its index, the same each time."""
        return self._names.setdefault(name, len(self._names))

    def add(
        self, kind: Kind, begin_ns: int, end_ns: int, line: int, name: int, number: int = 0
    ) -> int:
        """Add a row; its index is given back."""
        self.begin_ns.append(begin_ns)
        self.end_ns.append(end_ns)
        self.kind.append(kind)
        self.line.append(line)
        self.name.append(name)
        self.number.append(number)
        return len(self.begin_ns) - 1

    def extend(self, rows: "PlainRows", line: int) -> None:
        """Add rows of one line."""
        self.kind.extend(rows.kind)
        self.begin_ns.extend(rows.begin_ns)
        self.end_ns.extend(rows.end_ns)
        self.name.extend(rows.name)
        self.line.extend(array("i", [line]) * len(rows.kind))
        self.number.extend(array("q", [0]) * len(rows.kind))

    def names_of(self, kind: Kind) -> set[Name]:
        """Every name that an event of this kind has."""
        names = tuple(self._names)
        used = np.unique(np.asarray(self.name)[np.asarray(self.kind) == kind])
        return {names[index] for index in used}

    def freeze(self, host: str, hlo: Mapping[Name, tuple[Member, ...]], dropped: int) -> Events:
        """Make it the value."""
        return Events(
            host=host,
            begin_ns=np.array(self.begin_ns, np.int64),
            end_ns=np.array(self.end_ns, np.int64),
            kind=np.array(self.kind, np.int8),
            line=np.array(self.line, np.int32),
            name=np.array(self.name, np.int32),
            number=np.array(self.number, np.int64),
            lines=tuple(self._lines),
            names=tuple(self._names),
            hlo=hlo,
            retraced=tuple(sorted(self.retraced, key=lambda each: each[1])),
            marks=dict(self.marks),
            dropped=dropped,
        )
