"""Every source gives the same images with the same labels; what is missing says how to make it."""

import json
import os
import shutil

import google_crc32c
import polars as pl
import pytest

from tests.datasets.photos import STAGES, make_photos, picture, render, rendered
from tests.pictures import write
from timesink.datasets.converting import convert
from timesink.datasets.folder import open_asked
from timesink.datasets.importing import import_dataset
from timesink.datasets.sources import look, open_source
from timesink.datasets.stores import contents
from timesink.datasets.stores.plan import make_plan
from timesink.errors import DatasetError
from timesink.experiment import DatasetSection

STORES = ("tfrecord", "materialized")


def store(photos, kind, *, out=None, max_bad=0.0, dtype="uint8"):
    what = rendered(dtype) if kind == "materialized" else None
    plan = make_plan(photos, kind, what, out=out, per_file=7)
    return convert(plan, render=render, workers=1, max_bad=max_bad).root


def opened(path, source, *, stages=STAGES, image_size=8, stored="uint8", **asked):
    section = DatasetSection(path=None if path is None else str(path), **asked)
    return open_source(section, source, stages=stages, image_size=image_size, stored=stored)


def names(dataset):
    prefix = f"{dataset.root}/"
    return [
        [path.removeprefix(prefix) for path in images.paths]
        for images in (dataset.train, dataset.validation)
    ]


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos", images=12)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("validation_images", [0, 2])
@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"classes": ["class 2", "class 0"]},
        {"images_per_class": 3},
        {"validation_fraction": 0.5},
        {"validation_fraction": 0.0},
        {"classes": ["class 1"], "images_per_class": 4, "validation_fraction": 0.4},
    ],
)
def test_a_store_gives_the_same_images_as_the_files(kind, validation_images, asked, tmp_path):
    photos = make_photos(tmp_path / "photos", images=12, validation_images=validation_images)
    out = store(photos, kind, out=tmp_path / "moved")
    default = store(photos, kind)

    raw = open_asked(DatasetSection(path=str(photos), **asked))
    for path in (photos, default, out):
        dataset = opened(path, kind, **asked)
        assert names(dataset) == names(raw)
        assert dataset.train.labels == raw.train.labels
        assert dataset.validation.labels == raw.validation.labels
        assert dataset.classes == raw.classes
        assert dataset.fingerprint() == raw.fingerprint()
        assert [n for n in dataset.notes if "held out" in n] == list(raw.notes)
        for images in (dataset.train, dataset.validation):
            assert all(images.store.fault(record) is None for record in images.records)
            assert len(set(images.records)) == len(images)


@pytest.mark.parametrize("kind", STORES)
def test_left_out_images_are_missing_and_nothing_else_changes(kind, tmp_path):
    photos = make_photos(tmp_path / "photos", images=12, validation_images=0)
    # The image that hold-out would keep in the class by all means, and one among the first.
    for index in range(3):
        (photos / f"class 0/{index}.jpg").write_bytes(b"")
    store(photos, kind, max_bad=0.2)

    asked = {"images_per_class": 5, "validation_fraction": 0.6}
    raw = names(open_asked(DatasetSection(path=str(photos), **asked)))
    dataset = opened(photos, kind, **asked)

    left_out = {f"class 0/{index}.jpg" for index in range(3)}
    assert names(dataset) == [[n for n in split if n not in left_out] for split in raw]
    assert any(
        "broken images left out when the store was made: 3" in note for note in dataset.notes
    )


@pytest.mark.parametrize("kind", STORES)
def test_lists_with_files_elsewhere_can_be_stored(kind, photos, tmp_path):
    dataset = open_asked(DatasetSection(path=str(photos)))
    import_dataset(dataset, tmp_path / "lists")
    store(tmp_path / "lists", kind)

    raw = open_asked(DatasetSection(path=str(tmp_path / "lists")))
    stored = opened(tmp_path / "lists", kind)

    assert stored.train.paths == raw.train.paths
    assert stored.train.labels == raw.train.labels
    assert stored.validation.paths == raw.validation.paths


def test_names_that_are_not_utf8_stay_as_they_are(tmp_path):
    photos = tmp_path / "photos"
    for index in range(4):
        write(
            photos / os.fsdecode(b"cl\xe4ss") / os.fsdecode(b"\xff%d.jpg" % index), picture(index)
        )
    store(photos, "tfrecord")

    raw = open_asked(DatasetSection(path=str(photos)))
    stored = opened(photos, "tfrecord")

    assert stored.classes == raw.classes
    assert stored.train.paths == raw.train.paths


def test_a_missing_store_names_the_command_that_makes_it(photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    with pytest.raises(DatasetError, match=r"`timesink dataset convert photos --to tfrecord`"):
        opened(photos, "tfrecord")
    with pytest.raises(
        DatasetError,
        match=r"`timesink dataset convert photos --to materialized --size 200`",
    ):
        opened("photos", "materialized", image_size=200)
    with pytest.raises(
        DatasetError,
        match=r"convert photos --to materialized --size 9 --stages 'decode, convert, resize\(near"
        r"est\)' --stored float32`",
    ):
        stages = ("decode", "convert", "resize(nearest)")
        opened(photos, "materialized", image_size=9, stages=stages, stored="float32")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"image_size": 9}, "pipeline.image_size = 8, asked for is 9; `.*--size 9`"),
        ({"stored": "float32"}, "pipeline.stored = uint8, asked for is float32; `.*float32`"),
        ({"stages": ("decode",)}, r"pipeline.stages = decode, convert, resize\(bilinear\), asked"),
    ],
)
def test_a_store_made_otherwise_is_refused_by_name(asked, said, photos, tmp_path):
    out = store(photos, "materialized", out=tmp_path / "out")
    with pytest.raises(DatasetError, match=said):
        opened(out, "materialized", **asked)
    store(photos, "materialized")
    with pytest.raises(DatasetError, match=r"no such materialized images \(there is 8-uint8-"):
        opened(photos, "materialized", **asked)


def test_a_store_of_the_other_kind_or_as_files_is_refused(photos, tmp_path):
    records = store(photos, "tfrecord")
    arrays = store(photos, "materialized")
    with pytest.raises(DatasetError, match=r"pipeline\.source=materialized"):
        opened(arrays, "tfrecord")
    with pytest.raises(DatasetError, match="a store of source tfrecord"):
        opened(records, "materialized")
    with pytest.raises(DatasetError, match=r"not image files but a store.*source=tfrecord"):
        opened(records, "raw")


@pytest.mark.parametrize("kind", STORES)
def test_an_unfinished_store_says_how_to_go_on(kind, photos):
    root = store(photos, kind)
    (root / contents.MANIFEST).unlink()
    (root / contents.JOURNAL).write_text("{}\n")
    with pytest.raises(DatasetError, match=f"not finished: go on with `timesink.*--to {kind}"):
        opened(photos, kind)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("change", ["added", "removed", "other content"])
def test_images_that_changed_since_are_noted(kind, change, photos):
    store(photos, kind)
    assert not any("have changed" in note for note in opened(photos, kind).notes)
    match change:
        case "added":
            write(photos / "train/class 0/new.jpg", picture(99))
        case "removed":
            (photos / "train/class 0/0.jpg").unlink()
        case _:
            write(photos / "train/class 0/0.jpg", picture(99) + b"more")

    dataset = opened(photos, kind)

    assert len(dataset.train) == 36
    assert any("have changed" in note and "--force" in note for note in dataset.notes)


def test_a_store_outlives_its_image_files(photos):
    store(photos, "tfrecord")
    for folder in ("train", "val"):
        shutil.rmtree(photos / folder)

    dataset = opened(photos, "tfrecord")

    assert len(dataset.train) == 36
    assert dataset.notes == ()


def test_synthetic_has_the_shape_of_what_is_there_and_no_files(photos, tmp_path):
    raw = opened(photos, "raw")
    for path in (photos, store(photos, "tfrecord", out=tmp_path / "out")):
        dataset = opened(path, "synthetic")
        assert dataset.classes == raw.classes
        assert dataset.train.labels == raw.train.labels
        assert dataset.train.store is None
        assert len(dataset.validation) == len(raw.validation)
    assert opened(photos, "synthetic").train.paths == raw.train.paths


def test_synthetic_without_a_dataset_is_made_up():
    dataset = opened(None, "synthetic")
    assert (len(dataset.classes), len(dataset.train), len(dataset.validation)) == (10, 1000, 0)
    few = opened(None, "synthetic", classes=["a", "b"], images_per_class=5)
    assert few.classes == ("a", "b")
    assert few.train.labels == (0,) * 5 + (1,) * 5


@pytest.mark.parametrize("source", ["raw", "tfrecord", "materialized"])
def test_a_source_without_a_place_or_with_a_wrong_one_is_an_error(source, tmp_path):
    with pytest.raises(DatasetError, match=r"dataset\.path is missing"):
        opened(None, source)
    with pytest.raises(DatasetError, match="there is no such folder"):
        opened(tmp_path / "nowhere", source)


def test_look_tells_files_stores_and_nothing_apart(photos, tmp_path):
    records = store(photos, "tfrecord")
    arrays = store(photos, "materialized")
    assert look(photos).stores == (records, arrays)
    assert look(photos).dataset is not None
    assert look(arrays).stores == (arrays,)
    assert look(arrays).dataset is None
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DatasetError, match="no images"):
        look(tmp_path / "nothing")


def rewrite(root, change_manifest=lambda facts: None, change_index=lambda index: index):
    """Write a store's manifest and index anew, with checksums that hold: as an attacker would."""
    found = contents.read_store(root)
    facts = found.manifest.model_dump()
    change_manifest(facts)
    for name in ("version", "complete", "index_bytes", "index_crc32c"):
        facts.pop(name)
    index = change_index(found.index)
    try:
        contents.write_store(root, facts, index)
    except ValueError:
        text = json.dumps(facts | {"version": 1, "complete": True})
        head = text.removesuffix("}").encode() + b",\n "
        tail = f'"checksum": "{google_crc32c.value(head):08x}"\n}}\n'
        (root / contents.MANIFEST).write_bytes(head + tail.encode())


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "a/b", ".hidden", ""])
def test_a_shard_outside_of_the_store_is_refused(name, photos):
    root = store(photos, "tfrecord")
    rewrite(root, lambda facts: facts["shards"][0].update(file=name))
    with pytest.raises(DatasetError, match="not a store of this version"):
        opened(photos, "tfrecord")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("offset", -1),
        ("offset", 2**60),
        ("bytes", 2**60),
        ("bytes", -5),
        ("image_offset", 0),
        ("image_bytes", 2**61),
        ("shard", 99),
        ("shard", -1),
        ("label", 77),
        ("record", 5),
        ("record", -3),
        ("split", "elsewhere"),
        ("path", b"../../secret"),
        ("path", b"a\0b"),
        ("offset", None),
    ],
)
def test_an_index_that_leads_out_of_the_files_is_refused(column, value, photos):
    root = store(photos, "tfrecord")

    def change(index):
        values = index[column].to_list()
        values[1] = value
        return index.with_columns(pl.Series(column, values, index.schema[column]))

    rewrite(root, change_index=change)
    with pytest.raises(DatasetError, match=r"index\.parquet: .*convert again"):
        opened(photos, "tfrecord")


@pytest.mark.parametrize("shape", [[8, 8, 0], [8, 8], [2**40, 8, 3], None, [9, 8, 3]])
def test_a_shape_that_is_none_is_refused(shape, photos):
    root = store(photos, "materialized")
    rewrite(root, lambda facts: facts.update(shape=shape))
    with pytest.raises(DatasetError, match="convert again"):
        opened(photos, "materialized")


@pytest.mark.parametrize("name", [contents.MANIFEST, contents.INDEX])
@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "longer", "flipped"])
def test_a_damaged_manifest_or_index_is_an_error_in_one_line(name, damage, photos):
    root = store(photos, "tfrecord")
    path = root / name
    whole = path.read_bytes()
    changed = {
        "empty": b"",
        "cut": whole[:-9],
        "longer": whole + b"\n",
        "flipped": whole[:50] + bytes([whole[50] ^ 1]) + whole[51:],
    }
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(changed[damage])
    with pytest.raises(DatasetError) as said:
        opened(photos, "tfrecord")
    assert "\n" not in str(said.value)
    assert "convert" in str(said.value)
