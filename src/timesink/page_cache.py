"""The page cache: how much of some files lies in memory; dropped, or filled, before a measurement.

What lies in memory is asked of the kernel (mincore), file by file: dropping is advice, and pages
that a process maps, that are locked or that have no disk below them stay whatever is advised.
"""

import contextlib
import ctypes
import errno
import mmap
import os
import stat
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

import numpy as np
import psutil

from timesink import machine
from timesink.datasets.images import ImageSet
from timesink.errors import RunError

MOST_RESIDENT = 0.01
"""The share of the bytes that may stay in memory and the cache still be called cold."""

_NOT_DROPPED = {
    0x01021994: "tmpfs, which is memory: there is no disk below",
    0x858458F6: "ramfs, which is memory: there is no disk below",
    0x958458F6: "hugetlbfs, which is memory: there is no disk below",
    0x2FC12FC1: "zfs, which keeps a cache of its own (ARC) that cannot be dropped or looked into",
}
"""Filesystems that no drop makes cold, by the number that statfs gives them (linux/magic.h)."""

_OVERLAY = 0x794C7630
_READ_BYTES = 1 << 20
_WINDOW_BYTES = 1 << 30
_THREADS = 4
_FILES_A_TASK = 256
_MAP_FAILED = ctypes.c_void_p(-1).value


@dataclass(frozen=True)
class Cache:
    """How much of some files lies in the page cache. A file that has two names counts once."""

    files: int
    total_bytes: int
    resident_bytes: int
    unknown_bytes: int = 0
    """Of files of other users that we may not write: of those the kernel does not say."""


@dataclass(frozen=True)
class _File:
    path: str
    device: int
    inode: int
    filesystem: int
    total_bytes: int
    resident_bytes: int | None


def residency(paths: Sequence[Path | str]) -> Cache:
    """Tell how much of the files lies in the page cache; missing files are passed over."""
    return _sum(_each(paths))


def drop(paths: Sequence[Path | str]) -> Cache:
    """Put the files out of the page cache, and make sure of it; gives what is left, at most 1 %.

    As root, the whole machine's caches are dropped too, those of directories and inodes included.
    """
    files = _each(paths, _advise)
    for file in files:
        if file.filesystem in _NOT_DROPPED:
            raise RunError(
                f"{file.path}: a cold cache cannot be had on {_NOT_DROPPED[file.filesystem]}; "
                "put the dataset on a disk, or leave out cache = cold"
            )
    # Pages not yet written stay. One sync of all, because an fsync a file flushes the disk a file.
    os.sync()
    _drop_everything()
    stayed = [file.path for file in files if file.resident_bytes != 0]
    again = {(file.device, file.inode): file for file in _each(stayed, _advise)}
    files = [again.get((file.device, file.inode), file) for file in files]
    left = _sum(files)
    if left.resident_bytes > MOST_RESIDENT * left.total_bytes:
        worst = max(files, key=lambda file: file.resident_bytes or 0)
        raise RunError(
            f"{worst.path}: {worst.resident_bytes:,} of its {worst.total_bytes:,} bytes stay in "
            f"the page cache (of all files, {left.resident_bytes:,} of {left.total_bytes:,}): "
            f"{_why_it_stays(worst)}"
        )
    return left


def warm(paths: Sequence[Path | str]) -> Cache:
    """Read the files, as far as free memory holds them; gives how much of them is there then."""
    left_bytes = machine.available_memory_bytes()
    held = []
    for file in _each(paths):
        left_bytes -= file.total_bytes
        if left_bytes < 0:
            break
        held.append(file.path)
    _each(held, _read)
    return residency(paths)


def disk_read_bytes() -> int | None:
    """Count the bytes that this process and its children made the disk read; None if untold.

    Of children that have ended, the kernel adds the count to their parent's.
    """
    own = _read_bytes_of(os.getpid())
    if own is None:
        return None
    children = psutil.Process().children(recursive=True)
    return own + sum(_read_bytes_of(child.pid) or 0 for child in children)


def files_of(images: ImageSet) -> list[str]:
    """Name the files that images are read from, each once: their own, or their store's."""
    return list(dict.fromkeys(images.paths if images.store is None else images.store.files))


def _each(paths: Sequence[Path | str], act: Callable[[int], None] | None = None) -> list[_File]:
    """Act on each file that can be opened, then look how much of it lies in memory."""
    if sys.platform != "linux":
        raise RunError("a cold or warm cache needs Linux; here only pipeline.cache = any works")

    def some(first: int) -> list[_File]:
        part = paths[first : first + _FILES_A_TASK]
        return [file for path in part if (file := _look(os.fspath(path), act)) is not None]

    with ThreadPoolExecutor(_THREADS) as threads:
        parts = list(threads.map(some, range(0, len(paths), _FILES_A_TASK)))
    return list({(file.device, file.inode): file for part in parts for file in part}.values())


def _look(path: str, act: Callable[[int], None] | None) -> _File | None:
    descriptor = None
    try:
        # Without O_NONBLOCK, opening a pipe would wait for somebody to write to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise RunError(f"{path}: not a file, so it has no pages in memory; name its files")
        if act is not None:
            act(descriptor)
        return _File(
            path=path,
            device=status.st_dev,
            inode=status.st_ino,
            filesystem=_filesystem(descriptor),
            total_bytes=status.st_size,
            resident_bytes=_resident_bytes(descriptor, status.st_size)
            if _may_look(path, status)
            else None,
        )
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            raise RunError(
                f"{path}: cannot be opened or mapped: {error.strerror}; "
                "`ulimit -n` and `ulimit -v` say what is allowed"
            ) from None
        return None  # missing or unreadable: told where images are read
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _advise(descriptor: int) -> None:
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


def _read(descriptor: int) -> None:
    buffer = bytearray(_READ_BYTES)
    while os.readv(descriptor, [buffer]):
        pass


def _drop_everything() -> None:
    """Drop the whole machine's clean pages, directories and inodes; only root may."""
    if os.geteuid() != 0:
        return
    # A container's root may be refused.
    with contextlib.suppress(OSError):
        Path("/proc/sys/vm/drop_caches").write_text("3\n")


def _sum(files: Sequence[_File]) -> Cache:
    return Cache(
        files=len(files),
        total_bytes=sum(file.total_bytes for file in files),
        resident_bytes=sum(file.resident_bytes or 0 for file in files),
        unknown_bytes=sum(file.total_bytes for file in files if file.resident_bytes is None),
    )


def _may_look(path: str, status: os.stat_result) -> bool:
    # To others than its owner and those who may write it, mincore says that all of a file is in
    # memory (since Linux 5.2).
    user = os.geteuid()
    return user in (0, status.st_uid) or os.access(path, os.W_OK, effective_ids=True)


def _resident_bytes(descriptor: int, total_bytes: int) -> int:
    """Ask the kernel which pages of a file are in memory, without bringing any there."""
    resident_bytes = 0
    page_bytes = mmap.PAGESIZE
    for offset in range(0, total_bytes, _WINDOW_BYTES):
        length = min(_WINDOW_BYTES, total_bytes - offset)
        address = _libc().mmap(None, length, mmap.PROT_READ, mmap.MAP_SHARED, descriptor, offset)
        if address == _MAP_FAILED:
            _raise_errno()
        try:
            pages = np.empty(-(-length // page_bytes), np.uint8)
            if _libc().mincore(address, length, pages.ctypes.data):
                _raise_errno()
        finally:
            _libc().munmap(address, length)
        pages &= 1
        beyond_end_bytes = len(pages) * page_bytes - length
        resident_bytes += int(pages.sum(dtype=np.int64)) * page_bytes
        resident_bytes -= int(pages[-1]) * beyond_end_bytes
    return resident_bytes


def _filesystem(descriptor: int) -> int:
    """Give the number of the file's filesystem, as statfs does; the first word of its answer."""
    answer = (ctypes.c_ulong * 64)()
    if _libc().fstatfs(descriptor, answer):
        _raise_errno()
    return answer[0]


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    size, number, address = ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p
    libc.mmap.restype = address
    libc.mmap.argtypes = [address, size, number, number, number, ctypes.c_long]
    libc.mincore.argtypes = [address, size, address]
    libc.munmap.argtypes = [address, size]
    return libc


def _raise_errno() -> NoReturn:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def _why_it_stays(file: _File) -> str:
    """Name the processes that map a file, of those that we may look into."""
    name = Path(file.path).resolve().name
    found = []
    for process in psutil.process_iter():
        try:
            lines = Path(f"/proc/{process.pid}/maps").read_text(errors="replace").splitlines()
            fields = (line.split(maxsplit=5) for line in lines)
            if any(
                line[4] == str(file.inode) and line[5].endswith(name)
                for line in fields
                if len(line) == 6
            ):
                mine = process.pid == os.getpid()
                found.append(
                    "this process" if mine else f"process {process.pid} ({process.name()})"
                )
        except (OSError, psutil.Error):
            continue
    if found:
        return f"{' and '.join(found)} maps it; that must end first"
    if file.filesystem == _OVERLAY:
        return "what is below its overlay is memory; put the dataset on a disk"
    return "a process that cannot be seen from here maps it; that must end first"


def _read_bytes_of(process: int) -> int | None:
    try:
        text = Path(f"/proc/{process}/io").read_text()
    except OSError:
        return None
    counts = dict(line.split(": ") for line in text.splitlines())
    return int(counts["read_bytes"]) if "read_bytes" in counts else None
