"""Chebyshev series: exact on polynomials, bounded on analytic functions, any arithmetic."""

import casadi as ca
import numpy as np
import pytest

from flexctl.beam.chebyshev import (
    chebyshev_coefficients,
    chebyshev_nodes,
    chebyshev_polynomials,
    chebyshev_sum,
    interpolation_bound,
    nodes_needed,
)

SERIES = np.array([0.3, -1.2, 0.7, 0.05, -0.4, 0.11])
T = np.linspace(-1, 1, 17)


def test_coefficients_of_a_polynomial_are_its_own():
    values = np.polynomial.chebyshev.chebval(chebyshev_nodes(9), SERIES)
    expected = np.append(SERIES, np.zeros(3))
    np.testing.assert_allclose(chebyshev_coefficients(values), expected, atol=1e-15)


@pytest.mark.parametrize("count", [8, 14, 20, 30])
@pytest.mark.parametrize("pole", [1.2, 2.0, 5.0])
def test_error_of_an_interpolant_stays_below_its_bound(count, pole):
    # 1 / (pole - t) is analytic up to the ellipse through its pole; a slightly smaller one is taken
    rho = 0.95 * (pole + np.sqrt(pole**2 - 1))
    most = 1 / (pole - (rho + 1 / rho) / 2)
    series = chebyshev_coefficients(1 / (pole - chebyshev_nodes(count)))
    error = np.abs(np.polynomial.chebyshev.chebval(T, series) - 1 / (pole - T)).max()
    assert error <= interpolation_bound(count, rho, most) + 1e-14


@pytest.mark.parametrize("rho", [1.01, 1.3, 4.0])
def test_the_number_of_nodes_meets_the_bound(rho):
    count = nodes_needed("a function", rho, 1e6, 1e-13)
    assert interpolation_bound(count, rho, 1e6) <= 1e-13
    assert interpolation_bound(count - 3, rho, 1e6) > 1e-13


def test_the_sum_is_that_of_the_series():
    expected = np.polynomial.chebyshev.chebval(T, SERIES)
    np.testing.assert_allclose(chebyshev_sum(SERIES, T), expected, atol=1e-15)


@pytest.mark.parametrize("derivative", [0, 1, 2])
@pytest.mark.parametrize("way", ["sum", "polynomials"])
def test_casadi_differentiates_the_polynomial_itself(way, derivative):
    t = ca.SX.sym("t")
    if way == "sum":
        value = chebyshev_sum(SERIES, t)
    else:
        value = ca.dot(ca.DM(SERIES), ca.vertcat(*chebyshev_polynomials(len(SERIES) - 1, t)))
    for _ in range(derivative):
        value = ca.gradient(value, t)
    found = np.array([float(ca.Function("f", [t], [value])(x)) for x in T])
    exact = np.polynomial.chebyshev.chebder(SERIES, derivative)
    np.testing.assert_allclose(found, np.polynomial.chebyshev.chebval(T, exact), atol=1e-12)


@pytest.mark.parametrize("degree", [0, 1, 5])
def test_as_many_polynomials_come_as_asked(degree):
    assert len(chebyshev_polynomials(degree, 0.3)) == degree + 1
