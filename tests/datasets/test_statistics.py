from itertools import pairwise

import numpy as np
import pytest

from tests.pictures import encoded, write
from timesink.datasets.folder import open_dataset
from timesink.datasets.statistics import (
    ClassCount,
    count_classes,
    histogram,
    measure,
    orientation_shares,
    spread,
)


def test_headers_give_sizes_bytes_formats_and_what_is_unreadable(tmp_path):
    wide = write(tmp_path / "train/a/1.jpg", encoded("JPEG", size=(60, 30)))
    write(tmp_path / "train/b/1.png", encoded("PNG", size=(20, 40), mode="L"))
    write(tmp_path / "val/b/1.gif", encoded("GIF", size=(50, 50)))
    broken = write(tmp_path / "val/b/2.jpg", b"no")
    done: list[int] = []

    dataset = open_dataset(tmp_path)
    measured = measure(dataset, advance=done.append)

    assert sorted(measured.width.tolist()) == [20, 50, 60]
    assert sorted(measured.height.tolist()) == [30, 40, 50]
    assert wide.stat().st_size in measured.file_bytes
    assert measured.formats == {"JPEG": 1, "PNG": 1, "GIF": 1}
    assert measured.modes["L"] == 1
    assert measured.unreadable == (str(broken),)
    assert sum(done) == 4
    assert orientation_shares(measured) == pytest.approx(
        {"landscape": 1 / 3, "portrait": 1 / 3, "square": 1 / 3}
    )
    assert count_classes(dataset) == [ClassCount("a", 1, 0), ClassCount("b", 1, 2)]


def test_an_image_cut_short_still_has_its_header(tmp_path):
    content = encoded("JPEG", size=(60, 30))
    write(tmp_path / "a/1.jpg", content[: len(content) // 2])

    assert measure(open_dataset(tmp_path, validation_fraction=0)).width.tolist() == [60]


def test_a_spread_summarises():
    s = spread(np.array([1, 2, 3, 4, 100]))
    assert (s.mean, s.median, s.min, s.max, s.total) == (22, 3, 1, 100, 110)


@pytest.mark.parametrize(
    "values",
    [
        [5],
        [5, 5, 5],
        [0, 1],
        list(range(1000)),
        [10, 20, 1_000_000],
        [0] * 99 + [7],
        [1_000_000] * 3,
    ],
)
def test_a_histogram_counts_every_value_once_in_few_bins(values):
    bins = histogram(np.array(values))

    assert sum(b.count for b in bins) == len(values)
    assert 1 <= len(bins) <= 18
    assert all(one.high == other.low for one, other in pairwise(bins))
    for b in bins:
        assert sum(b.low <= v < b.high for v in values) == b.count


def test_a_far_value_does_not_flatten_a_histogram():
    bins = histogram(np.array([*range(1000), 10_000_000]))
    assert len(bins) > 5
