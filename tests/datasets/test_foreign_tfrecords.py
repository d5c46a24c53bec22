"""Other people's TFRecords, written by TensorFlow: what is read of them, and what is refused."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tests.datasets.photos import picture
from timesink.datasets.sources import open_source
from timesink.datasets.stores import examples, foreign_index, framing
from timesink.datasets.stores.foreign_index import open_records
from timesink.datasets.verify_store import verify_records
from timesink.errors import DatasetError
from timesink.experiment import DatasetSection


def feature(value):
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    values = [value] if isinstance(value, int) else value
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(**features):
    named = {key.replace("__", "/"): feature(value) for key, value in features.items()}
    message = tf.train.Example(features=tf.train.Features(feature=named))
    return message.SerializeToString()


def write(path: Path, records, compression="", *, age_s=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tf.io.TFRecordWriter(str(path), compression) as file:
        for record in records:
            file.write(record)
    if age_s:
        set_age(path, age_s)
    return path


def set_age(path, age_s):
    """Let a file have been written some time ago: what was written just now is not kept."""
    os.utime(path, (1_700_000_000 - age_s,) * 2)


def opened(path, **asked):
    section = DatasetSection(path=str(path), **asked)
    return open_source(section, "tfrecord", stages=(), image_size=200, stored="uint8")


def content(images, number):
    """Read an image out of the files, as a loader does."""
    store, record = images.store, images.records[number]
    chunk = store.record_chunk[record]
    file = Path(store.files[store.chunk_file[chunk]]).read_bytes()
    at = store.chunk_offset[chunk] + store.image_offset[record]
    return file[at : at + store.image_bytes[record]]


def test_imagenets_own_keys_splits_and_names_are_understood(tmp_path):
    def records(numbers):
        return [
            example(
                image__encoded=picture(n),
                image__class__label=[1, 300, 2][n % 3],
                image__class__text=[b"tench", b"crane", b"crane"][n % 3],
                image__height=10,
                image__width=10,
                image__filename=b"x.JPEG",
                image__object__bbox__xmin=0.5,
            )
            for n in numbers
        ]

    write(tmp_path / "train-00000-of-00002", records(range(6)))
    write(tmp_path / "train-00001-of-00002", records(range(6, 9)))
    write(tmp_path / "validation-00000-of-00001", records(range(20, 23)))

    dataset = opened(tmp_path)

    assert dataset.classes == ("tench", "crane (2)", "crane (300)")
    assert (len(dataset.train), len(dataset.validation)) == (9, 3)
    assert dataset.train.labels == (0,) * 3 + (1,) * 3 + (2,) * 3
    assert [content(dataset.train, i) for i in range(3)] == [picture(0), picture(3), picture(6)]
    assert content(dataset.validation, 0) == picture(21)
    assert dataset.train.store.whole_files()
    assert any("image = image/encoded" in note for note in dataset.notes)


@pytest.mark.parametrize(
    ("features", "classes"),
    [
        ({"image": picture(0), "label": 7, "file_name": b"a.jpg"}, ("7",)),
        ({"image": picture(0), "class": 3, "label": b"rose", "id": b"0f"}, ("rose",)),
        ({"image_raw": picture(4), "label": 0, "height": 3, "width": 3, "depth": 3}, ("0",)),
        ({"img": picture(0), "target": -1}, ("-1",)),
        ({"picture of it": picture(0), "what it is": 5}, ("5",)),
        ({"image": picture(0), "class_name": b"r\xc3\xb6schen"}, ("röschen",)),
        ({"image": picture(0), "thumb": picture(4), "label": 5}, ("5",)),
    ],
)
def test_usual_keys_are_guessed(features, classes, tmp_path):
    write(tmp_path / "a.tfrecord", [example(**features)] * 3)

    dataset = opened(tmp_path, validation_fraction=0)

    assert dataset.classes == classes
    assert dataset.train.labels == (0, 0, 0)
    image = features.get("image") or next(v for v in features.values() if isinstance(v, bytes))
    assert content(dataset.train, 0) == image


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (example(image_raw=bytes(784), label=3), r"image_raw holds no JPEG.*pixels as they are"),
        (example(image=[7] * 784, label=3), r"image holds no JPEG.*image \(int64\), label"),
        (example(text=b"words", label=3), r"no feature holds a JPEG.*label \(int64\), text"),
        (example(image=picture(0)), r"no feature is one whole number.*image \(bytes\)"),
        (example(image=picture(0), boxes=[1, 2, 3]), "no feature is one whole number"),
        (example(image=picture(0), a=1, b=2), "several features could be the label"),
        (example(left=picture(0), right=picture(1), label=1), "several features hold images"),
        (b"\xff\xfe not an example", "no tf.train.Example"),
    ],
    # protobuf writes a map in another order each time: its bytes are no name for a test
    ids=["pixels", "numbers", "no image", "no label", "boxes", "two labels", "two images", "bytes"],
)
def test_what_cannot_be_told_is_refused_with_the_keys(record, said, tmp_path):
    write(tmp_path / "a.tfrecord", [record] * 3)
    with pytest.raises(DatasetError, match=said):
        opened(tmp_path)


def test_sequence_examples_are_refused_with_their_keys(tmp_path):
    context = tf.train.Features(feature={"label": feature(3)})
    lists = tf.train.FeatureLists(
        feature_list={"frames": tf.train.FeatureList(feature=[feature(picture(0))])}
    )
    message = tf.train.SequenceExample(context=context, feature_lists=lists)
    write(tmp_path / "a.tfrecord", [message.SerializeToString()])

    with pytest.raises(DatasetError, match=r"SequenceExamples.*label \(int64\)"):
        opened(tmp_path)


@pytest.mark.parametrize("kind", ["GZIP", "ZLIB"])
def test_compressed_files_are_refused_wherever_they_stand(kind, tmp_path):
    records = [example(image=picture(n), label=n) for n in range(3)]
    write(tmp_path / "b.tfrecord", records, kind)
    with pytest.raises(DatasetError, match=rf"b\.tfrecord: compressed \({kind}\).*decompress it"):
        opened(tmp_path)
    write(tmp_path / "a.tfrecord", records)
    with pytest.raises(DatasetError, match=rf"b\.tfrecord: compressed \({kind}\)"):
        opened(tmp_path)


def test_what_precedes_damage_is_kept_and_the_rest_is_told(tmp_path):
    records = [example(image=picture(n), label=n % 2) for n in range(6)]
    good = write(tmp_path / "good.tfrecord", records)
    cut = write(tmp_path / "cut.tfrecord", records)
    flipped = write(tmp_path / "flipped.tfrecord", records)
    whole = good.read_bytes()
    cut.write_bytes(whole[:-5])
    third = sum(len(record) + 16 for record in records[:3])
    flipped.write_bytes(whole[:third] + bytes([whole[third] ^ 1]) + whole[third + 1 :])
    (tmp_path / "empty.tfrecord").write_bytes(b"")

    dataset = opened(tmp_path, validation_fraction=0)

    assert len(dataset.train) == 6 + 5 + 3
    last = len(records[-1]) + 16
    assert any(
        f"cut.tfrecord: damaged or cut off: {last - 5:,} of" in note for note in dataset.notes
    )
    assert any(f"from byte {third:,} on, cannot be read" in note for note in dataset.notes)
    told = {fault.file for fault in verify_records(open_records(tmp_path), workers=1).faults}
    assert told == {"cut.tfrecord", "flipped.tfrecord"}


def test_a_length_larger_than_the_file_is_damage_and_no_allocation(tmp_path):
    record = example(image=picture(0), label=1)
    path = write(tmp_path / "a.tfrecord", [record])
    path.write_bytes(path.read_bytes() + framing.header(2**62) + b"rest")

    dataset = opened(tmp_path, validation_fraction=0)

    assert len(dataset.train) == 1
    assert any("16 of" in note and "cannot be read" in note for note in dataset.notes)


def test_a_file_that_is_no_tfrecord_is_an_error(tmp_path):
    (tmp_path / "a.tfrecord").write_bytes(b"just some words, long enough for a header")
    with pytest.raises(DatasetError, match="no record can be read"):
        opened(tmp_path)


def test_records_without_image_or_label_are_counted(tmp_path):
    records = [example(image=picture(n), label=n % 2) for n in range(4)]
    odd = [
        example(label=1),
        example(image=picture(9)),
        b"\x0a\xff\xff",
        example(image=b"", label=2),
    ]
    write(tmp_path / "a.tfrecord", records + odd)

    dataset = opened(tmp_path, validation_fraction=0)

    assert dataset.classes == ("0", "1", "2")
    assert len(dataset.train) == 5
    for words in ("1 records passed over: each has no image", "has no label", "no tf.train.Ex"):
        assert any(words in note for note in dataset.notes), words
    assert dataset.train.store.fault(4) == "empty"


def test_a_test_split_stands_in_for_a_missing_validation_split(tmp_path):
    records = [example(image=picture(n), label=n % 2) for n in range(4)]
    write(tmp_path / "flowers-train.tfrecord-00000-of-00001", records)
    write(tmp_path / "flowers-test.tfrecord-00000-of-00001", records[:2])
    assert len(opened(tmp_path).validation) == 2

    unlabelled = [example(image=picture(n), label=-1) for n in range(3)]
    write(tmp_path / "flowers-test.tfrecord-00000-of-00001", unlabelled)
    write(tmp_path / "validation/part-00000-of-00001", records[:1])

    dataset = opened(tmp_path)
    assert dataset.classes == ("0", "1")
    assert len(dataset.validation) == 1
    assert any("1 test files are not used" in note for note in dataset.notes)


def test_without_splits_a_part_is_held_out_and_classes_can_be_chosen(tmp_path):
    records = [example(image=picture(n), label=n % 3, text=b"abc"[n % 3 :][:1]) for n in range(60)]
    write(tmp_path / "some.tfrecords", records)

    dataset = opened(tmp_path, validation_fraction=0.3)
    few = opened(tmp_path, classes=["c", "a"], images_per_class=4, validation_fraction=0.3)

    assert 0 < len(dataset.validation) < 40
    assert len(dataset.train) + len(dataset.validation) == 60
    assert set(dataset.train.records).isdisjoint(dataset.validation.records)
    assert few.classes == ("c", "a")
    assert len(few.train) == 8
    assert set(few.train.records) <= set(dataset.train.records)
    with pytest.raises(DatasetError, match="no class 'd'"):
        opened(tmp_path, classes=["d"])


def test_the_scan_is_kept_until_a_file_changes(tmp_path, monkeypatch):
    path = write(tmp_path / "a.tfrecord", [example(image=picture(0), label=1)] * 3, age_s=9)
    before = opened(tmp_path)

    def no_scan(*_):
        raise AssertionError("scanned again")

    with monkeypatch.context() as patched:
        patched.setattr(foreign_index, "scan_files", no_scan)
        again = opened(tmp_path)
    assert again.train.paths == before.train.paths
    assert again.notes == before.notes

    write(path, [example(image=picture(0), label=1)] * 4, age_s=8)
    assert len(opened(tmp_path, validation_fraction=0).train) == 4
    # A kept scan that was damaged is made again.
    kept = tmp_path / ".timesink" / foreign_index.INDEX
    kept.write_bytes(kept.read_bytes()[:-1])
    assert len(opened(tmp_path, validation_fraction=0).train) == 4


def test_a_folder_that_cannot_be_written_is_read_all_the_same(tmp_path):
    write(tmp_path / "a.tfrecord", [example(image=picture(0), label=1)] * 3)
    (tmp_path / ".timesink").write_text("a file, so that no folder can be made")

    assert len(opened(tmp_path, validation_fraction=0).train) == 3


def test_every_record_is_verified_and_its_image_decoded(tmp_path):
    records = [example(image=picture(n), label=n % 2) for n in range(6)]
    cut = example(image=picture(1)[:-80], label=1)
    path = write(tmp_path / "a.tfrecord", [*records, cut], age_s=9)
    opened(tmp_path)
    content = bytearray(path.read_bytes())
    content[len(records[0]) + 16 + 400] ^= 1
    path.write_bytes(content)
    set_age(path, 9)

    faults = verify_records(open_records(tmp_path), workers=1).faults

    assert [(fault.record, fault.fault) for fault in faults] == [
        (1, "checksum does not match"),
        (6, "truncated"),
    ]


def test_no_damage_is_more_than_an_error_in_one_line(tmp_path):
    records = [example(image=picture(n), label=n % 2, text=b"ab"[n % 2 :][:1]) for n in range(4)]
    path = write(tmp_path / "a.tfrecord", records)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        for place in random.integers(12, 12 + len(records[0]), random.integers(1, 4)).tolist():
            # Where the keys and lengths are, more often than in the image.
            content[place if random.random() < 0.3 else 12 + place % 60] = int(random.integers(256))
        path.write_bytes(content)

        try:
            store = opened(tmp_path, validation_fraction=0).train.store
        except DatasetError as error:
            assert "\n" not in str(error)
            refused += 1
            continue
        ends = store.chunk_offset[store.record_chunk] + store.image_offset + store.image_bytes
        assert (ends <= len(whole)).all()
        assert store.fault(0) in (None, "checksum does not match")
    assert refused < 100  # the records behind the damaged one tell what is what


def test_examples_of_any_shape_give_back_what_was_written():
    values = st.one_of(
        st.binary(max_size=40), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5)
    )

    @given(st.dictionaries(st.text(max_size=8), values, max_size=6))
    def check(features):
        message = tf.train.Example(
            features=tf.train.Features(feature={k: feature(v) for k, v in features.items()})
        )
        content = message.SerializeToString()
        found = examples.find_features(content, 0, len(content)).features
        assert set(found) == {key.encode() for key in features}
        for key, value in features.items():
            at = found[key.encode()]
            if isinstance(value, bytes):
                ((start, length),) = examples.byte_values(content, at)
                assert content[start : start + length] == value
            else:
                assert examples.int_values(content, at, most=10) == value

    check()


def test_integers_that_are_not_packed_are_read_too():
    unpacked = struct.pack("4B", 1 << 3, 5, 1 << 3, 6)
    at = examples.Feature(examples.INTS, 0, len(unpacked))
    assert examples.int_values(unpacked, at, most=5) == [5, 6]
