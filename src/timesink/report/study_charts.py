"""The charts of a study: a figure's rows and how they are to be drawn in, Altair's charts out."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from timesink.report.charts import MS, Drawn, values
from timesink.report.theme import ACCENT, COLOURS, SERIES, WAITING

Rows = Sequence[Mapping[str, Any]]

BAR_STEP, GROUPED_STEP = 26, 17
LINE_HEIGHT = 240
NAMED = {"waiting for images": WAITING, "computing": COLOURS["compute"]}
"""Series that have their colours on other pages too."""
FEW_POINTS = 40
"""So many points of a line are marked."""


def study_chart(asked: Mapping[str, Any], rows: Rows) -> Drawn:
    """Draw one figure of a study."""
    if asked["shape"] == "lines":
        return _lines(asked, rows)
    return _bars(asked, rows, stacked=asked["shape"] == "stacked")


def _colour(asked: Mapping[str, Any], rows: Rows) -> tuple[Any, list[str]]:
    """Give each series a colour, in the order of the rows."""
    series = asked["series"]
    if series is None:
        return alt.value(ACCENT), []
    order = [str(each) for each in dict.fromkeys(row[series["field"]] for row in rows)]
    colours = [NAMED.get(each, SERIES[number % len(SERIES)]) for number, each in enumerate(order)]
    return (
        alt.Color(
            f"{series['field']}:N",
            scale=alt.Scale(domain=order, range=colours),
            legend=alt.Legend(title=series["title"]),
        ),
        order,
    )


def _tooltips(asked: Mapping[str, Any], rows: Rows, kind: str) -> list[alt.Tooltip]:
    x, y, series = asked["x"], asked["y"], asked["series"]
    found = [alt.Tooltip(f"{x['field']}:{kind}", title=x["title"])]
    if series is not None:
        found.append(alt.Tooltip(f"{series['field']}:N", title=series["title"]))
    found.append(alt.Tooltip(f"{y['field']}:Q", title=y["title"], format=MS))
    if all("low" in row for row in rows):
        found += [alt.Tooltip(f"{end}:Q", format=MS) for end in ("low", "high")]
    return found


def _has_ranges(rows: Rows) -> bool:
    return any("low" in row for row in rows)


def _bars(asked: Mapping[str, Any], rows: Rows, *, stacked: bool) -> Drawn:
    name, length = asked["x"]["field"], asked["y"]["field"]
    colour, order = _colour(asked, rows)
    names = list(dict.fromkeys(row[name] for row in rows))
    grouped = bool(order) and not stacked
    y = alt.Y(f"{name}:N", sort=names, title=asked["x"]["title"])
    base = alt.Chart(values(rows)).encode(y=y, tooltip=_tooltips(asked, rows, "N"))
    if grouped:
        base = base.encode(yOffset=alt.YOffset(f"{asked['series']['field']}:N", sort=order))
    x = alt.X(f"{length}:Q", title=asked["y"]["title"], stack="zero" if stacked else None)
    bars = base.mark_bar(cornerRadiusEnd=0 if stacked else 2).encode(x=x, color=colour)
    layers = [bars]
    if _has_ranges(rows):
        range_ = base.transform_filter("datum.low < datum.high").mark_rule(strokeWidth=1.5)
        layers.append(range_.encode(x=alt.X("low:Q", title=asked["y"]["title"]), x2="high:Q"))
    drawn = alt.layer(*layers)
    # A bar for each series of each name, and a gap between the names.
    height = len(names) * (GROUPED_STEP * len(order) + 10 if grouped else BAR_STEP)
    return drawn.properties(height=max(height, 2 * BAR_STEP))


def _lines(asked: Mapping[str, Any], rows: Rows) -> Drawn:
    across, up = asked["x"], asked["y"]
    colour, order = _colour(asked, rows)
    points = len(rows) / max(len(order), 1)
    # Epochs and iterations are whole.
    x = alt.X(
        f"{across['field']}:Q",
        title=across["title"],
        scale=alt.Scale(zero=False, nice=False),
        axis=alt.Axis(tickMinStep=1, format=",d"),
    )
    base = alt.Chart(values(rows)).encode(x=x, color=colour)
    y = alt.Y(f"{up['field']}:Q", title=up["title"])
    layers: list[alt.Chart] = []
    if any("low" in row and row["low"] < row["high"] for row in rows):
        layers.append(
            base.mark_area(opacity=0.18).encode(
                y=alt.Y("low:Q", title=up["title"]), y2=alt.Y2("high:Q")
            )
        )
    layers.append(base.mark_line(strokeWidth=1.6).encode(y=y))
    seen = points <= FEW_POINTS
    layers.append(
        base.mark_point(filled=True, size=36, opacity=1 if seen else 0).encode(
            y=y, tooltip=_tooltips(asked, rows, "Q")
        )
    )
    return alt.layer(*layers).properties(height=LINE_HEIGHT)
