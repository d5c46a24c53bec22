"""`timesink show`: the stages of the input pipeline and the verdict, at 80 columns."""

import json

import polars as pl
import pytest

from tests.traced_run import write_run
from timesink.cli._stages import print_stages

ALONE = {
    "input": {"images_per_s": 900.0, "wall_s": 3.0, "cpu_s": 6.0},
    "compute": {"images_per_s": 2000.0, "wall_s": 3.0, "cpu_s": 6.0},
}


@pytest.fixture
def shown(say, tmp_path):
    """Write a run with its tables, and show it."""

    def show(**made):
        write_run(tmp_path / "run", **made).write_tables()
        done = say("show", "run")
        assert done.code == 0, done.err
        assert max(map(len, done.out.splitlines())) <= 80
        return done.out

    return show


def rows_of(text, first_word):
    return [line.split() for line in text.splitlines() if line.startswith(first_word)]


def test_the_stages_stand_below_the_ledger_with_their_work_and_share(shown):
    text = shown(pipeline=True, probes=ALONE)
    # Two threads, 8 of 9.5 ms a step each; a step has 8 images.
    assert rows_of(text, "decode") == [["decode", "2.000", "84.2%", "████████", "1.60"]]
    assert rows_of(text, "resize")[0][:3] == ["resize", "0.250", "10.5%"]
    assert text.index("closed: ") < text.index("The input pipeline: 2.250 ms of work an image")
    assert "over 3 traced steps" in text


def test_what_is_of_no_stage_is_listed_and_not_counted_as_explained(shown):
    text = shown(pipeline=True, probes=ALONE)
    assert "stages explain 94.7 % of the pipeline threads' busy time" in text
    assert "of no stage: strange:Strange, 0.125 ms an image" in text


def test_it_is_said_how_much_of_the_work_the_step_waited_for(shown):
    text = shown(pipeline=True, probes=ALONE)
    assert "the step waited 1.00 ms for its images, which need 19.00 ms of the pipeline's" in text


def test_a_run_without_a_pipeline_of_ours_shows_no_stages(shown, tmp_path):
    text = shown()
    assert "The input pipeline" not in text
    assert "the step waited" not in text
    assert not (tmp_path / "run" / "stages.csv").exists()


def test_two_windows_are_summed(tmp_path):
    run = write_run(tmp_path / "run", pipeline=True, probes=ALONE)
    (window,) = [line for line in run.log.read_text().splitlines() if "profile_window" in line]
    with run.log.open("a") as log:
        log.write(window + "\n")
    rows = {row["stage"]: row for row in run.write_tables()["stages"]}
    assert rows["decode"]["work_ms_per_image"] == pytest.approx(2)
    assert rows["decode"]["parallelism"] == pytest.approx(1.6)
    assert rows["decode"]["calls_per_image"] == pytest.approx(2 / 8)


def test_stages_csv_is_the_table_with_what_was_not_measured_empty(shown, tmp_path):
    shown(pipeline=True, probes=ALONE)
    table = pl.read_csv(tmp_path / "run" / "stages.csv")
    assert table.columns == [
        *("stage", "work_ms_per_image", "cpu_ms_per_image", "share", "parallelism"),
        *("calls_per_image", "ms_per_call", "bytes_in", "bytes_out"),
    ]
    assert table["stage"].to_list() == ["decode", "resize"]
    assert table["cpu_ms_per_image"].null_count() == 2


def test_the_verdict_is_the_last_thing_that_is_shown(shown):
    text = shown(pipeline=True, probes=ALONE)
    last = text.rstrip().rpartition("\n\n")[2]
    assert last.startswith(
        "Input-bound: the pipeline alone makes 900 images/s, the network alone could take"
    )
    assert "First: decode is 84 % of the pipeline's work: `timesink dataset convert" in last
    # A figure is not parted from its sign.
    assert not any(line.lstrip().startswith("%") for line in last.splitlines())


def test_why_there_is_no_verdict_is_a_note(shown):
    text = shown(probes={"input": {"failed": "it took longer than 120 s"}})
    note = " ".join(text.partition("note: ")[2].split())
    assert note.startswith(
        "no verdict: input alone could not be measured: it took longer than 120 s"
    )
    assert "bound" not in text


def test_json_has_the_verdict_and_the_stages(say, tmp_path):
    write_run(tmp_path / "run", pipeline=True, probes=ALONE).write_tables()
    summary = json.loads(say("show", "run", "--json").out)
    assert summary["verdict"]["bound"] == "input"
    assert summary["verdict"]["both_images_per_s"] == pytest.approx(800)
    assert [row["stage"] for row in summary["stages"]] == ["decode", "resize"]
    assert summary["stages_explained"] == pytest.approx(18 / 19)
    assert summary["stages_unplaced"][0]["name"] == "strange:Strange"
    assert summary["input_per_step"] == pytest.approx({"work_ms": 19, "wait_ms": 1})


def test_a_summary_from_before_there_were_stages_is_shown(say, tmp_path):
    run = write_run(tmp_path / "run")
    summary = run.write_tables()
    for key in ("stages_explained", "stages_unplaced", "input_per_step"):
        del summary[key]
    (run.path / "summary.json").write_text(json.dumps(summary))
    assert say("show", "run").code == 0


def test_columns_for_cpu_time_and_bytes_fit_beside_the_others(capsys, monkeypatch):
    monkeypatch.setattr("timesink.cli._stages.out._width", 80)
    row = {
        "stage": "random_resized_crop_of_a_long_name",
        "kind": "stage",
        "work_ms_per_image": 1234.5,
        "cpu_ms_per_image": 12.3456,
        "share": 1.0,
        "parallelism": 1.5,
        "calls_per_image": 1.0,
        "bytes_in": 65_432,
        "bytes_out": 480_000,
    }
    print_stages([row], explained=1.0)
    text = capsys.readouterr().out
    assert "65.4 kB" in text
    assert "480 kB" in text
    assert "12.346" in text
    assert max(map(len, text.splitlines())) <= 80
