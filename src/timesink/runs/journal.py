"""log.txt: the append-only journal of a run, one event a line, safe against kill -9.

    12.345678901 1 step {"epoch": 1, "iteration": 7, …}

The time is in seconds since the process was started, the number is the process; the rest is the
event and its fields. A line goes to the kernel in one write, so a kill tears at most the last one.
"""

import errno
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from timesink.errors import DiskFullError, RunFileError


@dataclass(frozen=True)
class Event:
    """One line of the journal."""

    at_ns: int  # since the process was started
    process: int
    name: str
    fields: dict[str, Any]


class Journal:
    """The writing end: of the process that trains, and before and after it of its supervisor."""

    def __init__(
        self,
        path: Path,
        process: int,
        origin_ns: int,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.path, self.process, self.origin_ns, self.clock_ns = path, process, origin_ns, clock_ns
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)
        self.end_a_torn_line()

    def now_ns(self) -> int:
        """Give the time since the process was started, on the clock all processes share."""
        return self.clock_ns() - self.origin_ns

    def account(self, name: str) -> None:
        """Charge the time from now on to this account of the run."""
        self.write("account", account=name, begin_ns=self.now_ns())

    def write(self, event: str, **fields: Any) -> None:
        """Append one event."""
        seconds, nanoseconds = divmod(self.now_ns(), 1_000_000_000)
        try:
            text = _encode(fields)
        except ValueError:
            text = _encode({name: _plain(value) for name, value in fields.items()})
        line = f"{seconds}.{nanoseconds:09d} {self.process} {event} {text}\n".encode(
            errors="surrogateescape"
        )
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(f"{self.path}: the disk is full") from error
            raise

    def close(self) -> None:
        """Flush to the disk and close."""
        os.fsync(self._descriptor)
        os.close(self._descriptor)

    def end_a_torn_line(self) -> None:
        """Begin a new line where a writer was cut off in the middle of one."""
        size = os.fstat(self._descriptor).st_size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _plain(value: Any) -> Any:
    """JSON has no NaN: a loss that is not finite is written as a word."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def parse_line(line: bytes) -> Event | None:
    """Read one line; None for a torn one."""
    parts = line.split(b" ", 3)
    if len(parts) != 4 or not line.endswith(b"\n"):
        return None
    try:
        seconds, _, nanoseconds = parts[0].partition(b".")
        at_ns = int(seconds) * 1_000_000_000 + int(nanoseconds)
        fields = json.loads(parts[3].decode(errors="surrogateescape"))
        if not isinstance(fields, dict):
            return None
        return Event(at_ns, int(parts[1]), parts[2].decode(), fields)
    except ValueError:
        return None


def is_journal(path: Path) -> bool:
    """Tell whether a file begins as a journal does; other programs write a log.txt too."""
    try:
        with path.open("rb") as file:
            event = parse_line(file.readline(2**24))
    except OSError:
        return False
    return event is not None and event.name == "run"


def read_events(path: Path) -> Iterator[Event]:
    """Read a journal; torn lines are passed over."""
    try:
        with path.open("rb") as file:
            for line in file:
                event = parse_line(line)
                if event is not None:
                    yield event
    except OSError as error:
        raise RunFileError(f"{path}: cannot be read: {error.strerror}") from None


class Tail:
    """The reading end while the run goes on: gives the whole lines that are new."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._file.seek(0, os.SEEK_END)
        self._partial = b""

    def new_events(self) -> Iterator[Event]:
        """Give what was appended since the last call."""
        lines = (self._partial + self._file.read()).splitlines(keepends=True)
        self._partial = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            event = parse_line(line)
            if event is not None:
                yield event

    def close(self) -> None:
        """Close the file."""
        self._file.close()
