"""Step times as machines give them: noise that lasts for several steps, and drift."""

import numpy as np


def autocorrelated(rng, rows, steps, rho):
    """Rows of AR(1) noise of mean 0 and variance 1."""
    shocks = rng.standard_normal((rows, steps)) * np.sqrt(1 - rho**2)
    noise = np.empty_like(shocks)
    noise[:, 0] = rng.standard_normal(rows)
    for at in range(1, steps):
        noise[:, at] = rho * noise[:, at - 1] + shocks[:, at]
    return noise
