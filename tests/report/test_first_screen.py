"""The first screen of runs that went well, went wrong, or were not traced."""

import pytest

from tests.report.made_runs import PROBES, changed, row, traced
from tests.traced_run import write_run
from timesink.report.reading import read_run
from timesink.report.run_page import run_page


def screen(run):
    return run_page(read_run(run)).first


def missing(run):
    return [f"{each.what} {each.how}" for each in screen(run).missing]


def verdict(bound):
    return {
        "bound": bound,
        "share": 0.5,
        "sentence": "Word: the pipeline alone makes 900 images/s. More.",
        "first": "do this",
        "notes": ["the machine was busy"],
    }


def test_a_run_with_a_verdict_says_it_with_the_sink_and_what_to_do_first(tmp_path):
    first = screen(traced(tmp_path / "run", probes=PROBES))
    assert first.headline.startswith(("Compute-bound: ", "Balanced: ", "Input-bound: "))
    assert "conv1" in first.headline
    assert first.advice[0].startswith("First: ")


def test_an_input_bound_run_speaks_of_the_pipeline(tmp_path):
    run = traced(tmp_path / "run")
    rows = [row("input_wait", 0.8), row("layer", 0.2, layer="a", phase="forward")]
    first = screen(changed(run, verdict=verdict("input"), accounts=rows))
    assert first.headline.startswith("Input-bound: waiting for images takes 80")
    assert "decode is" in first.headline
    assert first.sentence == "The pipeline alone makes 900 images/s. More."
    assert [each.what for each in first.missing] == ["The machine was busy"]


def test_an_input_bound_run_that_waits_little_says_why_it_is(tmp_path):
    rows = [row("input_wait", 0.2), row("layer", 0.8, layer="a", phase="forward")]
    run = changed(traced(tmp_path / "run"), verdict=verdict("input"), accounts=rows)
    assert "making the images takes longer than computing" in screen(run).headline


def test_closure_and_own_cost_are_figures_of_the_first_screen(tmp_path):
    tiles = {tile.name: tile for tile in screen(traced(tmp_path / "run")).tiles}
    assert tiles["Closed"].figure == "10.00 of 10.00\u00a0ms"
    assert tiles["Closed"].note.startswith("unattributed 0.0")
    assert "within noise" in tiles["Timesink’s own cost"].note
    assert "first steps left out" in tiles["Speed"].note


def test_a_ledger_with_a_gap_warns(tmp_path):
    rows = [row("unattributed", 0.1), row("runtime", 0.9)]
    assert any(
        "in no account" in each for each in missing(changed(traced(tmp_path / "r"), accounts=rows))
    )


def test_an_untraced_run_shows_waiting_and_computing_and_how_to_trace(tmp_path):
    run = write_run(tmp_path / "run", traced=())
    run.write_tables()
    page = run_page(read_run(run))
    assert [each.account for each in page.stations] == ["input_wait", "compute", "python"]
    assert page.first.headline.startswith("Computing takes 80")
    assert any("--set profile.mode=window" in each for each in missing(run))


def test_a_run_without_a_verdict_says_how_to_get_one(tmp_path):
    assert any("profile.verdict=true" in each for each in missing(traced(tmp_path / "run")))


def test_a_verdict_that_failed_gives_its_reason_once(tmp_path):
    run = traced(tmp_path / "run", probes={"input": {"failed": "out of memory"}})
    (said,) = [each for each in missing(run) if "verdict" in each]
    assert "out of memory" in said


def append(run, line):
    with run.log.open("a") as log:
        log.write(line + "\n")


def test_a_failed_run_gives_its_error_first(tmp_path):
    run = write_run(tmp_path / "run", traced=())
    text = run.log.read_text().replace(
        " completed {}", ' error {"kind": "RunError", "message": "boom"}'
    )
    run.log.write_text(text)
    (bad,) = [each for each in screen(run).missing if each.bad]
    assert bad.what == "The run failed after 9 of 9 steps: boom"
    assert "--resume" in bad.how


def test_a_running_run_says_so(tmp_path):
    run = changed(traced(tmp_path / "run"), status="running")
    assert any(each.startswith("Still running") for each in missing(run))


def test_a_run_that_never_began_a_step_says_that(tmp_path):
    run = write_run(tmp_path / "run", steps=0, traced=())
    page = run_page(read_run(run))
    assert page.first.headline.startswith("No step was finished")
    assert "step" not in page.figures


@pytest.mark.parametrize("count", [1, 2])
def test_a_run_of_a_step_or_two_has_a_page(tmp_path, count):
    run = write_run(tmp_path / "run", steps=count, traced=())
    assert "step" in run_page(read_run(run)).figures
