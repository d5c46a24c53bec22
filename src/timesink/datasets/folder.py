"""The images of a folder as a value: which files, which classes, what is held out."""

import difflib
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from timesink.datasets import lists, manifest, scan
from timesink.datasets.images import ImageDataset, ImageSet
from timesink.errors import DatasetError
from timesink.experiment import DatasetSection

QUARANTINE = "quarantine"
"""Where `dataset verify --quarantine` puts what is broken; never a class."""

_VALIDATION_FOLDERS = ("val", "validation")


@dataclass(frozen=True)
class Found:
    """What a layout or a store holds: the images of each class by split."""

    root: Path
    train: dict[str, list[str]]
    validation: dict[str, list[str]]
    notes: tuple[str, ...]
    not_held_out: str | None = None
    """Why a part of train is to be held out; None where the validation images are told."""


def open_dataset(
    path: Path,
    *,
    classes: Sequence[str] = (),
    images_per_class: int | None = None,
    validation_fraction: float = 0.2,
) -> ImageDataset:
    """Find the images of `train/<class>/…`, of `<class>/…`, or of what `dataset import` wrote.

    Only the chosen classes, labelled in the order given; all, by name, when none is.
    `images_per_class` caps training images. `validation_fraction` is held out of a folder
    that has no val/ of its own.
    """
    return choose(
        find_images(path, classes),
        classes=classes,
        images_per_class=images_per_class,
        validation_fraction=validation_fraction,
    )


def find_images(path: Path, classes: Sequence[str] = ()) -> Found:
    """Find the images of some classes, of all when none is named; nothing is held out yet."""
    check_folder(path)
    _check_finished(path)
    root = Path(os.path.abspath(path))  # noqa: PTH100  links stay as the user knows them
    if lists.is_imported(root):
        return _from_lists(root, classes)
    if scan.folders_in(root / "train", missing_ok=True):
        return _from_splits(root, classes)
    return _from_classes(root, classes)


def choose(
    found: Found,
    *,
    classes: Sequence[str],
    images_per_class: int | None,
    validation_fraction: float,
) -> ImageDataset:
    """Choose classes, hold out and cap: the same images by the same rules, wherever they are."""
    _check_chosen(found.root, classes, list(found.train))
    names = tuple(classes or found.train)
    train = {name: found.train[name] for name in names}
    validation, notes = found.validation, found.notes
    if found.not_held_out is not None:
        validation, note = _hold_out(found.root, train, validation_fraction, found.not_held_out)
        notes = (*notes, note)
    return ImageDataset(
        root=found.root,
        classes=names,
        train=_image_set(names, {name: train[name][:images_per_class] for name in names}),
        validation=_image_set(names, validation),
        notes=notes,
    )


def open_asked(asked: DatasetSection) -> ImageDataset:
    """Find the images that an experiment asks for."""
    if asked.path is None:
        raise DatasetError("dataset.path is missing: name the folder of the images")
    return open_dataset(
        Path(asked.path).expanduser(),
        classes=asked.classes,
        images_per_class=asked.images_per_class,
        validation_fraction=asked.validation_fraction,
    )


def check_folder(path: Path) -> None:
    """Refuse what is not a folder."""
    if not path.exists():
        raise DatasetError(
            f"{path}: there is no such folder; `timesink dataset make {path}` would generate one"
        )
    if not path.is_dir():
        raise DatasetError(f"{path}: not a folder; give the one that holds train/ or the classes")


def _check_finished(path: Path) -> None:
    for name, command in ((manifest.GENERATED, "make"), (manifest.IMPORTED, "import")):
        made = manifest.read(path / name)
        if made is not None and made.get("complete") is not True:
            raise DatasetError(
                f"{path}: `dataset {command}` was stopped before it was done; run it again to go on"
            )


def _from_lists(root: Path, chosen: Sequence[str]) -> Found:
    imported = lists.read_lists(root)
    _check_chosen(root, chosen, imported.classes)
    by_label: list[tuple[list[str], list[str]]] = [([], []) for _ in imported.classes]
    for split, rows in enumerate((imported.train, imported.validation)):
        for listed, label in rows:
            by_label[label][split].append(imported.absolute(listed))
    kept = {name: by_label[imported.classes.index(name)] for name in chosen or imported.classes}
    for name, (train, _) in kept.items():
        if not train:
            raise DatasetError(f"{root / lists.TRAIN}: no image of class {name!r}: import it again")
    # By name, as the labels of other layouts are: chosen classes come in the order asked.
    kept = {name: kept[name] for name in sorted(kept)}
    return Found(root, {n: k[0] for n, k in kept.items()}, {n: k[1] for n, k in kept.items()}, ())


def _from_splits(root: Path, chosen: Sequence[str]) -> Found:
    passed_over: Counter[str] = Counter()
    names = scan.folders_in(root / "train")
    _check_chosen(root / "train", chosen, names)
    train = _scan(root, root / "train", chosen or names, passed_over)
    folders = [name for name in _VALIDATION_FOLDERS if (root / name).is_dir()]
    notes = []
    if len(folders) == 2:
        notes.append("val and validation are both there: val is used")
    inside = scan.folders_in(root / folders[0]) if folders else []
    validation, not_held_out = {}, None
    if not inside:
        not_held_out = f"{folders[0]} has no class folders" if folders else "no val folder"
    else:
        unknown = [name for name in inside if name not in names]
        if unknown:
            notes.append(f"{folders[0]} has classes that train has not, ignored: {_some(unknown)}")
        known = [name for name in chosen or names if name in inside]
        validation = _scan(root, root / folders[0], known, passed_over, may_be_empty=True)
    others = [
        n for n in scan.folders_in(root) if n not in ("train", *_VALIDATION_FOLDERS, QUARANTINE)
    ]
    if others:
        notes.append(f"ignored folders beside train: {_some(others)}")
    notes += _passed_over_note(passed_over)
    return Found(root, train, validation, tuple(notes), not_held_out)


def _from_classes(root: Path, chosen: Sequence[str]) -> Found:
    passed_over: Counter[str] = Counter()
    names = [name for name in scan.folders_in(root) if name != QUARANTINE]
    if not names or set(names) <= {"train", *_VALIDATION_FOLDERS}:
        places = (root, *map(root.joinpath, names))
        flat = any(scan.suffix(n) in scan.SUFFIXES for at in places for n in scan.names_in(at))
        raise DatasetError(
            f"{root}: "
            + (
                "the images lie flat: put each class"
                if flat
                else "no images: put those of each class"
            )
            + " into a folder of its own, such as train/cat/1.jpg"
        )
    _check_chosen(root, chosen, names)
    train = _scan(root, root, chosen or names, passed_over)
    notes: list[str] = []
    if len(names) == 1:
        notes.append(f"{names[0]} is the only class; is {root / names[0]} the folder you mean?")
    notes += _passed_over_note(passed_over)
    return Found(root, train, {}, tuple(notes), "no val folder")


def _scan(
    root: Path,
    above: Path,
    names: Sequence[str],
    passed_over: Counter[str],
    *,
    may_be_empty: bool = False,
) -> dict[str, list[str]]:
    """List the images of some classes, sorted; one without any is an error."""
    found = {}
    for name in names:
        before = passed_over.copy()
        # A link back to a folder above would make every class hold them all.
        visited = {scan.identity(str(root)), scan.identity(str(above))}
        found[name] = scan.images_below(str(above / name), visited, passed_over)
        if not found[name] and not may_be_empty:
            others = _some(sorted(passed_over - before))
            raise DatasetError(
                f"{above / name}: no images"
                + (f", only {others}" if others else "")
                + f"; needed is one of {_some(sorted('.' + s for s in scan.SUFFIXES))},"
                + " or remove the folder, or choose classes"
            )
    return found


def _hold_out(
    root: Path, train: dict[str, list[str]], fraction: float, why: str
) -> tuple[dict[str, list[str]], str]:
    """Take a fraction of each class out of `train`, by a hash of the name; never all of it."""
    if fraction <= 0:
        return {}, f"{why}: nothing is held out for validation"
    start = len(str(root)) + 1
    threshold = int(fraction * 2**64)
    held_out = {}
    for name, images in train.items():
        ranks = [_rank(image[start:]) for image in images]
        least = max(ranks)
        held_out[name] = [
            i for i, r in zip(images, ranks, strict=True) if r < threshold and r != least
        ]
        train[name] = [
            i for i, r in zip(images, ranks, strict=True) if r >= threshold or r == least
        ]
    taken = sum(map(len, held_out.values()))
    return held_out, f"{why}: {taken} images ({fraction:.0%}) are held out for validation"


def _rank(relative: str) -> int:
    return int.from_bytes(blake2b(os.fsencode(relative), digest_size=8).digest())


def _image_set(names: Sequence[str], found: dict[str, list[str]]) -> ImageSet:
    paths = [path for name in names for path in found.get(name, ())]
    labels = [label for label, name in enumerate(names) for _ in found.get(name, ())]
    return ImageSet(tuple(paths), tuple(labels))


def _check_chosen(where: Path, chosen: Sequence[str], names: Sequence[str]) -> None:
    for name in chosen:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {_some(names)}"
            raise DatasetError(f"{where}: no class {name!r}; {hint}")
        if list(chosen).count(name) > 1:
            raise DatasetError(f"class {name!r} is chosen twice; name it once")


def _some(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _passed_over_note(passed_over: Counter[str]) -> list[str]:
    notes = []
    broken_links = passed_over.pop(scan.BROKEN_LINK, 0)
    if broken_links:
        notes.append(f"ignored {broken_links} broken links")
    if passed_over:
        kinds = _some([kind for kind, _ in passed_over.most_common()])
        count = passed_over.total()
        files = "file that is not an image" if count == 1 else "files that are not images"
        notes.append(f"ignored {count} {files} TensorFlow decodes ({kinds})")
    return notes
