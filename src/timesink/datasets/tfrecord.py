"""TFRecords: many encoded images in few files, framed and checksummed, read a chunk at a time."""

import mmap
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from timesink.datasets.stores import framing
from timesink.datasets.verify import (
    CHECKSUM,
    MISSING,
    TRUNCATED,
    UNREADABLE,
    inspect_bytes,
)

CHUNK_BYTES = 8 << 20
"""What is read at once, at most; a record that is longer is read alone."""

FRAME_BYTES = framing.HEADER_BYTES + framing.FOOTER_BYTES

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class RecordStore:
    """Encoded images in TFRecord files.

    Records are numbered in the order of files and offsets, and so are chunks: ranges of bytes
    of one file, with whole records in them.
    """

    root: Path
    files: tuple[str, ...]
    """Absolute paths."""
    file_bytes: Ints
    chunk_file: NDArray[np.int32]
    chunk_offset: Ints
    chunk_bytes: Ints
    record_chunk: NDArray[np.int32]
    record_offset: Ints
    """Of the framed record, within its chunk."""
    record_bytes: Ints
    """Of the payload."""
    image_offset: Ints
    """Of the encoded image, within the chunk."""
    image_bytes: Ints

    def whole_files(self) -> bool:
        """Tell whether every chunk is a whole file."""
        whole = self.file_bytes[self.chunk_file]
        return bool(np.all(self.chunk_offset == 0) and np.all(self.chunk_bytes == whole))

    def intact(self, chunk: int) -> NDArray[np.bool_]:
        """Tell of each record of a chunk, in order, whether both its checksums hold."""
        first, stop = np.searchsorted(self.record_chunk, [chunk, chunk + 1])
        try:
            with self._mapped(chunk) as mapped:
                places = zip(
                    self.record_offset[first:stop].tolist(),
                    self.record_bytes[first:stop].tolist(),
                    strict=True,
                )
                held = [framing.holds(mapped, offset, length) for offset, length in places]
        except (OSError, ValueError):  # nothing of a file that is too short can be mapped
            return np.zeros(stop - first, np.bool_)
        return np.array(held, np.bool_)

    def fault(self, record: int) -> str | None:
        """Name what is wrong with a record: the file, the checksums, or the image in it."""
        chunk, offset = int(self.record_chunk[record]), int(self.record_offset[record])
        length = int(self.record_bytes[record])
        try:
            content = self._read(chunk, offset, length + FRAME_BYTES)
        except FileNotFoundError:
            return MISSING
        except OSError:
            return UNREADABLE
        if len(content) < length + FRAME_BYTES:
            return TRUNCATED
        if not framing.holds(content, 0, length):
            return CHECKSUM
        start = int(self.image_offset[record]) - offset
        return inspect_bytes(content[start : start + int(self.image_bytes[record])].tobytes())

    @contextmanager
    def _mapped(self, chunk: int) -> Iterator[NDArray[np.uint8]]:
        """Map a chunk: a copy of it would cost more than its checksums."""
        begin = int(self.chunk_offset[chunk])
        page = begin - begin % mmap.ALLOCATIONGRANULARITY
        descriptor = os.open(self.files[self.chunk_file[chunk]], os.O_RDONLY | os.O_CLOEXEC)
        try:
            # What lies behind the end of the file must not be looked at.
            end = min(begin + int(self.chunk_bytes[chunk]), os.fstat(descriptor).st_size)
            mapped = mmap.mmap(descriptor, end - page, prot=mmap.PROT_READ, offset=page)
        finally:
            os.close(descriptor)
        yield np.frombuffer(mapped, np.uint8)[begin - page :]

    def _read(self, chunk: int, offset: int, length: int) -> NDArray[np.uint8]:
        """Read a part of a chunk; a file that is too short gives less."""
        descriptor = os.open(self.files[self.chunk_file[chunk]], os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.pread(descriptor, length, int(self.chunk_offset[chunk]) + offset)
        finally:
            os.close(descriptor)
        return np.frombuffer(content, np.uint8)


def record_store(
    root: Path,
    files: Sequence[str],
    file_bytes: Sequence[int],
    *,
    shard: Ints,
    offset: Ints,
    payload_bytes: Ints,
    image_offset: Ints,
    image_bytes: Ints,
) -> RecordStore:
    """Put records into chunks; they come in the order of shards and offsets within these."""
    starts, ends = offset, offset + payload_bytes + FRAME_BYTES
    firsts: list[int] = []
    bounds = np.searchsorted(shard, np.arange(len(files) + 1))
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        at = low
        while at < high:
            firsts.append(at)
            fitting = np.searchsorted(ends[at:high], starts[at] + CHUNK_BYTES, side="right")
            at += max(1, int(fitting))
    first = np.array(firsts, np.int64)
    last = np.append(first[1:], len(shard)) - 1
    chunk_offset = starts[first]
    record_chunk = np.repeat(np.arange(len(first), dtype=np.int32), last - first + 1)
    return RecordStore(
        root=root,
        files=tuple(files),
        file_bytes=np.array(file_bytes, np.int64),
        chunk_file=shard[first].astype(np.int32),
        chunk_offset=chunk_offset,
        chunk_bytes=ends[last] - chunk_offset,
        record_chunk=record_chunk,
        record_offset=offset - chunk_offset[record_chunk],
        record_bytes=payload_bytes,
        image_offset=image_offset - chunk_offset[record_chunk],
        image_bytes=image_bytes,
    )
