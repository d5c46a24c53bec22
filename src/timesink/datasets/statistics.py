"""The sizes, bytes and formats of a dataset's images, from their headers."""

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image

from timesink import machine
from timesink.datasets._workers import map_unordered
from timesink.datasets.images import ImageDataset

IMAGES_PER_TASK = 256


@dataclass(frozen=True)
class ClassCount:
    """The images of a class by split."""

    name: str
    train: int
    validation: int


@dataclass(frozen=True)
class Header:
    """What an image's header says, and the bytes of its file."""

    width: int
    height: int
    file_bytes: int
    format: str
    mode: str


@dataclass(frozen=True)
class Measured:
    """The headers of a dataset's images, as columns."""

    width: npt.NDArray[np.int64]
    height: npt.NDArray[np.int64]
    file_bytes: npt.NDArray[np.int64]
    formats: Counter[str]
    modes: Counter[str]
    unreadable: tuple[str, ...]


@dataclass(frozen=True)
class Spread:
    """Where the values of a column lie."""

    mean: float
    median: float
    p95: float
    min: int
    max: int
    total: int


@dataclass(frozen=True)
class Bin:
    """One bar of a histogram: values from `low` up to, not including, `high`."""

    low: float
    high: float
    count: int


def count_classes(dataset: ImageDataset) -> list[ClassCount]:
    """Count the images of each class, in the order of the labels."""
    train = Counter(dataset.train.labels)
    validation = Counter(dataset.validation.labels)
    return [
        ClassCount(name, train[label], validation[label])
        for label, name in enumerate(dataset.classes)
    ]


def measure(
    dataset: ImageDataset,
    *,
    workers: int | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Measured:
    """Read the header of every image on all cores, without decoding; `advance` counts images."""
    paths = (*dataset.train.paths, *dataset.validation.paths)
    tasks = [paths[i : i + IMAGES_PER_TASK] for i in range(0, len(paths), IMAGES_PER_TASK)]
    workers = min(workers or machine.cores(), len(tasks))
    headers: list[Header] = []
    unreadable: list[str] = []
    for count, some, bad in map_unordered(_read_headers, tasks, workers=workers):
        headers += some
        unreadable += bad
        advance(count)
    return Measured(
        width=np.array([header.width for header in headers], dtype=np.int64),
        height=np.array([header.height for header in headers], dtype=np.int64),
        file_bytes=np.array([header.file_bytes for header in headers], dtype=np.int64),
        formats=Counter(header.format for header in headers),
        modes=Counter(header.mode for header in headers),
        unreadable=tuple(sorted(unreadable)),
    )


def _read_headers(paths: Sequence[str]) -> tuple[int, list[Header], list[str]]:
    headers, unreadable = [], []
    for path in paths:
        try:
            headers.append(_read_header(path))
        except Exception:  # Pillow's plugins raise much else than OSError on a broken header
            unreadable.append(path)
    return len(paths), headers, unreadable


def _read_header(path: str) -> Header:
    with open(path, "rb") as file, warnings.catch_warnings():  # noqa: PTH123
        # Nothing is decoded, so that a huge image is no danger here.
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        with Image.open(file) as image:
            width, height = image.size
            file_bytes = file.seek(0, 2)
            return Header(width, height, file_bytes, str(image.format), image.mode)


def spread(values: npt.NDArray[np.int64]) -> Spread:
    """Summarise a column that has at least one value."""
    return Spread(
        mean=float(values.mean()),
        median=float(np.median(values)),
        p95=float(np.percentile(values, 95)),
        min=int(values.min()),
        max=int(values.max()),
        total=int(values.sum()),
    )


def orientation_shares(measured: Measured) -> dict[str, float]:
    """Give the shares of landscape, portrait and square images."""
    count = max(len(measured.width), 1)
    wider = int((measured.width > measured.height).sum())
    higher = int((measured.width < measured.height).sum())
    return {
        "landscape": wider / count,
        "portrait": higher / count,
        "square": (len(measured.width) - wider - higher) / count,
    }


def histogram(values: npt.NDArray[np.int64], *, most_bins: int = 16) -> list[Bin]:
    """Count values in bins of a round width; the few above the 99th percentile share the last."""
    low, high = float(values.min()), float(np.percentile(values, 99))
    width = _round_up((high - low) / most_bins)
    first = width * np.floor(low / width)
    edges = np.arange(first, high + width, width)
    if len(edges) < 2:
        edges = np.array([first, first + width])
    edges = np.append(edges[:-1], max(edges[-1], float(values.max()) + 1))
    counts, _ = np.histogram(values, edges)
    return [
        Bin(float(a), float(b), int(n))
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]


def _round_up(width: float) -> float:
    """Give the next of 1, 2, 5, 10, 20, 50… that is not less."""
    power = 10 ** np.floor(np.log10(max(width, 1.0)))
    return float(next(step * power for step in (1, 2, 5, 10) if step * power >= width))
