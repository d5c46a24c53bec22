"""Verifying stores: no bit may change unseen, and it is told where."""

import numpy as np
import pytest

from tests.datasets.photos import make_photos, picture, render, rendered
from tests.pictures import write
from timesink.datasets.converting import convert
from timesink.datasets.stores import contents
from timesink.datasets.stores.plan import make_plan
from timesink.datasets.verify_store import verify_store

KINDS = ("tfrecord", "materialized")


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return make_store(tmp_path, request.param)


def make_store(tmp_path, kind):
    photos = make_photos(tmp_path / "photos", classes=2, images=3, validation_images=1)
    what = rendered(side=4) if kind == "materialized" else None
    plan = make_plan(photos, kind, what, out=None, per_file=3)
    return convert(plan, render=lambda paths: render(paths, side=4), workers=1).root


def flip(path, place, bit):
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def test_a_whole_store_has_no_fault(store):
    verified = verify_store(store, decode=True, workers=1)

    assert verified.faults == ()
    assert verified.images == 8


def test_a_flipped_bit_is_found_in_any_file_at_any_place(store):
    random = np.random.default_rng(0)
    for path in sorted(store.iterdir()):
        size = path.stat().st_size
        places = range(size) if size < 700 else random.choice(size, 250, replace=False).tolist()
        ends = (0, size - 1)
        for place in {*places, *ends}:
            bit = int(random.integers(8))
            flip(path, place, bit)
            faults = verify_store(store, workers=1).faults
            flip(path, place, bit)
            assert [fault.file for fault in faults] == [path.name], (path.name, place, bit)
    assert verify_store(store, workers=1).faults == ()


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_named_by_record_and_image(kind, tmp_path):
    store = make_store(tmp_path, kind)
    index = contents.read_store(store).index
    row = index.row(3, named=True)
    file = store / contents.read_manifest(store).shards[row["shard"]].file
    flip(file, row["offset"] + 20, 0)

    (fault,) = verify_store(store, workers=1).faults

    within = sorted(index.filter(index["shard"] == row["shard"])["record"]).index(row["record"])
    assert fault.file == file.name
    assert fault.record == within
    assert fault.image == row["path"].decode()
    assert fault.fault == "checksum does not match"


def test_missing_cut_and_lengthened_shards_are_told(store):
    first, second, third = (store / s.file for s in contents.read_manifest(store).shards)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-3])
    third.write_bytes(third.read_bytes() + b"more")

    faults = verify_store(store, workers=1).faults

    told = {(fault.file, fault.fault) for fault in faults}
    assert told == {
        (first.name, "missing"),
        (second.name, "truncated"),
        (third.name, "longer than it was written"),
    }


def test_missing_manifest_and_index_are_told(store):
    (store / contents.INDEX).unlink()
    assert [(f.file, f.fault) for f in verify_store(store, workers=1).faults] == [
        (contents.INDEX, "missing")
    ]
    (store / contents.MANIFEST).unlink()
    (store / contents.JOURNAL).write_text("")
    assert [f.fault for f in verify_store(store, workers=1).faults] == [
        "not finished: convert again"
    ]


def test_broken_images_in_whole_records_are_found_by_decoding(tmp_path):
    photos = make_photos(tmp_path / "photos", validation_images=0)
    write(photos / "class 0/cut.jpg", picture(0)[:-100])
    write(photos / "class 1/words.jpg", b"no image")
    store = convert(make_plan(photos, "tfrecord", None, out=None, per_file=None), workers=1).root

    assert verify_store(store, workers=1).faults == ()
    faults = verify_store(store, decode=True, workers=1).faults

    assert {(fault.image, fault.fault) for fault in faults} == {
        ("class 0/cut.jpg", "truncated"),
        ("class 1/words.jpg", "not an image"),
    }
