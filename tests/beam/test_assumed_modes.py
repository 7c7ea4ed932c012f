"""Assumed modes: conditions at both ends, orthogonality, signs, convergence under a load."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import assemble_matrices

UNIT = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0})
LIGHT = [
    TipLoad(),
    TipLoad(mass=0.1),
    TipLoad(mass=0.8, inertia=0.1, offset=0.2),
    TipLoad(mass=0.8, inertia=0.1, offset=-0.2),
    TipLoad(mass=2.0, inertia=2.0 * 0.3**2, offset=-2.0 * 0.3),
    TipLoad(mass=100.0, inertia=50.0, offset=-60.0),
]
HEAVY = [TipLoad(mass=1e4, inertia=1e4), TipLoad(mass=1e4, inertia=1e4, offset=-9999.0)]


def scaled(A):
    """Scale a matrix to a diagonal of 1."""
    d = np.sqrt(np.diag(A))
    return A / np.outer(d, d)


@pytest.mark.parametrize("load", LIGHT + HEAVY, ids=str)
def test_sixty_modes_meet_the_conditions_at_the_tip(load):
    shapes = assumed_modes(60, load)
    beta = shapes.beta
    w, slope, moment, shear = (shapes.evaluate(np.ones(1), k)[:, 0] for k in range(4))
    pull = beta**4
    in_moment = moment - pull * (load.inertia * slope + load.offset * w)
    in_shear = shear + pull * (load.mass * w + load.offset * slope)
    # measured by what the terms are for a wave of amplitude 1, with slope beta
    assert (
        np.abs(in_moment) <= 1e-12 * (beta**2 + pull * (load.inertia * beta + abs(load.offset)))
    ).all()
    assert (
        np.abs(in_shear) <= 1e-12 * (beta**3 + pull * (load.mass + abs(load.offset) * beta))
    ).all()


@pytest.mark.parametrize(
    ("load", "tolerance"),
    # At a heavy load one ulp of beta moves the slope of mode 60 by 1e-11, which counts
    # sqrt(J) = 100 times against the modes in which the load itself moves.
    [(load, 1e-11) for load in LIGHT] + [(load, 1e-9) for load in HEAVY],
    ids=str,
)
def test_sixty_modes_are_orthogonal_with_their_load(load, tolerance):
    matrices = assemble_matrices(UNIT, "y", assumed_modes(60, load), load)
    np.testing.assert_allclose(scaled(matrices.mass), np.eye(60), atol=tolerance)
    np.testing.assert_allclose(scaled(matrices.stiffness), np.eye(60), atol=1e-11)


@pytest.mark.parametrize("load", LIGHT + HEAVY, ids=str)
def test_frequencies_of_loaded_modes_are_the_roots(load):
    matrices = assemble_matrices(UNIT, "y", assumed_modes(30, load), load)
    np.testing.assert_allclose(matrices.frequencies(), clamped_mass_roots(30, load) ** 2, rtol=1e-8)


@pytest.mark.parametrize("load", LIGHT + HEAVY, ids=str)
def test_modes_have_unit_norm_and_a_tip_that_moves_upwards(load):
    shapes = assumed_modes(60, load)
    xi, weights = shapes.quadrature()
    np.testing.assert_allclose(shapes.value(xi) ** 2 @ weights, 1.0, rtol=1e-13)
    at_tip = shapes.value(1.0)[:, 0]
    assert (at_tip[np.abs(at_tip) > 1e-9] > 0).all()


def test_a_clamped_free_mode_ends_at_2():
    # psi(1) = 2 for int psi^2 = 1, for every mode: a closed form
    np.testing.assert_allclose(assumed_modes(200).value(1.0)[:, 0], 2.0, rtol=1e-12)


def test_a_tip_that_hardly_moves_leaves_the_sign_to_the_root():
    shapes = assumed_modes(20, TipLoad(mass=1e12))
    still = np.abs(shapes.value(1.0)[:, 0]) <= 1e-9
    assert still.sum() >= 15
    assert (shapes.curvature(0.0)[still, 0] > 0).all()


def test_first_mode_is_the_one_of_the_textbook():
    # (9) of [TG95] as printed, harmless for mode 1: nu from the condition on the moment
    b, xi = clamped_mass_roots(1)[0], np.linspace(0, 1, 11)
    nu = -(np.cos(b) + np.cosh(b)) / (np.sin(b) + np.sinh(b))
    mode = np.cos(b * xi) - np.cosh(b * xi) + nu * (np.sin(b * xi) - np.sinh(b * xi))
    np.testing.assert_allclose(assumed_modes(1).value(xi)[0], 2 * mode / mode[-1], atol=1e-14)


@pytest.mark.parametrize("load", LIGHT + HEAVY, ids=str)
def test_two_hundred_modes_stay_finite_and_of_the_size_of_a_standing_wave(load):
    xi = np.linspace(0, 1, 501)
    shapes = assumed_modes(200, load)
    # a standing wave of unit norm has amplitude sqrt(2), and its layers at the ends add as much;
    # the slowest modes of a loaded line are cubics, whose curvature at unit norm is 5 .. 62
    assert np.abs(shapes.value(xi)).max() < 3
    assert (np.abs(shapes.curvature(xi)).max(1) < np.maximum(70, 3 * shapes.beta**2)).all()


@pytest.mark.parametrize(
    ("load", "order"),
    # A tip mass adds a shear force that free modes lack, a tip inertia a moment: in the sum of
    # (work of that force on mode i)^2 / beta_i^4 what is left out falls as n^-3 and as n^-1.
    [(TipLoad(mass=1.0), 3), (TipLoad(inertia=0.2), 1)],
    ids=str,
)
def test_free_modes_converge_to_a_loaded_line_at_the_order_of_the_missing_force(load, order):
    # 10 to 80 modes: well past mode 1, errors (1e-4 .. 1e-1 down to 1e-8 .. 1e-2) above round-off
    n_modes = np.array([10, 20, 40, 80])
    exact = clamped_mass_roots(1, load)[0] ** 2
    found = [assemble_matrices(UNIT, "y", assumed_modes(n), load).frequencies()[0] for n in n_modes]
    error = np.array(found) / exact - 1
    assert (error > 0).all()
    slope = -np.polyfit(np.log(n_modes), np.log(error), deg=1)[0]
    assert slope == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize(
    ("load", "cubic"),
    # under a load this heavy the line is a spring: bent by a force, or by a moment, at its tip
    [(TipLoad(mass=1e12), (0.0, 0.0, 3.0, -1.0)), (TipLoad(inertia=1e12), (0.0, 0.0, 1.0, 0.0))],
    ids=str,
)
def test_slowest_mode_of_a_heavy_load_is_the_static_shape_to_the_last_digits(load, cubic):
    # its wave number is about 1e-3, where cosh - cos would keep four digits at xi = 1e-3
    xi, expected = np.array([1e-3, 0.1, 0.5, 1.0]), np.polynomial.Polynomial(cubic)
    shapes = assumed_modes(1, load)
    scale = expected(1.0) / shapes.value(1.0)[0, 0]
    np.testing.assert_allclose(scale * shapes.value(xi)[0], expected(xi), rtol=1e-11)
    np.testing.assert_allclose(scale * shapes.slope(xi)[0], expected.deriv()(xi), rtol=1e-11)
