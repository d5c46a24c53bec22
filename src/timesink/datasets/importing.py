"""A dataset brought into lists of its own, with its files copied or left where they are."""

import errno
import os
import secrets
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path, PurePath

from timesink.datasets import manifest
from timesink.datasets.images import ImageDataset, ImageSet
from timesink.datasets.lists import Lists, Row, write_lists
from timesink.errors import DatasetError, DiskFullError, OutputExistsError, UsageError
from timesink.files import TEMPORARY_SUFFIX


def import_dataset(
    dataset: ImageDataset,
    out: Path,
    *,
    copy: bool = False,
    force: bool = False,
    advance: Callable[[int], None] = lambda _: None,
) -> None:
    """Write the label dictionary and the lists of a dataset into `out`.

    With `copy` the images come along, into out/train and out/val; a copy that was stopped
    goes on where it was. `advance` counts images.
    """
    _check_out(dataset.root, out, copy=copy, force=force)
    facts = {
        "source": os.fsencode(dataset.root).decode("utf-8", "backslashreplace"),
        "copied": copy,
        "classes": len(dataset.classes),
        "train_images": len(dataset.train),
        "validation_images": len(dataset.validation),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        manifest.write(out / manifest.IMPORTED, **facts, complete=False)
        rows: list[tuple[Row, ...]] = []
        for split, images in (("train", dataset.train), ("val", dataset.validation)):
            rows.append(_rows(dataset, images, split, out if copy else None, advance))
        write_lists(Lists(out, dataset.classes, *rows))
        manifest.write(out / manifest.IMPORTED, **facts, complete=True)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"{out}: the disk is full: free some space and go on") from None
        raise UsageError(f"{error.filename or out}: {error.strerror}") from None


def _check_out(source: Path, out: Path, *, copy: bool, force: bool) -> None:
    real_source, real_out = source.resolve(), out.resolve()
    if real_out == real_source or real_source in real_out.parents:
        raise UsageError(f"{out} is inside {source}, where it would look like a class")
    if not out.exists():
        return
    if not out.is_dir():
        raise OutputExistsError(f"{out} is a file; choose another place")
    made = manifest.read(out / manifest.IMPORTED)
    if made is None and any(not p.name.endswith(TEMPORARY_SUFFIX) for p in out.iterdir()):
        raise OutputExistsError(
            f"{out} is not empty and was not written by `dataset import`; choose another place"
        )
    if made is not None and made.get("complete") is True and not force:
        raise OutputExistsError(f"{out} exists; --force writes its lists again")


def _rows(
    dataset: ImageDataset,
    images: ImageSet,
    split: str,
    copy_to: Path | None,
    advance: Callable[[int], None],
) -> tuple[Row, ...]:
    rows = []
    for path, label in zip(images.paths, images.labels, strict=True):
        listed = path
        if copy_to is not None:
            listed = f"{split}/{_name_within(dataset, path, dataset.classes[label])}"
            _copy(path, copy_to / listed)
        rows.append((listed, label))
        advance(1)
    return tuple(rows)


def _name_within(dataset: ImageDataset, path: str, class_name: str) -> str:
    """Give an image's place below its split: the class, then as it was below the class."""
    parts = PurePath(path).parts
    root = dataset.root.parts
    if parts[: len(root)] == root and class_name in parts[len(root) : -1]:
        below = parts[parts.index(class_name, len(root)) + 1 :]
        return "/".join((class_name, *below))
    # An image from a list may lie anywhere: two of the same name must not meet.
    digest = blake2b(os.fsencode(path), digest_size=4).hexdigest()
    return f"{class_name}/{digest}_{parts[-1]}"


def _copy(source: str, target: Path) -> None:
    """Copy a file under a temporary name, then rename it; skip one that is there already."""
    try:
        wanted = os.stat(source)  # noqa: PTH116
    except OSError as error:
        raise DatasetError(f"{source}: cannot be read: {error.strerror}") from None
    if target.exists():
        there = target.stat()
        if (there.st_size, there.st_mtime_ns) == (wanted.st_size, wanted.st_mtime_ns):
            return
    target.parent.mkdir(parents=True, exist_ok=True)
    # A fixed length: the copy of the longest allowed name would have one too long.
    temporary = target.with_name(f".{secrets.token_hex(8)}{TEMPORARY_SUFFIX}")
    try:
        shutil.copyfile(source, temporary)
        os.utime(temporary, ns=(wanted.st_atime_ns, wanted.st_mtime_ns))
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
