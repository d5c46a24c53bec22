"""A run from one file: what it leaves, and that it can be repeated, stopped, killed and resumed."""

import json
import os
import signal
from pathlib import Path

import polars as pl
import pytest

from tests.runs.conftest import losses, training_process, wait_for
from timesink.experiment import load
from timesink.runs.directory import RunDirectory

LONG = ("training.iterations=100000", "training.deterministic=true")


def test_a_run_leaves_its_whole_directory(run, workplace, timesink):
    done = run("training.validate_every=2")
    assert done.returncode == 0, done.stderr
    out = workplace / "out"
    names = {path.name for path in out.iterdir()}
    assert names >= {
        "experiment.toml",
        "machine.json",
        "log.txt",
        "steps.csv",
        "summary.csv",
        "summary.json",
        "ledger.parquet",
        "checkpoints",
    }
    assert not [name for name in names if name.endswith(".tmp") or name == ".reserve"]
    # The experiment is complete and reads back.
    assert load(out / "experiment.toml").training.network == "tiny:build"
    assert json.loads((out / "machine.json").read_text())["cpu"]["cores"] >= 1
    # Every iteration has its times and figures.
    steps = pl.read_csv(out / "steps.csv")
    train = steps.filter(split="train")
    assert train["iteration"].to_list() == list(range(1, 25))
    assert train["epoch"].to_list() == [1 + k // 6 for k in range(24)]
    assert (train["data_ms"] >= 0).all()
    assert (train["step_ms"] >= train["data_ms"] + train["compute_ms"]).all()
    assert train["topn"].to_list() == [1.0] * 24  # top-5 of three classes
    # The last step's summary, the validations and the ledger agree.
    summary = json.loads((out / "summary.json").read_text())
    assert summary["status"] == "complete"
    assert summary["steps"] == 24
    assert summary["loss"] == train["loss"][-1]
    assert [row["epoch"] for row in summary["validation"]["history"]] == [2, 4]
    assert summary["validation"]["images"] == 12
    assert summary["retraces"] == 0
    assert summary["peak_memory_bytes"] > 50e6
    ledger = pl.read_parquet(out / "ledger.parquet")
    wall_ns = round(summary["processes"][0]["wall_s"] * 1e9)
    assert abs(ledger["charged_ns"].sum() - wall_ns) <= 1
    accounts = dict(ledger.select("account", "charged_ns").iter_rows())
    assert accounts["unattributed"] < 0.01 * wall_ns
    assert all(accounts[name] > 0 for name in ("startup", "tracing", "steps", "validation"))
    # The next command to type is printed, and works.
    assert "Next: timesink show out" in done.stderr
    assert timesink("show", "out", cwd=workplace).returncode == 0


def test_two_deterministic_runs_are_equal_loss_for_loss_whatever_the_workers(run, workplace):
    assert run("pipeline.workers=1", out="a").returncode == 0
    assert run("pipeline.workers=4", out="b").returncode == 0
    assert losses(workplace / "a") == losses(workplace / "b")
    assert len(losses(workplace / "a")) == 24


def test_another_seed_gives_other_losses(run, workplace):
    assert run("training.iterations=2", out="a").returncode == 0
    assert run("training.iterations=2", "seed=1", out="b").returncode == 0
    assert losses(workplace / "a") != losses(workplace / "b")


def test_a_run_killed_at_any_moment_resumes_to_the_same_losses(run, started, workplace, timesink):
    assert run(out="whole").returncode == 0
    # Killed in the middle, supervisor and all, between checkpoints.
    process = started("training.checkpoint_every=3")
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 8,')
    worker = training_process(out)
    os.kill(process.pid, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    process.wait()
    shown = timesink("show", "out", "--json", cwd=workplace)
    assert json.loads(shown.stdout)["status"] == "killed"
    resumed = timesink("run", "--resume", "out", cwd=workplace)
    assert resumed.returncode == 0, resumed.stderr
    assert losses(out) == losses(workplace / "whole")
    summary = json.loads((out / "summary.json").read_text())
    assert [process["process"] for process in summary["processes"]] == [1, 2]
    assert summary["processes"][1]["resumed_at"] in (6, 9, 12, 15, 18, 21)
    for process in summary["processes"]:
        assert sum(process["accounts_ns"].values()) == round(process["wall_s"] * 1e9)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_stops_at_the_end_of_the_step_with_a_checkpoint(
    number, code, started, workplace, timesink
):
    process = started(*LONG)
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 3,')
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert "timesink run --resume out" in output
    assert "Traceback" not in output
    summary = json.loads((out / "summary.json").read_text())
    assert summary["status"] == "stopped"
    assert summary["checkpoints"][-1] == summary["steps"] >= 3
    assert summary["run_accounts"][-1]["account"] == "unattributed"
    assert summary["run_accounts"][-1]["s"] == 0


def test_the_training_process_stops_with_a_checkpoint_when_its_supervisor_is_killed(
    started, workplace, timesink
):
    process = started(*LONG)
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 3,')
    os.kill(process.pid, signal.SIGKILL)
    wait_for(out / "log.txt", " stopped {")
    record = RunDirectory(out).record()
    assert record.checkpoints
    assert record.status == "stopped"


def test_a_second_process_is_kept_out_of_a_run(started, workplace, timesink):
    started(*LONG)
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 1,')
    assert (
        json.loads(timesink("show", "out", "--json", cwd=workplace).stdout)["status"] == "running"
    )
    second = timesink("run", "--resume", "out", cwd=workplace)
    assert second.returncode == 4
    assert "another process is working on this run" in second.stderr
    forced = timesink("run", "mine.toml", "--out", "out", "--force", cwd=workplace)
    assert forced.returncode == 4
    assert "another process is working on this run" in forced.stderr


def test_a_run_whose_training_process_lives_on_is_not_resumed(started, workplace, timesink):
    process = started(*LONG)
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 1,')
    worker = training_process(out)
    os.kill(worker, signal.SIGSTOP)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    try:
        second = timesink("run", "--resume", "out", cwd=workplace)
        assert second.returncode == 4
        assert "another process is working on this run" in second.stderr
    finally:
        os.kill(worker, signal.SIGKILL)


def test_a_complete_run_is_not_resumed(run, workplace, timesink):
    assert run("training.iterations=2").returncode == 0
    again = timesink("run", "--resume", "out", cwd=workplace)
    assert again.returncode == 4
    assert "nothing to resume" in again.stderr


def test_a_run_is_not_overwritten_without_force(run, workplace):
    assert run("training.iterations=2").returncode == 0
    before = (workplace / "out" / "log.txt").read_bytes()
    refused = run("training.iterations=2")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert (workplace / "out" / "log.txt").read_bytes() == before


def test_force_never_deletes_what_is_not_a_run(run, workplace):
    (workplace / "out").mkdir()
    (workplace / "out" / "thesis.txt").write_text("years of work")
    refused = run("training.iterations=2")
    assert refused.returncode == 2
    assert (workplace / "out" / "thesis.txt").read_text() == "years of work"


def test_repetitions_run_each_in_a_directory_of_its_own(run, workplace, timesink):
    done = run("training.iterations=3", "repetitions=2")
    assert done.returncode == 0, done.stderr
    assert losses(workplace / "out" / "1") == losses(workplace / "out" / "2")
    started = [
        json.loads((workplace / "out" / n / "summary.json").read_text())["processes"][0]
        for n in "12"
    ]
    assert started[0]["started_utc"] != started[1]["started_utc"]
    assert "mean ± sd" in done.stdout
    collected = timesink("collect", "out", cwd=workplace)
    assert collected.returncode == 0, collected.stderr
    table = pl.read_csv(workplace / "out" / "runs.csv")
    assert table["run"].unique(maintain_order=True).to_list() == [1, 2]
    assert table.height == 16


def test_collect_makes_the_same_tables_from_the_log_alone(run, workplace, timesink):
    assert run("training.iterations=3").returncode == 0
    out = workplace / "out"
    kept = {
        name: (out / name).read_bytes() for name in ("steps.csv", "summary.csv", "summary.json")
    }
    alone = workplace / "alone"
    alone.mkdir()
    (alone / "log.txt").write_bytes((out / "log.txt").read_bytes())
    assert timesink("collect", "alone", cwd=workplace).returncode == 0
    assert {name: (alone / name).read_bytes() for name in kept} == kept


def test_a_remote_dataset_is_brought_before_training(run, workplace):
    (workplace / "images").rename(workplace / "store")
    remote = f'dataset.remote="file://{workplace / "store"}"'
    done = run(remote, "training.iterations=2", 'dataset.classes=["class0", "class2"]')
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (workplace / "images" / "train").iterdir()) == [
        "class0",
        "class2",
    ]
    assert json.loads((workplace / "out" / "summary.json").read_text())["dataset"]["train"] == 32


def test_with_no_dataset_named_a_small_one_is_made(run, workplace, timesink):
    settings = [
        "training.network=tiny:build",
        "training.iterations=2",
        "pipeline.image_size=32",
        "training.validation=false",
    ]
    overrides = [word for setting in settings for word in ("--set", setting)]
    done = timesink("run", *overrides, cwd=workplace)
    assert done.returncode == 0, done.stderr
    (out,) = (workplace / "runs" / "experiment").iterdir()
    assert json.loads((out / "summary.json").read_text())["steps"] == 2
    assert (workplace / "datasets" / "generated" / "train").is_dir()
    assert str(Path.home()) not in (out / "experiment.toml").read_text()


def test_a_run_whose_images_have_changed_is_not_resumed(started, workplace, timesink):
    process = started(*LONG)
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 3,')
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    (workplace / "images" / "train" / "class0" / "000.jpg").unlink()
    again = timesink("run", "--resume", "out", cwd=workplace)
    assert again.returncode == 4
    assert "the images are not those of the checkpoint" in again.stderr


def test_force_overwrites_repetitions_and_nothing_that_lies_beside_them(workplace, timesink):
    command = ["run", "mine.toml", "--out", "out", "--set", "training.iterations=1"]
    command += ["--set", "repetitions=2"]
    assert timesink(*command, cwd=workplace).returncode == 0
    first = (workplace / "out" / "2" / "log.txt").read_bytes()
    assert timesink(*command, cwd=workplace).returncode == 2
    assert timesink(*command, "--force", cwd=workplace).returncode == 0
    assert (workplace / "out" / "2" / "log.txt").read_bytes() != first
    (workplace / "out" / "notes.txt").write_text("mine")
    assert timesink(*command, "--force", cwd=workplace).returncode == 2
    assert (workplace / "out" / "notes.txt").read_text() == "mine"
