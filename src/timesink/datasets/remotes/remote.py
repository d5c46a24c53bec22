"""What a remote place can do: list a folder, hand over a file; and the ways in which it fails."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

CONNECT_TIMEOUT_S = 15.0
IDLE_TIMEOUT_S = 60.0
CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Entry:
    """One name in a remote folder."""

    name: str
    is_folder: bool
    identity: str = ""
    """The folder it really is, links followed: how a loop of links is seen."""
    size_bytes: int | None = None
    """None: known when the file is opened."""
    version: str = ""
    """Changes when the content does (ETag, modification time); empty where there is none."""
    mtime_s: int | None = None


@dataclass(frozen=True)
class Incoming:
    """A remote file that has been opened."""

    size_bytes: int | None
    version: str
    mtime_s: int | None
    chunks: Iterator[bytes]


class Remote(Protocol):
    """A connection to a remote place; used by one thread at a time."""

    root_identity: str

    def list_folder(self, path: str, identity: str) -> list[Entry]:
        """List a folder by its path below the place; "" is the place itself."""

    def open(self, path: str, known_version: str | None) -> AbstractContextManager[Incoming | None]:
        """Open a file; None when the source says that it still has the known version."""

    def close(self) -> None:
        """End the connection; a transfer in another thread ends with Interrupted."""


class Interrupted(Exception):  # noqa: N818  # not an error of the tree: the crew handles it
    """The connection broke, or the file came short: another attempt may succeed."""


class Unreachable(Interrupted):
    """No connection could be made."""


class Unavailable(Exception):  # noqa: N818
    """This file or folder cannot be had, whatever the number of attempts."""


def one_line(error: BaseException) -> str:
    """Say an exception of a library in one line."""
    return " ".join(str(error).split()) or type(error).__name__
