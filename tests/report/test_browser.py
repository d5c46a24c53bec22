"""The page in chromium, from disk: it asks nobody, draws, sorts, finds, and fits every width."""

import json

import pytest

from tests.report.made_runs import HOSTILE, PROBES, changed, layers, row, traced
from timesink.report.writing import make_report, runs_at

WIDTHS = (390, 820, 1400)
HOSTILE_NAME = "<img src=x onerror=alert(1)>\"'`{{7*7}}"


def written(paths, out):
    make_report(runs_at(paths), out).write(force=False)
    return out


@pytest.fixture(scope="module")
def one_run(tmp_path_factory):
    place = tmp_path_factory.mktemp("one")
    return written([traced(place / "run", probes=PROBES).path], place / "page.html")


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    place = tmp_path_factory.mktemp("several")
    for name, steps in (("slow", 60), ("quick", 70), ("long" * 20, 50)):
        traced(place / name, steps=steps, probes=PROBES)
    traced(place / "untraced", window=())
    traced(place / HOSTILE_NAME)
    return written([place], place / "report.html")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    stages = json.loads((traced(place / "other").path / "summary.json").read_text())["stages"]
    stages[0]["stage"] = HOSTILE
    rows = [
        row("layer", 0.6, layer=HOSTILE, phase="forward"),
        row("python", 0.4, place=HOSTILE),
    ]
    run = changed(
        traced(place / "run"),
        network=HOSTILE,
        accounts=rows,
        devices=[HOSTILE],
        notes=[HOSTILE],
        stages=stages,
        run_accounts=[{"account": HOSTILE, "s": 1.0, "share": 1.0}],
    )
    return written([run.path], place / "page.html")


def drawn_sizes(browser):
    return browser.run(
        "return [...document.querySelectorAll('[data-figure] > svg, [data-figure] svg.marks')]"
        ".map(each => [each.getBoundingClientRect().width, each.getBoundingClientRect().height,"
        " each.querySelectorAll('path').length])"
    )


def overflow(browser):
    return browser.run(
        "return document.scrollingElement.scrollWidth - document.documentElement.clientWidth"
    )


@pytest.mark.parametrize("page", ["one_run", "several", "hostile"])
@pytest.mark.parametrize("dark", [False, True])
def test_pages_ask_nobody_and_complain_of_nothing(browser, request, page, dark):
    browser.open(request.getfixturevalue(page), dark=dark)
    asked = browser.requests()
    assert asked
    assert all(address.startswith(("file://", "data:", "about:")) for address in asked)
    assert [a for a in asked if a.startswith("file://")] == [asked[0]]
    assert browser.complaints() == []


@pytest.mark.parametrize("page", ["one_run", "several", "hostile"])
def test_every_figure_is_drawn(browser, request, page):
    browser.open(request.getfixturevalue(page))
    sizes = drawn_sizes(browser)
    assert len(sizes) == len(browser.all("[data-figure]")) > 1
    assert all(width > 300 and height > 30 and paths > 0 for width, height, paths in sizes)


@pytest.mark.parametrize("page", ["one_run", "several", "hostile"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_wider_than_the_screen(browser, request, page, width):
    browser.open(request.getfixturevalue(page), width)
    assert overflow(browser) <= 0
    assert all(each[0] <= width for each in drawn_sizes(browser))


@pytest.mark.parametrize("width", WIDTHS)
def test_the_answer_is_on_the_first_screen(browser, one_run, width):
    browser.open(one_run, width)
    bottom = "return document.querySelector(arguments[0]).getBoundingClientRect().bottom"
    assert browser.run(bottom, "h1") < 450
    assert browser.run(bottom, "#figure-step svg") < 900
    (tile,) = [text for text in browser.texts(".tiles > div") if text.startswith("Biggest sink")]
    assert "conv1 62.0" in tile


def test_the_bars_colours_are_listed_once(browser, one_run):
    browser.open(one_run)
    assert browser.all("#figure-step svg .role-legend") == []
    assert browser.all("#figure-accounts svg .role-legend") != []
    accounts = browser.texts("#answer .stations .name b")
    assert accounts[:3] == ["input_wait", "forward", "backward"]


def names(browser):
    return browser.texts("#ledger-table tbody:not([hidden]) tr:first-child th")


def test_a_click_on_a_header_sorts_and_a_second_one_the_other_way(browser, one_run):
    browser.open(one_run)
    by_time = names(browser)
    assert by_time[0].startswith("conv1")
    share = browser.all("#ledger-table thead button")[5]
    share.click()
    assert names(browser)[0].startswith("conv1")
    share.click()
    assert names(browser)[0].startswith("unattributed")
    browser.all("#ledger-table thead button")[0].click()
    assert names(browser) == sorted(by_time, key=str.lower)
    (sorted_by,) = browser.all("#ledger-table th[aria-sort=ascending]")
    assert sorted_by.text.startswith("layer or account")


def test_what_was_not_measured_comes_last_whichever_way(browser, one_run):
    browser.open(one_run)
    forward = browser.all("#ledger-table thead button")[1]
    for _ in range(2):
        forward.click()
        assert not names(browser)[-1].startswith(("conv1", "fc1"))


def test_search_keeps_the_lines_that_have_the_words(browser, one_run):
    browser.open(one_run)
    (search,) = browser.all("#search")
    search.send_keys("FC1 den")
    (found,) = names(browser)
    assert found.startswith("fc1/dense")
    assert browser.texts("#search-count")[0].startswith("1 of ")


def test_hostile_strings_are_text(browser, hostile):
    browser.open(hostile)
    assert browser.all("img") == []
    assert HOSTILE in browser.texts("header .what")[0]
    assert names(browser)[0] == HOSTILE
    assert HOSTILE in browser.texts("tr.place th")
    figure = "return document.querySelector('#figure-run svg').textContent"
    assert "</script><img src=x onerror=alert(1)>" in browser.run(figure)
    bar = browser.all("#figure-run svg path[aria-roledescription=bar]")[0]
    browser.hover(bar)
    assert HOSTILE in browser.texts("#vg-tooltip-element.visible")[0]
    assert browser.all("img") == []
    assert browser.complaints() == []


def test_runs_are_sorted_and_each_opens_from_the_table(browser, several):
    browser.open(several)
    assert len(browser.texts("#runs-table tbody th")) == 5
    assert HOSTILE_NAME in browser.texts("#runs-table tbody th")
    assert browser.all("img") == []
    status = [button for button in browser.all("#runs-table button") if button.text == "run"]
    status[0].click()
    assert browser.texts("#runs-table tbody th")[1].startswith("long")
    first = browser.all("#runs-table tbody a")[2]
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = false })")
    first.click()
    (opened,) = browser.wait_for("details[open] > summary b")
    assert opened.text == "quick"


def test_a_network_of_500_layers_is_searched(browser, tmp_path):
    run = changed(traced(tmp_path / "run"), accounts=layers(500))
    browser.open(written([run.path], tmp_path / "page.html"))
    (search,) = browser.all("#search")
    search.send_keys("conv_123")
    assert names(browser) == ["block_123/conv_123"]


def test_letters_are_light_on_a_dark_page_and_dark_on_a_light_one(browser, one_run):
    def brightness():
        colour = browser.run(
            "return getComputedStyle(document.querySelector('#figure-step svg text')).fill"
        )
        return sum(int(each) for each in colour.strip("rgb()").split(",")[:3])

    browser.open(one_run)
    light = brightness()
    browser.open(one_run, dark=True)
    assert brightness() > 600 > 300 > light
