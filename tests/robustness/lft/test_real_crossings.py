"""Crossings under one real error: closed forms, bisection of eigenvalues, and the guardian map."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag, eigvals, schur

from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.robustness.lft import real_crossings as module
from flexctl.robustness.lft import real_problem
from flexctl.robustness.lft.crossings import Ray, verify
from flexctl.robustness.lft.real_candidates import (
    diagonal_problem,
    sum_problem,
    triangular_problem,
)
from flexctl.robustness.lft.real_crossings import find_real_crossings, stable_interval
from flexctl.robustness.lft.sensitivities import eigenvalue_sensitivities, without_fixed
from flexctl.robustness.lft.uncertain_loop import Parameter, UncertainLoop

BASE = 0.3 + 0.4j


def loop_of(A, U, V, D=None, *, lowest=-np.inf, sample_time=None):
    A, U, V = (np.array(part, dtype=float) for part in (A, U, V))
    r = U.shape[1]
    return UncertainLoop(
        A=A,
        U=U,
        V=V,
        D=np.zeros((r, r)) if D is None else np.array(D, dtype=float),
        parameters=(Parameter(name="stiffness", size=r, lowest=lowest),),
        states=tuple(f"x{k}" for k in range(len(A))),
        sample_time=sample_time,
    )


def random_loop(N, r, seed, feedthrough=0.3):
    """Stable loop with strong coupling; feedthrough -1 makes all channels delta/(1 + delta)."""
    rng = np.random.default_rng(seed)
    A, U, V = (rng.normal(size=shape) for shape in [(N, N), (N, r), (r, N)])
    A = A - (np.linalg.eigvals(A).real.max() + 0.3) * np.eye(N)
    if feedthrough == -1:
        return loop_of(A, U, V, -np.eye(r), lowest=-1.0)
    return loop_of(A, U, V, feedthrough * rng.normal(size=(r, r)))


def oscillators(frequencies, damping=0.0):
    """Block-diagonal A of x'' + 2 damping w x' + w^2 x = 0, states x w and x'."""
    return block_diag(*[[[0, w], [-w, -2 * damping * w]] for w in frequencies])


def one_mode(gp, gv, m, k):
    """Decoupled control of one undamped mode with its stiffness overestimated by delta.

    s^4 + gv s^3 + (gp + m - delta k) s^2 + m gv s + m gp = 0; at delta = 0 that is
    (s^2 + gv s + gp) (s^2 + m).
    """
    A = np.eye(4, k=1)
    A[3] = [-m * gp, -m * gv, -(gp + m), -gv]
    return loop_of(A, [[0], [0], [0], [1]], [[0, 0, k, 0]], lowest=-1.0)


def arm(joints=3, modes=32, damping=0.01, uncoupled=0, top=1e6, seed=0):
    """Decoupled control with delta K too much of an arm at rest, modes from 1 to `top` rad/s."""
    rng = np.random.default_rng(seed)
    w = np.geomspace(1.0, top, modes)
    M_rf = rng.normal(size=(joints, modes)) / np.sqrt(np.arange(1, modes + 1))
    M_rf[:, rng.choice(modes, uncoupled, replace=False)] = 0
    M_rr = M_rf @ M_rf.T + np.diag(rng.uniform(0.2, 2, joints))
    felt = np.linalg.solve(M_rr, M_rf)
    C = felt @ np.linalg.solve(np.eye(modes) - M_rf.T @ felt, np.diag(w**2))
    n, zeros = joints + modes, np.zeros
    law = np.hstack([-400 * np.eye(joints), zeros((joints, modes)), -40 * np.eye(joints)])
    force = np.vstack([np.eye(joints), -M_rf.T])
    A = np.block([[zeros((n, n)), np.eye(n)], [zeros((n, 2 * n))]])
    A[n:, : n + joints] += force @ law
    A[n + joints :, joints:n] -= np.diag(w**2)
    A[n + joints :, n + joints :] -= np.diag(2 * damping * w)
    U = np.vstack([zeros((n, joints)), -force])
    return loop_of(A, U, np.hstack([zeros((joints, joints)), C, zeros((joints, n))]), lowest=-1.0)


def sampled(F, b, k, sample_time=0.01):
    """Loop x+ = (F + delta b k) x in the form with s = (z - 1)/(z + 1)."""
    F, b, k = (np.array(part, dtype=float) for part in (F, b, k))
    P = np.linalg.inv(F + np.eye(len(F)))
    A = np.eye(len(F)) - 2 * P
    return loop_of(A, 2 * P @ b, k @ P, -k @ P @ b, sample_time=sample_time)


def unstable(loop, delta):
    return int((loop.poles(np.array([delta])).real > 0).sum())


def bisected(loop, low, high):
    before = unstable(loop, low)
    for _ in range(45):
        middle = (low + high) / 2
        low, high = (middle, high) if unstable(loop, middle) == before else (low, middle)
    return low


def scanned(loop, low, high, n=1501):
    """(delta, change) wherever the count of unstable eigenvalues changes on a fine grid."""
    grid, found = np.linspace(low, high, n) + 1e-7, []
    counts = [unstable(loop, delta) for delta in grid]
    for (a, before), (b, after) in pairwise(zip(grid, counts, strict=True)):
        if after != before:
            found.append((bisected(loop, a, b), after - before))
    return found


def shifted(loop, base):
    return loop.counted_from(np.array([base]))


def problem_of(loop, base):
    matrices = shifted(loop, base)
    return sum_problem(*matrices, *np.linalg.eig(matrices[0]))


def sum_map(A):
    """Matrix of X -> A X + X A' on skew-symmetric X, by X_ij, i < j."""
    i, j = np.triu_indices(len(A), 1)
    eye = np.eye(len(A))

    def minors(A, E):
        return A[np.ix_(i, i)] * E[np.ix_(j, j)] - A[np.ix_(i, j)] * E[np.ix_(j, i)]

    return minors(A, eye) + minors(eye, A)


def deltas(found):
    return [c.delta for c in found]


# ------------------------------------------------------------------ the exact problem


@pytest.mark.parametrize(("N", "r"), [(4, 1), (5, 2), (6, 3), (4, 8)])
def test_the_problem_has_every_root_of_the_unreduced_guardian_map(N, r):
    loop = random_loop(N, r, seed=N + r, feedthrough=0.0)
    whole = eigvals(sum_map(loop.A), -sum_map(loop.U @ loop.V))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = BASE + 1 / np.linalg.eigvals(problem_of(loop, BASE))
    whole = whole[np.abs(whole) < 1e4]
    gap = np.abs(whole[:, None] - found).min(axis=1) / np.abs(whole)
    assert len(whole) >= N - 1
    assert gap.max() < 1e-7


@pytest.mark.parametrize(("N", "r"), [(5, 1), (6, 3)])
def test_both_ways_to_invert_the_map_give_one_problem(N, r):
    A, U, V, D = shifted(random_loop(N, r, seed=3), BASE)
    values, W = np.linalg.eig(A)
    S, Q = schur(A, output="complex")
    a = np.linalg.eigvals(diagonal_problem(values, np.linalg.solve(W, U), V @ W, D))
    b = np.linalg.eigvals(triangular_problem(S, Q.conj().T @ U, V @ Q, D))
    gap = np.abs(a[:, None] - b)
    assert max(gap.min(axis=0).max(), gap.min(axis=1).max()) < 1e-11 * np.abs(a).max()


@pytest.mark.parametrize(("N", "r"), [(5, 1), (6, 3)])
def test_a_real_base_has_the_roots_of_a_complex_one(N, r):
    loop = random_loop(N, r, seed=7)
    real = problem_of(loop, 0.2)
    assert real.dtype == float
    a = 0.2 + 1 / np.linalg.eigvals(real)
    b = BASE + 1 / np.linalg.eigvals(problem_of(loop, BASE))
    a, b = a[np.abs(a) < 1e3], b[np.abs(b) < 1e3]
    assert (np.abs(a[:, None] - b).min(axis=1) < 1e-8 * np.abs(a)).all()
    assert len(a) == len(b)


def test_a_solution_solves_the_equation_it_came_from():
    loop = random_loop(6, 2, seed=1)
    A, U, V, D = shifted(loop, BASE)
    values, W = np.linalg.eig(A)
    mu, vectors = np.linalg.eig(diagonal_problem(values, np.linalg.solve(W, U), V @ W, D))
    best = np.abs(1 / mu).argmin()
    Y = vectors[:, best].reshape(2, 6) @ W.T
    N = np.eye(6)
    L = np.kron(A, N) + np.kron(N, A)
    X = np.linalg.solve(L, (Y.T @ U.T - U @ Y).ravel()).reshape(6, 6)
    M = shifted(loop, BASE + 1 / mu[best])[0]
    np.testing.assert_allclose(X, -X.T, atol=1e-12 * np.abs(X).max())
    np.testing.assert_allclose(M @ X + X @ M.T, 0 * X, atol=1e-11 * np.abs(X).max())


# ------------------------------------------------------------------ crossings


@pytest.mark.slow_but("4-8-3-0.0", "4-8-3--1", "9-3-2--1")
@pytest.mark.parametrize("feedthrough", [0.0, 0.3, -1])
@pytest.mark.parametrize(("N", "r", "seed"), [(4, 1, 0), (6, 2, 1), (9, 3, 2), (4, 8, 3)])
def test_every_crossing_of_a_scan_is_found_and_no_other(N, r, seed, feedthrough):
    loop = random_loop(N, r, seed, feedthrough)
    low, high = (-0.99, 3.0) if feedthrough == -1 else (-3.0, 3.0)
    found = [(c.delta, c.change) for c in find_real_crossings(loop, low, high) if c.change]
    expected = scanned(loop, low, high)
    assert [change for _, change in found] == [change for _, change in expected]
    np.testing.assert_allclose([d for d, _ in found], [d for d, _ in expected], rtol=1e-9)


def test_a_crossing_carries_its_eigenvalue():
    loop = random_loop(9, 3, 2)
    crossings = [c for c in find_real_crossings(loop, -3.0, 3.0) if np.isfinite(c.frequency)]
    gaps = [np.abs(loop.poles(np.array([c.delta])) - c.eigenvalue).min() for c in crossings]

    assert crossings
    assert max(gaps) < 1e-11 * np.abs(loop.A).max()


def test_channels_of_an_inverse_are_the_loop_of_the_inverse():
    # D = -I: delta/(1 + delta) = t, hence delta = t/(1 - t), for delta in (-1, inf), t < 1
    straight = random_loop(6, 2, 4, feedthrough=0.0)
    bent = replace(straight, D=-np.eye(2))
    bent = replace(bent, parameters=(Parameter(name="stiffness", size=2, lowest=-1.0),))
    t = np.array(deltas(find_real_crossings(straight, -50.0, 0.98)))
    found = deltas(find_real_crossings(bent, -50 / 51, 49.0))
    assert len(t) > 1
    np.testing.assert_allclose(found, t / (1 - t), rtol=1e-9)


def test_crossings_do_not_depend_on_where_errors_are_counted_from():
    loop = random_loop(6, 3, 5)
    here = deltas(find_real_crossings(loop, -2.0, 2.0))
    there = deltas(find_real_crossings(loop.at(np.array([0.17])), -2.17, 1.83))
    np.testing.assert_allclose(np.array(there) + 0.17, here, atol=1e-10)


@pytest.mark.parametrize("damping", [1e-6, 1e-3, 0.5, 100.0])
def test_negative_damping_of_an_oscillator(damping):
    A = [[0, 3], [-3, -damping]]
    (found,) = find_real_crossings(loop_of(A, [[0], [1]], [[0, 1]]), 0.0, np.inf)
    assert found.delta == pytest.approx(damping, rel=1e-12)
    assert found.frequency == pytest.approx(3, rel=1e-12)
    assert (found.kind, found.change) == ("crossing", 2)


def test_a_real_eigenvalue_passes_zero():
    (found,) = find_real_crossings(loop_of([[-2.0]], [[1]], [[1]]), -np.inf, np.inf)
    assert found.delta == pytest.approx(2, rel=1e-14)
    assert (found.frequency, found.change, found.eigenvalue) == (0.0, 1, 0.0)


@pytest.mark.parametrize(("k_p", "k_v"), [(4.0, 1.0), (400.0, 40.0), (1e4, 3.0)])
def test_a_pair_meets_in_zero_where_its_feedback_changes_sign(k_p, k_v):
    A = block_diag([[0, 1], [-k_p, -k_v]], [[0, 1], [-1e6, -20]])
    U = np.array([[0.0], [1], [0], [1]])
    loop = loop_of(A, U, np.array([[k_p, k_v, 0, 0]]))
    crossing = stable_interval(loop).at_upper

    assert crossing.delta == pytest.approx(1, rel=1e-8)
    assert (crossing.frequency, crossing.change, crossing.kind) == (0, 1, "crossing")


def test_a_slow_real_eigenvalue_passes_zero_alone_beside_fast_modes():
    A = block_diag([[-1.0]], [[-3.0]], [[-0.2]], oscillators([1e7], 0.01))
    (found,) = find_real_crossings(loop_of(A, np.eye(5)[:, :1], np.eye(5)[:1]), -5.0, 5.0)
    assert (found.delta, found.change) == (pytest.approx(1, rel=1e-9), 1)


def test_equal_real_eigenvalues_pass_zero_together():
    A = block_diag([[-1.0]], [[-1.0]], oscillators([1e4], 0.01))
    (found,) = find_real_crossings(loop_of(A, np.eye(4)[:, :2], np.eye(4)[:2]), -5.0, 5.0)
    assert (found.delta, found.change) == (pytest.approx(1, rel=1e-9), 2)


def test_a_real_eigenvalue_passes_infinity():
    # -1 + delta/(1 - delta/2): zero at 2/3, a pole at 2, and -3 beyond
    loop = loop_of([[-1.0]], [[1]], [[1]], [[0.5]])
    zero, pole = find_real_crossings(loop, -10.0, 10.0)
    assert (zero.delta, pole.delta) == pytest.approx((2 / 3, 2), rel=1e-12)
    assert (zero.change, pole.change, pole.frequency) == (1, -1, np.inf)


def damped_by_square(floor):
    """x'' + ((delta - 1)^2 + floor) x' + x = 0, by two channels: w1 = delta x', w2 = delta w1."""
    A = [[0, 1], [-1, -1 - floor]]
    return loop_of(A, [[0, 0], [2, -1]], [[0, 1], [0, 0]], [[0, 0], [1, 0]])


def test_touching():
    (found,) = find_real_crossings(damped_by_square(0.0), -5.0, 5.0)
    assert (found.kind, found.change) == ("touching", 0)
    assert found.delta == pytest.approx(1, abs=1e-7)
    assert stable_interval(damped_by_square(0.0)).at_upper == found


def test_almost_touching_is_none_or_two():
    assert not find_real_crossings(damped_by_square(1e-4), -5.0, 5.0)
    found = find_real_crossings(damped_by_square(-1e-4), -5.0, 5.0)
    np.testing.assert_allclose(deltas(found), [0.99, 1.01], rtol=1e-12)
    assert [c.change for c in found] == [2, -2]


def test_equal_subsystems_cross_together():
    one = np.array([[0, 1], [-1, -0.2]])
    loop = loop_of(block_diag(one, one), [[0, 0], [1, 0], [0, 0], [0, 1]], np.eye(4)[1::2])
    (found,) = find_real_crossings(loop, -1.0, 1.0)
    assert (found.delta, found.change) == (pytest.approx(0.2, rel=1e-9), 4)


@pytest.mark.parametrize("feedthrough", [0.0, 0.3])
def test_a_crossing_where_the_problem_is_set_up(feedthrough):
    # errors are counted from 0.2274 in (-1, 1): there two eigenvalues add up to zero
    D = [[feedthrough]]
    damping = 0.2274 / (1 - feedthrough * 0.2274)
    for_error = loop_of([[0, 3], [-3, -damping]], [[0], [1]], [[0, 1]], D)
    first = find_real_crossings(for_error, -1.0, 1.0)[0]
    assert (first.delta, first.change) == (pytest.approx(0.2274, rel=1e-9), 2)


# ------------------------------------------------------------------ the stable interval


@pytest.mark.parametrize("m", [50.0, 3e3, 1e6, 1e10])
@pytest.mark.parametrize("coupling", [1.0, 1e-4])
def test_an_undamped_mode_stands_no_overestimate_and_every_underestimate(m, coupling):
    gp, gv, k = 400.0, 40.0, coupling * m
    found = stable_interval(one_mode(gp, gv, m, k))
    assert (found.lower, found.upper, found.at_lower) == (-1.0, 0.0, None)
    assert found.at_upper.eigenvalue == pytest.approx(1j * np.sqrt(m), rel=1e-9)
    assert (found.at_upper.change, len(found.fixed)) == (2, 0)


@pytest.mark.parametrize("m", [50.0, 3e3, 1e6])
def test_growth_rate_of_an_undamped_mode(m):
    gp, gv, k = 400.0, 40.0, 0.3 * m
    values, rates = eigenvalue_sensitivities(one_mode(gp, gv, m, k))
    rate = rates[np.abs(values - 1j * np.sqrt(m)).argmin()]
    expected = k * gv * m / (2 * ((m - gp) ** 2 + gv**2 * m))
    assert rate.real == pytest.approx(expected, rel=1e-9)


def test_a_loop_marginal_at_zero_crosses_there():
    loop = loop_of(oscillators([2.0]), [[0], [1]], [[0, 1]])
    (found,) = find_real_crossings(loop, -1.0, 1.0)
    assert (found.delta, found.change, found.kind) == (0.0, 2, "crossing")
    assert found.frequency == pytest.approx(2)


def test_growth_that_begins_with_the_square_of_the_error():
    # damping delta^2 (0.5 - delta): touches at 0, crosses at 0.5
    U = [[0, 0, 0], [0, -0.5, 1]]
    D = np.eye(3, k=-1)
    V = [[0, 1], [0, 0], [0, 0]]
    loop = loop_of(oscillators([2.0]), U, V, D)
    found = stable_interval(loop)
    assert found.upper == pytest.approx(0.5, rel=1e-9)
    assert found.at_lower is None
    touching, _ = find_real_crossings(loop, -1.0, 1.0)
    assert (touching.delta, touching.kind, touching.change) == (0.0, "touching", 0)


def test_equal_undamped_modes_move_as_their_joint_rates_say():
    # one combination of two equal modes is driven, the other damped, and they are mixed
    c, s = np.cos(0.4), np.sin(0.4)
    Q = np.kron([[c, -s], [s, c]], np.eye(2))
    U = np.array([[0, 0], [1, 0], [0, 0], [0, 1]])
    V = np.array([[0, 1, 0, 0], [0, 0, 0, -3]])
    loop = loop_of(Q @ oscillators([2.0, 2.0]) @ Q.T, Q @ U, V @ Q.T)
    _, rates = eigenvalue_sensitivities(loop)
    np.testing.assert_allclose(np.sort(rates.real), [-1.5, -1.5, 0.5, 0.5], rtol=1e-9)
    found = stable_interval(loop)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_eigenvalue_sensitivities_are_derivatives():
    loop = random_loop(7, 3, 6)
    values, rates = eigenvalue_sensitivities(loop)
    h = 1e-6
    ends = [loop.poles(np.array([x])) for x in (h, -h)]
    above, below = (e[np.abs(e[:, None] - values).argmin(axis=0)] for e in ends)
    np.testing.assert_allclose((above - below) / (2 * h), rates, rtol=1e-6)


def test_modes_that_no_error_moves_are_reported_and_do_not_decide():
    A = block_diag(oscillators([2.0], 0.1), oscillators([2.0, 7.0, 9.0]))
    U, V = np.zeros((8, 1)), np.zeros((1, 8))
    U[1], V[0, 1] = 1, 1
    V[0, 4] = 1  # seen but not reached
    U[6] = 1  # reached but not seen
    T = np.random.default_rng(2).normal(size=(8, 8))
    loop = loop_of(T @ A @ np.linalg.inv(T), T @ U, V @ np.linalg.inv(T))
    found = stable_interval(loop)
    assert found.upper == pytest.approx(0.4, rel=1e-9)
    np.testing.assert_allclose(np.sort(np.abs(found.fixed)), [2, 2, 7, 7, 9, 9], rtol=1e-12)
    assert found.unknowns == 2


def test_what_is_left_without_fixed_modes_has_the_other_eigenvalues():
    loop = arm(uncoupled=10, damping=0.0)
    reduced, fixed = without_fixed(loop)
    assert (reduced.size, len(fixed)) == (50, 20)
    at = np.array([0.23])
    whole, parts = loop.poles(at), np.concatenate([reduced.poles(at), fixed])
    gap = np.abs(whole[:, None] - parts)
    assert (gap.min(axis=1) < 1e-8 * np.abs(whole) + 1e-7).all()
    assert (gap.min(axis=0) < 1e-8 * np.abs(parts) + 1e-7).all()


@pytest.mark.parametrize("uncoupled", [0, 10])
def test_undamped_arm_from_1_to_1e6_rad_s(uncoupled):
    found = stable_interval(arm(uncoupled=uncoupled, damping=0.0))
    assert (found.lower, found.upper, len(found.fixed)) == (-1.0, 0.0, 2 * uncoupled)


@pytest.mark.parametrize("damping", [1e-4, 0.01])
@pytest.mark.parametrize("seed", range(3))
def test_fine_mesh_from_1_to_1e6_rad_s(seed, damping):
    loop = arm(seed=seed, damping=damping)
    end = stable_interval(loop).at_upper
    # independent of any eigenvalue: I - delta G(j w) is singular
    G = loop.V @ np.linalg.solve(1j * end.frequency * np.eye(loop.size) - loop.A, loop.U)
    assert np.abs(np.linalg.eigvals(G) - 1 / end.delta).min() < 1e-8 / end.delta
    assert [unstable(loop, end.delta * (1 + x)) for x in (-1e-7, 1e-7)] == [0, 2]
    assert not any(unstable(loop, end.delta * x) for x in np.linspace(-1, 0.999, 60))


def test_a_real_double_eigenvalue_at_every_error():
    # joints that the error does not reach: (s + 20)^2, defective whatever the error is
    stuck = [[0, 1], [-400, -40]]
    A = block_diag(oscillators([5.0], 0.1), stuck, stuck)
    A[1, 2] = A[4, 3] = 1.0
    U, V = np.zeros((6, 1)), np.zeros((1, 6))
    U[1], V[0, 1] = 1, 1
    found = stable_interval(loop_of(A, U, V))
    assert found.upper == pytest.approx(1.0, rel=1e-8)
    assert found.at_upper.frequency == pytest.approx(5.0, rel=1e-8)


class Noisy:
    """x'' + (1 - delta + noise) x' + 9 x = 0, the noise far above round-off."""

    frequency = staticmethod(lambda value: value.imag)
    blocks = (np.arange(2),)

    @staticmethod
    def counted_from(delta):
        noise = 1e-4 * np.sin(1e9 * delta[0])
        A = np.array([[0, 3], [-3, delta[0] - 1 + noise]])
        return A, np.diag([0.0, 1.0]), np.eye(2), np.zeros((2, 2))


def test_a_crossing_that_newton_does_not_settle_on_is_bracketed():
    (found,) = verify(Ray(loop=Noisy(), origin=0.0, sign=1.0), [1.0003])
    assert found.delta == pytest.approx(1, abs=1.1e-4)
    assert (found.change, found.kind) == (2, "crossing")


# ------------------------------------------------------------------ sampled loops


@pytest.mark.parametrize("seed", range(4))
def test_sampled_loop_against_its_multipliers(seed):
    rng = np.random.default_rng(seed)
    F, b, k = rng.normal(size=(5, 5)), rng.normal(size=(5, 2)), rng.normal(size=(2, 5))
    F *= 0.7 / np.abs(np.linalg.eigvals(F)).max()
    loop = sampled(F, b, k)

    def largest(delta):
        return np.abs(np.linalg.eigvals(F + delta * b @ k)).max()

    found = stable_interval(loop)
    np.testing.assert_allclose([largest(found.lower), largest(found.upper)], 1, rtol=1e-10)
    assert max(largest(x) for x in np.linspace(found.lower, found.upper, 50)[1:-1]) < 1


def test_multiplier_minus_one_is_half_the_sampling_rate():
    found = stable_interval(sampled([[-0.5]], [[-0.5]], [[1.0]], sample_time=0.01))
    assert (found.lower, found.upper) == pytest.approx((-3, 1), rel=1e-12)
    assert found.at_upper.frequency == pytest.approx(100 * np.pi)
    assert (found.at_upper.change, found.at_lower.frequency) == (1, pytest.approx(0, abs=1e-9))


def test_frequency_of_a_sampled_crossing():
    # z^2 - 2 (1 - delta) r cos(a) z ...: rotation by a, radius 0.9 + delta
    turn = np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    found = stable_interval(sampled(0.9 * turn, turn, np.eye(2), sample_time=0.01))
    assert found.upper == pytest.approx(0.1, rel=1e-12)
    assert found.at_upper.frequency == pytest.approx(30.0, rel=1e-12)


def test_a_delay_that_no_error_reaches():
    # four multipliers 0 in one chain whatever the error: no basis of eigenvectors
    F = block_diag([[0.5]], np.eye(4, k=1))
    F[1, 0] = 0.3
    b, k = np.eye(5)[:, :1], np.eye(5)[:1]
    found = stable_interval(sampled(F, b, k))
    assert (found.lower, found.upper) == pytest.approx((-1.5, 0.5), rel=1e-9)


# ------------------------------------------------------------------ proof and refusals


def test_a_missed_candidate_is_noticed_and_found(monkeypatch):
    loop = random_loop(6, 2, 1)
    whole = find_real_crossings(loop, -3.0, 3.0)
    monkeypatch.setattr(real_problem, "real_candidates", lambda *_: np.zeros(0))
    repaired = find_real_crossings(loop, -3.0, 3.0)
    np.testing.assert_allclose(deltas(repaired), deltas(whole), rtol=1e-12)


def test_a_missed_end_is_noticed_and_found_by_bisection(monkeypatch):
    whole = stable_interval(random_loop(6, 2, 1))
    for place in (module, real_problem):
        monkeypatch.setattr(place, "real_candidates", lambda *_: np.zeros(0))
    repaired = stable_interval(random_loop(6, 2, 1))
    assert (repaired.lower, repaired.upper) == pytest.approx((whole.lower, whole.upper), rel=1e-12)


def test_counts_that_contradict_are_refused(monkeypatch):
    for place in (module, real_problem):
        monkeypatch.setattr(place, "verified", lambda *_: [])
    with pytest.raises(
        ComputationError, match="expected numbers of unstable eigenvalues that agree"
    ):
        find_real_crossings(loop_of([[0, 3], [-3, -0.5]], [[0], [1]], [[0, 1]]), 0.0, 2.0)


def test_an_unstable_loop_is_refused_with_its_eigenvalue():
    loop = loop_of(oscillators([5.0], -0.1), [[0], [1]], [[0, 1]])
    with pytest.raises(DesignError, match=r"stable without error, .*0\.5.*4\.975"):
        stable_interval(loop)


def test_a_conservative_loop_is_refused():
    loop = loop_of([[0, 1], [-4, 0]], [[0], [1]], [[1, 0]])  # x'' + (4 - delta) x = 0
    with pytest.raises(DesignError, match="add up to zero for every error"):
        find_real_crossings(loop, -1.0, 1.0)


def test_an_undamped_mode_that_moves_along_the_axis_is_refused():
    loop = loop_of([[0, 1], [-4, 0]], [[0], [1]], [[1, 0]])
    with pytest.raises(DesignError, match=r"expected eigenvalue 0\+2j to leave the axis"):
        stable_interval(loop)


def test_a_free_body_that_no_error_reaches_is_refused():
    A = block_diag([[0, 1], [0, 0]], oscillators([2.0], 0.1))
    with pytest.raises(DesignError, match="grows with time for every error"):
        stable_interval(loop_of(A, [[0], [0], [0], [1]], [[0, 0, 0, 1]]))


@pytest.mark.parametrize("ask", [find_real_crossings, stable_interval, eigenvalue_sensitivities])
def test_several_errors_are_refused(ask):
    loop = random_loop(4, 2, 0)
    two = (Parameter(name="a", size=1), Parameter(name="b", size=1))
    with pytest.raises(InputError, match="a loop of one error"):
        ask(replace(loop, parameters=two))


def test_an_empty_range_is_refused():
    with pytest.raises(InputError, match="expected low < high"):
        find_real_crossings(random_loop(4, 2, 0), 1.0, 1.0)


def test_where_the_form_is_singular_nothing_is_known_of_the_count():
    # 1/(1 - d): the loop has no meaning at d = 1
    problem = real_problem.prepare(loop_of([[-1.0]], [[1.0]], [[1.0]], [[1.0]]), -np.inf, np.inf)

    assert problem.unstable(1.0) == [(0, 1)]
    assert problem.unstable(0.25) == [(0, 0)]
