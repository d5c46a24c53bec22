import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from timesink.datasets.folder import open_dataset

SIZE = ("--classes", "4", "--images", "60", "--validation-images", "5", "--mean-kb", "15")


def start(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "timesink", "dataset", "make", str(out), *SIZE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for_images(out: Path, making: subprocess.Popen[str], least: int) -> None:
    while len(list(out.rglob("*.JPEG"))) < least:
        assert making.poll() is None, making.communicate()
        time.sleep(0.01)  # a process of its own gives no other sign


def contents(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*.JPEG")}


def gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_until_gone(children: list[psutil.Process]) -> None:
    deadline = time.monotonic() + 60
    while not all(map(gone, children)):
        assert time.monotonic() < deadline, "children outlived their parent"
        time.sleep(0.01)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_make_leaves_no_child_and_goes_on(tmp_path, timesink, stop):
    making = start(tmp_path / "out")
    wait_for_images(tmp_path / "out", making, 5)
    children = psutil.Process(making.pid).children(recursive=True)
    # As a terminal does it: Ctrl-C reaches the whole group, a kill only the one.
    (os.killpg if stop == signal.SIGINT else os.kill)(making.pid, stop)
    try:
        wait_until_gone(children)
    finally:
        for child in children:  # a failure must not leave them running
            with suppress(psutil.NoSuchProcess):
                child.kill()
    output, errors = making.communicate()

    assert making.returncode == (130 if stop == signal.SIGINT else -stop)
    assert "Traceback" not in output + errors
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*.JPEG")}
    assert 5 <= len(before) < 260
    assert 'complete": false' in (tmp_path / "out" / "generated.json").read_text()

    again = timesink("dataset", "make", "out", *SIZE)

    assert again.returncode == 0, again.stderr
    assert len(contents(tmp_path / "out")) == 260
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert not list((tmp_path / "out").rglob("*.tmp"))
    assert json.loads((tmp_path / "out" / "generated.json").read_text())["complete"] is True


def test_make_says_what_it_made_and_what_to_do_next(tmp_path, timesink):
    done = timesink(
        "dataset", "make", "my out", "--classes", "2", "--images", "3", "--validation-images", "0"
    )

    assert done.returncode == 0
    assert "my out: 6 images of 2 classes" in done.stdout
    assert "timesink run --set 'dataset.path=my out'" in done.stderr
    assert len(open_dataset(tmp_path / "my out", validation_fraction=0).train) == 6


def test_make_refuses_a_folder_in_use_with_one_line(tmp_path, timesink):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("x")

    done = timesink("dataset", "make", "out", "--force")

    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("timesink: out is not empty")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--classes=1", "--mean-kb=5", "--images=0", "--seed=-1"])
def test_make_refuses_values_out_of_range(timesink, option):
    done = timesink("dataset", "make", "out", option)
    assert done.returncode == 2
    assert option.split("=")[0] in done.stderr
