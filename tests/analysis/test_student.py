"""Student's t against the tables in every statistics book."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timesink.analysis.student import two_sided_p, two_sided_t


@pytest.mark.parametrize(
    ("degrees", "p", "t"),
    [
        (1, 0.05, 12.7062),
        (2, 0.05, 4.30265),
        (5, 0.05, 2.57058),
        (14, 0.05, 2.14479),
        (30, 0.01, 2.75000),
        (1e6, 0.05, 1.95997),
        (3, 0.001, 12.9240),
    ],
)
def test_the_quantiles_are_those_of_the_tables(degrees, p, t):
    assert two_sided_t(p, np.array([degrees], float))[0] == pytest.approx(t, rel=1e-5)


@given(st.floats(1e-8, 0.999), st.floats(0.5, 500))
def test_quantile_and_probability_are_inverse(p, degrees):
    degrees = np.array([degrees])
    assert two_sided_p(two_sided_t(p, degrees), degrees)[0] == pytest.approx(p, rel=1e-5)


def test_no_deviation_is_no_surprise_and_a_huge_one_is_certain():
    p = two_sided_p(np.array([0.0, 1e9]), np.array([3.0, 14.0]))
    assert p[0] == 1
    assert p[1] < 1e-50
