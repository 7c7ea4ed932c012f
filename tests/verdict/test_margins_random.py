"""Random loops at 0.99 and 1.01 of every margin: eigenvalues must say stable, then unstable."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.loop.linear_loop import LinearLoop, sampled_loop
from flexctl.verdict.broken_loop import BrokenLoop, break_loop
from flexctl.verdict.disk_margin import disk_margin
from flexctl.verdict.margins import stability_margins
from tests.verdict.singular_values import structured_singular_value

KINDS = ("damped", "undamped", "free", "integral", "observer")


def random_loop(make, kind, m, seed, sample_time=None, delay=0.0):
    """A stable loop of m actuators on m + 2 masses, lightly or not at all damped; None for none."""
    rng = np.random.default_rng([seed, m, KINDS.index(kind)])
    n = m + 2
    C, F, W = rng.normal(size=(3, n, n))
    M, K = np.eye(n) + 0.2 * C @ C.T, 40 * F @ F.T
    if kind == "free":
        K[:1], K[:, :1] = 0, 0
    D = (0.0 if kind == "undamped" else 0.002) * K
    empty = make["linear"](M, D, K, np.zeros((m, n)), np.zeros((m, n)), None, sample_time, delay)
    plant = empty.plant
    A, B = plant.A_state, plant.B_state
    cost = scipy.linalg.solve_continuous_are(A, B, np.diag([9.0] * n + [1.0] * n), 0.05 * np.eye(m))
    G = np.linalg.solve(0.05 * np.eye(m), B.T @ cost)
    wild = rng.normal(size=G.shape) * np.abs(G)
    for share in 0.7 ** np.arange(12):
        loop = law(empty, kind, G + 0.6 * share * wild, W)
        with np.errstate(divide="ignore"):
            rates = loop.poles.real
        if rates.max() < -1e-4:
            return loop
    return None


def law(empty, kind, G, W):
    m = len(G)
    if kind == "integral":
        return replace(empty, feedback=-G, integral_gain=-np.eye(m) - 0.2 * W[:m, :m])
    if kind != "observer":
        return replace(empty, feedback=-G)
    A, B = empty.plant.A_state, empty.plant.B_state
    C = np.eye(m, len(A))
    P = scipy.linalg.solve_continuous_are(A.T, C.T, 10 * np.eye(len(A)), np.eye(m))
    gain = P @ C.T
    return LinearLoop(
        plant=empty.plant,
        feedback=0 * G,
        integral_gain=-G,
        sample_time=empty.sample_time,
        delay=empty.delay,
        driven_by=gain @ C,
        own=A - B @ G - gain @ C,
    )


def scaled(loop, factors):
    f = np.asarray(factors, dtype=float)[:, None]
    return replace(loop, feedback=f * loop.feedback, integral_gain=f * loop.integral_gain)


def growth(loop):
    """Largest real part, or log of the largest multiplier: positive where the loop is unstable."""
    if loop.sample_time is None:
        return np.linalg.eigvals(loop.A + loop.B @ loop.K).real.max()
    step = sampled_loop(loop, loop.sample_time, loop.delay)
    return np.log(np.abs(np.linalg.eigvals(step)).max())


def turned(loop, channel, angle):
    """The same with one channel turned by a constant angle."""
    factor = np.ones(loop.B.shape[1], dtype=complex)
    factor[channel] = np.exp(1j * angle)
    if loop.sample_time is None:
        return np.linalg.eigvals(loop.A + loop.B @ (factor[:, None] * loop.K)).real.max()
    closed = sampled_loop(loop, loop.sample_time, loop.delay)
    one = np.ones(len(factor))
    one[channel] = 0
    by_law = closed - sampled_loop(scaled(loop, one), loop.sample_time, loop.delay)
    step = closed + (factor[channel] - 1) * by_law
    return np.log(np.abs(np.linalg.eigvals(step)).max())


def delayed(loop, channels, delay):
    """The same with some channels later by `delay` [s]."""
    late = np.zeros(loop.B.shape[1])
    late[channels] = delay
    if loop.sample_time is not None:
        step = sampled_loop(loop, loop.sample_time, loop.delay + late)
        return np.log(np.abs(np.linalg.eigvals(step)).max())
    return chebyshev(
        loop.A + loop.B @ (np.where(late > 0, 0, 1)[:, None] * loop.K),
        loop.B @ (np.where(late > 0, 1, 0)[:, None] * loop.K),
        delay,
    )


def chebyshev(A, late, delay, count=20):
    """Abscissa of x' = A x + late x(t - delay), the past at Chebyshev points."""
    k = np.arange(count + 1)
    x = np.cos(np.pi * k / count)
    c = np.where((k == 0) | (k == count), 2.0, 1.0) * (-1.0) ** k
    X = x[:, None] - x
    slope = np.outer(c, 1 / c) / (X + np.eye(count + 1))
    slope -= np.diag(slope.sum(axis=1))
    whole = np.kron(slope * 2 / delay, np.eye(len(A)))
    whole[: len(A)] = 0
    whole[: len(A), : len(A)], whole[: len(A), -len(A) :] = A, late
    return np.linalg.eigvals(whole).real.max()


def check_sides(value, limit, unit=1.0):
    """Stable at 0.99 of a limit and on the way there, unstable at 1.01."""
    inside = np.append(np.linspace(0.05, 0.95, 7), 0.99)
    assert max(value(unit * share * limit) for share in inside) < 0
    assert value(unit * 1.01 * limit) > 0


def check(loop):
    margins, m = stability_margins(loop), loop.B.shape[1]
    for j in range(m):
        one = np.eye(m)[j]
        for limit, sign in ((margins.gain_up_db[j], 1), (margins.gain_down_db[j], -1)):
            if np.isfinite(limit):
                check_sides(
                    lambda db, one=one: growth(scaled(loop, 1 + (10 ** (db / 20) - 1) * one)),
                    limit,
                    sign,
                )
            else:
                far = 10 ** (np.linspace(0, 3, 8)[1:] * sign)
                assert max(growth(scaled(loop, 1 + (g - 1) * one)) for g in far) < 1e-9
        if np.isfinite(margins.phase_deg[j]):
            check_sides(
                lambda phi, j=j: max(turned(loop, j, phi), turned(loop, j, -phi)),
                np.radians(margins.phase_deg[j]),
            )
        check_delay(loop, [j], margins.delay_seconds[j])
    check_delay(loop, list(range(m)), margins.common_delay_seconds)
    assert margins.common_delay_seconds <= margins.delay_seconds.min() or m > 1


def check_delay(loop, channels, limit):
    states = 0 if loop.sample_time is None else len(channels) * limit / loop.sample_time
    if np.isfinite(limit) and states < 200:  # more take the eigenvalues too long
        check_sides(lambda tau: delayed(loop, channels, tau), limit)


@pytest.mark.parametrize(
    ("kind", "m", "period", "delay"),
    [
        ("damped", 2, 0.02, 0.013),
        ("undamped", 1, None, 0.0),
        ("undamped", 2, 0.01, 0.0),
        ("free", 1, 0.05, 0.0),
        ("free", 2, None, 0.0),
        ("integral", 1, None, 0.0),
    ],
)
def test_margins_end_where_the_loop_does(make, kind, m, period, delay):
    loop = random_loop(make, kind, m, 0, period, delay)
    assert loop is not None
    check(loop)


@pytest.mark.slow  # what the quick ones show, for every kind of loop; some have no stable law
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("period", "delay"), [(None, 0.0), (0.01, 0.0), (0.02, 0.013), (0.05, 0.0)]
)
def test_margins_of_many_loops_end_where_these_do(make, kind, seed, period, delay):
    loops = [random_loop(make, kind, m, seed, period, delay) for m in (1, 2, 3)]
    stable = [loop for loop in loops if loop is not None]
    assert stable or period is not None
    for loop in stable:
        check(loop)


@pytest.mark.slow_but(
    "0-damped-1-None", "0-free-1-0.02", "0-observer-3-0.02", "1-free-2-None", "1-observer-3-0.02"
)
@pytest.mark.parametrize("sample_time", [None, 0.02])
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_no_frequency_has_a_larger_structured_singular_value(make, kind, m, seed, sample_time):
    if kind == "observer" and sample_time:
        return  # its law has states of its own, which are not sampled
    loop = random_loop(make, kind, m, seed)
    if loop is None:
        return
    loop = replace(loop, sample_time=sample_time)
    cut = break_loop(loop)
    if not cut.decays:
        return
    disk, at = disk_margin(cut)

    def mu(w):
        return structured_singular_value(cut.sensitivity(np.array([w]))[0] - np.eye(m) / 2)

    assert disk * mu(at) == pytest.approx(1, rel=1e-6)
    rates = cut.rates(cut.A)
    spread = np.concatenate([-np.geomspace(30, 0.01, 40), np.geomspace(0.01, 30, 40)])
    near = np.abs(rates.imag)[:, None] + np.abs(rates.real)[:, None] * spread
    w = np.concatenate([near.ravel(), np.geomspace(1e-3, 1e4, 200), [at * 0.999, at * 1.001]])
    w = w[(w > 0) & (w < cut.fastest)]
    norms = np.linalg.norm(cut.sensitivity(w) - np.eye(m) / 2, 2, axis=(1, 2))
    largest = max((mu(x) for x in w[norms * disk > 1]), default=0.0)  # no norm is below mu
    assert largest * disk <= 1 + 2e-6


def test_a_peak_a_billionth_of_its_frequency_wide_is_found():
    # a mode at 30 rad/s that is hardly moved, but felt: half of its own damping goes to the law
    M, stiffness = np.array([[1.0, 1e-8], [1e-8, 1.0]]), np.diag([0.0, 900.0])
    law = np.array([[-20.0, 0.0, -5.0, -2.0]])

    def loop(damping):
        A, B = np.zeros((4, 4)), np.zeros((4, 1))
        A[:2, 2:] = np.eye(2)
        A[2:, :2] = -np.linalg.solve(M, stiffness)
        A[2:, 2:] = -np.linalg.solve(M, np.diag([0.0, damping]))
        B[2:, 0] = np.linalg.solve(M, [1.0, 0.0])
        return BrokenLoop(A=A + B @ law, B=B, C=law)

    def decay(cut):
        rates = np.linalg.eigvals(cut.A)
        return -rates[rates.imag.argmax()].real

    grows = -decay(loop(0.0))
    cut = loop(4 * grows)
    assert 0 < grows < 3e-8
    assert decay(cut) == pytest.approx(grows, rel=1e-3)
    disk, at = disk_margin(cut)
    assert at == pytest.approx(30, rel=1e-6)

    def size(offset):
        return np.abs(cut.sensitivity(at + grows * offset)[:, 0, 0] - 0.5).max()

    assert size(np.linspace(-1, 1, 2001)) * disk == pytest.approx(1, rel=1e-5)
    assert disk * size(np.array([-1e3, 1e3])) < 0.9
