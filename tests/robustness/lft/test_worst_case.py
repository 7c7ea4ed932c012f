"""The search for a worst case: regions that are known, and bounds that must not be passed."""

from dataclasses import replace

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.robustness.lft import worst_case
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop
from flexctl.robustness.lft.worst_case import bracketed_crossing, find_worst_case, sensitivities


def uncertain(A, U, V, p, lowest=-np.inf):
    return UncertainLoop(
        A=np.array(A, dtype=float),
        U=np.array(U, dtype=float),
        V=np.array(V, dtype=float),
        D=np.zeros((len(V), len(V))),
        parameters=tuple(Parameter(name=f"error {i}", size=1, lowest=lowest) for i in range(p)),
        states=tuple(f"x{i}" for i in range(len(A))),
    )


def summed(weights, lowest=-np.inf):
    """x' = (-1 + w . delta) x: unstable from |delta|_oo = 1/sum |w| on, at the corner sign w."""
    p = len(weights)
    return uncertain([[-1.0]], [weights], np.ones((p, 1)), p, lowest)


def squares():
    """x'' + (1 - d1 - d2) x' + (1 + 5 d1) x = 0, of which both limits matter."""
    return uncertain([[0, 1], [-1, -1]], [[0, 0, 0], [1, 1, -5]], [[0, 1], [0, 1], [1, 0]], 3)


def random_loop(seed, p):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 8))
    A -= (np.linalg.eigvals(A).real.max() + 0.2) * np.eye(8)
    return uncertain(A, rng.normal(size=(8, p)), rng.normal(size=(p, 8)), p)


def test_the_corner_is_found():
    found = find_worst_case(summed([1.0, -2.0, 0.5, -0.5]))

    assert found.gamma == pytest.approx(0.25, rel=1e-12)
    np.testing.assert_allclose(found.delta, [0.25, -0.25, 0.25, -0.25], rtol=1e-12)


def test_the_nearer_of_two_limits_is_found():
    found = find_worst_case(squares())

    assert found.gamma == pytest.approx(0.2, rel=1e-12)  # 1 - 5 d3 = 0, at w = 0
    assert found.frequency == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_both_sides_of_the_crossing_are_as_the_record_says(seed):
    loop = random_loop(seed, 4)
    found = find_worst_case(loop)

    assert found.verified
    assert (
        loop.poles(1.001 * found.delta).real.max() > 0 > loop.poles(0.999 * found.delta).real.max()
    )
    assert np.abs(found.delta).max() == found.gamma
    assert abs(found.eigenvalue.real) < 1e-9


def test_more_random_directions_never_find_a_larger_one(monkeypatch):
    loop = random_loop(5, 6)
    monkeypatch.setattr(worst_case, "_N_RANDOM", 0)
    few = find_worst_case(loop)
    monkeypatch.setattr(worst_case, "_N_RANDOM", 2000)
    many = find_worst_case(loop)

    assert few.gamma == pytest.approx(many.gamma, rel=1e-6)
    assert many.tried > few.tried + 1000


def test_the_search_is_repeatable():
    loop = random_loop(6, 5)

    np.testing.assert_array_equal(find_worst_case(loop).delta, find_worst_case(loop).delta)


@pytest.mark.parametrize(("lowest", "gamma"), [(-np.inf, 2.0), (-1.0, 4.0)])
def test_no_error_falls_below_what_its_parameter_bears(lowest, gamma):
    # -1 + (d1 - 2 d2)/6 = 0: without limits at (2, -2), with d2 >= -1 at (4, -1)
    loop = summed([1 / 6, -1 / 3], lowest)
    found = find_worst_case(loop)

    assert (found.delta >= lowest).all()
    assert found.gamma == pytest.approx(gamma, rel=1e-9)


@pytest.mark.parametrize("range_", [1.0, 0.25])
def test_an_error_never_reaches_a_lowest_value_that_has_no_meaning(range_):
    # -1 + (d1 - 2 d2)/6 = 0 in the errors themselves, with d2 > -1: d1 is a little above 4
    loop = summed([range_ / 6, -range_ / 3], -1 / range_)
    loop = replace(loop, parameters=tuple(replace(p, excluded=True) for p in loop.parameters))
    found = find_worst_case(loop)
    d1, d2 = found.delta * range_

    assert -1 < d2 < -0.99
    assert d1 == pytest.approx(6 + 2 * d2, rel=1e-9)
    assert found.verified


def test_nothing_found_is_none():
    assert find_worst_case(uncertain([[-1.0]], [[1.0]], [[-1.0]], 1, lowest=-0.5)) is None


def test_the_solver_of_one_error_can_be_chosen():
    loops = []

    def exact(loop):
        loops.append(loop)
        return 1 / float((loop.V.T @ loop.U.T).item())

    found = find_worst_case(summed([1.0, 3.0]), first_crossing=exact)

    assert found.gamma == pytest.approx(0.25, rel=1e-14)
    assert all(len(loop.parameters) == 1 for loop in loops)


def test_sensitivities_are_the_derivatives_of_the_eigenvalues():
    loop = random_loop(8, 3)
    delta, step = np.array([0.02, -0.01, 0.03]), 1e-6
    values, by_error = sensitivities(loop, delta)
    moved = [loop.poles(delta + sign * step * np.eye(3)[1]) for sign in (1, -1)]
    near = [m[np.abs(m[:, None] - values).argmin(axis=0)] for m in moved]

    np.testing.assert_allclose((near[0] - near[1]) / (2 * step), by_error[:, 1], rtol=1e-6)


def test_the_bracketed_crossing_of_a_line():
    assert bracketed_crossing(summed([0.3])) == pytest.approx(1 / 0.3, rel=1e-12)
    assert bracketed_crossing(summed([-0.3])) == np.inf


def test_an_unstable_loop_is_refused():
    with pytest.raises(InputError, match="stable without errors"):
        find_worst_case(uncertain([[1.0]], [[1.0]], [[1.0]], 1))
