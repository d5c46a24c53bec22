"""Files that are whole or absent: written under a temporary name, then renamed; one writer."""

import errno
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from timesink.errors import DiskFullError, OutputExistsError, TimesinkError

TEMPORARY_SUFFIX = ".tmp"
"""Ends the name of everything that is still being written; safe to delete at any time."""


@contextmanager
def replacing(path: Path, *, force: bool = True) -> Iterator[Path]:
    """Yield a temporary name beside `path`; what was written there becomes `path` at the end.

    A file or a directory. On an error nothing is left; a full disk is a DiskFullError.
    """
    if not force and path.exists():
        raise OutputExistsError(f"{path} exists; --force overwrites it")
    temporary = path.with_name(
        f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        _sync(temporary)
        if temporary.is_dir() and path.is_dir():
            shutil.rmtree(path)
        temporary.replace(path)
        _sync_one(path.parent)
    except OSError as error:
        _remove(temporary)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"{path}: the disk is full: free some space and try again"
            ) from error
        raise
    except BaseException:
        _remove(temporary)
        raise


@contextmanager
def alone_in(folder: Path, what: str, error: type[TimesinkError]) -> Iterator[None]:
    """Keep a second one out of a folder: it would remove the first one's unfinished files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise error(f"{folder}: another {what} is at work there; wait for its end") from None
        except OSError:
            pass  # a filesystem without locks
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, content: str | bytes, *, force: bool = True) -> None:
    """Write a whole file, or leave what was there."""
    with replacing(path, force=force) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def _sync(path: Path) -> None:
    """Flush a file, or a directory with the files in it, to the disk."""
    for member in path.rglob("*"):
        _sync_one(member)
    _sync_one(path)


def _sync_one(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
