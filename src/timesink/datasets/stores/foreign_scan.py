"""Other people's TFRecords: which records they hold, of which class, and where the images lie.

Lengths and small features are looked at through a memory map, images are passed over, so that
few pages are read. What was found is kept in `.timesink`, for as long as the files stay the same.
"""

import mmap
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from timesink import machine
from timesink.datasets._workers import map_unordered
from timesink.datasets.stores import framing
from timesink.datasets.stores.contents import TRAIN, VALIDATION
from timesink.datasets.stores.examples import (
    BYTES,
    INTS,
    Feature,
    NotAnExampleError,
    byte_values,
    find_features,
    int_values,
)
from timesink.datasets.stores.foreign_keys import Keys, UnknownKeysError, guess_keys
from timesink.errors import DatasetError

TRIED_RECORDS = 16
"""Of the first file, to find out what is what."""

_NAME = re.compile(r"\.(tfrecords?|tfrec)(-\d{5}-of-\d{5})?(\.gz)?$|-\d{5}-of-\d{5}$", re.I)
_COMPRESSED = {b"\x1f\x8b": "GZIP"} | dict.fromkeys(
    (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), "ZLIB"
)


@dataclass(frozen=True)
class RecordFile:
    """One file, and what tells whether it has changed."""

    name: str
    """Relative to the folder that was searched."""
    bytes: int
    mtime_ns: int


@dataclass
class Scanned:
    """The records of one file, as columns."""

    number: int
    offset: list[int] = field(default_factory=list)
    payload_bytes: list[int] = field(default_factory=list)
    image_offset: list[int] = field(default_factory=list)
    image_bytes: list[int] = field(default_factory=list)
    label: list[int | bytes] = field(default_factory=list)
    texts: dict[int, set[bytes]] = field(default_factory=dict)
    """The names that stand beside a label."""
    passed_over: Counter[str] = field(default_factory=Counter)
    """Records that are no use, by reason."""
    damaged_at: int | None = None
    """Where the frame is broken: nothing from there on can be read."""


def find_record_files(folder: Path) -> list[RecordFile]:
    """Find the files below a folder that are named as TFRecords are."""
    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not _NAME.search(name) or name.startswith("."):
                continue
            path = Path(place, name)
            try:
                status = path.stat()
            except OSError:
                continue
            if path.is_file():
                relative = str(path.relative_to(folder))
                found.append(RecordFile(relative, status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda file: file.name)


def scan_files(
    folder: Path, files: Sequence[RecordFile], *, workers: int | None = None
) -> tuple[Keys, list[Scanned]]:
    """Look through all files on all cores; gives the records of each in their order."""
    keys = _keys_of(folder, files)
    tasks = [(number, str(folder / file.name)) for number, file in enumerate(files)]
    workers = min(workers or machine.cores(), len(tasks), 1 + _work_bytes(files) // (1 << 28))
    scanned = sorted(
        map_unordered(partial(_scan, keys), tasks, workers=workers), key=lambda s: s.number
    )
    return keys, scanned


def splits_of(files: Sequence[RecordFile]) -> tuple[list[str | None], str | None]:
    """Tell each file's split by its name; None is not used. Gives a note where one is."""
    marks = [_mark(file.name) for file in files]
    if set(marks) <= {"validation", "test"} and len(set(marks)) == 1:
        return [TRAIN] * len(files), None
    # Where there is a validation split, a test split is for later, often without labels.
    has_validation = "validation" in marks
    splits = {"train": TRAIN, "": TRAIN, "validation": VALIDATION}
    splits |= {} if has_validation else {"test": VALIDATION}
    note = None
    if has_validation and "test" in marks:
        note = f"{marks.count('test')} test files are not used: there is a validation split"
    return [splits.get(mark) for mark in marks], note


def _mark(name: str) -> str:
    """Find a split's name in a path: the nearest to the file's own name counts."""
    for part in reversed(Path(name).parts):
        for word in re.split(r"[^a-z]+", part.lower()):
            if word in ("train", "training"):
                return "train"
            if word in ("val", "valid", "validation", "eval"):
                return "validation"
            if word in ("test", "testing"):
                return "test"
    return ""


def _work_bytes(files: Sequence[RecordFile]) -> int:
    return sum(file.bytes for file in files)


def _keys_of(folder: Path, files: Sequence[RecordFile]) -> Keys:
    """Guess the keys by the first records that can be read; each file must be a TFRecord's."""
    problem: tuple[str, str] | None = None
    for file in files:
        if not file.bytes:
            continue
        path = folder / file.name
        with _mapped(path) as content:
            _refuse_compressed(path, content)
            offset = 0
            for _ in range(TRIED_RECORDS):
                length = _record_at(content, offset)
                if length is None:
                    break
                start = offset + framing.HEADER_BYTES
                try:
                    return guess_keys(content, start, start + length)
                except UnknownKeysError as error:
                    problem = problem or (str(path), str(error))
                except NotAnExampleError:
                    problem = problem or (str(path), "its records are no tf.train.Example")
                offset = start + length + framing.FOOTER_BYTES
    if problem is not None:
        raise DatasetError(": ".join(problem))
    raise DatasetError(
        f"{folder / files[0].name}: no record can be read: not a TFRecord file, or damaged"
    )


def _scan(keys: Keys, task: tuple[int, str]) -> Scanned:
    number, path = task
    scanned = Scanned(number)
    if not Path(path).stat().st_size:
        return scanned
    with _mapped(Path(path)) as content:
        _refuse_compressed(Path(path), content)
        offset = 0
        while offset < len(content):
            length = _record_at(content, offset)
            if length is None:
                scanned.damaged_at = offset
                break
            _note(scanned, keys, content, offset, length)
            offset += framing.HEADER_BYTES + length + framing.FOOTER_BYTES
    return scanned


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DatasetError(f"{path}: cannot be read: {reason}") from None
    if hasattr(mmap, "MADV_RANDOM"):
        content.madvise(mmap.MADV_RANDOM)
    return content


def _refuse_compressed(path: Path, content: mmap.mmap) -> None:
    kind = _COMPRESSED.get(content[:2])
    if kind is not None and framing.payload_bytes(content[: framing.HEADER_BYTES]) is None:
        raise DatasetError(
            f"{path}: compressed ({kind}): records in it cannot be reached one by one; "
            "decompress it first"
        )


def _record_at(content: mmap.mmap, offset: int) -> int | None:
    """Give the length of a record's payload; None where the frame does not hold."""
    length = framing.payload_bytes(content[offset : offset + framing.HEADER_BYTES])
    room = len(content) - offset - framing.HEADER_BYTES - framing.FOOTER_BYTES
    return length if length is not None and length <= room else None


def _note(scanned: Scanned, keys: Keys, content: mmap.mmap, offset: int, length: int) -> None:
    start = offset + framing.HEADER_BYTES
    try:
        features = find_features(content, start, start + length).features
        image = _only_bytes(content, features.get(keys.image))
        text = _only_bytes(content, features.get(keys.text)) if keys.text else None
        label = _only_int(content, features.get(keys.label)) if keys.label else None
    except NotAnExampleError:
        scanned.passed_over["is no tf.train.Example"] += 1
        return
    named = content[text[0] : sum(text)] if text is not None else None
    known: int | bytes | None = label if keys.label else named
    if image is None:
        scanned.passed_over["has no image"] += 1
    elif known is None:
        scanned.passed_over["has no label"] += 1
    else:
        scanned.offset.append(offset)
        scanned.payload_bytes.append(length)
        scanned.image_offset.append(image[0])
        scanned.image_bytes.append(image[1])
        scanned.label.append(known)
        if named is not None and isinstance(known, int):
            scanned.texts.setdefault(known, set()).add(named)


def _only_bytes(content: mmap.mmap, feature: Feature | None) -> tuple[int, int] | None:
    if feature is None or feature.kind != BYTES:
        return None
    values = list(byte_values(content, feature))
    return values[0] if len(values) == 1 else None


def _only_int(content: mmap.mmap, feature: Feature | None) -> int | None:
    if feature is None or feature.kind != INTS:
        return None
    values = int_values(content, feature, most=2)
    return values[0] if len(values) == 1 else None
