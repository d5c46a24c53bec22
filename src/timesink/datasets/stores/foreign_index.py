"""Somebody's TFRecords as an index like a store's: scanned once, then read again from `.timesink`.

.timesink/tfrecord-index.parquet   a row for each image
.timesink/tfrecord-index.json      of which files, by name, size and time; the classes; notes
"""

import io
import json
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import google_crc32c
import polars as pl

from timesink.datasets.stores import contents
from timesink.datasets.stores.foreign_scan import (
    RecordFile,
    Scanned,
    find_record_files,
    scan_files,
    splits_of,
)
from timesink.errors import DatasetError, DiskFullError
from timesink.files import write_atomically

VERSION = 1
SETTLED_NS = 1_000_000_000
"""Times on disks are coarse: a file this old would show a change."""
INDEX, FACTS = "tfrecord-index.parquet", "tfrecord-index.json"
COLUMNS = contents.COLUMNS | contents.KIND_COLUMNS["tfrecord"]


@dataclass(frozen=True)
class RecordIndex:
    """The images in some TFRecord files."""

    root: Path
    files: tuple[RecordFile, ...]
    classes: tuple[str, ...]
    own_validation: bool
    unreadable: tuple[tuple[str, str], ...]
    """What of which file could not be used."""
    notes: tuple[str, ...]
    index: pl.DataFrame

    def paths(self) -> tuple[str, ...]:
        """Give the paths of the files."""
        return tuple(f"{self.root}/{file.name}" for file in self.files)


def open_records(root: Path) -> RecordIndex | None:
    """Index the TFRecords below a folder; None where there are none."""
    files = tuple(find_record_files(root))
    if not files:
        return None
    known = _read(root, files)
    if known is None:
        known = _scanned(root, files)
        # A file written just now may be written again without its time showing it.
        if time.time_ns() - max(file.mtime_ns for file in files) > SETTLED_NS:
            # A folder that cannot be written is scanned each time.
            with suppress(OSError, DiskFullError):
                _write(known)
    return known


def _scanned(root: Path, files: tuple[RecordFile, ...]) -> RecordIndex:
    keys, scanned = scan_files(root, files)
    splits, note = splits_of(files)
    unreadable = _unreadable(files, scanned)
    notes = [f"TFRecords are read as {keys}", *(f"{file}: {what}" for file, what in unreadable)]
    if note is not None:
        notes.append(note)
    used = [s for s in scanned if splits[s.number] is not None]
    classes = _classes(used)
    labels = {label: number for number, label in enumerate(classes)}
    parts = [_rows(files[s.number], s, str(splits[s.number]), labels) for s in used]
    index = pl.concat(parts) if parts else pl.DataFrame(schema=COLUMNS)
    if not (index["split"] == contents.TRAIN).any():
        raise DatasetError(f"{root}: the TFRecords hold no image with a label to train on")
    index = index.with_columns(pl.int_range(len(index)).alias("record"))
    return RecordIndex(
        root=root,
        files=files,
        classes=tuple(classes.values()),
        own_validation=contents.VALIDATION in splits,
        unreadable=unreadable,
        notes=tuple(notes),
        index=index,
    )


def _rows(
    file: RecordFile, scanned: Scanned, split: str, labels: dict[int | bytes, int]
) -> pl.DataFrame:
    count = len(scanned.offset)
    name = file.name.encode("utf-8", "surrogateescape")
    return pl.DataFrame(
        {
            "path": [b"%s#%d" % (name, number) for number in range(count)],
            "label": [labels[label] for label in scanned.label],
            "split": [split] * count,
            "file_bytes": scanned.image_bytes,
            "fault": [None] * count,
            "record": [0] * count,
            "shard": [scanned.number] * count,
            "offset": scanned.offset,
            "bytes": scanned.payload_bytes,
            "image_offset": scanned.image_offset,
            "image_bytes": scanned.image_bytes,
        },
        schema=COLUMNS,
    )


def _classes(scanned: Sequence[Scanned]) -> dict[int | bytes, str]:
    """Give the labels in order, each with a name of its own: the one beside it, or the number."""
    labels = {label for s in scanned for label in s.label}
    numbers = sorted(label for label in labels if isinstance(label, int))
    if not numbers:
        texts = sorted(label for label in labels if isinstance(label, bytes))
        return {text: text.decode("utf-8", "surrogateescape") for text in texts}
    names: dict[int, set[bytes]] = {}
    for s in scanned:
        for label, texts_beside in s.texts.items():
            names.setdefault(label, set()).update(texts_beside)
    if any(len(names.get(label, ())) != 1 for label in numbers):
        return {label: str(label) for label in numbers}
    named = {label: next(iter(names[label])).decode("utf-8", "replace") for label in numbers}
    twice = {name for name, count in Counter(named.values()).items() if count > 1}
    # ImageNet has two classes called crane.
    return {n: f"{name} ({n})" if name in twice else name for n, name in named.items()}


def _unreadable(
    files: Sequence[RecordFile], scanned: Sequence[Scanned]
) -> tuple[tuple[str, str], ...]:
    """Tell what of which file could not be used, so that nothing is missing in silence."""
    found = []
    for s in scanned:
        file = files[s.number]
        if s.damaged_at is not None:
            what = (
                f"damaged or cut off: {file.bytes - s.damaged_at:,} of {file.bytes:,} bytes, "
                f"from byte {s.damaged_at:,} on, cannot be read"
            )
            found.append((file.name, what))
        for reason, count in sorted(s.passed_over.items()):
            found.append((file.name, f"{count:,} records passed over: each {reason}"))
    return tuple(found)


def _read(root: Path, files: tuple[RecordFile, ...]) -> RecordIndex | None:
    """Read what an earlier scan of the same files found."""
    folder = root / contents.FOLDER
    try:
        facts: Any = json.loads((folder / FACTS).read_bytes())
        content = (folder / INDEX).read_bytes()
        if facts["version"] != VERSION or facts["crc32c"] != google_crc32c.value(content):
            return None
        if [RecordFile(**file) for file in facts["files"]] != list(files):
            return None
        index = pl.read_parquet(content)
        if index.schema != COLUMNS:
            return None
        return RecordIndex(
            root=root,
            files=files,
            classes=tuple(map(str, facts["classes"])),
            own_validation=facts["own_validation"] is True,
            unreadable=tuple((str(file), str(what)) for file, what in facts["unreadable"]),
            notes=tuple(map(str, facts["notes"])),
            index=index,
        )
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        return None


def _write(found: RecordIndex) -> None:
    buffer = io.BytesIO()
    found.index.write_parquet(buffer)
    facts = {
        "version": VERSION,
        "files": [asdict(file) for file in found.files],
        "classes": found.classes,
        "own_validation": found.own_validation,
        "unreadable": found.unreadable,
        "notes": found.notes,
        "crc32c": google_crc32c.value(buffer.getvalue()),
    }
    folder = found.root / contents.FOLDER
    folder.mkdir(exist_ok=True)
    write_atomically(folder / INDEX, buffer.getvalue())
    write_atomically(folder / FACTS, json.dumps(facts))
