"""The images of a dataset from the source that is asked for: files, a store, or none at all."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from timesink.datasets import materialized
from timesink.datasets.folder import check_folder, choose, find_images, open_asked, open_dataset
from timesink.datasets.images import ImageDataset, ImageSet
from timesink.datasets.stores import contents
from timesink.datasets.stores.contents import StoreFiles
from timesink.datasets.stores.foreign_index import RecordIndex, open_records
from timesink.datasets.stores.opening import open_foreign, open_store
from timesink.errors import DatasetError
from timesink.experiment import DatasetSection

SYNTHETIC_CLASSES, SYNTHETIC_IMAGES = 10, 100
LOOKED_AT = 1000
"""Image files whose size is compared with what it was when the store was made."""


def open_source(
    asked: DatasetSection, source: str, *, stages: tuple[str, ...], image_size: int, stored: str
) -> ImageDataset:
    """Find the images an experiment asks for, in the source that its pipeline reads.

    `stages` are those that a materialized store must have done, in their canonical form. Classes,
    held-out part and cap choose the same images with the same labels from every source.
    """
    if source == "synthetic" and asked.path is None:
        return _made_up(asked)
    if asked.path is None:
        raise DatasetError("dataset.path is missing: name the folder of the images")
    path = Path(os.path.abspath(Path(asked.path).expanduser()))  # noqa: PTH100  links stay
    match source:
        case "tfrecord":
            return _open_records(asked, path)
        case "materialized":
            return _open_materialized(asked, path, stages, image_size, stored)
        case "synthetic":
            return _without_files(asked, path)
    if contents.is_whole(path):
        kind = contents.read_manifest(path).kind
        raise DatasetError(f"{path}: not image files but a store: set pipeline.source={kind}")
    return open_asked(asked)


@dataclass(frozen=True)
class There:
    """What a path holds: image files, stores made of them, or somebody's TFRecords."""

    dataset: ImageDataset | None
    stores: tuple[Path, ...]
    records: RecordIndex | None


def look(path: Path) -> There:
    """Find out what a path holds; a DatasetError where it is nothing of use."""
    root = Path(os.path.abspath(path))  # noqa: PTH100  links stay as the user knows them
    stores = tuple(stores_of(root))
    if stores == (root,):
        return There(None, stores, None)
    try:
        return There(open_dataset(path), stores, None)
    except DatasetError:
        records = open_records(root) if root.is_dir() else None
        if records is None and not stores:
            raise
        return There(None, stores, records)


def stores_of(path: Path) -> list[Path]:
    """Find the stores of a dataset, whole or not; a path that is one itself is the only one."""
    if contents.is_store(path):
        return [path]
    folder = path / contents.FOLDER
    places = [folder / "tfrecord", *sorted((folder / "materialized").glob("*"))]
    return [place for place in places if contents.is_store(place)]


def convert_command(
    path: str, kind: str, *, stages: Sequence[str] = (), image_size: int = 0, stored: str = "uint8"
) -> str:
    """Write the command that makes a store."""
    words = ["timesink", "dataset", "convert", path, "--to", kind]
    if kind == "materialized":
        words += ["--size", str(image_size)]
        if tuple(stages) != materialized.DEFAULT_STAGES:
            words += ["--stages", ", ".join(stages)]
        if stored != "uint8":
            words += ["--stored", stored]
    return shlex.join(words)


def _open_records(asked: DatasetSection, path: Path) -> ImageDataset:
    place = path if contents.is_store(path) else path / contents.FOLDER / "tfrecord"
    command = convert_command(_typed(path), "tfrecord")
    if contents.is_whole(place):
        store = contents.read_store(place)
        if store.manifest.kind != "tfrecord":
            raise DatasetError(
                f"{place}: a store of source {store.manifest.kind}: set "
                f"pipeline.source={store.manifest.kind}, or name TFRecords"
            )
        return _with_changes(store, open_store(store, asked, _root(path, place)), path, command)
    if contents.is_unfinished(place):
        raise DatasetError(f"{place}: not finished: go on with `{command}`")
    check_folder(path)
    records = open_records(path)
    if records is None:
        raise DatasetError(f"{path}: no TFRecords: `{command}` makes them of the images")
    return open_foreign(records, asked)


def _open_materialized(
    asked: DatasetSection, path: Path, stages: tuple[str, ...], image_size: int, stored: str
) -> ImageDataset:
    itself = contents.is_store(path)
    folder = path / contents.FOLDER / "materialized"
    place = path if itself else folder / materialized.folder_name(stages, image_size, stored)
    command = convert_command(
        "DATASET" if itself else _typed(path),
        "materialized",
        stages=stages,
        image_size=image_size,
        stored=stored,
    )
    if contents.is_unfinished(place) and not contents.is_whole(place):
        raise DatasetError(f"{place}: not finished: go on with `{command}`")
    if not contents.is_whole(place):
        check_folder(path)
        others = [p.name for p in sorted(folder.glob("*")) if contents.is_whole(p)]
        there = f" (there is {', '.join(others)})" if others else ""
        raise DatasetError(f"{path}: no such materialized images{there}: `{command}` makes them")
    store = contents.read_store(place)
    manifest = store.manifest
    if manifest.kind != "materialized":
        raise DatasetError(f"{place}: a store of source {manifest.kind}: set pipeline.source")
    for key, made, wanted in (
        ("stages", ", ".join(manifest.stages), ", ".join(stages)),
        ("image_size", manifest.image_size, image_size),
        ("stored", manifest.dtype, stored),
    ):
        if made != wanted:
            raise DatasetError(
                f"{place}: made with pipeline.{key} = {made}, asked for is {wanted}; "
                f"`{command}` makes that"
            )
    return _with_changes(store, open_store(store, asked, _root(path, place)), path, command)


def _typed(path: Path) -> str:
    """Write a path as one would type it: short where it is below the working directory."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _root(path: Path, place: Path) -> Path:
    """Give what images are named relative to: the dataset, or a store that stands alone."""
    return place if path == place else path


def _with_changes(
    store: StoreFiles, dataset: ImageDataset, path: Path, command: str
) -> ImageDataset:
    """Add a note where the image files are no longer those that the store was made of."""
    if path == store.root:
        return dataset
    try:
        found = find_images(path)
    except DatasetError:  # the image files are gone, and are not needed
        return dataset
    raw = choose(found, classes=(), images_per_class=None, validation_fraction=0)
    if raw.fingerprint() == store.manifest.fingerprint and _same_sizes(store.index, path):
        return dataset
    note = f"the image files have changed since {store.root} was made: `{command} --force`"
    return replace(dataset, notes=(*dataset.notes, note))


def _same_sizes(index: pl.DataFrame, root: Path) -> bool:
    """Compare the sizes of some files, evenly spread: a look at all takes too long."""
    some = index.gather_every(max(1, len(index) // LOOKED_AT))
    for name, size in some.select("path", "file_bytes").iter_rows():
        try:
            if (root / os.fsdecode(name)).stat().st_size != size:
                return False
        except OSError:
            if size:
                return False
    return True


def _without_files(asked: DatasetSection, path: Path) -> ImageDataset:
    """Give the classes and the counts of what is there, whatever it is."""
    if contents.is_whole(path):
        dataset = open_store(contents.read_store(path), asked, path)
    else:
        try:
            dataset = open_asked(asked)
        except DatasetError:
            records = open_records(path) if path.is_dir() else None
            if records is None:
                raise
            dataset = open_foreign(records, asked)
    return replace(
        dataset,
        train=replace(dataset.train, store=None, records=()),
        validation=replace(dataset.validation, store=None, records=()),
    )


def _made_up(asked: DatasetSection) -> ImageDataset:
    """Make up names for images that nobody reads."""
    root = Path("synthetic")
    names = asked.classes or [f"class_{label:03d}" for label in range(SYNTHETIC_CLASSES)]
    count = min(asked.images_per_class or SYNTHETIC_IMAGES, SYNTHETIC_IMAGES)
    paths = [f"{root}/train/{name}/{number:06d}" for name in names for number in range(count)]
    labels = [label for label in range(len(names)) for _ in range(count)]
    return ImageDataset(
        root=root,
        classes=tuple(names),
        train=ImageSet(tuple(paths), tuple(labels)),
        validation=ImageSet((), ()),
        notes=(),
    )
