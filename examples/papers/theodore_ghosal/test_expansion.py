"""Counting what is written out and multiplied out, against expressions counted by hand."""

import casadi as ca
import numpy as np
import pytest

from examples.papers.theodore_ghosal.expansion import multiply_out
from flexctl.errors import ComputationError
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.operations import count_operations, count_written_out, lower_triangle
from flexctl.plant.plant import assemble_plant

x = ca.SX.sym("x", 3)
a, b, c = (x[i] for i in range(3))


def function(*entries):
    return ca.Function("f", [x], [ca.vertcat(*entries)])


SHARED = (a + b) * c  # one sum, one product

TREES = {
    "one expression": ([SHARED], (1, 1)),
    "in two entries": ([SHARED, SHARED + a], (2, 3)),
    "twice in one": ([SHARED * (SHARED + a)], (3, 3)),
    "nested": ([SHARED**2 + SHARED], (3, 3)),
    "constants": ([2 * a, a], (0, 1)),  # a doubling is an addition
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_repeats_what_a_graph_shares(name):
    entries, expected = TREES[name]
    found = count_written_out(function(*entries))

    assert (found.mul, found.add) == expected


def test_inputs_with_structural_zeros_are_taken_without_them():
    U = ca.SX.sym("U", ca.Sparsity.upper(2))
    found = multiply_out(ca.Function("f", [U, x], [U[0, 1] * a + U[1, 1] * b]))
    assert found.at(np.array([2.0, 3.0, 5.0, 7.0, 11.0, 13.0])) == pytest.approx([76.0])


def test_a_tree_counts_functions_as_often_as_they_are_used():
    found = count_written_out(function(ca.sin(a) * b, ca.sin(a) * c))

    assert (found.mul, found.kinds) == (2, {"sin": 2})


def test_a_graph_without_sharing_is_its_tree():
    one = function(a * b + c, a * c)

    assert count_written_out(one) == count_operations(one)


def test_each_doubling_of_a_chain_of_squares_with_sums_doubles_its_tree():
    # y -> y (y + 1) n times: n products and sums shared, 2^n - 1 of each written out
    y, n = a, 20
    for _ in range(n):
        y = y * (y + 1)
    shared, tree = count_operations(function(y)), count_written_out(function(y))

    assert (shared.mul, shared.add) == (n, n)
    assert (tree.mul, tree.add) == (2**n - 1, 2**n - 1)


def test_a_symmetric_matrix_gives_each_entry_once():
    M = ca.vertcat(ca.horzcat(a * b, a * c), ca.horzcat(a * c, b * c))
    found = lower_triangle(ca.Function("M", [x], [M]))

    assert count_written_out(found).mul == 3
    assert np.array(found([2.0, 3.0, 5.0])).ravel() == pytest.approx([6.0, 10.0, 15.0])


EXPANDED = {
    "product of sums": ((a + b) * (a + c), (4, 3)),  # a a + a c + a b + b c
    "with numbers": ((2 * a + 3) * (b + 5), (4, 3)),  # 2 a b + 10 a + 3 b + 15
    "a square": ((a + b) ** 2, (4, 2)),  # a a + 2 a b + b b
    "cancels": ((a + b) * (a - b) + b * b, (1, 0)),
    "cancels to nothing": (a * b - b * a, (0, 0)),
    "rotated twice": ((ca.cos(a) * b) ** 2 + (ca.sin(a) * b) ** 2, (1, 0)),
    "sine to the fourth": ((ca.sin(a) ** 2) ** 2, (5, 2)),  # 1 - 2 c c + c c c c: 2, 3
    "over a sum": (b / (a + c), (1, 0)),  # the reciprocal is an atom
    "over a number": (b / 4 + b, (1, 0)),
    "negative": (-(a * b), (1, 0)),
}


@pytest.mark.parametrize("name", EXPANDED)
def test_products_are_multiplied_out_and_counted(name):
    expression, expected = EXPANDED[name]
    found = multiply_out(function(expression)).count()

    assert (found.mul, found.add) == expected


@pytest.mark.parametrize("name", EXPANDED)
def test_what_is_multiplied_out_has_the_value_that_it_had(name):
    one, at = function(EXPANDED[name][0]), np.array([0.3, -0.7, 1.9])

    assert multiply_out(one).at(at) == pytest.approx(np.array(one(at)).ravel(), abs=1e-14)


def test_every_function_is_an_operation_of_its_own_once():
    found = multiply_out(function(ca.sin(a) * b, ca.sin(a) * c, ca.cos(a + b) / c)).count()

    assert found.kinds == {"sin": 1, "cos": 1, "inv": 1}


def test_products_of_named_inputs_can_be_left_out():
    found = multiply_out(function((1 + a) * (1 + b) * (1 + c))).up_to(1, [0, 1])

    # 1 + a + b + c + a c + b c; not a b, a b c
    assert (found.count().mul, found.count().add) == (2, 5)


@pytest.mark.parametrize("kind", ["modes", "elements"])
def test_a_planar_mass_matrix_multiplied_out_is_the_same_matrix(kind):
    basis = BasisChoice.model_validate({"kind": kind, "order": 2})
    plant = assemble_plant(load_model("theodore-ghosal-rr"), basis, interpreted=True)
    found = multiply_out(lower_triangle(plant.casadi_functions["mass_matrix"]))
    q = np.random.default_rng(0).normal(size=plant.n)
    M = plant.mass_matrix(q)

    assert found.at(q) == pytest.approx(M[np.tril_indices(plant.n)], rel=1e-12, abs=1e-14)


def test_an_operation_that_is_no_polynomial_is_refused():
    with pytest.raises(ComputationError, match=r"expected sums, products, sines .* got exp"):
        multiply_out(function(ca.exp(a)))
