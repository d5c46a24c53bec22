"""How well a mean is known: what the correlation of neighbouring steps does to its error."""

import numpy as np
import pytest

from tests.analysis.series import autocorrelated
from timesink.analysis.noise import correlation, mean_of_steps


@pytest.mark.parametrize("count", [20, 60])
def test_the_correlation_is_not_understated_in_short_runs(count):
    rng = np.random.default_rng(1)
    runs = [autocorrelated(rng, 2000, count, 0.6).T for _ in range(2)]
    assert correlation(runs).mean() == pytest.approx(0.6, abs=0.05)


def test_steps_that_do_not_vary_have_no_correlation():
    assert correlation([np.full((30, 1), 4.0)]) == [0]


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_the_variance_is_that_of_the_mean_and_not_that_of_independent_steps(rho):
    noise = autocorrelated(np.random.default_rng(2), 4000, 60, rho).T
    known = mean_of_steps(noise, np.full(4000, rho))
    assert known.variance.mean() == pytest.approx(known.mean.var(), rel=0.1)
