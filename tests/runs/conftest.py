"""A small image set and a small network that trains in seconds, with dropout and batch norm."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

NETWORK = """
import keras

def build(input_shape, classes):
    return keras.Sequential([
        keras.Input(input_shape),
        keras.layers.Conv2D(8, 3, strides=2, activation="relu", name="conv1"),
        keras.layers.BatchNormalization(name="norm1"),
        keras.layers.GlobalAveragePooling2D(),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(classes, name="output"),
    ])
"""

CLASSES, TRAIN_IMAGES, VALIDATION_IMAGES = 3, 16, 4


def draw(path: Path, label: int, rng: np.random.Generator) -> None:
    pixels = rng.normal(90, 30, (40, 48, 3))
    pixels[..., label % 3] += 60
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(path, quality=90)


def make_images(root: Path) -> None:
    rng = np.random.default_rng(0)
    for label in range(CLASSES):
        for split, count in (("train", TRAIN_IMAGES), ("val", VALIDATION_IMAGES)):
            for number in range(count):
                draw(root / split / f"class{label}" / f"{number:03d}.jpg", label, rng)


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A directory as a user has it: images, a network of their own, an experiment."""
    return make_workplace(tmp_path)


def make_workplace(path: Path) -> Path:
    """Fill a directory; a verdict costs seconds, so whoever tests it asks for it."""
    make_images(path / "images")
    (path / "tiny.py").write_text(NETWORK)
    (path / "mine.toml").write_text(
        """
        name = "mine"
        [dataset]
        path = "images"
        [pipeline]
        image_size = 32
        [training]
        network = "tiny:build"
        batch_size = 8
        epochs = 4
        deterministic = true
        checkpoint_every = 5
        [profile]
        mode = "off"
        verdict = false
        """
    )
    return path


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(workplace: Path, timesink: Run) -> Run:
    """Start `timesink run mine.toml` with settings; `out` is the run's directory."""

    def start(*settings: str, out: str = "out", **options) -> subprocess.CompletedProcess[str]:
        overrides = [word for setting in settings for word in ("--set", setting)]
        return timesink("run", "mine.toml", "--out", out, *overrides, cwd=workplace, **options)

    return start


@pytest.fixture
def started(workplace: Path):
    """Start the same in the background, to be disturbed; everything is gone at the end."""
    running = []

    def start(*settings: str, out: str = "out") -> subprocess.Popen[str]:
        overrides = [word for setting in settings for word in ("--set", setting)]
        process = subprocess.Popen(
            [sys.executable, "-m", "timesink", "run", "mine.toml", "--out", out, *overrides],
            cwd=workplace,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(path: Path, text: str, *, count: int = 1, timeout_s: float = 120) -> None:
    """Wait until a file holds a text, so many times."""
    until = time.monotonic() + timeout_s
    while time.monotonic() < until:
        if path.is_file() and path.read_text().count(text) >= count:
            return
        time.sleep(0.02)
    raise AssertionError(f"{path} never held {text!r}")


def training_process(out: Path, module: str = "timesink.runs.worker") -> int:
    """Find the process that trains into a run's directory, or runs another module on it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if module.encode() in words and str(out.resolve()).encode() in words:
                return int(entry.name)
    raise AssertionError(f"no process trains into {out}")


def losses(out: Path, process: int | None = None) -> dict[int, float]:
    """Read the training losses by iteration; of iterations done twice, the last."""
    steps = pl.read_csv(out / "steps.csv").filter(split="train")
    if process is not None:
        steps = steps.filter(process=process)
    return dict(steps.select("iteration", "loss").iter_rows())
