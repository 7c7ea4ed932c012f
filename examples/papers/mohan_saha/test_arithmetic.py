"""A function's own instructions mean the same in any arithmetic, and round in a coarse one."""

import math
from fractions import Fraction

import casadi as ca
import mpmath
import numpy as np
import pytest

from examples.papers.mohan_saha.arithmetic import evaluate_in
from flexctl.errors import ComputationError, InputError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

X = ca.SX.sym("x", 2)
x, y = X[0], X[1]


EVERY = [
    x * y - x / y + 3 * x,
    ca.sqrt(x) + ca.exp(y) + ca.log(x) + 1 / y,
    ca.sin(x) + ca.cos(y) + ca.tan(x) + ca.atan2(y, x) + ca.atan(y),
    ca.asin(y) + ca.acos(y) + ca.sinh(x) + ca.cosh(y) + ca.tanh(x),
    ca.fabs(-x) + ca.if_else(x > y, x, y) + ca.fmin(x, y) + ca.fmax(x, y),
    x**2 + x**2.5 + x**y + 2 * y,
    ca.if_else(ca.logic_and(x > y, x >= y), 1.5, y) + ca.if_else(ca.logic_or(x < y, x == y), x, 2),
]


@pytest.mark.parametrize(
    "number", [float, np.float64, mpmath.mpf], ids=["float", "numpy", "mpmath"]
)
@pytest.mark.parametrize("expression", EVERY, ids=str)
def test_any_arithmetic_gives_what_casadi_gives(expression, number):
    function = ca.Function("f", [X], [expression])
    at = [0.7, 0.3]

    assert float(evaluate_in(function, [at], number)[0][0]) == pytest.approx(
        float(function(at)), rel=4e-16
    )


def test_rational_numbers_are_exact():
    function = ca.Function("f", [X], [3 * (x + y)])

    assert evaluate_in(function, [[10**20, Fraction(1, 3)]], Fraction)[0][0] == 3 * 10**20 + 1


def test_single_precision_rounds_every_operation():
    # 1 + 2^-24 rounds to 1 in single precision, not in double
    function = ca.Function("f", [X], [2 * (x + y)])
    found = evaluate_in(function, [[1.0, 2.0**-24]], np.float32)[0]

    assert found.dtype == np.float32
    assert found[0] == 2
    assert float(function([1.0, 2.0**-24])) == 2 + 2.0**-23


def test_fifty_digits_are_carried_through():
    with mpmath.workdps(50):
        found = evaluate_in(ca.Function("f", [X], [ca.sin(x) / y]), [[1, 3]], mpmath.mpf)[0][0]
        expected = mpmath.sin(1) / 3

        assert abs(found / expected - 1) < mpmath.mpf(10) ** -49


def test_results_keep_their_shape_and_structural_zeros():
    matrix = ca.SX(2, 3)
    matrix[0, 2], matrix[1, 0] = x, y
    found = evaluate_in(ca.Function("f", [X], [matrix, X]), [[5.0, 7.0]], float)

    np.testing.assert_array_equal(found[0], [[0, 0, 5], [7, 0, 0]])
    np.testing.assert_array_equal(found[1], [5, 7])


def test_matrix_arguments_are_read_by_row_and_column():
    A = ca.SX.sym("A", 2, 3)
    function = ca.Function("f", [A], [A[1, 0] - A[0, 2]])

    assert evaluate_in(function, [np.arange(6.0).reshape(2, 3)], float)[0][0] == 3 - 2


@pytest.mark.parametrize("arguments", [[[1.0, 2.0, 3.0]], [], [[1.0, 2.0], [1.0]]])
def test_arguments_that_do_not_fit_are_refused(arguments):
    with pytest.raises(InputError, match="expected"):
        evaluate_in(ca.Function("f", [X], [x + y]), arguments, float)


def test_an_operation_without_a_form_elsewhere_is_named():
    with pytest.raises(ComputationError, match="erf"):
        evaluate_in(ca.Function("f", [X], [ca.erf(x)]), [[1.0, 2.0]], float)


def test_the_mass_matrix_in_fifty_digits_is_that_of_the_plant():
    plant = assemble_plant(load_model("planar-two-link"), BasisChoice(order=2), interpreted=True)
    q = np.linspace(-0.2, 0.3, plant.n)
    with mpmath.workdps(50):
        M = evaluate_in(plant.casadi_functions["mass_matrix"], [q], mpmath.mpf)[0].astype(float)

    scale = np.sqrt(np.outer(M.diagonal(), M.diagonal()))
    assert np.abs((plant.mass_matrix(q) - M) / scale).max() < 100 * math.ulp(1.0)
