"""One thread in every pool: all sources in all modes still come to their end, on one core."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from timesink import machine
from timesink.cli import cli

LIMIT_S = 120
SOURCES = ("raw", "tfrecord", "materialized", "synthetic")
MODES = ("pipelined", "by_batch", "whole_dataset")

TAKE_ALL = """
import json, os, sys
from timesink import machine
if "quota" in sys.argv:  # as in a container whose quota is one CPU of two
    machine.cores, machine.schedulable_cpus = (lambda: 1), (lambda: 2)
from timesink.engines.tensorflow.counters import Counters
from timesink.engines.tensorflow.devices import size_thread_pools, thread_pools
from timesink.experiment import parse
from timesink.loaders.tfdata import training_batches
from timesink.pipelines.order import training_stream
from timesink.pipelines.source import open_images
from timesink.pipelines.stages import parse_stages

size_thread_pools()
answer, kept = {"threads": thread_pools()}, []
for source in sys.argv[2].split(","):
    for mode in sys.argv[3].split(","):
        print("taking", source, mode, file=sys.stderr, flush=True)
        asked = parse({
            "dataset": {"path": sys.argv[1], "validation_fraction": 0.0},
            "pipeline": {"source": source, "image_size": 24, "mode": mode},
        }, "test")
        images = open_images(asked).train
        stream = training_stream(images, seed=0, batch_size=6, shuffle=True)
        batches = training_batches(images, parse_stages("seed000"), asked.pipeline, stream,
                                   first_position=0, last_epoch=3)
        kept.append(batches)
        counters, came = Counters(batches), 0
        for batch in batches:
            counters.sample()
            came += len(batch[2])
        most = max((node.chosen.get("parallelism", 0) for node in counters.nodes()), default=0)
        answer[f"{source} {mode}"] = [came, most]
print(json.dumps(answer), flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("one_core") / "photos"
    draw = np.random.default_rng(0)
    for number in range(24):
        path = root / "ab"[number % 2] / f"{number:02d}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 256, (40, 48, 3), np.uint8)).save(path)
    for to in ("tfrecord", "materialized"):
        words = ["dataset", "convert", str(root), "--to", to]
        done = CliRunner().invoke(cli, [*words, *(["--size", "24"] if to != "tfrecord" else [])])
        assert done.exit_code == 0, done.output
    return root


def taken(photos, *words, **environment) -> dict:
    command = [sys.executable, "-c", TAKE_ALL, str(photos), ",".join(SOURCES), ",".join(MODES)]
    with machine.confined(None if "quota" in words else machine.chosen_cpus(1)):
        child = subprocess.Popen(
            [*command, *words],
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        said, errors = child.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        child.kill()
        _, errors = child.communicate()
        raise AssertionError(f"it hung: {errors[-2000:]}") from None
    assert child.returncode == 0, errors
    answer = json.loads(said)
    for source in SOURCES:
        for mode in MODES:
            assert answer[f"{source} {mode}"][0] == 3 * 24, (source, mode)
    return answer


def test_one_core_is_enough_for_every_source_in_every_mode(photos):
    assert taken(photos)["threads"] == {"inter_op": 1, "intra_op": 1}


def test_a_quota_below_the_mask_sizes_the_pools_and_what_autotune_may_choose(photos):
    answer = taken(photos, "quota", TF_NUM_INTRAOP_THREADS="2")
    assert answer["raw pipelined"][1] == 1
    # What a user set in the environment stays: TensorFlow reads it where nothing else is said.
    assert answer["threads"] == {"inter_op": 1, "intra_op": 0}
