"""Two runs compared: change is told from noise that lasts for several steps."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.analysis.series import autocorrelated
from timesink.analysis.compare import (
    TOO_FEW,
    Measured,
    compare,
    compare_charged,
    compare_steps,
)

NOTHING = pl.DataFrame(
    schema={
        "step": pl.Int64,
        **dict.fromkeys(("account", "layer", "phase", "place", "device"), pl.String),
        "charged_ms": pl.Float64,
    }
)


def steps(*times_ms):
    return Measured(np.array(times_ms, float), NOTHING)


def charged(rows):
    """A run whose rows are {account or key: time of each step}; None is no row at that step."""
    lines = []
    for key, times in rows.items():
        account, layer, phase, place, device = (
            key if isinstance(key, tuple) else (key, None, None, None, "CPU:0")
        )
        lines += [
            (at, account, layer, phase, place, device, time)
            for at, time in enumerate(times)
            if time is not None
        ]
    frame = pl.DataFrame(lines, schema=NOTHING.schema, orient="row")
    return Measured(np.array([1.0]), frame)


def accounts(noise):
    return charged({f"a{at:03d}": row for at, row in enumerate(noise)})


@pytest.mark.parametrize("count", [30, 60, 200])
@pytest.mark.parametrize("rho", [0.0, 0.3, 0.6])
def test_noise_that_lasts_is_called_change_no_more_often_than_the_test_says(count, rho):
    rng = np.random.default_rng(1)
    before, after = (40 + 2 * autocorrelated(rng, 600, count, rho) for _ in range(2))
    rows = compare_charged([accounts(before)], [accounts(after)])
    # 600 pairs at 5 %: three standard deviations above it are 7.7 %.
    assert sum(row.p <= 0.05 for row in rows) / 600 <= 0.077


def test_noise_that_lasts_very_long_is_at_most_a_little_more_often_called_change():
    rng = np.random.default_rng(1)
    before, after = (40 + 2 * autocorrelated(rng, 600, 200, 0.9) for _ in range(2))
    rows = compare_charged([accounts(before)], [accounts(after)])
    assert sum(row.p <= 0.05 for row in rows) / 600 <= 0.09


def test_of_many_rows_that_are_noise_hardly_any_is_named():
    rng = np.random.default_rng(2)
    named = 0
    for _ in range(20):
        before, after = (1 + 0.1 * autocorrelated(rng, 100, 60, 0.4) for _ in range(2))
        rows = compare_charged([accounts(before)], [accounts(after)])
        named += any(row.changed for row in rows)
    assert named <= 4


def test_five_percent_slower_is_found_nearly_always():
    rng = np.random.default_rng(3)
    before = 40 * (1 + 0.05 * autocorrelated(rng, 300, 100, 0.5))
    after = 42 * (1 + 0.05 * autocorrelated(rng, 300, 100, 0.5))
    found = [compare_steps([steps(*b)], [steps(*a)]) for b, a in zip(before, after, strict=True)]
    assert np.mean([row.changed and row.difference_ms > 0 for row in found]) >= 0.9
    assert np.mean([row.low_ms <= 2 <= row.high_ms for row in found]) >= 0.92


def test_one_changed_row_is_named_among_many_that_are_not():
    rng = np.random.default_rng(4)
    before, after = (1 + 0.05 * autocorrelated(rng, 200, 60, 0.3) for _ in range(2))
    after[17] += 0.5
    rows = compare_charged([accounts(before)], [accounts(after)])
    assert rows[0].account == "a017"
    assert [row.account for row in rows if row.changed] == ["a017"]


def test_with_repetitions_the_runs_are_the_unit():
    """Runs that differ from one another by chance: within each, steps hardly vary."""
    rng = np.random.default_rng(5)
    false_alarms = 0
    for _ in range(300):
        level = 40 * (1 + 0.05 * rng.standard_normal(8))
        runs = [steps(*(each + 0.01 * rng.standard_normal(50))) for each in level]
        false_alarms += compare_steps(runs[:4], runs[4:]).changed
    assert false_alarms / 300 <= 0.08
    assert compare_steps(runs[:1], runs[4:5]).changed  # what one run a side cannot see


def test_repetitions_find_a_change_beyond_what_differs_between_runs():
    rng = np.random.default_rng(6)
    level = [40, 40.3, 39.8, 45, 45.2, 44.9]
    runs = [steps(*(each + rng.standard_normal(5))) for each in level]
    row = compare_steps(runs[:3], runs[3:])
    assert row.changed
    assert row.difference_ms == pytest.approx(5, abs=1)


def test_one_run_against_repetitions_has_their_variance():
    rng = np.random.default_rng(7)
    false_alarms = 0
    for _ in range(300):
        level = 40 * (1 + 0.05 * rng.standard_normal(6))
        runs = [steps(*(each + 0.01 * rng.standard_normal(50))) for each in level]
        false_alarms += compare_steps(runs[:5], runs[5:]).changed
    assert 0 < false_alarms / 300 <= 0.09


def test_the_step_comes_first_and_then_the_rows_by_the_size_of_their_difference():
    rng = np.random.default_rng(8)

    def run(*levels):
        times = [each + 0.01 * rng.standard_normal(24) for each in levels]
        rows = dict(zip(("idle", "loss", "runtime"), times, strict=True))
        return Measured(np.sum(times, axis=0), charged(rows).charged)

    rows = compare([run(5, 3, 4)], [run(5.1, 1, 5)])
    assert [row.account for row in rows] == ["step", "loss", "runtime", "idle"]
    parts = sum(row.difference_ms for row in rows[1:])
    assert parts == pytest.approx(rows[0].difference_ms)


def test_a_run_against_itself_has_not_changed_and_has_no_nan():
    rng = np.random.default_rng(9)
    rows = accounts(np.vstack([rng.random((3, 30)), np.zeros((1, 30)), np.ones((1, 30))]))
    run = Measured(rng.random(30), rows.charged)
    for row in compare([run], [run]):
        assert (row.difference_ms, row.p) == (0, 1)
        assert not row.changed
        assert not any(
            isinstance(value, float) and math.isnan(value)
            for value in dataclasses.asdict(row).values()
        )


def test_constant_times_are_equal_or_different_for_certain():
    same = compare_steps([steps(*[0.1] * 30)], [steps(*[0.1] * 47)])
    assert (same.p, same.changed, same.low_ms, same.high_ms) == (1, False, 0, 0)
    other = compare_steps([steps(*[10] * 30)], [steps(*[12] * 30)])
    assert (other.p, other.changed, other.low_ms, other.high_ms) == (0, True, 2, 2)
    assert other.ratio == 1.2


def test_a_row_of_one_run_only_is_nothing_in_the_other():
    busy = np.random.default_rng(10).random(40) + 1
    before = charged({"idle": busy, "python": busy})
    after = charged({"idle": busy})
    gone, same = compare_charged([before], [after])
    assert (gone.account, gone.after_ms, gone.ratio, gone.changed) == ("python", 0, 0, True)
    assert (same.p, same.changed) == (1, False)
    (new, _) = compare_charged([after], [before])
    assert (new.before_ms, new.ratio, new.changed) == (0, None, True)


def test_something_seen_in_one_step_alone_is_no_change():
    busy = np.random.default_rng(11).random(40) + 1
    once = [None] * 20 + [8.0] + [None] * 19
    rows = compare_charged([charged({"idle": busy, "python": once})], [charged({"idle": busy})])
    assert rows[0].before_ms == pytest.approx(8 / 40)
    assert not rows[0].changed


def test_python_is_compared_by_place_and_layers_by_phase_and_device():
    busy = np.random.default_rng(12).random(20)
    keys = [
        ("python", None, None, "gc", "CPU:0"),
        ("python", None, None, "train.py:7", "CPU:0"),
        ("layer", "conv", "forward", None, "GPU:0"),
        ("layer", "conv", "backward", None, "GPU:0"),
        ("layer", "conv", "forward", None, "GPU:1"),
        ("layer", None, "update", None, "GPU:0"),
    ]
    run = charged(dict.fromkeys(keys, busy))
    found = {
        (row.account, row.layer, row.phase, row.place, row.device)
        for row in compare_charged([run], [run])
    }
    assert found == set(keys)


def test_too_few_steps_are_said_to_be_too_few():
    row = compare_steps([steps(*range(1, 12))], [steps(*range(100, 300))])
    assert (row.reason, row.p, row.low_ms, row.changed) == (TOO_FEW, None, None, False)
    assert row.difference_ms == pytest.approx(193.5)
    assert compare_steps([steps(*range(1, 13))], [steps(*range(100, 300))]).changed


def test_a_run_without_a_ledger_has_rows_to_compare_in_neither():
    assert compare_charged([steps(1)], [charged({"idle": [1.0] * 20})]) == []


times_ms = arrays.arrays(float, st.integers(12, 60), elements=st.floats(0, 1e5))


@given(times_ms, times_ms)
def test_whatever_the_times_the_interval_holds_the_difference_and_agrees_with_p(before, after):
    there = compare_steps([steps(*before)], [steps(*after)])
    back = compare_steps([steps(*after)], [steps(*before)])
    assert 0 <= there.p <= 1
    assert (
        there.low_ms <= there.difference_ms + 1e-6 and there.difference_ms - 1e-6 <= there.high_ms
    )
    if abs(there.p - 0.05) > 1e-6:
        assert there.changed == (there.low_ms > 0 or there.high_ms < 0)
    assert back.p == pytest.approx(there.p, abs=1e-9)
    assert back.difference_ms == -there.difference_ms
