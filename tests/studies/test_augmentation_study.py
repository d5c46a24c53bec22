"""A study: measured cell by cell, cut and gone on with, its failures written down."""

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
from click.testing import CliRunner

from tests.runs.conftest import make_workplace
from timesink.cli import cli
from timesink.cli._augmentation import print_study
from timesink.experiment import load
from timesink.runs.journal import read_events
from timesink.studies.augmentation import facts_of, measured_cell

LIMIT_S = 240
WORDS = (
    *("study", "augmentation", "--data", "images", "--cores", "1", "--batch-sizes", "8"),
    *("--set", "pipeline.image_size=32", "--networks", "tiny:build"),
    *("--rounds", "2", "--seconds", "0.1", "--out", "out"),
)
CATEGORIES = ("--categories", "synthetic; basic; basic+cutmix")


def start(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timesink", *WORDS, *words],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "COLUMNS": "80"},
    )


def events(place: Path) -> list:
    return list(read_events(place / "out" / "study.log"))


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return make_workplace(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess[str]:
    finished = start(place, *CATEGORIES)
    assert finished.returncode == 0, finished.stderr
    return finished


def test_each_cell_has_three_throughputs_a_prediction_and_its_error(place, done):
    table = pl.read_csv(place / "out" / "cells.csv")
    assert table["category"].to_list() == ["synthetic", "basic", "basic+cutmix"]
    assert set(table["cores"]) == {1}
    for row in table.iter_rows(named=True):
        for side in ("input", "compute", "both"):
            rate = row[f"{side}_images_per_s"]
            assert 0 < row[f"{side}_images_per_s_low"] <= rate <= row[f"{side}_images_per_s_high"]
            assert 0 < row[f"{side}_cores"] < 1.2
        sides = (row["input_images_per_s_high"], row["compute_images_per_s_high"])
        assert row["disturbed"] == (row["both_images_per_s_low"] > min(sides))
        error = row["predicted_images_per_s"] / row["both_images_per_s"] - 1
        assert row["prediction_error"] == pytest.approx(error)
        slower = row["compute_images_per_s"] < row["input_images_per_s"]
        assert row["bound"] == ("compute" if slower else "input")
        assert row["shared_cores"]
    # Nothing to decode: which side is which shows by far.
    synthetic, basic, _ = table["input_images_per_s"]
    assert synthetic > 2 * basic
    assert table["category"][0] == "synthetic" and table["bound"][0] == "compute"
    assert pl.read_parquet(place / "out" / "cells.parquet").equals(
        table.cast(dict(zip(table.columns, table.dtypes, strict=True)))
    )


def test_what_is_printed_fits_eighty_columns_and_says_what_the_files_say(place, done):
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    facts = json.loads((place / "out" / "study.json").read_text())
    assert facts["planned"] == facts["measured"] == 3
    flat = " ".join(done.stdout.split())
    for said in (*facts["sentences"], *facts["findings"]):
        assert said["text"] in flat
    assert [finding["claim"] for finding in facts["findings"]] == [
        "the smaller the model",
        "the fewer the cores",
        "the more the layers",
    ]


ROUNDS = [
    {"side": side, "images": images, "wall_s": 1.0, "cpu_s": 1.0}
    for side, images in (("input", 90), ("both", 50), ("compute", 80))
]


def test_stages_as_a_list_are_a_category():
    asked = load(None, ['pipeline.stages=["decode", "resize", "convert"]', "machine.cores=1"])
    cell = measured_cell(asked, {"rounds": ROUNDS, "shared": True})
    facts = facts_of([cell])
    (row,) = facts["cells"]
    assert (row["category"], row["layers"]) == ("decode, resize, convert", 0)
    assert "decode, resize, convert" in " ".join(each["text"] for each in facts["sentences"])


def test_a_study_of_synthetic_images_alone_has_nothing_to_predict(capsys):
    asked = load(None, ["pipeline.source=synthetic", "machine.cores=1"])
    print_study(facts_of([measured_cell(asked, {"rounds": ROUNDS, "shared": True})]))
    assert "model against measurement" not in capsys.readouterr().out


def test_a_finished_study_is_shown_again_and_not_measured_again(place, done):
    before = (place / "out" / "study.log").read_bytes()
    again = start(place, *CATEGORIES, "--json")
    assert again.returncode == 0, again.stderr
    assert (place / "out" / "study.log").read_bytes() == before
    assert json.loads(again.stdout) == json.loads((place / "out" / "study.json").read_text())


def test_another_grid_does_not_go_on_with_it(place, done):
    other = start(place, "--categories", "basic")
    assert other.returncode == 2
    assert "out holds a study that was asked for otherwise; --force" in other.stderr


def test_a_study_that_was_killed_goes_on_and_repeats_nothing(tmp_path):
    place = make_workplace(tmp_path)
    log = place / "out" / "study.log"
    begun = subprocess.Popen(
        [sys.executable, "-m", "timesink", *WORDS, *CATEGORIES],
        cwd=place,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + LIMIT_S
    while not (log.is_file() and b" ended {" in log.read_bytes()):
        assert time.monotonic() < until and begun.poll() is None
        time.sleep(0.02)
    begun.kill()
    begun.wait()
    assert json.loads((place / "out" / "study.json").read_text())["planned"] == 3  # from the start
    measured = log.read_bytes()
    finished = start(place, *CATEGORIES)
    assert finished.returncode == 0, finished.stderr
    assert "going on: " in finished.stderr
    assert log.read_bytes().startswith(measured)
    numbers = [event.fields["number"] for event in events(place) if event.name == "ended"]
    assert sorted(numbers) == [1, 2, 3]


def test_ctrl_c_ends_it_with_the_way_on_and_leaves_no_process(tmp_path):
    place = make_workplace(tmp_path)
    begun = subprocess.Popen(
        [sys.executable, "-m", "timesink", *WORDS, *CATEGORIES],
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert begun.stderr is not None
    for line in begun.stderr:
        if line.startswith("1 of 3"):
            break
    until = time.monotonic() + LIMIT_S
    while not (children := _children(begun.pid)):
        assert time.monotonic() < until
        time.sleep(0.02)
    begun.send_signal(signal.SIGINT)
    _, errors = begun.communicate(timeout=LIMIT_S)
    assert begun.returncode == 130
    assert "the same command goes on with what is left: --out out" in errors
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [
        int(word)
        for word in text.split()
        if b"timesink.runs.measurer" in Path(f"/proc/{word}/cmdline").read_bytes()
    ]


def test_a_cell_that_fails_is_written_down_and_the_others_are_measured(tmp_path):
    place = make_workplace(tmp_path)
    (place / "broken.py").write_text("def build(input_shape, classes):\n    raise OSError('no')\n")
    words = ("--networks", "broken:build,tiny:build", "--categories", "basic")
    finished = start(place, *words)
    assert finished.returncode == 4
    assert "1 of 2 cells failed" in finished.stderr
    assert "failed: broken:build, batch 8, 32 px, basic, 1 core" in finished.stdout
    facts = json.loads((place / "out" / "study.json").read_text())
    assert (facts["measured"], len(facts["failed"])) == (1, 1)
    # Mended, it tries again what failed, and that alone, but only when it is told to.
    (place / "broken.py").write_text((place / "tiny.py").read_text())
    assert start(place, *words).returncode == 4
    assert start(place, *words, "--retry").returncode == 0
    numbers = [event.fields["number"] for event in events(place) if event.name == "ended"]
    assert len(numbers) == 3
    assert numbers[-1] in numbers[:2]


def test_a_study_of_another_machine_is_not_gone_on_with(place, done, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    text = (place / "out" / "study.log").read_text()
    first, _, rest = text.partition("\n")
    stamp, _, fields = first.partition(" study ")
    event = json.loads(fields)
    event["machine"]["cpu"]["model"] = "Another"
    (out / "study.log").write_text(f"{stamp} study {json.dumps(event)}\n{rest}")
    other = start(place, *CATEGORIES, "--out", str(out))
    assert other.returncode == 4
    assert "begun on another machine (model Another, here " in other.stderr


def test_force_deletes_a_study_and_nothing_else(place, done, tmp_path):
    letters = tmp_path / "letters"
    letters.mkdir()
    (letters / "a.txt").write_text("dear")
    for words in ((), ("--force",)):
        refused = start(place, *CATEGORIES, "--out", str(letters), *words)
        assert refused.returncode == 2
        assert "is not a study" in refused.stderr
    assert (letters / "a.txt").read_text() == "dear"


def test_a_dry_run_says_the_cells_and_measures_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["study", "augmentation", "--quick", "--cores", "1", "--dry-run"]
    shown = CliRunner().invoke(cli, words)
    assert shown.exit_code == 0, shown.output
    assert "resnet50, batch 32, 64 px, basic+randaugment(8), 1 core" in shown.output
    last = shown.output.splitlines()[-1]
    assert re.fullmatch(r"8 cells, 8 to do: about \d+ min \(a guess from .*\)", last)
    assert list(tmp_path.iterdir()) == []


def test_the_packaged_file_is_printed_to_be_changed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(cli, ["study", "augmentation", "--toml"])
    (tmp_path / "mine.toml").write_text(shown.output)
    planned = CliRunner().invoke(cli, ["study", "augmentation", "mine.toml", "--dry-run"])
    assert planned.exit_code == 0, planned.output
    assert "mobilenetv2, batch 64, 224 px, basic, " in planned.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--categories", "basics"], "did you mean basic?"),
        (["--categories", "basic+randaugment(99)"], "randaugment: found 99"),
        (["--cores", "0"], "'0' is not a whole number from 1"),
        (["--cores", "4096"], "machine.cores: found 4096, allowed: at most"),
        (["--networks", "resnet5"], "did you mean resnet50?"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(tmp_path, timesink, words, message):
    done = timesink("study", "augmentation", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "studies").exists()
