import json
import os

import pytest

from tests.pictures import encoded, write


@pytest.fixture
def photos(tmp_path):
    for label in range(12):
        for index in range(3):
            size = (100 + 40 * index, 80 + 10 * label)
            write(
                tmp_path / f"photos/train/flower {label:02d}/{index}.jpg",
                encoded("JPEG", size=size),
            )
    write(tmp_path / "photos/val/flower 00/[bold].jpg")
    write(tmp_path / "photos/train/flower 00/broken.jpg", b"no")
    return tmp_path / "photos"


def test_info_fits_the_terminal_and_names_counts_and_formats(photos, timesink):
    done = timesink("dataset", "info", photos.name, env={**os.environ, "COLUMNS": "80"})

    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines if str(photos) not in line)
    assert "12 classes, 38 images: 37 train, 1 validation" in done.stdout
    assert "1 unreadable" in done.stdout
    assert "and 2 more; 3 to 4 training images a class" in done.stdout
    assert "JPEG 37" in done.stdout
    assert "█" in done.stdout


def test_info_as_json_is_one_object_and_nothing_else(photos, timesink):
    done = timesink("dataset", "info", photos.name, "--json")

    facts = json.loads(done.stdout)
    assert facts["images"] == {"train": 37, "validation": 1}
    assert facts["classes"][0] == {"name": "flower 00", "train": 4, "validation": 1}
    assert facts["width_px"]["max"] == 180
    assert facts["bytes"]["total"] > 0
    assert len(facts["unreadable"]) == 1


def test_info_of_nothing_readable_does_not_fail(tmp_path, timesink):
    write(tmp_path / "photos/a/1.jpg", b"no")

    assert timesink("dataset", "info", "photos").returncode == 0
    facts = json.loads(timesink("dataset", "info", "photos", "--json").stdout)
    assert facts["width_px"] is None


def test_info_of_a_folder_that_is_not_there_exits_with_3(timesink):
    done = timesink("dataset", "info", "nowhere")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("timesink: nowhere: there is no such folder")
