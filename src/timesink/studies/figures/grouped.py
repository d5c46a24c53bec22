"""Measurements grouped by what was varied."""

from collections.abc import Callable, Sequence
from typing import Any

from timesink.analysis.spread import Spread
from timesink.studies.figures.seed_figure import repeated
from timesink.studies.measured import (
    Done,
)


def by(
    done: Sequence[Done], key: Callable[[Done], Any], order: Any = None
) -> list[tuple[Any, list[Done]]]:
    """Group measurements, in rising order of their key or in the one given."""
    groups: dict[Any, list[Done]] = {}
    for each in done:
        groups.setdefault(key(each), []).append(each)
    ranks = list(order or ())
    return sorted(
        groups.items(), key=lambda pair: ranks.index(pair[0]) if ranks else _rank(pair[0])
    )


def _rank(key: Any) -> Any:
    """Order numbers as numbers and words, such as `auto`, behind them."""
    if isinstance(key, tuple):
        return tuple(_rank(each) for each in key)
    return (0, key) if isinstance(key, int) else (1, 0)


def note(words: str, spreads: Sequence[Spread]) -> str:
    """Say what has to be known of a figure, and how sure its values are."""
    return f"{words.strip()} {repeated(spreads)}".strip()
