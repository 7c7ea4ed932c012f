"""Branches of eigenvalues: closed forms, invariances, coarse grids against fine ones."""

from functools import partial

import numpy as np
import pytest
import scipy.linalg

from flexctl.errors import InputError
from flexctl.loci import branches, following
from flexctl.loci import spectrum as spectrum_module

GRIDS = (3, 4, 11, 100)  # 3 and 11 have a point at 1/2, where things happen


@pytest.fixture(params=[False, True], ids=["followed", "proven"])
def follow(request):
    return partial(branches.follow, proven=request.param)


def unsafe(found):
    return [event for event in found.events if event.kind == "unsafe"]


def oscillators(*parts):
    """Uncoupled oscillators of frequency and damping ratio each, [x1, x1', x2, x2', ..]."""
    A = np.zeros((2 * len(parts), 2 * len(parts)))
    for k, (w, z) in enumerate(parts):
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = [[0, 1], [-w * w, -2 * z * w]]
    return A


def turned(A, angle):
    """The same in states of which the first and second pair are turned into each other."""
    c, s = np.cos(angle), np.sin(angle)
    R = np.kron([[c, -s], [s, c]], np.eye(2))
    return R @ A @ R.T


def pair(w, z):
    return -z * w + 1j * w * np.sqrt(1 - z**2)


def two_beams(s, coupling):
    """First modes of two cantilevers, one longer and the other shorter with s, and a weak spring.

    w1 = 1 + s and w2 = 2 - s [rad/s] alone, equal at s = 1/2; the spring couples them by
    `coupling` [rad^2/s^2].
    """
    K = np.array([[(1 + s) ** 2, coupling], [coupling, (2 - s) ** 2]])
    return np.block([[np.zeros((2, 2)), np.eye(2)], [-K, np.zeros((2, 2))]])


def two_beam_frequencies(s, coupling):
    """Both frequencies (2, k), in closed form, the lower first."""
    mean = ((1 + s) ** 2 + (2 - s) ** 2) / 2
    half = np.hypot(((1 + s) ** 2 - (2 - s) ** 2) / 2, coupling)
    return np.sqrt([mean - half, mean + half])


def upper(branches):
    """Columns that begin in the upper half plane."""
    return np.flatnonzero(branches.values[0].imag > 0)


def kinds(branches):
    return [place.kind for place in branches.events]


@pytest.mark.parametrize("points", GRIDS)
def test_uncoupled_oscillators_cross(follow, points):
    found = follow(lambda s: oscillators((1 + s, 0.01), (2 - s, 0.01)), np.linspace(0, 1, points))

    exact = np.array([pair(1 + found.s, 0.01), pair(2 - found.s, 0.01)]).T
    np.testing.assert_allclose(found.values[:, upper(found)], exact, rtol=1e-9)
    assert kinds(found) == ["crossing"]
    assert found.events[0].start == pytest.approx(0.5, abs=1e-8)


@pytest.mark.parametrize("points", [3, 4, 6, 20])
@pytest.mark.parametrize("start", [0.05, 0.1, 0.2])
def test_a_crossing_on_ways_that_bend_has_its_place(follow, points, start):
    T = np.array([[1.0, 0.4, -0.2], [0.3, 1.0, 0.5], [-0.6, 0.1, 1.0]])

    def family(s):
        way = np.sin(2 * np.pi * s)
        return T @ np.diag([-3 + way, -3 - way, -9.0]) @ np.linalg.inv(T)

    found = follow(family, np.linspace(start, 0.95, points))

    assert kinds(found) == ["crossing"]
    assert found.events[0].start == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("points", GRIDS)
def test_crossing_subspaces_that_turn_are_followed_through(follow, points):
    found = follow(
        lambda s: turned(oscillators((1 + s, 0.01), (2 - s, 0.01)), 2 * s),
        np.linspace(0, 1, points),
    )

    exact = np.array([pair(1 + found.s, 0.01), pair(2 - found.s, 0.01)]).T
    np.testing.assert_allclose(found.values[:, upper(found)], exact, rtol=1e-9)
    assert kinds(found) == ["crossing"]


@pytest.mark.parametrize("points", GRIDS)
def test_an_oscillator_driven_by_another_is_crossed_though_their_vectors_coalesce(follow, points):
    def family(s):
        A = oscillators((1 + s, 0.3), (2 - s, 0.3))
        A[2:, :2] = 1.0
        return A

    found = follow(family, np.linspace(0, 1, points))

    exact = np.array([pair(1 + found.s, 0.3), pair(2 - found.s, 0.3)]).T
    np.testing.assert_allclose(found.values[:, upper(found)], exact, rtol=1e-6)  # defective
    assert not unsafe(found)


@pytest.mark.slow_but("followed-3-0.1", "followed-4-0.1", "followed-4-0.01")
@pytest.mark.parametrize("coupling", [1e-1, 1e-2, 1e-4, 1e-6, 1e-8])
@pytest.mark.parametrize("points", GRIDS)
def test_coupled_beams_veer_however_weak_their_spring(follow, points, coupling):
    found = follow(lambda s: two_beams(s, coupling), np.linspace(0, 1, points))

    exact = two_beam_frequencies(found.s, coupling).T
    np.testing.assert_allclose(found.values[:, upper(found)].imag, exact, rtol=1e-9)
    assert found.events == ()


@pytest.mark.parametrize("back", [1e-8, 1e-12, 1e-13])
@pytest.mark.parametrize("points", [2, 11])
def test_a_veering_by_a_strong_and_a_weak_coupling_is_no_crossing(follow, points, back):
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]
    found = follow(
        lambda s: Q @ np.array([[1 + s, 1], [back, 2 - s]]) @ Q.T, np.linspace(0, 1, points)
    )

    half = np.hypot(found.s - 0.5, np.sqrt(back))
    exact = np.array([1.5 - half, 1.5 + half]).T
    np.testing.assert_allclose(found.values, exact, atol=1e-8)
    assert found.events == ()


@pytest.mark.parametrize("back", [1e-11, 1e-13])
@pytest.mark.parametrize("points", [2, 11])
def test_a_weak_coupling_back_makes_a_pair_of_what_would_cross(follow, points, back):
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((2, 2)))[0]
    found = follow(
        lambda s: Q @ np.array([[1 + s, 1], [-back, 2 - s]]) @ Q.T, np.linspace(0, 1, points)
    )

    assert kinds(found) == ["break-away", "break-in"]
    np.testing.assert_allclose(
        [place.start for place in found.events],
        [0.5 - np.sqrt(back), 0.5 + np.sqrt(back)],
        atol=1e-8,
    )


@pytest.mark.slow_but("proven-4", "followed-11", "followed-3")
@pytest.mark.parametrize("points", GRIDS)
def test_what_veers_nearer_than_can_be_told_from_a_crossing_is_unsafe(follow, points):
    found = follow(lambda s: two_beams(s, 1e-10), np.linspace(0, 1, points))

    assert kinds(found) == ["unsafe"]
    assert found.events[0].start < 0.5 < found.events[0].end
    assert found.events[0].end - found.events[0].start < 1e-7


@pytest.mark.slow_but("proven-0.0-4", "followed-0.0-4", "followed-0.0-3")
@pytest.mark.parametrize("points", GRIDS)
@pytest.mark.parametrize("coupling", [0.0, 1e-3])
def test_the_order_of_eigenvalues_and_lengths_of_vectors_do_not_matter(
    follow, monkeypatch, points, coupling
):
    rng = np.random.default_rng(points)
    solve = np.linalg.eig

    def shuffled(A):
        values, V = (np.array(part, dtype=complex) for part in solve(A))
        for k in range(len(A)):
            order = rng.permutation(len(values[k]))
            phase = rng.uniform(0.1, 10, len(order)) * np.exp(2j * rng.uniform(0, 3, len(order)))
            values[k], V[k] = values[k, order], (V[k] * phase)[:, order]
        return values, V

    grid = np.linspace(0, 1, points)
    plain = follow(lambda s: two_beams(s, coupling), grid)
    monkeypatch.setattr(spectrum_module.np.linalg, "eig", shuffled)
    mixed = follow(lambda s: two_beams(s, coupling), grid)
    monkeypatch.undo()

    np.testing.assert_allclose(mixed.at(grid), plain.at(grid), rtol=1e-12, atol=1e-12)


@pytest.mark.slow_but("followed-0", "proven-0", "followed-2")
@pytest.mark.parametrize("seed", range(6))
def test_the_order_and_units_of_states_do_not_matter(follow, seed):
    rng = np.random.default_rng(seed)
    family, grid = random_family(seed), np.linspace(0, 1, 6)
    n = len(family(0.0))
    order, units = rng.permutation(n), 10.0 ** rng.uniform(-3, 3, n)

    def other(s):
        return (family(s) * units / units[:, None])[np.ix_(order, order)]

    plain, mixed = follow(family, grid).at(grid), follow(other, grid).at(grid)
    np.testing.assert_allclose(mixed, plain, atol=1e-7 * np.abs(plain).max())


@pytest.mark.parametrize("points", GRIDS)
def test_two_real_eigenvalues_break_away_where_a_quadratic_says(follow, points):
    found = follow(lambda s: np.array([[0, 1], [-s, -2.0]]), np.linspace(0, 2, points))

    root = np.sqrt(1 - found.s + 0j)
    away = np.array([-1 + root, -1 - root]).T
    np.testing.assert_allclose(found.values, away, atol=1e-7)  # sqrt of round-off at s = 1
    assert kinds(found) == ["break-away"]
    assert found.events[0].start == pytest.approx(1, abs=1e-12)
    assert found.events[0].value == pytest.approx(-1, abs=1e-7)


@pytest.mark.parametrize("points", GRIDS)
def test_a_pair_breaks_in_and_its_upper_half_becomes_the_greater(follow, points):
    found = follow(lambda s: np.array([[0, 1], [s - 2, -2.0]]), np.linspace(0, 2, points))

    root = np.sqrt(found.s - 1 + 0j)
    np.testing.assert_allclose(found.values, np.array([-1 + root, -1 - root]).T, atol=1e-7)
    assert kinds(found) == ["break-in"]


@pytest.mark.parametrize("points", GRIDS)
def test_a_root_locus_breaks_away_where_its_gain_is_greatest(follow, points):
    # k / (p (p + 2) (p + 5)): 3 p^2 + 14 p + 10 = 0 between 0 and -2
    found = follow(
        lambda k: np.array([[0, 1, 0], [0, 0, 1], [-k, -10.0, -7]]), np.linspace(0, 50, points)
    )

    p = (-14 + np.sqrt(14**2 - 120)) / 6
    assert kinds(found) == ["break-away"]
    assert found.events[0].start == pytest.approx(-(p**3 + 7 * p**2 + 10 * p), rel=1e-9)
    assert found.events[0].value == pytest.approx(p, rel=1e-6)


@pytest.mark.parametrize("points", GRIDS)
def test_a_pair_that_touches_the_real_axis_remains_a_pair(follow, points):
    found = follow(lambda s: np.array([[-1, s - 0.37], [0.37 - s, -1]]), np.linspace(0, 1, points))

    np.testing.assert_allclose(found.values[:, 0], -1 + 1j * np.abs(found.s - 0.37), atol=1e-12)
    assert kinds(found) == ["touching"]
    assert found.events[0].start == pytest.approx(0.37, abs=1e-11)


@pytest.mark.parametrize("points", GRIDS)
def test_equal_joints_are_followed_together(follow, points):
    found = follow(lambda s: oscillators((1 + s, 0.1), (1 + s, 0.1)), np.linspace(0, 1, points))

    exact = pair(1 + found.s, 0.1)
    np.testing.assert_allclose(found.values[:, upper(found)], np.array([exact] * 2).T, rtol=1e-9)
    assert found.events == ()
    assert {tuple(map(len, sets)) for sets in found.together} == {(2, 2)}


@pytest.mark.slow_but("followed-3", "followed-4", "followed-11")
@pytest.mark.parametrize("points", GRIDS)
def test_equal_joints_break_away_together(follow, points):
    found = follow(lambda s: np.kron(np.eye(2), [[0, 1], [-s, -2.0]]), np.linspace(0, 2, points))

    root = np.sqrt(1 - found.s + 0j)
    exact = np.array([-1 + root, -1 + root, -1 - root, -1 - root]).T
    np.testing.assert_allclose(found.values, exact, atol=1e-6)
    assert kinds(found) == ["break-away"]


@pytest.mark.parametrize("points", GRIDS)
def test_a_free_joint_keeps_its_two_zeros_beside_what_moves(follow, points):
    def family(s):
        A = np.ones((4, 4))
        A[:2] = [[0, 1, 0, 0], [0, 0, 0, 0]]
        A[2:, 2:] = oscillators((2 - s, 0.3))
        return A

    found = follow(family, np.linspace(0, 1, points))

    np.testing.assert_allclose(found.values[:, :2], 0, atol=1e-7)
    np.testing.assert_allclose(found.values[:, 2], pair(2 - found.s, 0.3), rtol=1e-9)
    assert found.events == ()


def test_eigenvalues_that_meet_on_every_point_of_the_grid_are_followed_through(follow):
    def wave(s):
        return np.sin(4 * np.pi * s)

    found = follow(
        lambda s: turned(oscillators((3 + wave(s), 0.1), (3 - wave(s), 0.1)), 2 * s),
        np.linspace(0, 1, 5),
    )

    assert not unsafe(found)
    own = found.values[:, upper(found)]
    own = own[:, np.argsort(own[1].imag)[::-1]]
    exact = np.array([pair(3 + wave(found.s), 0.1), pair(3 - wave(found.s), 0.1)]).T
    np.testing.assert_allclose(own, exact, rtol=1e-9)


def test_a_jump_of_the_matrix_is_said_where_it_is(follow):
    A, B = np.diag([1.0, 2, 3]), np.diag([2.0, 5, 9])
    B[0, 2] = B[2, 1] = 2.0
    found = follow(lambda s: A if s < 0.4321 else B, np.linspace(0, 1, 5))

    assert kinds(found) == ["unsafe"]
    assert unsafe(found)[0].start < 0.4321 <= unsafe(found)[0].end
    assert unsafe(found)[0].end - unsafe(found)[0].start < 3e-12
    assert unsafe(found)[0].branches == (0, 1, 2)


@pytest.mark.slow_but("proven-4", "followed-4", "proven-100")
@pytest.mark.parametrize("points", GRIDS)
def test_a_pair_that_jumps_does_not_touch_the_real_axis(follow, points):
    found = follow(lambda s: oscillators((1 if s < 0.4321 else 3, 0.1)), np.linspace(0, 1, points))

    assert kinds(found) == ["unsafe"]
    assert found.events[0].start < 0.4321 <= found.events[0].end


def test_a_pair_still_in_doubt_when_matrices_are_spent_does_not_touch_the_real_axis(
    follow, monkeypatch
):
    monkeypatch.setattr(branches, "_MOST", 3)
    found = follow(lambda s: oscillators((1 + 9 * s**4, 0.1)), np.linspace(0, 1, 3))

    assert set(kinds(found)) == {"unsafe"}


@pytest.mark.parametrize("points", [2, *GRIDS])
def test_a_pair_that_touches_zero_remains_a_pair(follow, points):
    found = follow(
        lambda s: np.diag([0.0, 0, -2]) + (s - 0.37) * np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]),
        np.linspace(0, 1, points),
    )

    assert "unsafe" not in kinds(found)
    assert "touching" in kinds(found)


@pytest.mark.parametrize("points", [2, *GRIDS])
@pytest.mark.parametrize("slope", [10, 1000])
def test_near_ones_that_move_fast_keep_their_order_on_a_point_where_others_cross(
    follow, points, slope
):
    apart = 1e-7 * slope * np.arange(3)
    others = np.sort(np.random.default_rng(points).permutation(3))
    exact = lambda s: np.array([s, 1 - s, *(5 + slope * s + apart[others])])  # noqa: E731
    Q = np.linalg.qr(np.random.default_rng(points).standard_normal((5, 5)))[0]
    found = follow(lambda s: Q * exact(s) @ Q.T, np.linspace(0, 1, points))

    expected = np.array([exact(s) for s in found.s])
    start = np.argsort(expected[0])
    order = np.argsort(found.values[0].real)
    np.testing.assert_allclose(found.values[:, order], expected[:, start], atol=1e-9 * slope)
    assert not unsafe(found)


def test_eigenvalues_that_are_one_and_then_part_are_said_where_they_do(follow):
    found = follow(lambda s: np.diag([1, 1 + max(0.0, s - 0.3)]), np.linspace(0, 1, 5))

    assert unsafe(found)[0].start == pytest.approx(0.3, abs=1e-9)
    assert unsafe(found)[0].branches == (0, 1)


def test_what_is_still_in_doubt_when_matrices_are_spent_is_unsafe(follow, monkeypatch):
    monkeypatch.setattr(branches, "_MOST", 20)
    found = follow(lambda s: two_beams(s, 1e-6), np.linspace(0, 1, 4))

    assert unsafe(found)
    assert found.n_matrices <= 24


@pytest.mark.slow_but("proven-18", "proven-5")
@pytest.mark.parametrize("seed", range(20))
def test_two_pairs_that_coalesce_are_never_followed_through_it(follow, seed):
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.02, 0.9)
    window = start, start + rng.uniform(0.01, 0.06)
    found = follow(lambda s: flutter(-10 * (s - window[0]) * (s - window[1])), np.linspace(0, 1, 5))

    assert kinds(found) == ["unsafe", "unsafe"]
    assert [event.start for event in found.events] == pytest.approx(window, abs=1e-9)


def turning(decay, rate):
    return np.array([[decay, rate], [-rate, decay]])


@pytest.mark.parametrize("size", [1e6, 1e8])
@pytest.mark.parametrize("offset", [1.5, 4.0])
def test_a_crossing_as_near_to_a_node_as_round_off_is_one(follow, size, offset):
    at = 0.5 + offset * 100 * 2.2e-16 * size
    pairs = follow(
        lambda s: scipy.linalg.block_diag(
            turning(-1 + 0.3 * (s - at) ** 2 + 0.3 * (s - at), 3 + s - at), turning(-1, 3), -size
        ),
        np.linspace(0, 1, 5),
    )
    single = follow(
        lambda s: np.diag([-1 + s - at, -1 - 0.5 * (s - at), -size]), np.linspace(0, 1, 5)
    )
    for found in (pairs, single):
        assert kinds(found) == ["crossing"]
        assert found.events[0].start == pytest.approx(at, abs=1e-6)


@pytest.mark.parametrize("coupling", [1e-3, 1e-6])
def test_a_step_is_divided_where_two_veer(coupling, monkeypatch):
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((2, 2)))[0]

    def family(s):
        d = s - 0.43 + 0.3 * (s - 0.43) ** 2
        return Q @ np.array([[d - 9, coupling], [coupling, -d - 9]]) @ Q.T

    found = branches.follow(family, np.linspace(0, 1, 5))
    monkeypatch.setattr(following, "_half_turned", lambda _: 0.5)
    halved = branches.follow(family, np.linspace(0, 1, 5))

    assert kinds(found) == kinds(halved) == []
    assert np.abs(np.diff(found.values, axis=1)).min() < 3 * coupling
    assert found.n_matrices < 0.8 * halved.n_matrices


@pytest.mark.parametrize("grid", [[0.0], [0.0, 0.0], [1.0, 0.0], [0.0, np.nan]])
def test_a_grid_that_does_not_ascend_is_refused(follow, grid):
    with pytest.raises(InputError, match="grid"):
        follow(lambda s: np.eye(2) * s, np.array(grid))


def test_a_matrix_that_is_not_finite_is_refused_with_its_parameter(follow):
    with pytest.raises(InputError, match=r"A\(0.5\)"):
        follow(lambda s: np.array([[np.inf if s == 0.5 else s]]), np.linspace(0, 1, 3))


def test_a_family_that_changes_its_size_is_refused_with_the_parameter(follow):
    with pytest.raises(InputError, match="expected matrices of 3 rows everywhere, got 2 at 0;"):
        follow(lambda s: np.eye(2 if s == 0 else 3), np.linspace(0, 1, 3))


WINDOWS = [(0.15, 0.2), (0.03, 0.06), (0.3, 0.33), (0.26, 0.3), (0.4, 0.45), (0.94, 0.97)]


def split(d):
    """A pair that is real, and unstable, where d > 0."""
    return np.array([[-0.02, d], [1.0, -0.02]])


def flutter(d):
    """Two pairs at 2 rad/s that flutter where d > 0."""
    K = np.array([[4.0, -d], [1.0, 4.0]])
    return np.block([[np.zeros((2, 2)), np.eye(2)], [-K, -0.01 * np.eye(2)]])


UNSTABLE = {
    "beside a cluster": lambda d: scipy.linalg.block_diag(split(d), -5 * np.eye(2)),
    "alone": split,
    "of two pairs": flutter,
}


@pytest.mark.slow_but("beside a cluster-window3", "alone-window*")
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("make", UNSTABLE.values(), ids=UNSTABLE.keys())
def test_what_happens_within_a_step_is_seen(make, window):
    def family(s):
        return make(-10 * (s - window[0]) * (s - window[1]))

    grid = np.linspace(0, 1, 5)
    followed, proven = (branches.follow(family, grid, proven=way) for way in (False, True))

    assert kinds(followed) == kinds(proven)
    inside = (followed.s > window[0]) & (followed.s < window[1])
    assert inside.any()
    assert followed.n_matrices < proven.n_matrices


def test_a_pulse_that_no_point_of_the_grid_shows_is_seen_half_way():
    def family(s):
        return oscillators((1 + np.exp(-(((s - 0.625) / 0.02) ** 2)), 0.1), (9.0, 0.1))

    found = branches.follow(family, np.linspace(0, 1, 5))

    assert found.values.imag.max(initial=0, where=np.abs(found.values) < 5) > 1.9


def test_what_is_followed_is_unproven_and_what_is_proven_is_not():
    def family(s):
        return oscillators((1 + s, 0.01), (5.0, 0.01))

    grid = np.linspace(0, 1, 5)

    assert branches.follow(family, grid).unproven == ((0.0, 1.0),)
    assert branches.follow(family, grid, proven=True).unproven == ()


def random_quadratic(seed):
    """A0 + s A1 + s^2 A2 of 4 to 12 states; a third of them stable at s = 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 13))
    A = rng.standard_normal((3, n, n)) / np.sqrt(n) * np.array([1, 2, 1])[:, None, None]
    A[0] -= 1.5 * np.eye(n) * (seed % 3 == 0)
    return lambda s: A[0] + s * A[1] + s * s * A[2]


def random_mechanism(seed):
    """M x'' + D x' + K x = 0 of 2 to 6 coordinates whose M, D and K depend on s."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    X = rng.standard_normal((4, n, n))
    M0, M1, K0, K1 = X @ X.swapaxes(1, 2) / n + 0.3 * np.eye(n)
    D = 0.3 * rng.standard_normal((2, n, n)) * rng.choice([0.01, 0.1, 1])
    w = rng.uniform(1, 4)

    def family(s):
        M = M0 + M1 * np.sin(w * s) ** 2
        below = np.linalg.solve(M, -np.hstack([10 * (K0 + s * K1), D[0] @ D[0].T + s * D[1]]))
        return np.vstack([np.eye(n, 2 * n, n), below])

    return family


def random_family(seed):
    return (random_quadratic if seed % 2 else random_mechanism)(seed)


SEEDS = [*range(20), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(20, 200))]


@pytest.mark.slow_but("followed-6", "followed-8", "proven-0", "proven-8")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_coarse_grid_gives_the_branches_of_one_a_hundred_times_finer(follow, seed):
    family, grid = random_family(seed), np.linspace(0, 1, 5)
    coarse = follow(family, grid)
    fine = branches.follow(family, np.linspace(0, 1, 401), proven=True)

    size = np.abs(fine.values).max()
    np.testing.assert_allclose(coarse.at(grid), fine.at(grid), atol=1e-7 * size)
    assert not unsafe(coarse)
    assert not unsafe(fine)
    assert [(p.kind, p.branches) for p in coarse.events] == [
        (p.kind, p.branches) for p in fine.events
    ]
    np.testing.assert_allclose(
        [p.start for p in coarse.events], [p.start for p in fine.events], atol=1e-8
    )


@pytest.mark.slow_but("followed-10", "proven-6")
@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_branches_are_those_of_small_steps_to_the_nearest(follow, seed):
    family, grid = random_family(seed), np.linspace(0, 1, 5)
    found = follow(family, grid)
    small = np.linspace(0, 1, 4001)
    spectra = np.linalg.eigvals(np.array([family(s) for s in small]))
    walked = [found.values[0]]
    for values in spectra[1:]:
        last, before = walked[-1], walked[-2] if len(walked) > 1 else walked[-1]
        nearest = np.abs((2 * last - before)[:, None] - values).argmin(axis=1)
        walked.append(values[nearest])

    assert found.events == ()  # so that the nearest is the next
    np.testing.assert_allclose(np.array(walked)[::1000], found.at(grid), atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_every_branch_is_an_eigenvalue_with_its_vectors(follow, seed):
    family = random_family(seed)
    found = follow(family, np.linspace(0, 1, 5))
    A = np.array([family(s) for s in found.s])
    vectors = [found.vectors(k) for k in range(len(found.s))]
    V, W = (np.array(part) for part in zip(*vectors, strict=True))

    size = np.abs(found.values).max() * np.linalg.norm(V, axis=1, keepdims=True).max()
    np.testing.assert_allclose(A @ V, V * found.values[:, None, :], atol=1e-9 * size)
    biorthogonal = W.conj().swapaxes(1, 2) @ V
    np.testing.assert_allclose(
        biorthogonal, np.broadcast_to(np.eye(A.shape[1]), A.shape), atol=1e-8
    )
    trace = np.trace(A, axis1=1, axis2=2)
    np.testing.assert_allclose(found.values.sum(axis=1), trace, atol=1e-9 * size)
