"""A whole study by its command: every part measured, cut and gone on with, one page at the end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.runs.conftest import make_workplace, training_process, wait_for
from timesink.errors import RunError
from timesink.runs.journal import read_events
from timesink.studies.conducting import Asked, Watcher, conduct, room_for
from timesink.studies.plan import plan_of, read_parts, to_toml

LIMIT_S = 280
COMMON = """
name = "small"
[dataset]
path = "images"
[pipeline]
image_size = 32
[training]
network = "tiny:build"
batch_size = 8
validation = false
checkpoint_keep = 0
[profile]
mode = "off"
verdict = false
"""
PIPELINE = (
    COMMON
    + """
[parts.overlap]
training.epochs = 2
[parts.overlap.grid]
pipeline.mode = ["by_batch", "pipelined"]
[parts.workers]
measure = { how = "pipeline", seconds = 0.2 }
pipeline.mode = "by_batch"
[parts.workers.grid]
pipeline.workers = [1, 4]
[parts.sources]
measure = { how = "pipeline", seconds = 0.2 }
[parts.sources.grid]
pipeline.source = ["raw", "tfrecord", "materialized"]
"""
)
LAYERS = (
    COMMON
    + """
[parts.profiling.grid]
profile.mode = ["off", "every"]
[parts.profiling]
training.iterations = 4
[parts.layers]
profile.mode = "every"
training.iterations = 6
training.replicas = 2
"""
)


def command(study: str, *words: str) -> list[str]:
    return [
        *(sys.executable, "-m", "timesink", "study", study, "small.toml", "--out", "out"),
        *words,
    ]


def start(place: Path, study: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(study, *words),
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "COLUMNS": "80"},
    )


def place_of(path: Path, text: str) -> Path:
    place = make_workplace(path)
    (place / "small.toml").write_text(text)
    return place


def numbers(place: Path, event: str) -> list[int]:
    log = read_events(place / "out" / "study.log")
    return [each.fields["number"] for each in log if each.name == event]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return place_of(tmp_path_factory.mktemp("study"), PIPELINE)


@pytest.fixture(scope="module")
def done(place) -> subprocess.CompletedProcess[str]:
    finished = start(place, "pipeline")
    assert finished.returncode == 0, finished.stderr
    return finished


def test_every_part_is_measured_and_stands_in_one_table(place, done):
    table = pl.read_csv(place / "out" / "results.csv", schema_overrides={"run": pl.String})
    assert table["part"].to_list() == ["overlap"] * 2 + ["workers"] * 2 + ["sources"] * 3
    assert set(table["status"]) == {"complete"}
    assert table["images_per_s"].min() > 0
    assert table.filter(part="overlap")["batch_ms_mean"].is_null().all()
    assert table.filter(part="sources")["batch_ms_mean"].min() > 0
    assert pl.read_parquet(place / "out" / "results.parquet").height == 7
    assert (place / "out" / "0001" / "steps.csv").is_file()
    assert not list((place / "out" / "0001").glob("checkpoints/*"))
    assert json.loads((place / "out" / "0003" / "pipeline.json").read_text())["workers"] == 1


def test_stores_are_made_in_the_study_and_not_beside_the_images(place, done):
    stores = sorted(each.name.partition("-")[0] for each in (place / "out" / "stores").iterdir())
    assert stores == ["materialized", "tfrecord"]
    assert not (place / "images" / ".timesink").exists()


def test_its_figures_say_what_both_sides_found(place, done):
    facts = json.loads((place / "out" / "study.json").read_text())
    assert (facts["planned"], facts["measured"], facts["failed"]) == (7, 7, [])
    figures = {each["number"]: each for each in facts["figures"]}
    missing = [number for number, each in figures.items() if not each["rows"]]
    assert missing == ["Fig. 18", "Fig. 20"]
    assert [row["workers"] for row in figures["Fig. 19"]["rows"]] == ["1", "4"]
    assert {row["source"] for row in figures["Fig. 21"]["rows"]} == {"raw", "tfrecord"}
    flat = " ".join(done.stdout.split())
    for each in figures.values():
        if each["rows"]:
            assert each["here"] in flat
            assert each["found"] in flat
    assert "not measured: Fig. 18, Fig. 20" in flat
    assert max(len(line) for line in done.stdout.splitlines()) <= 80
    assert "out/report.html" in done.stderr
    assert "Fig. 19" in (place / "out" / "report.html").read_text()


def test_given_again_it_measures_nothing_and_makes_the_same(place, done):
    log = (place / "out" / "study.log").read_bytes()
    facts = json.loads((place / "out" / "study.json").read_text())
    again = start(place, "pipeline", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == facts
    assert (place / "out" / "study.log").read_bytes() == log


def test_a_report_of_its_directory_is_that_of_the_study(place, done, timesink, tmp_path):
    made = timesink("report", str(place / "out"), "--out", "page.html", "--figures", "drawn")
    assert made.returncode == 0, made.stderr
    assert "seed 000" in (tmp_path / "page.html").read_text()
    assert {each.name for each in (tmp_path / "drawn").iterdir()} >= {"fig-19.png", "fig-22.svg"}
    several = timesink("report", str(place / "out"), str(place / "out" / "0001"))
    assert several.returncode == 2
    assert "a study has a page of its own" in several.stderr


def test_one_run_of_it_has_its_own_report(place, done, timesink, tmp_path):
    made = timesink("report", str(place / "out" / "0001"), "--out", str(tmp_path / "one.html"))
    assert made.returncode == 0, made.stderr
    assert "seed 000" not in (tmp_path / "one.html").read_text()


def test_layers_are_read_by_iteration_and_device(tmp_path):
    place = place_of(tmp_path, LAYERS)
    finished = start(place, "layers", "--json")
    assert finished.returncode == 0, finished.stderr
    facts = json.loads(finished.stdout)
    mine = {each["title"]: each for each in facts["figures"] if "tiny:build" in each["title"]}
    profiling = mine["tiny:build with and without profiling"]
    assert [row["profiling"] for row in profiling["rows"]] == ["no profiling", "every step"]
    for device in ("CPU:0", "CPU:1"):
        lines = mine[f"tiny:build, batch 8: layers by iteration, {device}"]
        assert {row["layer"] for row in lines["rows"]} == {"conv1", "norm1", "output"}
        assert {row["iteration"] for row in lines["rows"]} == {2, 3, 4, 5, 6}
    error = mine["tiny:build, batch 8: percentage error"]
    assert "0.00 % is unexplained" in error["here"]
    # 41 of the seed's, and those of this network beside them
    assert len(facts["figures"]) == 41 + 1 + 2 + 3 + 2


def test_a_study_whose_controller_is_killed_goes_on_and_repeats_only_what_was_cut(tmp_path):
    place = place_of(tmp_path, PIPELINE)
    begun = subprocess.Popen(
        command("pipeline"), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    wait_for(place / "out" / "study.log", " ended {")
    wait_for(place / "out" / "study.log", " began {", count=2)
    begun.kill()
    begun.wait()
    ended = numbers(place, "ended")
    assert 0 < len(ended) < 7
    finished = start(place, "pipeline")
    assert finished.returncode == 0, finished.stderr
    assert f"going on: {len(ended)} of 7 are done" in finished.stderr
    assert "making " not in finished.stderr  # the stores were whole
    assert sorted(numbers(place, "ended")) == [1, 2, 3, 4, 5, 6, 7]
    facts = json.loads((place / "out" / "study.json").read_text())
    assert facts["measured"] == 7


def test_a_killed_run_is_a_failure_that_the_page_names(tmp_path):
    text = COMMON + "[parts.overlap.grid]\npipeline.mode = ['by_batch', 'pipelined']\n"
    place = place_of(tmp_path, text)
    begun = subprocess.Popen(
        command("pipeline"), cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    wait_for(place / "out" / "study.log", " began {")
    (first,) = numbers(place, "began")
    wait_for(place / "out" / f"{first:04d}" / "log.txt", " dataset {")
    os.kill(training_process(place / "out" / f"{first:04d}"), signal.SIGKILL)
    _, errors = begun.communicate(timeout=LIMIT_S)
    assert begun.returncode == 4
    assert b"1 of 2 runs failed" in errors
    assert "ended by SIGKILL" in (place / "out" / "report.html").read_text()
    again = start(place, "pipeline")
    assert again.returncode == 0, again.stderr
    assert "ended by SIGKILL" not in (place / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing.toml"], "nothing.toml: cannot be read"),
        (["--set", "training.network=resnet5"], "did you mean resnet50?"),
        (["--data", "nowhere"], "nowhere"),
        (["--set", "pipeline.stages=seed00"], "did you mean seed000?"),
    ],
)
def test_mistakes_are_told_before_anything_is_measured(tmp_path, timesink, words, message):
    done = timesink("study", "pipeline", "--quick", *words)
    assert done.returncode in (2, 3)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "studies").exists()


@pytest.mark.parametrize("name", ["pipeline", "layers"])
def test_a_dry_run_lists_what_would_be_measured(tmp_path, timesink, name):
    shown = timesink("study", name, "--quick", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert " to do: about " in shown.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_file_it_prints_can_be_given_back(tmp_path, timesink):
    (tmp_path / "mine.toml").write_text(timesink("study", "layers", "--toml").stdout)
    shown = timesink("study", "layers", "mine.toml", "--dry-run")
    assert "layers: network vgg11, batch_size 12" in shown.stdout


def test_tables_are_written_while_it_goes_on(tmp_path, monkeypatch):
    """By a clock that runs ahead: whoever looks after a minute sees what was measured by then."""
    parts = read_parts(_file(tmp_path), "small")
    seconds = iter(range(0, 1_000_000, 40))
    monkeypatch.setattr(
        "timesink.studies.conducting.carry_out",
        lambda *_: {"exit": 0, "reason": "", "kind": "", "wall_s": 1.0},
    )
    seen = []
    watcher = Watcher(lambda _line: None, lambda: next(seconds))
    with room_for("study", tmp_path / "out", force=False):
        conduct(
            "small",
            plan_of(parts),
            to_toml(parts),
            Asked(),
            tmp_path / "out",
            watcher,
            lambda ended: seen.append(len(ended)),
        )
    assert seen[-1] == 8
    assert len(seen) > 2
    assert seen == sorted(seen)


def test_only_one_is_at_work_in_a_directory(tmp_path):
    with (
        room_for("study", tmp_path / "out", force=False),
        pytest.raises(RunError, match="another study is at work there"),
        room_for("study", tmp_path / "out", force=False),
    ):
        pass


def _file(place: Path) -> Path:
    path = place / "small.toml"
    path.write_text("[grid]\ntraining.batch_size = [1, 2, 3, 4, 5, 6, 7, 8]\n")
    return path
