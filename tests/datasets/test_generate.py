import json
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from timesink.datasets import generate
from timesink.datasets.folder import open_dataset
from timesink.datasets.generate import count_images, make_images
from timesink.errors import DiskFullError, OutputExistsError, UsageError

SMALL = {"classes": 2, "images": 20, "validation_images": 3, "mean_bytes": 15_000}


def contents(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*.JPEG")}


def test_the_layout_is_imagenets_and_every_image_is_counted(tmp_path):
    done: list[int] = []

    make_images(tmp_path / "out", **SMALL, workers=1, advance=done.append)

    dataset = open_dataset(tmp_path / "out")
    assert dataset.classes == ("class_000", "class_001")
    assert (len(dataset.train), len(dataset.validation)) == (40, 6)
    assert (tmp_path / "out" / "train" / "class_001" / "class_001_000019.JPEG").is_file()
    assert sum(done) == 46 == count_images(classes=2, images=20, validation_images=3)
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_the_bytes_do_not_depend_on_the_number_of_workers(tmp_path):
    make_images(tmp_path / "one", **SMALL, workers=1)
    make_images(tmp_path / "three", **SMALL, workers=3)

    assert contents(tmp_path / "one") == contents(tmp_path / "three")


def test_more_images_of_the_same_seed_begin_with_the_same(tmp_path):
    make_images(tmp_path / "few", **SMALL, workers=1)
    make_images(tmp_path / "more", **(SMALL | {"classes": 3, "images": 22}), workers=1)

    assert contents(tmp_path / "few").items() <= contents(tmp_path / "more").items()


def test_a_second_call_makes_only_what_is_missing(tmp_path, monkeypatch):
    out = tmp_path / "out"
    make_images(out, **SMALL, workers=1)
    whole = contents(out)
    gone = out / "train" / "class_000" / "class_000_000004.JPEG"
    empty = out / "val" / "class_001" / "class_001_000000.JPEG"
    leftover = out / "train" / "class_000" / ".class_000_000004.JPEG.77.tmp"
    gone.unlink()
    empty.write_bytes(b"")
    leftover.write_bytes(b"half")
    drawn: list[tuple[str, int, int]] = []
    draw = generate.drawing.draw_jpeg
    monkeypatch.setattr(
        generate.drawing, "draw_jpeg", lambda *a: (drawn.append(a[1:4]), draw(*a))[1]
    )

    make_images(out, **SMALL, workers=1)

    assert sorted(drawn) == [("train", 0, 4), ("val", 1, 0)]
    assert contents(out) == whole
    assert not leftover.exists()


def test_other_parameters_are_refused_and_force_starts_anew(tmp_path):
    out = tmp_path / "out"
    make_images(out, **SMALL, workers=1)
    before = contents(out)
    other = SMALL | {"seed": 5, "classes": 3, "images": 2}

    with pytest.raises(OutputExistsError, match=r"seed 0.*--force"):
        make_images(out, **other, workers=1)
    assert contents(out) == before
    make_images(out, **other, workers=1, force=True)

    assert len(contents(out)) == 15
    assert not contents(out).items() & before.items()
    assert json.loads((out / "generated.json").read_text())["seed"] == 5


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_someone_elses_is_always_refused(tmp_path, force):
    mine = tmp_path / "train" / "class_000" / "class_000_000000.JPEG"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")

    with pytest.raises(OutputExistsError, match="not made by"):
        make_images(tmp_path, **SMALL, force=force)

    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize("name", ["train/class_000/holiday.jpg", "val/notes.txt"])
def test_force_deletes_nothing_where_a_file_is_not_ours(tmp_path, name):
    make_images(tmp_path, **SMALL, workers=1)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)

    with pytest.raises(OutputExistsError, match="move it away"):
        make_images(tmp_path, **(SMALL | {"seed": 1}), force=True)

    assert (tmp_path / name).read_text() == "mine"
    assert contents(tmp_path) == before


def test_too_small_a_disk_is_said_before_anything_is_drawn(tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(0, 0, 100_000))

    with pytest.raises(DiskFullError, match=r"46 images need about 0\.0 GB and 0\.0 GB are free"):
        make_images(tmp_path / "out", **SMALL)

    assert contents(tmp_path / "out") == {}


@pytest.mark.parametrize(
    ("key", "value"), [("classes", 1), ("classes", 1001), ("images", 0), ("mean_bytes", 1000)]
)
def test_what_cannot_be_made_is_refused(tmp_path, key, value):
    with pytest.raises(UsageError, match=f"{key}: found {value}, allowed"):
        make_images(tmp_path / "out", **(SMALL | {key: value}))
    assert not (tmp_path / "out").exists()


def test_a_complete_set_in_a_folder_that_cannot_be_written_is_fine(tmp_path, monkeypatch):
    make_images(tmp_path, **SMALL, workers=1)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(generate.manifest, "write", refuse)
    make_images(tmp_path, **SMALL, workers=1)
