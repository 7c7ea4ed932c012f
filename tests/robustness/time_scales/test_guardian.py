"""Guardian maps: closed forms of Routh, and grids of eigenvalues that know nothing of the map."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag

from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.robustness.time_scales import guardian as module
from flexctl.robustness.time_scales.guardian import (
    bisect_bound,
    find_crossings,
    smallest_bound,
    stable_ranges,
)
from flexctl.robustness.time_scales.guardian_map import (
    bialternate,
    candidates,
    polynomial_roots,
    problem_size,
    separated_roots,
    sum_map,
)
from flexctl.robustness.time_scales.pencil import (
    Pencil,
    fast_poles,
    poles,
    separated,
    slow_poles,
    stable,
)

Kp, Kv = 4.0, 3.0  # of a unit mass: 1/s^2, 1/s


def through_lag():
    """PD control of a unit mass through sigma z' = u - z, x = [position, rate, z]."""
    return separated(np.array([[0.0, 1, 0], [0, 0, 1], [-Kp, -Kv, -1]]), slow=2)


def through_oscillator(damping):
    """PD control of a unit mass through sigma^2 z'' + 2 damping sigma z' + z = u."""
    A = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-Kp, -Kv, -1, -2 * damping]])
    return separated(A, slow=2)


def regular(*polynomial):
    """Return x'' - (p_0 + p_1 sigma + ...) x' + x = 0: no fast states, crossings at roots of p."""
    still = np.array([[0.0, 1.0], [-1.0, 0.0]])
    rate = np.diag([0.0, 1.0])
    parts = (still + polynomial[0] * rate, *(p * rate for p in polynomial[1:]))
    return Pencil(slow=2, E=(np.eye(2),), A=parts)


def random_loop(n_s, n_f, seed):
    """Separated loop whose two subsystems are stable, strongly coupled."""
    rng = np.random.default_rng(seed)
    slow, coupling, back, fast = (
        rng.normal(size=shape) for shape in [(n_s, n_s), (n_s, n_f), (n_f, n_s), (n_f, n_f)]
    )
    slow, fast = (
        part - (np.linalg.eigvals(part).real.max() + 0.2) * np.eye(len(part))
        for part in (slow, fast)
    )
    slow = slow + coupling @ np.linalg.solve(fast, back)  # then the slow subsystem is what it was
    return separated(np.block([[slow, coupling], [back, fast]]), slow=n_s)


def unstable_count(pencil, sigma):
    return int((poles(pencil, sigma).real > 0).sum())


def bisected(pencil, low, high):
    """Return the sigma in (low, high) at which the number of unstable eigenvalues changes."""
    before = unstable_count(pencil, low)
    for _ in range(60):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if unstable_count(pencil, middle) == before else (low, middle)
    return low


def grid_crossings(pencil, low=1e-3, high=1e3, n=3001):
    """(sigma, change) wherever the number of unstable eigenvalues changes on a fine grid."""
    grid = np.geomspace(low, high, n)
    counts = [unstable_count(pencil, sigma) for sigma in grid]
    return [
        (bisected(pencil, a, b), after - before)
        for (a, before), (b, after) in pairwise(zip(grid, counts, strict=True))
        if after != before
    ]


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_eigenvalues_of_the_map_are_the_sums_of_two(n):
    A, E = np.random.default_rng(n).normal(size=(2, n, n))
    values = np.linalg.eigvals(np.linalg.solve(E, A))
    i, j = np.triu_indices(n, 1)
    found = np.linalg.eigvals(np.linalg.solve(bialternate(E, E) / 2, bialternate(A, E)))
    gap = np.abs(found[:, None] - (values[i] + values[j])[None])
    assert gap.min(axis=0).max() < 1e-9 * np.abs(values).max()
    assert gap.min(axis=1).max() < 1e-9 * np.abs(values).max()


def test_the_map_is_what_its_equation_says():
    rng = np.random.default_rng(3)
    A, E, X = rng.normal(size=(3, 5, 5))
    X = X - X.T
    i, j = np.triu_indices(5, 1)
    np.testing.assert_allclose(
        bialternate(A, E) @ X[i, j], (A @ X @ E.T + E @ X @ A.T)[i, j], atol=1e-12
    )


@pytest.mark.parametrize(("n_s", "n_f"), [(1, 1), (2, 1), (1, 3), (2, 4), (4, 6)])
def test_eliminated_blocks_leave_the_roots_of_the_whole_map(n_s, n_f):
    pencil = random_loop(n_s, n_f, seed=n_s + 10 * n_f)
    reduced, whole = separated_roots(pencil), polynomial_roots(sum_map(pencil))
    assert len(reduced) == n_s * n_f
    reduced = reduced[np.abs(reduced) < 1e8]
    gap = np.abs(reduced[:, None] - whole[None]).min(axis=1) / np.abs(reduced)
    assert len(whole) >= len(reduced)
    assert gap.max() < 1e-7


def test_a_polynomial_has_the_roots_it_was_made_of():
    # two scalar polynomials of different degree, hidden by a change of rows and columns
    rng = np.random.default_rng(1)
    L, R = rng.normal(size=(2, 3, 3))
    parts = [
        L @ np.diag(d) @ R for d in ([-6.0, 2.0, 1.0], [11.0, -1.0, 0], [-6.0, 0, 0], [1.0, 0, 0])
    ]
    roots = polynomial_roots(np.array(parts))
    found = np.sort(roots.real[np.abs(roots) < 1e4])
    np.testing.assert_allclose(found, [1, 2, 2, 3], rtol=1e-6)


def test_bound_of_a_lag_is_that_of_routh():
    # sigma s^3 + s^2 + Kv s + Kp: stable for Kv > sigma Kp, then s^2 = -Kp
    (found,) = find_crossings(through_lag())
    assert found.sigma == pytest.approx(Kv / Kp, rel=1e-13)
    assert found.frequency == pytest.approx(np.sqrt(Kp), rel=1e-12)
    assert (found.kind, found.change, found.destabilising) == ("crossing", 2, True)


@pytest.mark.parametrize("damping", [1e-4, 0.01, 0.3, 1.0, 5.0])
def test_bound_of_an_oscillator_is_that_of_routh(damping):
    # sigma^2 s^4 + 2 d sigma s^3 + s^2 + Kv s + Kp
    bound = 2 * damping * Kv / (Kv**2 + 4 * damping**2 * Kp)
    found = smallest_bound(through_oscillator(damping))
    assert found.sigma == pytest.approx(bound, rel=1e-10)
    assert found.frequency == pytest.approx(np.sqrt(Kv / (2 * damping * bound)), rel=1e-10)
    assert found.residual < 1e-12


def times_one_plus_sigma(pencil):
    """(1 + sigma) E x' = (1 + sigma) A x: the same eigenvalues, a quadratic problem in form."""
    (A,), (slow, fast) = pencil.A, pencil.E
    return replace(pencil, E=(slow, slow + fast, fast), A=(A, A))


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e4, 1e8])
@pytest.mark.parametrize("form", [lambda pencil: pencil, times_one_plus_sigma])
def test_units_of_the_states_and_of_time_do_not_matter(form, unit):
    pencil = through_oscillator(0.05)
    D = np.array([1.0, unit, np.sqrt(unit), 1 / unit])
    A = pencil.A[0] * D[:, None] / D
    A[2:] *= unit  # fast rows: sigma in another unit
    found, expected = smallest_bound(form(separated(A, 2))), smallest_bound(pencil)
    assert found.sigma == pytest.approx(unit * expected.sigma, rel=1e-10)
    assert found.frequency == pytest.approx(expected.frequency, rel=1e-10)


@pytest.mark.parametrize("seed", [5, 7, 10, 11])
@pytest.mark.parametrize("form", [lambda pencil: pencil, times_one_plus_sigma])
def test_candidates_keep_their_digits_in_any_units_of_the_states(form, seed):
    pencil = random_loop(4, 6, seed)
    D = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, pencil.size)
    found = candidates(form(separated(pencil.A[0] * D[:, None] / D, 4)))
    expected = np.array([c.sigma for c in find_crossings(pencil)])
    assert np.abs(found[:, None] / expected - 1).min(axis=0).max() < 1e-11


def test_all_crossings_of_a_loop_that_restabilises():
    pencil = regular(-6.0, 11.0, -6.0, 1.0)  # (s - 1)(s - 2)(s - 3)
    found = find_crossings(pencil)
    np.testing.assert_allclose([c.sigma for c in found], [1, 2, 3], rtol=1e-12)
    np.testing.assert_allclose([c.frequency for c in found], 1, rtol=1e-12)
    assert [c.change for c in found] == [2, -2, 2]
    ranges = np.array(stable_ranges(pencil))
    np.testing.assert_allclose(ranges, [[0, 1], [2, 3]], rtol=1e-12)


def test_a_touching_pair_changes_nothing_but_ends_the_bound():
    found = find_crossings(regular(-4.0, 4.0, -1.0))  # -(s - 2)^2
    assert [(c.kind, c.change) for c in found] == [("touching", 0)]
    assert found[0].sigma == pytest.approx(2, rel=1e-7)
    assert found[0].frequency == pytest.approx(1, rel=1e-9)


def test_a_flat_crossing_is_a_crossing():
    (found,) = find_crossings(regular(-8.0, 12.0, -6.0, 1.0))  # (s - 2)^3
    assert (found.kind, found.change) == ("crossing", 2)
    assert found.sigma == pytest.approx(2, rel=1e-4)  # the cube root of round-off


def test_what_almost_touches_is_no_crossing():
    assert find_crossings(regular(-4.0 - 1e-5, 4.0, -1.0)) == ()


def test_a_real_eigenvalue_through_zero_is_found():
    # x'' + x' + (1 - sigma/3) x = 0
    E, A = (np.eye(2),), (np.array([[0.0, 1], [-1, -1]]), np.array([[0.0, 0], [1 / 3, 0]]))
    (found,) = find_crossings(Pencil(slow=2, E=E, A=A))
    assert found.sigma == pytest.approx(3, rel=1e-13)
    assert (found.frequency, found.change) == (0.0, 1)


def test_a_real_pair_is_no_crossing():
    # eigenvalues 1 and -2/sigma: opposite at sigma = 2
    pencil = separated(np.diag([1.0, -2.0]), slow=1)
    np.testing.assert_allclose(candidates(pencil), [2.0], rtol=1e-12)
    assert find_crossings(pencil) == ()


def test_twins_cross_together():
    single = through_lag().A[0]
    order = [0, 1, 3, 4, 2, 5]
    both = block_diag(single, single)[np.ix_(order, order)]
    found = find_crossings(separated(both, slow=4))
    assert sum(c.change for c in found) == 4
    np.testing.assert_allclose([c.sigma for c in found], Kv / Kp, rtol=1e-7)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("n_s", "n_f"),
    [(1, 2), (2, 2), (2, 4), (4, 6), pytest.param(6, 12, marks=pytest.mark.slow)],
)
@pytest.mark.slow_but("*-0", "*-1", "*-2")
def test_random_loops_cross_where_a_fine_grid_sees_it(n_s, n_f, seed):
    pencil = random_loop(n_s, n_f, seed)
    expected = grid_crossings(pencil)
    found = [c for c in find_crossings(pencil) if 1e-3 < c.sigma < 1e3]
    assert [c.change for c in found] == [change for _, change in expected]
    np.testing.assert_allclose([c.sigma for c in found], [at for at, _ in expected], rtol=1e-8)


@pytest.mark.parametrize("seed", range(8))
def test_random_polynomial_loops_do_too(seed):
    rng = np.random.default_rng(seed)
    pencil = random_loop(2, 3, seed)
    A = (*pencil.A, 0.5 * rng.normal(size=(5, 5)), 0.1 * rng.normal(size=(5, 5)))
    mixed = np.zeros((5, 5))
    mixed[2:] = 0.2 * rng.normal(size=(3, 5))
    pencil = replace(pencil, A=A, E=(pencil.E[0], pencil.E[1] + mixed))
    expected = grid_crossings(pencil)
    found = [c for c in find_crossings(pencil) if 1e-3 < c.sigma < 1e3]
    assert [c.change for c in found] == [change for _, change in expected]
    np.testing.assert_allclose([c.sigma for c in found], [at for at, _ in expected], rtol=1e-8)


def arm_by_its_tips(damping, n, seed):
    """PD of link angles that flexible modes of 5 to 1e4 rad/s carry along: loses and regains.

    M [q; w]'' + [0; D w' + K w] = [u; 0], w = sigma^2 z, u by q + C w, x = [q + C w; its rate],
    fast states z and sigma z'.
    """
    r, rng = 2, np.random.default_rng(seed)
    L, C = rng.normal(size=(r + n, r + n)), rng.normal(size=(r, n))
    H = np.linalg.inv(np.eye(r + n) + L @ L.T / (r + n))
    w = np.geomspace(5, 1e4, n)
    acceleration = np.hstack([
        -H[:, :r] * 9, -H[:, :r] * 6, -H[:, r:] * w**2, -H[:, r:] * (2 * damping * w)
    ])  # fmt: skip
    slow, fast = np.eye(r, 2 * r + 2 * n, r), np.eye(n, 2 * r + 2 * n, 2 * r + n)
    above, below = acceleration[:r] + C @ acceleration[r:], acceleration[r:]
    return separated(np.vstack([slow, above, fast, below]), slow=2 * r)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("damping", [1e-2, 1e-5])
@pytest.mark.slow_but("*-0")
def test_lightly_damped_arms_lose_and_regain_stability_where_a_grid_sees_it(damping, seed):
    pencil = arm_by_its_tips(damping, n=5, seed=seed)
    expected = grid_crossings(pencil, 1e-6, 1e6, 4001)
    found = find_crossings(pencil)
    assert len(found) > 1
    assert [c.change for c in found] == [change for _, change in expected]
    np.testing.assert_allclose([c.sigma for c in found], [at for at, _ in expected], rtol=1e-8)


@pytest.mark.parametrize("seed", [5, 7])
def test_rows_mixed_by_a_regular_matrix_change_nothing(seed):
    pencil = random_loop(4, 6, seed)
    (A,) = pencil.A
    mixed = replace(pencil, E=tuple(np.diag(np.arange(1.0, 11)) @ E for E in pencil.E))
    mixed = replace(mixed, A=(np.diag(np.arange(1.0, 11)) @ A,))
    found, expected = find_crossings(mixed), find_crossings(pencil)
    np.testing.assert_allclose([c.sigma for c in found], [c.sigma for c in expected], rtol=1e-10)


@pytest.mark.parametrize("seed", [5, 7, 10])
def test_the_polynomial_problem_agrees_with_the_reduced_one(seed):
    pencil = random_loop(4, 6, seed)
    twice = times_one_plus_sigma(pencil)
    assert not twice.separated
    assert problem_size(twice) > problem_size(pencil)
    found, expected = find_crossings(twice), find_crossings(pencil)
    assert len(found) == len(expected) > 0
    np.testing.assert_allclose([c.sigma for c in found], [c.sigma for c in expected], rtol=1e-10)
    np.testing.assert_allclose(
        [c.frequency for c in found], [c.frequency for c in expected], rtol=1e-10
    )


def test_the_whole_map_serves_where_a_subsystem_alone_is_undamped():
    # sigma^2 z'' + z = u + x': the coupling damps (or drives) what has no damping of its own
    A = np.array([[0.0, 1, 0, 0], [-1, -1, 0, 0.8], [0, 0, 0, 1], [0.3, 1, -1, 0]])
    pencil = separated(A, slow=2)
    assert problem_size(pencil) == 6
    expected = grid_crossings(pencil)
    found = find_crossings(pencil)
    assert [c.change for c in found] == [change for _, change in expected]
    np.testing.assert_allclose([c.sigma for c in found], [at for at, _ in expected], rtol=1e-8)


@pytest.mark.parametrize("seed", [5, 6, 7, 8, 9])
def test_bisection_finds_the_smallest_bound(seed):
    pencil = random_loop(4, 6, seed)
    expected = smallest_bound(pencil)
    found = bisect_bound(pencil, 1e-3, 1e3)
    assert found.sigma == pytest.approx(expected.sigma, rel=1e-10)
    assert found.destabilising


def test_bisection_is_silent_below_the_bound():
    assert bisect_bound(through_lag(), 1e-3, 0.999 * Kv / Kp) is None


def test_bisection_misses_a_band_between_its_points_that_the_exact_problem_finds():
    band = regular(-0.9999, 2.0, -1.0)  # unstable within 0.01 of sigma = 1
    assert smallest_bound(band).sigma == pytest.approx(0.99, rel=1e-9)
    assert bisect_bound(band, 0.1234, 10.0, per_decade=5) is None


def test_limits_are_those_of_the_loop():
    pencil = random_loop(3, 4, seed=1)
    values = poles(pencil, 1e-7)
    values = values[np.abs(values).argsort()]
    np.testing.assert_allclose(
        np.sort_complex(values[:3]), np.sort_complex(slow_poles(pencil)), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.sort_complex(1e-7 * values[3:]), np.sort_complex(fast_poles(pencil)), rtol=1e-5
    )


def test_a_loop_that_keeps_its_stability_has_no_bound():
    pencil = separated(np.array([[-1.0, 0.5], [-0.5, -1.0]]), slow=1)
    assert smallest_bound(pencil) is None
    assert stable_ranges(pencil) == ((0.0, np.inf),)
    assert stable(pencil, 1.0) is True


UNDAMPED = np.array([[0.0, 1, 0, 0], [-2, 0, 1, 0], [0, 0, 0, 1], [1, 0, -1, 0]])


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (np.diag([0.5, -1.0]), r"an unstable slow subsystem, eigenvalue 0.5"),
        (np.diag([-0.5, 2.0]), r"an unstable fast subsystem, eigenvalue 2"),
        (np.array([[-1.0, 1], [1, 0]]), r"no slow subsystem: the fast one has an eigenvalue 0"),
        (through_oscillator(0.0).A[0], r"a marginal fast subsystem, eigenvalue 0 \+- 1j"),
        (UNDAMPED, r"marginal for every sigma, eigenvalue .*j"),
        (np.diag([0.0, -1.0]), r"marginal for every sigma, eigenvalue 0"),
    ],
)
def test_what_stands_in_the_way_of_a_bound_is_said(A, words):
    with pytest.raises(DesignError, match=words):
        smallest_bound(separated(A, slow=len(A) // 2))


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (UNDAMPED, "marginal for every sigma"),
        (np.diag([0.0, -3.0, 2.0, -2.0]), "marginal for every sigma"),
        (np.diag([-1.0, -3.0, 2.0, -2.0]), "add up to zero for every sigma"),
    ],
)
def test_a_map_that_vanishes_everywhere_is_refused(A, words):
    with pytest.raises(DesignError, match=words):
        find_crossings(separated(A, slow=2))


def test_bisection_starts_from_a_stable_loop():
    with pytest.raises(DesignError, match="stable at 1, got eigenvalue"):
        bisect_bound(through_lag(), 1.0, 2.0)


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (0.0, 1.0), (-1.0, 1.0)])
def test_a_range_that_is_none_is_refused(low, high):
    with pytest.raises(InputError, match="expected"):
        bisect_bound(through_lag(), low, high)


def test_a_crossing_that_is_missed_is_noticed(monkeypatch):
    monkeypatch.setattr(module, "candidates", lambda pencil: candidates(pencil)[[0, 2]])
    with pytest.raises(ComputationError, match="expected 4 unstable eigenvalues at sigma"):
        find_crossings(regular(-6.0, 11.0, -6.0, 1.0))


def test_a_loop_too_large_is_sent_to_bisection(monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 1)
    with pytest.raises(InputError, match="at most 1 unknowns, got 2; bisect_bound"):
        find_crossings(through_lag())


EYE, NONE = np.eye(2), np.zeros((2, 2))


@pytest.mark.parametrize(
    ("E", "A", "slow", "words"),
    [
        ((EYE,), (), 2, "a coefficient of E and of A"),
        ((EYE,), (EYE,), 0, "1 to 2 states, got 0"),
        ((EYE,), (EYE,), 3, "1 to 2 states, got 3"),
        ((EYE,), (EYE,), 1, "zeros outside the slow block"),
        ((NONE,), (EYE,), 2, "a regular slow block"),
        ((np.diag([1.0, 0.0]),), (EYE,), 1, "a regular fast block"),
        ((np.diag([1.0, 0.0]), NONE), (EYE,), 1, "a regular fast block"),
        ((EYE,), (EYE, np.eye(3)), 2, r"A\[1\]: expected shape"),
    ],
)
def test_a_pencil_of_another_form_is_refused(E, A, slow, words):
    with pytest.raises(InputError, match=words):
        Pencil(slow=slow, E=E, A=A)
