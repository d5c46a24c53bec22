"""Stages: presets, arguments, and a reason for a wrong order."""

import pytest

from timesink.errors import ExperimentError
from timesink.pipelines.stages import parse_stages, without_random


def test_the_default_is_what_seed_000_ran():
    names = [stage.name for stage in parse_stages("seed000")]
    assert names == ["decode", "convert", "resize", "random_brightness", "clip"]
    assert parse_stages("seed000")[3].arguments == (32 / 255,)


def test_validation_keeps_the_stages_that_are_not_random():
    kept = without_random(parse_stages("seed000"))
    assert [stage.name for stage in kept] == ["decode", "convert", "resize", "clip"]


def test_arguments_are_read():
    stages = parse_stages(["decode", "convert", "resize", "clip(0.1, 0.9)"])
    assert stages[-1].arguments == (0.1, 0.9)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ("sed000", "allowed: seed000, plain"),
        (["decode", "resiz"], "did you mean resize?"),
        (["convert", "decode", "resize"], "convert takes uint8 but is given bytes"),
        (["decode", "resize"], "resize takes float but is given uint8"),
        (["decode", "convert"], "resize is missing"),
        (["decode", "convert", "resize", "clip(1)"], "clip takes 2 argument"),
        (["decode", "convert", "resize", "clip(a, b)"], "arguments are numbers"),
        (["decode", "convert", "resize", "clip("], "found 'clip('"),
    ],
)
def test_what_cannot_run_is_refused_with_a_reason(asked, reason):
    with pytest.raises(ExperimentError) as raised:
        parse_stages(asked)
    assert reason in str(raised.value)
