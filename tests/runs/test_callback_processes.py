"""Scripts with a callback, run as users run them: killed, failing, on a full disk, twofold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.training import assert_closed, steps_of, summary_of

SCRIPT = """
import os, resource, signal, sys
import keras, tensorflow as tf, timesink
from tests.runs.training import BATCH, X, Y, At, fit, tiny

def fail():
    raise ValueError("no good")
"""


@pytest.fixture
def script(tmp_path):
    """Runs a script in a directory of its own; gives the finished process."""

    def run(text: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "mine.py").write_text(SCRIPT + text)
        root = Path(__file__).parents[2]
        environment = {**os.environ, "PYTHONPATH": str(root), "TF_CPP_MIN_LOG_LEVEL": "3"}
        return subprocess.run(
            [sys.executable, "mine.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run


def timesink(directory: Path, *asked: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timesink", *asked], cwd=directory, capture_output=True, text=True
    )


def test_a_killed_training_is_collected_from_its_journal(script, tmp_path):
    done = script(
        "kill = At(9, lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
        "fit(tiny(), kill, timesink.Callback('out', start=2, steps=3))\n"
    )
    assert done.returncode == -9
    assert not (tmp_path / "out" / "summary.json").exists()
    assert timesink(tmp_path, "collect", "out").returncode == 0
    summary = summary_of(tmp_path / "out")
    assert (summary["status"], summary["steps"], summary["traced_steps"]) == ("killed", 9, 3)
    assert_closed(tmp_path / "out")


def test_a_script_that_raises_leaves_a_failed_run_that_the_commands_read(script, tmp_path):
    done = script("fit(tiny(), At(8, fail), timesink.Callback('out', start=2, steps=3))\n")
    assert done.returncode == 1
    assert "ValueError: no good" in done.stderr
    assert "timesink: next: timesink show out" in done.stderr
    assert summary_of(tmp_path / "out")["status"] == "failed"
    shown = timesink(tmp_path, "show", "out", "--json")
    assert json.loads(shown.stdout)["error"] == "ValueError: no good"
    assert timesink(tmp_path, "layers", "out").returncode == 0
    resumed = timesink(tmp_path, "run", "--resume", "out")
    assert resumed.returncode == 4
    assert "made by keras.Model.fit in a script: run the script again" in resumed.stderr


@pytest.mark.parametrize("batch", [0, 6])
def test_a_full_disk_fails_no_training_and_leaves_nothing_behind(script, tmp_path, batch):
    done = script(
        "full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))\n"
        f"history = fit(tiny(), At({batch}, full), timesink.Callback('out', start=3, steps=6),"
        " epochs=2)\n"
        "assert len(history.history['loss']) == 2\n"
        "try:\n"
        "    tf.profiler.experimental.stop()\n"
        "except tf.errors.UnavailableError:\n"
        "    print('no trace is left')\n"
    )
    assert done.returncode == 0, done.stderr
    assert "stopped observing, training goes on" in done.stderr
    assert done.stdout == "no trace is left\n"


def test_two_replicas_have_books_of_their_own_and_images_together(script, tmp_path):
    done = script(
        "(cpu,) = tf.config.list_physical_devices('CPU')\n"
        "two = [tf.config.LogicalDeviceConfiguration()] * 2\n"
        "tf.config.set_logical_device_configuration(cpu, two)\n"
        "with tf.distribute.MirroredStrategy(['CPU:0', 'CPU:1']).scope():\n"
        "    model = tiny()\n"
        "data = tf.data.Dataset.from_tensor_slices((X[:92], Y[:92])).batch(BATCH)\n"
        "model.fit(data, verbose=0, callbacks=[timesink.Callback('out')])\n"
    )
    assert done.returncode == 0, done.stderr
    summary = summary_of(tmp_path / "out")
    assert {row["device"] for row in summary["accounts"]} == {"CPU:0", "CPU:1"}
    assert steps_of(tmp_path / "out")["images"].to_list() == [8] * 11 + [4]
    assert_closed(tmp_path / "out")


def test_importing_the_package_imports_no_framework_and_no_tables():
    heavy = ("tensorflow", "keras", "polars", "numpy", "pydantic")
    code = f"import sys, timesink; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
