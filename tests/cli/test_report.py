"""`timesink report`: where the page goes, what it refuses, and its figures as files."""

import pytest

from tests.report.made_runs import traced
from tests.traced_run import write_run
from timesink.runs.directory import runs_only


def test_a_runs_page_stands_in_its_directory(say, tmp_path):
    traced(tmp_path / "run")
    done = say("report", "run")
    assert (done.code, done.out) == (0, "")
    assert done.err == "wrote run/report.html\n"
    assert (tmp_path / "run" / "report.html").read_text().startswith("<!doctype html>")


def test_the_page_of_several_runs_stands_above_them_and_links_to_theirs(say, tmp_path):
    for name in ("a", "b"):
        traced(tmp_path / "runs" / name)
    assert say("report", "runs/a").code == 0
    assert say("report", "runs").err == "wrote runs/report.html\n"
    page = (tmp_path / "runs" / "report.html").read_text()
    assert 'href="a/report.html"' in page
    assert 'href="b/report.html"' not in page


def test_several_paths_are_several_runs_each_once(say, tmp_path):
    for name in ("a", "b"):
        traced(tmp_path / "runs" / name)
    done = say("report", "runs/a", "runs", "runs/b", "--out", "page.html")
    assert done.err == "wrote page.html\n"
    assert (tmp_path / "page.html").read_text().count('class="run"') == 2


def test_a_page_is_not_overwritten_unless_asked(say, tmp_path):
    traced(tmp_path / "run")
    (tmp_path / "run" / "report.html").write_text("mine")
    done = say("report", "run")
    assert done.code == 2
    assert "--force" in done.err
    assert (tmp_path / "run" / "report.html").read_text() == "mine"
    assert say("report", "run", "--force").code == 0
    assert (tmp_path / "run" / "report.html").read_text() != "mine"


def test_figures_are_written_as_png_and_svg(say, tmp_path):
    traced(tmp_path / "run")
    assert say("report", "run", "--figures", "figures").code == 0
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    stems = ("step", "iterations", "accounts", "distribution", "stages", "run")
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("png", "svg")}
    assert (tmp_path / "figures" / "step.png").read_bytes().startswith(b"\x89PNG")
    svg = (tmp_path / "figures" / "step.svg").read_text()
    assert svg.startswith("<svg")
    assert all(word in svg for word in ("input_wait", "runtime", "update"))


@pytest.mark.parametrize("words", [("report", "nowhere"), ("report", "."), ("report",)])
def test_without_a_run_nothing_is_written(say, tmp_path, words):
    done = say(*words)
    assert done.code != 0
    assert "Traceback" not in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_run_among_others_that_cannot_be_read_is_said_and_left_out(say, tmp_path):
    for name in ("a", "b"):
        traced(tmp_path / "runs" / name)
    broken = write_run(tmp_path / "runs" / "c", traced=())
    (broken.path / "summary.json").write_text("{")
    done = say("report", "runs")
    assert done.code == 0
    assert "c is left out" in done.err
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "c cannot be read" in page


def test_the_page_of_repetitions_does_not_keep_them_from_being_overwritten(say, tmp_path):
    for name in ("1", "2"):
        traced(tmp_path / "out" / name)
    assert say("report", "out").code == 0
    assert len(runs_only(tmp_path / "out")) == 2


def test_runs_come_as_people_count(say, tmp_path):
    for name in ("10", "9"):
        traced(tmp_path / "out" / name)
    assert say("report", "out").code == 0
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index(">9</a>") < page.index(">10</a>")
