import warnings
from pathlib import Path

import pytest
from PIL import Image

from tests.pictures import encoded, write
from timesink.datasets.folder import open_dataset
from timesink.datasets.importing import import_dataset
from timesink.datasets.verify import Fault, find_faults, inspect, quarantine

JPEG = encoded("JPEG", size=(200, 150))
PNG = encoded("PNG", size=(200, 150))
HUGE_BMP = encoded("BMP")[:18] + (60_000).to_bytes(4, "little") * 2 + encoded("BMP")[26:]


@pytest.mark.parametrize(
    "name",
    ["a.jpg", "a.jpeg", "a.JPEG", "a.png", "a.gif", "a.bmp"],
)
def test_a_whole_image_has_no_fault(tmp_path, name):
    kind = {"jpg": "JPEG"}.get(name[2:], name[2:].upper())
    assert inspect(str(write(tmp_path / name, encoded(kind)))) is None


@pytest.mark.parametrize("mode", ["L", "RGB", "P", "RGBA", "1"])
def test_the_modes_of_a_png_are_no_fault(tmp_path, mode):
    assert inspect(str(write(tmp_path / "a.png", encoded("PNG", mode=mode)))) is None


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("a.jpg", b"", "empty"),
        ("a.jpg", JPEG[: len(JPEG) // 2], "truncated"),
        ("a.jpg", JPEG[:20], "truncated"),
        ("a.jpg", b"\xff\xd8\xff", "truncated"),
        ("a.png", PNG[: len(PNG) // 2], "truncated"),
        ("a.gif", encoded("GIF")[:200], "truncated"),
        ("a.png", PNG[:100] + bytes(400) + PNG[500:], "corrupt"),
        ("a.jpg", b"<html>404 Not Found</html>", "not an image"),
        ("a.jpg", bytes(1000), "not an image"),
        ("a.jpg", PNG, "wrong extension"),
        ("a.png", JPEG, "wrong extension"),
        ("a.jpg", encoded("WEBP"), "undecodable format"),
        ("a.jpg", encoded("TIFF"), "undecodable format"),
        ("a.jpg", encoded("JPEG", mode="CMYK"), "CMYK"),
        ("a.bmp", HUGE_BMP, "oversized"),
    ],
)
def test_each_fault_has_its_name(tmp_path, name, content, fault):
    assert inspect(str(write(tmp_path / name, content))) == fault


def test_a_truncated_file_with_the_wrong_extension_is_truncated(tmp_path):
    assert inspect(str(write(tmp_path / "a.jpg", PNG[:5000]))) == "truncated"


def test_a_file_that_is_not_there_and_a_folder_are_named(tmp_path):
    assert inspect(str(tmp_path / "no.jpg")) == "missing"
    assert inspect(str(tmp_path)) == "unreadable"


def test_a_file_that_cannot_be_opened_is_unreadable(tmp_path):
    path = tmp_path / "a.jpg"
    path.symlink_to(path)  # root opens all but this
    assert inspect(str(path)) == "unreadable"


@pytest.mark.parametrize("length", [20, 100, 200, 600])
def test_a_jpeg_cut_in_its_header_is_truncated(tmp_path, length):
    assert inspect(str(write(tmp_path / "a.jpg", JPEG[:length]))) == "truncated"


def test_the_limit_of_pixels_is_ours_and_pillows_is_left_as_it_was(tmp_path, monkeypatch):
    path = str(write(tmp_path / "a.png", encoded("PNG", size=(100, 100))))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert inspect(path) is None
        assert inspect(path, max_pixels=10_000) is None
        assert inspect(path, max_pixels=9_999) == "oversized"
    assert Image.MAX_IMAGE_PIXELS == 100


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    root = tmp_path / "photos"
    for name in ("train/a/1.jpg", "train/a/2.jpg", "train/b/1.jpg", "val/a/1.jpg", "val/b/1.jpg"):
        write(root / name)
    write(root / "train/a/cut.jpg", JPEG[:3000])
    write(root / "train/b/print.jpg", encoded("JPEG", mode="CMYK"))
    write(root / "val/b/nothing.jpg", b"")
    return root


@pytest.mark.parametrize("workers", [1, 2])
def test_faults_are_found_in_both_splits(photos, workers):
    done: list[int] = []

    faults = find_faults(open_dataset(photos), workers=workers, advance=done.append)

    assert [(f.path.removeprefix(f"{photos}/"), f.fault, f.usable) for f in faults] == [
        ("train/a/cut.jpg", "truncated", False),
        ("train/b/print.jpg", "CMYK", True),
        ("val/b/nothing.jpg", "empty", False),
    ]
    assert sum(done) == 8


def test_quarantine_moves_faulty_images_out_of_the_dataset(photos):
    write(photos / "quarantine/train/a/cut.jpg", b"from before")

    put = quarantine(photos, find_faults(open_dataset(photos)))

    assert len(put.moved) == 3
    assert (photos / "quarantine/train/a/cut.jpg").read_bytes() == b"from before"
    assert (photos / "quarantine/train/a/cut~2.jpg").read_bytes() == JPEG[:3000]
    assert (photos / "quarantine/val/b/nothing.jpg").exists()
    dataset = open_dataset(photos)
    assert (len(dataset.train), len(dataset.validation)) == (3, 2)
    assert find_faults(dataset) == []


def test_files_that_lists_name_elsewhere_are_unlisted_and_not_moved(photos, tmp_path):
    import_dataset(open_dataset(photos), tmp_path / "lists")
    (photos / "train/a/2.jpg").unlink()

    put = quarantine(tmp_path / "lists", find_faults(open_dataset(tmp_path / "lists")))

    assert put.moved == put.left == ()
    assert len(put.unlisted) == 4
    assert (photos / "train/a/cut.jpg").exists()
    assert find_faults(open_dataset(tmp_path / "lists")) == []
    assert len(open_dataset(tmp_path / "lists").train) == 2


def test_copied_images_are_both_unlisted_and_moved(photos, tmp_path):
    import_dataset(open_dataset(photos), tmp_path / "copy", copy=True)

    put = quarantine(tmp_path / "copy", find_faults(open_dataset(tmp_path / "copy")))

    assert len(put.moved) == 3
    assert (tmp_path / "copy/quarantine/train/a/cut.jpg").exists()
    assert len(open_dataset(tmp_path / "copy").train) == 3


def test_a_file_behind_a_link_is_left_where_it_is(photos, tmp_path):
    cut = write(tmp_path / "shared" / "cut.jpg", JPEG[:3000])
    (photos / "train" / "c").symlink_to(tmp_path / "shared")

    put = quarantine(photos, [Fault(str(photos / "train/c/cut.jpg"), "truncated")])

    assert put.left == (str(photos / "train/c/cut.jpg"),)
    assert cut.exists()
