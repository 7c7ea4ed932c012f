"""Forward errors of both solvers against fifty digits."""

import mpmath
import numpy as np
import pytest

from examples.papers.mohan_saha import forward_error


@pytest.fixture(scope="module")
def error():
    return forward_error.forward_errors(forward_error.over_links(8))


@pytest.mark.parametrize(("precision", "factor"), [("double", 30), ("single", 100)])
@pytest.mark.slow  # takes long
def test_recursion_errs_orders_less_over_eight_links(error, precision, factor):
    assert factor * error["recursive", precision] < error["Cholesky", precision]


def test_a_heavy_payload_costs_both_solvers_their_digits():
    error = forward_error.forward_errors(forward_error.over_payload(1e6), states=1)

    assert error["recursive", "double"] > 1e-9
    assert error["recursive", "single"] > 0.1


def test_cholesky_in_single_precision_finds_no_factor_where_masses_grow_outwards():
    error = forward_error.forward_errors(forward_error.growing(1e6), states=1)

    assert np.isnan(error["Cholesky", "single"])
    assert error["recursive", "single"] < 0.02
    assert 1e3 * error["recursive", "double"] < error["Cholesky", "double"]


def test_the_refined_solution_is_that_of_the_equations_in_fifty_digits():
    solvers = forward_error.Solvers(forward_error.over_payload(1.0))
    state = forward_error.random_state(solvers.plant, 0)
    with mpmath.workdps(50):
        M, force = map(mpmath.matrix, solvers.terms(state, mpmath.mpf))
        expected = mpmath.cholesky_solve(M, force)
        error = mpmath.norm(mpmath.matrix(solvers.refined(state)) - expected) / mpmath.norm(
            expected
        )

    assert error < mpmath.mpf(10) ** -40


def test_both_solvers_solve_the_same_equations_up_to_the_rounding_of_constants(error):
    assert error["constants", "double"] < 1e-12
