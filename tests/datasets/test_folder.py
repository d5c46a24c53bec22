import os
import tempfile
from pathlib import Path

import pytest

from tests.pictures import write
from timesink.datasets.folder import open_dataset
from timesink.errors import DatasetError


def fill(root: Path, *names: str) -> Path:
    for name in names:
        write(root / name, b"names only are read")
    return root


def names(root: Path, paths: tuple[str, ...]) -> list[str]:
    return [str(Path(path).relative_to(root)) for path in paths]


@pytest.mark.parametrize("validation", ["val", "validation"])
def test_the_imagenet_layout_gives_both_splits_with_labels_by_name(tmp_path, validation):
    fill(tmp_path, "train/dog/1.JPEG", "train/cat/2.jpg", "train/cat/1.png")
    fill(tmp_path, f"{validation}/cat/9.gif", f"{validation}/dog/8.bmp")

    dataset = open_dataset(tmp_path)

    assert dataset.classes == ("cat", "dog")
    assert names(tmp_path, dataset.train.paths) == [
        "train/cat/1.png",
        "train/cat/2.jpg",
        "train/dog/1.JPEG",
    ]
    assert dataset.train.labels == (0, 0, 1)
    assert names(tmp_path, dataset.validation.paths) == [
        f"{validation}/cat/9.gif",
        f"{validation}/dog/8.bmp",
    ]
    assert dataset.validation.labels == (0, 1)
    assert dataset.notes == ()


def test_paths_are_absolute_for_a_relative_folder(tmp_path, monkeypatch):
    fill(tmp_path, "d/a/1.jpg", "d/b/1.jpg")
    monkeypatch.chdir(tmp_path)

    dataset = open_dataset(Path("d"), validation_fraction=0)

    assert all(Path(path).is_absolute() and Path(path).exists() for path in dataset.train.paths)


def test_a_plain_folder_has_a_part_of_each_class_held_out(tmp_path):
    fill(tmp_path, *(f"{c}/{i}.jpg" for c in "ab" for i in range(300)))

    dataset = open_dataset(tmp_path)

    assert len(dataset.train) + len(dataset.validation) == 600
    for label in (0, 1):
        assert 30 < dataset.validation.labels.count(label) < 90
    assert not set(dataset.train.paths) & set(dataset.validation.paths)
    assert any("held out" in note for note in dataset.notes)


def test_what_is_held_out_does_not_change_when_files_are_added(tmp_path):
    fill(tmp_path, *(f"a/{i}.jpg" for i in range(100)), "b/1.jpg")
    before = set(open_dataset(tmp_path).validation.paths)

    fill(tmp_path, *(f"a/more{i}.jpg" for i in range(100)), "c/1.jpg")
    after = open_dataset(tmp_path)

    assert before <= set(after.validation.paths)
    assert not before & set(after.train.paths)


def test_nothing_is_held_out_with_a_fraction_of_zero(tmp_path):
    fill(tmp_path, *(f"{c}/{i}.jpg" for c in "ab" for i in range(20)))

    dataset = open_dataset(tmp_path, validation_fraction=0)

    assert (len(dataset.train), len(dataset.validation)) == (40, 0)


def test_a_class_keeps_a_training_image_whatever_the_fraction(tmp_path):
    fill(tmp_path, "a/only.jpg", *(f"b/{i}.jpg" for i in range(5)))

    dataset = open_dataset(tmp_path, validation_fraction=0.999)

    assert set(dataset.train.labels) == {0, 1}
    assert len(dataset.validation) > 0
    assert not set(dataset.train.paths) & set(dataset.validation.paths)


def test_a_val_folder_without_class_folders_is_said_and_not_used(tmp_path):
    fill(tmp_path, *(f"train/{c}/{i}.jpg" for c in "ab" for i in range(50)), "val/1.JPEG")

    dataset = open_dataset(tmp_path)

    assert len(dataset.validation) > 0
    assert all("/train/" in path for path in dataset.validation.paths)
    assert any("val has no class folders" in note for note in dataset.notes)


def test_chosen_classes_are_labelled_in_the_order_given(tmp_path):
    fill(tmp_path, "train/a/1.jpg", "train/b/1.jpg", "train/c/1.jpg", "val/a/1.jpg", "val/c/1.jpg")

    dataset = open_dataset(tmp_path, classes=["c", "a"])

    assert dataset.classes == ("c", "a")
    assert names(tmp_path, dataset.train.paths) == ["train/c/1.jpg", "train/a/1.jpg"]
    assert names(tmp_path, dataset.validation.paths) == ["val/c/1.jpg", "val/a/1.jpg"]
    assert dataset.validation.labels == (0, 1)


def test_images_per_class_caps_training_and_not_validation(tmp_path):
    fill(tmp_path, *(f"{s}/{c}/{i}.jpg" for s in ("train", "val") for c in "ab" for i in range(5)))

    dataset = open_dataset(tmp_path, images_per_class=2)

    assert names(tmp_path, dataset.train.paths) == [
        "train/a/0.jpg",
        "train/a/1.jpg",
        "train/b/0.jpg",
        "train/b/1.jpg",
    ]
    assert len(dataset.validation) == 10


def test_subfolders_of_a_class_belong_to_it(tmp_path):
    fill(tmp_path, "a/x/y/1.jpg", "a/2.jpg", "b/1.jpg")

    dataset = open_dataset(tmp_path, validation_fraction=0)

    assert names(tmp_path, dataset.train.paths) == ["a/2.jpg", "a/x/y/1.jpg", "b/1.jpg"]


def test_other_files_are_ignored_and_counted(tmp_path):
    fill(tmp_path, "a/1.jpg", "a/readme.txt", "a/2.webp", "a/3.webp", "b/1.JPG")

    dataset = open_dataset(tmp_path, validation_fraction=0)

    assert len(dataset.train) == 2
    assert any("ignored 3 files" in n and ".webp" in n and ".txt" in n for n in dataset.notes)


def test_hidden_unfinished_and_quarantined_files_are_not_seen(tmp_path):
    fill(tmp_path, "a/1.jpg", "b/1.jpg")
    fill(tmp_path, "a/._1.jpg", "a/.cache/2.jpg", ".git/3.jpg", "a/4.jpg.part", "a/5.jpg.tmp")
    fill(tmp_path, "quarantine/a/6.jpg", "__MACOSX/7.jpg", "c.tmp/8.jpg")

    dataset = open_dataset(tmp_path, validation_fraction=0)

    assert dataset.classes == ("a", "b")
    assert names(tmp_path, dataset.train.paths) == ["a/1.jpg", "b/1.jpg"]


def test_a_class_named_train_is_a_class(tmp_path):
    fill(tmp_path, "car/1.jpg", "train/1.jpg")

    assert open_dataset(tmp_path, validation_fraction=0).classes == ("car", "train")


def test_links_are_followed_and_loops_end(tmp_path):
    fill(tmp_path, "elsewhere/1.jpg", "data/b/1.jpg", "data/c/1.jpg")
    root = tmp_path / "data"
    (root / "a").symlink_to(tmp_path / "elsewhere")
    (root / "b" / "up").symlink_to(root)
    (root / "b" / "self").symlink_to(root / "b")
    (root / "c" / "itself.jpg").symlink_to(root / "c" / "itself.jpg")
    (root / "c" / "gone.jpg").symlink_to(root / "nowhere.jpg")

    dataset = open_dataset(root, validation_fraction=0)

    assert dataset.classes == ("a", "b", "c")
    assert names(root, dataset.train.paths) == ["a/1.jpg", "b/1.jpg", "c/1.jpg"]
    assert any("2 broken links" in note for note in dataset.notes)


def test_names_that_are_not_utf8_are_kept(tmp_path):
    odd = b"a/\xff\n,'\".jpg"
    fill(tmp_path, "b/1.jpg", os.fsdecode(odd))

    dataset = open_dataset(tmp_path, validation_fraction=0)

    assert os.fsencode(dataset.train.paths[0]) == os.fsencode(tmp_path) + b"/" + odd


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ((), {}, "no images"),
        (("1.jpg", "2.jpg"), {}, "lie flat"),
        (("train/1.jpg", "val/2.jpg"), {}, "lie flat"),
        (("cat/1.jpg", "dog/1.jpg"), {"classes": ["cta"]}, "did you mean cat"),
        (("cat/1.jpg", "dog/1.jpg"), {"classes": ["cat", "cat"]}, "twice"),
        (("cat/1.jpg", "dog/1.webp"), {}, "dog: no images, only .webp"),
        (("train/cat/1.jpg", "train/dog/1.txt", "val/dog/1.jpg"), {}, "dog: no images"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(tmp_path, files, options, message):
    fill(tmp_path, *files)

    with pytest.raises(DatasetError) as caught:
        open_dataset(tmp_path, **options)

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_and_a_file_are_told_apart(tmp_path):
    write(tmp_path / "file")
    with pytest.raises(DatasetError, match="no such folder"):
        open_dataset(tmp_path / "nowhere")
    with pytest.raises(DatasetError, match="not a folder"):
        open_dataset(tmp_path / "file")


@pytest.fixture
def as_nobody():
    """Give root's powers away for a while: root reads everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


def test_a_folder_that_may_not_be_read_is_named(as_nobody):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        fill(root, "a/1.jpg", "b/1.jpg")
        (root / "a").chmod(0)
        with pytest.raises(DatasetError, match="a: cannot be read"):
            open_dataset(root)
        (root / "a").chmod(0o755)


@pytest.mark.parametrize(("name", "command"), [("generated", "make"), ("dataset", "import")])
def test_a_half_made_dataset_is_refused(tmp_path, name, command):
    fill(tmp_path, "train/a/1.jpg", "train/b/1.jpg")
    (tmp_path / f"{name}.json").write_text('{"made_by": "timesink 0", "complete": false}')

    with pytest.raises(DatasetError, match=f"dataset {command}.*run it again"):
        open_dataset(tmp_path)
