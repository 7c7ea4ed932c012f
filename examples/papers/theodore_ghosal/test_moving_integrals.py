"""Shape integrals of a sliding line: fifty digits, and identities of transport."""

from functools import cache

import mpmath
import numpy as np
import pytest

from examples.papers.theodore_ghosal.mode_rates import with_rates
from examples.papers.theodore_ghosal.moving_integrals import INTEGRALS, shape_integrals
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.moving_modes import find_moving_modes
from tests.beam import sliding_witness

LINES = {
    "point": SlidingLine(mass_per_length=0.331, mass=0.0828),
    "body": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.02, first_moment=0.09),
    "behind": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.05, first_moment=-0.09),
}
LENGTH = 0.4
each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES)


def integrals(line, log_length):
    lengths = np.exp(np.atleast_1d(log_length))
    return shape_integrals(with_rates(find_moving_modes(3, line.loads(lengths))))


def difference(line, name):
    """dQ/ds by differences of order eight, good to 1e-11."""
    h, weights = 0.02, {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    offsets = np.array([k for k in range(-4, 5) if k])
    values = integrals(line, np.log(LENGTH) + offsets * h)[name].values
    factors = np.array([np.sign(k) * weights[abs(k)] for k in offsets]) / h
    return np.tensordot(factors, values, axes=1)


def value(line, name):
    return integrals(line, np.log(LENGTH))[name].values[0]


@cache
def exact_functions(line):
    """Functions of xi at fifty digits, by name and mode: shapes at mass points that move."""
    near = find_moving_modes(3, line.loads([LENGTH])).beta[0]
    s, h = mpmath.log(mpmath.mpf(LENGTH)), mpmath.mpf(10) ** -14
    modes = [[sliding_witness.mode(line, s + k * h, b) for k in (-1, 0, 1)] for b in near]

    def carried_through(shapes, y):
        # a mass point at the distance y l from the tip: y exp(-ds) after the length has grown
        below, here, above = (
            shape(1 - y * mpmath.exp(-k * h)) for k, shape in zip((-1, 0, 1), shapes, strict=True)
        )
        return below, here, above

    def carried(i, xi):
        below, _, above = carried_through(modes[i], 1 - xi)
        return (above - below) / (2 * h)

    def carried_twice(i, xi):
        below, here, above = carried_through(modes[i], 1 - xi)
        return (above - 2 * here + below) / h**2

    return {
        "one": lambda _i, _xi: mpmath.mpf(1),
        "xi": lambda _i, xi: xi,
        "value": lambda i, xi: modes[i][1](xi),
        "slope": lambda i, xi: modes[i][1](xi, 1),
        "curvature": lambda i, xi: modes[i][1](xi, 2),
        "carried": carried,
        "carried_twice": carried_twice,
    }


WEIGHTS = {
    "": lambda _xi: 1,
    "beyond": lambda xi: 1 - xi,
    "moment_beyond": lambda xi: (1 - xi**2) / 2,
}


@pytest.mark.parametrize("name", INTEGRALS)
@pytest.mark.slow_but("mean", "carried_carried", "shortening")
def test_integrals_agree_with_fifty_digits(name):
    line = LINES["behind"]
    row, column, weight = INTEGRALS[name]
    i, j = 1, 2
    with mpmath.workdps(50):
        functions = exact_functions(line)
        f, g, w = functions[row], functions[column], WEIGHTS[weight]
        # Gauss-Legendre of degree 4 resolves modes 2 and 3 to more than 13 digits
        exact = mpmath.quad(lambda x: f(i, x) * g(j, x) * w(x), [0, 0.5, 1], maxdegree=4)
    sample = integrals(line, np.log(LENGTH))[name]
    index = (i,) if column in ("one", "xi") else (i, j)
    found, size = sample.values[0][index], sample.scale[index]
    assert abs(found - float(exact)) <= 1e-12 * size


@each_line
@pytest.mark.parametrize(
    ("name", "carried"),
    [("mean", "carried_mean"), ("carried_mean", "carried_twice_mean")],
)
def test_the_mean_is_carried_with_the_mass(line, name, carried):
    # d/ds of int f dx over the free part: mass enters at the root, where f = 0
    found = value(line, name) + difference(line, name)
    np.testing.assert_allclose(found, value(line, carried), atol=1e-9)


@each_line
def test_the_growth_of_the_mass_matrix_is_what_is_carried(line):
    crossed = value(line, "value_carried")
    found = value(line, "mass") + difference(line, "mass")
    np.testing.assert_allclose(found, crossed + crossed.T, atol=1e-9)


@each_line
def test_what_is_carried_twice_follows_from_what_is_carried_once(line):
    found = value(line, "value_carried") + difference(line, "value_carried")
    expected = value(line, "carried_carried") + value(line, "value_carried_twice")
    np.testing.assert_allclose(found, expected, atol=1e-9)


@each_line
def test_growth_of_the_carried_square(line):
    twice = value(line, "carried_carried_twice")
    found = value(line, "carried_carried") + difference(line, "carried_carried")
    np.testing.assert_allclose(found, twice + twice.T, atol=1e-8)


@each_line
def test_the_stiffness_is_diagonal_with_the_roots(line):
    modes = find_moving_modes(6, line.loads([LENGTH]))
    stiffness = shape_integrals(with_rates(modes))["stiffness"].values[0]
    lam = modes.beta[0] ** 4
    np.testing.assert_allclose(
        stiffness / np.sqrt(np.outer(lam, lam)), np.eye(6), rtol=0, atol=1e-12
    )


@each_line
def test_kinetic_energy_is_that_of_moving_mass_points(line):
    # 1/2 sum of dm w'^2, every point's deflection differentiated along its way through the line
    delta, rate, z = np.array([0.3, -0.2, 0.1]), np.array([1.0, 2.0, -3.0]), 0.7
    h, count = 1e-5, 4000
    from_tip = (np.arange(count) + 0.5) / count * LENGTH  # stays with the mass point
    lengths = LENGTH * np.exp(np.array([-h, h]) * z)
    modes = find_moving_modes(3, line.loads(lengths))
    at = [modes.evaluate(1 - from_tip / length)[k] for k, length in enumerate(lengths)]
    velocity = ((delta + h * rate) @ at[1] - (delta - h * rate) @ at[0]) / (2 * h)
    expected = np.mean(velocity[from_tip < lengths[0]] ** 2) / 2
    A, B, C = (value(line, name) for name in ("mass", "value_carried", "carried_carried"))
    found = (rate @ A @ rate + 2 * z * rate @ B @ delta + z**2 * delta @ C @ delta) / 2
    # the midpoint rule leaves 1 / count^2, the difference h^2
    assert found == pytest.approx(expected, rel=1e-5)
