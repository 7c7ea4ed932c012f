"""Fixed shapes mixed by polynomials: the exact modes on a range of lengths, in any arithmetic."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from examples.papers.theodore_ghosal.mode_rates import with_rates
from examples.papers.theodore_ghosal.moving_integrals import shape_integrals
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.matrices import unit_mass_and_stiffness
from flexctl.beam.moving_modes import LegendreShapes, find_moving_modes
from flexctl.beam.sliding_shapes import fit_sliding_shapes
from flexctl.errors import ComputationError, InputError

CASES = {
    "rrp": (4, SlidingLine(mass_per_length=0.331, mass=0.0828), 0.1, 1.3),
    "body": (
        3,
        SlidingLine(mass_per_length=0.331, mass=0.0828, inertia=1e-3, first_moment=5e-3),
        0.5,
        1.0,
    ),
}
ROUND_OFF = 2e-13  # of |psi''|: sixty points and thirty polynomials
each_case = pytest.mark.parametrize("case", CASES)


@cache
def fitted(case):
    return fit_sliding_shapes(*CASES[case])


def exact(case, lengths):
    """Exact modes with the signs of the fitted ones."""
    n, line = CASES[case][:2]
    modes = find_moving_modes(n, line.loads(lengths))
    tips = np.array([fitted(case).at(length).value(1.0)[:, 0] for length in lengths])
    return modes.times(np.sign(tips * modes.tip(0)))


def random_lengths(case, count):
    random = np.random.default_rng(7)
    return np.exp(random.uniform(*np.log(CASES[case][2:]), count))


@pytest.mark.slow_but("0-rrp")
@each_case
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_the_modes_stay_within_their_bound(case, derivative):
    # deflection and slope err by less than the curvature does, in norm
    lengths = random_lengths(case, 300)
    modes = exact(case, lengths)
    xi, weights = modes.quadrature()
    found = np.array([fitted(case).at(x).evaluate(xi, derivative) for x in lengths])
    error = np.sqrt((found - modes.evaluate(xi, derivative)) ** 2 @ weights).max(axis=0)
    size = modes.beta.max(axis=0) ** 2
    assert (error <= fitted(case).error + ROUND_OFF * size).all()


@each_case
def test_the_bound_meets_the_tolerance(case):
    size = (
        find_moving_modes(CASES[case][0], CASES[case][1].loads(CASES[case][2:])).beta.max(axis=0)
        ** 2
    )
    assert (fitted(case).error <= 1e-12 * size).all()


@pytest.mark.parametrize(("tolerance", "most"), [(1e-6, 5), (1e-8, 6), (1e-12, 8)])
def test_two_modes_need_few_shapes(tolerance, most):
    shapes = fit_sliding_shapes(2, *CASES["rrp"][1:], tolerance=tolerance)
    assert len(shapes.base.names) <= most


@each_case
def test_the_base_is_orthonormal_in_strain_energy(case):
    stiffness = unit_mass_and_stiffness(fitted(case).base)[1]
    np.testing.assert_allclose(stiffness, np.eye(len(stiffness)), atol=1e-12)


@each_case
def test_the_base_is_clamped(case):
    assert np.abs(fitted(case).base.value(0.0)).max() < 1e-14
    assert np.abs(fitted(case).base.slope(0.0)).max() < 1e-14


@pytest.mark.parametrize("derivative", [1, 2, 3])
def test_derivatives_by_xi_agree_with_differences(derivative):
    base, h, xi = fitted("rrp").base, 1e-5, np.linspace(0.1, 0.9, 7)
    below, above = (base.evaluate(xi + k * h, derivative - 1) for k in (-1, 1))
    size = np.abs(base.evaluate(xi, derivative)).max()
    error = np.abs((above - below) / (2 * h) - base.evaluate(xi, derivative)).max()
    assert error < 1e-6 * size


@each_case
@pytest.mark.parametrize("order", [1, 2])
def test_casadi_derivatives_of_the_mix_are_those_of_the_modes(case, order):
    s = ca.SX.sym("s")
    rows = fitted(case).mix_at(s)
    C = ca.vertcat(*[ca.horzcat(*row) for row in rows])
    for _ in range(order):
        C = ca.reshape(ca.jacobian(C, s), C.shape)
    lengths = random_lengths(case, 10)
    modes, f = with_rates(exact(case, lengths)), ca.Function("C", [s], [C])
    xi, weights = modes.quadrature()
    base = fitted(case).base.value(xi)
    found = np.array([np.array(f(np.log(x))).T @ base for x in lengths])
    error = np.sqrt((found - modes.evaluate(xi, 0, order)) ** 2 @ weights)
    # Markov's factor degree^2 at every derivative, and the width of the range
    assert error.max() < 1e-12 * modes.beta.max() ** 2 * 400.0**order


@each_case
@pytest.mark.parametrize("name", ["mass", "value_carried", "carried_carried"])
def test_gram_matrices_of_the_base_make_the_integrals(case, name):
    # what a plant does: numbers from B, and C, dC/ds from automatic differentiation
    shapes, s, length = fitted(case), ca.SX.sym("s"), 0.77
    C = ca.vertcat(*[ca.horzcat(*row) for row in shapes.mix_at(s)])
    rate = ca.reshape(ca.jacobian(C, s), C.shape)
    C, rate = (np.array(x) for x in ca.Function("C", [s], [C, rate])(np.log(length)))
    xi, weights = shapes.base.quadrature()
    value = C.T @ shapes.base.value(xi)
    carried = (1 - xi) * (C.T @ shapes.base.slope(xi)) + rate.T @ shapes.base.value(xi)
    pairs = {
        "mass": (value, value),
        "value_carried": (value, carried),
        "carried_carried": (carried, carried),
    }
    found = (pairs[name][0] * weights) @ pairs[name][1].T
    expected = shape_integrals(with_rates(exact(case, np.array([length]))))[name]
    np.testing.assert_allclose(
        found / expected.scale, expected.values[0] / expected.scale, atol=1e-9
    )


def test_a_polynomial_is_its_own_integral():
    # psi'' = sqrt(3) P_1(2 xi - 1): psi = sqrt(3) (xi^3 / 3 - xi^2 / 2)
    shapes, xi = LegendreShapes(curvatures=np.array([[0.0, 1.0]])), np.linspace(0, 1, 9)
    expected = np.sqrt(3) * (xi**3 / 3 - xi**2 / 2)
    np.testing.assert_allclose(shapes.value(xi)[0], expected, atol=1e-15)


@pytest.mark.parametrize("length", [0.0999, 1.3001])
def test_lengths_out_of_range_are_refused(length):
    with pytest.raises(InputError, match=r"length: expected 0\.1 \.\. 1\.3 m, got"):
        fitted("rrp").at(length)


def test_more_digits_than_there_are_are_refused():
    with pytest.raises(ComputationError, match="round-off exceeds the tolerance"):
        fit_sliding_shapes(*CASES["rrp"], tolerance=1e-14)


def test_a_proof_that_is_too_long_is_refused():
    far = SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.025, first_moment=0.1)
    with pytest.raises(ComputationError, match="expected at most 20000 lengths for the proof"):
        fit_sliding_shapes(4, far, 0.1, 1.3)
