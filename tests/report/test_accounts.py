"""A step's parts: in the order of the data's way, closed, with or without a trace."""

import pytest

from tests.report.made_runs import row
from timesink.report.accounts import mean_share, timed_parts, traced_parts


def test_parts_come_in_the_order_of_the_datas_way_and_sum_to_the_step():
    rows = [
        row("unattributed", 0.0),
        row("runtime", 0.1),
        row("layer", 0.05, layer="a", phase="update"),
        row("layer", 0.3, layer="a", phase="backward"),
        row("loss", 0.05),
        row("layer", 0.2, layer="a", phase="forward"),
        row("host_to_device", 0.1),
        row("input_wait", 0.2),
    ]
    (step,) = traced_parts({"accounts": rows, "traced_steps": 3})
    assert [part.account for part in step.parts] == [
        *("input_wait", "host_to_device", "forward", "loss", "backward", "update"),
        *("runtime", "unattributed"),
    ]
    assert step.charged_ms == pytest.approx(100.0)
    assert step.wall_ms == pytest.approx(100.0)


def test_the_wall_time_is_the_clocks_whatever_was_charged():
    traced = [{"device": "CPU:0", "steps": 3, "step_ms": 120.0}]
    rows = [row("runtime", 1.0)]
    (step,) = traced_parts({"accounts": rows, "traced_steps": 3, "traced": traced})
    assert (step.wall_ms, step.charged_ms) == (120.0, 100.0)


def test_an_account_that_nobody_knows_yet_is_not_lost():
    rows = [row("new_thing", 0.4), row("runtime", 0.6)]
    (step,) = traced_parts({"accounts": rows, "traced_steps": 3})
    assert {part.account for part in step.parts} == {"new_thing", "runtime"}


def test_each_device_has_its_step():
    rows = [row("runtime", 0.5, device="CPU:0"), row("runtime", 0.5, device="CPU:1")]
    steps = traced_parts({"accounts": rows, "traced_steps": 3})
    assert [step.device for step in steps] == ["CPU:0", "CPU:1"]
    assert mean_share(steps, "runtime") == pytest.approx(1.0)


def test_without_a_trace_waiting_and_computing_are_told_apart_and_the_rest_is_pythons():
    step = timed_parts([10.0, 20.0], [2.0, 4.0], [7.0, 14.0])
    assert {part.account: part.ms for part in step.parts} == pytest.approx(
        {"input_wait": 3.0, "compute": 10.5, "python": 1.5}
    )
    assert step.charged_ms == pytest.approx(step.wall_ms)


def test_a_wait_that_nobody_could_time_is_not_shown_as_none():
    step = timed_parts([10.0], [None], [7.0])
    assert "input_wait" not in {part.account for part in step.parts}


def test_no_steps_no_parts():
    assert timed_parts([], [], []) is None
    assert traced_parts({"accounts": [], "traced_steps": 0}) == []
