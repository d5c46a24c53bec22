"""The books of a run's windows, and of traces that no journal tells of."""

import json
import os
from pathlib import Path

import polars as pl
import pytest

from tests.traced_run import MS, SESSION, STEP_NS, opmap, write_run, write_session, write_trace
from timesink.errors import RunFileError, TraceError
from timesink.ledger.opmap import LAYER
from timesink.runs.books import close_books
from timesink.runs.foreign import read_traces
from timesink.runs.layers import read_layers


def layers(books) -> set[str]:
    return set(books.ops.filter(account=LAYER)["layer"].drop_nulls())


def test_a_runs_steps_are_the_journals_and_its_layers_the_maps(tmp_path):
    run = write_run(tmp_path)
    books = close_books(tmp_path, run.record())
    assert (books.found_by, books.origin, books.notes) == ("journal", "optimized graph", ())
    assert layers(books) == {"conv1", "fc1/dense"}
    assert books.ops["iteration"].unique().sort().to_list() == [4, 5, 6]
    sums = books.ops.group_by("iteration").agg(pl.sum("charged_ns"))["charged_ns"]
    assert sums.to_list() == books.walls["wall_ns"].to_list() == [STEP_NS] * 3


def test_a_run_that_traced_nothing_has_no_books(tmp_path):
    assert close_books(tmp_path, write_run(tmp_path, traced=()).record()) is None


def test_a_broken_trace_is_noted_and_the_run_still_has_its_tables(tmp_path):
    run = write_run(tmp_path)
    file = tmp_path / SESSION / "host.xplane.pb"
    file.write_bytes(file.read_bytes()[:200])
    summary = run.write_tables()
    assert summary["traced_steps"] == 0
    (note,) = summary["notes"]
    assert "host.xplane.pb" in note
    assert (tmp_path / "steps.csv").is_file()
    assert not (tmp_path / "layers.csv").exists()


def test_one_broken_window_leaves_the_others(tmp_path):
    run = write_run(tmp_path)
    with run.log.open("a") as log:
        window = {"window": 2, "first": 8, "last": 9, "file": "profile/gone.xplane.pb"}
        log.write(f"0.1 1 profile_window {json.dumps(window)}\n")
    books = close_books(tmp_path, run.record())
    assert books.ops["iteration"].unique().sort().to_list() == [4, 5, 6]
    assert "gone.xplane.pb" in books.notes[0]


@pytest.mark.parametrize("elsewhere", ["../other.xplane.pb", "/etc/passwd", "profile/../../x"])
def test_a_journal_that_points_outside_of_its_run_is_not_followed(tmp_path, elsewhere):
    run = write_run(tmp_path / "run")
    write_trace(tmp_path, file="other.xplane.pb")
    text = run.log.read_text().replace(f"{SESSION}/host.xplane.pb", elsewhere)
    run.log.write_text(text)
    books = close_books(run.path, run.record())
    assert books.ops.is_empty()
    assert "outside" in books.notes[0]


def test_without_its_map_a_run_is_read_by_names_and_says_so(tmp_path):
    run = write_run(tmp_path)
    (tmp_path / "opmap.json").unlink()
    books = close_books(tmp_path, run.record())
    assert books.origin == "names"
    assert layers(books) == {"conv", "dense"}
    assert "names alone" in books.notes[0]


def test_a_map_that_cannot_be_read_is_noted(tmp_path):
    run = write_run(tmp_path)
    (tmp_path / "opmap.json").write_text("{}")
    assert "not a map of ops" in close_books(tmp_path, run.record()).notes[0]


def test_what_a_functions_retracing_cost_is_named(tmp_path):
    run = write_run(tmp_path, retraced=True)
    books = close_books(tmp_path, run.record())
    assert books.retraced == ("train_step",)
    places = books.ops.filter(account="python", iteration=4)["place"].to_list()
    assert "tracing train_step" in places


def test_a_foreign_trace_is_told_by_markers_and_names(tmp_path):
    file = write_trace(tmp_path)
    books, source = read_traces(file)
    assert (books.found_by, books.step_name, books.origin) == ("markers", "train", "names")
    assert source.files == (file,)
    assert books.notes == ("no map of ops (opmap.json): layers are told by names alone",)
    update = books.ops.filter(phase="update")
    assert update.select("layer", "charged_ns").unique().rows() == [(None, MS // 4)]


def test_without_markers_a_call_is_a_step_and_that_is_said(tmp_path):
    books, _ = read_traces(write_trace(tmp_path, markers=False))
    assert books.found_by == "calls"
    assert "no step markers: a step is a call of `train_step`" in books.notes


def test_without_calls_the_whole_file_is_a_step_and_that_is_said(tmp_path):
    books, _ = read_traces(write_trace(tmp_path, markers=False, calls=False))
    assert books.found_by == "whole file"
    assert books.ops["iteration"].unique().to_list() == [1]
    assert any("whole file" in note for note in books.notes)


@pytest.mark.parametrize("place", ["", SESSION, "profile"])
def test_the_map_of_a_run_without_its_journal_is_found_above_the_trace(tmp_path, place):
    write_run(tmp_path)
    (tmp_path / "log.txt").unlink()
    books, _ = read_traces(tmp_path / place)
    assert books.origin == "optimized graph"
    assert any(str(tmp_path / "opmap.json") in note for note in books.notes)


def test_a_map_that_lies_above_another_logdir_is_not_believed(tmp_path):
    (tmp_path / "opmap.json").write_text(opmap().to_json())
    write_session(tmp_path / "logs", "2026_01_01_00_00_00")
    assert read_traces(tmp_path / "logs")[0].origin == "names"


def test_a_map_of_another_network_is_suspected(tmp_path):
    file = write_trace(tmp_path, layers=("a", "b"))
    (tmp_path / "opmap.json").write_text(opmap().to_json())
    books, _ = read_traces(file)
    assert any("another network" in note for note in books.notes)


def test_the_newest_session_is_read_by_the_time_in_its_name_and_that_is_said(tmp_path):
    new = write_session(tmp_path, "2026_01_02_00_00_00", steps=[7])
    old = write_session(tmp_path, "2026_01_01_00_00_00", steps=[1])
    os.utime(old, ns=(2 * 10**18, 2 * 10**18))
    books, source = read_traces(tmp_path)
    assert source.files == (new,)
    assert source.sessions == ("2026_01_02_00_00_00",)
    assert any("newest of 2 sessions, 2026_01_02_00_00_00" in note for note in books.notes)


def test_all_sessions_are_numbered_as_processes(tmp_path):
    for number, name in enumerate(("2026_01_01_00_00_00", "2026_01_02_00_00_00")):
        write_session(tmp_path, name, steps=[number + 1])
    books, source = read_traces(tmp_path, all_sessions=True)
    assert source.sessions == ("2026_01_01_00_00_00", "2026_01_02_00_00_00")
    assert books.walls.select("process", "iteration").rows() == [(1, 1), (2, 2)]


def test_hosts_of_one_session_stand_before_their_devices(tmp_path):
    for host in ("a", "b"):
        write_session(tmp_path, "2026_01_01_00_00_00", host=host)
    books, _ = read_traces(tmp_path)
    assert books.hosts == ("a", "b")
    assert set(books.ops["device"]) == {"a/CPU:0", "b/CPU:0"}
    assert set(books.memory["allocator"]) == {"a/cpu", "b/cpu"}


def test_hosts_of_one_name_are_told_apart_by_their_files(tmp_path):
    for file in ("w0.xplane.pb", "w1.xplane.pb"):
        write_session(tmp_path, "2026_01_01_00_00_00", host="localhost", file=file)
    books, _ = read_traces(tmp_path)
    assert set(books.ops["device"]) == {"localhost/CPU:0", "w1/CPU:0"}


def test_one_broken_host_is_noted_and_all_broken_is_an_error(tmp_path):
    write_session(tmp_path, "2026_01_01_00_00_00", host="a")
    broken = tmp_path / "plugins/profile/2026_01_01_00_00_00/b.xplane.pb"
    broken.write_bytes(b"")
    books, _ = read_traces(tmp_path)
    assert any("b.xplane.pb" in note for note in books.notes)
    with pytest.raises(TraceError, match="empty"):
        read_traces(broken)


def test_a_step_that_takes_no_time_is_refused(tmp_path):
    from tests.traces.planes import Trace

    trace = Trace()
    trace.host().line("python").event("train", 5, 5, step_num=1)
    with pytest.raises(TraceError, match="takes any time"):
        read_traces(trace.write(tmp_path))


def test_a_run_whose_journal_tells_of_no_window_is_read_by_what_lies_in_it(tmp_path):
    write_run(tmp_path, traced=())
    with pytest.raises(RunFileError, match=r"profile\.mode=window"):
        read_layers(tmp_path)
    write_trace(Path(tmp_path, SESSION))
    assert read_layers(tmp_path).books.found_by == "markers"


def test_rescaled_times_are_those_of_a_run_and_unknown_elsewhere(tmp_path):
    write_run(tmp_path / "run", steps=40, traced=range(10, 20))
    assert read_layers(tmp_path / "run").table()["rescaled_ms"].null_count() == 0
    foreign = read_layers(tmp_path / "run" / SESSION)
    assert foreign.table()["rescaled_ms"].null_count() == foreign.table().height
