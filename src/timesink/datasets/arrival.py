"""One remote file on its way to the disk: whole under its name, or absent."""

import errno
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from timesink.datasets.remotes.remote import Incoming, Interrupted, Unavailable
from timesink.errors import DiskFullError, SyncError

PART_NAME = re.compile(r"\.[0-9a-f]{16}\.timesink\.part")

ONLY_THIS_FILE = (
    errno.ENAMETOOLONG,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.EINVAL,
    errno.EILSEQ,
)


def receive(incoming: Incoming, target: Path) -> int:
    """Write a file that is coming in; gives its bytes. Too few or too many are Interrupted."""
    # Without the target's name in it, the longest name a disk takes still fits.
    part = target.with_name(f".{secrets.token_hex(8)}.timesink.part")
    with _translated(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            received_bytes = _write(incoming, part)
            part.replace(target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return received_bytes


def _write(incoming: Incoming, part: Path) -> int:
    received_bytes = 0
    with part.open("xb") as file:
        for chunk in incoming.chunks:
            file.write(chunk)
            received_bytes += len(chunk)
        if incoming.size_bytes is not None and received_bytes != incoming.size_bytes:
            raise Interrupted(f"{received_bytes} of {incoming.size_bytes} bytes came")
        file.flush()
        # Else a power cut could leave the name with nothing in it.
        os.fsync(file.fileno())
    if incoming.mtime_s is not None:
        os.utime(part, (incoming.mtime_s, incoming.mtime_s))
    return received_bytes


def remove_leftovers(local: Path) -> int:
    """Remove what a killed sync left half written; gives how many."""
    removed = 0
    for folder, _, names in os.walk(local):
        for name in names:
            if PART_NAME.fullmatch(name):
                Path(folder, name).unlink(missing_ok=True)
                removed += 1
    return removed


@contextmanager
def _translated(target: Path) -> Iterator[None]:
    """Tell a full disk, a name that cannot be and a place that cannot be written apart."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(
                f"{target.parent}: the disk is full: free some space and run the same command again"
            ) from None
        if error.errno in ONLY_THIS_FILE:
            raise Unavailable(f"cannot be written here: {error.strerror}") from None
        raise SyncError(f"{target.parent}: cannot be written: {error.strerror}") from None
