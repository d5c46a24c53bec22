"""Augmented batches: anew each epoch, never twice the same, whatever the number of workers."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from tests.pictures import encoded, write

from timesink.cli import cli
from timesink.experiment import parse
from timesink.loaders.tfdata import training_batches, validation_batches
from timesink.pipelines.order import training_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages

COPIES, SIZE, BATCH = 24, 24, 6
ALL = "basic+randaugment(2)+random_erasing+cutmix"


@pytest.fixture(scope="module")
def copies(tmp_path_factory) -> Path:
    """One picture, many times."""
    root = tmp_path_factory.mktemp("copies") / "copies"
    first = write(root / "one" / "00.jpg", encoded(size=(80, 60)))
    for number in range(1, COPIES):
        shutil.copy(first, first.with_name(f"{number:02d}.jpg"))
    return root


def asked(root, *, source="raw", **pipeline):
    values = {
        "dataset": {"path": str(root), "validation_fraction": 0.0},
        "pipeline": {"source": source, "image_size": SIZE, **pipeline},
        "training": {"batch_size": BATCH},
    }
    return parse(values, "test")


def batches(root, *, first=0, epochs=2, seed=0, **pipeline):
    experiment = asked(root, **pipeline)
    images = open_images(experiment).train
    stream = training_stream(
        images, seed=seed, batch_size=BATCH, shuffle=experiment.pipeline.shuffle
    )
    made = training_batches(
        images,
        parse_stages(experiment.pipeline.stages),
        experiment.pipeline,
        stream,
        first_position=first,
        last_epoch=epochs,
    )
    return [tuple(tensor.numpy() for tensor in batch) for batch in made]


def same(some, others):
    return len(some) == len(others) and all(
        np.array_equal(a, b)
        for one, other in zip(some, others, strict=True)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize(
    "pipeline", [{"workers": 4}, {"mode": "by_batch"}, {"mode": "whole_dataset", "workers": 3}]
)
def test_batches_do_not_depend_on_how_they_are_made(copies, pipeline):
    assert same(batches(copies, stages=ALL, workers=1), batches(copies, stages=ALL, **pipeline))


@pytest.mark.parametrize("stages", ["basic", "basic+randaugment(2)", "basic+augmix"])
def test_no_two_copies_of_a_picture_are_augmented_alike(copies, stages):
    images = np.concatenate([batch[0] for batch in batches(copies, stages=stages, workers=4)])
    assert len(images) == 2 * COPIES
    assert len({image.tobytes() for image in images}) == 2 * COPIES


def test_another_seed_draws_otherwise(copies):
    assert not same(batches(copies, stages=ALL, seed=1), batches(copies, stages=ALL))


def test_a_stream_that_goes_on_in_the_middle_gives_the_same_batches(copies):
    whole = batches(copies, stages=ALL)
    assert same(batches(copies, stages=ALL, first=3 * BATCH), whole[3:])


def test_mixed_batches_have_pairs_of_labels(copies):
    for images, labels, positions in batches(copies, stages="basic+mixup", epochs=1):
        assert images.shape == (BATCH, SIZE, SIZE, 3)
        assert labels.shape == (BATCH, 3)
        assert labels.dtype == np.float32
        assert positions.shape == (BATCH,)


@pytest.fixture(scope="module")
def stored(copies) -> Path:
    done = CliRunner().invoke(
        cli, ["dataset", "convert", str(copies), "--to", "materialized", "--size", str(SIZE)]
    )
    assert done.exit_code == 0, done.output
    return copies


def test_stored_levels_are_augmented_as_those_of_files(stored):
    stages = "seed000+randaugment(2)+mixup"
    assert same(
        batches(stored, stages=stages, source="materialized"), batches(stored, stages=stages)
    )


def test_validation_from_a_store_does_what_stands_behind_a_random_stage(stored):
    stages = ["decode", "resize", "convert", "random_flip", "clip(0, 0.25)"]
    experiment = asked(stored, source="materialized", stages=stages)
    images = open_images(experiment).train
    made = validation_batches(images, parse_stages(stages), experiment.pipeline, batch_size=BATCH)
    assert max(batch[0].numpy().max() for batch in made) == 0.25
