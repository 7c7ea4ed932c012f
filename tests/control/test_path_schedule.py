"""The path parameter of laws that follow a path."""

import casadi as ca
import numpy as np
import pytest

from flexctl.control.path_schedule import path_numbers, path_parameter
from flexctl.control.reference import make_reference
from tests.designs import make_design


@pytest.mark.parametrize(("share", "expected"), [(0, 0), (0.3, 0.3), (1, 1), (-0.5, 0), (1.5, 1)])
def test_the_path_parameter_ends_where_the_path_does(share, expected):
    p, _ = parameter_at(share)

    assert p == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_at_rest_at_its_ends_the_path_parameter_has_its_slope(share):
    _, slope = parameter_at(share)

    np.testing.assert_allclose(slope, along(), rtol=1e-12)


START, END = np.array([0.2, -0.4]), np.array([1.0, 0.3])


def along():
    """Gradient of the path parameter along the straight path."""
    return (END - START) / np.sum((END - START) ** 2)


def parameter_at(share):
    """Path parameter, and its gradient, of desired joints at this share of the path."""
    numbers = path_numbers(make_reference(make_design(START, END)))
    q_d = ca.SX.sym("q_d", 2)
    p = path_parameter(q_d, {key: ca.SX(value) for key, value in numbers.items()})
    both = ca.Function("p", [q_d], [p, ca.jacobian(p, q_d)])
    value, slope = both(START + share * (END - START))
    return float(value), np.array(slope).ravel()
