"""Margins in pieces: values against the exact margins, derivatives against their differences."""

import numpy as np
import pytest

from flexctl.errors import FlexctlError
from flexctl.model import load_design, load_model
from flexctl.search.tuning.reading import read_problem
from flexctl.search.tuning.spectra import linear_loop
from flexctl.verdict import (
    IN_PIECES,
    MORE_IS_BETTER,
    linear_poses_metrics,
    margin_pieces,
)
from flexctl.verdict.smooth_margins import _slopes
from tests.battery.random_case import random_case
from tests.loops import hand_made

STEP, WIDER = 2e-5, 1e-4  # of the scales
SLOW = ("vertical-2r-encoders", "rrp-composite", "subudhi-morris-observer", "drives-composite")
DESIGNS = (
    "hub-pd",
    "hub-lqg",
    "vertical-2r-pd",
    "drives-pd",
    *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW),
)


SEEDS = [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 80))]


def worst(key, values):
    values = np.atleast_1d(values)
    return values.min() if key in MORE_IS_BETTER else values.max()


def assert_pieces(arm, design, count):
    """Compare pieces with the exact margins, derivatives by the first numbers with differences."""
    problem = read_problem(arm, design, [], minimise="stability.spectral_abscissa", subject_to=[])
    u = problem.free.start

    def moved(k, step):
        v = u.copy()
        v[k] += step
        return problem.loop(0, v)

    loop = problem.loop(0, u)
    linear = linear_loop(loop, None)
    if linear.poles.real.max() >= 0:
        pytest.skip("an unstable loop has no margins")
    reads = linear.signals.of_instruments and linear.signals.names
    keys = [key for key in sorted(IN_PIECES) if reads or "sensors" not in key]
    known = linear_poses_metrics(loop, keys)
    numbers = range(min(count, len(u)))
    others = [(linear_loop(moved(k, STEP), None), STEP) for k in numbers]
    # the middles of both differences are STEP/2 beside u
    ends = [
        [linear_poses_metrics(moved(k, STEP / 2 + side * WIDER), keys) for side in (1, -1)]
        for k in numbers
    ]
    for key in keys:
        values, slopes = margin_pieces(key, linear, others)
        value = worst(key, known[key])
        if not len(values):
            assert value == np.inf
            continue
        assert worst(key, values) == pytest.approx(value, rel=5e-6)
        at = np.array([[worst(key, one[key]) for one in end] for end in ends])
        by_differences = (at[:, 0] - at[:, 1]) / (2 * WIDER)
        own = slopes[np.flatnonzero(values == worst(key, values))[0]]
        size = np.abs(by_differences).max()
        noise = 3e-6 * abs(value) / WIDER  # of exact margins, relative to which they are found
        np.testing.assert_allclose(own, by_differences, atol=2e-2 * size + noise, err_msg=key)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_the_worst_piece_is_the_margin_and_moves_as_it_does(name):
    design = load_design(name)
    assert_pieces(load_model(design.model), design, 2)


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("no_compiler")
def test_so_it_is_for_random_arms(seed, tmp_path):
    arm, design = random_case(seed).write(tmp_path)
    try:
        assert_pieces(load_model(arm), load_design(design), 1)
    except FlexctlError as error:
        pytest.skip(f"no margins: {error}")


@pytest.mark.parametrize("period", [None, 0.05])
def test_a_delay_without_a_limit_has_no_pieces(period):
    weak = hand_made(1.0, 1.0, 1.0, -0.05, -0.02, sample_time=period)  # a loop gain below 1
    for key in ("margins.delay_seconds", "margins.common_delay_seconds"):
        assert not len(margin_pieces(key, weak, [])[0])


def test_the_delay_of_a_rigid_joint_moves_as_in_closed_form():
    # L = (d s + k)/s^2 has unit size at w, and there the phase margin w t = atan(d w/k)
    def delay(k, d):
        w = np.sqrt((d**2 + np.sqrt(d**4 + 4 * k**2)) / 2)
        return np.arctan2(d * w, k) / w

    k, d, h = 9.0, 4.0, 1e-6
    moved = [(hand_made(1, 0, 0, -k - h, -d), h), (hand_made(1, 0, 0, -k, -d - h), h)]
    values, slopes = margin_pieces("margins.delay_seconds", hand_made(1, 0, 0, -k, -d), moved)

    assert values[0] == pytest.approx(delay(k, d), rel=1e-9)
    expected = [
        (delay(k + h, d) - delay(k - h, d)) / (2 * h),
        (delay(k, d + h) - delay(k, d - h)) / (2 * h),
    ]
    np.testing.assert_allclose(slopes[0], expected, rtol=1e-5)


@pytest.mark.parametrize("seed", range(20))
def test_the_gain_under_the_best_scaling_moves_as_the_equal_singular_values_allow(seed):
    # of 2 x 2 matrices the best scaling balances what is off the diagonal; of unitary ones, and
    # these among them, both singular values are equal whatever moves them apart
    rng = np.random.default_rng(seed)
    Z, change = (rng.normal(size=(2, 2)) + 1j * rng.normal(size=(2, 2)) for _ in range(2))
    if seed % 2:
        Z = np.linalg.qr(Z)[0]

    def gain(step):
        X = Z + step * change
        d = np.array([1.0, np.sqrt(abs(X[0, 1]) / abs(X[1, 0]))])
        return np.linalg.norm(d[:, None] * X / d, 2), d

    ahead, behind = gain(1e-6)[0], gain(-1e-6)[0]
    value, d = gain(0.0)
    slopes = _slopes(Z, d, [change], balanced=True)
    if seed % 2:  # a kink: the largest rises, whichever way
        assert (ahead - value) / 1e-6 >= slopes[0] - 1e-4 >= (value - behind) / 1e-6 - 2e-4
    else:
        assert slopes[0] == pytest.approx((ahead - behind) / 2e-6, abs=1e-5)
