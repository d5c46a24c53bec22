"""Conversions: the same bytes whatever happened on the way, or a reason in one line."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections import namedtuple

import numpy as np
import pytest

from tests.datasets.photos import files_of, make_photos, picture, render, rendered
from tests.pictures import write
from timesink.datasets.converting import convert
from timesink.datasets.stores import contents
from timesink.datasets.stores.plan import make_plan
from timesink.errors import (
    BadImagesError,
    DatasetError,
    DiskFullError,
    OutputExistsError,
    UsageError,
)

KINDS = ("tfrecord", "materialized")


def plan_of(photos, kind, *, out=None, per_file=3, dtype="uint8"):
    what = rendered(dtype) if kind == "materialized" else None
    return make_plan(photos, kind, what, out=out, per_file=per_file)


def store(photos, kind, *, out=None, per_file=3, **options):
    options = {"render": render, "workers": 1} | options
    return convert(plan_of(photos, kind, out=out, per_file=per_file), **options)


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos")


class StoppedError(Exception):
    """What a test stops a conversion with."""


def stop_after(images):
    left = [images]

    def advance(count):
        left[0] -= count
        if left[0] <= 0:
            raise StoppedError

    return advance


@pytest.mark.parametrize("kind", KINDS)
def test_every_image_is_stored_once_in_shards_of_its_split(kind, photos):
    converted = store(photos, kind)

    index = contents.read_store(converted.root).index
    assert converted.manifest.train_images == 18
    assert converted.manifest.validation_images == 6
    assert sorted(index["record"].to_list()) == list(range(24))
    names = [shard.file for shard in converted.manifest.shards]
    shards = index.select("split", "shard").rows()
    assert all(names[shard].startswith(split) for split, shard in shards)
    assert [shard.records for shard in converted.manifest.shards] == [3] * 8


def test_images_of_several_classes_lie_beside_each_other(photos):
    converted = store(photos, "tfrecord", per_file=9)

    index = contents.read_store(converted.root).index
    for shard in (0, 1):
        assert len(set(index.filter(index["shard"] == shard)["label"])) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_stopped_anywhere_and_gone_on_with_it_gives_the_same_bytes(kind, photos, tmp_path):
    whole = files_of(store(photos, kind, out=tmp_path / "whole").root)

    for images in range(3, 24, 6):
        out = tmp_path / f"stopped-{images}"
        with pytest.raises(StoppedError):
            store(photos, kind, out=out, advance=stop_after(images))
        assert contents.is_unfinished(out)
        assert not contents.is_whole(out)
        again = store(photos, kind, out=out)
        assert again.kept_shards >= images // 3
        assert files_of(out) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_killed_it_goes_on_and_gives_the_same_bytes(kind, photos, tmp_path):
    script = f"""
import os, signal
from pathlib import Path
from tests.datasets.test_converting import store
seen = []
def advance(images):
    seen.append(images)
    if len(seen) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
store(Path({str(photos)!r}), {kind!r}, out=Path({str(tmp_path / "killed")!r}), advance=advance)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)

    assert done.returncode == -signal.SIGKILL
    assert not contents.is_whole(tmp_path / "killed")
    assert store(photos, kind, out=tmp_path / "killed").kept_shards == 3
    assert files_of(tmp_path / "killed") == files_of(store(photos, kind).root)


def test_a_torn_journal_is_read_as_far_as_it_is_whole(photos, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(StoppedError):
        store(photos, "tfrecord", out=out, advance=stop_after(12))
    journal = (out / contents.JOURNAL).read_bytes()
    unfinished = files_of(out)
    whole = files_of(store(photos, "tfrecord").root)

    for length in range(0, len(journal), 97):
        shutil.rmtree(out)
        out.mkdir()
        for name, content in unfinished.items():
            (out / name).write_bytes(content)
        (out / contents.JOURNAL).write_bytes(journal[:length])
        lines = journal[:length].count(b"\n")
        assert store(photos, "tfrecord", out=out).kept_shards == max(0, lines - 1)
        assert files_of(out) == whole


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_or_missing_shard_is_made_again_by_the_same_command(kind, photos):
    converted = store(photos, kind)
    whole = files_of(converted.root)
    first, second = (converted.root / shard.file for shard in converted.manifest.shards[:2])
    first.unlink()
    flipped = bytearray(second.read_bytes())
    flipped[100] ^= 1
    second.write_bytes(flipped)

    assert store(photos, kind).kept_shards == 6
    assert files_of(converted.root) == whole


@pytest.mark.parametrize("name", [contents.MANIFEST, contents.INDEX])
def test_a_damaged_manifest_or_index_is_made_again(name, photos):
    converted = store(photos, "tfrecord")
    whole = files_of(converted.root)
    (converted.root / name).write_bytes(whole[name][:-40])

    store(photos, "tfrecord")

    assert files_of(converted.root) == whole


def test_a_whole_store_is_left_as_it_is(photos):
    converted = store(photos, "tfrecord")
    before = {path: path.stat().st_mtime_ns for path in converted.root.iterdir()}

    assert store(photos, "tfrecord").kept_shards == 8
    assert {path: path.stat().st_mtime_ns for path in converted.root.iterdir()} == before


def test_other_images_or_options_are_refused_without_force(photos):
    root = store(photos, "tfrecord").root
    write(photos / "train/class 0/new.jpg", picture(1000))
    with pytest.raises(OutputExistsError, match="other images or with other options; --force"):
        store(photos, "tfrecord")

    assert store(photos, "tfrecord", force=True).manifest.train_images == 19
    with pytest.raises(OutputExistsError, match="--force"):
        store(photos, "tfrecord", per_file=4)
    files = {shard.file for shard in contents.read_manifest(root).shards}
    assert set(files_of(root)) == files | {contents.MANIFEST, contents.INDEX}


def test_forced_and_stopped_it_goes_on_with_force_too(photos):
    store(photos, "tfrecord")
    with pytest.raises(StoppedError):
        store(photos, "tfrecord", force=True, advance=stop_after(9))

    assert store(photos, "tfrecord", force=True).kept_shards == 3


def test_an_image_that_changed_meanwhile_makes_it_start_over(photos, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(StoppedError):
        store(photos, "tfrecord", out=out, advance=stop_after(9))
    write(photos / "train/class 0/0.jpg", picture(1000))

    assert store(photos, "tfrecord", out=out).kept_shards == 0
    assert files_of(out) == files_of(store(photos, "tfrecord").root)


@pytest.mark.parametrize("kind", KINDS)
def test_several_workers_give_the_same_bytes(kind, photos, tmp_path):
    one = store(photos, kind, out=tmp_path / "one", workers=1)
    two = store(photos, kind, out=tmp_path / "two", workers=2)

    assert files_of(one.root) == files_of(two.root)


def test_two_at_once_in_one_place_are_refused(photos, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(UsageError, match="another conversion is at work there"):
            store(photos, "tfrecord", out=out)
    finally:
        os.close(descriptor)
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_too_little_room_is_told_before_anything_is_written(kind, photos, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**9, 10**9, 1000))

    with pytest.raises(DiskFullError, match=r"0\.0\d MB more are needed and 0\.00 MB are free"):
        store(photos, kind)

    assert files_of(plan_of(photos, kind).out) == {}
    monkeypatch.undo()
    assert store(photos, kind).kept_shards == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_disk_that_fills_up_leaves_what_is_done(kind, photos, tmp_path, monkeypatch):
    whole = files_of(store(photos, kind, out=tmp_path / "whole").root)
    real, calls = os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > 12:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(DiskFullError, match="run the same command again; the shards that are done"):
        store(photos, kind)
    monkeypatch.undo()
    assert not any(path.name.endswith(".tmp") for path in plan_of(photos, kind).out.iterdir())

    again = store(photos, kind)

    assert 0 < again.kept_shards < 8
    assert files_of(again.root) == whole


def test_files_that_cannot_be_read_are_left_out_and_told(photos):
    write(photos / "train/class 0/empty.jpg", b"")
    write(photos / "train/class 1/garbage.jpg", b"no image, and copied as it is")

    converted = store(photos, "tfrecord", max_bad=0.1)

    assert converted.left_out == (("train/class 0/empty.jpg", "empty"),)
    index = contents.read_store(converted.root).index
    assert index.filter(index["record"].is_null())["fault"].to_list() == ["empty"]
    assert converted.manifest.left_out_images == 1


def test_images_that_cannot_be_rendered_are_left_out_and_told(photos):
    write(photos / "train/class 0/cut.jpg", picture(0)[:200])
    write(photos / "val/class 1/words.jpg", b"no image")

    converted = store(photos, "materialized", max_bad=0.1)

    assert converted.left_out == (
        ("train/class 0/cut.jpg", "truncated"),
        ("val/class 1/words.jpg", "not an image"),
    )
    # NumPy opens a shard with fewer images than planned.
    shapes = [
        np.load(converted.root / shard.file, mmap_mode="r", allow_pickle=False).shape
        for shard in converted.manifest.shards
    ]
    assert sum(shape[0] for shape in shapes) == 24
    assert [shape[0] for shape in shapes] == [s.records for s in converted.manifest.shards]


def test_a_shard_without_one_good_image_is_written_empty(photos):
    for path in photos.rglob("*.jpg"):
        path.write_bytes(b"no image")

    converted = store(photos, "materialized", max_bad=1)

    assert [shard.records for shard in converted.manifest.shards] == [0] * 8
    assert len(converted.left_out) == 24


@pytest.mark.parametrize("kind", KINDS)
def test_more_broken_images_than_allowed_stop_it(kind, photos):
    for index in range(3):
        write(photos / f"train/class 0/bad {index}.jpg", b"")

    with pytest.raises(BadImagesError, match=r"of 27 images are broken, more than --max-bad 0.05"):
        store(photos, kind, max_bad=0.05)
    assert not any(contents.is_whole(path) for path in photos.rglob("*"))
    assert len(store(photos, kind, max_bad=0.2).left_out) == 3


def test_names_that_are_not_utf8_and_links_are_stored(photos, tmp_path):
    strange = os.fsdecode(b"stra\xffnge\n.jpg")
    write(photos / "train/class 0" / strange, picture(50))
    (photos / "train/class 1/link.jpg").symlink_to(write(tmp_path / "elsewhere.jpg", picture(51)))

    converted = store(photos, "tfrecord")

    paths = contents.read_store(converted.root).index["path"].to_list()
    assert os.fsencode(f"train/class 0/{strange}") in paths
    assert b"train/class 1/link.jpg" in paths


def test_a_place_where_it_would_look_like_a_class_is_refused(photos):
    with pytest.raises(UsageError, match="would look like a class"):
        store(photos, "tfrecord", out=photos / "train/tfrecords")
    assert store(photos, "tfrecord", out=photos / ".other").root == photos / ".other"


def test_a_place_with_other_things_in_it_is_refused_even_with_force(photos, tmp_path):
    write(tmp_path / "out/thesis.tex", b"mine")
    with pytest.raises(OutputExistsError, match="was not made by `dataset convert`"):
        store(photos, "tfrecord", out=tmp_path / "out", force=True)
    assert (tmp_path / "out/thesis.tex").read_bytes() == b"mine"


def test_a_shard_is_about_8_mib_and_never_more_unless_one_image_is(tmp_path):
    for index in range(12):
        size = 9 << 20 if index == 5 else 3 << 20
        write(tmp_path / "photos/a" / f"{index}.jpg", b"\xff\xd8\xff" + bytes(size - 3))

    plan = make_plan(tmp_path / "photos", "tfrecord", None, out=None, per_file=None)
    converted = convert(plan, workers=1)

    sizes = [shard.bytes for shard in converted.manifest.shards]
    assert sum(size > 8 << 20 for size in sizes) == 1
    assert sum(sizes) > 42 << 20


def test_many_materialized_images_get_larger_shards_not_more(tmp_path):
    photos = make_photos(tmp_path / "photos", images=40, validation_images=0)
    large = rendered("float32", side=4000)

    plan = make_plan(photos, "materialized", large, out=None, per_file=None)

    assert len(plan.shards) == 120  # an image is larger than a shard should be
    assert {len(shard) for shard in plan.shards} == {1}


def test_the_manifest_names_no_place_on_this_machine(photos, tmp_path):
    converted = store(photos, "materialized")

    text = (converted.root / contents.MANIFEST).read_text()
    assert str(tmp_path) not in text
    assert json.loads(text)["complete"] is True


def test_a_folder_without_images_is_an_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match="no images"):
        store(tmp_path / "empty", "tfrecord")
