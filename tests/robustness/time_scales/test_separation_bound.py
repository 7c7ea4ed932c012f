"""The separation bound: closed forms of Routh, and grids of eigenvalues that know of no bound."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.linalg import block_diag

from flexctl.errors import ComputationError, DesignError
from flexctl.robustness.lft import find_real_crossings, real_crossings, real_problem
from flexctl.robustness.time_scales import separation_bound as module
from flexctl.robustness.time_scales.separation_bound import (
    Pencil,
    bisect_bound,
    find_crossings,
    first_loss,
    obstacle,
    stable_ranges,
)

Kp, Kv = 4.0, 3.0  # of a unit mass: 1/s^2, 1/s


def separated(A_0, slow, A_1=None):
    return Pencil(slow=slow, A_0=A_0, A_1=np.zeros_like(A_0) if A_1 is None else A_1)


def loop_of(slow, fast):
    """Uncoupled subsystems with these real eigenvalues."""
    return separated(np.diag([*slow, *fast]).astype(float), slow=len(slow))


def through_lag():
    """PD control of a unit mass through sigma z' = u - z, x = [position, rate, z]."""
    return separated(np.array([[0.0, 1, 0], [0, 0, 1], [-Kp, -Kv, -1]]), slow=2)


def through_oscillator(damping):
    """PD control of a unit mass through sigma^2 z'' + 2 damping sigma z' + z = u."""
    A = np.array([[0.0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [-Kp, -Kv, -1, -2 * damping]])
    return separated(A, slow=2)


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
    return int((pencil.poles(sigma).real > 0).sum())


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


def agrees_with_a_grid(pencil, *grid):
    """Compare crossings with those of a fine grid; how many there are."""
    expected = grid_crossings(pencil, *grid)
    found = find_real_crossings(pencil.over_sigma, low=0.0)
    assert [c.change for c in found] == [change for _, change in expected]
    sigmas = [crossing.sigma for crossing in find_crossings(pencil)]
    np.testing.assert_allclose(sigmas, [at for at, _ in expected], rtol=1e-8)
    return len(expected)


def test_bound_of_a_lag_is_that_of_routh():
    # sigma s^3 + s^2 + Kv s + Kp: stable for Kv > sigma Kp, then s^2 = -Kp
    (found,) = find_crossings(through_lag())
    assert found == first_loss(through_lag())
    assert found.sigma == pytest.approx(Kv / Kp, rel=1e-13)
    assert found.frequency == pytest.approx(np.sqrt(Kp), rel=1e-12)


@pytest.mark.parametrize("damping", [1e-5, 1e-4, 0.01, 0.3, 1.0, 5.0])
def test_bound_of_an_oscillator_is_that_of_routh(damping):
    # sigma^2 s^4 + 2 d sigma s^3 + s^2 + Kv s + Kp
    bound = 2 * damping * Kv / (Kv**2 + 4 * damping**2 * Kp)
    found = first_loss(through_oscillator(damping))
    assert found.sigma == pytest.approx(bound, rel=1e-10)
    assert found.frequency == pytest.approx(np.sqrt(Kv / (2 * damping * bound)), rel=1e-10)


def test_bound_of_an_oscillator_with_a_constant_damper_is_that_of_routh():
    # sigma^2 s^4 + 2 d sigma^2 s^3 + s^2 + Kv s + Kp: 2 d (Kv - 2 d Kp sigma^2) = Kv^2
    damping = 2.0
    A_1 = np.zeros((4, 4))
    A_1[3, 3] = -2 * damping
    found = first_loss(separated(through_oscillator(0.0).A_0, 2, A_1))
    bound = np.sqrt((2 * damping * Kv - Kv**2) / (4 * damping**2 * Kp))
    assert found.sigma == pytest.approx(bound, rel=1e-10)
    assert found.frequency == pytest.approx(np.sqrt(Kv / (2 * damping)) / bound, rel=1e-10)


def test_a_real_eigenvalue_through_zero_is_found():
    # x' = -3 x + sigma x
    (found,) = find_crossings(separated(np.diag([-3.0, -1.0]), 1, np.diag([1.0, 0.0])))
    assert found.sigma == pytest.approx(3, rel=1e-13)
    assert found.frequency == 0.0


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e4, 1e8])
def test_units_of_the_states_and_of_time_do_not_matter(unit):
    pencil = through_oscillator(0.05)
    D = np.array([1.0, unit, np.sqrt(unit), 1 / unit])
    A = pencil.A_0 * D[:, None] / D
    A[2:] *= unit  # fast rows: sigma in another unit
    found, expected = first_loss(separated(A, 2)), first_loss(pencil)
    assert found.sigma == pytest.approx(unit * expected.sigma, rel=1e-10)
    assert found.frequency == pytest.approx(expected.frequency, rel=1e-10)


@pytest.mark.parametrize("seed", [5, 7, 10, 11])
def test_crossings_keep_their_digits_in_any_units_of_the_states(seed):
    pencil = random_loop(4, 6, seed)
    D = 10.0 ** np.random.default_rng(seed).uniform(-4, 4, len(pencil.A_0))
    found = find_crossings(separated(pencil.A_0 * D[:, None] / D, 4))
    expected = [c.sigma for c in find_crossings(pencil)]
    np.testing.assert_allclose([c.sigma for c in found], expected, rtol=1e-11)


def test_a_real_pair_is_no_crossing():
    # eigenvalues 1 and -2/sigma: opposite at sigma = 2
    assert find_crossings(separated(np.diag([1.0, -2.0]), slow=1)) == ()


def test_twins_cross_together():
    single = through_lag().A_0
    order = [0, 1, 3, 4, 2, 5]
    both = separated(block_diag(single, single)[np.ix_(order, order)], slow=4)
    found = find_real_crossings(both.over_sigma, low=0.0)
    assert sum(c.change for c in found) == 4
    np.testing.assert_allclose([c.sigma for c in find_crossings(both)], Kv / Kp, rtol=1e-7)


@pytest.mark.slow_but("4-6-0", "4-6-1", "2-4-2")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("n_s", "n_f"),
    [(1, 2), (2, 2), (2, 4), (4, 6), pytest.param(6, 12, marks=pytest.mark.slow)],
)
def test_random_loops_cross_where_a_fine_grid_sees_it(n_s, n_f, seed):
    agrees_with_a_grid(random_loop(n_s, n_f, seed))


@pytest.mark.slow_but("1-1", "5-1", "5-3", "7-1", "7-3")
@pytest.mark.parametrize("dampers", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_random_loops_with_constant_dampers_do_too(seed, dampers):
    A_1 = np.zeros((5, 5))
    A_1[:, -dampers:] = 0.5 * np.random.default_rng(seed).normal(size=(5, dampers))
    pencil = separated(random_loop(2, 3, seed).A_0, 2, A_1)
    assert pencil.smallest_sigma == pytest.approx(0.01)
    agrees_with_a_grid(pencil, 0.01)


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
    assert agrees_with_a_grid(arm_by_its_tips(damping, 5, seed), 1e-6, 1e6, 4001) > 1


def test_a_subsystem_that_is_undamped_alone_is_judged_with_the_other():
    # sigma^2 z'' + z = u + x': the coupling damps (or drives) what has no damping of its own
    A = np.array([[0.0, 1, 0, 0], [-1, -1, 0, 0.8], [0, 0, 0, 1], [0.3, 1, -1, 0]])
    agrees_with_a_grid(separated(A, slow=2))


@pytest.mark.parametrize("seed", [0, 2])
def test_a_loop_is_stable_in_its_ranges_and_nowhere_else(seed):
    pencil = arm_by_its_tips(1e-2, 5, seed)
    ranges, grid = stable_ranges(pencil), np.geomspace(1e-6, 1e6, 500)
    inside = [any(low < sigma < high for low, high in ranges) for sigma in grid]
    assert len(ranges) > 1
    assert inside == [pencil.stable(sigma) is True for sigma in grid]


def test_stable_ranges_begin_where_constant_dampers_are_judged():
    A_1 = np.diag([0.0, -1.0])
    ((low, high),) = stable_ranges(separated(np.diag([-1.0, -1.0]), 1, A_1))
    assert (low, high) == (pytest.approx(0.01), np.inf)


@pytest.mark.parametrize("seed", [5, 6, 7, 8, 9])
def test_bisection_finds_the_smallest_bound(seed):
    pencil = random_loop(4, 6, seed)
    expected, found = first_loss(pencil), bisect_bound(pencil, 1e-3, 1e3)
    assert found.sigma == pytest.approx(expected.sigma, rel=1e-10)
    assert found.frequency == pytest.approx(expected.frequency, rel=1e-9)


def test_bisection_is_silent_below_the_bound():
    assert bisect_bound(through_lag(), 1e-3, 0.999 * Kv / Kp) is None


def test_bisection_starts_from_a_stable_loop():
    with pytest.raises(DesignError, match="stable at 1, got eigenvalue"):
        bisect_bound(through_lag(), 1.0, 2.0)


def test_a_loop_too_large_is_bisected(monkeypatch):
    expected = first_loss(through_lag())
    monkeypatch.setattr(module, "LARGEST", 5)
    assert not through_lag().exact
    monkeypatch.setattr(module, "stable_interval", None)
    assert first_loss(through_lag()).sigma == pytest.approx(expected.sigma, rel=1e-12)
    monkeypatch.setattr(module, "LARGEST", 6)
    assert through_lag().exact


def test_limits_are_those_of_the_loop():
    pencil = random_loop(3, 4, seed=1)
    values = pencil.poles(1e-7)
    values = values[np.abs(values).argsort()]
    for found, expected in (
        (values[:3], pencil.slow_poles),
        (1e-7 * values[3:], pencil.fast_poles),
    ):
        np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-5)


@pytest.mark.parametrize("sigma", [0.02, 0.3, 2.0])
def test_in_fast_time_eigenvalues_are_sigma_times_as_large(sigma):
    A_1 = np.zeros((5, 5))
    A_1[:, 3:] = np.random.default_rng(4).normal(size=(5, 2))
    pencil = separated(random_loop(2, 3, 4).A_0, 2, A_1)
    delta = (sigma - pencil.smallest_sigma) / pencil.unit
    found = pencil.over_sigma.poles(np.array([delta]))
    expected = np.sort_complex(sigma * pencil.poles(sigma))
    np.testing.assert_allclose(np.sort_complex(found), expected, rtol=1e-9)


def test_a_loop_that_keeps_its_stability_has_no_bound():
    pencil = separated(np.array([[-1.0, 0.5], [-0.5, -1.0]]), slow=1)
    assert first_loss(pencil) is None
    assert stable_ranges(pencil) == ((0.0, np.inf),)
    assert pencil.stable(1.0) is True


UNDAMPED = np.array([[0.0, 1, 0, 0], [-2, 0, 1, 0], [0, 0, 0, 1], [1, 0, -1, 0]])


@pytest.mark.parametrize(
    ("A", "words"),
    [
        (np.diag([0.5, -1.0]), r"an unstable slow subsystem, eigenvalue 0.5"),
        (np.diag([-0.5, 2.0]), r"an unstable fast subsystem, eigenvalue 2"),
        (np.array([[-1.0, 1], [1, 0]]), r"no slow subsystem: the fast one has an eigenvalue 0"),
        (through_oscillator(0.0).A_0, r"a marginal fast subsystem, eigenvalue 0 \+- 1j"),
        (UNDAMPED, r"a marginal fast subsystem, eigenvalue 0 \+- 1j"),
        (np.diag([0.0, -1.0]), r"a marginal slow subsystem, eigenvalue 0"),
    ],
)
def test_what_stands_in_the_way_of_a_bound_is_said(A, words):
    with pytest.raises(DesignError, match=words):
        first_loss(separated(A, slow=len(A) // 2))


def test_constant_dampers_must_hold_a_stiff_arm():
    driven = np.zeros((4, 4))
    driven[3, 3] = 1.0
    with pytest.raises(DesignError, match="not stable even with 10000 times the stiffness"):
        first_loss(separated(through_oscillator(0.0).A_0, 2, driven))


@pytest.mark.parametrize(
    "A", [np.diag([0.0, -1.0]), np.diag([0.0, -3.0, 2.0, -2.0]), np.diag([-1.0, -3.0, 2.0, -2.0])]
)
def test_what_no_sigma_moves_is_no_crossing_and_judged_all_the_same(A):
    pencil = separated(A, slow=len(A) // 2)
    assert find_crossings(pencil) == ()
    assert stable_ranges(pencil) == ()


def test_modes_that_are_undamped_for_every_sigma_are_refused():
    with pytest.raises(DesignError, match="add up to zero for every error"):
        find_crossings(separated(UNDAMPED, slow=2))


def test_a_crossing_that_is_missed_is_noticed_and_found(monkeypatch):
    pencil = through_oscillator(0.05)
    expected = first_loss(pencil)
    monkeypatch.setattr(real_problem, "real_candidates", lambda *_: np.zeros(0))
    (found,) = find_crossings(pencil)
    assert found.sigma == pytest.approx(expected.sigma, rel=1e-9)


def test_counts_that_contradict_are_refused(monkeypatch):
    for place in (real_crossings, real_problem):
        monkeypatch.setattr(place, "verified", lambda *_: [])
    with pytest.raises(ComputationError, match="agree with the crossings"):
        first_loss(random_loop(4, 6, 5))


@pytest.mark.parametrize(
    ("slow", "fast", "expected"),
    [
        ([-1.0, -4.0], [-10.0, -1000.0], 50.0),
        ([-2.0], [-3.0], 1.5),
        ([2.0], [-3.0], 1.5),
        ([0.0, -1.0], [-3.0], 1.0),
    ],
)
def test_the_reference_is_the_ratio_of_geometric_means(slow, fast, expected):
    assert loop_of(slow, fast).unit == pytest.approx(expected)


def test_a_loop_without_a_slow_subsystem_has_no_reference():
    assert separated(np.array([[-1.0, 1.0], [1.0, 0.0]]), slow=1).unit == 1.0
    assert loop_of([-1.0], [0.0, -3.0]).unit == 1.0


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 4.0, 2.0), (2.0, 8.0, 4.0), (3.0, np.inf, 6.0), (0.0, np.inf, 50.0)],
)
def test_one_value_stands_for_all_between_two_crossings(low, high, expected):
    pencil = loop_of([-1.0, -4.0], [-10.0, -1000.0])
    assert module._inside(pencil, low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [
        ([-1.0], [-3.0], None),
        ([0.5, -1.0], [-3.0, 2.0], ("unstable", "fast", 2.0)),
        ([0.5, -1.0], [-3.0, -2.0], ("unstable", "slow", 0.5)),
        ([-1.0, 0.0], [-3.0], ("marginal", "slow", 0.0)),
    ],
)
def test_the_subsystem_in_the_way_is_named_with_its_worst_eigenvalue(slow, fast, words):
    said = obstacle(loop_of(slow, fast))
    if words is None:
        assert said is None
        return
    state, which, value = words
    assert f"{state} {which}" in said
    assert float(said.split()[-1]) == value


def test_a_swinging_eigenvalue_is_shown_with_both_signs():
    A = np.zeros((4, 4))
    A[:2, :2], A[2:, 2:] = [[0.125, 3.0], [-3.0, 0.125]], -np.eye(2)
    assert obstacle(separated(A, slow=2)).endswith("0.125 +- 3j")
