"""An index read as images: those of a store, or of somebody's TFRecords, chosen as files are."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from timesink.datasets.folder import Found, choose
from timesink.datasets.images import ImageDataset, ImageSet
from timesink.datasets.materialized import MaterializedStore
from timesink.datasets.store import Store
from timesink.datasets.stores import contents
from timesink.datasets.stores.contents import StoreFiles
from timesink.datasets.stores.foreign_index import RecordIndex
from timesink.datasets.tfrecord import RecordStore, record_store
from timesink.experiment import DatasetSection


def open_store(store: StoreFiles, asked: DatasetSection, root: Path) -> ImageDataset:
    """Give the images of a store; `root` is what their names are relative to."""
    manifest = store.manifest
    dataset = _chosen(
        root,
        store.index,
        manifest.classes,
        asked,
        store_of(store),
        own_validation=manifest.own_validation,
    )
    notes = list(dataset.notes)
    if manifest.left_out_images:
        left_out = store.index.filter(pl.col("fault").is_not_null())
        first = os.fsdecode(left_out["path"][0])
        notes.append(
            f"broken images left out when the store was made: {manifest.left_out_images}, "
            f"such as {first} ({left_out['fault'][0]})"
        )
    return replace(dataset, notes=tuple(notes))


def open_foreign(records: RecordIndex, asked: DatasetSection) -> ImageDataset:
    """Give the images of somebody's TFRecords."""
    sizes = [file.bytes for file in records.files]
    store = _records(records.root, records.paths(), sizes, records.index)
    dataset = _chosen(
        records.root,
        records.index,
        records.classes,
        asked,
        store,
        own_validation=records.own_validation,
    )
    return replace(dataset, notes=(*records.notes, *dataset.notes))


def _chosen(
    root: Path,
    index: pl.DataFrame,
    classes: Sequence[str],
    asked: DatasetSection,
    store: Store,
    *,
    own_validation: bool,
) -> ImageDataset:
    """Choose images by an index: left-out ones count until the end, so that all else is equal."""
    train: dict[str, list[str]] = {name: [] for name in classes}
    validation: dict[str, list[str]] = {name: [] for name in classes}
    splits = {contents.TRAIN: train, contents.VALIDATION: validation}
    records: dict[str, dict[str, int]] = {split: {} for split in splits}
    prefix = f"{root}/"
    columns = index.select("path", "label", "split", "record")
    for name, label, split, record in columns.iter_rows():
        decoded = os.fsdecode(name)
        path = decoded if decoded.startswith("/") else prefix + decoded
        splits[split][classes[label]].append(path)
        if record is not None:
            records[split][path] = record
    not_held_out = None if own_validation else "no val folder"
    dataset = choose(
        Found(root, train, validation, (), not_held_out),
        classes=asked.classes,
        images_per_class=asked.images_per_class,
        validation_fraction=asked.validation_fraction,
    )
    held_out_of = contents.VALIDATION if own_validation else contents.TRAIN
    return replace(
        dataset,
        train=_with_records(dataset.train, records[contents.TRAIN], store),
        validation=_with_records(dataset.validation, records[held_out_of], store),
    )


def _with_records(images: ImageSet, records: dict[str, int], store: Store) -> ImageSet:
    """Say of each image where in the store it is; those that were left out are no more."""
    kept = [
        (path, label, records[path])
        for path, label in zip(images.paths, images.labels, strict=True)
        if path in records
    ]
    paths, labels, numbers = zip(*kept, strict=True) if kept else ((), (), ())
    return ImageSet(paths, labels, store, numbers)


def store_of(store: StoreFiles) -> Store:
    """Give what reads the records of a store."""
    manifest = store.manifest
    if manifest.kind == "tfrecord":
        sizes = [shard.bytes for shard in manifest.shards]
        return _records(store.root, store.files(), sizes, store.index)
    stored = store.index.filter(pl.col("record").is_not_null()).sort("record")
    assert manifest.shape is not None and manifest.dtype and manifest.image_size
    height, width, channels = manifest.shape
    return MaterializedStore(
        root=store.root,
        shape=(height, width, channels),
        dtype=manifest.dtype,
        stages=tuple(manifest.stages),
        image_size=manifest.image_size,
        files=store.files(),
        record_shard=stored["shard"].to_numpy(),
        record_offset=stored["offset"].to_numpy(),
        record_crc32c=stored["crc32c"].to_numpy(),
    )


def _records(
    root: Path, files: tuple[str, ...], sizes: list[int], index: pl.DataFrame
) -> RecordStore:
    stored = index.filter(pl.col("record").is_not_null()).sort("record")
    return record_store(
        root,
        files,
        sizes,
        shard=stored["shard"].to_numpy(),
        offset=stored["offset"].to_numpy(),
        payload_bytes=stored["bytes"].to_numpy(),
        image_offset=stored["image_offset"].to_numpy(),
        image_bytes=stored["image_bytes"].to_numpy(),
    )
