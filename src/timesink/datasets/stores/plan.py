"""What a conversion will write: which image into which shard, decided before it begins.

The plan follows from the images and the options alone, so that a conversion that was stopped
finds the same one again, and goes on with the shards that are not there yet.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from timesink.datasets import materialized
from timesink.datasets.folder import choose, find_images
from timesink.datasets.images import ImageDataset
from timesink.datasets.stores import contents
from timesink.datasets.tfrecord import CHUNK_BYTES
from timesink.datasets.verify import EMPTY, MISSING, OVERSIZED, UNREADABLE
from timesink.errors import UsageError

Kind = Literal["tfrecord", "materialized"]

SHARD_BYTES = 64 << 20
"""Of materialized images, about."""
MOST_SHARDS = 256
"""Of materialized images: each is a mapped file. Larger datasets get larger shards."""
MOST_IMAGE_BYTES = 1 << 30
"""A protobuf message ends at 2 GiB."""
ORDER_SEED = 0
"""Of the order in which images are written: mixed, so that reading on mixes the classes."""

_RECORD_BYTES_BESIDES = 200
"""More than a record has besides its image and the two names."""


@dataclass(frozen=True)
class Rendered:
    """What is stored of an image: the stages done, for which `image_size`, and what they give."""

    stages: tuple[str, ...]
    image_size: int
    side: int
    """Of the square that is stored: larger where a crop stays online."""
    dtype: Literal["uint8", "float32"]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of one image."""
        return (self.side, self.side, 3)

    @property
    def image_bytes(self) -> int:
        """Of one image."""
        return int(np.prod(self.shape)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, eq=False)
class Plan:
    """Images by number, in the dataset's order, and the shards they go to."""

    out: Path
    kind: Kind
    rendered: Rendered | None
    """Of materialized images."""
    dataset: ImageDataset
    own_validation: bool
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    names: tuple[bytes, ...]
    """Of each image, its path relative to the dataset's root where it lies below it."""
    file_bytes: NDArray[np.int64]
    faults: dict[int, str]
    """Images that are left out from the start, and why."""
    files: tuple[str, ...]
    shards: tuple[NDArray[np.int64], ...]
    """Of each file, its images in order."""
    key: str

    def shard_bytes(self, number: int) -> int:
        """Tell about how large a shard will be."""
        images = self.shards[number]
        if self.rendered is not None:
            return len(images) * self.rendered.image_bytes + 128
        besides = _RECORD_BYTES_BESIDES * len(images) + sum(len(self.names[i]) for i in images)
        return int(self.file_bytes[images].sum()) + besides

    def raw_bytes(self) -> int:
        """Count the bytes of the image files."""
        return int(self.file_bytes.sum())


def default_place(dataset: Path, kind: Kind, rendered: Rendered | None) -> Path:
    """Give where a dataset's store lies unless told otherwise."""
    if rendered is None:
        return dataset / contents.FOLDER / kind
    name = materialized.folder_name(rendered.stages, rendered.image_size, rendered.dtype)
    return dataset / contents.FOLDER / kind / name


def make_plan(
    path: Path, kind: Kind, rendered: Rendered | None, *, out: Path | None, per_file: int | None
) -> Plan:
    """Plan the conversion of all images of a dataset; `per_file` images a shard, if given."""
    found = find_images(path)
    # Which images are held out is decided when the store is opened.
    dataset = choose(found, classes=(), images_per_class=None, validation_fraction=0)
    _check_out(dataset.root, out)
    paths = dataset.train.paths + dataset.validation.paths
    prefix = f"{dataset.root}/"
    names = tuple(os.fsencode(path.removeprefix(prefix)) for path in paths)
    file_bytes, mtimes_ns, faults = _look_at(paths)
    files: list[str] = []
    shards: list[NDArray[np.int64]] = []
    suffix = "tfrecord" if rendered is None else "npy"
    first = 0
    for split, images in (("train", dataset.train), ("validation", dataset.validation)):
        order = _order(len(images)) + first
        order = order[[i not in faults for i in order.tolist()]]
        cut = list(_cut(order, file_bytes, names, rendered, per_file, len(paths)))
        files += [f"{split}-{n:05d}-of-{len(cut):05d}.{suffix}" for n in range(len(cut))]
        shards += cut
        first += len(images)
    digest = blake2b(digest_size=16)
    digest.update(repr((contents.VERSION, kind, rendered, dataset.fingerprint())).encode())
    digest.update(repr((dataset.classes, found.not_held_out is None, files)).encode())
    for column in (file_bytes, mtimes_ns, *shards):
        digest.update(column.tobytes() + b";")
    return Plan(
        out=default_place(dataset.root, kind, rendered) if out is None else out,
        kind=kind,
        rendered=rendered,
        dataset=dataset,
        own_validation=found.not_held_out is None,
        paths=paths,
        labels=dataset.train.labels + dataset.validation.labels,
        names=names,
        file_bytes=file_bytes,
        faults=faults,
        files=tuple(files),
        shards=tuple(shards),
        key=digest.hexdigest(),
    )


def _check_out(root: Path, out: Path | None) -> None:
    if out is None:
        return
    real_root, real_out = root.resolve(), out.resolve()
    inside = real_root == real_out or real_root in real_out.parents
    if inside and not any(p.startswith(".") for p in real_out.relative_to(real_root).parts):
        raise UsageError(f"{out} is inside {root}, where it would look like a class")


def _look_at(
    paths: Sequence[str],
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, str]]:
    """Give the size and the time of each file, and what is wrong already."""
    sizes = np.zeros(len(paths), np.int64)
    times = np.zeros(len(paths), np.int64)
    faults = {}
    for number, path in enumerate(paths):
        try:
            status = os.stat(path)  # noqa: PTH116  a Path for each of a million costs more
        except FileNotFoundError:
            faults[number] = MISSING
            continue
        except OSError:
            faults[number] = UNREADABLE
            continue
        sizes[number], times[number] = status.st_size, status.st_mtime_ns
        if not stat.S_ISREG(status.st_mode):
            faults[number] = UNREADABLE
        elif not status.st_size:
            faults[number] = EMPTY
        elif status.st_size > MOST_IMAGE_BYTES:
            faults[number] = OVERSIZED
    return sizes, times, faults


def _order(images: int) -> NDArray[np.int64]:
    generator = np.random.Generator(np.random.Philox(key=ORDER_SEED))
    return generator.permutation(images).astype(np.int64)


def _cut(
    order: NDArray[np.int64],
    file_bytes: NDArray[np.int64],
    names: Sequence[bytes],
    rendered: Rendered | None,
    per_file: int | None,
    images: int,
) -> Iterator[NDArray[np.int64]]:
    """Cut an order of images into shards."""
    if per_file is None and rendered is None:
        yield from _cut_by_bytes(order, file_bytes, names)
        return
    if per_file is None:
        assert rendered is not None
        shard_bytes = max(SHARD_BYTES, images * rendered.image_bytes // MOST_SHARDS)
        per_file = max(1, shard_bytes // rendered.image_bytes)
    for start in range(0, len(order), per_file):
        yield order[start : start + per_file]


def _cut_by_bytes(
    order: NDArray[np.int64], file_bytes: NDArray[np.int64], names: Sequence[bytes]
) -> Iterator[NDArray[np.int64]]:
    """Cut so that a shard is one chunk: read at once."""
    start = total = 0
    for at, image in enumerate(order.tolist()):
        # A class's name is a part of the path, or not longer than a file's may be.
        more = int(file_bytes[image]) + _RECORD_BYTES_BESIDES + 2 * len(names[image]) + 255
        if at > start and total + more > CHUNK_BYTES:
            yield order[start:at]
            start, total = at, 0
        total += more
    if start < len(order):
        yield order[start:]
