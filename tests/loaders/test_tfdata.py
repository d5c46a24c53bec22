"""Batches: the same whatever the workers, resumable anywhere, random only where asked."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from timesink.datasets.images import ImageSet
from timesink.errors import OutOfMemoryError
from timesink.experiment import PipelineSection
from timesink.loaders.tfdata import Batches, training_batches, validation_batches
from timesink.loaders.tfread import Span
from timesink.pipelines.order import Stream, interleave, training_stream
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


MODES = ("pipelined", "by_batch", "whole_dataset")


def stream_for(images, pipeline, batch_size=6):
    return training_stream(images, seed=0, batch_size=batch_size, shuffle=pipeline.shuffle)


def taken(images, *, stages="plain", first=0, last_epoch=1, **options):
    pipeline = PipelineSection(image_size=SIZE, **options)
    return training_batches(
        images,
        parse_stages(stages),
        pipeline,
        stream_for(images, pipeline),
        first_position=first,
        last_epoch=last_epoch,
    )


def copies(images, place):
    paths = []
    for path in images.paths:
        paths.append(str(shutil.copy(path, place)))
    return ImageSet(tuple(paths), images.labels)


@pytest.mark.parametrize("mode", MODES)
def test_a_mode_changes_when_batches_are_made_and_not_what_is_in_them(images, mode):
    pipelined, other = (batches(images, stages="seed000", mode=m) for m in ("pipelined", mode))
    for a, b in zip(pipelined, other, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_by_batch_reads_nothing_before_it_is_asked_for(images, tmp_path):
    mine = copies(images, tmp_path)
    made = taken(mine, mode="by_batch", shuffle=False)
    assert next(made)[2].numpy().tolist() == [0, 1, 2, 3, 4, 5]
    Path(mine.paths[7]).unlink()
    assert next(made)[2].numpy().tolist() == [6, 8, 9, 10, 11, 12]


def test_whole_dataset_reads_all_before_the_first_batch(images, tmp_path):
    mine = copies(images, tmp_path)
    made = taken(mine, mode="whole_dataset", shuffle=False)
    first = next(made)
    for path in mine.paths:
        Path(path).unlink()
    seen = np.concatenate([batch[2].numpy() for batch in (first, *made)])
    assert seen.tolist() == list(range(18))


def test_whole_dataset_is_refused_where_memory_does_not_hold_it(images):
    many = ImageSet(images.paths * 200_000, images.labels * 200_000)
    pipeline = PipelineSection(image_size=2048, mode="whole_dataset")
    with pytest.raises(OutOfMemoryError, match=r"needs .* GiB"):
        training_batches(
            many,
            parse_stages("plain"),
            pipeline,
            stream_for(many, pipeline),
            first_position=0,
            last_epoch=1,
        )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("deterministic", [True, False])
def test_every_whole_image_comes_once_in_every_mode(images, tmp_path, mode, deterministic):
    mine = copies(images, tmp_path)
    Path(mine.paths[9]).write_bytes(b"no image at all")
    made = taken(mine, mode=mode, deterministic=deterministic, shuffle=False, last_epoch=2)
    seen = [p for batch in made for p in batch[2].numpy().tolist()]
    # 36 positions in two epochs, two of them broken; the last batch is not full and is dropped.
    assert len(seen) == len(set(seen)) == 30
    assert not {9, 27} & set(seen)
    assert made.careful


def test_a_vanished_file_is_left_out_alone(images, tmp_path):
    mine = copies(images, tmp_path)
    Path(mine.paths[4]).unlink()
    seen = [p for batch in taken(mine, shuffle=False) for p in batch[2].numpy().tolist()]
    assert seen == [p for p in range(18) if p != 4][:12]


def test_a_buffer_moves_an_image_no_further_forward_than_its_size(images):
    order = np.concatenate([b[1].numpy() for b in taken(images, shuffle=4)])
    assert order.tolist() != sorted(order.tolist())
    assert all(image - place < 4 for place, image in enumerate(order.tolist()))


def test_synthetic_images_need_no_file_and_are_always_the_same(images):
    nowhere = ImageSet(tuple("nowhere" for _ in images.paths), images.labels)
    (a, labels, first), (b, _, second), (c, _, _) = taken(nowhere, source="synthetic")
    assert a.shape == (6, SIZE, SIZE, 3)
    assert np.array_equal(a, b)
    assert np.array_equal(a, c)
    assert first.numpy().tolist() + second.numpy().tolist() == list(range(12))
    assert labels.numpy().tolist() == [0, 1, 2, 3, 4, 5]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=9), st.integers(1, 5))
def test_chunks_are_interleaved_as_tf_data_does_it(sizes, cycle):
    numbers = iter(range(sum(sizes)))
    parts = [[next(numbers) for _ in range(size)] for size in sizes]
    interleaved = tf.data.Dataset.from_tensor_slices(tf.ragged.constant(parts)).interleave(
        tf.data.Dataset.from_tensor_slices, cycle_length=cycle, block_length=1
    )
    assert [int(each) for each in interleaved] == interleave(parts, cycle)


def test_what_came_out_of_order_before_a_failure_does_not_come_again():
    asked = []

    def make(span):
        asked.append(span)
        whole = [[0, 1], [4, 5], [2, 3]] if not span.careful else [[2, 3], [6, 7]]
        positions = tf.data.Dataset.from_tensor_slices(tf.constant(whole, tf.int64))
        fails = tf.constant(-1 if span.careful else 2, tf.int64)

        def batch(position):
            checked = tf.debugging.assert_none_equal(position[0], fails)
            with tf.control_dependencies([checked]):
                return position, position, tf.identity(position)

        return positions.map(batch)

    made = Batches(make, Span(0, 1, careful=False), deterministic=False)
    came = [batch[2].numpy().tolist() for batch in made]
    assert came == [[0, 1], [4, 5], [2, 3], [6, 7]]
    assert (asked[1].first_position, asked[1].delivered) == (2, frozenset({4, 5}))
    assert made.in_order
