"""The page as a file: nothing is loaded, nothing is markup that should be text, it stays small."""

import base64
import hashlib
import json
import re
import shutil

import pytest

from tests.report.made_runs import HOSTILE, PROBES, changed, layers, row, traced
from timesink.report.writing import make_report, runs_at

MB = 1_000_000


def html_of(*runs, out=None):
    found = runs_at([run.path for run in runs])
    return make_report(found, out or runs[0].path / "report.html").html


def markup_of(page):
    """Give the page without the text of its scripts and styles."""
    return re.sub(r"(<(script|style)\b[^>]*>).*?</\2>", r"\1", page, flags=re.DOTALL)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return html_of(traced(tmp_path_factory.mktemp("page") / "run", probes=PROBES))


def test_the_policy_allows_exactly_the_pieces_that_are_there(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe-eval" not in policy
    for tag, rule in (("script", "script-src"), ("style", "style-src-elem")):
        pieces = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = {
            f"'sha256-{base64.b64encode(hashlib.sha256(piece.encode()).digest()).decode()}'"
            for piece in pieces
        }
        allowed = re.search(rf"{rule} ([^;]+);", policy)[1].split()
        assert set(allowed) == digests


def test_no_element_points_outside(page):
    markup = markup_of(page)
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"(?!data:)", markup)
    assert not re.findall(r"https?://", markup)


def test_figures_are_json_that_is_not_executed(page):
    text = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)[1]
    assert "<" not in text
    assert {"step", "iterations", "distribution", "stages", "run"} <= set(json.loads(text)["specs"])


def test_each_figure_has_its_rows_behind_a_link(page):
    links = re.findall(r'download="(\w+)\.csv" href="data:text/csv;base64,([^"]+)"', page)
    rows = {name: base64.b64decode(text).decode().splitlines() for name, text in links}
    assert rows["step"][0] == "device,account,meaning,ms,share,from_ms,to_ms"
    assert any(line.startswith("CPU:0,input_wait,") for line in rows["step"])
    assert set(rows) == set(re.findall(r'data-figure="(\w+)"', page))


def test_strings_of_a_run_are_never_markup(tmp_path):
    rows = [
        row("layer", 0.5, layer=HOSTILE, phase="forward"),
        row("python", 0.5, place=HOSTILE),
    ]
    stages = json.loads((traced(tmp_path / "model").path / "summary.json").read_text())["stages"]
    stages[0]["stage"] = HOSTILE
    run = changed(
        traced(tmp_path / "run"),
        network=HOSTILE,
        error=HOSTILE,
        status="failed",
        accounts=rows,
        devices=[HOSTILE],
        stages=stages,
        notes=[HOSTILE],
        run_accounts=[{"account": HOSTILE, "s": 1.0, "share": 1.0}],
    )
    page = markup_of(html_of(run))
    assert "<img" not in page
    assert "onerror=alert" in page  # as text
    assert "{{7*7}}" in page


def test_home_is_not_shown(tmp_path, monkeypatch):
    run = traced(tmp_path / "me" / "run")
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    page = html_of(changed(run, status="failed", error=f"no room: {tmp_path}/me/run/profile"))
    assert str(tmp_path) not in page
    assert "<code>~/run</code>" in page


def test_a_network_of_500_layers_is_a_page_below_10_mb(tmp_path):
    page = html_of(changed(traced(tmp_path / "run"), accounts=layers(500)))
    assert page.count("block_499/conv_499") == 1
    assert len(page.encode()) < 10 * MB


def test_a_page_of_100_runs_of_500_layers_is_below_10_mb(tmp_path):
    run = changed(traced(tmp_path / "runs" / "0"), accounts=layers(500))
    for number in range(1, 100):
        shutil.copytree(run.path, tmp_path / "runs" / str(number))
    page = make_report(runs_at([tmp_path / "runs"]), tmp_path / "runs" / "report.html").html
    assert page.count('class="run"') == 100
    assert len(page.encode()) < 10 * MB


def test_a_summary_from_before_there_were_ledgers_has_a_page(tmp_path):
    run = traced(tmp_path / "run", window=())
    path = run.path / "summary.json"
    summary = json.loads(path.read_text())
    for key in ("traced", "traced_steps", "look_first", "notes", "memory", "retraced"):
        del summary[key]
    path.write_text(json.dumps(summary))
    assert "No step was traced" in html_of(run)


def test_a_command_in_the_advice_is_set_as_code_and_stays_text(tmp_path):
    verdict = {
        "bound": "input",
        "share": 0.5,
        "sentence": "Input-bound: so.",
        "first": "`timesink pipeline <b>` says more, `alone",
        "notes": [],
    }
    odd = html_of(changed(traced(tmp_path / "odd"), verdict=verdict))
    assert "First: `timesink pipeline &lt;b&gt;` says more, `alone." in odd
    verdict["first"] = "`timesink pipeline <b>` says more"
    even = html_of(changed(traced(tmp_path / "even"), verdict=verdict))
    assert "First: <code>timesink pipeline &lt;b&gt;</code> says more." in even
