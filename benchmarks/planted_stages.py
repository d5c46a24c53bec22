"""Is a stage's time true: each stage is made slower by a known amount, and must show it.

The pipeline runs alone. A plant sleeps, or computes, inside the stage and measures itself; the
stage's row must rise by that much, within 5 %, over one with a plant that does neither: calling
Python from tf.data takes a fifth of a millisecond of its own.

    python benchmarks/planted_stages.py [--images DIR]
"""

import argparse
import hashlib
import os
import sys
import tempfile
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from _training import images as make_images
from timesink.datasets.folder import open_dataset
from timesink.engines.tensorflow.input_alone import Length, measure
from timesink.experiment import Experiment
from timesink.loaders import tfdata, tfstages
from timesink.pipelines.order import training_stream
from timesink.pipelines.stages import in_running_order, parse_stages
from timesink.runs.pipeline import facts_of, stages_of
from timesink.runs.stage_tables import stage_names

PLANT_MS = 4.0
BLOCK = bytes(1 << 17)
ALLOWED = 0.05
STAGES = parse_stages("seed000")
NAMES = [stage.name for stage in in_running_order(STAGES)]


class Plant:
    """Something slow inside a stage, which says how slow it was."""

    def __init__(self, stage: str, kind: str) -> None:
        self.stage, self.kind = stage, kind
        self.took_s, self.calls, self._lock = 0.0, 0, threading.Lock()

    def __call__(self, number: Any) -> Any:
        """Be slow, once."""
        begin = time.perf_counter()
        if self.kind == "sleeps":
            time.sleep(PLANT_MS / 1e3)
        elif self.kind == "computes":
            while time.perf_counter() - begin < PLANT_MS / 1e3:
                hashlib.sha256(BLOCK)  # without Python's lock: else the others would wait for it
        with self._lock:
            self.took_s += time.perf_counter() - begin
            self.calls += 1
        return number

    def applied(self, original: Any) -> Any:
        """Wrap the loader's way to apply a stage."""

        def apply_stage(stage: Any, value: Any, key: Any, size: int) -> Any:
            if stage.name == self.stage:
                waited = tf.numpy_function(self, [tf.constant(0)], tf.int32)
                with tf.control_dependencies([waited]):
                    value = tf.identity(value)
            return original(stage, value, key, size)

        return apply_stage


def main() -> None:
    """Plant in one stage after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=Path, help="a folder of images; left out, one is made")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = asked.images or make_images(Path(place))
        dataset = open_dataset(folder)
        print(f"{'stage':<20} {'plant':<8} {'planted ms':>10} {'row rose by':>12} {'ratio':>7}")
        worst = 0.0
        for name in NAMES:
            idle = Plant(name, "idle")
            before = rows_of(dataset.train, idle, Path(place))
            for kind in ("sleeps", "computes"):
                plant = Plant(name, kind)
                after = rows_of(dataset.train, plant, Path(place))
                planted_ms = 1e3 * (plant.took_s / plant.calls - idle.took_s / idle.calls)
                rose_ms = after[name] - before[name]
                ratio = rose_ms / planted_ms
                worst = max(worst, abs(ratio - 1))
                print(
                    f"{name:<20} {kind:<8} {planted_ms:>10.3f} {rose_ms:>12.3f} {ratio:>7.3f}",
                    flush=True,
                )
    print(f"worst {100 * worst:.1f} % off, allowed {100 * ALLOWED:.0f} %")
    sys.stdout.flush()
    os._exit(worst > ALLOWED)  # at once: taking iterators apart can take seconds


def rows_of(images: Any, plant: Plant, place: Path) -> dict[str, float]:
    """Measure the pipeline with a plant; gives work in ms an image by stage."""
    experiment = Experiment()
    original = tfstages.apply_stage
    tfstages.apply_stage = plant.applied(original)
    stream = training_stream(images, seed=0, batch_size=16, shuffle=True)
    try:
        batches = tfdata.training_batches(
            images, STAGES, experiment.pipeline, stream, first_position=0, last_epoch=10**6
        )
        length = Length(seconds=2.0, trace_batches=200, trace_s=4.0)
        measured = measure(batches, length, Path(tempfile.mkdtemp(dir=place)))
    finally:
        tfstages.apply_stage = original
    facts = {**facts_of(asdict(measured)), "trace": str(measured.trace)}
    table = stages_of(facts, stage_names(STAGES), ())
    return {row["stage"]: row["work_ms_per_image"] or 0.0 for row in table["stages"]}


if __name__ == "__main__":
    main()
