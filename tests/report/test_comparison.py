"""Runs beside each other: what is faster, and what is only noise."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from timesink.report.comparison import (
    Rate,
    fastest,
    findings,
    rate_of,
    repeated_sentence,
    repetitions,
)
from timesink.report.settings import differing


def facts(name, *, noise=0.01, count=200, rate=100.0, seed=0, **experiment):
    rng = np.random.default_rng(seed)
    step_ms = 10 * rng.normal(1, noise, count)
    steps = pl.DataFrame(
        {"step_ms": step_ms, "images": [1] * count, "first": [n == 0 for n in range(count)]}
    )
    settings = {"name": name, "seed": seed, "training": experiment}
    summary = {"images_per_s": rate}
    return SimpleNamespace(name=name, steps=steps, summary=summary, experiment=settings)


def test_the_interval_holds_the_rate_and_is_wider_with_noise():
    calm, noisy = rate_of(facts("a", noise=0.01)), rate_of(facts("b", noise=0.2))
    assert calm.low < 100.0 < calm.high
    assert noisy.high - noisy.low > 5 * (calm.high - calm.low)


def test_a_few_steps_say_nothing_of_their_noise():
    assert rate_of(facts("a", count=5)) == Rate("a", 100.0, None, None)


def test_a_run_without_a_rate_has_none():
    assert rate_of(facts("a", rate=None)) is None


def test_a_lead_beyond_noise_is_told_from_one_within():
    clear = [Rate("a", 110.0, 109.0, 111.0), Rate("b", 100.0, 99.0, 101.0)]
    assert "10.0\u00a0% ahead of b and beyond" in fastest(clear)
    unclear = [Rate("a", 102.0, 98.0, 106.0), Rate("b", 100.0, 96.0, 104.0)]
    assert "within noise" in fastest(unclear)
    unknown = [Rate("a", 102.0, None, None), Rate("b", 100.0, 96.0, 104.0)]
    assert "is not known" in fastest(unknown)
    assert fastest(clear[:1]) == ""


def test_runs_of_one_experiment_are_repetitions_whatever_their_seed():
    runs = [
        facts("1", seed=1, rate=100.0, batch_size=8),
        facts("2", seed=2, rate=104.0, batch_size=8),
        facts("3", seed=3, rate=50.0, batch_size=16),
    ]
    (found,) = repetitions(runs)
    assert found.runs == ("1", "2")
    assert (found.least, found.images_per_s, found.most) == (100.0, 102.0, 104.0)
    assert "Differences below 4.0\u00a0% are noise" in repeated_sentence(found)


def test_settings_that_differ_are_named_and_others_are_not():
    one = {"name": "a", "seed": 1, "training": {"network": "x", "batch_size": 8}}
    other = {"name": "b", "seed": 2, "training": {"network": "x", "batch_size": 16, "xla": True}}
    assert differing([one, other]) == ["training.batch_size"]


def test_repetitions_count_as_one_when_the_fastest_is_said():
    runs = [
        facts("1", rate=100.0, batch_size=8),
        facts("2", rate=104.0, batch_size=8),
        facts("3", rate=50.0, batch_size=16),
        facts("4", rate=52.0, batch_size=16),
    ]
    first, *others = findings(runs, [rate_of(each) for each in runs])
    assert first.startswith("1 with its 1 repetition is the fastest with 102.0 images/s")
    assert "100.0\u00a0% ahead of 3 with its 1 repetition and beyond" in first
    assert len(others) == 2


def test_equal_rates_have_no_fastest():
    assert "equally fast" in fastest([Rate("a", 8.0, 7.0, 9.0), Rate("b", 8.0, 7.0, 9.0)])


@pytest.mark.parametrize("count", [0, 1])
def test_of_no_runs_nothing_is_said(count):
    assert fastest([Rate("a", 1.0, 1.0, 1.0)] * count) == ""
