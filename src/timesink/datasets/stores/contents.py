"""What a store says of itself: manifest.json and index.parquet, both checked before they are used.

    manifest.json   what it is, of which images, its shards with their checksums; only when whole
    index.parquet   each image of the dataset in its order: name, label, split, where it lies
    journal.jsonl   in place of both while it is being made: the shards that are done

The manifest's last line is a checksum of all before it, and the manifest has that of the index.
"""

import io
import json
import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Literal

import google_crc32c
import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from timesink.datasets.stores.framing import FOOTER_BYTES, HEADER_BYTES
from timesink.errors import DatasetError
from timesink.files import write_atomically

MANIFEST, INDEX, JOURNAL = "manifest.json", "index.parquet", "journal.jsonl"
FOLDER = ".timesink"
"""Where stores lie in a dataset, hidden from the search for classes."""
VERSION: Literal[1] = 1

TRAIN, VALIDATION = "train", "validation"
MAX_MANIFEST_BYTES = 1 << 28
MOST_SIDE = 1 << 16

_TAIL = '"checksum": "{:08x}"\n}}\n'
_TAIL_BYTES = len(_TAIL.format(0))

COLUMNS: dict[str, type[pl.DataType]] = {
    "path": pl.Binary,  # a file's name need not be UTF-8
    "label": pl.Int32,
    "split": pl.String,
    "file_bytes": pl.Int64,
    "fault": pl.String,
    "record": pl.Int64,
    "shard": pl.Int32,
    "offset": pl.Int64,
    "bytes": pl.Int64,
}
KIND_COLUMNS: dict[str, dict[str, type[pl.DataType]]] = {
    "tfrecord": {"image_offset": pl.Int64, "image_bytes": pl.Int64},
    "materialized": {"crc32c": pl.UInt32},
}
"""Columns of the index; an image that was left out has a fault and no record."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class Shard(_Strict):
    """One file of records."""

    file: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """A plain name: it cannot lead out of the store."""
    records: int = Field(ge=0)
    bytes: int = Field(ge=0)
    crc32c: str = Field(pattern=r"^[0-9a-f]{8}$")


class Manifest(_Strict):
    """A whole store."""

    kind: Literal["tfrecord", "materialized"]
    version: Literal[1]
    made_by: str
    complete: Literal[True]
    plan: str
    """Of which images, in which order and shards: the same plan gives the same bytes."""
    fingerprint: str
    """Of the list of images, as `ImageDataset.fingerprint` gives it."""
    classes: list[Any]
    """Texts; Any because a folder's name that is not UTF-8 is no text to pydantic."""
    own_validation: bool
    train_images: int
    validation_images: int
    left_out_images: int
    raw_bytes: int
    """Of the image files."""
    stages: list[str]
    image_size: int | None
    dtype: Literal["uint8", "float32"] | None
    shape: list[int] | None
    index_bytes: int
    index_crc32c: str
    shards: list[Shard]

    @property
    def store_bytes(self) -> int:
        """The bytes of its shards and its index."""
        return sum(shard.bytes for shard in self.shards) + self.index_bytes


@dataclass(frozen=True)
class StoreFiles:
    """A store's manifest and index, as read."""

    root: Path
    manifest: Manifest
    index: pl.DataFrame

    def files(self) -> tuple[str, ...]:
        """Give the paths of the shards."""
        return tuple(f"{self.root}/{shard.file}" for shard in self.manifest.shards)


def is_store(path: Path) -> bool:
    """Tell whether a folder is a store, or is becoming one."""
    return is_whole(path) or is_unfinished(path)


def is_whole(path: Path) -> bool:
    """Tell whether a folder is a store that was finished, whatever happened to it since."""
    return (path / MANIFEST).is_file()


def is_unfinished(path: Path) -> bool:
    """Tell whether a conversion was stopped, or is at work, in a folder."""
    return (path / JOURNAL).is_file()


def write_store(root: Path, manifest: dict[str, Any], index: pl.DataFrame) -> Manifest:
    """Write the index, then the manifest: with that the store is whole."""
    buffer = io.BytesIO()
    index.write_parquet(buffer)
    content = buffer.getvalue()
    write_atomically(root / INDEX, content)
    facts = Manifest(
        version=VERSION,
        complete=True,
        index_bytes=len(content),
        index_crc32c=f"{google_crc32c.value(content):08x}",
        **manifest,
    )
    head = json.dumps(facts.model_dump(), indent=1).removesuffix("\n}").encode() + b",\n "
    write_atomically(root / MANIFEST, head + _TAIL.format(google_crc32c.value(head)).encode())
    return facts


def read_store(root: Path) -> StoreFiles:
    """Read a store; a DatasetError names what is damaged."""
    manifest = read_manifest(root)
    return StoreFiles(root, manifest, read_index(root, manifest))


def read_manifest(root: Path) -> Manifest:
    """Read a store's manifest, its checksum and all it says checked."""
    path = root / MANIFEST
    content = _read(path, MAX_MANIFEST_BYTES)
    head, tail = content[:-_TAIL_BYTES], content[-_TAIL_BYTES:]
    if tail != _TAIL.format(google_crc32c.value(head)).encode():
        raise DatasetError(f"{path}: damaged: its checksum does not match; convert again")
    try:
        facts = json.loads(content)
        del facts["checksum"]
        manifest = Manifest(**facts)
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise DatasetError(
            f"{path}: not a store of this version: {str(error).splitlines()[0]}; convert again"
        ) from None
    if not all(isinstance(name, str) for name in manifest.classes):
        raise DatasetError(f"{path}: classes are not names; convert again")
    if manifest.kind == "materialized" and (
        manifest.image_size is None
        or manifest.dtype is None
        or manifest.shape is None
        or len(manifest.shape) != 3
        or not all(0 < side <= MOST_SIDE for side in manifest.shape)
    ):
        raise DatasetError(f"{path}: the images have no size or type; convert again")
    return manifest


def read_index(root: Path, manifest: Manifest) -> pl.DataFrame:
    """Read a store's index, its checksum and every place in it checked."""
    path = root / INDEX
    content = _read(path, manifest.index_bytes)
    if f"{google_crc32c.value(content):08x}" != manifest.index_crc32c:
        raise DatasetError(f"{path}: damaged: its checksum does not match; convert again")
    try:
        index = pl.read_parquet(content)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DatasetError(f"{path}: not Parquet: {error}; convert again") from None
    wrong = fault_of_index(index, manifest)
    if wrong is not None:
        raise DatasetError(f"{path}: {wrong}; convert again")
    return index


def fault_of_index(index: pl.DataFrame, manifest: Manifest) -> str | None:
    """Name what in an index leads out of the store's files; None when nothing does."""
    if index.schema != COLUMNS | KIND_COLUMNS[manifest.kind]:
        return "other columns than a store's"
    stored = index.filter(pl.col("record").is_not_null()).sort("record")
    places = ("label", "record", "shard", "offset", "bytes", *KIND_COLUMNS[manifest.kind])
    if any(stored.select(pl.col(places).is_null().any()).row(0)):
        return "a record without a place"
    if not index["label"].is_between(0, len(manifest.classes) - 1).all():
        return "a label without a class"
    if not index["split"].is_in([TRAIN, VALIDATION]).all():
        return "a split that is neither train nor validation"
    if stored["record"].to_list() != list(range(len(stored))):
        return "records that are not numbered one by one"
    shard = stored["shard"].to_numpy()
    counts = np.bincount(shard[shard >= 0], minlength=len(manifest.shards)).tolist()
    if counts != [s.records for s in manifest.shards] or not stored["shard"].is_sorted():
        return "other records than the manifest's"
    sizes = np.array([s.bytes for s in manifest.shards], np.int64)
    offset, length = stored["offset"].to_numpy(), stored["bytes"].to_numpy()
    frame = HEADER_BYTES + FOOTER_BYTES if manifest.kind == "tfrecord" else 0
    room = sizes[shard] - offset - frame if len(shard) else offset
    if (offset < 0).any() or (length < 0).any() or (length > room).any():
        return "a record outside of its shard"
    if manifest.kind == "tfrecord":
        start = stored["image_offset"].to_numpy() - offset - HEADER_BYTES
        image_length = stored["image_bytes"].to_numpy()
        if (start < 0).any() or (image_length < 0).any() or (image_length > length - start).any():
            return "an image outside of its record"
    elif (length != _record_bytes(manifest)).any():
        return "a record of another size"
    if any(b"\0" in path or ".." in PurePath(os.fsdecode(path)).parts for path in _odd(index)):
        return "an image whose name leads out of the dataset"
    return None


def _odd(index: pl.DataFrame) -> list[bytes]:
    """Give the few names that need a closer look."""
    paths = index["path"]
    return paths.filter(paths.bin.contains(b"..") | paths.bin.contains(b"\0")).to_list()


def _record_bytes(manifest: Manifest) -> int:
    assert manifest.shape is not None
    return int(np.prod(manifest.shape)) * np.dtype(manifest.dtype).itemsize


def _read(path: Path, most_bytes: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(most_bytes + 1)
    except FileNotFoundError:
        raise DatasetError(f"{path}: missing; convert again") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > most_bytes:
        raise DatasetError(f"{path}: damaged: longer than it was written; convert again")
    return content
