"""Which remote folders hold the classes, and the images in them: a place in, a listing out."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field

from timesink.datasets.remotes.address import Address
from timesink.datasets.remotes.crew import Crew
from timesink.datasets.remotes.remote import Entry, Remote, Unavailable
from timesink.errors import SyncError

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif")
SPLIT_FOLDERS = ("train", "val")
MAX_DEPTH = 8
"""Folders in folders, counted from the place; it also ends loops that cannot be seen."""


@dataclass(frozen=True)
class RemoteFile:
    """An image of the remote place."""

    path: str
    """Below the place, with "/"; each part of it is safe as a local name."""
    size_bytes: int | None
    version: str
    mtime_s: int | None


@dataclass(frozen=True)
class Folder:
    """A folder on the way down, with what its ancestors really are."""

    path: str
    identity: str
    ancestors: frozenset[str] = frozenset()


@dataclass
class RemoteListing:
    """What was found below the chosen classes."""

    files: list[RemoteFile] = field(default_factory=list)
    skipped: int = 0
    refused: list[str] = field(default_factory=list)
    failed: list[tuple[str, str]] = field(default_factory=list)


def list_images(crew: Crew, address: Address, classes: Sequence[str]) -> RemoteListing:
    """List the images of the chosen classes, or of all; no other class's folder is opened."""
    listing = RemoteListing()
    folders = _class_folders(crew, address, classes, listing)
    while folders:
        below: list[Folder] = []
        for folder, entries in crew.each(folders, _list):
            if isinstance(entries, Unavailable):
                listing.failed.append((folder.path, str(entries)))
                continue
            below += _children(folder, entries, listing)
            listing.files += _images(folder, entries, listing)
        folders = below
    listing.files.sort(key=lambda file: file.path)
    return listing


def _class_folders(
    crew: Crew, address: Address, classes: Sequence[str], listing: RemoteListing
) -> list[Folder]:
    """Find the classes in PLACE/train and PLACE/val, or directly in PLACE."""
    top = _top(crew, address, Folder("", crew.root_identity), listing)
    by_name = {folder.path: folder for folder in top}
    if "train" in by_name:
        splits = [by_name[name] for name in SPLIT_FOLDERS if name in by_name]
        found = [folder for split in splits for folder in _top(crew, address, split, listing)]
    else:
        found = top
    names = {folder.path.rpartition("/")[2] for folder in found}
    for name in classes:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise SyncError(f"{address}: no class {name!r} there{hint}")
    if not names:
        raise SyncError(
            f"{address}: no class folders there: expected train/<class> and val/<class>, or <class>"
        )
    wanted = set(classes) or names
    return [folder for folder in found if folder.path.rpartition("/")[2] in wanted]


def _top(crew: Crew, address: Address, folder: Folder, listing: RemoteListing) -> list[Folder]:
    """List a folder that holds classes; images beside them belong to none."""
    [(_, entries)] = crew.each([folder], _list)
    if isinstance(entries, Unavailable):
        where = f"{address}/{folder.path}" if folder.path else str(address)
        raise SyncError(f"{where}: {entries}")
    listing.skipped += sum(not entry.is_folder for entry in entries)
    return _children(folder, entries, listing)


def _list(remote: Remote, folder: Folder) -> list[Entry]:
    return remote.list_folder(folder.path, folder.identity)


def _children(folder: Folder, entries: list[Entry], listing: RemoteListing) -> list[Folder]:
    children = []
    ancestors = folder.ancestors | {folder.identity}
    for entry in entries:
        path = _join(folder.path, entry.name)
        if not entry.is_folder:
            continue
        if not is_safe_name(entry.name):
            listing.refused.append(path)
        elif (
            entry.name.startswith(".")
            or entry.identity in ancestors
            or path.count("/") >= MAX_DEPTH
        ):
            listing.skipped += 1
        else:
            children.append(Folder(path, entry.identity, ancestors))
    return children


def _images(folder: Folder, entries: list[Entry], listing: RemoteListing) -> list[RemoteFile]:
    images = []
    for entry in entries:
        path = _join(folder.path, entry.name)
        if entry.is_folder:
            continue
        if not is_safe_name(entry.name):
            listing.refused.append(path)
        elif entry.name.startswith(".") or not entry.name.lower().endswith(IMAGE_SUFFIXES):
            listing.skipped += 1
        else:
            images.append(RemoteFile(path, entry.size_bytes, entry.version, entry.mtime_s))
    return images


def is_safe_name(name: str) -> bool:
    """Tell whether a remote name stays where it is put, on any system."""
    return name not in ("", ".", "..") and not any(mark in name for mark in "/\\\0")


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
