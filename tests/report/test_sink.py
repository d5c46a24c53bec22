"""The biggest sink is named as somebody would who found it."""

import pytest

from tests.report.made_runs import row
from timesink.report.accounts import traced_parts
from timesink.report.sink import biggest_sink


def found(rows, stages=()):
    parts = traced_parts({"accounts": rows, "traced_steps": 3})
    return biggest_sink(rows, parts, stages)


def stage(name, share, kind="stage"):
    return {
        "stage": name,
        "kind": kind,
        "share": share,
        "work_ms_per_image": share,
        "parallelism": 1.0,
    }


def test_waiting_names_the_stage_that_makes_most_of_the_work():
    stages = [stage("decode", 0.3), stage("resize", 0.6), stage("executor", 0.9, "framework")]
    sink = found([row("input_wait", 0.7), row("layer", 0.3, layer="a", phase="forward")], stages)
    assert (sink.name, sink.section) == ("waiting for images", "stages")
    assert sink.share == pytest.approx(0.7)
    assert "resize is 60" in sink.within


def test_a_layer_that_takes_much_is_named_itself():
    rows = [
        row("layer", 0.1, layer="slow", phase="forward"),
        row("layer", 0.4, layer="slow", phase="backward"),
        row("layer", 0.3, layer="quick", phase="forward"),
        row("runtime", 0.2),
    ]
    sink = found(rows)
    assert sink.name == "slow"
    assert sink.share == pytest.approx(0.5)
    assert sink.within.startswith("most of it backward")


def test_many_small_layers_are_one_sink_although_another_account_is_larger_than_each():
    rows = [row("layer", 0.08, layer=f"l{n}", phase="forward") for n in range(10)]
    sink = found([*rows, row("runtime", 0.2)])
    assert sink.name == "the layers"
    assert sink.share == pytest.approx(0.8)
    assert "l0 most of all" in sink.within


def test_the_largest_of_three_phases_is_not_most_of_it():
    shares = {"forward": 0.2, "backward": 0.4, "update": 0.35}
    rows = [row("layer", share, layer="fc", phase=phase) for phase, share in shares.items()]
    assert found(rows).within == "the longest part of it backward with 42\u00a0%"


def test_what_takes_a_large_part_besides_is_named_too():
    rows = [row("layer", 0.6, layer="a", phase="forward"), row("input_wait", 0.3)]
    sink = found([*rows, row("runtime", 0.1)], [stage("decode", 0.9)])
    assert sink.second == (
        "waiting for images takes another 30\u00a0%, and decode is 90\u00a0% of the pipeline’s work"
    )
    assert found([*rows[:1], row("input_wait", 0.1), row("runtime", 0.3)]).second == (
        "runtime takes another 30\u00a0%"
    )
    assert found([*rows[:1], row("input_wait", 0.1)]).second == ""


def test_python_is_named_with_its_place():
    rows = [
        row("python", 0.5, place="callback Slow.on_train_batch_end, slow.py:9"),
        row("python", 0.1),
        row("layer", 0.4, layer="a", phase="forward"),
    ]
    sink = found(rows)
    assert sink.share == pytest.approx(0.6)
    assert "slow.py:9" in sink.within


def test_devices_are_averaged_not_summed():
    rows = [row("runtime", 0.9, device=device) for device in ("CPU:0", "CPU:1")]
    assert found(rows).share == pytest.approx(0.9)


def test_without_a_step_there_is_no_sink():
    assert biggest_sink([], [], []) is None
