"""Fields along a line: integrals and foreshortening against direct quadrature."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.line import PointMass, SectionProfile, TipLoad
from flexctl.beam.piecewise import gauss
from flexctl.body.foreshortening import shortening
from flexctl.body.segment import Field, integral, product_integral, sparse
from flexctl.model.profile import Profile

STEPPED = Profile(x=(0.0, 0.3, 0.3, 1.0), value=(2.0, 2.0, 1.0, 0.5))
BASES = {"modes": assumed_modes(3), "elements": hermite_elements(2)}


@pytest.fixture(params=BASES)
def shapes(request):
    return BASES[request.param]


def number(expression):
    return float(ca.DM(ca.evalf(expression)))


def coordinates(shapes):
    return np.random.default_rng(1).normal(size=len(shapes.names))


def test_integrals_of_fields_are_those_of_quadrature(shapes):
    xi, weights = shapes.quadrature()
    d = coordinates(shapes)
    bent = Field(shapes=shapes.value(xi), coordinates=ca.SX(ca.DM(d)))
    along = Field(shapes=xi[None, :], coordinates=ca.SX(2.0))
    exact = quad(lambda x: d @ shapes.value(x)[:, 0], 0, 1, points=shapes.breaks, epsabs=1e-13)[0]
    product = quad(
        lambda x: 2 * x * (d @ shapes.value(x)[:, 0]), 0, 1, points=shapes.breaks, epsabs=1e-13
    )[0]

    assert number(integral(bent, weights)) == pytest.approx(exact, abs=1e-11)
    assert number(product_integral(bent, along, weights)) == pytest.approx(product, abs=1e-11)


@pytest.mark.parametrize("end", [0.21, 0.5, 0.83, 1.0])
def test_foreshortening_is_half_the_running_integral_of_the_slope_squared(shapes, end):
    d = coordinates(shapes)
    table = shortening((shapes,), np.array([end]))
    amount = np.array(ca.DM(ca.evalf(table.coordinates([ca.SX(ca.DM(d))]))))[:, 0]
    breaks = shapes.breaks[(shapes.breaks > 0) & (shapes.breaks < end)]
    square = quad(lambda x: (d @ shapes.slope(x)[:, 0]) ** 2, 0, end, points=breaks, epsabs=1e-12)[
        0
    ]

    assert table.shapes[:, 0] @ amount == pytest.approx(-square / 2, rel=1e-10)
    assert table.slopes[:, 0] @ amount == pytest.approx(
        -((d @ shapes.slope(end)[:, 0]) ** 2) / 2, rel=1e-10
    )


def test_foreshortening_of_two_planes_adds_up(shapes):
    d = coordinates(shapes)
    one = shortening((shapes,), np.array([0.7]))
    two = shortening((shapes, shapes), np.array([0.7]))
    symbol = ca.SX(ca.DM(d))
    values = [
        t.tip @ np.array(ca.DM(ca.evalf(t.coordinates([symbol] * planes))))[:, 0]
        for t, planes in ((one, 1), (two, 2))
    ]

    assert values[1] == pytest.approx(2 * values[0], rel=1e-13)


def test_round_off_becomes_structural_zero_and_numbers_stay():
    found = sparse(np.array([[1.0, 1e-15], [1e-9, 0.0]]))

    assert found.nnz() == 2
    assert np.array(found) == pytest.approx(np.array([[1.0, 0.0], [1e-9, 0.0]]), abs=0)


@pytest.mark.parametrize("order", [8, 12, 20])
def test_foreshortening_of_many_modes_keeps_its_digits_in_few_coordinates(order):
    loads = (TipLoad(), TipLoad(mass=2.0, inertia=0.3, offset=0.4))
    planes = [assumed_modes(order, load) for load in loads]
    ends = np.array([0.13, 0.5, 0.77, 1.0])
    table = shortening(planes, ends)
    rng = np.random.default_rng(order)
    bent = [rng.normal(size=order) / np.arange(1, order + 1) ** 2 for _ in planes]
    symbols = [ca.SX(ca.DM(d)) for d in bent]
    found = np.array(ca.DM(ca.evalf(table.coordinates(symbols))))[:, 0]
    xi, weights = gauss(200)

    def square(end):
        slopes = [d @ shapes.slope(end * xi) for d, shapes in zip(bent, planes, strict=True)]
        return end * sum(weights @ slope**2 for slope in slopes)

    assert len(found) < order * (order + 1) / 2
    assert found @ table.shapes == pytest.approx([-square(end) / 2 for end in ends], rel=1e-12)


@pytest.mark.parametrize("order", [2, 3, 6, 12])
def test_foreshortening_of_planes_whose_nodes_differ_is_that_of_each_plane(order):
    sections = [
        SectionProfile(bending=STEPPED.scaled(1 / STEPPED.mean)),
        SectionProfile(point_masses=(PointMass(x=0.37, mass=0.1), PointMass(x=0.8, mass=0.1))),
    ]
    planes = [hermite_elements(order, section=section) for section in sections]
    rng = np.random.default_rng(order)
    bent = [ca.SX(ca.DM(rng.normal(size=len(shapes.names)))) for shapes in planes]
    ends = np.array([0.2, 0.37, 0.5, 0.9])

    def amount(planes, coordinates):
        table = shortening(planes, ends)
        found = np.array(ca.DM(ca.evalf(table.coordinates(coordinates))))[:, 0]
        return np.append(found @ table.shapes, found @ table.tip)

    alone = [amount((shapes,), [d]) for shapes, d in zip(planes, bent, strict=True)]
    assert amount(planes, bent) == pytest.approx(sum(alone), rel=1e-12)
