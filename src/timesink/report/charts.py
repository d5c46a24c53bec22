"""The charts of one run: rows of plain values in, Altair's charts out, without width or theme."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from timesink.report.accounts import MEANING, WAY, StepParts
from timesink.report.step_times import Distribution, Series
from timesink.report.theme import ACCENT, WAITING, colour_of, ink_on

Rows = Sequence[Mapping[str, Any]]
Drawn = alt.Chart | alt.LayerChart | alt.FacetChart

BAR_HEIGHT = 64
ROW_HEIGHT = 22
LETTER_WIDTH = 7.5
MS = ",.4~g"


def values(rows: Rows) -> alt.InlineData:
    """Give rows as a chart's own data: nothing is loaded."""
    return alt.InlineData(values=[dict(row) for row in rows])


def colours(accounts: Sequence[str]) -> alt.Color:
    """Colour accounts, in the order of the data's way."""
    known = [each for each in WAY if each in accounts]
    order = [*known, *sorted(set(accounts) - set(known))]
    scale = alt.Scale(domain=order, range=[colour_of(each) for each in order])
    return alt.Color("account:N", scale=scale, legend=alt.Legend(title=None))


def step_rows(steps: Sequence[StepParts]) -> list[dict[str, Any]]:
    """Lay the parts of a step end to end, a bar for each device."""
    rows = []
    for step in steps:
        at_ms = 0.0
        for part in step.parts:
            rows.append(
                {
                    "device": step.device,
                    "account": part.account,
                    "meaning": MEANING.get(part.account, ""),
                    "ms": round(part.ms, 4),
                    "share": round(part.share, 6),
                    "from_ms": round(at_ms, 4),
                    "to_ms": round(at_ms + part.ms, 4),
                }
            )
            at_ms += part.ms
    return rows


def step_bar(rows: Rows) -> Drawn:
    """Draw a step as one stacked bar from disk to update."""
    devices = list(dict.fromkeys(row["device"] for row in rows))
    drawn = [{**row, "ink": ink_on(row["account"])} for row in rows]
    end_ms = max(row["to_ms"] for row in rows)
    y = alt.Y("device:N", sort=devices, title=None, axis=alt.Axis() if len(devices) > 1 else None)
    x = alt.X("from_ms:Q", title="ms of a step", scale=alt.Scale(domain=[0, end_ms], nice=False))
    base = alt.Chart(values(drawn)).encode(y=y)
    bars = base.mark_bar(stroke="white", strokeWidth=0.5, strokeOpacity=0.6).encode(
        x=x,
        x2="to_ms:Q",
        color=colours([row["account"] for row in rows]),
        tooltip=[
            alt.Tooltip("account:N"),
            alt.Tooltip("meaning:N"),
            alt.Tooltip("ms:Q", format=MS),
            alt.Tooltip("share:Q", format=".1%"),
        ],
    )
    inside = base.transform_calculate(middle_ms="(datum.from_ms + datum.to_ms) / 2").encode(
        x="middle_ms:Q", color=alt.Color("ink:N", scale=None)
    )
    # What has no room is no text at all: hidden letters would still widen the chart.
    width = "(scale('x', datum.to_ms) - scale('x', datum.from_ms))"
    name = f"{width} > {LETTER_WIDTH} * length(datum.account) + 8 ? datum.account : ''"
    share = f"{width} > {5 * LETTER_WIDTH} ? format(datum.share, '.0%') : ''"
    names = inside.mark_text(dy=-9, fontSize=12, fontWeight=600, text=alt.ExprRef(name))
    shares = inside.mark_text(dy=9, fontSize=12, text=alt.ExprRef(share))
    return alt.layer(bars, names, shares).properties(height=BAR_HEIGHT * len(devices))


def iteration_lines(times: Series, stretches: Rows) -> Drawn:
    """Draw the step and its waiting by iteration, with their range where points stand for many."""
    series = alt.Color(
        "series:N",
        scale=alt.Scale(domain=["step", "waiting for images"], range=[ACCENT, WAITING]),
        legend=alt.Legend(title=None),
    )
    x = alt.X("iteration:Q", title="iteration", scale=alt.Scale(zero=False, nice=False))
    base = alt.Chart(values(times.rows)).encode(x=x, color=series)
    tooltip = [
        alt.Tooltip("series:N"),
        alt.Tooltip("iteration:Q", format=",d"),
        alt.Tooltip("last_iteration:Q", format=",d", title="to iteration"),
        alt.Tooltip("median_ms:Q", format=MS, title="median ms"),
        alt.Tooltip("least_ms:Q", format=MS, title="least ms"),
        alt.Tooltip("most_ms:Q", format=MS, title="most ms"),
    ]
    layers: list[alt.Chart] = []
    if stretches:
        traced = alt.Chart(values(stretches)).mark_rect(opacity=0.16, color="#8b95a5")
        layers.append(
            traced.encode(
                x=alt.X("first:Q"),
                x2="last:Q",
                tooltip=[
                    alt.Tooltip("first:Q", format=",d", title="traced from"),
                    alt.Tooltip("last:Q", format=",d", title="to"),
                ],
            )
        )
    if times.steps_a_point > 1:
        layers.append(
            base.mark_area(opacity=0.22).encode(
                y=alt.Y("least_ms:Q", title="ms"), y2="most_ms:Q", tooltip=tooltip
            )
        )
    y = alt.Y("median_ms:Q", title="ms", scale=alt.Scale(zero=True))
    layers.append(base.mark_line(strokeWidth=1.5).encode(y=y))
    points = base.mark_point(filled=True, size=40, opacity=0).encode(y=y, tooltip=tooltip)
    layers.append(points)
    return alt.layer(*layers).properties(height=220)


def account_bars(times: Series) -> Drawn:
    """Draw each traced step as a stacked bar."""
    present = {row["account"] for row in times.rows}
    place = {account: number for number, account in enumerate(WAY)}
    rows = [{**row, "place": place.get(row["account"], len(place))} for row in times.rows]
    drawn: alt.Chart = (
        alt.Chart(values(rows))
        .mark_bar()
        .encode(
            x=alt.X(
                "iteration:O", title="iteration", axis=alt.Axis(labelOverlap=True, labelAngle=0)
            ),
            y=alt.Y("ms:Q", title="ms", stack="zero"),
            color=colours(sorted(present)),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("iteration:O"),
                alt.Tooltip("account:N"),
                alt.Tooltip("ms:Q", format=MS),
            ],
        )
        .properties(height=240)
    )
    return drawn


def distribution_bars(found: Distribution) -> Drawn:
    """Draw how often steps took how long, with their median and 95th percentile."""
    scale = alt.Scale(domain=["untraced", "traced"], range=[ACCENT, "#56b4e9"])
    both = len({row["what"] for row in found.rows}) > 1
    bars = (
        alt.Chart(values(found.rows))
        .mark_bar(stroke=None, binSpacing=1)
        .encode(
            x=alt.X("from_ms:Q", bin="binned", title="ms a step", scale=alt.Scale(zero=False)),
            x2="to_ms:Q",
            y=alt.Y("steps:Q", title="steps", stack="zero"),
            color=alt.Color("what:N", scale=scale, legend=alt.Legend(title=None) if both else None),
            tooltip=[
                alt.Tooltip("what:N", title="steps that were"),
                alt.Tooltip("from_ms:Q", format=MS, title="from ms"),
                alt.Tooltip("to_ms:Q", format=MS, title="to ms"),
                alt.Tooltip("steps:Q"),
            ],
        )
    )
    last_ms = max(row["to_ms"] for row in found.rows)
    marks: list[alt.Chart] = []
    for label, ms, side in (("median", found.median_ms, -1), ("95 %", found.p95_ms, 1)):
        mark = alt.Chart(values([{"ms": min(ms, last_ms), "label": label}])).encode(x="ms:Q")
        align: Literal["left", "right"] = "left" if side > 0 else "right"
        words = mark.mark_text(align=align, dx=4 * side, dy=-8, fontSize=11)
        marks.append(mark.mark_rule(strokeDash=[4, 3], strokeWidth=1.5))
        marks.append(words.encode(text="label:N", y=alt.value(0)))
    return alt.layer(bars, *marks).properties(height=200)


def share_bars(rows: Rows, *, name: str, figure: str, title: str) -> Drawn:
    """Draw figures with names as horizontal bars, in the order of the rows."""
    drawn: alt.Chart = (
        alt.Chart(values(rows))
        .mark_bar(cornerRadiusEnd=2, color=ACCENT)
        .encode(
            y=alt.Y(f"{name}:N", sort=None, title=None),
            x=alt.X(f"{figure}:Q", title=title),
            tooltip=[
                alt.Tooltip(f"{name}:N"),
                alt.Tooltip(f"{figure}:Q", format=MS, title=title),
                alt.Tooltip("share:Q", format=".1%"),
            ],
        )
        .properties(height=ROW_HEIGHT * max(len(rows), 2))
    )
    return drawn
