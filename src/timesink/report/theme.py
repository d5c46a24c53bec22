"""How charts look: a colour for each account that works in light and dark, for colour-blind too."""

from typing import Any

from timesink.report.accounts import MEANING

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'

# Okabe and Ito's colours where time is spent on the way, greys for what is beside it. Neighbours
# on the way differ in lightness too, so that they are told apart without any hue.
COLOURS = {
    "input_wait": "#d55e00",
    "host_to_device": "#f0b429",
    "forward": "#56b4e9",
    "loss": "#cc79a7",
    "backward": "#0072b2",
    "collective": "#e3d44a",
    "update": "#009e73",
    "device_to_host": "#a5762a",
    "compute": "#3b8fc7",
    "runtime": "#8b95a5",
    "python": "#7a5bb5",
    "idle": "#b9c0ca",
    "unattributed": "#c2185b",
}
OTHER = "#6b7280"
SERIES = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00"),
    *("#7a5bb5", "#8b95a5", "#a5762a", "#c2185b", "#5b8c5a", "#3d4451"),
)
"""Of lines and bars that are no accounts."""
ACCENT = "#2a86c4"
WAITING = COLOURS["input_wait"]
DARK_INK, LIGHT_INK = "#14181f", "#ffffff"
ON_DARK = ("input_wait", "backward", "update", "python", "unattributed", "compute")
"""Accounts whose colour is so dark that light letters stand on it."""

INK = "currentColor"
"""Letters and lines are as dark as the page's: it is light or dark, and light again in print."""
CONFIG: dict[str, Any] = {
    "background": "transparent",
    "font": FONT,
    "view": {"stroke": None},
    "text": {"color": INK},
    "rule": {"color": INK},
    "axis": {
        "domainColor": INK,
        "domainOpacity": 0.25,
        "gridColor": INK,
        "gridOpacity": 0.12,
        "tickColor": INK,
        "tickOpacity": 0.25,
        "labelColor": INK,
        "labelOpacity": 0.75,
        "titleColor": INK,
        "titleOpacity": 0.75,
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelPadding": 5,
    },
    "axisY": {"domain": False, "ticks": False},
    "axisX": {"grid": False},
    "axisXQuantitative": {"tickCount": 8},
    "legend": {
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "symbolType": "square",
        "orient": "top",
        "direction": "horizontal",
    },
    "title": {"color": INK, "fontSize": 14, "anchor": "start", "offset": 12},
}


def colour_of(account: str) -> str:
    """Give an account's colour."""
    return COLOURS.get(account, OTHER)


def ink_on(account: str) -> str:
    """Give the colour of letters on an account's colour."""
    return LIGHT_INK if account in ON_DARK or account not in MEANING else DARK_INK
