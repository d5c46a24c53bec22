"""Sweeps: every value of a grid run once, whatever cuts it, with a table of what became of each."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from tests.runs.conftest import make_workplace, training_process, wait_for
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import read_events
from timesink.studies.plan import in_running_order, plan_of, read_parts

LIMIT_S = 240
GRID = """
[grid]
training.batch_size = [4, 8]
[grid.zipped]
pipeline.image_size = [24, 32]
training.learning_rate = [0.1, 0.01]
"""


def place_in(path: Path, grid: str = GRID, top: str = "") -> Path:
    place = make_workplace(path)
    text = (place / "mine.toml").read_text()
    text = text.replace("epochs = 4", "iterations = 3\nvalidation = false")
    text = text.replace("checkpoint_every = 5", "")
    (place / "mine.toml").write_text(top + text + grid)
    return place


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "timesink", "sweep", "mine.toml", "--out", "out", *words]


def start(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "COLUMNS": "80"},
    )


def numbers(place: Path, event: str) -> list[int]:
    log = read_events(place / "out" / "study.log")
    return [each.fields["number"] for each in log if each.name == event]


def results(place: Path) -> pl.DataFrame:
    return pl.read_csv(place / "out" / "results.csv", schema_overrides={"run": pl.String})


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return place_in(tmp_path_factory.mktemp("sweep"))


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess[str]:
    finished = start(place)
    assert finished.returncode == 0, finished.stderr
    return finished


def test_every_cell_is_a_run_of_its_own_with_a_row_in_one_table(place, done):
    table = results(place)
    varied = ("training.batch_size", "pipeline.image_size", "training.learning_rate")
    assert table.select("run", *varied).rows() == [
        ("0001", 4, 24, 0.1),
        ("0002", 4, 32, 0.01),
        ("0003", 8, 24, 0.1),
        ("0004", 8, 32, 0.01),
    ]
    assert set(table["status"]) == {"complete"}
    for row in table.iter_rows(named=True):
        run = RunDirectory(place / "out" / row["run"])
        asked = run.experiment()
        assert asked.training.batch_size == row["training.batch_size"]
        assert asked.pipeline.image_size == row["pipeline.image_size"]
        assert row["step_ms_median"] == pytest.approx(run.summary()["step_ms"]["median"])
    assert pl.read_parquet(place / "out" / "results.parquet").height == 4


def test_what_it_says_on_the_way_and_at_the_end(place, done):
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    lines = [line for line in done.stderr.splitlines() if " of 4" in line]
    assert len(lines) == 4
    assert re.match(r"1 of 4, (about \d+ min|less than a minute) left: batch_size ", lines[0])
    assert all(" left, best so far " in line for line in lines[1:])


def test_a_finished_sweep_runs_nothing_again(place, done):
    before = (place / "out" / "study.log").read_bytes()
    again = start(place, "--json")
    assert again.returncode == 0, again.stderr
    assert (place / "out" / "study.log").read_bytes() == before
    assert [row["run"] for row in json.loads(again.stdout)["runs"]] == [
        "0001",
        "0002",
        "0003",
        "0004",
    ]


def test_collect_finds_the_runs_of_a_sweep(place, done, timesink):
    collected = timesink("collect", str(place / "out"))
    assert collected.returncode == 0, collected.stderr
    assert set(pl.read_csv(place / "out" / "runs.csv")["status"]) == {"complete"}


def test_another_sweep_does_not_go_on_with_it(place, done):
    other = start(place, "--set", "seed=3")
    assert other.returncode == 2
    assert "holds a study that was asked for otherwise; --force" in other.stderr


def test_a_dry_run_tells_what_is_done_and_how_long_the_rest_takes(place, done, tmp_path):
    planned = start(place, "--dry-run")
    assert planned.returncode == 0, planned.stderr
    assert "0001  done  batch_size 4, image_size 24, learning_rate 0.1" in planned.stdout
    assert planned.stdout.endswith("4 runs, 0 to do\n")
    fresh = place_in(tmp_path)
    last = start(fresh, "--dry-run").stdout.splitlines()[-1]
    assert last == "4 runs, 4 to do: less than a minute and what the steps of tiny:build take"
    known = start(fresh, "--dry-run", "--set", "training.network=resnet50").stdout
    assert "(a guess from the networks' arithmetic)" in known
    assert not (fresh / "out").exists()


def test_a_killed_sweep_goes_on_and_repeats_only_what_was_cut(tmp_path):
    place = place_in(tmp_path)
    begun = subprocess.Popen(
        command("--in-order"), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(place / "out" / "study.log", 'began {"number": 2}')
    wait_for(place / "out" / "0002" / "log.txt", " dataset {")  # it is at work
    begun.kill()
    begun.wait()
    first = (place / "out" / "0001" / "log.txt").read_bytes()
    finished = start(place, "--in-order")
    assert finished.returncode == 0, finished.stderr
    assert "going on: 1 of 4 are done" in finished.stderr
    assert (place / "out" / "0001" / "log.txt").read_bytes() == first
    assert numbers(place, "ended") == [1, 2, 3, 4]
    assert set(results(place)["status"]) == {"complete"}


def test_a_killed_run_is_written_down_and_the_others_are_run(tmp_path):
    place = place_in(tmp_path, "[grid]\ntraining.batch_size = [4, 8]\n")
    begun = subprocess.Popen(
        command("--in-order"), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wait_for(place / "out" / "0001" / "log.txt", " dataset {")  # the process's own line
    os.kill(training_process(place / "out" / "0001"), signal.SIGKILL)
    _, errors = begun.communicate(timeout=LIMIT_S)
    assert begun.returncode == 4
    assert b"1 of 2 runs failed" in errors
    table = results(place)
    assert table["status"].to_list() == ["failed", "complete"]
    assert "ended by SIGKILL" in table["reason"][0]
    assert table["kind"][0] == "killed"
    again = start(place, "--in-order")  # it was cut, so it is run again
    assert again.returncode == 0, again.stderr
    assert numbers(place, "ended") == [1, 2, 1]


def test_a_run_that_fails_has_its_reason_and_one_that_is_too_slow_too(tmp_path):
    place = place_in(tmp_path, '[grid]\ntraining.network = ["slow:build", "broken:build"]\n')
    (place / "broken.py").write_text("def build(input_shape, classes):\n    raise OSError('no')\n")
    (place / "slow.py").write_text("import time\ntime.sleep(600)\n")
    begin_s = time.monotonic()
    finished = start(place, "--time-limit", "15")
    assert time.monotonic() - begin_s < 120
    assert finished.returncode == 4
    table = results(place).sort("run")
    assert table["kind"].to_list() == ["time limit", "failed"]
    assert table["reason"][0] == "it took longer than 15 s"
    assert "no" in table["reason"][1]


@pytest.mark.parametrize("how", ["pipeline", "sides"])
def test_a_time_limit_holds_for_whatever_is_measured(tmp_path, how):
    place = place_in(tmp_path, f'[measure]\nhow = "{how}"\nseconds = 60.0\n')
    begin_s = time.monotonic()
    finished = start(place, "--time-limit", "1")
    assert time.monotonic() - begin_s < 50
    assert finished.returncode == 4
    table = results(place)
    assert table["kind"].to_list() == ["time limit"]
    assert table["reason"].to_list() == ["it took longer than 1 s"]


def test_ctrl_c_ends_it_with_the_way_on_and_the_run_with_it(tmp_path):
    place = place_in(tmp_path)
    begun = subprocess.Popen(
        command("--in-order"),
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(place / "out" / "0001" / "log.txt", "process_started")
    begun.send_signal(signal.SIGINT)
    _, errors = begun.communicate(timeout=LIMIT_S)
    assert begun.returncode == 130
    assert "the same command goes on with what is left: --out out" in errors
    with pytest.raises(AssertionError):
        training_process(place / "out" / "0001")


def test_cells_are_shuffled_anew_within_each_repetition(tmp_path):
    path = tmp_path / "many.toml"
    path.write_text("repetitions = 3\n[grid]\ntraining.batch_size = {from = 1, to = 12, step = 1}")
    planned = plan_of(read_parts(path, "many"))
    assert [(each.repetition, each.number) for each in planned[:4]] == [
        (1, 1),
        (2, 2),
        (3, 3),
        (1, 4),
    ]
    ordered = in_running_order(planned, seed=0)
    assert sorted(each.number for each in ordered) == [each.number for each in planned]
    assert [each.repetition for each in ordered] == [1] * 12 + [2] * 12 + [3] * 12
    orders = [[each.values["training.batch_size"] for each in ordered[n : n + 12]] for n in (0, 12)]
    assert orders[0] != orders[1]
    assert orders[0] != list(range(1, 13))
    assert in_running_order(planned, seed=0) == ordered


def test_a_file_with_a_grid_is_not_taken_for_one_experiment(tmp_path, timesink):
    (tmp_path / "many.toml").write_text("[grid]\ntraining.batch_size = [1]\n")
    refused = timesink("run", "many.toml")
    assert refused.returncode == 2
    assert "many.toml: grid: this is many experiments: timesink sweep many.toml" in refused.stderr
