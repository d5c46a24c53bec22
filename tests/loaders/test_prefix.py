"""Stored images are those that the pipeline makes of the files: bit for bit, or within a level."""

import numpy as np
import pytest
import tensorflow as tf
from tests.pictures import encoded, write

from timesink.loaders.prefix import render
from timesink.loaders.tfstages import apply_stages
from timesink.pipelines.stages import parse_stages, split_for_store


@pytest.fixture
def paths(tmp_path):
    kinds = [
        ("JPEG", {}),
        ("JPEG", {"mode": "L"}),
        ("JPEG", {"mode": "CMYK"}),
        ("PNG", {"size": (1, 1)}),
        ("PNG", {"mode": "RGBA"}),
        ("GIF", {"mode": "P"}),
        ("BMP", {"size": (37, 91)}),
        ("JPEG", {"size": (300, 20)}),
    ]
    return [
        str(write(tmp_path / f"{number}.jpg", encoded(kind, **options)))
        for number, (kind, options) in enumerate(kinds)
    ]


def prefix_of(stages, stored):
    return split_for_store(parse_stages(stages), stored)[0]


def one_by_one(paths, stages, size):
    return np.stack([apply_stages(stages, tf.io.read_file(p), None, size).numpy() for p in paths])


def rendered(paths, stages, size, stored):
    batches = list(render(paths, stages, size, stored, workers=2))
    return np.concatenate([b[0] for b in batches]), np.concatenate([b[1] for b in batches])


@pytest.mark.parametrize(
    "stages",
    [
        "seed000",
        ["decode", "resize(bicubic)", "convert", "normalise"],
        ["decode", "convert", "resize(nearest)", "standardise", "random_flip"],
    ],
)
def test_float32_equals_the_pipeline_bit_for_bit(stages, paths):
    prefix = prefix_of(stages, "float32")

    order, images = rendered(paths, prefix, 24, "float32")

    assert order.tolist() == list(range(8))
    assert images.dtype == np.float32
    assert np.array_equal(images, one_by_one(paths, prefix, 24))


def test_uint8_is_the_nearest_level(paths):
    prefix = prefix_of("seed000", "uint8")

    _, images = rendered(paths, prefix, 24, "uint8")

    exact = one_by_one(paths, prefix, 24)
    assert images.dtype == np.uint8
    assert np.abs(images / 255 - exact).max() <= (0.5 + 1e-4) / 255


def test_what_is_stored_may_be_larger_than_what_the_network_is_fed(paths):
    stages = ["decode", "convert", "resize(32)", "random_crop"]

    _, images = rendered(paths, prefix_of(stages, "uint8"), 24, "uint8")

    assert images.shape == (8, 32, 32, 3)


def test_files_that_fail_are_gaps_in_the_numbers(paths, tmp_path):
    bad = [
        str(write(tmp_path / "empty.jpg", b"")),
        str(write(tmp_path / "words.jpg", b"no image at all")),
        str(write(tmp_path / "cut.jpg", encoded("JPEG", size=(200, 200))[:3000])),
        str(tmp_path / "nowhere.jpg"),
    ]
    mixed = [bad[0], *paths[:3], bad[1], bad[2], *paths[3:], bad[3]]
    prefix = prefix_of("seed000", "uint8")

    order, images = rendered(mixed, prefix, 24, "uint8")

    assert [mixed[number] for number in order] == paths
    assert np.array_equal(images, rendered(paths, prefix, 24, "uint8")[1])
    assert list(render(bad, prefix, 24, "uint8")) == []
