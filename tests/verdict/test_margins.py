"""Margins against what they mean: the loop is stable inside and unstable outside."""

import control
import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

from flexctl.errors import ComputationError
from flexctl.loop.linear import linearise_loop
from flexctl.loop.linear_loop import LinearLoop, sampled_loop, sampled_loops
from flexctl.verdict import sampling_rate
from flexctl.verdict.broken_loop import break_loop
from flexctl.verdict.margins import stability_margins
from flexctl.verdict.sampling_rate import smallest_sampling_rate
from tests.verdict.singular_values import structured_singular_value


def changed(loop, factors):
    """The loop with the channels' feedback multiplied by factors (m,), real or complex."""
    f = np.asarray(factors)[:, None]
    return LinearLoop(
        plant=loop.plant,
        feedback=f * loop.feedback,
        integral_gain=f * loop.integral_gain,
        sample_time=loop.sample_time,
        delay=loop.delay,
    )


def abscissa(loop, factors):
    """Largest real part of the closed-loop poles with the channels multiplied by factors."""
    K = np.asarray(factors)[:, None] * loop.K
    return np.linalg.eigvals(loop.A + loop.B @ K).real.max()


def with_lag(loop, channel, delay, order=12):
    """Spectral abscissa with a delay of one actuator as a high-order Pade approximation."""
    m = loop.B.shape[1]
    numerator, denominator = control.pade(delay, order)
    lag = control.ss(control.tf(numerator, denominator))
    F, G, H, E = (np.asarray(x) for x in (lag.A, lag.B, lag.C, lag.D))
    pick, others = np.zeros((m, m)), np.eye(m)
    pick[channel, channel], others[channel, channel] = 1, 0
    b = loop.B[:, [channel]]
    k = loop.K[[channel]]
    closed = np.block([[loop.A + loop.B @ others @ loop.K + E[0, 0] * b @ k, b @ H], [G @ k, F]])
    return np.linalg.eigvals(closed).real.max()


def random_loop(make, seed, m=2, integral=True):
    """Stable loop of three masses with weak damping and coupled feedback."""
    rng = np.random.default_rng(seed)
    C, F = rng.normal(size=(2, 3, 3))
    n = 3
    M, K = np.eye(n) + 0.2 * C @ C.T, 30 * F @ F.T + np.eye(n)
    D = 0.01 * K + 0.2 * np.eye(n)
    wild_q, wild_v, wild_z = (rng.normal(size=(m, k)) for k in (n, n, m))
    for share in 0.8 ** np.arange(40):  # the wildest of the couplings that is stable
        by_q = -20 * np.eye(m, n) - 40 * share * wild_q
        by_v = -3 * np.eye(m, n) - 6 * share * wild_v
        by_z = -4 * np.eye(m) - 8 * share * wild_z if integral else None
        loop = make["linear"](M, D, K, by_q, by_v, by_z)
        if loop.poles.real.max() < -2e-3:
            return loop
    raise AssertionError("no stable loop")


def unit(loop, channel, value):
    """All factors 1 but one."""
    factors = np.ones(loop.B.shape[1], dtype=complex)
    factors[channel] = value
    return factors


LOOPS = [(seed, m, i) for seed, m, i in ((1, 1, True), (2, 2, False), (3, 2, True), (4, 3, True))]
CHANNELS = [(*loop, channel) for loop in LOOPS for channel in range(loop[1])]


@pytest.mark.parametrize(("seed", "m", "integral", "channel"), CHANNELS)
def test_gain_margins_are_where_stability_ends(make, seed, m, integral, channel):
    loop = random_loop(make, seed, m, integral)
    margins = stability_margins(loop)
    up, down = margins.gain_up_db[channel], -margins.gain_down_db[channel]
    for limit, inside, outside in ((up, -0.05, 0.05), (down, 0.05, -0.05)):
        if np.isfinite(limit):
            assert abscissa(loop, unit(loop, channel, 10 ** ((limit + inside) / 20))) < 0
            assert abscissa(loop, unit(loop, channel, 10 ** ((limit + outside) / 20))) > 0
    between = np.linspace(max(down, -60) + 0.05, min(up, 60) - 0.05, 60)
    assert all(abscissa(loop, unit(loop, channel, 10 ** (g / 20))) < 0 for g in between)
    assert margins.gain_db[channel] == min(up, -down)


@pytest.mark.parametrize(("seed", "m", "integral", "channel"), CHANNELS)
def test_phase_margins_are_where_stability_ends(make, seed, m, integral, channel):
    # a constant complex factor turns positive and negative frequencies in opposite directions
    loop = random_loop(make, seed, m, integral)
    phase = np.radians(stability_margins(loop).phase_deg[channel])
    if not np.isfinite(phase):
        turns = np.exp(1j * np.linspace(-np.pi, np.pi, 60))
        assert all(abscissa(loop, unit(loop, channel, f)) < 0 for f in turns)
        return
    assert abscissa(loop, unit(loop, channel, np.exp(0.995j * phase))) < 0
    assert abscissa(loop, unit(loop, channel, np.exp(1.005j * phase))) > 0


@pytest.mark.parametrize(("seed", "m", "integral", "channel"), CHANNELS)
def test_delay_margins_are_where_stability_ends(make, seed, m, integral, channel):
    loop = random_loop(make, seed, m, integral)
    delay = stability_margins(loop).delay_seconds[channel]
    if not np.isfinite(delay):
        delay = 50.0
        assert with_lag(loop, channel, delay) < 0
        return
    assert with_lag(loop, channel, 0.99 * delay) < 0
    assert with_lag(loop, channel, 1.01 * delay) > 0


def as_control(loop):
    """The loop gain L = -K (s - A)^-1 B as a python-control system."""
    return control.ss(loop.A, loop.B, -loop.K, np.zeros((loop.B.shape[1],) * 2))


@pytest.mark.parametrize(("seed", "m", "integral"), LOOPS)
@pytest.mark.slow_but("1-*", "2-*", "3-*")
def test_the_disk_margin_is_that_of_python_control(make, seed, m, integral):
    loop = random_loop(make, seed, m, integral)
    margins = stability_margins(loop)
    at = margins.disk_frequency
    w = np.sort(np.concatenate([np.geomspace(at / 100, at * 100, 1500), [at]]))
    found = control.disk_margins(as_control(loop), w, skew=0.0)[0]
    assert margins.disk == pytest.approx(found, rel=1e-3)
    assert margins.disk <= found * (1 + 1e-6)


@pytest.mark.parametrize(("seed", "m", "integral"), LOOPS)
def test_nothing_inside_the_disk_destabilises(make, seed, m, integral):
    loop = random_loop(make, seed, m, integral)
    d = stability_margins(loop).disk
    rng = np.random.default_rng(seed)
    radius = d * np.sqrt(rng.uniform(size=(400, m))) * 0.999
    radius[:200] = 0.999 * d
    delta = radius * np.exp(2j * np.pi * rng.uniform(size=(400, m)))
    factors = (2 + delta) / (2 - delta)
    assert max(abscissa(loop, f) for f in factors) < 0


@pytest.mark.parametrize(("seed", "m", "integral"), LOOPS[:3])
def test_something_just_outside_the_disk_destabilises(make, seed, m, integral):
    loop = random_loop(make, seed, m, integral)
    d = 1.02 * stability_margins(loop).disk
    angles = np.linspace(0, 2 * np.pi, 180 if m == 1 else 90, endpoint=False)
    grid = np.stack(np.meshgrid(*[d * np.exp(1j * angles)] * m), axis=-1).reshape(-1, m)
    K = ((2 + grid) / (2 - grid))[..., None] * loop.K
    assert np.linalg.eigvals(loop.A + loop.B @ K).real.max() > 0


def test_a_textbook_loop_has_its_textbook_margins(make):
    # L = 1/(s (s + 1)(s + 2)): gain margin 6; |L| = 1 where w^6 + 5 w^4 + 4 w^2 = 1
    margins = stability_margins(make["linear"]([[1]], [[3]], [[2]], [[0]], [[0]], [[-1]]))
    roots = np.roots([1, 5, 4, -1])
    w = np.sqrt(roots[(np.abs(roots.imag) < 1e-12) & (roots.real > 0)].real[0])
    phase = np.pi / 2 - np.arctan(w) - np.arctan(w / 2)
    assert margins.gain_up_db[0] == pytest.approx(20 * np.log10(6), rel=1e-6)
    assert margins.gain_down_db[0] == np.inf
    assert margins.phase_deg[0] == pytest.approx(np.degrees(phase), rel=1e-6)
    assert margins.delay_seconds[0] == pytest.approx(phase / w, rel=1e-6)


def test_a_loop_that_needs_its_gain_has_a_margin_downwards(make):
    # 1/s^2 under PID: s^3 + g (kd s^2 + kp s + ki), stable for g > ki/(kd kp) = 1/4
    margins = stability_margins(make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-2]], [[-2]]))
    assert margins.gain_down_db[0] == pytest.approx(20 * np.log10(4), rel=1e-6)
    assert margins.gain_up_db[0] == np.inf
    assert margins.gain_db[0] == margins.gain_down_db[0]


def test_a_loop_that_a_lead_destabilises_has_its_phase_margin_on_that_side(make):
    # q'' + d q' + k q = u = g q: L = -g/D, as far from -1 as D is from the positive axis, leading
    d, k, g = 0.4, 9.0, 5.0
    margins = stability_margins(make["linear"]([[1]], [[d]], [[k]], [[g]], [[0]]))
    w = np.sqrt(np.roots([1, d**2 - 2 * k, k**2 - g**2]).real)  # where |D| = g
    lead = np.angle(k - w**2 + 1j * d * w)
    assert margins.phase_deg[0] == pytest.approx(np.degrees(lead.min()), rel=1e-9)
    assert margins.delay_seconds[0] == pytest.approx(min((2 * np.pi - lead) / w), rel=1e-9)


def test_a_loop_that_would_fall_over_has_a_margin_downwards(make):
    # q'' - 5 q = u = -20 q - 6 q': stable for g > 1/4; the loop leaves stability at zero frequency
    margins = stability_margins(make["linear"]([[1]], [[0]], [[-5]], [[-20]], [[-6]]))
    assert margins.gain_down_db[0] == pytest.approx(20 * np.log10(4), rel=1e-3)


def test_a_loop_without_feedback_in_one_channel_bears_anything_there(make):
    by_q, by_v = np.array([[-20.0, 0.0], [0.0, 0.0]]), np.array([[-6.0, 0.0], [0.0, 0.0]])
    loop = make["linear"](np.eye(2), 0.1 * np.eye(2), [[2, -1], [-1, 2]], by_q, by_v)
    margins = stability_margins(loop)
    assert margins.gain_db[1] == margins.phase_deg[1] == margins.delay_seconds[1] == np.inf


def test_a_double_integrator_under_pd_has_closed_form_margins(make):
    # L = (kp + kd s)/s^2, kp = kd = 1: |L| = 1 at w^4 = 1 + w^2, phase margin atan(w)
    margins = stability_margins(make["linear"]([[1]], [[0]], [[0]], [[-1]], [[-1]]))
    w = np.sqrt((1 + np.sqrt(5)) / 2)
    assert margins.phase_deg[0] == pytest.approx(np.degrees(np.arctan(w)), rel=1e-6)
    assert margins.delay_seconds[0] == pytest.approx(np.arctan(w) / w, rel=1e-6)
    assert margins.gain_db[0] == np.inf


def sampled_radius(loop, factor=1.0, extra=0.0):
    other = changed(loop, np.full(loop.B.shape[1], factor))
    step = sampled_loop(other, loop.sample_time, loop.delay + extra)
    return np.abs(np.linalg.eigvals(step)).max()


SAMPLED = [(0.1, 0.0), (0.1, 0.1), (0.1, 0.04), (0.3, 0.0)]


@pytest.mark.parametrize(("period", "delay"), SAMPLED)
def test_sampled_gain_margins_are_where_stability_ends(make, period, delay):
    # a rigid joint under PD: the fast end of the gain margin lies at or near half the rate
    loop = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, period, delay)
    assert sampled_radius(loop) < 1
    exact = scipy.optimize.brentq(lambda g: sampled_radius(loop, g) - 1, 1.0, 20.0)
    assert stability_margins(loop).gain_up_db[0] == pytest.approx(20 * np.log10(exact), rel=1e-4)


@pytest.mark.parametrize(("period", "delay"), SAMPLED)
def test_a_sampled_oscillator_has_its_gain_margin_too(make, period, delay):
    loop = make["linear"]([[1]], [[0.4]], [[9]], [[-2]], [[-1.5]], None, period, delay)
    exact = scipy.optimize.brentq(lambda g: sampled_radius(loop, g) - 1, 1.0, 40.0)
    assert stability_margins(loop).gain_up_db[0] == pytest.approx(20 * np.log10(exact), rel=1e-4)


def test_a_sampled_phase_margin_is_where_stability_ends(make):
    loop = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, 0.1, 0.04)
    phase = np.radians(stability_margins(loop).phase_deg[0])
    opened = sampled_loop(changed(loop, [0.0]), 0.1, 0.04)
    by_law = sampled_loop(loop, 0.1, 0.04) - opened
    radii = [
        np.abs(np.linalg.eigvals(opened + np.exp(f * 1j * phase) * by_law)).max()
        for f in (0.99, 1.01)
    ]
    assert radii[0] < 1 < radii[1]


@pytest.mark.slow
def test_margins_of_an_arm_are_where_its_loop_ends(make):
    # the sliding arm on a finer truth than its design
    design = make["design"]([0.0, 0.3], [0.5, 0.8])
    loop = make["close"](make["sliding"](), design, kind="modes", order=3)
    linear = linearise_loop(loop, np.array([0.5, 0.8]), 0.0)
    margins = stability_margins(linear)
    for j in range(2):
        for limit, sign in ((margins.gain_up_db[j], 1), (-margins.gain_down_db[j], -1)):
            if np.isfinite(limit):
                inside, outside = (10 ** ((limit + s * sign * 0.02) / 20) for s in (-1, 1))
                assert abscissa(linear, unit(linear, j, inside)) < 0
                assert abscissa(linear, unit(linear, j, outside)) > 0
        phase = np.radians(margins.phase_deg[j])
        assert abscissa(linear, unit(linear, j, np.exp(0.99j * phase))) < 0
        assert abscissa(linear, unit(linear, j, np.exp(1.01j * phase))) > 0


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_the_smallest_sampling_rate_is_where_stability_ends(make, delay):
    loop = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, None, delay)
    rate = smallest_sampling_rate(loop)
    radius = [
        np.abs(np.linalg.eigvals(sampled_loop(loop, 1 / r, delay))).max()
        for r in (1.01 * rate, 0.99 * rate)
    ]
    assert radius[0] < 1 < radius[1]


def test_a_double_integrator_needs_the_rate_of_its_closed_form(make):
    # Jury's test of 1/s^2 under held kp and kd: stable for T < min(2 kd/kp, 2/kd)
    kp, kd = 1.0, 4.0
    loop = make["linear"]([[1]], [[0]], [[0]], [[-kp]], [[-kd]])
    # p(z) = z^2 + (kp T^2/2 + kd T - 2) z + (kp T^2/2 - kd T + 1): p(-1) = 4 - 2 kd T, p(1) > 0
    assert smallest_sampling_rate(loop) == pytest.approx(kd / 2, rel=1e-7)


@pytest.mark.parametrize("frequency", [30.0, 60.0, 100.0])
def test_every_faster_rate_is_stable_too(make, frequency):
    # a lightly damped mode turns unstable near whole multiples of the sampling frequency
    M, K = np.eye(2), np.diag([0.0, frequency**2])
    D = np.diag([0.0, 0.04 * frequency])
    loop = make["linear"](M, D, K, [[-4.0, -1.5]], [[-3.0, -0.6]])
    assert loop.poles.real.max() < 0
    rate = smallest_sampling_rate(loop)
    periods = np.linspace(1e-4, 0.998 / rate, 700)
    radii = [np.abs(np.linalg.eigvals(sampled_loop(loop, T))).max() for T in periods]
    assert max(radii) < 1, f"unstable already at {1 / periods[int(np.argmax(radii))]:.3g} Hz"


def test_a_loop_that_any_hold_leaves_unstable_has_no_rate(make):
    grows = make["linear"]([[1]], [[-1e-3]], [[1]], [[0]], [[0]])
    assert smallest_sampling_rate(grows) is None


def test_channels_that_do_not_act_on_each_other_have_the_margin_of_the_worst(make):
    # two pairs of coupled masses: ab13md never returns of the whole matrix
    pair = np.array([[2.0, 0.4], [0.3, 1.5]])
    stiff = np.kron(np.diag([1.0, 3.0]), pair)
    rates = np.kron(np.diag([0.3, 0.8]), np.array([[1.0, 0.2], [0.1, 1.2]]))

    def disk(rows):
        n = rows.stop - rows.start
        none = np.zeros((n, n))
        return stability_margins(
            make["linear"](np.eye(n), none, none, -stiff[rows, rows], -rates[rows, rows])
        ).disk

    assert disk(slice(0, 4)) == pytest.approx(min(disk(slice(0, 2)), disk(slice(2, 4))), rel=1e-6)


@pytest.mark.parametrize("coupling", [1.0, 1e3])
@pytest.mark.parametrize("m", [2, 3, 4, 6])
def test_a_chain_of_channels_has_the_singular_value_of_the_worst(m, coupling):
    Z = coupling * np.tril(np.ones((m, m)), -1) + np.eye(m)
    assert structured_singular_value(Z.astype(complex)) == pytest.approx(1.0, rel=1e-6)
    Z -= np.diag(np.linspace(0, 0.5, m))
    assert structured_singular_value(Z.astype(complex)) == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("m", [3, 4])
@pytest.mark.parametrize("noise", [1e-16, 1e-14, 1e-12])
def test_round_off_back_along_a_chain_of_channels_hardly_counts(m, noise):
    rng = np.random.default_rng(m)
    Z = np.tril(rng.uniform(0.5, 1, (m, m)), -1) + np.diag(np.linspace(1, 0.4, m))
    back = np.triu(rng.uniform(0.1, 1, (m, m)), 1)
    mu = structured_singular_value((Z + noise * back).astype(complex))
    assert 1 - 1e-9 <= mu < 1 + 1e-8 + 30 * noise ** (2 / m)


@pytest.mark.parametrize("back", [1e-9, 1e-12, 1e-15])
def test_a_strong_coupling_makes_a_weak_one_back_count(back):
    Z = np.array([[1, back], [1e3, 1]])  # mu = 1 + sqrt(1e3 back)
    assert structured_singular_value(Z.astype(complex)) == pytest.approx(
        1 + np.sqrt(1e3 * back), rel=1e-7
    )


def test_an_undamped_mode_is_no_pole_to_fall_upon(make):
    # a grid through w = 1, 2, ... falls upon the poles of the open loop: 0, +-j and +-2j
    K = np.array([[2.5, -1.5], [-1.5, 2.5]])
    loop = make["linear"](np.eye(2), np.zeros((2, 2)), K, np.diag([0, -2.0]), -0.6 * np.eye(2))
    assert np.allclose(np.sort(np.abs(np.linalg.eigvals(loop.A))), [1, 1, 2, 2])
    cut = break_loop(loop)
    S = cut.sensitivity(np.array([0.0, 1.0, 2.0]))
    assert np.isfinite(S).all()
    assert np.linalg.svd(S[1], compute_uv=False)[1] < 1e-9  # where L has its pole
    margins = stability_margins(loop)
    assert 0 < margins.disk < 2
    assert margins.common_delay_seconds > 0


# held by no gain, and by one of 1e-12 beside a spring of 1e12 between rotor and link: its double
# eigenvalue at zero is moved by more than that by the spring's last digit
@pytest.mark.parametrize(
    "loop",
    [
        (np.eye(1), [[0]], [[0]], [[0]], [[-1]]),
        (
            np.eye(2),
            1e3 * np.array([[1, -1], [-1, 1]]),
            1e12 * np.array([[1, -1], [-1, 1]]),
            [[-1e-12, 0]],
            [[-1e-12, 0]],
        ),
    ],
)
def test_a_loop_that_does_not_decay_has_no_margins(make, loop):
    with pytest.raises(ComputationError, match="margins: expected eigenvalues that all decay, got"):
        stability_margins(make["linear"](*loop))


def test_an_actuator_without_use_has_no_margin_of_round_off(make):
    # L is real at s = 0 only, where it is infinite: no gain of 1e15 is a limit
    margins = stability_margins(make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], [[-1e-3]]))
    assert margins.gain_up_db[0] == np.inf
    assert margins.gain_down_db[0] < 90
    free = stability_margins(make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]]))
    assert free.gain_down_db[0] == np.inf


@pytest.mark.parametrize(("period", "delay"), [(0.1, 0.0), (0.1, 0.04), (0.3, 0.0), (0.02, 0.05)])
def test_a_sampled_delay_margin_is_exact_in_fractions_of_a_sample(make, period, delay):
    loop = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, period, delay)
    exact = scipy.optimize.brentq(lambda d: sampled_radius(loop, 1.0, d) - 1, 1e-3, 1.0, xtol=1e-12)
    margins = stability_margins(loop)
    assert margins.delay_seconds[0] == pytest.approx(exact, rel=1e-6)
    assert margins.common_delay_seconds == margins.delay_seconds[0]


def test_delays_of_each_channel_are_whole_steps_of_a_common_fine_time(make):
    # an event by event run on a tenth of the period, no exponential of the package
    M, K = np.array([[1.0, 0.3], [0.3, 1.5]]), np.array([[3.0, -1.0], [-1.0, 2.0]])
    loop = make["linear"](M, 0.05 * K, K, -np.eye(2), -0.7 * np.eye(2), None, 0.2)
    late = np.array([3, 14])  # in tenths of the period
    A, B, tick = loop.plant.A_state, loop.plant.B_state, 0.02
    pair = scipy.linalg.expm(tick * np.block([[A, B], [np.zeros((2, 6))]]))
    step = sampled_loop(loop, 0.2, late * tick)
    assert len(step) == 4 + 1 + 2
    x, u, torques = np.array([0.3, -0.2, 0.1, 0.4]), np.zeros(2), {}
    state = np.concatenate([x, np.zeros(3)])
    for k in range(120):
        if k % 10 == 0:
            np.testing.assert_allclose(state[:4], x, atol=1e-12)
            for j in range(2):
                torques[k + late[j], j] = loop.feedback[j] @ x
            state = step @ state
        u = np.array([torques.pop((k, j), u[j]) for j in range(2)])
        x = (pair @ np.concatenate([x, u]))[:4]


def test_a_common_delay_takes_less_than_one_joint_alone(make):
    # two like axes that stiffen each other: decoupled in sum and difference, each a loop of one
    kp, kd, c = 4.0, 1.0, 1.5
    by_q, by_v = -kp * np.eye(2) - c * (np.ones((2, 2)) - np.eye(2)), -kd * np.eye(2)
    none = np.zeros((2, 2))
    margins = stability_margins(make["linear"](np.eye(2), none, none, by_q, by_v))
    found = []
    for stiff in (kp + c, kp - c):  # of (kd s + stiff)/s^2
        w = np.sqrt((kd**2 + np.sqrt(kd**4 + 4 * stiff**2)) / 2)
        found.append(np.arctan(kd * w / stiff) / w)
    assert margins.common_delay_seconds == pytest.approx(min(found), rel=1e-9)
    assert margins.common_delay_seconds < 0.9 * margins.delay_seconds.min()


def test_a_period_without_a_sign_change_still_has_its_limit(make, monkeypatch):
    # a map that overflows is not stable, whatever comparisons with NaN say
    loop = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]])
    exact = smallest_sampling_rate(loop) or np.nan

    def overflowing(loop, periods):
        steps = sampled_loops(loop, periods)
        held = zip(periods, steps, strict=True)
        return [step if period < 1 / exact else np.full_like(step, np.nan) for period, step in held]

    monkeypatch.setattr(sampling_rate, "sampled_loops", overflowing)
    assert smallest_sampling_rate(loop) == pytest.approx(exact, rel=1e-4)


def test_a_stiff_mode_is_not_taken_for_a_multiplier_minus_one(make):
    # deflections and rates of a mode at 1e9 rad/s, which the joint neither sees nor moves
    M, D, K = np.eye(2), np.diag([0.0, 2.0]), np.diag([0.0, 1e18])
    loop = make["linear"](M, D, K, [[-4.0, 0.0]], [[-3.0, 0.0]], None, 0.1)
    alone = make["linear"]([[1]], [[0]], [[0]], [[-4]], [[-3]], None, 0.1)
    found, rigid = stability_margins(loop), stability_margins(alone)
    for key in ("gain_up_db", "phase_deg", "delay_seconds"):
        np.testing.assert_allclose(getattr(found, key), getattr(rigid, key), rtol=1e-6)


@pytest.mark.parametrize(("turns", "bound"), [(9.3, False), (15.3, True)])
def test_delays_are_upper_bounds_beside_a_mode_that_is_too_fast_for_the_samples(make, turns, bound):
    # the joint carries a mode that turns so often within a sample of 0.1 s
    M, D = np.array([[1.0, 0.5], [0.5, 1.0]]), np.diag([0.0, 1e-4])
    K = np.diag([0.0, 0.75 * (2 * np.pi * turns / 0.1) ** 2])
    loop = make["linear"](M, D, K, [[-4.0, 0.0]], [[-3.0, 0.0]], None, 0.1)
    assert stability_margins(loop).delay_may_be_less == bound
