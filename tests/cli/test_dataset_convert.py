"""`dataset convert`, and what `info` and `verify` say of what it made."""

import json
import os

import numpy as np
import pytest

from tests.datasets.photos import make_photos, picture
from tests.pictures import write


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos", images=5)


def test_tfrecords_are_made_with_sizes_and_the_next_command(photos, say):
    done = say("dataset", "convert", "photos", "--to", "tfrecord")

    assert done.code == 0, done.err
    assert "21 images in 2 files" in done.out
    assert "× the size of the image files" in done.out
    assert "480 kB" in done.out
    assert "Next: timesink run --set dataset.path=photos --set pipeline.source=tfrecord" in done.err
    lines = [line for line in done.out.splitlines() if str(photos) not in line]
    assert max(map(len, lines)) <= 80

    again = say("dataset", "convert", "photos", "--to", "tfrecord")
    assert (again.code, "it was there already" in again.out) == (0, True)


def test_json_is_one_object_with_sizes_that_add_up(photos, say, tmp_path):
    done = say("dataset", "convert", "photos", "--to", "tfrecord", "--per-file", 4, "--json")

    facts = json.loads(done.out)
    on_disk = sum(p.stat().st_size for p in (photos / ".timesink/tfrecord").iterdir())
    manifest = (photos / ".timesink/tfrecord/manifest.json").stat().st_size
    raw = sum(p.stat().st_size for p in photos.rglob("*.jpg"))
    assert facts["store_bytes"] == on_disk - manifest
    assert facts["raw_bytes"] == raw
    assert facts["ratio"] == pytest.approx(facts["store_bytes"] / raw)
    assert facts["memory_bytes_per_image"] == 200 * 200 * 3 * 4
    assert facts["shards"] == 4 + 2
    assert facts["images"] == {"train": 15, "validation": 6, "left_out": 0}


def test_materialized_images_are_rendered_and_numpy_opens_them(photos, say, tmp_path):
    write(photos / "train/class 0/broken.jpg", picture(0)[:-100])
    arguments = ("--to", "materialized", "--size", 16, "--out", tmp_path / "out")
    few = say("dataset", "convert", "photos", *arguments)
    assert (few.code, few.out) == (3, "")
    assert "1 of 22 images are broken, more than --max-bad 0.01 allows" in few.err

    done = say("dataset", "convert", "photos", *arguments, "--max-bad", 0.1)

    assert done.code == 0, done.err
    assert "broken images left out: 1" in done.err
    assert "truncated: train/class 0/broken.jpg" in done.err
    assert f"dataset.path={tmp_path / 'out'}" in done.err.replace("\n", "")
    assert "pipeline.image_size=16" in done.err
    shapes = [np.load(path).shape for path in sorted((tmp_path / "out").glob("*.npy"))]
    assert shapes == [(15, 16, 16, 3), (6, 16, 16, 3)]


def test_stages_can_be_given_as_a_list_and_a_crop_may_follow_online(photos, say):
    stages = "decode, convert, resize(20, nearest)"
    done = say(
        *("dataset", "convert", "photos", "--to", "materialized", "--size", 16),
        *("--stages", stages, "--stored", "float32", "--json"),
    )

    facts = json.loads(done.out)
    assert facts["stages"] == ["decode", "convert", "resize(20, nearest)"]
    assert facts["image_size"] == 20
    assert facts["dtype"] == "float32"
    stages = "decode, convert, rezise"
    wrong = say("dataset", "convert", "photos", "--to", "materialized", "--stages", stages)
    assert wrong.code == 2
    assert "did you mean resize?" in wrong.err


def test_options_of_the_other_kind_are_refused(photos, say):
    done = say("dataset", "convert", "photos", "--to", "tfrecord", "--stored", "uint8")
    assert done.code == 2
    assert "--stored is of --to materialized" in done.err


def test_info_lists_stores_with_their_size(photos, say):
    say("dataset", "convert", "photos", "--to", "tfrecord")

    shown = say("dataset", "info", "photos")
    facts = json.loads(say("dataset", "info", "photos", "--json").out)
    alone = say("dataset", "info", photos / ".timesink/tfrecord")

    assert "TFRecords" in shown.out
    assert "× the image files" in shown.out
    (store,) = facts["stores"]
    assert (store["kind"], store["images"], store["files"]) == ("tfrecord", 21, 2)
    assert "3 classes, 21 images: 15 train, 6 validation" in alone.out
    assert alone.code == 0


def test_verify_finds_a_flipped_bit_and_names_file_record_and_image(photos, say):
    say("dataset", "convert", "photos", "--to", "tfrecord")
    assert say("dataset", "verify", "photos").code == 0
    shard = next((photos / ".timesink/tfrecord").glob("train-*"))
    content = bytearray(shard.read_bytes())
    content[300] ^= 16
    shard.write_bytes(content)

    shown = say("dataset", "verify", "photos")
    facts = json.loads(say("dataset", "verify", "photos", "--json").out)
    alone = say("dataset", "verify", shard.parent)

    assert (shown.code, alone.code) == (3, 3)
    assert "of 21 images are broken" not in shown.out
    assert "checksum does not match" in shown.out
    assert f"{shard.name}, record 0: train/class" in shown.out
    (fault,) = facts["stores"][0]["faults"]
    assert (fault["file"], fault["record"], fault["usable"]) == (shard.name, 0, False)
    assert fault["image"].startswith("train/class")
    moved = say("dataset", "verify", shard.parent, "--quarantine")
    assert moved.code == 2
    assert say("dataset", "convert", "photos", "--to", "tfrecord").code == 0
    assert say("dataset", "verify", "photos").code == 0


def test_somebodys_tfrecords_are_shown_and_verified(photos, say, tmp_path):
    say("dataset", "convert", "photos", "--to", "tfrecord", "--out", tmp_path / "made")
    for name in ("manifest.json", "index.parquet"):
        (tmp_path / "made" / name).unlink()

    shown = say("dataset", "info", "made")
    verified = say("dataset", "verify", "made")

    assert "3 classes, 21 images: 15 train, 6 validation" in shown.out
    assert "TFRecords are read as image = image/encoded" in shown.out.replace("\n", " ")
    assert verified.code == 0
    assert "all 21 images are as they were written" in verified.out
    (shard, *_) = (tmp_path / "made").glob("train-*")
    os.truncate(shard, shard.stat().st_size - 1)
    assert say("dataset", "verify", "made").code == 3


def test_a_place_that_cannot_be_written_is_one_line(photos, say):
    (photos / ".timesink").write_text("a file")
    done = say("dataset", "convert", "photos", "--to", "tfrecord")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "--out chooses another place" in done.err
