"""Places where a loop gain has an eigenvalue of size one, against a scan of the loop gain."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq

from flexctl.loop.linear_loop import one_sample
from flexctl.verdict.broken_loop import (
    BrokenLoop,
    _once,
    _polished,
    break_loop,
    characteristic_loci,
    crossover_candidates,
    gain_crossovers,
)
from flexctl.verdict.delay_margin import continuous_delay

T = 0.1
GOLDEN = np.sqrt((1 + np.sqrt(5)) / 2)  # of (s + 1)/s^2


def double_integrator(make):
    return break_loop(make["linear"]([[1]], [[0]], [[0]], [[-1]], [[-1]]))


def polished(cut, start, reach):
    """Unit-gain frequencies of the first channel next to `start` (K,), each once."""
    w, slope = _polished(cut, [[0]], np.zeros(len(start), dtype=int), start, reach)
    return _once(w[~np.isnan(w)], slope[~np.isnan(w)])


def coupled(make, sample_time=None, delay=0.0):
    """Two masses of unlike gains that move each other, lightly damped: sizes pass one often."""
    M, D, K = [[2.0, 0.7], [0.7, 1.0]], np.diag([0.05, 0.1]), [[9.0, -2.0], [-2.0, 6.0]]
    by_q, by_v = np.array([[-9.0, 4.0], [-3.0, -4.0]]), -np.array([[3.0, 0.4], [0.2, 1.1]])
    return make["linear"](M, D, K, by_q, by_v, None, sample_time, delay)


def loop_gain(loop, channels):
    """L(w) (k, k) of these channels, the others closed, from the matrices of the loop."""
    own = list(channels)
    A, B, C = loop.A, loop.B, loop.K
    if loop.sample_time is not None:
        A, B = one_sample(loop, T, loop.delay)
        C = np.hstack([C, np.zeros((2, len(A) - C.shape[1]))])
    others = [j for j in range(2) if j not in own]
    A = A + B[:, others] @ C[others]

    def at(w):
        s = 1j * w if loop.sample_time is None else np.exp(1j * w * T)
        return -C[own] @ np.linalg.solve(s * np.eye(len(A)) - A, B[:, own])

    return at


def scanned(L, grid):
    """(w, lag) wherever the size of an eigenvalue of L, sorted by size, passes one."""

    def size(w, i):
        return np.sort(np.abs(np.linalg.eigvals(L(w))))[i] - 1

    found = []
    for i in range(len(L(grid[0]))):
        values = np.array([size(w, i) for w in grid])
        for k in np.flatnonzero(values[:-1] * values[1:] < 0):
            w = brentq(size, grid[k], grid[k + 1], args=(i,), xtol=1e-13)
            mu = np.linalg.eigvals(L(w))
            mu = mu[np.abs(np.abs(mu) - 1).argmin()]
            found.append((w, np.mod(np.angle(-mu), 2 * np.pi)))
    return np.array(sorted(found))


@pytest.mark.parametrize("channels", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("sampled", [{}, {"sample_time": T}, {"sample_time": T, "delay": 0.04}])
def test_all_places_of_size_one_are_found_with_their_lags(make, channels, sampled):
    loop = coupled(make, **sampled)
    top = np.pi / T if sampled else 100.0
    expected = scanned(loop_gain(loop, channels), np.geomspace(1e-2, top * (1 - 1e-9), 500))
    found = gain_crossovers(break_loop(loop), [channels])[0]

    assert len(expected) >= 1
    np.testing.assert_allclose(found.frequency, expected[:, 0], rtol=1e-8)
    np.testing.assert_allclose(found.lag, expected[:, 1], rtol=1e-7)


@pytest.mark.parametrize("between", [0.0, 1e-13], ids=["apart", "round-off between"])
@pytest.mark.parametrize("sampled", [{}, {"sample_time": T, "delay": 0.04}])
def test_masses_that_do_not_move_each_other_are_searched_apart(make, sampled, between):
    """Together they would have candidates where one gain is the other's inverse."""
    M, D, K = [[2.0, between], [between, 1.0]], np.diag([0.05, 0.1]), np.diag([9.0, 6.0])
    by_q, by_v = -np.diag([12.0, 4.0]), -np.diag([3.0, 1.1])
    loop = make["linear"](M, D, K, by_q, by_v, None, *sampled.values())
    cut, top = break_loop(loop), np.pi / T if sampled else 100.0
    expected = scanned(loop_gain(loop, (0, 1)), np.geomspace(1e-2, top * (1 - 1e-9), 500))
    found = gain_crossovers(cut, [(0, 1)])[0]
    alone = [crossover_candidates(cut, [j])[0] for j in range(2)]

    np.testing.assert_allclose(found.frequency, expected[:, 0], rtol=1e-8)
    np.testing.assert_allclose(found.lag, expected[:, 1], rtol=1e-7)
    together = np.sort(crossover_candidates(cut, (0, 1))[0])
    np.testing.assert_allclose(together, np.sort(np.concatenate(alone)), rtol=1e-6)


def test_loci_are_eigenvalues_of_the_loop_gain(make):
    loop, w = coupled(make), np.array([0.3, 1.7, 8.0])
    expected = [np.sort_complex(np.linalg.eigvals(loop_gain(loop, (0, 1))(x))) for x in w]
    found = np.sort_complex(characteristic_loci(break_loop(loop), (0, 1), w))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_double_integrator_has_one_place_in_closed_form(make):
    found = gain_crossovers(double_integrator(make), [[0]])[0]
    np.testing.assert_allclose(found.frequency, [GOLDEN], rtol=1e-12)
    np.testing.assert_allclose(found.lag, [np.arctan(GOLDEN)], rtol=1e-12)
    w, reach = crossover_candidates(double_integrator(make), [0])
    np.testing.assert_allclose(w, [GOLDEN], rtol=1e-8)
    assert ((reach > 0) & (reach < 1e-6 * w)).all()


@pytest.mark.parametrize("off", [-0.05, -1e-3, -1e-6, 1e-6, 1e-3, 0.05])
def test_a_place_that_is_nearly_right_is_brought_home(make, off):
    start = np.array([GOLDEN * (1 + off)])
    found = polished(double_integrator(make), start, np.abs(off) * start)
    np.testing.assert_allclose(found, [GOLDEN], rtol=1e-9)


def test_whatever_side_it_is_looked_for_from_a_place_is_the_same(make):
    start = GOLDEN * np.linspace(0.7, 1.4, 141)
    for reach in (1e-3, 0.03, 0.2):
        found = polished(double_integrator(make), start, reach * start)
        np.testing.assert_allclose(found, [GOLDEN], rtol=1e-9)


def test_a_place_that_is_found_twice_is_one_and_one_that_is_none_is_left_out(make):
    start = GOLDEN * np.array([1 + 1e-4, 1 - 1e-4])
    assert len(polished(double_integrator(make), start, 1e-4 * start)) == 1
    weak = break_loop(make["linear"]([[1]], [[0.5]], [[4]], [[-0.1]], [[-0.1]]))  # |L| < 0.3
    assert len(polished(weak, np.array([1.0, 2.0, 3.0]), np.full(3, 1e-3))) == 0
    found = gain_crossovers(weak, [[0]])[0]
    assert len(found.frequency) == len(found.lag) == 0


def test_places_of_a_sampled_loop_end_at_half_the_rate():
    # L = 0.45/(z (z + 0.5)), largest at z = -1: 0.9, never one
    cut = BrokenLoop(
        A=np.array([[-0.5, 1.0], [-0.45, 0.0]]), B=np.array([[0.0], [1.0]]),
        C=np.array([[-0.45, 0.0]]), sample_time=T,
    )  # fmt: skip
    start = np.array([0.999 * cut.fastest])
    assert len(polished(cut, start, 1e-3 * start)) == 0


RATES, GP, GV = np.array([0.0, 30.0, 400.0, 1e4]), 12.0, 4.0  # of undamped modes; of a PD


def undamped(share):
    """Undamped modes under a PD, L = (GP + GV s) sum b^2/(s^2 + w^2), share b^2 of the last one."""
    b, none = np.sqrt([1.0, 0.7, 0.2, share]), np.zeros((4, 4))
    A = np.block([[none, np.diag(RATES)], [-np.diag(RATES), none]])
    A[0, 4] = 1.0  # the first one drifts
    B = np.hstack([np.zeros(4), b])[:, None]
    C = -np.hstack([GP * b / np.where(RATES > 0, RATES, 1.0), GV * b])[None]
    return BrokenLoop(A=A + B @ C, B=B, C=C)


def beside_the_last(share, d):
    """(s^2 + w^2) L of `undamped` at s = jw + d, w of the last mode, and s^2 + w^2."""
    s, by_last = 1j * RATES[-1] + d, d * (2j * RATES[-1] + d)
    others = sum(c / (s**2 + w**2) for c, w in zip([1.0, 0.7, 0.2], RATES[:-1], strict=True))
    return (GP + GV * s) * (share + by_last * others), by_last


def place_above_the_last(share):
    """Distance in frequency from the last mode of the place of size one above it, and the delay."""

    def off(d):
        numerator, by_last = beside_the_last(share, 1j * d)
        return abs(numerator) / abs(by_last) - 1

    root: Any = brentq(off, 0.1 * GV * share, 10 * GV * share, xtol=1e-30)
    d = float(root)
    numerator, by_last = beside_the_last(share, 1j * d)
    return d, np.mod(np.angle(-numerator / by_last), 2 * np.pi) / (RATES[-1] + d)


def damping_of_the_last(share, delay):
    """Real part of the last mode's pole with a delay, by Newton's method on 1 + L e^(-sT) = 0."""

    def characteristic(d):
        numerator, by_last = beside_the_last(share, d)
        return by_last + numerator * np.exp(-(1j * RATES[-1] + d) * delay)

    d = -GV * share / 2 * np.exp(-1j * RATES[-1] * delay)
    for _ in range(20):
        h = 1e-3 * abs(d)
        slope = (characteristic(d + h) - characteristic(d - h)) / (2 * h)
        d -= characteristic(d) / slope
    return d.real


@pytest.mark.parametrize(
    ("share", "rtol"), [(1e-2, 1e-9), (1e-4, 1e-7), (5e-5, 1e-7), (1e-6, 1e-5), (1e-7, 1e-4)]
)
def test_a_place_next_to_an_undamped_pole_is_found_and_limits_the_delay(share, rtol):
    d, delay = place_above_the_last(share)
    assert damping_of_the_last(share, 0.999 * delay) < 0 < damping_of_the_last(share, 1.001 * delay)

    found = gain_crossovers(undamped(share), [[0]])[0]
    above, below = found.frequency > RATES[-1], found.frequency > RATES[-1] - 10 * GV * share
    assert len(found.frequency) == 7  # a drift and two beside each mode
    assert above.sum() == 1
    assert below.sum() == 2
    np.testing.assert_allclose(found.frequency[above] - RATES[-1], d, rtol=0.01)
    np.testing.assert_allclose(continuous_delay(found), delay, rtol=rtol)


def test_places_next_to_a_pole_are_found_beside_those_of_another_channel():
    one, other, none = undamped(1e-5), undamped(1e-2), np.zeros((8, 8))
    both = BrokenLoop(
        A=np.block([[one.A, none], [none, other.A / 2]]),  # at half of all frequencies
        B=np.block([[one.B, none[:, :1]], [none[:, :1], other.B / 2]]),
        C=np.block([[one.C, none[:1]], [none[:1], other.C]]),
    )
    found = gain_crossovers(both, [[0, 1]])[0]
    assert len(found.frequency) == 14
    np.testing.assert_allclose(continuous_delay(found), place_above_the_last(1e-5)[1], rtol=1e-6)
