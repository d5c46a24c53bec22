"""Our TFRecords: what TensorFlow reads of them, and what is told of damaged ones."""

import os
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.datasets.photos import make_photos, picture
from tests.pictures import encoded, write
from timesink.datasets.converting import convert
from timesink.datasets.sources import open_source
from timesink.datasets.stores.plan import make_plan
from timesink.datasets.tfrecord import record_store
from timesink.experiment import DatasetSection


def converted(photos, *, per_file=5):
    return convert(make_plan(photos, "tfrecord", None, out=None, per_file=per_file), workers=1)


def opened(photos, **asked):
    section = DatasetSection(path=str(photos), **asked)
    return open_source(section, "tfrecord", stages=(), image_size=200, stored="uint8")


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos")


def test_tensorflow_reads_images_labels_and_names(photos):
    write(photos / "train/class 1" / os.fsdecode(b"\xfe.jpg"), encoded("BMP"))
    made = converted(photos)
    files = [str(made.root / shard.file) for shard in made.manifest.shards]
    keys = {
        "image/encoded": tf.io.FixedLenFeature([], tf.string),
        "image/format": tf.io.FixedLenFeature([], tf.string),
        "image/class/label": tf.io.FixedLenFeature([], tf.int64),
        "image/class/text": tf.io.FixedLenFeature([], tf.string),
        "image/filename": tf.io.FixedLenFeature([], tf.string),
    }

    seen = {}
    for record in tf.data.TFRecordDataset(files):
        example = tf.io.parse_single_example(record, keys)
        seen[example["image/filename"].numpy()] = example

    assert len(seen) == 25
    for name, example in seen.items():
        path = photos / os.fsdecode(name)
        assert example["image/encoded"].numpy() == path.read_bytes()
        assert example["image/class/text"].numpy().decode() == path.parent.name
        assert example["image/class/label"].numpy() == int(path.parent.name[-1])
    assert {example["image/format"].numpy() for example in seen.values()} == {
        b"JPEG",
        b"PNG",
        b"BMP",
    }


def test_the_store_says_where_each_image_lies(photos):
    converted(photos)
    dataset = opened(photos)

    for images in (dataset.train, dataset.validation):
        store = images.store
        assert store.whole_files()
        for path, record in zip(images.paths, images.records, strict=True):
            chunk = store.record_chunk[record]
            content = Path(store.files[store.chunk_file[chunk]]).read_bytes()
            content = content[store.chunk_offset[chunk] :][: store.chunk_bytes[chunk]]
            at, length = store.image_offset[record], store.image_bytes[record]
            assert content[at : at + length] == Path(path).read_bytes()
            assert store.intact(int(chunk)).all()
            assert store.fault(record) is None


def test_a_flipped_bit_is_told_of_its_record_alone(photos):
    converted(photos)
    dataset = opened(photos)
    store = dataset.train.store
    record = dataset.train.records[3]
    chunk = int(store.record_chunk[record])
    first = int(np.searchsorted(store.record_chunk, chunk))
    file = Path(store.files[store.chunk_file[chunk]])
    whole = file.read_bytes()

    start = int(store.record_offset[record])
    places = [start, start + 8, start + 12, int(store.image_offset[record]) + 5]
    for place in (*places, start + 12 + int(store.record_bytes[record])):
        flipped = bytearray(whole)
        flipped[place] ^= 4
        file.write_bytes(flipped)
        assert store.fault(record) == "checksum does not match"
        intact = store.intact(chunk)
        assert not intact[record - first]
        assert intact.sum() == len(intact) - 1


def test_truncated_and_vanished_files_are_told_and_never_raise(photos):
    converted(photos)
    dataset = opened(photos)
    store = dataset.train.store
    file = Path(store.files[0])
    last = int(np.searchsorted(store.record_chunk, 1)) - 1
    os.truncate(file, file.stat().st_size - 10)

    assert store.fault(last) == "truncated"
    assert store.fault(0) is None
    assert store.intact(0).tolist() == [True] * last + [False]
    file.unlink()
    assert store.fault(0) == "missing"
    assert not store.intact(0).any()


def test_a_broken_image_is_stored_as_it_is_and_found_when_read(photos):
    broken = write(photos / "train/class 0/broken.jpg", picture(0)[:-200])
    converted(photos)

    dataset = opened(photos)

    record = dataset.train.records[dataset.train.paths.index(str(broken))]
    assert dataset.train.store.fault(record) == "truncated"


def test_a_large_file_is_read_in_chunks_of_whole_records(photos, monkeypatch):
    converted(photos, per_file=18)
    monkeypatch.setattr("timesink.datasets.tfrecord.CHUNK_BYTES", 3000)

    store = opened(photos).train.store

    assert not store.whole_files()
    assert len(store.chunk_file) > 4
    single = store.record_bytes + 16 > 3000
    counts = np.bincount(store.record_chunk)
    assert all(store.chunk_bytes[counts > 1] <= 3000)
    assert single.sum() <= (counts == 1).sum()
    for chunk in range(len(store.chunk_file)):
        assert store.intact(chunk).all()
    assert [store.fault(record) for record in range(24)] == [None] * 24


def test_records_that_are_no_images_may_lie_between(tmp_path):
    size = 1 << 20
    store = record_store(
        tmp_path,
        [str(tmp_path / "a"), str(tmp_path / "empty"), str(tmp_path / "b")],
        [9 * size, 0, size],
        shard=np.array([0, 0, 0, 2]),
        offset=np.array([0, 5 * size, 7 * size + 16, 0]),
        payload_bytes=np.array([4 * size, 2 * size, size, size - 16]),
        image_offset=np.array([100, 5 * size + 100, 7 * size + 200, 100]),
        image_bytes=np.array([10, 10, 10, 10]),
    )

    assert store.chunk_file.tolist() == [0, 0, 2]
    assert store.chunk_offset.tolist() == [0, 7 * size + 16, 0]
    assert store.record_chunk.tolist() == [0, 0, 1, 2]
    assert store.image_offset.tolist() == [100, 5 * size + 100, 184, 100]
    assert not store.whole_files()
