"""What is wrong with a store: any bit that is not as it was written, by file, record and image."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import google_crc32c
import numpy as np
import polars as pl
from numpy.typing import NDArray

from timesink import machine
from timesink.datasets._workers import map_unordered
from timesink.datasets.stores import contents, framing
from timesink.datasets.stores.contents import Manifest
from timesink.datasets.stores.foreign_index import RecordIndex
from timesink.datasets.verify import (
    CHECKSUM,
    MISSING,
    TRUNCATED,
    UNREADABLE,
    USABLE,
    inspect_bytes,
)
from timesink.errors import DatasetError

UNFINISHED = "not finished: convert again"
TOO_LONG = "longer than it was written"


@dataclass(frozen=True)
class StoreFault:
    """What is wrong, and where: in a file, in one of its records, with one of its images."""

    file: str
    fault: str
    record: int | None = None
    """Its number within the file."""
    image: str | None = None

    @property
    def usable(self) -> bool:
        """Tell whether training gets over it."""
        return self.fault in USABLE


@dataclass(frozen=True)
class Verified:
    """A store that was looked at from end to end."""

    path: Path
    kind: str
    """tfrecord, materialized, or unknown where the manifest does not say."""
    images: int
    faults: tuple[StoreFault, ...]


@dataclass(frozen=True)
class _ShardTask:
    """A file and what stands in the index about it."""

    path: str
    kind: str
    size: int
    crc32c: int | None
    """None where nobody noted it."""
    offset: list[int]
    length: list[int]
    image_offset: list[int]
    image_bytes: list[int]
    crcs: list[int]
    images: list[bytes]
    decode: bool


def verify_store(
    path: Path,
    *,
    decode: bool = False,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Verified:
    """Check every byte of a store on all cores; `decode` the images of TFRecords as well.

    `advance` counts images.
    """
    if not contents.is_whole(path):
        return Verified(path, "unknown", 0, (StoreFault(contents.JOURNAL, UNFINISHED),))
    try:
        manifest = contents.read_manifest(path)
    except DatasetError as error:
        fault = StoreFault(contents.MANIFEST, _reason(error, path / contents.MANIFEST))
        return Verified(path, "unknown", 0, (fault,))
    faults = []
    try:
        index = contents.read_index(path, manifest)
    except DatasetError as error:
        faults.append(StoreFault(contents.INDEX, _reason(error, path / contents.INDEX)))
        index = None
    tasks = _tasks(path, manifest, index, decode=decode)
    faults += _check_all(tasks, workers, advance)
    images = sum(shard.records for shard in manifest.shards)
    return Verified(path, manifest.kind, images, tuple(faults))


def verify_records(
    records: RecordIndex,
    *,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Verified:
    """Check every record of somebody's TFRecords, and decode its image."""
    placed = _by_shard(records.index, len(records.files))
    tasks = [
        _task(path, "tfrecord", file.bytes, None, rows, decode=True)
        for path, file, rows in zip(records.paths(), records.files, placed, strict=True)
    ]
    faults = [StoreFault(file, what) for file, what in records.unreadable]
    faults += _check_all(tasks, workers, advance)
    return Verified(records.root, "tfrecord", len(records.index), tuple(faults))


def _tasks(
    path: Path, manifest: Manifest, index: pl.DataFrame | None, *, decode: bool
) -> list[_ShardTask]:
    if index is None:
        columns = contents.COLUMNS | contents.KIND_COLUMNS[manifest.kind]
        index = pl.DataFrame(schema=columns)
    placed = _by_shard(index, len(manifest.shards))
    return [
        _task(
            f"{path}/{shard.file}",
            manifest.kind,
            shard.bytes,
            int(shard.crc32c, 16),
            rows,
            decode=decode,
        )
        for shard, rows in zip(manifest.shards, placed, strict=True)
    ]


def _by_shard(index: pl.DataFrame, shards: int) -> list[pl.DataFrame]:
    placed = index.filter(pl.col("record").is_not_null()).sort("record")
    groups = {int(key[0]): part for key, part in placed.partition_by("shard", as_dict=True).items()}
    return [groups.get(number, placed.clear()) for number in range(shards)]


def _task(
    path: str, kind: str, size: int, crc: int | None, rows: pl.DataFrame, *, decode: bool
) -> _ShardTask:
    def column(name: str) -> list[int]:
        return rows[name].to_list() if name in rows.columns else []

    return _ShardTask(
        path=path,
        kind=kind,
        size=size,
        crc32c=crc,
        offset=column("offset"),
        length=column("bytes"),
        image_offset=column("image_offset"),
        image_bytes=column("image_bytes"),
        crcs=column("crc32c"),
        images=rows["path"].to_list(),
        decode=decode,
    )


def _check_all(
    tasks: Sequence[_ShardTask], workers: int | None, advance: Callable[[int], None]
) -> list[StoreFault]:
    faults: list[StoreFault] = []
    # A process costs as much as checking a quarter of a gigabyte, or decoding some images.
    worth = sum((4 << 20) * len(t.images) if t.decode else t.size for t in tasks) >> 28
    workers = min(workers or machine.cores(), len(tasks), 1 + worth)
    for count, found in map_unordered(_check, tasks, workers=workers):
        faults += found
        advance(count)
    return sorted(faults, key=lambda fault: (fault.file, fault.record is not None, fault.record))


def _check(task: _ShardTask) -> tuple[int, list[StoreFault]]:
    file = Path(task.path).name
    try:
        size = os.stat(task.path).st_size  # noqa: PTH116
        content = _mapped(task.path, min(size, task.size))
    except FileNotFoundError:
        return len(task.images), [StoreFault(file, MISSING)]
    except OSError:
        return len(task.images), [StoreFault(file, UNREADABLE)]
    check = partial(_record_fault, task, content)
    named = [(number, image, check(number)) for number, image in enumerate(task.images)]
    faults = [
        StoreFault(file, fault, number, os.fsdecode(image))
        for number, image, fault in named
        if fault is not None
    ]
    if size > task.size:
        faults.append(StoreFault(file, TOO_LONG))
    elif size < task.size:
        faults.append(StoreFault(file, TRUNCATED))
    elif (
        not any(fault.fault == CHECKSUM for fault in faults)
        and task.crc32c is not None
        and google_crc32c.value(content) != task.crc32c
    ):
        # Between the records, or with an index that cannot say where they are.
        faults.append(StoreFault(file, CHECKSUM))
    return len(task.images), faults


def _mapped(path: str, size: int) -> NDArray[np.uint8]:
    """Map a file: it may be larger than the memory."""
    return np.memmap(path, np.uint8, "r", shape=(size,)) if size else np.zeros(0, np.uint8)


def _record_fault(task: _ShardTask, content: NDArray[np.uint8], number: int) -> str | None:
    offset, length = task.offset[number], task.length[number]
    if task.kind == "materialized":
        record = content[offset : offset + length]
        if len(record) < length:
            return TRUNCATED
        return None if google_crc32c.value(record) == task.crcs[number] else CHECKSUM
    if offset + length + framing.HEADER_BYTES + framing.FOOTER_BYTES > len(content):
        return TRUNCATED
    if not framing.holds(content, offset, length):
        return CHECKSUM
    if not task.decode:
        return None
    start = task.image_offset[number]
    return inspect_bytes(content[start : start + task.image_bytes[number]].tobytes())


def _reason(error: DatasetError, path: Path) -> str:
    return str(error).removeprefix(f"{path}: ").partition(";")[0]
