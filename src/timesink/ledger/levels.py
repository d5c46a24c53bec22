"""The books at another level: blocks, groups of layers, or the ops of one layer."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

import polars as pl

from timesink.ledger.opmap import LAYER

ROW = ("account", "layer", "phase", "place", "device")
"""What tells one row of a step's books from another."""

ALL_LAYERS, OUTSIDE_LAYERS = "(all layers)", "(outside layers)"
"""How rows without a layer are shown: an optimizer's, and ops that stand in no layer."""


def by_layer(ops: pl.DataFrame) -> pl.DataFrame:
    """Sum the rows of ops into rows of layers; every other column stays."""
    keys = [c for c in ops.columns if c not in ("op", "type", "op_ns", "charged_ns", "estimated")]
    return _summed(ops, keys)


def rolled_up(
    rows: pl.DataFrame, *, depth: int | None = None, groups: Mapping[str, Sequence[str]]
) -> pl.DataFrame:
    """Replace layers by their groups, then by the models that hold them, down to a depth.

    A group is a name and patterns of layers' names; a layer is in the first group that names it.
    """
    names = rows["layer"].drop_nulls().unique().to_list()
    shown = {name: level_of(name, depth=depth, groups=groups) for name in names}
    if all(name == level for name, level in shown.items()):
        return rows
    replaced = rows.with_columns(pl.col("layer").replace(shown))
    keys = [c for c in rows.columns if c not in ("op_ns", "charged_ns", "estimated")]
    return _summed(replaced, keys)


def level_of(layer: str, *, depth: int | None, groups: Mapping[str, Sequence[str]]) -> str:
    """Name what a layer is shown as."""
    for group, patterns in groups.items():
        if any(fnmatchcase(layer, pattern) for pattern in patterns):
            return group
    return "/".join(layer.split("/")[:depth]) if depth else layer


def shown_as(
    layer: str | None, phase: str | None, *, depth: int | None, groups: Mapping[str, Sequence[str]]
) -> str:
    """Name what a row of account `layer` is shown as, also one that is of no single layer."""
    if layer is None:
        return ALL_LAYERS if phase == "update" else OUTSIDE_LAYERS
    return level_of(layer, depth=depth, groups=groups)


def ops_of(
    ops: pl.DataFrame, name: str, *, groups: Mapping[str, Sequence[str]] | None = None
) -> pl.DataFrame:
    """Keep the ops of one layer, of all layers inside a model, or of a group."""
    rows = ops.filter(pl.col("account") == LAYER)
    updates = pl.col("phase") == "update"
    if name in (ALL_LAYERS, OUTSIDE_LAYERS):
        return rows.filter(
            pl.col("layer").is_null() & (updates if name == ALL_LAYERS else ~updates)
        )
    layers = rows["layer"].drop_nulls().unique().to_list()
    within = [
        layer
        for layer in layers
        if layer == name
        or layer.startswith(f"{name}/")
        or level_of(layer, depth=None, groups=groups or {}) == name
    ]
    return rows.filter(pl.col("layer").is_in(within))


def _summed(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    return rows.group_by(keys, maintain_order=True).agg(
        pl.when(pl.col("op_ns").count() > 0).then(pl.col("op_ns").sum()).alias("op_ns"),
        pl.col("charged_ns").sum(),
        pl.col("estimated").any(),
    )
