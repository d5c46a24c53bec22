"""What `dataset import` writes and everything reads: a label dictionary and two lists of images.

    labels.json    class name → label
    train.csv      path,label
    val.csv        path,label

A path is absolute, or relative to the folder of the lists and inside it. Names may hold
anything a file name may: quotes, newlines, bytes that are not UTF-8 (as surrogate escapes).
"""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from timesink.errors import DatasetError
from timesink.files import write_atomically

LABELS, TRAIN, VALIDATION = "labels.json", "train.csv", "val.csv"
HEADER = ["path", "label"]

Row = tuple[str, int]


@dataclass(frozen=True)
class Lists:
    """The lists as written."""

    root: Path
    classes: tuple[str, ...]
    train: tuple[Row, ...]
    validation: tuple[Row, ...]

    def absolute(self, listed: str) -> str:
        """Give the path of an image in the lists."""
        return listed if listed.startswith("/") else f"{self.root}/{listed}"


def is_imported(root: Path) -> bool:
    """Tell whether a folder holds lists."""
    return (root / LABELS).is_file() and (root / TRAIN).is_file()


def read_lists(root: Path) -> Lists:
    """Read the lists; a mistake in them names the file and the line."""
    classes = _read_labels(root / LABELS)
    train = tuple(_read_rows(root / TRAIN, len(classes)))
    validation = root / VALIDATION
    held_out = tuple(_read_rows(validation, len(classes))) if validation.exists() else ()
    return Lists(root, classes, train, held_out)


def write_lists(lists: Lists) -> None:
    """Write the labels and both lists, each whole or not at all."""
    labels = {name: label for label, name in enumerate(lists.classes)}
    write_atomically(
        lists.root / LABELS, _encoded(json.dumps(labels, indent=2, ensure_ascii=False))
    )
    for name, rows in ((VALIDATION, lists.validation), (TRAIN, lists.train)):
        write_atomically(lists.root / name, _encoded(_csv(rows)))


def _csv(rows: Iterable[Row]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    writer.writerows(rows)
    return text.getvalue()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _read_labels(path: Path) -> tuple[str, ...]:
    try:
        labels = json.loads(path.read_bytes().decode("utf-8", "surrogateescape"))
    except json.JSONDecodeError as error:
        raise DatasetError(
            f"{path}:{error.lineno}: not JSON: {error.msg}; import it again"
        ) from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None
    if not isinstance(labels, dict) or not labels:
        raise DatasetError(f"{path}: expected class names with their labels; import it again")
    by_label = sorted(labels, key=lambda name: str(labels[name]).rjust(20))
    if [labels[name] for name in by_label] != list(range(len(labels))):
        raise DatasetError(f"{path}: the labels must be 0 to {len(labels) - 1}, each once")
    return tuple(by_label)


def _read_rows(path: Path, classes: int) -> Iterable[Row]:
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            reader = csv.reader(file, strict=True)
            try:
                if next(reader, None) != HEADER:
                    raise DatasetError(f"{path}:1: expected the header {','.join(HEADER)}")
                for row in reader:
                    yield _checked(row, classes, f"{path}:{reader.line_num}")
            except csv.Error as error:
                raise DatasetError(f"{path}:{reader.line_num}: not CSV: {error}") from None
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None


def _checked(row: Sequence[str], classes: int, where: str) -> Row:
    if len(row) != 2:
        raise DatasetError(f"{where}: expected path,label, found {len(row)} columns")
    path, label = row
    if not label.isdecimal() or int(label) >= classes:
        raise DatasetError(f"{where}: the label must be 0 to {classes - 1}, found {label!r}")
    if not path or "\0" in path:
        raise DatasetError(f"{where}: not a path: {path!r}")
    if not path.startswith("/") and ".." in path and ".." in PurePath(path).parts:
        raise DatasetError(f"{where}: {path!r} leads out of the dataset's folder")
    return path, int(label)
