"""What each source of the same images takes on the disk, as far as it is there."""

import os
from dataclasses import dataclass
from pathlib import Path

from timesink.datasets.folder import open_dataset
from timesink.datasets.sources import stores_of
from timesink.datasets.stores import contents
from timesink.errors import DatasetError


@dataclass(frozen=True)
class SourceSize:
    """A source of some images."""

    source: str
    """`raw`, `tfrecord`, `materialized 200 uint8`."""
    images: int
    disk_bytes: int


def source_sizes(path: Path) -> list[SourceSize]:
    """Measure the image files of a dataset and the stores made of them."""
    found = []
    if not contents.is_store(path):
        raw = _raw(path)
        found += [raw] if raw is not None else []
    for place in stores_of(path):
        try:
            made = contents.read_manifest(place)
        except DatasetError:  # unfinished or damaged: `dataset verify` says what
            continue
        size = f" {made.image_size} {made.dtype}" if made.image_size else ""
        images = made.train_images + made.validation_images - made.left_out_images
        found.append(SourceSize(f"{made.kind}{size}", images, made.store_bytes))
    return found


def _raw(path: Path) -> SourceSize | None:
    try:
        dataset = open_dataset(path)
    except DatasetError:  # only stores of them, or somebody's TFRecords
        return None
    files = {*dataset.train.paths, *dataset.validation.paths}
    sizes = [_file_bytes(file) for file in files]
    return SourceSize("raw", len(sizes), sum(sizes))


def _file_bytes(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116  a Path for each of many files costs more
    except OSError:
        return 0
