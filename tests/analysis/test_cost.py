"""What tracing costs: found beside drift and noise, with an interval that holds the truth."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.analysis.series import autocorrelated
from timesink.analysis.cost import RunSlowdown, Slowdown, run_slowdown, slowdown

WINDOWS = ((40, 50), (90, 100), (140, 150))


def traced_at(count, windows=WINDOWS):
    traced = np.zeros(count, bool)
    for begin, end in windows:
        traced[begin:end] = True
    return traced


def one_process(count):
    return np.ones(count, np.int64)


def simulated(rng, *, ratio, count=200, windows=WINDOWS, rho=0.5, drift=0.0, scatter=0.05):
    traced = traced_at(count, windows)
    log_ms = np.log(40) + scatter * autocorrelated(rng, 1, count, rho)[0]
    log_ms = log_ms + np.linspace(0, drift, count) + np.log(ratio) * traced
    return np.exp(log_ms), traced, one_process(count)


def test_the_ratio_is_exact_where_nothing_else_varies():
    traced = traced_at(200)
    found = slowdown(np.where(traced, 13.0, 10.0), traced, one_process(200))
    assert (found.ratio, found.low, found.high) == (pytest.approx(1.3),) * 3
    assert (found.traced_median_ms, found.untraced_median_ms) == (13, 10)
    assert (found.traced_steps, found.untraced_steps) == (30, 170)
    assert found.reason is None


@pytest.mark.parametrize(
    ("count", "windows"),
    [(60, ((20, 30),)), (60, ((15, 20), (30, 35), (45, 50))), (200, WINDOWS)],
)
@pytest.mark.parametrize(("rho", "drift"), [(0.0, 0.0), (0.5, 0.2), (0.8, 0.0)])
def test_the_interval_holds_the_truth_as_often_as_it_says(count, windows, rho, drift):
    rng = np.random.default_rng(1)
    held = 0
    for _ in range(150):
        steps = simulated(rng, ratio=1.3, count=count, windows=windows, rho=rho, drift=drift)
        found = slowdown(*steps)
        held += found.low <= 1.3 <= found.high
    # 150 times at 95 %: two standard deviations below it are 91 %.
    assert held / 150 >= 0.91


def test_the_interval_is_narrow_enough_to_be_of_use():
    rng = np.random.default_rng(2)
    found = [slowdown(*simulated(rng, ratio=1.3)) for _ in range(50)]
    assert np.mean([each.high - each.low for each in found]) < 0.2
    assert np.mean([each.ratio for each in found]) == pytest.approx(1.3, abs=0.02)


def test_a_machine_that_grows_slower_does_not_look_like_cost():
    count = 200
    late = traced_at(count, ((150, 160), (175, 185)))
    growing = np.linspace(10, 20, count)
    naive = np.median(growing[late]) / np.median(growing[~late])
    assert naive > 1.15
    assert slowdown(growing, late, one_process(count)).ratio == pytest.approx(1, abs=0.01)


def test_a_process_of_its_own_speed_is_compared_with_itself():
    traced = np.concatenate([traced_at(100, ((90, 100),)), traced_at(100, ((0, 10),))])
    process = np.repeat([1, 2], 100)
    step_ms = np.where(process == 1, 10.0, 30.0) * np.where(traced, 1.2, 1.0)
    found = slowdown(step_ms, traced, process)
    assert found.ratio == pytest.approx(1.2)
    assert found.high == pytest.approx(1.2)


def test_excluded_steps_count_on_neither_side():
    traced = traced_at(100, ((50, 60),))
    step_ms = np.where(traced, 12.0, 10.0)
    excluded = np.zeros(100, bool)
    excluded[[0, 48, 49, 50, 51, 60, 61]] = True
    step_ms[excluded] = 500
    found = slowdown(step_ms, traced, one_process(100), excluded)
    assert found.ratio == pytest.approx(1.2)
    assert (found.traced_steps, found.untraced_steps) == (8, 85)


def test_traced_steps_that_scatter_more_widen_the_interval():
    rng = np.random.default_rng(3)
    step_ms, traced, process = simulated(rng, ratio=1.0, rho=0)
    calm = slowdown(step_ms, traced, process)
    restless = np.where(traced, 40 * (step_ms / 40) ** 4, step_ms)
    wild = slowdown(restless, traced, process)
    assert wild.high - wild.low > 2 * (calm.high - calm.low)


def test_the_same_steps_give_the_same_interval():
    steps = simulated(np.random.default_rng(4), ratio=1.1)
    assert slowdown(*steps) == slowdown(*steps)


def test_without_traced_steps_there_is_no_ratio_and_a_reason():
    found = slowdown(np.full(50, 10.0), np.zeros(50, bool), one_process(50))
    assert (found.ratio, found.low, found.high) == (None, None, None)
    assert found.reason == "no step was traced"
    assert found.untraced_median_ms == 10
    assert found.traced_median_ms is None


def test_with_few_untraced_steps_there_is_no_ratio_and_a_reason():
    traced = traced_at(50, ((0, 45),))
    found = slowdown(np.full(50, 10.0), traced, one_process(50))
    assert found.ratio is None
    assert "5, at least 12" in found.reason
    beside = traced_at(40, ((0, 20),))
    other_process = np.where(beside, 1, 2)
    found = slowdown(np.full(40, 10.0), beside, other_process)
    assert found.ratio is None
    assert "beside" in found.reason


def test_no_steps_at_all_are_no_error():
    nothing = np.array([])
    found = slowdown(nothing, nothing.astype(bool), nothing.astype(np.int64))
    assert (found.ratio, found.reason) == (None, "no step was traced")


def window(ratio, low, high):
    return Slowdown(ratio, low, high, 12.0, 10.0, 10, 90)


def test_the_runs_slowdown_counts_traced_steps_and_the_profile_account():
    found = run_slowdown(window(1.2, 1.1, 1.25), traced_ms=120, untraced_ms=900, profile_ms=80)
    assert found.ratio == pytest.approx(1100 / 1000)
    assert found.low == pytest.approx(1100 / (900 + 120 / 1.1))
    assert found.high == pytest.approx(1100 / (900 + 120 / 1.25))


def test_a_run_that_was_not_traced_was_not_slowed():
    never = slowdown(np.full(50, 10.0), np.zeros(50, bool), one_process(50))
    found = run_slowdown(never, traced_ms=0, untraced_ms=500, profile_ms=0)
    assert found == RunSlowdown(1, 1, 1)


def test_what_the_window_cannot_tell_the_run_cannot_either():
    unknown = Slowdown(None, None, None, 1.0, None, 5, 0, "too few untraced steps")
    found = run_slowdown(unknown, traced_ms=5, untraced_ms=0, profile_ms=1)
    assert found == RunSlowdown(None, None, None, "too few untraced steps")


@given(
    st.lists(st.floats(0.01, 1e4), min_size=2, max_size=120),
    st.randoms(use_true_random=False),
)
def test_whatever_the_steps_the_interval_holds_the_ratio(times_ms, random):
    count = len(times_ms)
    traced = np.array([random.random() < 0.4 for _ in range(count)])
    process = np.sort(np.array([random.randint(1, 2) for _ in range(count)], np.int64))
    found = slowdown(np.array(times_ms), traced, process)
    assert (found.ratio is None) == (found.reason is not None)
    if found.ratio is not None:
        assert 0 < found.low <= found.ratio <= found.high
        assert np.isfinite(found.high)
