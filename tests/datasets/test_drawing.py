import io

import numpy as np
import pytest
from PIL import Image

from timesink.datasets.drawing import MAX_CLASSES, class_look, draw_jpeg, image_size


def draw_many(mean_bytes: int, count: int, seed: int = 0) -> list[bytes]:
    return [draw_jpeg(seed, "train", i % 10, i // 10, mean_bytes) for i in range(count)]


def test_an_image_is_the_same_bytes_each_time_and_its_own():
    assert draw_jpeg(1, "train", 2, 3, 50_000) == draw_jpeg(1, "train", 2, 3, 50_000)
    images = {
        draw_jpeg(seed, split, label, index, 50_000)
        for seed, split, label, index in [
            (1, "train", 2, 3),
            (2, "train", 2, 3),
            (1, "val", 2, 3),
            (1, "train", 3, 3),
            (1, "train", 2, 4),
        ]
    }
    assert len(images) == 5


@pytest.mark.parametrize("seed", [0, 1, 99])
def test_all_classes_of_a_seed_look_different(seed):
    assert len({class_look(seed, label) for label in range(MAX_CLASSES)}) == MAX_CLASSES


def test_classes_do_not_depend_on_how_many_there_are_but_on_the_seed():
    assert {class_look(seed, 0) for seed in range(20)} != {class_look(0, 0)}


@pytest.mark.parametrize("seed", range(5))
def test_sizes_spread_as_imagenets_do(seed):
    sizes = np.array([image_size(seed, "train", c, i) for c in range(10) for i in range(30)])
    width, height = sizes.T

    assert width.mean() == pytest.approx(400, rel=0.08)
    assert height.mean() == pytest.approx(350, rel=0.08)
    assert sizes.min() >= 100
    assert sizes.max() <= 640
    assert 0.5 < (width > height).mean() < 0.8
    assert 0.15 < (width < height).mean() < 0.45
    assert len(np.unique(sizes, axis=0)) > 50


@pytest.mark.parametrize(
    ("mean_bytes", "count"), [(110_000, 150), (50_000, 80), (15_000, 80), (300_000, 80)]
)
def test_files_have_the_mean_asked_for_and_a_wide_spread(mean_bytes, count):
    images = draw_many(mean_bytes, count)
    sizes = np.array([len(image) for image in images])
    areas = np.array([np.prod(Image.open(io.BytesIO(image)).size) for image in images])

    assert sizes.mean() == pytest.approx(mean_bytes, rel=0.1)
    assert np.percentile(sizes, 90) > 2 * np.percentile(sizes, 10)
    assert np.corrcoef(sizes, areas)[0, 1] > 0.5


def test_images_are_colour_jpegs_that_use_the_range():
    for encoded in draw_many(110_000, 5):
        image = Image.open(io.BytesIO(encoded))
        assert (image.format, image.mode) == ("JPEG", "RGB")
        assert 20 < np.asarray(image).std() < 120
