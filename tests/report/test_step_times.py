"""Steps as few points: nothing that matters is lost, and what is left out is known."""

import polars as pl
import pytest

from timesink.report.step_times import (
    accounts_by_iteration,
    by_iteration,
    distribution,
    traced_stretches,
)


def steps(step_ms, *, traced=(), first=(1,)):
    count = len(step_ms)
    iteration = list(range(1, count + 1))
    return pl.DataFrame(
        {
            "iteration": iteration,
            "step_ms": [float(each) for each in step_ms],
            "data_ms": [1.0] * count,
            "first": [number in first for number in iteration],
            "traced": [number in traced for number in iteration],
        }
    )


def of_step(series):
    return [row for row in series.rows if row["series"] == "step"]


def test_few_steps_are_drawn_one_by_one_without_the_first():
    drawn = by_iteration(steps([5000, 10, 20, 30]))
    assert drawn.steps_a_point == 1
    assert [row["median_ms"] for row in of_step(drawn)] == [10, 20, 30]
    assert [row["iteration"] for row in of_step(drawn)] == [2, 3, 4]


def test_many_steps_become_medians_with_their_range():
    drawn = by_iteration(steps([9, *range(1000)]), most=100)
    assert drawn.steps_a_point == 10
    first = of_step(drawn)[0]
    assert (first["iteration"], first["last_iteration"]) == (2, 11)
    assert (first["median_ms"], first["least_ms"], first["most_ms"]) == (4.5, 0, 9)
    assert len(of_step(drawn)) == 100


def test_a_run_of_first_steps_alone_is_drawn_all_the_same():
    assert len(of_step(by_iteration(steps([5000])))) == 1


def test_traced_stretches_are_from_first_to_last():
    assert traced_stretches(steps([1] * 9, traced=(2, 3, 4, 7))) == [
        {"first": 2, "last": 4},
        {"first": 7, "last": 7},
    ]
    assert traced_stretches(steps([])) == []


def test_every_step_is_in_the_distribution_and_outliers_are_counted():
    found = distribution(steps([9, *[10.0 + n % 7 for n in range(400)], 5000.0], traced=(5, 6)))
    assert sum(row["steps"] for row in found.rows) == 401
    assert sum(row["steps"] for row in found.rows if row["what"] == "traced") == 2
    assert found.longest_ms == 5000.0
    assert found.beyond == 1
    assert max(row["to_ms"] for row in found.rows) < 100
    assert found.median_ms == pytest.approx(13, abs=1)


def test_steps_that_do_not_vary_have_a_distribution():
    found = distribution(steps([9, 10, 10, 10]))
    assert sum(row["steps"] for row in found.rows) == 3
    assert found.beyond == 0


def test_one_step_has_none():
    assert distribution(steps([9])) is None


def test_traced_steps_are_averaged_over_stretches():
    ledger = pl.DataFrame(
        {
            "process": [1] * 8,
            "iteration": [1, 1, 2, 2, 3, 3, 4, 4],
            "account": ["runtime", "forward"] * 4,
            "ms": [1.0, 10.0, 3.0, 10.0, 5.0, 10.0, 7.0, 10.0],
        }
    )
    drawn = accounts_by_iteration(ledger, most=2)
    assert drawn.steps_a_point == 2
    assert [row["ms"] for row in drawn.rows if row["account"] == "runtime"] == [2.0, 6.0]
    assert accounts_by_iteration(ledger).steps_a_point == 1


def test_an_account_that_is_not_in_every_step_is_averaged_over_all_of_them():
    ledger = pl.DataFrame(
        {
            "process": [1, 1, 1],
            "iteration": [1, 1, 2],
            "account": ["python", "forward", "forward"],
            "ms": [4.0, 10.0, 10.0],
        }
    )
    (python,) = [r for r in accounts_by_iteration(ledger, most=1).rows if r["account"] == "python"]
    assert python["ms"] == 2.0
