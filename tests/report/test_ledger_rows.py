"""The ledger's lines: layers and accounts by time, with places below their account."""

import pytest

from tests.report.made_runs import row
from timesink.report.ledger_rows import ledger_rows

ROWS = [
    row("layer", 0.1, layer="a", phase="forward"),
    row("layer", 0.2, layer="a", phase="backward"),
    row("layer", 0.05, phase="update"),
    row("python", 0.4, place="train.py:9"),
    row("python", 0.05),
    row("input_wait", 0.2),
]


def test_lines_come_by_time_and_sum_to_the_step():
    lines = ledger_rows(ROWS)
    assert [line.name for line in lines] == ["python", "a", "input_wait", "(all layers)"]
    assert sum(line.share for line in lines) == pytest.approx(1.0)
    assert lines[1].phases == pytest.approx({"forward": 10.0, "backward": 20.0})


def test_places_stand_below_their_account():
    python = ledger_rows(ROWS)[0]
    assert [place.name for place in python.places] == [
        "train.py:9",
        "between calls, too short to be seen",
    ]
    assert sum(place.ms for place in python.places) == pytest.approx(python.ms)


def test_devices_are_averaged():
    (line,) = ledger_rows([row("runtime", 1.0, device=device) for device in ("CPU:0", "CPU:1")])
    assert line.ms == pytest.approx(100.0)


def test_groups_of_the_experiment_are_one_line():
    names = [line.name for line in ledger_rows(ROWS, {"stem": ["a*"]})]
    assert "stem" in names
    assert "a" not in names


def test_a_layer_called_like_an_account_is_not_mixed_with_it():
    rows = [row("python", 0.5), row("layer", 0.5, layer="python", phase="forward")]
    assert sorted(line.is_layer for line in ledger_rows(rows)) == [False, True]
