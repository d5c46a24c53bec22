import csv
import json
import os
from pathlib import Path

import pytest

from tests.pictures import write
from timesink.datasets import importing
from timesink.datasets.folder import open_dataset
from timesink.datasets.importing import import_dataset
from timesink.errors import DatasetError, OutputExistsError, UsageError

ODD_NAMES = (
    "a,b.jpg",
    'quo"te.jpg',
    "new\nline.jpg",
    "cr\r.jpg",
    "byte\udcff.jpg",
    "ünï.jpg",
    " .jpg",
)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    for name in ODD_NAMES:
        write(tmp_path / "source" / "train" / "odd, class" / name)
    write(tmp_path / "source" / "train" / "b" / "deep" / "1.jpg")
    write(tmp_path / "source" / "val" / "b" / "deep" / "1.jpg")
    return tmp_path / "source"


def test_the_lists_give_back_the_same_images_whatever_their_names(source, tmp_path):
    original = open_dataset(source)

    import_dataset(original, tmp_path / "out")
    again = open_dataset(tmp_path / "out")

    assert (again.classes, again.train, again.validation) == (
        original.classes,
        original.train,
        original.validation,
    )
    assert json.loads((tmp_path / "out" / "labels.json").read_text()) == {"b": 0, "odd, class": 1}
    facts = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert (facts["train_images"], facts["validation_images"], facts["complete"]) == (8, 1, True)


def test_a_copy_stands_on_its_own(source, tmp_path):
    original = open_dataset(source)

    import_dataset(original, tmp_path / "out", copy=True)
    contents = [Path(path).read_bytes() for path in original.train.paths]
    source.rename(tmp_path / "gone")
    (tmp_path / "out").rename(tmp_path / "moved")
    again = open_dataset(tmp_path / "moved")

    assert [Path(path).read_bytes() for path in again.train.paths] == contents
    assert again.train.labels == original.train.labels
    assert (tmp_path / "moved" / "val" / "b" / "deep" / "1.jpg").exists()
    with (tmp_path / "moved" / "val.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["path", "label"], ["val/b/deep/1.jpg", "0"]]


def test_a_stopped_copy_is_not_a_dataset_and_goes_on(source, tmp_path, monkeypatch):
    out = tmp_path / "out"
    dataset = open_dataset(source)
    copied: list[str] = []

    def copyfile(one: str, other: Path) -> None:
        if len(copied) == 3:
            raise KeyboardInterrupt
        copied.append(one)
        other.write_bytes(Path(one).read_bytes())

    monkeypatch.setattr(importing.shutil, "copyfile", copyfile)
    with pytest.raises(KeyboardInterrupt):
        import_dataset(dataset, out, copy=True)
    with pytest.raises(DatasetError, match="stopped before it was done"):
        open_dataset(out)
    assert not [p for p in out.rglob("*") if p.name.endswith(".tmp")]

    first = list(copied)
    copied.clear()
    monkeypatch.setattr(
        importing.shutil,
        "copyfile",
        lambda one, other: (copied.append(one), other.write_bytes(Path(one).read_bytes())),
    )
    import_dataset(dataset, out, copy=True)

    assert sorted(first + copied) == sorted((*dataset.train.paths, *dataset.validation.paths))
    assert len(open_dataset(out).train) == 8


def test_images_from_two_places_with_one_name_are_both_copied(tmp_path):
    for place in ("one", "two"):
        write(tmp_path / place / "1.jpg", place.encode())
    lists = tmp_path / "lists"
    write(lists / "labels.json", b'{"a": 0}')
    write(
        lists / "train.csv",
        f"path,label\n{tmp_path}/one/1.jpg,0\n{tmp_path}/two/1.jpg,0\n".encode(),
    )

    import_dataset(open_dataset(lists), tmp_path / "out", copy=True)

    copies = open_dataset(tmp_path / "out").train.paths
    assert [Path(path).read_bytes() for path in copies] == [b"one", b"two"]


def test_a_finished_import_is_overwritten_only_with_force(source, tmp_path):
    import_dataset(open_dataset(source), tmp_path / "out")
    one_class = open_dataset(source, classes=["b"])

    with pytest.raises(OutputExistsError, match="--force"):
        import_dataset(one_class, tmp_path / "out")
    import_dataset(one_class, tmp_path / "out", force=True)

    assert open_dataset(tmp_path / "out").classes == ("b",)


def test_a_foreign_folder_is_refused_even_with_force(source, tmp_path):
    mine = write(tmp_path / "out" / "train.csv", b"mine")

    with pytest.raises(OutputExistsError, match="not written by"):
        import_dataset(open_dataset(source), tmp_path / "out", force=True)

    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize("inside", [".", "lists", "train/lists"])
def test_lists_are_not_written_into_their_own_source(source, inside):
    with pytest.raises(UsageError, match="inside"):
        import_dataset(open_dataset(source), source / inside)


def test_chosen_classes_and_caps_hold_for_lists_too(source, tmp_path):
    import_dataset(open_dataset(source), tmp_path / "out")

    dataset = open_dataset(tmp_path / "out", classes=["odd, class"], images_per_class=2)

    assert dataset.classes == ("odd, class",)
    assert dataset.train.labels == (0, 0)
    assert len(dataset.validation) == 0
    with pytest.raises(DatasetError, match="no class 'odd clas'; did you mean odd, class"):
        open_dataset(tmp_path / "out", classes=["odd clas"])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("train.csv", "path,label\n../up.jpg,0\n", "train.csv:2: '../up.jpg' leads out"),
        ("train.csv", "path,label\na/../../up.jpg,0\n", "train.csv:2: .* leads out"),
        ("train.csv", "path,label\na.jpg,0\nb.jpg\n", "train.csv:3: expected path,label"),
        ("train.csv", "path,label\na.jpg,7\n", "train.csv:2: the label must be 0 to 0"),
        ("train.csv", "path,label\na.jpg,-1\n", "train.csv:2: the label must be"),
        ("train.csv", "path,label\n,0\n", "train.csv:2: not a path"),
        ("train.csv", 'path,label\n"a.jpg,0\n', "train.csv:2: not CSV"),
        ("train.csv", "file;class\n", "train.csv:1: expected the header"),
        ("val.csv", "path,label\na.jpg,x\n", "val.csv:2"),
        ("train.csv", "path,label\n", "no image of class 'a'"),
        ("labels.json", '{"a": 0,\n', "labels.json:2: not JSON"),
        ("labels.json", "[]", "labels.json: expected class names"),
        ("labels.json", '{"a": 1}', "labels.json: the labels must be 0 to 0"),
    ],
)
def test_a_malformed_list_is_named_with_its_line(tmp_path, name, content, message):
    whole = {
        "labels.json": '{"a": 0}',
        "train.csv": "path,label\na..b.jpg,0\n",
        "val.csv": "path,label\n",
    }
    for file, text in (whole | {name: content}).items():
        (tmp_path / file).write_text(text)

    with pytest.raises(DatasetError, match=message):
        open_dataset(tmp_path)

    (tmp_path / name).write_text(whole[name])
    assert open_dataset(tmp_path).train.paths == (os.fspath(tmp_path / "a..b.jpg"),)
