"""Operations are those of the function's own graph."""

import casadi as ca
import pytest

from flexctl.errors import ComputationError
from flexctl.plant.operations import count_operations
from flexctl.view.to_json import to_json

X = ca.SX.sym("x", 2)
x, y = X[0], X[1]


@pytest.mark.parametrize(
    ("expression", "mul", "add", "kinds"),
    [
        (x * y, 1, 0, {}),
        (x**2, 1, 0, {}),
        (3.5 * x, 1, 0, {}),
        (1 * x, 0, 0, {}),
        (-1 * x, 0, 0, {"neg": 1}),
        (x - y, 0, 1, {}),
        (2 * x, 0, 1, {}),
        (x / y + 1 / x, 0, 1, {"div": 1, "inv": 1}),
        (ca.sin(x) * ca.cos(x), 1, 0, {"sin": 1, "cos": 1}),
        (ca.sqrt(x) + x**2.5, 0, 1, {"sqrt": 1, "constpow": 1}),
        (x, 0, 0, {}),
    ],
)
def test_operations_are_counted_by_kind(expression, mul, add, kinds):
    counted = count_operations(ca.Function("f", [X], [expression]))

    assert to_json(counted) == {"mul": mul, "add": add, "other": sum(kinds.values())}
    assert counted.kinds == kinds


def test_a_function_of_functions_is_counted_through():
    inner = ca.Function("inner", [X], [x * y + ca.sin(x)])
    Z = ca.MX.sym("z", 2)
    outer = ca.Function("outer", [Z], [inner(Z) * Z[0] + inner(2 * Z)])

    # twice the inner's product, sum and sine; a product, a sum, two doublings outside
    assert to_json(count_operations(outer)) == {"mul": 3, "add": 5, "other": 2}


def test_a_function_that_hides_its_operations_is_refused_in_words():
    A, b = ca.MX.sym("A", 3, 3), ca.MX.sym("b", 3)
    solver = ca.Function("solver", [A, b], [ca.solve(A, b, "ldl")])

    with pytest.raises(ComputationError, match="solver cannot be written out"):
        count_operations(solver)


@pytest.mark.parametrize("size", [1, 4, 9])
def test_factor_and_solve_cost_what_the_textbook_says(size):
    # LDL': (n^3 - n)/6 sums in the factor besides those of D, n (n - 1) in both substitutions
    M, b = ca.SX.sym("M", size, size), ca.SX.sym("b", size)
    D, upper, order = ca.ldl(M, False)
    function = ca.Function("f", [M, b], [ca.ldl_solve(b, D, upper, order)], {"cse": True})

    expected = (size**3 - size) // 6 + size * (size - 1)
    assert count_operations(function).add == expected
