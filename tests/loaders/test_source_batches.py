"""Every source gives the images that the files give: bit for bit, or within one level."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from click.testing import CliRunner
from PIL import Image

from timesink.cli import cli
from timesink.experiment import Experiment, parse
from timesink.loaders.tfdata import training_batches, validation_batches
from timesink.pipelines.order import training_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages

SIZE, EACH = 24, 15


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    """Two classes of noisy pictures of many sizes, and every kind of store made of them."""
    root = tmp_path_factory.mktemp("photos") / "photos"
    draw = np.random.default_rng(1)
    for label in ("cat", "dog"):
        for number in range(EACH):
            width, height = (int(side) for side in draw.integers(20, 90, 2))
            small = draw.integers(0, 256, (5, 5, 3), np.uint8)
            picture = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
            kind = ("JPEG", "PNG", "BMP")[number % 3]
            (root / label).mkdir(parents=True, exist_ok=True)
            picture.save(root / label / f"{number:02d}.{kind.lower()}", kind)
    for arguments in (
        ["--to", "tfrecord", "--per-file", "4"],
        ["--to", "materialized", "--size", str(SIZE), "--per-file", "7"],
        ["--to", "materialized", "--size", str(SIZE), "--stored", "float32"],
    ):
        convert(root, *arguments)
    return root


def convert(root, *arguments) -> None:
    done = CliRunner().invoke(cli, ["dataset", "convert", str(root), *arguments])
    assert done.exit_code == 0, done.output


def asked(root, source, **pipeline) -> Experiment:
    values = {
        "dataset": {"path": str(root), "validation_fraction": 0.0},
        "pipeline": {"source": source, "image_size": SIZE, **pipeline},
        "training": {"batch_size": 5},
    }
    return parse(values, "test")


def batches(experiment, *, first=0, last_epoch=2):
    images = open_images(experiment).train
    stream = training_stream(
        images,
        seed=experiment.seed,
        batch_size=experiment.training.batch_size,
        shuffle=experiment.pipeline.shuffle,
    )
    return images, training_batches(
        images,
        parse_stages(experiment.pipeline.stages),
        experiment.pipeline,
        stream,
        first_position=first,
        last_epoch=last_epoch,
    )


def epochs(experiment, **options) -> dict[tuple[int, str], tuple[np.ndarray, int]]:
    """Give what came: (epoch, name of the file) → its pixels and label."""
    images, made = batches(experiment, **options)
    stream = training_stream(images, seed=0, batch_size=5, shuffle=experiment.pipeline.shuffle)
    came = {}
    for tensors, labels, positions in made:
        for image, label, position in zip(
            tensors.numpy(), labels.numpy().tolist(), positions.numpy().tolist(), strict=True
        ):
            name = Path(images.paths[stream.image_at(position)])
            key = (stream.epoch_of(position), f"{name.parent.name}/{name.name}")
            assert key not in came
            came[key] = image, label
    return came


@pytest.mark.parametrize("stages", ["plain", "basic"])
def test_tfrecords_give_the_pixels_of_the_files_with_the_same_draws(photos, stages):
    raw, records = (epochs(asked(photos, s, stages=stages)) for s in ("raw", "tfrecord"))
    assert len(raw) == len(records) == 2 * 2 * EACH
    for key, (image, label) in raw.items():
        assert np.array_equal(records[key][0], image)
        assert records[key][1] == label


def test_float32_arrays_give_the_pixels_of_the_files_and_new_draws_each_epoch(photos):
    raw = epochs(asked(photos, "raw", stages="plain"))
    stored = epochs(asked(photos, "materialized", stages="plain", stored="float32"))
    assert raw.keys() == stored.keys()
    assert all(np.array_equal(stored[key][0], image) for key, (image, _) in raw.items())
    drawn = epochs(asked(photos, "materialized", stages="seed000", stored="float32"))
    first = drawn[0, "cat/00.jpeg"][0]
    assert not np.array_equal(first, drawn[1, "cat/00.jpeg"][0])


def test_uint8_arrays_are_within_one_level(photos):
    raw = epochs(asked(photos, "raw", stages="plain"))
    stored = epochs(asked(photos, "materialized", stages="plain"))
    assert raw.keys() == stored.keys()
    furthest = max(np.abs(stored[key][0] - image).max() for key, (image, _) in raw.items())
    assert 0 < furthest <= 1 / 255


SOURCES = ("tfrecord", "materialized")


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("mode", ["by_batch", "whole_dataset"])
def test_modes_give_the_same_batches(photos, source, mode):
    pipelined, other = (
        [
            tuple(part.numpy() for part in batch)
            for batch in batches(asked(photos, source, mode=m))[1]
        ]
        for m in ("pipelined", mode)
    )
    for a, b in zip(pipelined, other, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("first", [5, 20, 30, 55])
@pytest.mark.parametrize("shuffle", [True, False, 6])
def test_a_stream_goes_on_from_any_batch(photos, source, first, shuffle):
    experiment = asked(photos, source, shuffle=shuffle)
    whole = [tuple(part.numpy() for part in batch) for batch in batches(experiment)[1]]
    rest = [tuple(part.numpy() for part in batch) for batch in batches(experiment, first=first)[1]]
    for a, b in zip(whole[first // 5 :], rest, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.fixture
def damaged(photos, tmp_path):
    """Give a copy whose stores may be spoilt."""
    import shutil

    return Path(shutil.copytree(photos, tmp_path / "photos"))


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("source", SOURCES)
def test_one_flipped_bit_costs_one_image_and_never_gives_wrong_pixels(damaged, source):
    whole = epochs(asked(damaged, source, stages="plain"), last_epoch=1)
    shard = next(iter(sorted((damaged / ".timesink" / source).rglob("train-00001*"))))
    flip(shard, shard.stat().st_size - 2000)
    seen = epochs(asked(damaged, source, stages="plain"), last_epoch=1)
    # The last batch is not full without it, and is dropped.
    assert len(seen) == 2 * EACH - 5
    assert all(np.array_equal(image, whole[key][0]) for key, (image, _) in seen.items())
    images, made = batches(asked(damaged, source, stages="plain"), last_epoch=1)
    came = {position for _, _, positions in made for position in positions.numpy().tolist()}
    stream = training_stream(images, seed=0, batch_size=5, shuffle=True)
    faults = [images.store.fault(record) for record in images.records]
    bad = [index for index, fault in enumerate(faults) if fault]
    assert len(bad) == 1
    assert made.careful
    assert all(stream.image_at(position) != bad[0] for position in came)


@pytest.mark.parametrize("source", SOURCES)
def test_a_vanished_shard_costs_its_own_images_only(damaged, source):
    shard = next(iter(sorted((damaged / ".timesink" / source).rglob("train-00001*"))))
    experiment = asked(damaged, source, stages="plain", shuffle=False)
    images, _ = batches(experiment)
    shard.unlink()
    gone = sum(fault is not None for fault in map(images.store.fault, images.records))
    assert gone in (4, 7)
    seen = epochs(experiment, last_epoch=1)
    assert len(seen) == (2 * EACH - gone) // 5 * 5


@pytest.mark.parametrize("source", SOURCES)
def test_classes_and_caps_choose_the_images_they_choose_of_files(photos, source):
    def chosen(name):
        values = {
            "dataset": {"path": str(photos), "classes": ["dog"], "images_per_class": 7},
            "pipeline": {"source": name, "image_size": SIZE},
        }
        dataset = open_images(parse(values, "test"))
        return [
            ({Path(path).name for path in images.paths}, set(images.labels))
            for images in (dataset.train, dataset.validation)
        ]

    assert chosen(source) == chosen("raw")


@pytest.mark.parametrize("source", SOURCES)
def test_validation_has_every_image_once(photos, source):
    experiment = asked(photos, source)
    images = open_images(experiment).train
    stages = parse_stages("seed000")
    made = validation_batches(images, stages, experiment.pipeline, batch_size=7)
    labels = [batch[1].numpy().tolist() for batch in made]
    assert [len(each) for each in labels] == [7, 7, 7, 7, 2]
    assert sum(map(sum, labels)) == EACH


def test_records_written_by_tensorflow_are_read(photos, tmp_path):
    raw = epochs(asked(photos, "raw", stages="plain", shuffle=False), last_epoch=1)
    files = sorted(photos.glob("[cd]*/*"))
    for number, part in enumerate((files[:12], files[12:])):
        with tf.io.TFRecordWriter(str(tmp_path / f"train-{number:05d}-of-00002")) as writer:
            for file in part:
                features = {
                    "label": tf.train.Feature(
                        int64_list=tf.train.Int64List(value=[1 + (file.parent.name == "dog")])
                    ),
                    "image_raw": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[file.read_bytes()])
                    ),
                }
                example = tf.train.Example(features=tf.train.Features(feature=features))
                writer.write(example.SerializeToString())
    experiment = asked(tmp_path, "tfrecord", stages="plain", shuffle=False)
    assert open_images(experiment).classes == ("1", "2")
    came = [
        (image, label)
        for tensors, labels, _ in batches(experiment, last_epoch=1)[1]
        for image, label in zip(tensors.numpy(), labels.numpy().tolist(), strict=True)
    ]
    assert len(came) == 2 * EACH
    for file, (image, label) in zip(files, came, strict=True):
        expected, as_file = raw[0, f"{file.parent.name}/{file.name}"]
        assert np.array_equal(image, expected)
        assert label == as_file
