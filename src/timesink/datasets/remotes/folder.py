"""A folder of this machine as a remote place: another disk, a mounted share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from timesink.datasets.remotes.remote import CHUNK_BYTES, Entry, Incoming, Unavailable


class FolderRemote:
    """Reads below one folder; it needs no extra."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root_identity = os.path.realpath(root)

    def list_folder(self, path: str, identity: str) -> list[Entry]:
        """List a folder; a link is what it leads to."""
        with _translated(), os.scandir(self.root / path) as names:
            return [_entry(name, identity) for name in names if name.is_symlink() or _plain(name)]

    @contextmanager
    def open(self, path: str, known_version: str | None) -> Iterator[Incoming | None]:
        """Open a file."""
        with _translated():
            file = (self.root / path).open("rb")
        with file:
            stat = os.fstat(file.fileno())
            yield Incoming(
                stat.st_size, f"mtime_ns {stat.st_mtime_ns}", int(stat.st_mtime), _chunks(file)
            )

    def close(self) -> None:
        """Do nothing: no connection is held."""


def _plain(name: "os.DirEntry[str]") -> bool:
    """Opening a pipe or a device could block for ever."""
    return name.is_file() or name.is_dir()


def _entry(name: "os.DirEntry[str]", parent: str) -> Entry:
    if name.is_dir():
        real = os.path.realpath(name.path) if name.is_symlink() else f"{parent}/{name.name}"
        return Entry(name.name, is_folder=True, identity=real)
    try:
        stat = name.stat()
    except OSError:
        return Entry(name.name, is_folder=False)  # a dangling link: opening it says so
    return Entry(
        name.name,
        is_folder=False,
        size_bytes=stat.st_size,
        version=f"mtime_ns {stat.st_mtime_ns}",
        mtime_s=int(stat.st_mtime),
    )


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    while True:
        with _translated():
            chunk = file.read(CHUNK_BYTES)
        if not chunk:
            return
        yield chunk


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(error.strerror or "cannot be read") from None
