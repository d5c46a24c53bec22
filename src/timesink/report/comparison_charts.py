"""The charts of several runs: rows of plain values in, Altair's charts out, a line for each run."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from timesink.report.accounts import WAY
from timesink.report.charts import MS, Drawn, colours, values
from timesink.report.theme import ACCENT

Rows = Sequence[Mapping[str, Any]]

FEW, FEW_HEIGHT, MANY_HEIGHT = 12, 28, 16


def rate_dots(rows: Rows) -> Drawn:
    """Draw images a second with their intervals."""
    base = alt.Chart(values(rows)).encode(
        y=alt.Y("run:N", sort=None, title=None),
        tooltip=[
            alt.Tooltip("run:N"),
            alt.Tooltip("images_per_s:Q", format=",.1f", title="images/s"),
            alt.Tooltip("low:Q", format=",.1f", title="at least"),
            alt.Tooltip("high:Q", format=",.1f", title="at most"),
        ],
    )
    known = "isValid(datum.low) && isValid(datum.high)"
    lines = base.transform_filter(known).mark_rule(strokeWidth=2, color=ACCENT, opacity=0.55)
    dots = base.mark_point(filled=True, size=70, color=ACCENT, opacity=1)
    return alt.layer(
        lines.encode(x=alt.X("low:Q", title="images/s"), x2="high:Q"),
        dots.encode(x=alt.X("images_per_s:Q", title="images/s", scale=alt.Scale(zero=True))),
    ).properties(height=_height(rows))


def run_bars(rows: Rows) -> Drawn:
    """Draw a step of each run as a stacked bar."""
    place = {account: number for number, account in enumerate(WAY)}
    drawn = [{**row, "place": place.get(row["account"], len(place))} for row in rows]
    chart: alt.Chart = (
        alt.Chart(values(drawn))
        .mark_bar()
        .encode(
            y=alt.Y("run:N", sort=None, title=None),
            x=alt.X("ms:Q", title="ms a step", stack="zero"),
            color=colours(sorted({row["account"] for row in rows})),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("run:N"),
                alt.Tooltip("account:N"),
                alt.Tooltip("ms:Q", format=MS),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(height=_height(rows))
    )
    return chart


def _height(rows: Rows) -> int:
    runs = len({row["run"] for row in rows})
    return max(runs, 2) * (FEW_HEIGHT if runs <= FEW else MANY_HEIGHT)
