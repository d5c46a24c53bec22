"""A page's values made into one HTML file: no network, no foreign script, every string as text."""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
from markupsafe import Markup, escape

import timesink
from timesink.report import text
from timesink.report.figure import VEGA_LITE, Figure
from timesink.report.run_page import RunPage
from timesink.report.runs_page import RunsPage
from timesink.report.study_page import StudyPage
from timesink.report.theme import CONFIG

TEMPLATES = files("timesink.report") / "templates"


def run_html(page: RunPage) -> str:
    """Give the page of one run."""
    return _render("run.html.j2", page, page.figures)


def runs_html(page: RunsPage) -> str:
    """Give the page of several runs."""
    return _render("runs.html.j2", page, page.figures)


def study_html(page: StudyPage) -> str:
    """Give the page of a study."""
    return _render("study.html.j2", page, page.figures)


def _render(
    template: str, page: RunPage | RunsPage | StudyPage, figures: Mapping[str, Figure]
) -> str:
    style, script, vega = _file("report.css"), _file("report.js"), _vega() if figures else ""
    return (
        _environment()
        .get_template(template)
        .render(
            page=page,
            version=timesink.__version__,
            style=Markup(style),  # noqa: S704 our own file
            script=Markup(script),  # noqa: S704 our own file
            vega=Markup(vega),  # noqa: S704 Vega's own bundle
            policy=_policy(style, [script, vega]),
            figures_json=_json(
                {"config": CONFIG, "specs": {name: each.spec() for name, each in figures.items()}}
            ),
        )
    )


def _policy(style: str, scripts: list[str]) -> str:
    """Allow these very pieces, and nothing that is loaded.

    Vega's renderer writes `style` attributes, which only 'unsafe-inline' allows; they are its
    own. Its expressions are interpreted, not compiled, so that no 'unsafe-eval' is needed.
    """
    allowed = " ".join(f"'{_digest(each)}'" for each in scripts if each)
    return (
        f"default-src 'none'; script-src {allowed}; style-src-elem '{_digest(style)}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(piece: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(piece.encode()).digest()).decode()}"


def _json(value: Any) -> Markup:
    """Write JSON that no HTML can end: within a script only `<` could begin anything."""
    return Markup(json.dumps(value, allow_nan=False).replace("<", "\\u003c"))  # noqa: S704


def _csv_link(figure: Figure) -> str:
    return "data:text/csv;base64," + base64.b64encode(figure.csv().encode()).decode()


def _coded(line: str) -> Markup:
    """Set what stands between backticks as code; all of it stays text."""
    pieces = line.split("`")
    if len(pieces) % 2 == 0:
        return escape(line)
    whole = [
        Markup("<code>{}</code>").format(piece) if number % 2 else escape(piece)
        for number, piece in enumerate(pieces)
    ]
    return Markup("").join(whole)


def _file(name: str) -> str:
    return (TEMPLATES / name).read_text("utf-8")


@cache
def _vega() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script that no HTML parser ends early."""
    import vl_convert

    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", VEGA_LITE)
    return bundle.replace("\r", "").replace("</script", "<\\/script").replace("<!--", "\\x3c!--")


def _template(name: str) -> str | None:
    try:
        return _file(name)
    except FileNotFoundError:
        return None


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words = (text.milliseconds, text.ms_places, text.percent, text.number, text.size, text.date)
    for word in (*words, text.ratio):
        environment.filters[word.__name__] = word
    environment.filters["csv_link"] = _csv_link
    environment.filters["coded"] = _coded
    environment.globals["NONE"] = text.NONE
    return environment
