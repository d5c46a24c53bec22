"""Which image files lie below a folder: names only, no look inside, a million in seconds."""

import os
from collections import Counter
from pathlib import Path

from timesink.errors import DatasetError

SUFFIXES = frozenset({"jpg", "jpeg", "png", "bmp", "gif"})
"""What TensorFlow decodes, by the end of the name in any case."""

BROKEN_LINK = "(broken link)"
"""How one is counted among what was passed over."""

_UNFINISHED = (".tmp", ".part")


def images_below(
    folder: str, visited: set[tuple[int, int]], passed_over: Counter[str]
) -> list[str]:
    """List the images of a folder and those below it, sorted; links are followed, once each."""
    images: list[str] = []
    folders = [folder]
    while folders:
        current = folders.pop()
        if identity(current) in visited:
            continue
        visited.add(identity(current))
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == "." or name.endswith(_UNFINISHED):
                        continue
                    try:
                        if entry.is_dir():
                            folders.append(entry.path)
                        elif suffix(name) not in SUFFIXES:
                            passed_over["." + suffix(name) if "." in name else "(none)"] += 1
                        elif entry.is_file():
                            images.append(entry.path)
                        else:
                            passed_over[BROKEN_LINK] += 1
                    except OSError:  # a link to itself
                        passed_over[BROKEN_LINK] += 1
        except OSError as error:
            raise DatasetError(f"{current}: cannot be read: {error.strerror}") from None
    images.sort()
    return images


def folders_in(folder: Path, *, missing_ok: bool = False) -> list[str]:
    """Name the folders in a folder, sorted, without hidden and unfinished ones."""
    if missing_ok and not folder.is_dir():
        return []
    return sorted(
        name
        for name in names_in(folder)
        if not name.startswith((".", "__MACOSX"))
        and not name.endswith(_UNFINISHED)
        and (folder / name).is_dir()
    )


def names_in(folder: Path) -> list[str]:
    """Name everything in a folder."""
    try:
        with os.scandir(folder) as entries:
            return [e.name for e in entries]
    except OSError as error:
        raise DatasetError(f"{folder}: cannot be read: {error.strerror}") from None


def identity(folder: str) -> tuple[int, int]:
    """Tell folders apart, whatever the links that lead to them."""
    status = os.stat(folder)  # noqa: PTH116  a Path for each of many folders costs more than the call
    return status.st_dev, status.st_ino


def suffix(name: str) -> str:
    """Give what follows a name's last dot, in lower case."""
    return name.rpartition(".")[2].lower()
