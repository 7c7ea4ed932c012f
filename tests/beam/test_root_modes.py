"""Modes by root finding in any arithmetic, against those of `moving_modes` in closed form."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from examples.papers.theodore_ghosal.mode_rates import with_rates
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.beam.root_modes import fit_root_modes
from flexctl.beam.sliding_shapes import fit_root_shapes, fit_sliding_shapes
from flexctl.errors import ComputationError, InputError

# masses of the RRP arm; bodies whose centre of mass lies beyond the tip, and before it
LINES = {
    "mass": SlidingLine(mass_per_length=0.331, mass=0.0828),
    "beyond": SlidingLine(
        mass_per_length=0.331, mass=0.0828, inertia=5.3e-4, first_moment=1.656e-3
    ),
    "before": SlidingLine(
        mass_per_length=0.331, mass=0.0828, inertia=7.1e-4, first_moment=-4.14e-3
    ),
}
SHORTEST, LONGEST = 0.0475, 1.365


@cache
def shapes_of(line, n=2):
    return fit_root_shapes(n, LINES[line], SHORTEST, LONGEST)


@cache
def derivatives(line):
    """Function s -> C and its first two derivatives by s = ln l, by automatic differentiation."""
    s = ca.SX.sym("s")
    C = ca.vertcat(*[ca.horzcat(*row) for row in shapes_of(line).mix_at(s)])
    rate = ca.jtimes(C, s, 1)
    return ca.Function("mix", [s], [C, rate, ca.jtimes(rate, s, 1)])


@pytest.mark.slow_but("beyond-0.3-1-1e-08", "before-1.36-2-1e-07", "before-1.36-1-1e-08")
@pytest.mark.parametrize(("order", "most"), [(0, 1e-9), (1, 1e-8), (2, 1e-7)])
@pytest.mark.parametrize("length", [0.05, 0.3, 1.0, 1.36])
@pytest.mark.parametrize("line", LINES)
def test_shapes_and_their_changes_are_those_of_the_exact_modes(line, length, order, most):
    modes = with_rates(find_moving_modes(2, LINES[line].loads([length])))
    xi, weights = modes.quadrature()
    B = shapes_of(line).base.curvature(xi)
    C = [np.array(x) for x in derivatives(line)(np.log(length))]
    first = modes.evaluate(xi, 2)[0]
    signs = np.sign((C[0].T @ B * first) @ weights)[:, None]
    off = signs * (C[order].T @ B) - modes.evaluate(xi, 2, order)[0]
    assert np.sqrt(off**2 @ weights).max() < most * np.sqrt(first**2 @ weights).max()


@pytest.mark.parametrize("line", LINES)
def test_signs_are_those_of_the_table(line):
    table = fit_sliding_shapes(2, LINES[line], 0.8, LONGEST, 1e-9)
    tips = [found.at(LONGEST).value(1.0) for found in (shapes_of(line), table)]
    assert (np.array(tips) > 0).all()


@pytest.mark.parametrize("n", [1, 5])
def test_roots_are_good_to_round_off_at_every_length(n):
    found, lengths = shapes_of("beyond", n), np.geomspace(SHORTEST, LONGEST, 57)
    roots = [found.modes.roots_at([s], found.load_at(s)) for s in np.log(lengths)]
    expected = roots_along(n, LINES["beyond"].loads(lengths))
    np.testing.assert_allclose(roots, expected, rtol=1e-13)


def turning(parameters):
    """Loads of a line that carries two bars: J and D turn with both of their joints."""
    a, b = parameters.T
    J, D = 1.2 + 0.8 * np.cos(b), 0.7 * np.cos(a) + 0.3 * np.cos(a + b)
    value = np.stack([np.ones_like(a), J, D], axis=1)
    return LoadPath(value=value, determinant=(J - D**2)[:, None])


def test_loads_of_two_parameters_have_their_modes():
    modes = fit_root_modes(2, turning, np.array([-1.0, 0.0]), np.array([2.0, 2.5]))
    rng = np.random.default_rng(0)
    points = np.array([-1.0, 0.0]) + rng.random((9, 2)) * np.array([3.0, 2.5])
    load = turning(points)
    exact = find_moving_modes(2, load)
    xi, weights = exact.quadrature()
    C = np.array(modes.mix_at(list(points.T), tuple(x[:, 0] for x in load.parts)))
    found = np.einsum("Knk,Kg->kng", C, modes.base.curvature(xi))
    overlap = np.abs(found * exact.evaluate(xi, 2)) @ weights
    np.testing.assert_allclose(overlap, exact.beta**4, rtol=1e-8)


def test_loads_that_vary_too_much_for_one_table_are_refused():
    def wild(parameters):
        M = 10.0 ** parameters[:, 0]
        value = np.stack([M, 1e-3 * M, 0 * M], axis=1)
        return LoadPath(value=value, determinant=(M * 1e-3 * M)[:, None])

    with pytest.raises(ComputationError, match="modes of a load that varies"):
        fit_root_modes(2, wild, np.array([-12.0]), np.array([11.0]))


def test_a_range_that_is_none_is_refused():
    with pytest.raises(InputError, match="lengths: expected"):
        fit_root_shapes(2, LINES["mass"], 1.0, 0.5)
