"""Batches: the same whatever the workers, resumable anywhere, random only where asked."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from timesink.datasets.folder import ImageSet
from timesink.experiment import PipelineSection
from timesink.loaders.tfdata import training_batches, validation_batches
from timesink.pipelines.order import Stream
from timesink.pipelines.stages import parse_stages

SIZE = 16


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Twenty grey images: number i has the level 10·i."""
    root = tmp_path_factory.mktemp("images")
    for number in range(20):
        level = np.full((30, 24, 3), 10 * number, np.uint8)
        Image.fromarray(level).save(root / f"{number:02d}.png")
    return ImageSet(
        paths=tuple(str(root / f"{number:02d}.png") for number in range(20)),
        labels=tuple(range(20)),
    )


def batches(images, *, stages="plain", workers=2, seed=0, first=0, last_epoch=2, **options):
    pipeline = PipelineSection(image_size=SIZE, workers=workers, **options)
    stream = Stream(seed, len(images), 6, pipeline.shuffle)
    dataset = training_batches(
        images,
        parse_stages(stages),
        pipeline,
        stream,
        first_position=first,
        last_epoch=last_epoch,
    )
    return [tuple(part.numpy() for part in batch) for batch in dataset]


def test_an_image_comes_with_its_own_label_and_position(images):
    for tensors, labels, _ in batches(images):
        levels = np.rint(tensors.mean(axis=(1, 2, 3)) * 25.5).astype(int)
        assert levels.tolist() == labels.tolist()
    positions = np.concatenate([part[2] for part in batches(images)])
    assert positions.tolist() == list(range(36))


def test_batches_do_not_depend_on_the_number_of_workers(images):
    one, four = (batches(images, stages="seed000", workers=w) for w in (1, 4))
    for a, b in zip(one, four, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("first", [6, 12, 18, 7, 17, 30])
def test_the_stream_goes_on_from_any_position(images, first):
    whole = batches(images, stages="seed000")
    rest = batches(images, stages="seed000", first=first)
    flat = [np.concatenate([batch[k] for batch in whole])[first:] for k in range(3)]
    for k in range(3):
        again = np.concatenate([batch[k] for batch in rest])
        assert np.array_equal(again, flat[k][: len(again)])


def test_random_stages_draw_anew_each_epoch_and_for_each_image(images):
    levels: dict[int, list[float]] = {}
    for tensors, labels, _ in batches(images, stages="seed000", last_epoch=6):
        for tensor, label in zip(tensors, labels.tolist(), strict=True):
            if 5 <= label <= 18:  # away from where clipping hides the draw
                levels.setdefault(label, []).append(float(tensor.mean()) - label / 25.5)
    shifts = [shift for drawn in levels.values() for shift in drawn]
    assert len({round(shift, 6) for shift in shifts}) == len(shifts)
    assert max(abs(shift) for shift in shifts) <= 32 / 255 + 1e-3


def levels(images, **options):
    (tensors, *_), *_ = batches(images, shuffle=False, last_epoch=1, **options)
    return tensors.mean(axis=(1, 2, 3))


def test_another_seed_draws_otherwise(images):
    stages = ["decode", "convert", "resize", "random_brightness"]
    assert not np.allclose(levels(images, stages=stages), levels(images, stages=stages, seed=1))


def test_two_stages_of_one_kind_draw_each_for_itself(images):
    plain = levels(images)
    once = levels(images, stages=["decode", "convert", "resize", "random_brightness"])
    twice = levels(
        images, stages=["decode", "convert", "resize", "random_brightness", "random_brightness"]
    )
    assert not np.allclose(twice - plain, 2 * (once - plain), atol=1e-4)


def test_without_shuffle_the_order_is_the_lists(images):
    labels = np.concatenate([batch[1] for batch in batches(images, shuffle=False, last_epoch=1)])
    assert labels.tolist() == list(range(18))


def test_validation_gives_every_image_once(images):
    pipeline = PipelineSection(image_size=SIZE)
    dataset = validation_batches(images, parse_stages("plain"), pipeline, batch_size=6)
    labels = [batch[1].numpy().tolist() for batch in dataset]
    assert [len(batch) for batch in labels] == [6, 6, 6, 2]
    assert [label for batch in labels for label in batch] == list(range(20))


@pytest.mark.parametrize("content", [b"", b"\xff\xd8\xff\xe0 not really"], ids=["empty", "broken"])
def test_a_broken_image_leaves_a_gap_and_nothing_else(images, tmp_path, content):
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(content)
    spoiled = ImageSet((*images.paths[:7], str(broken), *images.paths[8:]), images.labels)
    seen = np.concatenate([batch[2] for batch in batches(spoiled, shuffle=False, last_epoch=1)])
    assert seen.tolist() == [p for p in range(18) if p != 7][: len(seen)]


def test_formats_are_told_by_content(tmp_path):
    picture = Image.fromarray(np.full((20, 20, 3), 100, np.uint8))
    kinds = {"a.jpg": "JPEG", "b.png": "PNG", "c.bmp": "BMP", "d.gif": "GIF", "e.jpg": "PNG"}
    for name, kind in kinds.items():
        picture.save(tmp_path / name, kind)
    picture.convert("L").save(tmp_path / "f.jpg", "JPEG")
    picture.convert("CMYK").save(tmp_path / "g.jpg", "JPEG")
    paths = tuple(str(tmp_path / name) for name in [*kinds, "f.jpg", "g.jpg"])
    dataset = validation_batches(
        ImageSet(paths, tuple(range(7))),
        parse_stages("plain"),
        PipelineSection(image_size=SIZE),
        batch_size=7,
    )
    tensors, labels, _ = next(iter(dataset))
    assert labels.numpy().tolist() == list(range(7))
    assert tf.reduce_max(tf.abs(tensors - 100 / 255)) < 0.02
