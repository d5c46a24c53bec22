"""Run directories: names that never collide, foreign logs, damaged files."""

import json
import os
import threading

import pytest

from timesink.errors import OutputExistsError, RunFileError
from timesink.runs.directory import RunDirectory, collect_table, create, find_runs
from timesink.runs.journal import Journal


def journal(path, **experiment):
    path.mkdir(parents=True, exist_ok=True)
    log = Journal(path / "log.txt", 1, 0, clock_ns=lambda: 5)
    log.write("run", experiment={"name": "x", **experiment}, machine={})
    return log


def test_runs_that_start_in_the_same_second_have_directories_of_their_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = []
    threads = [
        threading.Thread(target=lambda: made.append(create(None, "same", force=False).path))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8


def test_force_empties_an_old_run_and_nothing_else(tmp_path):
    journal(tmp_path / "old")
    (tmp_path / "old" / "checkpoints" / "00000001").mkdir(parents=True)
    create(tmp_path / "old", "x", force=True)
    assert list((tmp_path / "old").iterdir()) == []
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputExistsError, match="not a directory"):
        create(tmp_path / "file", "x", force=True)


def test_other_programs_logs_are_passed_over(tmp_path):
    journal(tmp_path / "a" / "run")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "log.txt").write_text("2026-11-16 INFO hello\n")
    assert [run.path for run in find_runs(tmp_path)] == [tmp_path / "a" / "run"]
    with pytest.raises(RunFileError, match="not the journal of a run"):
        RunDirectory(tmp_path / "b").record()


def test_where_there_is_no_run_that_is_said(tmp_path):
    with pytest.raises(RunFileError, match="no run below it"):
        find_runs(tmp_path)
    with pytest.raises(RunFileError, match="no such directory"):
        find_runs(tmp_path / "nowhere")


def test_a_journal_with_strange_fields_is_one_line(tmp_path):
    journal(tmp_path).write("step", split="train")
    with pytest.raises(RunFileError, match="not a journal that this version reads"):
        RunDirectory(tmp_path).record()


def test_a_run_that_only_started_can_be_shown_and_collected(tmp_path):
    journal(tmp_path)
    summary = RunDirectory(tmp_path).summary()
    assert (summary["status"], summary["steps"]) == ("killed", 0)
    assert collect_table([RunDirectory(tmp_path)], tmp_path).height == 8


def test_a_summary_older_than_the_journal_is_not_believed(tmp_path):
    journal(tmp_path).write("process_started", utc="now")
    RunDirectory(tmp_path).write_tables()
    text = json.loads((tmp_path / "summary.json").read_text())
    assert text["status"] == "killed"
    later = Journal(tmp_path / "log.txt", 1, 0)
    later.write("completed")
    os.utime(tmp_path / "log.txt", (2**31, 2**31))
    assert RunDirectory(tmp_path).summary()["status"] == "complete"


def test_a_damaged_summary_is_one_line(tmp_path):
    journal(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    with pytest.raises(RunFileError, match=r"summary\.json: cannot be read"):
        RunDirectory(tmp_path).summary()
