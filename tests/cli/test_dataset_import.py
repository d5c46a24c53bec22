import json

from tests.pictures import write


def test_import_writes_lists_and_says_what_to_do_next(tmp_path, timesink):
    for label in "ab":
        for index in range(10):
            write(tmp_path / "photos" / label / f"{index}.jpg")
    write(tmp_path / "photos" / "a" / "notes.txt")

    done = timesink("dataset", "import", "photos", "--out", "lists", "--class", "b", "--class", "a")

    assert done.returncode == 0, done.stderr
    assert "lists: 2 classes" in done.stdout
    assert "held out" in done.stderr
    assert "ignored 1 file that is not an image" in done.stderr
    assert "timesink run --set dataset.path=lists" in done.stderr
    assert json.loads((tmp_path / "lists" / "labels.json").read_text()) == {"b": 0, "a": 1}


def test_copy_brings_the_images_along_and_force_is_asked_for(tmp_path, timesink):
    write(tmp_path / "photos/train/a/1.jpg")
    write(tmp_path / "photos/val/a/2.jpg")
    command = ("dataset", "import", "photos", "--out", "copy", "--copy")

    assert timesink(*command).returncode == 0
    assert (tmp_path / "copy/train/a/1.jpg").exists()
    assert (tmp_path / "copy/train.csv").read_text() == "path,label\ntrain/a/1.jpg,0\n"
    again = timesink(*command)
    assert (again.returncode, again.stdout) == (2, "")
    assert "--force" in again.stderr
    assert timesink(*command, "--force").returncode == 0


def test_a_class_that_is_not_there_exits_with_3_and_a_suggestion(tmp_path, timesink):
    write(tmp_path / "photos/tulip/1.jpg")
    write(tmp_path / "photos/rose/1.jpg")

    done = timesink("dataset", "import", "photos", "--out", "lists", "--class", "tulp")

    assert done.returncode == 3
    assert done.stderr.startswith("timesink: ")
    assert "did you mean tulip?" in done.stderr
    assert not (tmp_path / "lists").exists()
