"""What is wrong with images: each fault has a name, none stops the search."""

import io
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from PIL import Image, UnidentifiedImageError

from timesink import machine
from timesink.datasets._workers import map_unordered
from timesink.datasets.folder import QUARANTINE
from timesink.datasets.images import ImageDataset
from timesink.datasets.lists import Lists, is_imported, read_lists, write_lists
from timesink.errors import UsageError

MISSING = "missing"
UNREADABLE = "unreadable"
EMPTY = "empty"
NOT_AN_IMAGE = "not an image"
UNDECODABLE = "undecodable format"
OVERSIZED = "oversized"
TRUNCATED = "truncated"
CORRUPT = "corrupt"
WRONG_EXTENSION = "wrong extension"
CMYK = "CMYK"
CHECKSUM = "checksum does not match"
"""Of a record of a store: its bytes are not those that were written."""

USABLE = frozenset({WRONG_EXTENSION, CMYK})
"""Faults that TensorFlow's decoder gets over."""

MAX_PIXELS = 40_000_000
IMAGES_PER_TASK = 32

_FORMATS = {"jpg": "JPEG", "jpeg": "JPEG", "png": "PNG", "bmp": "BMP", "gif": "GIF"}
_SIGNATURES = {
    b"\xff\xd8\xff": "JPEG",
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
}
_guard = threading.Lock()


@dataclass(frozen=True)
class Fault:
    """An image and what is wrong with it."""

    path: str
    fault: str

    @property
    def usable(self) -> bool:
        """Tell whether training gets over it."""
        return self.fault in USABLE


@dataclass(frozen=True)
class Quarantined:
    """Where each faulty image went: moved, taken out of the lists, or left (not below the root)."""

    moved: tuple[str, ...]
    unlisted: tuple[str, ...]
    left: tuple[str, ...]


def inspect(path: str, max_pixels: int = MAX_PIXELS) -> str | None:
    """Name what is wrong with an image file, by decoding all of it; None when nothing is."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123  a str, as the lists have it
            fault = _fault_in(file, max_pixels)
    except FileNotFoundError:
        return MISSING
    except OSError:
        return UNREADABLE
    if isinstance(fault, str):
        return fault
    kind, mode = fault
    if _FORMATS.get(path.rpartition(".")[2].lower()) != kind:
        return WRONG_EXTENSION
    return CMYK if mode == "CMYK" else None


def inspect_bytes(encoded: bytes, max_pixels: int = MAX_PIXELS) -> str | None:
    """Name what is wrong with an encoded image that has no file of its own."""
    fault = _fault_in(io.BytesIO(encoded), max_pixels)
    if isinstance(fault, str):
        return fault
    return CMYK if fault[1] == "CMYK" else None


def image_format(head: bytes) -> str | None:
    """Name the format that bytes begin as, if it is one that TensorFlow decodes."""
    return next((kind for start, kind in _SIGNATURES.items() if head.startswith(start)), None)


def _fault_in(file: BinaryIO, max_pixels: int) -> str | tuple[str, str]:
    """Name what is wrong with an open image, or give its format and mode."""
    head = file.read(16)
    if not head:
        return EMPTY
    file.seek(0)
    try:
        with _opened(file) as image:
            return _fault_of(image, max_pixels)
    except UnidentifiedImageError:
        return TRUNCATED if image_format(head) else NOT_AN_IMAGE
    except OSError as error:
        # Without a number it is Pillow's, for a header that ends too soon.
        if error.errno is None:
            return TRUNCATED
        raise


def _opened(file: object) -> Image.Image:
    """Read an image's header without Pillow's limit of pixels: ours comes right after."""
    with _guard:
        before = Image.MAX_IMAGE_PIXELS
        Image.MAX_IMAGE_PIXELS = None
        try:
            return Image.open(file)  # type: ignore[arg-type]
        except (UnidentifiedImageError, OSError):
            raise
        except Exception as error:  # a plugin tripped over the header
            raise UnidentifiedImageError(str(error)) from None
        finally:
            Image.MAX_IMAGE_PIXELS = before


def _fault_of(image: Image.Image, max_pixels: int) -> str | tuple[str, str]:
    # A camera's JPEG with a second picture in it is an MPO to Pillow, a JPEG to decoders.
    kind = "JPEG" if image.format == "MPO" else str(image.format)
    if kind not in _FORMATS.values():
        return UNDECODABLE
    if image.width * image.height > max_pixels:
        return OVERSIZED
    try:
        image.load()
    except Exception as error:  # the decoders raise OSError, SyntaxError, ValueError, struct.error…
        return TRUNCATED if "truncated" in str(error).lower() else CORRUPT
    return kind, image.mode


def find_faults(
    dataset: ImageDataset,
    *,
    max_pixels: int = MAX_PIXELS,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> list[Fault]:
    """Inspect every image of a dataset on all cores; `advance` counts images."""
    paths = sorted({*dataset.train.paths, *dataset.validation.paths})
    tasks = [paths[i : i + IMAGES_PER_TASK] for i in range(0, len(paths), IMAGES_PER_TASK)]
    workers = min(workers or machine.cores(), len(tasks))
    faults: list[Fault] = []
    for count, found in map_unordered(partial(_inspect_some, max_pixels), tasks, workers=workers):
        faults += found
        advance(count)
    return sorted(faults, key=lambda fault: fault.path)


def _inspect_some(max_pixels: int, paths: list[str]) -> tuple[int, list[Fault]]:
    found = ((path, inspect(path, max_pixels)) for path in paths)
    return len(paths), [Fault(path, fault) for path, fault in found if fault is not None]


def quarantine(root: Path, faults: list[Fault]) -> Quarantined:
    """Move faulty images to root/quarantine and take them out of the lists.

    A file that is not below the root belongs to someone else: it is never moved.
    """
    moved, elsewhere = [], []
    # Out of the lists first: a list may not name a file that is no longer there.
    unlisted = _take_out_of_lists(root, {fault.path for fault in faults})
    for fault in faults:
        target = _quarantine_path(root, fault.path)
        if target is None or fault.fault == MISSING:
            elsewhere.append(fault.path)
            continue
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(fault.path, target)  # noqa: PTH104
        except OSError as error:
            raise UsageError(f"{fault.path}: cannot be moved: {error.strerror}") from None
        moved.append(fault.path)
    return Quarantined(
        moved=tuple(moved),
        unlisted=tuple(path for path in elsewhere if path in unlisted),
        left=tuple(path for path in elsewhere if path not in unlisted),
    )


def _take_out_of_lists(root: Path, paths: set[str]) -> set[str]:
    if not paths or not is_imported(root):
        return set()
    lists = read_lists(root)
    train = tuple(row for row in lists.train if lists.absolute(row[0]) not in paths)
    validation = tuple(row for row in lists.validation if lists.absolute(row[0]) not in paths)
    write_lists(Lists(root, lists.classes, train, validation))
    return {lists.absolute(row[0]) for row in (*lists.train, *lists.validation)} & paths


def _quarantine_path(root: Path, path: str) -> Path | None:
    """Choose a free name below root/quarantine; None for a file that is really elsewhere."""
    if not path.startswith(f"{root}/") or root.resolve() not in Path(path).parent.resolve().parents:
        return None
    target = root / QUARANTINE / path[len(str(root)) + 1 :]
    number = 1
    while os.path.lexists(target):
        number += 1
        target = target.with_name(f"{target.stem}~{number}{target.suffix}")
    return target
