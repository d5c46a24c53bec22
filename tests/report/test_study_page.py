"""The page of a study: each figure of the seed beside ours, whatever the figures hold."""

import json
import re

import polars as pl
import pytest

from tests.report.made_runs import HOSTILE
from timesink.errors import RunFileError
from timesink.report.study_page import headline, is_study, study_page
from timesink.report.writing import make_study_report

SHAPES = ("bars", "stacked", "lines")


def figure(number, agreement="agrees", shape="bars", *, text="text", rows=None, series=True):
    """A figure as study.json has it."""
    given = [
        {"x": x, "kind": kind, "y": 10.0 * x + place, "low": 10.0 * x, "high": 10.0 * x + 3}
        for x in (1, 2, 3)
        for place, kind in enumerate(("one", text))
    ]
    return {
        "name": f"fig-{number}",
        "number": f"Fig. {number}",
        "title": text,
        "found": text,
        "here": text,
        "agreement": agreement,
        "note": text,
        "chart": {
            "shape": shape,
            "x": {"field": "x", "title": text},
            "y": {"field": "y", "title": "ms"},
            "series": {"field": "kind", "title": text} if series else None,
        },
        "rows": given if rows is None else rows,
    }


def study(place, figures, **facts):
    """Write a study's directory."""
    place.mkdir(parents=True, exist_ok=True)
    whole = {
        "schema_version": 1,
        "study": "pipeline",
        "seed": "000",
        "title": "What the input pipeline takes",
        "unit": "runs",
        "planned": 3,
        "measured": 2,
        "failed": [],
        "figures": figures,
        **facts,
    }
    (place / "study.json").write_text(json.dumps(whole))
    rows = [
        {"run": f"{n:04d}", "part": "overlap", "images_per_s": 10.0 * n, "kind": ""} for n in (1, 2)
    ]
    pl.DataFrame(rows).write_csv(place / "results.csv")
    (place / "machine.json").write_text(json.dumps({"cpu": {"model": "A Processor", "cores": 2}}))
    (place / "study.toml").write_text("name = 'pipeline'\n[training]\nnetwork = 'resnet50'\n")
    return place


def written(place, figures, **facts):
    folder = study(place, figures, **facts)
    made = make_study_report(folder, folder / "report.html")
    made.write(force=True)
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    figures = [
        *(figure(n, shape=shape) for n, shape in enumerate(SHAPES, 1)),
        *(figure(n + 10, "differs", shape=shape, series=False) for n, shape in enumerate(SHAPES)),
        figure(20, "not measured", rows=[]),
    ]
    return written(tmp_path_factory.mktemp("study") / "out", figures)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    figures = [figure(n, shape=shape, text=HOSTILE) for n, shape in enumerate(SHAPES)]
    failed = [{"run": "0003", "name": HOSTILE, "reason": HOSTILE, "kind": HOSTILE}]
    said = [{"text": HOSTILE}]
    place = tmp_path_factory.mktemp("study") / "out"
    return written(place, figures, failed=failed, sentences=said, title=HOSTILE)


def test_the_headline_counts_what_agrees(tmp_path):
    found = study_page(
        study(
            tmp_path,
            [
                figure(1),
                figure(2, "differs"),
                figure(3, "undecided"),
                figure(4, "not measured", rows=[]),
                figure(5),
                {**figure(6, "differs"), "number": "like Fig. 3"},  # of another network
            ],
        )
    )
    assert found.headline == (
        "What the input pipeline takes: of 5 figures of seed 000, 2 agree with the seed, "
        "1 differs, 1 is undecided and 1 was not measured on this machine."
    )


def test_the_headline_of_one_kind_and_of_nothing():
    assert headline("001", "T", (), "") == "T (seed 001): nothing was measured yet."


def test_a_study_that_goes_on_says_how_much_it_has(tmp_path):
    folder = study(tmp_path, [figure(1, "not measured")], planned=16, measured=4, unit="cells")
    found = study_page(folder)
    assert "of 4 of 16 cells that were measured, none of the seed's figures" in found.headline
    made = make_study_report(folder, folder / "report.html")
    assert "The study is not finished: 12 of 16 cells are left." in made.html
    whole = study_page(study(tmp_path, [figure(1)], planned=2))
    assert whole.left == 0


def test_a_column_whose_first_row_is_empty_is_sorted_as_numbers(tmp_path):
    folder = study(tmp_path, [figure(1)])
    rows = [{"run": "0001", "ms": None}, {"run": "0002", "ms": 10.7}, {"run": "0003", "ms": 2.9}]
    pl.DataFrame(rows).write_csv(folder / "results.csv")
    found = study_page(folder)
    assert [found.is_number(column) for column in (0, 1)] == [False, True]


def test_a_page_has_all_that_was_found(page):
    found = study_page(page.parent)
    assert list(found.figures) == ["fig-1", "fig-2", "fig-3", "fig-10", "fig-11", "fig-12"]
    assert found.columns == ("run", "part", "images_per_s")  # `kind` says nothing
    assert ("training.network", "resnet50") in found.study
    assert ("processor", "A Processor") in found.machine
    text = page.read_text()
    assert len(re.findall(r'data-figure="', text)) == 6
    assert "Fig. 20" in text


def test_every_shape_is_drawn_in_the_browser_at_every_width(browser, page):
    for width in (390, 820, 1400):
        browser.open(page, width)
        assert browser.complaints() == []
        drawn = browser.run(
            "return [...document.querySelectorAll('[data-figure] svg.marks')]"
            ".map(each => [each.getBoundingClientRect().width,"
            " each.querySelectorAll('path').length])"
        )
        assert len(drawn) == 6
        assert all(200 < size <= width and paths > 3 for size, paths in drawn)
        wider = "document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.run(f"return {wider}") <= 0
        asked = browser.requests()
        assert all(address.startswith(("file://", "data:")) for address in asked)


def test_bars_of_a_name_stand_beside_each_other_and_not_on_each_other(browser, page):
    browser.open(page)
    tops = browser.run(
        "return [...document.querySelectorAll('#figure-fig-1 path[aria-roledescription=bar]')]"
        ".map(each => Math.round(each.getBoundingClientRect().top))"
    )
    assert len(tops) == len(set(tops)) == 6


def test_figures_are_found_by_a_word_and_followed_by_a_link(browser, tmp_path):
    many = [figure(n, text=f"layer{n}" if n != 5 else "the one") for n in range(1, 12)]
    browser.open(written(tmp_path / "out", many))
    browser.all("#search")[0].send_keys("the one")
    assert browser.texts("#search-count") == ["1 of 11 lines"]
    (link,) = [each for each in browser.all("#figures-table a") if each.text == "Fig. 5"]
    link.click()
    assert browser.run("return location.hash") == "#figure-fig-5"
    top = "return document.getElementById('figure-fig-5').getBoundingClientRect().top"
    assert abs(browser.run(top)) < 200


def test_hostile_strings_are_text(browser, hostile):
    browser.open(hostile)
    assert browser.all("img") == []
    assert browser.complaints() == []
    assert any(HOSTILE in each for each in browser.texts(".missing.bad"))
    assert HOSTILE in browser.texts("h1")[0]
    assert HOSTILE in browser.run("return document.querySelector('#figure-fig-0 svg').textContent")


def test_no_home_directory_is_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = study(tmp_path / "mine", [figure(1, text=f"{tmp_path}/photos")])
    html = make_study_report(folder, folder / "report.html").html
    assert str(tmp_path) not in html
    assert "~/photos" in html


@pytest.mark.parametrize("text", ["{", '{"figures": 3}', '{"figures": [{}]}', "[]"])
def test_a_study_that_cannot_be_read_is_one_line(tmp_path, text):
    folder = study(tmp_path, [])
    (folder / "study.json").write_text(text)
    assert is_study(folder)
    with pytest.raises(RunFileError, match=r"study\.json"):
        study_page(folder)


def test_files_of_every_figure_are_written(page, tmp_path):
    made = make_study_report(page.parent, tmp_path / "page.html")
    files = made.write_figures(tmp_path / "drawn", force=False)
    assert len(files) == 12
    assert all(each.stat().st_size > 1000 for each in files)


def test_another_version_of_study_json_is_refused(tmp_path):
    with pytest.raises(RunFileError, match=r"not a study that this version reads.*99"):
        study_page(study(tmp_path, [figure(1)], schema_version=99))


def test_names_with_ends_of_lines_that_vega_takes_for_code_are_drawn(tmp_path):
    odd = "a\u2028b\u2029c"
    folder = study(tmp_path, [figure(1, text=odd)])
    spec = json.dumps(study_page(folder).figures["fig-1"].spec(), ensure_ascii=False)
    assert "a b c" in spec
    assert "\u2028" not in spec and "\u2029" not in spec
