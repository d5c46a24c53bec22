"""One run of `timesink run` for a benchmark: its own process, its own directory, its summary."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

IMAGE_SIZE = {
    "alexnet": 224,
    "vgg11": 96,
    "vgg16": 96,
    "googlenet": 128,
    "resnet50": 96,
    "mobilenetv2": 96,
}
"""Large enough to be compute-bound at batch 16, small enough for two cores."""


def images(directory: Path, each_class: int = 48) -> Path:
    """Make the images that the runs read, of ten classes."""
    place = directory / "images"
    command = ["dataset", "make", str(place), "--classes", "10", "--images", str(each_class)]
    _timesink([*command, "--validation-images", "1"], directory)
    return place


def train(directory: Path, dataset: Path, network: str, **settings: Any) -> dict[str, Any]:
    """Run one training; gives its summary. Settings have dots as double underscores."""
    keys: dict[str, Any] = {
        "dataset.path": dataset,
        "training.network": network,
        "training.batch_size": 16,
        "training.validation": "false",
        "pipeline.image_size": IMAGE_SIZE[network],
        "profile.verdict": "false",
        **{key.replace("__", "."): value for key, value in settings.items()},
    }
    number = len(list(directory.glob("run-*"))) + 1
    out = directory / f"run-{number}"
    sets = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
    _timesink(["run", *sets, "--out", str(out)], directory)
    summary: dict[str, Any] = json.loads((out / "summary.json").read_text())
    return summary


def _timesink(arguments: list[str], directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "timesink", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"timesink {' '.join(arguments[:2])} failed:\n{done.stdout}{done.stderr}")
