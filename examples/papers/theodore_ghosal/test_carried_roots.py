"""Wave numbers integrated with the motion, against those that are found anew."""

from functools import cache

import numpy as np
import pytest

from examples.papers.theodore_ghosal.carried_roots import carry_roots, root_errors
from examples.papers.theodore_ghosal.mode_rates import with_rates
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.errors import InputError
from flexctl.model.lookup import load_model

RRP = load_model("theodore-ghosal-rrp")
TORQUES = np.array([1.0, -2.0, 3.0])


@cache
def carried():
    return carry_roots(RRP, 1)


def state(length):
    rng = np.random.default_rng(3)
    q = 0.01 * rng.normal(size=carried().plant.n)
    q[2] = length
    return q, rng.normal(size=carried().plant.n)


@pytest.mark.parametrize("length", [0.1, 0.4, 1.2])
@pytest.mark.slow  # takes long
def test_on_the_root_the_arm_moves_as_by_root_finding(length):
    q, v = state(length)
    a = np.array(carried().motion(q, v, TORQUES, carried().roots(length))[0]).ravel()
    expected = carried().plant.forward_dynamics(q, v, TORQUES)
    np.testing.assert_allclose(a, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("length", [0.1, 0.4, 1.2])
def test_the_root_changes_at_the_rate_of_the_modes_energy(length):
    q, v = state(length)
    rate = float(carried().motion(q, v, TORQUES, carried().roots(length))[1])
    modes = with_rates(find_moving_modes(1, carried().shapes.line.loads([length])))
    assert rate == pytest.approx(modes.beta_rate[0, 0] * v[2] / length, rel=1e-12)


def test_a_wave_number_beside_the_root_is_taken_as_it_is():
    q, v = state(0.4)
    roots = carried().roots(0.4)
    found, expected = (
        np.array(carried().motion(q, v, TORQUES, b)[0]).ravel() for b in (1.1 * roots, roots)
    )
    assert np.abs(found / expected - 1).max() > 1e-3


def test_errors_of_roots_are_relative():
    joints = np.array([0.2, 0.9])
    betas = np.array([carried().roots(x) for x in joints]).T * [1.0, 1.01]
    np.testing.assert_allclose(root_errors(carried(), joints, betas), [[0.0, 0.01]], atol=1e-15)


def test_an_arm_without_a_load_that_slides_is_refused():
    with pytest.raises(InputError, match="expected one sliding link with one tip load"):
        carry_roots(load_model("planar-two-link"), 1)
