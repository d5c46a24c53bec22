"""Figures as a page writes them: times, shares, sizes, dates; what was not measured is a dash."""

from datetime import UTC, datetime

NONE = "–"
SPACE = "\u00a0"
"""A figure stays with its unit."""


def ms_places(largest_ms: float) -> int:
    """Give the decimal places that leave four figures of the largest."""
    return 1 if largest_ms >= 100 else 2 if largest_ms >= 10 else 3


def milliseconds(ms: float | None, places: int | None = None) -> str:
    """Write a time, without its unit; with as many places as its column has."""
    if ms is None:
        return NONE
    return f"{ms:,.{ms_places(abs(ms)) if places is None else places}f}"


def with_ms(ms: float | None) -> str:
    """Write a time with its unit."""
    return NONE if ms is None else f"{milliseconds(ms)}{SPACE}ms"


def percent(share: float | None, places: int = 1) -> str:
    """Write a share of one as per cent."""
    return NONE if share is None else f"{100 * share:.{places}f}{SPACE}%"


def number(value: float | None, form: str = ",.1f") -> str:
    """Write a figure in a form."""
    return NONE if value is None else format(value, form)


def ratio(value: float | None) -> str:
    """Write a slowdown: ×1.05 is 5 % slower."""
    return NONE if value is None else f"×{value:.2f}"


def size(count: float | None) -> str:
    """Write a number of bytes."""
    if count is None:
        return NONE
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    places = 0 if unit == "B" or count >= 100 else 1
    return f"{count:,.{places}f}{SPACE}{unit}"


def date(utc: str) -> str:
    """Write the moment at which a process was started; nothing where nobody knows."""
    try:
        moment = datetime.fromisoformat(utc).astimezone(UTC)
    except ValueError:
        return ""
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def times(count: float, what: str) -> str:
    """Write how many there are of something: 1 step, 2 steps."""
    return f"{count:,} {what}{'s' * (count != 1)}"
