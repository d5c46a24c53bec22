"""Arrays read by memory map: equal to what was rendered, or an error that names the place."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tests.datasets.photos import STAGES, make_photos, render, rendered
from timesink.datasets import materialized
from timesink.datasets.converting import convert
from timesink.datasets.sources import open_source
from timesink.datasets.stores.plan import make_plan
from timesink.errors import DatasetError
from timesink.experiment import DatasetSection
from timesink.pipelines.stages import parse_stages, split_for_store


def opened(photos, *, dtype="uint8", per_file=5):
    plan = make_plan(photos, "materialized", rendered(dtype), out=None, per_file=per_file)
    convert(plan, render=lambda paths: render(paths, dtype=dtype))
    section = DatasetSection(path=str(photos))
    return open_source(section, "materialized", stages=STAGES, image_size=8, stored=dtype)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture
def photos(tmp_path):
    return make_photos(tmp_path / "photos")


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_images_come_back_bit_for_bit(dtype, photos):
    dataset = opened(photos, dtype=dtype)

    for images in (dataset.train, dataset.validation):
        expected = np.concatenate([batch for _, batch in render(images.paths, dtype=dtype)])
        stored = np.stack([images.store.read(record) for record in images.records])
        assert stored.dtype == dtype
        assert np.array_equal(stored, expected)
        assert [images.store.fault(record) for record in images.records] == [None] * len(images)


def test_numpy_opens_the_shards(photos):
    store = opened(photos).train.store

    first = np.load(store.files[0], mmap_mode="r", allow_pickle=False)

    assert first.shape == (5, 8, 8, 3)
    assert np.array_equal(first[2], store.read(2))


def test_a_flipped_bit_is_an_error_that_names_shard_and_record(photos):
    store = opened(photos).train.store
    record = 7
    with Path(store.files[1]).open("r+b") as file:
        file.seek(int(store.record_offset[record]) + 11)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))

    with pytest.raises(DatasetError, match=r"train-00001-of-00004\.npy, record 2: checksum does"):
        store.read(record)
    assert store.fault(record) == "checksum does not match"
    assert store.fault(record - 1) is None


def test_a_file_cut_off_while_it_is_mapped_does_not_end_the_process(photos):
    store = opened(photos).train.store
    assert store.fault(4) is None
    os.truncate(store.files[0], Path(store.files[0]).stat().st_size - 1)

    assert store.fault(4) == "truncated"
    with pytest.raises(DatasetError, match="record 4: truncated"):
        store.read(4)
    os.truncate(store.files[1], 0)
    assert store.fault(5) == "truncated"


def test_a_vanished_file_is_missing_once_it_is_no_longer_mapped(photos):
    store = opened(photos).train.store
    image = store.read(0)
    kept = image.copy()
    Path(store.files[0]).unlink()

    assert store.fault(1) is None
    store.unmap()
    assert store.fault(1) == "missing"
    assert np.array_equal(image, kept)


def test_no_descriptor_is_left_after_unmapping(photos):
    store = opened(photos).train.store
    before = open_descriptors()
    for record in range(18):
        store.read(record)
    assert open_descriptors() > before

    store.unmap()

    assert open_descriptors() == before


def test_many_threads_and_few_maps_give_the_right_images(photos, monkeypatch):
    monkeypatch.setattr(materialized, "MOST_MAPPED", 1)
    store = opened(photos, per_file=1).train.store
    expected = [store.read(record).copy() for record in range(18)]
    order = np.random.default_rng(0).integers(0, 18, 2000).tolist()

    with ThreadPoolExecutor(8) as threads:
        read = list(threads.map(lambda r: np.array_equal(store.read(r), expected[r]), order))

    assert all(read)
    assert len(store._maps) == 1


def test_the_default_stages_are_those_of_the_default_preset():
    prefix, _ = split_for_store(parse_stages("seed000"), "uint8")
    assert tuple(map(str, prefix)) == materialized.DEFAULT_STAGES
