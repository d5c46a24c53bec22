"""`timesink pipeline`: what it prints and writes, what it refuses, and bad images."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from timesink.pipelines.augmentations import RANDAUGMENT

OWN = """
import tensorflow as tf

def batches():
    def load(number):
        with tf.name_scope("paint"):
            image = tf.fill([32, 32, 3], tf.cast(number, tf.float32))
            for _ in range(20):
                image = tf.math.sin(image)
        return image
    return tf.data.Dataset.range(64).map(load, num_parallel_calls=2).batch(8).prefetch(2)

def empty():
    return tf.data.Dataset.range(0)

def no_dataset():
    return 5

def failing():
    raise OSError("the disk is on fire")

def failing_later():
    return tf.data.Dataset.from_tensors("nowhere.jpg").map(tf.io.read_file)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with forty images, one of them broken, and a module with pipelines of one's own."""
    root = tmp_path_factory.mktemp("pipeline")
    draw = np.random.default_rng(0)
    for label in ("cat", "dog"):
        (root / "photos" / label).mkdir(parents=True)
        for number in range(20):
            picture = Image.fromarray(draw.integers(0, 256, (60, 80, 3), np.uint8))
            picture.save(root / "photos" / label / f"{number:02d}.jpg")
    broken = root / "photos" / "dog" / "07.jpg"
    broken.write_bytes(broken.read_bytes()[:500])
    (root / "mine.toml").write_text(
        '[dataset]\npath = "photos"\nvalidation_fraction = 0.0\nmax_bad = 0.1\n'
        "[pipeline]\nimage_size = 32\n[training]\nbatch_size = 4\n"
    )
    (root / "my_input.py").write_text(OWN)
    return root


def timesink(place, *arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timesink", *arguments],
        cwd=place,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def measured(place) -> dict:
    done = timesink(
        place, "pipeline", "mine.toml", "--seconds", "0.4", "--workers", "1,2", "--json",
        "--out", "out",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_stage_has_its_work_its_cpu_time_and_its_bytes(measured):
    rows = {row["stage"]: row for row in measured["stages"]}
    asked = ["read", "decode", "resize", "convert", "random_brightness", "clip", "batch"]
    assert [stage for stage in rows if stage in asked] == asked
    assert all(rows[stage]["cpu_ms_per_image"] is not None for stage in asked)
    assert all(rows[stage]["work_ms_per_image"] > 0 for stage in ("read", "decode", "batch"))
    assert rows["decode"]["bytes_in"] == rows["read"]["bytes_out"] > 1000
    assert rows["decode"]["bytes_out"] == 60 * 80 * 3 == rows["resize"]["bytes_in"]
    assert rows["resize"]["bytes_out"] == 32 * 32 * 3 * 4
    assert 0 < measured["closure"] <= 1
    assert sum(row["share"] for row in measured["stages"]) == pytest.approx(1, abs=0.05)


def test_every_cell_is_measured(measured):
    assert [(cell["batch_size"], cell["workers"]) for cell in measured["cells"]] == [(4, 1), (4, 2)]
    for cell in measured["cells"]:
        assert cell["images_per_s"] == pytest.approx(cell["measured_images"] / cell["measured_s"])
        mean, median, p95 = (cell["batch_ms"][key] for key in ("mean", "median", "p95"))
        assert median <= p95
        assert mean * cell["batches"] == pytest.approx(1e3 * cell["measured_s"], rel=0.05)
    workers = {each["value"] for each in measured["autotune"] if each["parameter"] == "parallelism"}
    assert workers == {1}
    assert any(queue["node"] == "Prefetch" for queue in measured["queues"])


def test_a_broken_image_is_named_with_its_reason(measured):
    assert measured["bad_images"] == [{"path": "dog/07.jpg", "reason": "truncated"}]


def test_sizes_on_disk_and_in_memory_are_told(measured, place):
    raw = sum(path.stat().st_size for path in (place / "photos").rglob("*.jpg"))
    (size,) = measured["sizes"]
    assert (size["source"], size["disk_bytes"], size["measured"]) == ("raw", raw, True)
    assert measured["memory_bytes_per_image"] == 32 * 32 * 3 * 4


def test_files_are_written_and_never_overwritten(measured, place):
    assert json.loads((place / "out" / "pipeline.json").read_text()) == measured
    header, *rows = (place / "out" / "stages.csv").read_text().splitlines()
    assert header.startswith("stage,work_ms_per_image,cpu_ms_per_image,share,parallelism")
    assert len(rows) == len(measured["stages"])
    again = timesink(place, "pipeline", "mine.toml", "--out", "out")
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_more_broken_images_than_allowed_are_an_error(place):
    done = timesink(
        place, "pipeline", "mine.toml", "--set", "dataset.max_bad=0.01", "--no-cpu",
        "--seconds", "5",
    )  # fmt: skip
    assert done.returncode == 3
    assert "dog/07.jpg (truncated)" in done.stderr


def test_cold_images_really_come_from_the_disk(place):
    done = timesink(
        place, "pipeline", "mine.toml", "--set", "pipeline.cache=cold", "--no-cpu", "--json"
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["cache_before"]["resident_bytes"] <= 0.01 * facts["cache_before"]["total_bytes"]
    assert facts["bytes_read"] >= 0.9 * facts["cache_before"]["total_bytes"]
    assert facts["ended"]
    assert facts["taken_images"] == 36  # nine batches of four: each image is cold once
    # None of them is lost to a warm-up that would take as long: only the first batch is.
    assert (facts["warm_up"]["batches"], facts["batches"]) == (1, 8)
    assert facts["images_per_s"] > 0


def test_a_pipeline_of_ones_own_is_placed_by_its_scopes(place):
    done = timesink(place, "pipeline", "my_input:batches", "--seconds", "0.4")
    assert done.returncode == 0, done.stderr
    assert "my_input:batches, alone" in done.stdout
    assert "images/s" in done.stdout
    assert any(line.startswith("paint ") for line in done.stdout.splitlines())
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("function", "said"),
    [
        ("empty", "the dataset is empty"),
        ("no_dataset", "is a int: give a tf.data.Dataset"),
        ("failing", "OSError: the disk is on fire (my_input.py:"),
        ("failing_later", "nowhere.jpg; No such file or directory"),
        ("nothing", "my_input has no 'nothing'"),
    ],
)
def test_a_mistake_in_ones_own_pipeline_is_one_line(place, function, said):
    done = timesink(place, "pipeline", f"my_input:{function}", "--seconds", "0.2")
    assert done.returncode in (2, 4)
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "0"], "not a whole number from 1 to 16"),
        (["--workers", "17"], "not a whole number from 1 to 16"),
        (["--batch-sizes", "4,x"], "'x' is not a whole number"),
        (["--batch-sizes", "4,4000"], "found 4000, allowed: at most the "),
        (["--set", "pipeline.source=tfrecord"], "timesink dataset convert photos --to tfrecord"),
        (["--set", "pipeline.source=materialized"], "--to materialized --size 32"),
    ],
)
def test_what_cannot_be_measured_is_said_before_anything_is_measured(place, arguments, said):
    done = timesink(place, "pipeline", "mine.toml", *arguments)
    assert done.returncode in (2, 3)
    assert said in done.stderr.replace(f"{place}/", "")
    assert "measuring" not in done.stderr


@pytest.fixture(scope="module")
def augmented(place) -> subprocess.CompletedProcess[str]:
    """Images large enough for their operations to be traced."""
    large = place / "large" / "cat"
    large.mkdir(parents=True)
    draw = np.random.default_rng(0)
    for number in range(8):
        picture = Image.fromarray(draw.integers(0, 256, (200, 260, 3), np.uint8))
        picture.save(large / f"{number}.jpg")
    return timesink(
        place, "pipeline", "mine.toml", "--seconds", "0.4", "--out", "augmented",
        "--set", "dataset.path=large", "--set", "pipeline.image_size=160",
        "--set", "pipeline.stages=basic+randaugment(4, 9)+mixup",
    )  # fmt: skip


def test_every_operation_of_randaugment_has_a_row(place, augmented):
    assert augmented.returncode == 0, augmented.stderr
    facts = json.loads((place / "augmented" / "pipeline.json").read_text())
    rows = {row["stage"]: row for row in facts["stages"]}
    assert {f"randaugment.{name}" for name in RANDAUGMENT} < set(rows)
    for name in ("equalise", "sharpness", "rotate"):
        row = rows[f"randaugment.{name}"]
        # Of four layers each draws one of fourteen; some hundred images were traced.
        assert 0.05 < row["calls_per_image"] < 0.8
        assert row["ms_per_call"] * row["calls_per_image"] == pytest.approx(
            row["work_ms_per_image"]
        )
    assert rows["randaugment"]["cpu_ms_per_image"] > 0
    assert rows["mixup"]["work_ms_per_image"] > 0
    assert sum(row["share"] for row in rows.values()) == pytest.approx(1.0, abs=0.02)


def test_the_operations_are_shown_within_80_columns(augmented):
    lines = augmented.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (head,) = [number for number, line in enumerate(lines) if line.startswith("randaugment drew")]
    names = [line.split()[0] for line in lines[head + 1 : head + 1 + len(RANDAUGMENT)]]
    assert set(names) == set(RANDAUGMENT)


def test_a_schedule_that_begins_with_nothing_is_measured_where_it_does_something(place):
    done = timesink(
        place, "pipeline", "mine.toml", "--seconds", "0.4", "--json",
        "--set", "pipeline.image_size=96", "--set", "pipeline.stages=basic+pba(100000)",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    met = [row for row in facts["stages"] if row["stage"].startswith("pba.")]
    assert sum(row["calls_per_image"] or 0 for row in met) > 0.1
    # Images that were passed over because the measurement begins late are not broken ones.
    assert [each["path"] for each in facts["bad_images"]] == ["dog/07.jpg"]
