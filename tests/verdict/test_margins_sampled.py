"""Margins of sampled loops of two joints with integrals and delays, by their multipliers alone."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.loop.linear_loop import sampled_loop
from flexctl.verdict.margins import stability_margins

T = 0.02
M, K = [[2.0, 0.3], [0.3, 1.0]], [[0.0, 0.0], [0.0, 5.0]]
GAINS = {"by_q": -np.array([[40.0, 3.0], [1.0, 30.0]]), "by_v": -np.diag([14.0, 9.0])}


def largest(loop, factor):
    """Largest multiplier of the loop whose torques are scaled by `factor` (2,)."""
    scaled = np.diag(factor)
    changed = replace(
        loop, feedback=scaled @ loop.feedback, integral_gain=scaled @ loop.integral_gain
    )
    return np.abs(np.linalg.eigvals(sampled_loop(changed, T, loop.delay))).max() - 1


def lost(loop, j, values):
    """First of these gains of channel j, from 1 on, at which the loop is no longer stable."""

    def excess(gain):
        factor = np.ones(2)
        factor[j] = gain
        return largest(loop, factor)

    for a, b in pairwise(values):
        if excess(b) >= 0:
            return brentq(excess, a, b, xtol=1e-12)
    return None


@pytest.mark.parametrize("delay", [0.0, 0.013, T, 1.4 * T])
@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize("j", [0, 1])
@pytest.mark.slow_but("0-False-0.013", "0-True-0.02*", "1-False-0.02*", "1-True-0.0")
def test_gains_are_lost_where_a_multiplier_leaves_the_circle(make, delay, integral, j):
    by_z = -np.diag([25.0, 18.0]) if integral else None
    D = np.diag([0.1, 0.2])
    loop = make["linear"](M, D, K, *GAINS.values(), by_z, sample_time=T, delay=delay)
    assert largest(loop, np.ones(2)) < 0
    found = stability_margins(loop)
    up = lost(loop, j, np.geomspace(1.0, 1e3, 120))
    down = lost(loop, j, np.geomspace(1.0, 1e-6, 240))

    assert found.gain_up_db[j] == pytest.approx(20 * np.log10(up), rel=1e-5)
    if down is None:
        assert found.gain_down_db[j] > 100
    else:
        assert found.gain_down_db[j] == pytest.approx(-20 * np.log10(down), rel=1e-5)
