"""A study's file: an experiment with a `[grid]` of values, crossed with each other or zipped."""

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from timesink import machine
from timesink.analysis.cells import SYNTHETIC
from timesink.errors import ExperimentError
from timesink.experiment import Experiment, parse

Axes = dict[str, tuple[Any, ...]]
CORES = "machine.cores"
ZIPPED = "zipped"
MOST_CELLS = 10_000


@dataclass(frozen=True)
class Grid:
    """What is varied, and the experiment that it is varied in."""

    base: Mapping[str, Any]
    axes: Axes
    where: str
    zipped: Axes = field(default_factory=dict)
    """Keys that go through their values together; as one more axis, crossed with the others."""

    def values(self) -> list[dict[str, Any]]:
        """Give what is varied of each cell, by key."""
        together = list(zip(*self.zipped.values(), strict=True)) or [()]
        count = math.prod([len(together), *map(len, self.axes.values())])
        if count > MOST_CELLS:
            raise ExperimentError(
                f"{self.where}: grid: found {count:,} cells, allowed: {MOST_CELLS:,}"
            )
        keys = (*self.axes, *self.zipped)
        return [
            dict(zip(keys, (*crossed, *zipped), strict=True))
            for *crossed, zipped in itertools.product(*self.axes.values(), together)
        ]

    def cells(self) -> list[Experiment]:
        """Give the experiments of the grid, each checked."""
        return [parse(_with(self.base, values), self.where) for values in self.values()]


def packaged(name: str) -> str:
    """Give the text of a study that comes with Timesink."""
    return resources.files("timesink.studies").joinpath(f"{name}.toml").read_text()


def read_values(path: Path | None, name: str, *, quick: bool = False) -> dict[str, Any]:
    """Read a study's file, or the one that comes with Timesink.

    What stands under `[quick]` is laid over the rest where that is asked for.
    """
    try:
        text = path.read_bytes().decode() if path else packaged(name)
        values = tomllib.loads(text)
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: not TOML: {error}") from None
    small = values.pop("quick", None)
    if not quick:
        return values
    if not isinstance(small, dict):
        raise ExperimentError(f"{where_of(path, name)}: --quick needs a [quick] table, found none")
    return laid_over(values, small)


def where_of(path: Path | None, name: str) -> str:
    """Name a study's file in messages."""
    return str(path) if path else f"{name}.toml"


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay tables over tables key by key; a grid takes the place of the whole grid."""
    made = dict(below)
    for key, value in above.items():
        under = made.get(key)
        both = isinstance(value, dict) and isinstance(under, dict) and key != "grid"
        made[key] = laid_over(under, value) if both else value  # type: ignore[arg-type]
    return made


def grid_of(
    values: Mapping[str, Any], where: str, place: str = "grid", allowed: Sequence[str] | None = None
) -> Grid:
    """Part an experiment's values from its grid's; only `allowed` keys may be varied."""
    base = dict(values)
    grid = base.pop("grid", {})
    if not isinstance(grid, dict) or not isinstance(grid.get(ZIPPED, {}), dict):
        raise ExperimentError(f"{where}: {place}: found {grid!r}, allowed: a table of lists")
    axes, zipped = (
        {
            key: _values(where, f"{place}.{prefix}{key}", key, item, allowed)
            for key, item in _flat(table)
        }
        for prefix, table in (
            ("", {key: item for key, item in grid.items() if key != ZIPPED}),
            (f"{ZIPPED}.", grid.get(ZIPPED, {})),
        )
    )
    if len({len(each) for each in zipped.values()}) > 1:
        found = ", ".join(f"{len(each)} of {key}" for key, each in zipped.items())
        raise ExperimentError(
            f"{where}: {place}.{ZIPPED}: found {found}, allowed: as many values of each"
        )
    twice = sorted(set(axes) & set(zipped))
    if twice:
        raise ExperimentError(f"{where}: {place}: found {twice[0]} twice, crossed and zipped")
    return Grid(base, axes, where, zipped)


def changed(grid: Grid, settings: Sequence[str], axes: Mapping[str, Sequence[Any]]) -> Grid:
    """Put settings (`key=value`) and other values of axes in place of a grid's own.

    A key that is set is no longer varied.
    """
    keys = [setting.partition("=")[0].strip() for setting in settings]
    given = {key: tuple(values) for key, values in axes.items() if values}
    kept = {key: values for key, values in grid.axes.items() if key not in keys} | given
    zipped = {
        key: values for key, values in grid.zipped.items() if key not in keys and key not in given
    }
    base = parse(grid.base, grid.where, settings).model_dump(mode="json", exclude_unset=True)
    return Grid(base, kept, grid.where, zipped)


def on_all_cores(grid: Grid) -> Grid:
    """Vary the cores by the machine's, where the grid says nothing of them."""
    said = CORES in grid.axes or CORES in grid.zipped or "cores" in grid.base.get("machine", {})
    axes = grid.axes if said else {**grid.axes, CORES: quarters(machine.cores())}
    return Grid(grid.base, axes, grid.where, grid.zipped)


def quarters(cores: int) -> tuple[int, ...]:
    """Give a quarter, a half, three quarters and all of the cores: seed 002's 2, 4, 6, 8 of 8."""
    return tuple(dict.fromkeys(max(1, round(cores * part / 4)) for part in (1, 2, 3, 4)))


def table_of(grid: Grid) -> dict[str, Any]:
    """Give the table of a file that reads as this grid."""
    axes: dict[str, Any] = {key: list(values) for key, values in grid.axes.items()}
    if grid.zipped:
        axes[ZIPPED] = {key: list(values) for key, values in grid.zipped.items()}
    return {**grid.base, "grid": axes}


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """List `a.b = […]`, whether written with a dotted key, a quoted one or a table."""
    rows: list[tuple[str, Any]] = []
    for key, value in table.items():
        if isinstance(value, dict) and "from" not in value:
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", value))
    return rows


def _values(
    where: str, place: str, key: str, values: Any, allowed: Sequence[str] | None
) -> tuple[Any, ...]:
    if allowed is not None and key not in allowed:
        raise ExperimentError(
            f"{where}: grid: found {key}, allowed: {', '.join(allowed)}; other keys stand outside"
        )
    if isinstance(values, dict):
        return _range(where, place, values)
    if not isinstance(values, list) or not values:
        raise ExperimentError(
            f"{where}: {place}: found {values!r}, allowed: a list of values, one or more, or "
            "{ from = 1, to = 8, step = 1 }, or { from = 1, to = 8, times = 2 }"
        )
    return tuple(values)


def _range(where: str, place: str, asked: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give the numbers from one to another, both among them where the steps allow."""
    by = next((key for key in ("step", "times") if set(asked) == {"from", "to", key}), None)
    numbers = [asked[key] for key in ("from", "to", by)] if by else []
    if not by or not all(type(each) in (int, float) for each in numbers):
        raise _no_range(where, place, asked)
    first, last, change = numbers
    if first > last or (change <= 0 if by == "step" else change <= 1 or first <= 0):
        raise _no_range(where, place, asked)
    made: list[Any] = []
    while len(made) <= MOST_CELLS:
        value = first + len(made) * change if by == "step" else first * change ** len(made)
        if value > last + 1e-9 * abs(last):
            break
        made.append(value)
    return tuple(made)


def _no_range(where: str, place: str, asked: Mapping[str, Any]) -> ExperimentError:
    return ExperimentError(
        f"{where}: {place}: found {dict(asked)!r}, allowed: from ≤ to, and step > 0 or "
        "times > 1 (with from > 0)"
    )


def _with(base: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Set keys with dots in a copy."""
    made = {key: dict(value) if isinstance(value, dict) else value for key, value in base.items()}
    for key, value in values.items():
        *tables, name = key.split(".")
        target = made
        for table in tables:
            target[table] = dict(target.get(table, {}))
            target = target[table]
        target[name] = value
    pipeline = made.get("pipeline", {})
    if isinstance(pipeline, dict) and pipeline.get("stages") == SYNTHETIC:
        # A category, but a source and no stages.
        made["pipeline"] = {**pipeline, "source": SYNTHETIC, "stages": "plain"}
    return made
