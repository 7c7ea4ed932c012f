"""One battery for every basis: clamping, derivatives, integrals, Rayleigh's bound."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.bases import BASES
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import assemble_matrices
from flexctl.beam.reduction import CraigBampton
from flexctl.errors import InputError

BEAM = Beam(length=0.8, mass_per_length=0.3, EI={"y": 2.5})
LOADS = [
    TipLoad(),
    TipLoad(mass=0.5, inertia=0.1, offset=-0.2),
    TipLoad(mass=1e4, inertia=1e4, offset=5e3),
]
CASES = {
    **{f"{kind}{n}": basis(n) for kind, basis in BASES.items() for n in (1, 2, 5, 24)},
    "loaded modes": assumed_modes(40, LOADS[1]),
    "heavy modes": assumed_modes(24, LOADS[2]),
    "reduced elements": CraigBampton(base=hermite_elements(6), kept=3),
    "reduced modes": CraigBampton(base=assumed_modes(8), kept=0),
}


def gauss_rule(edges, count):
    """Points and weights of Gauss's rule on each panel between the edges."""
    x, w = np.polynomial.legendre.leggauss(count)
    half = np.diff(edges)[:, None] / 2
    return (edges[:-1, None] + half * (x + 1)).ravel(), (half * w).ravel()


@pytest.fixture(params=CASES, ids=list(CASES))
def shapes(request):
    return CASES[request.param]


def test_every_coordinate_has_a_name_a_power_and_a_shape(shapes):
    n = len(shapes.names)
    assert len(set(shapes.names)) == n
    assert shapes.power.shape == (n,)
    assert [p == 1 for p in shapes.power] == [name.endswith("slope") for name in shapes.names]
    assert shapes.value([0.0, 0.3, 1.0]).shape == (n, 3)


def test_the_root_is_clamped(shapes):
    # what is left is round-off of terms of the size of the largest value on the line
    xi = np.linspace(0, 1, 201)
    assert np.abs(shapes.value(0.0)).max() <= 1e-14 * np.abs(shapes.value(xi)).max()
    assert np.abs(shapes.slope(0.0)).max() <= 1e-14 * np.abs(shapes.slope(xi)).max()


@pytest.mark.parametrize("derivative", [1, 2])
def test_derivatives_integrate_to_what_they_are_derivatives_of(shapes, derivative):
    xi, weights = shapes.quadrature()
    whole = shapes.evaluate(xi, derivative) @ weights
    end = shapes.evaluate(np.ones(1), derivative - 1)[:, 0]
    size = np.abs(shapes.evaluate(xi, derivative)).max()
    np.testing.assert_allclose(whole, end, atol=1e-13 * size)


def test_third_derivative_is_that_of_the_curvature(shapes):
    # at points away from nodes; the error of a central difference is (beta h)^2 / 6
    xi, h = np.array([0.137, 0.5113, 0.829]), 1e-6
    found = (shapes.curvature(xi + h) - shapes.curvature(xi - h)) / (2 * h)
    exact = shapes.evaluate(xi, 3)
    np.testing.assert_allclose(found, exact, atol=1e-6 * np.abs(exact).max())


@pytest.mark.slow  # takes long
def test_quadrature_integrates_two_running_integrals_of_slopes(shapes):
    # against the same rule on halves of its panels, for the last two shapes
    edges, count = shapes.breaks, shapes.points_per_panel

    def running(xi):
        stops = np.minimum(edges, xi)
        eta, inner = gauss_rule(stops[: np.searchsorted(edges, xi) + 1], count)
        slopes = shapes.slope(np.minimum(eta, 1.0))[-2:]
        return (slopes[0] * inner) @ slopes[-1]

    def integral(xi, weights):
        return weights @ np.array([running(x) for x in xi]) ** 2

    halved = np.sort(np.concatenate([edges, (edges[1:] + edges[:-1]) / 2]))
    expected = integral(*gauss_rule(halved, count))
    assert integral(*shapes.quadrature()) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("points", [[-0.1], [1.1], [np.nan], [[0.1, 0.2]]])
def test_points_outside_the_line_are_refused(shapes, points):
    with pytest.raises(InputError, match="xi"):
        shapes.value(points)


@pytest.mark.slow_but(
    "elements-1-TipLoad(mass=0.5, inert*",
    "modes-6-TipLoad(mass=10000.0, iner*",
    "elements-1-TipLoad(mass=10000.0, i*",
)
@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("order", [1, 2, 3, 6, 12])
@pytest.mark.parametrize("kind", BASES)
def test_no_frequency_lies_below_the_exact_one(kind, order, load):
    # Rayleigh and Ritz; shapes are those of the free tip, so that modes have to approximate too
    shapes = BASES[kind](order)
    found = assemble_matrices(BEAM, "y", shapes, load).frequencies()
    exact = BEAM.frequency_unit("y") * clamped_mass_roots(found.size, load) ** 2
    assert (found >= exact * (1 - 1e-9)).all()


@pytest.mark.parametrize("order", [0, -1, 201, 1.0, True, None])
@pytest.mark.parametrize("kind", BASES)
def test_impossible_orders_are_refused(kind, order):
    with pytest.raises(InputError, match=r"order: expected a whole number in 1 \.\. 200"):
        BASES[kind](order)
