"""Traces of a run: which files it leaves, however it ends, and what the journal says of them."""

import json
import os
import signal

import pytest

from tests.runs.conftest import training_process, wait_for
from tests.runs.test_run_failures import on_a_small_disk
from tests.traced import read_events
from timesink.runs.directory import RunDirectory
from timesink.runs.journal import Event
from timesink.runs.record import record_of


def windows_of(out):
    return RunDirectory(out).record().windows


def steps_in(file):
    return sorted(event.stats["step_num"] for event in read_events(file) if event.name == "train")


def files_in(out):
    return sorted(path for path in (out / "profile").rglob("*") if path.is_file())


def check_files(out):
    """Every file the journal names is whole and holds just the steps it says."""
    windows = windows_of(out)
    for window in windows:
        file = out / window["file"]
        assert file.stat().st_size == window["bytes"]
        assert steps_in(file) == list(range(window["first"], window["last"] + 1))
    return [(window["process"], window["first"], window["last"]) for window in windows]


def test_a_run_with_two_windows_leaves_two_traces(run, workplace):
    done = run("profile.mode=window", "profile.windows=2", "profile.steps=3", "profile.start=4")
    assert done.returncode == 0, done.stderr
    out = workplace / "out"
    assert check_files(out) == [(1, 5, 7), (1, 11, 13)]
    assert files_in(out) == sorted(out / window["file"] for window in windows_of(out))
    # Taking them is on its own account, and the ledger is closed.
    (process,) = json.loads((out / "summary.json").read_text())["processes"]
    accounts = process["accounts_ns"]
    assert accounts["profile"] >= sum(w["start_ns"] + w["stop_ns"] for w in windows_of(out))
    assert accounts["steps"] > 0
    # So is making the map of ops, right after the first step.
    changes = [account for _, account in RunDirectory(out).record().processes[1].transitions]
    assert changes[:3] == ["tracing", "profile", "steps"]
    assert sum(accounts.values()) == round(process["wall_s"] * 1e9)
    # A marker begins where the journal says the step began.
    steps = RunDirectory(out).record().processes[1].steps.integers
    began = dict(zip(steps["iteration"], steps["begin_ns"], strict=True))
    marks = [e for e in read_events(out / windows_of(out)[0]["file"]) if e.name == "train"]
    assert {m.stats["step_num"]: m.stats["host_ns"] for m in marks} == {
        n: began[n] for n in (5, 6, 7)
    }


def test_every_step_after_the_first_is_traced_around_validation(run, workplace):
    done = run("profile.mode=every", "profile.steps=4", "training.validate_every=1")
    assert done.returncode == 0, done.stderr
    files = check_files(workplace / "out")
    traced = [step for _, first, last in files for step in range(first, last + 1)]
    assert traced == list(range(2, 25))
    # Validation after 6, 12 and 18 ends a file early; planned were 2–5, 6–9, 10–13, …
    assert files[:4] == [(1, 2, 5), (1, 6, 6), (1, 7, 9), (1, 10, 12)]


def test_a_run_that_is_not_profiled_leaves_no_trace(run, workplace):
    assert run("profile.mode=off", "training.iterations=6").returncode == 0
    assert not (workplace / "out" / "profile").exists()


def test_a_window_that_is_open_when_the_run_is_stopped_is_kept_and_resume_takes_new_ones(
    started, workplace, timesink
):
    process = started(
        "profile.mode=window",
        "profile.steps=1000",
        "profile.start=2",
        "training.iterations=600",
    )
    out = workplace / "out"
    wait_for(out / "log.txt", '"iteration": 6,')
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    ((_, first, last),) = check_files(out)
    assert first == 3
    assert 6 <= last < 300
    resumed = timesink("run", "--resume", "out", cwd=workplace)
    assert resumed.returncode == 0, resumed.stderr
    # The second process plans for the steps that are left: warm-up, then half of them.
    assert check_files(out)[1:] == [(2, last + 3, last + 2 + (600 - last - 2) // 2)]
    assert windows_of(out)[1]["file"].split("/")[3].endswith("_p2_w001")


def test_a_process_killed_while_tracing_leaves_its_earlier_files_whole(
    started, workplace, timesink
):
    process = started("profile.mode=every", "profile.steps=5", "training.iterations=100000")
    out = workplace / "out"
    wait_for(out / "log.txt", '"window": 3,')
    worker = training_process(out)
    os.kill(process.pid, signal.SIGKILL)
    os.kill(worker, signal.SIGKILL)
    process.wait()
    assert check_files(out)[:3] == [(1, 2, 6), (1, 7, 11), (1, 12, 16)]
    # Whatever stands under a final name is whole, named by the journal or not.
    for file in (out / "profile" / "plugins" / "profile").glob("[!.]*/*"):
        assert len(steps_in(file)) == 5


def test_a_disk_that_fills_up_with_traces_ends_the_traces_and_not_the_run(workplace):
    done = on_a_small_disk(
        workplace,
        "1m",
        "profile.mode=every",
        "profile.steps=10",
        "training.iterations=150",
        "training.checkpoint_every=0",
    )
    assert done.returncode == 0, done.stderr
    assert "no more traces: " in done.stderr
    assert "the disk is full" in done.stderr
    record = RunDirectory(workplace / "after").record()
    assert record.status == "complete"
    assert len(record.processes[1].steps.split) >= 150
    assert len(record.profile_failures) == 1
    assert len(check_files(workplace / "after")) >= 1
    assert len(files_in(workplace / "after")) == len(record.windows)


@pytest.mark.parametrize("mode", ["window", "every"])
def test_a_run_too_short_to_trace_is_a_run(mode, run, workplace):
    assert run(f"profile.mode={mode}", "training.iterations=1").returncode == 0
    assert windows_of(workplace / "out") == []


def test_the_record_keeps_the_windows_and_why_one_failed():
    window = {"window": 1, "first": 21, "last": 40, "file": "profile/x.pb", "bytes": 9}
    record = record_of(
        [
            Event(1, 1, "profile_window", window),
            Event(2, 2, "profile_window", window),
            Event(3, 2, "profile_failed", {"reason": "the disk is full"}),
        ]
    )
    assert record.windows == [{"process": 1, **window}, {"process": 2, **window}]
    assert record.profile_failures == ["the disk is full"]
