"""Student's t distribution on arrays: how surprising a deviation is, and how far to expect one.

The base install has NumPy and no SciPy (40 MB for two functions). The tail is the regularised
incomplete beta function, by its continued fraction (Numerical Recipes, 6.4).
"""

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_TINY = 1e-300
_PRECISION = 1e-13
_MOST_TERMS = 500


def two_sided_p(t: Floats, degrees: Floats) -> Floats:
    """Give the chance of a deviation at least as large as |t|."""
    share = degrees / (degrees + np.square(t))
    return np.clip(_incomplete_beta(degrees / 2, np.full_like(degrees, 0.5), share), 0.0, 1.0)


def two_sided_t(p: float, degrees: Floats) -> Floats:
    """Give the |t| that is exceeded with chance p."""
    t = np.zeros_like(degrees)
    log_scale = _log_gamma((degrees + 1) / 2) - _log_gamma(degrees / 2)
    log_scale -= 0.5 * np.log(degrees * math.pi)
    for _ in range(_MOST_TERMS):
        density = np.exp(log_scale - (degrees + 1) / 2 * np.log1p(np.square(t) / degrees))
        # The tail is convex and falls: Newton's steps from 0 come up to the root and never pass it.
        step = (two_sided_p(t, degrees) - p) / (2 * density)
        t += step
        if np.all(np.abs(step) <= 1e-9 * np.maximum(t, 1)):
            break
    return t


def _incomplete_beta(a: Floats, b: Floats, x: Floats) -> Floats:
    inner = np.clip(x, _TINY, 1 - 1e-16)
    front = np.exp(
        _log_gamma(a + b) - _log_gamma(a) - _log_gamma(b) + a * np.log(inner) + b * np.log1p(-inner)
    )
    # The fraction converges quickly only below the mean; above it, the other tail is computed.
    low = inner < (a + 1) / (a + b + 2)
    below = front * _continued_fraction(a, b, np.where(low, inner, 0.0)) / a
    above = 1 - front * _continued_fraction(b, a, np.where(low, 0.0, 1 - inner)) / b
    return np.where(x >= 1, 1.0, np.where(low, below, above))


def _continued_fraction(a: Floats, b: Floats, x: Floats) -> Floats:
    """Evaluate the fraction by Lentz's method, as it is modified there."""
    c = np.ones_like(x)
    d = 1 / _nonzero(1 - (a + b) * x / (a + 1))
    value = d.copy()
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _nonzero(1 + term * d)
            c = _nonzero(1 + term / c)
            value *= c * d
        if np.all(np.abs(c * d - 1) < _PRECISION):
            break
    return value


def _nonzero(value: Floats) -> Floats:
    return np.where(np.abs(value) < _TINY, _TINY, value)


def _log_gamma(value: Floats) -> Floats:
    return np.array([math.lgamma(each) for each in value.ravel()]).reshape(value.shape)
