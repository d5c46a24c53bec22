import json
import os

import pytest

from tests.pictures import encoded, write


@pytest.fixture
def photos(tmp_path):
    for name in ("a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg"):
        write(tmp_path / "photos/train" / name)
        write(tmp_path / "photos/val" / name)
    return tmp_path / "photos"


def test_a_clean_dataset_exits_with_0(photos, timesink):
    done = timesink("dataset", "verify", "photos")
    assert done.returncode == 0
    assert "all 8 images are whole" in done.stdout


def test_broken_images_are_listed_and_exit_with_3_until_quarantined(photos, timesink):
    write(photos / "train/a/cut.jpg", encoded("JPEG", size=(200, 200))[:2000])
    write(photos / "val/b" / os.fsdecode(b"\xff[red]\n.jpg"), b"")

    done = timesink("dataset", "verify", "photos")
    assert done.returncode == 3
    assert "truncated" in done.stdout
    assert "train/a/cut.jpg" in done.stdout
    assert r"val/b/\xff[red]\n.jpg" in done.stdout
    assert "2 of 10 images are broken: " in done.stdout

    moved = timesink("dataset", "verify", "photos", "--quarantine")
    assert moved.returncode == 0, moved.stderr
    assert "2 moved to" in moved.stdout
    assert (photos / "quarantine/train/a/cut.jpg").exists()
    assert timesink("dataset", "verify", "photos").returncode == 0


def test_usable_images_are_listed_and_do_not_fail(photos, timesink):
    write(photos / "train/a/print.jpg", encoded("JPEG", mode="CMYK"))
    write(photos / "train/a/really.jpg", encoded("PNG"))

    done = timesink("dataset", "verify", "photos", "--json")

    facts = json.loads(done.stdout)
    assert done.returncode == 0
    assert (facts["broken"], facts["usable"]) == (0, 2)
    assert {fault["fault"] for fault in facts["faults"]} == {"CMYK", "wrong extension"}


def test_the_limit_of_megapixels_can_be_set(photos, timesink):
    done = timesink("dataset", "verify", "photos", "--max-megapixels", "0.001", "--json")

    facts = json.loads(done.stdout)
    assert done.returncode == 3
    assert {fault["fault"] for fault in facts["faults"]} == {"oversized"}
    assert facts["broken"] == 8
