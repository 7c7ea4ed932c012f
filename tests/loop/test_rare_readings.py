"""Readings that are taken more rarely than their law is sampled: runs by hand, filter, margins."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.control.observer import disturbance
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import close_around, close_loop
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.equilibrium_search import law_arguments
from flexctl.loop.linear import linearise
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.plant import assemble_plant
from flexctl.plant.linearisation import linearise as linearise_plant
from flexctl.robustness.stiffness.pose_loop import close_unknown, final_loop
from flexctl.search.tuning.spectra import Spectrum, closed_matrix
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.loop_responses import frequency_response
from flexctl.verdict.margins import stability_margins
from flexctl.verdict.margins_at_sensors import sensor_margins
from flexctl.verdict.stationary_noise import noise_levels

T, FINE = 2e-3, Tolerance.of(1e-11)
MODES = BasisChoice(kind="modes", order=2)
ENCODER = {"kind": "encoder", "noise": 1e-5}
GAUGE = {"kind": "gauge", "xi": 0.1, "noise": 1e-3}
CAMERA = {"kind": "deflection", "xi": 1.0, "noise": 1e-5, "sample_time": 5 * T, "delay": 6 * T}
RARE = [ENCODER | {"sample_time": 3 * T}, CAMERA, GAUGE]
Gp, Gv = 60.0, 12.0


@pytest.fixture(scope="module", autouse=True)
def _interpreted(no_compiler):
    """Functions are called a few times."""


def cycloid(t, end=0.5, duration=0.3):
    s = np.clip(t / duration, 0, 1)
    rate = end / duration * (1 - np.cos(2 * np.pi * s)) * (t <= duration)
    return end * (s - np.sin(2 * np.pi * s) / (2 * np.pi)), rate


def rigid(make, instruments, inertia=0.5, true_inertia=None, delay=0.0, **tables):
    """A rigid link: inertia times acceleration is the torque of a PD law."""
    loop = {"sample_time": T, "delay": delay, "duration": 0.5} | tables.pop("loop", {})
    design = make["design"](
        [0.0], [0.5], "joint-pd", duration=0.3, gains={"Gp": [Gp], "Gv": [Gv]}, loop=loop,
        instruments=instruments, **tables,
    )  # fmt: skip
    controller = design_controller(make["rigid-link"](inertia), design)
    truth = make["rigid-link"](true_inertia or inertia)
    return close_around(controller, assemble_plant(truth, BasisChoice(), interpreted=True))


def moved(x, torque, time, inertia):
    """State of the link after a time under a torque."""
    a = torque / inertia
    return np.array([x[0] + time * x[1] + time**2 / 2 * a, x[1] + time * a])


@pytest.mark.slow_but("0.001-0.0")
@pytest.mark.parametrize("tau", [0.0, 0.004])
@pytest.mark.parametrize("resolution", [0.0, 1e-3])
def test_a_law_runs_on_a_rare_encoder_as_by_hand(make, tau, resolution):
    every, late, delay = 3, 2, 0.4 * T
    encoder = {"kind": "encoder", "sample_time": every * T, "delay": 1.5 * T}
    encoder |= {"resolution": resolution} if resolution else {}
    rate = {"kind": "difference", "time_constant": tau} if tau else {"kind": "difference"}
    steps = 200
    run = simulate(rigid(make, [encoder, rate], delay=delay), times=T * np.arange(steps))

    x, taken, before, v, torque, found = np.zeros(2), [0.0] * (late + 1), 0.0, 0.0, 0.0, []
    a = np.exp(-every * T / tau) if tau else 0.0
    for k in range(steps):
        found.append(x[0])
        new = x[0] if not resolution else np.round(x[0] / resolution) * resolution
        taken = [new if k % every == 0 else taken[0], *taken[:-1]]
        got = taken[late]
        if (k - late) % every == 0:
            v = a * v + (1 - a) * (got - before) / (every * T)
        before = got
        q_d, v_d = cycloid(k * T)
        x = moved(x, torque, delay, 0.5)
        torque = Gp * (q_d - got) + Gv * (v_d - v)
        x = moved(x, torque, T - delay, 0.5)
    np.testing.assert_allclose(run.q[0], found, atol=2e-9)
    assert run.q[0].max() > 0.4


def periodic_gains(Phi, Q, C, R, arrives):
    """Gains of the Kalman filter after thousands of samples, by the recursion alone."""
    P = np.eye(len(Phi)) * np.trace(Q)
    for k in range(300 * len(arrives)):
        new = arrives[k % len(arrives)]
        L = np.zeros((len(Phi), len(C)))
        S = C[new] @ P @ C[new].T + R[np.ix_(new, new)]
        L[:, new] = P @ C[new].T @ np.linalg.inv(S)
        P = Phi @ (P - L @ C @ P) @ Phi.T + Q
        P = (P + P.T) / 2
    gains = []
    for new in arrives:
        L = np.zeros((len(Phi), len(C)))
        L[:, new] = P @ C[new].T @ np.linalg.inv(C[new] @ P @ C[new].T + R[np.ix_(new, new)])
        P = Phi @ (P - L @ C @ P) @ Phi.T + Q
        gains.append(L)
    return gains


def test_a_filter_runs_on_a_rare_encoder_as_by_hand(make):
    # the true link is heavier than the filter knows
    every, inertia, heavier = 4, 0.5, 0.8
    instruments = [
        {"kind": "encoder", "noise": 1e-5, "sample_time": every * T},
        {"kind": "tachometer", "noise": 1e-3},
    ]
    observer = {"noise": {"torque": 0.5, "tip": 0.0}}
    loop = rigid(make, instruments, inertia, heavier, observer=observer, loop={"seed": 3})
    steps = 200
    run = simulate(loop, times=T * np.arange(steps))

    Phi, Gamma = np.array([[1, T], [0, 1]]), np.array([T**2 / 2, T]) / inertia
    G = 0.5 / inertia
    Q = G**2 * np.array([[T**3 / 3, T**2 / 2], [T**2 / 2, T]])
    R = np.diag([1e-10 / (every * T), 1e-6 / T])
    arrives = [np.array([True, True])] + [np.array([False, True])] * (every - 1)
    gains = periodic_gains(Phi, Q, np.eye(2), R, arrives)
    np.testing.assert_allclose(loop.controller.observer.gains, gains, rtol=1e-9)

    deviations = 1e-5 / np.sqrt(every * T), 1e-3 / np.sqrt(T)
    draws = [np.random.default_rng([3, k]).standard_normal(steps) for k in range(2)]
    noise = np.array(deviations)[:, None] * draws
    x, guess, found = np.zeros(2), np.zeros(2), []
    for k in range(steps):
        found.append(x[0])
        guess = guess + gains[k % every] @ (x + noise[:, k] - guess)
        q_d, v_d = cycloid(k * T)
        torque = Gp * (q_d - guess[0]) + Gv * (v_d - guess[1])
        guess = Phi @ guess + Gamma * torque
        x = moved(x, torque, T, heavier)
    np.testing.assert_allclose(run.q[0], found, atol=2e-9)


@pytest.mark.parametrize("instruments", [[ENCODER, CAMERA], RARE])
def test_the_filter_is_the_limit_of_its_recursion(make, instruments):
    observer = observed(make, instruments).controller.observer
    read = observer.readings
    Phi, Q = steady(observed(make, instruments).controller)
    n, N = len(Phi), len(Phi) + sum(read.late)
    A, C = scipy.linalg.block_diag(Phi, np.zeros((N - n, N - n))), np.zeros((len(read.C), N))
    row = n
    for i, late in enumerate(read.late):  # every output of the last `late` samples
        for k in range(late):
            A[row, row - 1] = float(k > 0)
            A[row, :n] = read.C[i] * (k == 0)
            C[i, row] = float(k == late - 1)
            row += 1
        if not late:
            C[i, :n] = read.C[i]
    noise = np.zeros((N, N))
    noise[:n, :n] = Q
    arrives = [
        np.array([(k - d) % e == 0 for d, e in zip(read.late, read.every, strict=True)])
        for k in range(read.cycle)
    ]
    gains = periodic_gains(A, noise, C, read.variance, arrives)
    size = np.abs(gains).max(axis=(0, 2), keepdims=True)[0, :n]
    for own, expected in zip(observer.gains, gains, strict=True):
        np.testing.assert_allclose(own[:n] / size, expected[:n] / size, atol=1e-8)
    step = np.eye(N)
    for L in gains:
        step = A @ (np.eye(N) - L @ C) @ step
    decay = np.abs(np.linalg.eigvals(step)).max()
    assert np.abs(observer.multipliers).max() == pytest.approx(decay, rel=1e-8)


def observed(make, instruments, order=None, **tables):
    """The single link under a PD law of an estimate; around its design plant without order."""
    arm = make["single"]()
    tables = {"gains": {"Gp": [Gp], "Gv": [Gv]}, "observer": {}} | tables
    loop = {"sample_time": T, "delay": 0.6 * T} | tables.pop("loop", {})
    design = make["design"]([0.0], [0.5], "joint-pd", instruments=instruments, loop=loop, **tables)
    controller = design_controller(arm, design, MODES)
    if order is None:
        return close_around(controller, controller.plant)
    return close_loop(controller, arm, modes=order)


def steady(controller):
    """Phi, Q of the linear design plant at the final pose."""
    plant, choice = controller.plant, controller.design.observer
    linear = linearise_plant(plant, plant.straight(controller.reference.final))
    N = disturbance(plant, linear, choice.noise)
    Q = np.zeros((2 * plant.n, 2 * plant.n))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for s, weight in zip(T / 2 * (nodes + 1), T / 2 * weights, strict=True):
        G = scipy.linalg.expm(linear.A_state * s) @ N
        Q += weight * G @ G.T
    return scipy.linalg.expm(linear.A_state * T), Q


@pytest.mark.parametrize("instruments", [[ENCODER, CAMERA], RARE])
def test_poles_separate_on_the_design_plant(make, instruments):
    loop = observed(make, instruments)
    period = linearise(loop).period
    z = np.exp(linearise(loop).poles * period)
    design = make["design"](
        [0.0], [0.5], "joint-pd", gains={"Gp": [Gp], "Gv": [Gv]},
        loop={"sample_time": T, "delay": 0.6 * T},
    )  # fmt: skip
    measured = close_around(
        design_controller(make["single"](), design, MODES), loop.controller.plant
    )
    own = np.exp(linearise(measured).poles * period)
    expected = np.concatenate([own, loop.controller.observer.multipliers])
    expected = expected[np.abs(expected) > 1e-6]
    z = z[np.abs(z) > 1e-6]
    assert len(z) == len(expected)
    assert np.abs(z[:, None] - expected).min(axis=1).max() < 1e-9


def test_rates_are_those_of_the_arm_beyond_the_rate_of_its_camera(make):
    # a camera that the filter hardly believes leaves the loop of the encoder alone
    blind = CAMERA | {"noise": 1e3, "sample_time": 10 * T}
    rates = linearise(observed(make, [ENCODER, blind], order=3)).poles
    expected = linearise(observed(make, [ENCODER], order=3)).poles
    swinging = expected[expected.imag > 1]
    assert swinging.imag.max() > np.pi / (10 * T)
    assert np.abs(swinging[:, None] - rates).min(axis=1).max() < 1e-3


@pytest.fixture(scope="module")
def plain(make):
    """A loop whose law is the same at every sample, and the same as a cycle of three of them."""
    loop = observed(make, [ENCODER | {"delay": T}, GAUGE], order=3)
    linear = linearise(loop)
    return loop, linear, replace(linear, samples=(linear,) * 3)


@pytest.mark.slow
def test_margins_over_a_cycle_are_those_of_a_law_that_is_the_same_at_every_sample(plain):
    loop, linear, cycle = plain
    z = [np.exp(3 * T * one.poles) for one in (linear, cycle)]
    lasting = [np.sort_complex(one[np.abs(one) > 1e-6]) for one in z]
    np.testing.assert_allclose(*lasting, atol=1e-9)
    margins, expected = stability_margins(cycle), stability_margins(linear)
    keys = (
        "gain_up_db gain_down_db phase_deg delay_seconds disk sensitivity_peak complementary_peak"
    )
    for key in keys.split():
        np.testing.assert_allclose(getattr(margins, key), getattr(expected, key), rtol=1e-6)
    margins, expected = sensor_margins(cycle), sensor_margins(linear)
    assert margins.readings == expected.readings
    keys = "gain_up_db gain_down_db phase_deg delay_seconds reading_disk reading_sensitivity_peak"
    for key in keys.split():
        np.testing.assert_allclose(getattr(margins, key), getattr(expected, key), rtol=1e-6)
    levels, known = noise_levels(loop, cycle), noise_levels(loop, linear)
    assert levels.tip_rms == pytest.approx(known.tip_rms, rel=1e-8)
    np.testing.assert_allclose(levels.torque_rms, known.torque_rms, rtol=1e-8)


def test_noise_at_rest_is_that_of_the_covariance_sample_by_sample(make):
    every, inertia, densities = 4, 0.5, (1e-3, 1e-4)
    instruments = [
        {"kind": "encoder", "noise": densities[0], "sample_time": every * T},
        {"kind": "tachometer", "noise": densities[1]},
    ]
    loop = rigid(make, instruments)
    known = noise_levels(loop, linearise(loop))

    R = np.diag([densities[0] ** 2 / (every * T), densities[1] ** 2 / T])
    link, push = np.array([[1, T], [0, 1]]), np.array([T**2 / 2, T]) / inertia
    P, torques, tips = np.zeros((3, 3)), [], []  # of q, v and the reading that is held
    for k in range(4000):
        new = k % every == 0
        held = np.array([1.0, 0, 0]) if new else np.array([0, 0, 1.0])
        K = -Gp * held - Gv * np.array([0, 1.0, 0])
        by_noise = np.array([-Gp * new, -Gv])
        A = np.vstack([np.hstack([link, np.zeros((2, 1))]) + np.outer(push, K), held])
        G = np.vstack([np.outer(push, by_noise), [new, 0]])
        if k >= 4000 - every:
            torques.append(K @ P @ K + by_noise @ R @ by_noise)
            tips.append(P[0, 0])
        P = A @ P @ A.T + G @ R @ G.T
    assert known.torque_rms[0] == pytest.approx(np.sqrt(np.mean(torques)), rel=1e-8)
    tip = loop.truth.tip_jacobian(np.zeros(1))
    expected = np.sqrt(np.mean(tips) * float((tip.T @ tip).item()))
    assert known.tip_rms == pytest.approx(expected, rel=1e-8, abs=1e-15)


def test_a_margin_of_the_stiffness_ends_where_multipliers_leave_the_circle(make):
    arm = make["single"]()
    design = make["design"](
        [0.0], [0.5], "decoupling", instruments=[ENCODER, CAMERA], loop={"sample_time": T},
        gains={"Gp": [Gp], "Gv": [Gv]}, observer={},
    )  # fmt: skip
    truth = assemble_plant(arm, BasisChoice(order=3), interpreted=True)
    closed = close_unknown(arm, design, MODES, truth)
    interval = final_loop(closed).interval
    assert not interval.proven
    ends = [x for x in (interval.alpha_lower, interval.alpha_upper) if np.isfinite(x) and x > -0.99]
    assert ends
    for end in ends:
        for share in (0.999, 1.001):
            poles = linearise(closed.under_errors(share * end)).poles
            assert (poles.real.max() > 0) == (share > 1)


def test_what_needs_one_law_says_so(make):
    loop = observed(make, [ENCODER, CAMERA], order=3)
    message = "the same at every sample, got one whose readings are not all new at each .* after 5"
    with pytest.raises(ComputationError, match=message):
        linearise(loop).to_control()
    with pytest.raises(InputError, match="got some that repeat after 5, whose response"):
        frequency_response(loop)
    told = " / ".join(loop.assumptions)
    assert "taken at every 5th sample" in told
    assert "gains that repeat after 5 samples" in told


@pytest.mark.slow
def test_the_map_over_a_cycle_is_the_derivative_of_a_run(make):
    # joint PD through encoders at every fourth sample and late, and their differences; the arm
    # rests, as it would not under the torque with which a run begins under gravity
    arm = make["two-link"]((0.0, 0.0, 0.0))
    instruments = [
        {"kind": "encoder", "sample_time": 4 * T, "delay": 2.5 * T},
        {"kind": "difference", "time_constant": T},
    ]
    design = make["design"](
        [0.4, 0.3], [0.4, 0.3], "joint-pd", kind="setpoint", instruments=instruments,
        gains={"Gp": [60.0, 40.0], "Gv": [12.0, 8.0]}, loop={"sample_time": T, "delay": 0.4 * T},
    )  # fmt: skip
    loop = close_loop(design_controller(arm, design, MODES), arm, modes=1)
    linear, n = linearise(loop), loop.truth.n
    whole = sampled_loop(linear, T, linear.delay)
    h = 1e-6 * np.random.default_rng(0).standard_normal(2 * n)
    x = np.concatenate([linear.rest.q, np.zeros(n)])

    def begin(x):
        return loop.initial_law_state(x[:n], x[n:])

    def after(x):
        run = simulate(loop, times=np.array([12 * T]), start=(x[:n], x[n:]), tolerance=FINE)
        return np.concatenate([run.q[:, 0], run.v[:, 0]])

    state = np.zeros(len(whole))
    own = (begin(x + h) - begin(x - h)) / 2
    state[: 2 * n + len(own)] = np.concatenate([h, own])
    expected = (np.linalg.matrix_power(whole, 3) @ state)[: 2 * n]
    moved = (after(x + h) - after(x - h)) / 2
    np.testing.assert_allclose(moved, expected, atol=1e-7 * np.abs(expected).max())


def test_under_a_wrong_model_the_arm_rests_under_the_mean_torque_of_its_law(make):
    # the camera corrects the estimate of a lighter arm, at some samples only
    arm = make["two-link"]((0.0, -9.81, 0.0), EI=40.0)
    instruments = [ENCODER, CAMERA | {"noise": 1e-6}]
    design = make["design"](
        [0.4, 0.3], [0.4, 0.3], "decoupling", kind="setpoint", instruments=instruments,
        gains={"Gp": [60.0, 60.0], "Gv": [12.0, 12.0]}, observer={}, loop={"sample_time": T},
    )  # fmt: skip
    controller = design_controller(arm, design, BasisChoice(kind="modes", order=1))
    truth = close_loop(controller, arm, modes=1).truth.loaded(1.3)
    loop, joints = close_around(controller, truth), np.array([0.4, 0.3])
    rest = find_loop_equilibrium(loop, joints, 0.0)

    # the law sample by sample, from a wrong estimate on, with the arm held there
    z, torques = loop.agreeing_state(rest.q, np.zeros(truth.n), joints), []
    for _ in range(4000):
        tau, rate = controller.evaluate("law", *law_arguments(loop, rest.q, z, joints, 0.0))
        z = z + T * rate.ravel()
        torques.append(tau.ravel())
    assert np.ptp(torques[-5:], axis=0).max() > 1e-6
    held = truth.gravity(rest.q) + truth.elastic_force(rest.q)
    np.testing.assert_allclose(truth.B @ np.mean(torques[-5:], axis=0), held, atol=1e-7)
    np.testing.assert_allclose(rest.tau, np.mean(torques[-5:], axis=0), atol=1e-7)
    assert np.abs(rest.offset).max() > 1e-3


def test_damping_that_tuning_searches_for_is_that_of_the_rates(make):
    loop = observed(make, [ENCODER, CAMERA], order=3)
    linear = linearise(loop)
    found = Spectrum.of(closed_matrix(linear, ())).values
    ratios = [-np.real(one) / np.abs(one) for one in (found, linear.poles)]
    assert ratios[0].min() == pytest.approx(ratios[1].min(), rel=1e-9)


def test_delay_margins_of_many_samples_are_found(make):
    # so slow a loop that only a delay of some fifty samples matters
    gains = {"Gp": [1.0], "Gv": [0.7]}
    design = make["design"](
        [0.0], [0.5], "joint-pd", gains=gains, loop={"sample_time": 0.02, "duration": 1.0}
    )
    linear = linearise(close_around(
        design_controller(make["rigid-link"](0.5), design),
        assemble_plant(make["rigid-link"](0.5), BasisChoice(), interpreted=True),
    ))  # fmt: skip
    expected = stability_margins(linear).delay_seconds[0]
    found = stability_margins(replace(linear, samples=(linear,) * 3))
    assert expected > 0.2
    assert found.delay_seconds[0] == pytest.approx(expected, rel=1e-6)


def test_margins_of_single_loops_of_rare_encoders_are_those_at_the_actuator(make):
    instruments = [{"kind": "encoder", "sample_time": 3 * T}, {"kind": "difference"}]
    verdict = evaluate(rigid(make, instruments, loop={"duration": 1.0}))
    assert "margins.sensors" not in verdict.not_computed
    assert verdict.sensor_margins.gain_up_db == pytest.approx(verdict.margins.gain_up_db)
