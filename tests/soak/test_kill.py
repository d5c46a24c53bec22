"""kill -9 at random moments, again and again: the run always reads, resumes, and ends the same."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from tests.runs.conftest import losses, make_images, workplace  # noqa: F401

from timesink.runs.directory import RunDirectory

pytestmark = pytest.mark.soak

COMMAND = [sys.executable, "-m", "timesink", "run"]


def worker_of(out):
    from tests.runs.conftest import training_process

    try:
        return training_process(out)
    except AssertionError:
        return None


@pytest.mark.parametrize("seed", range(6))
def test_a_run_survives_random_kills(workplace, seed):  # noqa: F811
    draw = random.Random(seed)
    settings = ["--set", "training.iterations=900", "--set", "training.checkpoint_every=7"]
    settings += ["--set", "training.validate_every=3"]
    whole = subprocess.run(
        [*COMMAND, "mine.toml", "--out", "whole", *settings], cwd=workplace, capture_output=True
    )
    assert whole.returncode == 0
    out = workplace / "out"
    command = [*COMMAND, "mine.toml", "--out", "out", *settings]
    for _ in range(60):
        process = subprocess.Popen(
            command, cwd=workplace, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            output, _ = process.communicate(timeout=draw.uniform(0.3, 9))
            assert process.returncode == 0, output
            break
        except subprocess.TimeoutExpired:
            victims = [process.pid, worker_of(out)]
            draw.shuffle(victims)
            for victim in victims[: draw.choice([1, 2, 2])]:
                if victim is not None:
                    os.kill(victim, signal.SIGKILL)
            process.communicate()
        while worker_of(out) is not None:  # a survivor stops by itself
            time.sleep(0.05)
        if (out / "log.txt").is_file():
            RunDirectory(out).summary()
            command = [*COMMAND, "--resume", "out"]
    else:
        pytest.fail("the run never came to its end")
    assert losses(out) == losses(workplace / "whole")
    assert not [p for p in out.rglob("*") if p.name.endswith(".tmp") and p.parent == out]
