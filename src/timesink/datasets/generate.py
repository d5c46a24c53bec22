"""A folder of generated images in ImageNet's layout, made on all cores and resumable.

OUT/generated.json                    the parameters; complete or not
OUT/train/class_000/class_000_000000.JPEG
OUT/val/class_000/class_000_000000.JPEG
"""

import errno
import fcntl
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from timesink import machine
from timesink.datasets import drawing, manifest
from timesink.datasets._workers import map_unordered
from timesink.errors import DiskFullError, OutputExistsError, UsageError
from timesink.files import TEMPORARY_SUFFIX

DRAWING_VERSION = 1
"""Counted up when the same parameters come to give other images."""

IMAGES_PER_TASK = 16
SPLITS: tuple[drawing.Split, ...] = ("train", "val")
_OURS = re.compile(r"class_(\d{3})_\d{6,}\.JPEG")


@dataclass(frozen=True)
class _Parameters:
    """What decides the bytes of every image; classes and images are per split and class."""

    classes: int
    images: int
    validation_images: int
    seed: int
    mean_bytes: int
    drawing_version: int = DRAWING_VERSION


@dataclass(frozen=True)
class _Task:
    """Some images of one class, for one worker."""

    split: drawing.Split
    label: int
    indices: tuple[int, ...]


def count_images(*, classes: int, images: int, validation_images: int) -> int:
    """Count the images of both splits."""
    return classes * (images + validation_images)


def make_images(
    out: Path,
    *,
    classes: int = 10,
    images: int = 100,
    validation_images: int = 20,
    seed: int = 0,
    mean_bytes: int = 110_000,
    force: bool = False,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Write generated images into `out`; those that are there from before are kept.

    `images` and `validation_images` are per class. Stopped, it goes on when called again.
    A folder made with other parameters is refused; with `force` its images are deleted first.
    `advance` counts images, those from before included.
    """
    asked = _Parameters(classes, images, validation_images, seed, mean_bytes)
    _check(asked)
    try:
        _check_out(out, asked, force=force)
        out.mkdir(parents=True, exist_ok=True)
        with _alone_in(out):
            complete = _begin(out, asked, force=force)
            tasks = list(_missing(out, asked))
            left = sum(len(task.indices) for task in tasks)
            _check_space(out, left, mean_bytes)
            if complete and tasks:  # some were taken away since
                manifest.write(out / manifest.GENERATED, **asdict(asked), complete=False)
            advance(classes * (images + validation_images) - left)
            workers = min(workers or machine.cores(), len(tasks))
            for done in map_unordered(partial(_draw, out, asked), tasks, workers=workers):
                advance(done)
            if tasks or not complete:
                manifest.write(out / manifest.GENERATED, **asdict(asked), complete=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"{out}: the disk is full: free some space and go on") from None
        raise UsageError(f"{error.filename or out}: cannot be written: {error.strerror}") from None


def _check(asked: _Parameters) -> None:
    for name, value, low, high in (
        ("classes", asked.classes, 2, drawing.MAX_CLASSES),
        ("images", asked.images, 1, 10_000_000),
        ("validation_images", asked.validation_images, 0, 10_000_000),
        ("seed", asked.seed, 0, 2**63 - 1),
        ("mean_bytes", asked.mean_bytes, 15_000, 300_000),
    ):
        if not low <= value <= high:
            raise UsageError(f"{name}: found {value}, allowed: {low} to {high}")


def _check_out(out: Path, asked: _Parameters, *, force: bool) -> None:
    """Refuse what would mix with, or overwrite, something else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise OutputExistsError(f"{out} is a file; choose another place")
    made = manifest.read(out / manifest.GENERATED)
    if made is None:
        if any(not entry.name.endswith(TEMPORARY_SUFFIX) for entry in out.iterdir()):
            raise OutputExistsError(
                f"{out} is not empty and was not made by `dataset make`; choose another place"
            )
        return
    different = [key for key, value in asdict(asked).items() if made.get(key) != value]
    if not different:
        return
    if not force:
        was = ", ".join(f"{key} {made.get(key)}" for key in different)
        raise OutputExistsError(
            f"{out} was made with other parameters ({was}); --force deletes its images first"
        )
    foreign = next((path for path in _files_in_splits(out) if not _is_ours(path)), None)
    if foreign is not None:
        raise OutputExistsError(f"{foreign} was not made by `dataset make`; move it away first")


@contextmanager
def _alone_in(out: Path) -> Iterator[None]:
    """Wait until nobody else makes images here."""
    descriptor = os.open(out, os.O_RDONLY)
    try:
        with suppress(OSError):  # a network file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _begin(out: Path, asked: _Parameters, *, force: bool) -> bool:
    """Leave a manifest of what is being made, and nothing else; tell whether it is complete."""
    _check_out(out, asked, force=force)
    for leftover in out.glob(f".*{TEMPORARY_SUFFIX}"):
        leftover.unlink()
    made = manifest.read(out / manifest.GENERATED)
    if made is not None:
        if all(made.get(key) == value for key, value in asdict(asked).items()):
            return made.get("complete") is True
        # Incomplete before the first deletion: a kill in the middle must not look whole.
        manifest.write(out / manifest.GENERATED, **(made | {"complete": False}))
        _delete_images(out)
    manifest.write(out / manifest.GENERATED, **asdict(asked), complete=False)
    return False


def _delete_images(out: Path) -> None:
    for path in list(_files_in_splits(out)):
        path.unlink()
    for split in SPLITS:
        for folder in sorted((out / split).glob("**/"), reverse=True):
            folder.rmdir()


def _files_in_splits(out: Path) -> Iterator[Path]:
    for split in SPLITS:
        yield from (
            path for path in (out / split).rglob("*") if path.is_symlink() or not path.is_dir()
        )


def _is_ours(path: Path) -> bool:
    name = _OURS.fullmatch(path.name)
    named = name is not None and path.parent.name == f"class_{name[1]}"
    return (named or path.name.endswith(TEMPORARY_SUFFIX)) and not path.is_symlink()


def _missing(out: Path, asked: _Parameters) -> Iterator[_Task]:
    """List what is still to be made, and delete what a kill left half-written."""
    for split, images in zip(SPLITS, (asked.images, asked.validation_images), strict=True):
        if not images:
            continue
        for label in range(asked.classes):
            folder = _class_folder(out, split, label)
            folder.mkdir(parents=True, exist_ok=True)
            there = set()
            with os.scandir(folder) as entries:
                for entry in entries:
                    # Empty after a power cut: the name was on the disk before the bytes.
                    if entry.name.endswith(TEMPORARY_SUFFIX) or not entry.stat().st_size:
                        os.unlink(entry.path)  # noqa: PTH108
                    else:
                        there.add(entry.name)
            left = [i for i in range(images) if _image_name(label, i) not in there]
            for start in range(0, len(left), IMAGES_PER_TASK):
                yield _Task(split, label, tuple(left[start : start + IMAGES_PER_TASK]))


def _check_space(out: Path, images: int, mean_bytes: int) -> None:
    needed_bytes = images * (mean_bytes + 4096)
    free_bytes = shutil.disk_usage(out).free
    if needed_bytes > free_bytes:
        raise DiskFullError(
            f"{out}: {images:,} images need about {needed_bytes / 1e9:,.1f} GB and "
            f"{free_bytes / 1e9:,.1f} GB are free: make fewer, or choose another disk"
        )


def _draw(out: Path, asked: _Parameters, task: _Task) -> int:
    """Draw a task's images, each under a temporary name until it is whole."""
    folder = _class_folder(out, task.split, task.label)
    for index in task.indices:
        path = folder / _image_name(task.label, index)
        temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY_SUFFIX}")
        encoded = drawing.draw_jpeg(asked.seed, task.split, task.label, index, asked.mean_bytes)
        try:
            temporary.write_bytes(encoded)
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    return len(task.indices)


def _class_folder(out: Path, split: drawing.Split, label: int) -> Path:
    return out / split / f"class_{label:03d}"


def _image_name(label: int, index: int) -> str:
    return f"class_{label:03d}_{index:06d}.JPEG"
