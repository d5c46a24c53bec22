"""Runs that go wrong: one clear line, the right exit code, and a directory that is still whole."""

import json
import os
import resource
import signal
import subprocess
import sys

import polars as pl
import pytest

from tests.runs.conftest import training_process, wait_for


def summary_of(workplace, out="out"):
    return json.loads((workplace / out / "summary.json").read_text())


def spoil(workplace, *names):
    for name in names:
        path = workplace / "images" / "train" / name
        path.write_bytes(path.read_bytes()[:200])


def test_a_broken_image_is_named_once_and_takes_no_other_with_it(run, workplace):
    spoil(workplace, "class0/003.jpg", "class2/010.jpg")
    (workplace / "images" / "val" / "class1" / "000.jpg").write_bytes(b"")
    done = run("dataset.max_bad=0.3")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("class0/003.jpg") == 1
    summary = summary_of(workplace)
    assert {row["path"]: row["reason"] for row in summary["bad_images"]} == {
        "train/class0/003.jpg": "truncated",
        "train/class2/010.jpg": "truncated",
        "val/class1/000.jpg": "empty",
    }
    assert summary["validation"]["images"] == 11
    # Four epochs of 46 good images: 23 whole batches, every one of 8 images.
    steps = pl.read_csv(workplace / "out" / "steps.csv").filter(split="train")
    assert steps["images"].to_list() == [8] * 23


def test_more_broken_images_than_the_budget_stop_the_run(run, workplace):
    spoil(workplace, "class0/003.jpg", "class2/010.jpg")
    done = run("dataset.max_bad=0.03")
    assert done.returncode == 3
    line = done.stderr.strip().splitlines()[-1]
    assert line.startswith("timesink: 2 of 48 training images are broken")
    assert "dataset.max_bad = 0.03" in line
    assert "Traceback" not in done.stderr
    summary = summary_of(workplace)
    assert summary["status"] == "failed"
    assert len(summary["bad_images"]) == 2


def test_a_set_without_one_good_image_ends_and_says_so(run, workplace):
    for path in (workplace / "images" / "train").rglob("*.jpg"):
        path.write_bytes(b"nothing like an image")
    done = run("dataset.max_bad=1.0", "training.iterations=50")
    assert done.returncode == 3
    assert "too few images could be decoded" in done.stderr


def test_broken_images_met_before_a_kill_are_not_named_again_after_a_resume(
    started, workplace, timesink
):
    spoil(workplace, "class0/003.jpg")
    process = started(
        "dataset.max_bad=0.3", "training.iterations=30", "training.checkpoint_every=1"
    )
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 13,')
    worker = training_process(out)
    os.kill(process.pid, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    process.wait()
    assert timesink("run", "--resume", "out", cwd=workplace).returncode == 0
    assert (out / "log.txt").read_text().count("bad_image") == 1


def test_too_little_memory_is_one_line_that_names_the_batch_size(run, workplace):
    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (6 * 2**30, 6 * 2**30))

    (workplace / "tiny.py").write_text(
        (workplace / "tiny.py").read_text().replace("Conv2D(8, 3", "Conv2D(100000, 3")
    )
    done = run("training.batch_size=48", preexec_fn=little_memory)
    assert done.returncode == 5, done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "memory at batch size 48" in line
    assert "Traceback" not in done.stderr
    summary = summary_of(workplace)
    assert summary["status"] == "failed"
    assert summary["peak_memory_bytes"] > 0


DISK = """
mount -t tmpfs -o size={size} none full
exec {python} -m timesink run mine.toml --out full/out {settings}
"""


def on_a_small_disk(workplace, size, *settings):
    """Run with the output on a disk of its own that will fill up; no privileges needed."""
    (workplace / "full").mkdir(exist_ok=True)
    overrides = " ".join(f"--set {setting}" for setting in settings)
    script = DISK.format(size=size, python=sys.executable, settings=overrides)
    # What is on that disk is gone with the namespace: look before leaving it.
    script = script.replace("exec ", "") + "code=$?; cp -r full/out after; exit $code\n"
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=workplace,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_disk_that_fills_up_with_checkpoints_ends_the_run_whole(workplace):
    (workplace / "tiny.py").write_text(
        (workplace / "tiny.py").read_text().replace("Conv2D(8, 3", "Conv2D(4000, 3")
    )
    done = on_a_small_disk(workplace, "2m", "training.checkpoint_every=1")
    assert done.returncode == 6, done.stderr
    line = done.stderr.strip().splitlines()[-1]
    assert "the disk is full" in line
    assert "Traceback" not in done.stderr
    summary = summary_of(workplace, "after")
    assert summary["status"] == "failed"
    assert summary["steps"] >= 1
    assert not list((workplace / "after" / "checkpoints").glob(".*"))


def test_a_disk_that_fills_up_with_the_log_ends_the_run_whole(workplace):
    done = on_a_small_disk(
        workplace, "640k", "training.iterations=100000", "training.checkpoint_every=0"
    )
    assert done.returncode == 6, done.stderr
    assert "the disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    summary = summary_of(workplace, "after")
    assert summary["status"] == "failed"
    assert summary["steps"] > 100


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        (["dataset.path=nowhere"], 3, "nowhere"),
        (["training.network=tiny:biuld"], 2, "build"),
        (["training.network=nothing:build"], 2, "nothing"),
        (["training.batch_size=49"], 2, "at most the 48 training images"),
        (["pipeline.stages=sed000"], 2, "seed000"),
        (['dataset.classes=["class0","clas1"]'], 3, "class1"),
    ],
)
def test_a_users_mistake_is_one_line(settings, code, said, run):
    done = run(*settings)
    assert done.returncode == code, done.stderr
    assert said in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_error_in_the_users_network_while_training_is_one_line_with_the_trace_in_the_log(
    run, workplace
):
    (workplace / "tiny.py").write_text(
        """
import keras

class Odd(keras.layers.Layer):
    def call(self, x, training=False):
        if training:
            raise KeyError("odd layer is odd")
        return x

def build(input_shape, classes):
    x = keras.Input(input_shape)
    y = keras.layers.GlobalAveragePooling2D()(Odd()(x))
    return keras.Model(x, keras.layers.Dense(classes)(y))
"""
    )
    done = run()
    assert done.returncode == 4
    assert "odd layer is odd" in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "Traceback" in (workplace / "out" / "log.txt").read_text()


def test_what_the_users_network_prints_is_shown(run, workplace):
    (workplace / "tiny.py").write_text(
        'print("hello from my network")\n' + (workplace / "tiny.py").read_text()
    )
    done = run("training.iterations=1")
    assert "hello from my network" in done.stderr


ODD = """
import keras

class Odd(keras.layers.Layer):
    def call(self, inputs, training=False):
        if training:
            raise ValueError("the widths do not match")
        return inputs

def build(input_shape, classes):
    images = keras.Input(input_shape)
    pooled = keras.layers.GlobalAveragePooling2D()(Odd(name="odd")(images))
    return keras.Model(images, keras.layers.Dense(classes)(pooled))
"""


def test_what_a_layer_says_went_wrong_is_the_reason(run, workplace):
    (workplace / "odd.py").write_text(ODD)
    done = run("training.network=odd:build")
    assert done.returncode != 0
    assert "ValueError: the widths do not match; the traceback is in log.txt" in done.stderr
    assert "\x1b" not in summary_of(workplace)["error"]
