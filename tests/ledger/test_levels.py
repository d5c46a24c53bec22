"""The books at another level: models, groups, the ops of one layer."""

import polars as pl
import pytest

from timesink.ledger.levels import (
    ALL_LAYERS,
    OUTSIDE_LAYERS,
    by_layer,
    level_of,
    ops_of,
    rolled_up,
    shown_as,
)
from timesink.ledger.opmap import LAYER

COLUMNS = ["account", "layer", "phase", "op", "type", "op_ns", "charged_ns", "estimated"]
OPS = pl.DataFrame(
    [
        (LAYER, "block/conv", "forward", "a", "Conv2D", 10, 8, False),
        (LAYER, "block/conv", "forward", "b", "BiasAdd", 5, 4, True),
        (LAYER, "block/relu", "forward", "c", "Relu", 3, 3, False),
        (LAYER, "dense", "forward", "d", "MatMul", 20, 16, False),
        (LAYER, "blocks", "forward", "e", "MatMul", 1, 1, False),
        (LAYER, None, "update", "f", "Sub", 2, 2, False),
        (LAYER, None, "backward", "g", "AddN", 7, 7, False),
        ("runtime", None, None, None, None, None, 9, False),
    ],
    schema=COLUMNS,
    orient="row",
)


def layers(rows):
    return {row[1]: row[3:] for row in rows.filter(account=LAYER, phase="forward").iter_rows()}


def test_ops_sum_to_layers_and_one_estimated_op_marks_the_layer():
    assert layers(by_layer(OPS))["block/conv"] == (15, 12, True)


def test_what_has_no_op_time_still_has_none_in_the_sum():
    rows = by_layer(OPS).filter(account="runtime")
    assert rows.select("op_ns", "charged_ns").rows() == [(None, 9)]


def test_a_depth_sums_the_layers_of_a_nested_model():
    assert layers(rolled_up(by_layer(OPS), depth=1, groups={})) == {
        "block": (18, 15, True),
        "dense": (20, 16, False),
        "blocks": (1, 1, False),
    }


def test_a_group_takes_what_its_patterns_name_before_the_depth_does():
    rows = rolled_up(by_layer(OPS), depth=1, groups={"fc1": ["dense", "*/relu"]})
    assert layers(rows)["fc1"] == (23, 19, False)
    assert layers(rows)["block"] == (15, 12, True)


def test_a_layer_is_in_the_first_group_that_names_it():
    assert level_of("a", depth=None, groups={"x": ["b"], "y": ["?"], "z": ["a"]}) == "y"


def test_nothing_is_lost_at_any_level():
    for depth, groups in ((None, {}), (1, {}), (2, {"all": ["*"]})):
        rows = rolled_up(by_layer(OPS), depth=depth, groups=groups)
        assert rows["charged_ns"].sum() == OPS["charged_ns"].sum()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("block/conv", "ab"),
        ("block", "abc"),
        ("dense", "d"),
        ("fc1", "cd"),
        (ALL_LAYERS, "f"),
        (OUTSIDE_LAYERS, "g"),
        ("con", ""),
    ],
)
def test_the_ops_of_a_layer_a_model_a_group_or_of_no_layer(name, expected):
    found = ops_of(OPS, name, groups={"fc1": ["dense", "*/relu"]})
    assert "".join(found["op"]) == expected


def test_rows_without_a_layer_are_shown_by_what_they_are():
    assert shown_as(None, "update", depth=1, groups={}) == ALL_LAYERS
    assert shown_as(None, "forward", depth=1, groups={"x": ["*"]}) == OUTSIDE_LAYERS
