"""`timesink layers`: any trace made into a table of layers."""

import json
import subprocess
import sys

import polars as pl
import pytest

from tests.traced_run import SESSION, opmap, write_run, write_session, write_trace
from timesink.runs.step_tables import LAYER_COLUMNS

FIRST_LINE = ",".join(LAYER_COLUMNS)


def test_a_foreign_trace_becomes_a_table_and_says_what_it_rests_on(say, tmp_path):
    write_session(tmp_path / "logs", "2026_01_01_00_00_00", markers=False)
    done = say("layers", "logs")
    assert done.code == 0
    assert "note: no map of ops (opmap.json): layers are told by names alone" in done.out
    assert "note: no step markers: a step is a call of `train_step`" in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.err == "wrote layers.csv\n"
    table = pl.read_csv("layers.csv")
    assert table.columns == list(LAYER_COLUMNS)
    conv = table.filter(layer="conv", phase="forward")
    assert conv["iteration"].to_list() == [1, 2, 3]
    assert conv["charged_ms"].to_list() == conv["op_ms"].to_list() == [3.0] * 3


@pytest.mark.parametrize(
    "path", [".", "plugins", "plugins/profile/s", "plugins/profile/s/a.xplane.pb"]
)
def test_a_log_directory_a_session_and_a_file_give_the_same(say, tmp_path, path):
    write_session(tmp_path, "s", host="a")
    done = say("layers", path, "--json", "--out", "table.csv")
    found = json.loads(done.out)
    assert found["source"]["hosts"] == ["a"]
    assert found["source"]["steps"] == {"count": 3, "found_by": "markers", "name": "train"}


def test_json_is_one_object_with_the_accounts_of_a_summary(say, tmp_path):
    run = write_run(tmp_path / "run")
    summary = run.write_tables()
    found = json.loads(say("layers", "run", "--json").out)
    assert found["schema_version"] == 1
    assert found["source"]["attribution"] == "optimized graph"
    assert found["source"]["steps"]["found_by"] == "journal"
    assert found["step_ms"] == {"mean": 10.0}
    for key in ("accounts", "explained", "layer_share", "percent_error", "memory", "slowdown"):
        assert found[key] == summary[key]
    assert (found["retraces"], found["retraced"], found["notes"]) == (0, [], [])


def test_of_a_run_it_writes_the_same_table_that_the_run_has(say, tmp_path):
    run = write_run(tmp_path / "run")
    run.write_tables()
    assert say("layers", "run").code == 0
    assert (tmp_path / "layers.csv").read_bytes() == (run.path / "layers.csv").read_bytes()


def test_groups_and_depth_are_in_the_table_too(say, tmp_path):
    write_run(tmp_path / "run", groups={"mine": ["conv*"]})
    assert say("layers", "run", "--depth", "1").code == 0
    assert set(pl.read_csv("layers.csv")["layer"]) == {"mine", "fc1"}


def test_a_map_can_be_named(say, tmp_path):
    write_trace(tmp_path / "t")
    (tmp_path / "mine.json").write_text(opmap().to_json())
    found = json.loads(say("layers", "t", "--opmap", "mine.json", "--json").out)
    assert {row["layer"] for row in found["accounts"]} == {"conv1", "fc1/dense", None}
    done = say("layers", "t", "--opmap", "t/host.xplane.pb")
    assert done.code == 4
    assert "not a map of ops" in done.err


def test_hosts_are_in_the_devices_and_one_can_be_chosen(say, tmp_path):
    for host in ("a", "b"):
        write_session(tmp_path / "logs", "s", host=host)
    done = say("layers", "logs", "--device", "b/CPU:0")
    assert done.out.count("Where a step's") == 1
    assert set(pl.read_csv("layers.csv")["device"]) == {"a/CPU:0", "b/CPU:0"}
    assert say("layers", "logs", "--device", "CPU:0").err.endswith("there are a/CPU:0, b/CPU:0\n")


def test_the_newest_session_is_read_or_all(say, tmp_path):
    for day in (1, 2):
        write_session(tmp_path / "logs", f"2026_01_0{day}_00_00_00", steps=[day])
    assert "read the newest of 2 sessions, 2026_01_02_00_00_00" in say("layers", "logs").out
    assert pl.read_csv("layers.csv")["iteration"].unique().to_list() == [2]
    found = json.loads(say("layers", "logs", "--all-sessions", "--json").out)
    assert found["source"]["sessions"] == ["2026_01_01_00_00_00", "2026_01_02_00_00_00"]
    both = pl.read_csv("layers.csv").select("process", "iteration").unique().sort("process")
    assert both.rows() == [(1, 1), (2, 2)]


def test_ops_of_a_layer_are_shown_and_in_the_json(say, tmp_path):
    write_trace(tmp_path / "t")
    assert "net/conv/Conv2D" in say("layers", "t", "--ops", "conv").out
    ops = json.loads(say("layers", "t", "--ops", "conv", "--json").out)["ops"]
    assert [(row["op"], row["phase"], row["op_ms"]) for row in ops] == [
        ("gradient_tape/net/conv/Conv2D/Grad", "backward", 3.0),
        ("net/conv/Conv2D", "forward", 3.0),
    ]
    assert say("layers", "t", "--ops", "cnv").err.endswith("did you mean conv?\n")


def test_a_table_it_wrote_is_replaced_and_nothing_else_is(say, tmp_path):
    write_trace(tmp_path / "t")
    (tmp_path / "layers.csv").write_text(FIRST_LINE + "\nold\n")
    assert say("layers", "t").code == 0
    assert "old" not in (tmp_path / "layers.csv").read_text()
    (tmp_path / "mine.csv").write_text("precious\n")
    refused = say("layers", "t", "--out", "mine.csv")
    assert refused.code == 2
    assert "--force" in refused.err
    assert (tmp_path / "mine.csv").read_text() == "precious\n"
    assert say("layers", "t", "--out", "mine.csv", "--force").code == 0
    assert (tmp_path / "mine.csv").read_text().startswith(FIRST_LINE)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "no such file"), (b"", "empty"), (b"hello", "not a trace"), (..., "truncated")],
)
def test_what_is_no_whole_trace_is_one_line_and_writes_nothing(say, tmp_path, content, said):
    if content is not None:
        whole = write_trace(tmp_path / "whole").read_bytes()
        content = whole[: len(whole) // 2] if content is ... else content
        (tmp_path / "t.xplane.pb").write_bytes(content)
    done = say("layers", "t.xplane.pb")
    assert (done.code, done.out) == (4, "")
    (line,) = done.err.splitlines()
    assert line.startswith("timesink: t.xplane.pb: ")
    assert said in line
    assert not (tmp_path / "layers.csv").exists()


def test_an_empty_directory_and_an_untraced_run_say_what_to_do(say, tmp_path):
    (tmp_path / "nothing").mkdir()
    assert "profile some steps" in say("layers", "nothing").err
    write_run(tmp_path / "run", traced=())
    assert "--set profile.mode=window" in say("layers", "run").err


@pytest.mark.parametrize(
    "words", [("layers", "run"), ("show", "run"), ("show", "run", "--ops", "conv1")]
)
def test_reading_a_traced_run_imports_no_framework(tmp_path, words):
    write_run(tmp_path / "run").write_tables()
    script = f"""
import sys
sys.argv = ["timesink", *{words!r}]
from timesink.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
assert not {{"tensorflow", "keras", "torch"}} & set(sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_a_run_is_read_by_its_session_alone_with_its_map(say, tmp_path):
    write_run(tmp_path / "run")
    found = json.loads(say("layers", f"run/{SESSION}", "--json").out)
    assert found["source"]["attribution"] == "optimized graph"
    assert found["source"]["steps"]["found_by"] == "markers"
