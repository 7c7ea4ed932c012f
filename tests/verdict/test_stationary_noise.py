"""Root mean squares of noisy loops: closed forms, long runs, and the limit of fast sampling."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg

from flexctl.control import design_controller
from flexctl.errors import ComputationError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linearise_loop
from flexctl.model.record import BasisChoice
from flexctl.model.settings import with_options
from flexctl.verdict.evaluation import evaluate
from flexctl.verdict.stationary_noise import (
    NoiseInputs,
    noise_levels,
    observer_noise,
    sampled_covariance,
    stationary_noise,
)
from flexctl.view.explain import explain
from flexctl.view.to_json import to_json
from tests.arms import single_link, two_link
from tests.designs import make_design
from tests.loops import hand_made

pytestmark = pytest.mark.usefixtures("no_compiler")
M, D, K = 2.0, 0.5, 30.0
KP, KD = 70.0, 8.0
STATED = {
    "noise": {"encoder": 2e-4, "tachometer": 3e-2, "strain_gauge": 1e-3, "torque": 0.2, "tip": 0.3}
}


def inputs(loop, process=(), V=(), by_tau=(), by_z=()):
    n, m, n_z = loop.feedback.shape[1], len(loop.K), len(loop.F)
    r = len(V)
    return NoiseInputs(
        process=np.reshape(process, (n, -1)),
        V=np.diag(V) if r else np.zeros((0, 0)),
        by_tau=np.reshape(by_tau, (m, r)),
        by_z=np.reshape(by_z, (n_z, r)),
    )


def test_an_oscillator_under_white_torque_has_its_closed_form():
    # m x'' + d x' + k x = w of intensity W: E x^2 = W/(2 d k), E v^2 = W/(2 d m)
    loop, W = hand_made(M, D, K, -KP, -KD), 0.3
    P, R = stationary_noise(loop, inputs(loop, process=[0.0, np.sqrt(W) / M]))

    d, k = D + KD, K + KP
    np.testing.assert_allclose(P, np.diag([W / (2 * d * k), W / (2 * d * M)]), atol=1e-14)
    assert R[0, 0] == pytest.approx(KP**2 * P[0, 0] + KD**2 * P[1, 1], rel=1e-12)


def test_a_torque_that_follows_white_noise_at_once_has_no_variance():
    loop = hand_made(M, D, K, -KP, -KD)
    P, R = stationary_noise(loop, inputs(loop, V=[1e-4], by_tau=[-KP]))

    assert np.isinf(R[0, 0])
    assert P[0, 0] == pytest.approx(KP**2 * 1e-4 / (2 * (D + KD) * (K + KP)), rel=1e-12)


@pytest.mark.parametrize("T", [0.02, 0.5])
def test_noise_over_a_sample_is_its_integral(T):
    A, G = np.array([[0.0, 1.0], [-900.0, -40.0]]), np.array([[0.0], [1.3]])

    def rate(t, _):
        step = scipy.linalg.expm(A * t) @ G
        return (step @ step.T).ravel()

    direct = scipy.integrate.solve_ivp(rate, (0, T), np.zeros(4), rtol=1e-11, atol=1e-16).y[:, -1]
    np.testing.assert_allclose(sampled_covariance(A, G, T).ravel(), direct, rtol=1e-8, atol=1e-14)


def test_noise_over_a_long_sample_of_a_stiff_arm_is_its_stationary_covariance():
    A, G = np.array([[0.0, 1.0], [-1e10, -1e4]]), np.array([[0.0], [1.0]])
    expected = 1 / (2 * 1e4 * 1e10), 1 / (2 * 1e4)

    np.testing.assert_allclose(np.diag(sampled_covariance(A, G, 0.05)), expected, rtol=1e-7)


def test_a_sampled_loop_tends_to_the_continuous_one():
    error = []
    loop = hand_made(M, D, K, -KP, -KD)
    expected = stationary_noise(loop, inputs(loop, process=[0.0, 0.3 / M]))[0]
    for T in (4e-3, 4e-4):
        sampled = hand_made(M, D, K, -KP, -KD, sample_time=T)
        P = stationary_noise(sampled, inputs(sampled, process=[0.0, 0.3 / M]))[0]
        error.append(abs(P[0, 0] / expected[0, 0] - 1))

    assert error[1] < 2e-3
    assert error[0] / error[1] == pytest.approx(10, rel=0.1)  # the hold is of first order


@pytest.mark.parametrize("delay", [0.0, 0.01, 0.025])
def test_a_sampled_loop_is_as_noisy_as_its_long_run(delay):
    T, runs, steps = 0.02, 2000, 400
    loop = hand_made(M, D, K, -KP, -KD, sample_time=T, delay=delay)
    noise = inputs(loop, process=[0.0, 0.3 / M], V=[1e-6, 1e-3], by_tau=[-KP, -KD])
    P, R = stationary_noise(loop, noise)

    # each torque acts `delay` after its sample: the plant in parts, exactly, by its own exponential
    rng = np.random.default_rng(7)
    A, B = np.array([[0.0, 1.0], [-K / M, -D / M]]), np.array([0.0, 1 / M])
    whole, part = divmod(delay, T)

    def held(time):
        pair = np.zeros((3, 3))
        pair[:2, :2], pair[:2, 2] = A * time, B * time
        step = scipy.linalg.expm(pair)
        return step[:2, :2], step[:2, 2]

    (first, old), (second, new) = held(part), held(T - part)
    Phi = second @ first
    Q = sampled_covariance(A, noise.process, T)
    root, size = np.linalg.cholesky(Q), np.sqrt(np.diag(noise.V) / T)
    x, torques = np.zeros((runs, 2)), [np.zeros(runs)] * (int(whole) + 2)
    xs, us = [], []
    for k in range(steps):
        e = rng.normal(size=(runs, 2)) * size
        u = -KP * (x[:, 0] + e[:, 0]) - KD * (x[:, 1] + e[:, 1])
        torques = [u, *torques[:-1]]
        if k > steps // 2:  # ten time constants after the start at rest
            xs, us = [*xs, x], [*us, u]
        x = x @ Phi.T + np.outer(torques[int(whole) + 1], second @ old)
        x += np.outer(torques[int(whole)], new) + rng.normal(size=(runs, 2)) @ root.T
    # 2000 runs of 4 s over a time constant of 0.4 s: some 10,000 independent values, 1.4 % at one
    # standard deviation of a variance
    np.testing.assert_allclose(np.concatenate(xs).var(axis=0), np.diag(P), rtol=0.05)
    assert np.concatenate(us).var() == pytest.approx(R[0, 0], rel=0.05)


def test_an_unstable_loop_is_refused():
    loop = hand_made(M, D, K, 90.0, 0.0)
    with pytest.raises(ComputationError, match="expected a stable loop"):
        stationary_noise(loop, inputs(loop, process=[0.0, 1.0]))


def observed(arm, start, end, observer=None, **loop):
    seen = {"measures": ["encoder", "tachometer", "strain_gauge"]} | loop
    tables = {"gains": {"Gp": [120.0], "Gv": [26.0]}, "loop": seen}
    if observer:
        tables["observer"] = observer
    design = make_design(start, end, **tables)
    controller = design_controller(arm, design, BasisChoice(order=2))
    return close_loop(controller, arm, BasisChoice(order=2))


@pytest.fixture(scope="module")
def noisy():
    return observed(single_link(), [0.0], [0.6], STATED)


def test_a_kalman_filter_is_as_wrong_as_its_riccati_equation_says(noisy):
    # on its own plant the covariance of the estimate's error is P of the filter
    linear = linearise_loop(noisy, noisy.controller.reference.final, 0.0)
    noise = observer_noise(noisy, linear)
    n = 2 * noisy.truth.n
    A = linear.A + linear.B @ linear.K
    G = np.zeros((len(A), noise.process.shape[1] + len(noise.V)))
    G[:n, : noise.process.shape[1]] = noise.process
    G[n:, noise.process.shape[1] :] = noise.by_z @ np.linalg.cholesky(noise.V)
    P = scipy.linalg.solve_continuous_lyapunov(A, -G @ G.T)
    error = np.hstack([np.eye(n), -np.eye(n)])
    expected = noisy.controller.observer.covariance

    size = np.sqrt(np.diag(expected))
    np.testing.assert_allclose(
        error @ P @ error.T / np.outer(size, size), expected / np.outer(size, size), atol=1e-6
    )


def test_an_evaluation_says_how_noisy_the_loop_is(noisy):
    e = evaluate(noisy)
    linear = linearise_loop(noisy, noisy.controller.reference.final, 0.0)
    direct = noise_levels(noisy, linear)

    assert e.noise.tip_rms == pytest.approx(direct.tip_rms, rel=1e-9)
    assert to_json(e)["noise"] == {
        "tip_rms": e.noise.tip_rms,
        "torque_rms": e.noise.torque_rms.tolist(),
        "rounded": False,
    }
    assert "At rest the stated noise moves its tip by" in explain(e)


def test_twice_the_noise_is_twice_as_much(noisy):
    double = {"noise": {key: 2 * density for key, density in STATED["noise"].items()}}
    one = noise_levels(noisy, linearise_loop(noisy, noisy.controller.reference.final, 0.0))
    loop = observed(single_link(), [0.0], [0.6], double)
    two = noise_levels(loop, linearise_loop(loop, loop.controller.reference.final, 0.0))

    assert two.tip_rms == pytest.approx(2 * one.tip_rms, rel=1e-5)
    np.testing.assert_allclose(two.torque_rms, 2 * one.torque_rms, rtol=1e-5)


DEFAULTS = {"encoder": 1e-4, "tachometer": 1e-2, "strain_gauge": 1e-3, "torque": 0.1, "tip": 0.1}


@pytest.mark.parametrize("sample_time", [0.0, 1e-3])
def test_levels_of_single_densities_add_up_to_those_of_all(sample_time):
    # the filter is the same, as defaults are what is stated; other densities do not disturb
    more = {"sample_time": sample_time} if sample_time else {}

    def squares(noise):
        loop = observed(single_link(), [0.0], [0.6], {"noise": noise}, **more)
        found = noise_levels(loop, linearise_loop(loop, loop.controller.reference.final, 0.0))
        return np.square([found.tip_rms, *found.torque_rms])

    single = [squares({key: density}) for key, density in DEFAULTS.items()]
    np.testing.assert_allclose(np.sum(single, axis=0), squares(DEFAULTS), rtol=1e-6)


def test_a_density_of_the_arm_beside_instruments_leaves_the_other_at_zero():
    arm, loops = single_link(), []
    own = {
        "instruments": [
            {"kind": "encoder", "noise": 1e-4},
            {"kind": "gauge", "xi": 0.1, "noise": 1e-3},
        ]
    }
    for noise in ({"torque": 0.1}, {"torque": 0.1, "tip": 0.0}):
        design = make_design([0.0], [0.6], observer={"noise": noise}, **own)
        controller = design_controller(arm, design, BasisChoice(order=1))
        loops.append(close_loop(controller, arm, BasisChoice(order=1)))
    loop, still = (observer_noise(one, linearise_loop(one, [0.6], 0.0)) for one in loops)

    np.testing.assert_array_equal(loop.process, still.process)


@pytest.mark.parametrize("observer", [None, {"start_error": [0.01]}, {"noise": {}}])
def test_noise_that_no_file_states_is_none(observer):
    loop = observed(single_link(), [0.0], [0.6], observer)
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)

    assert noise_levels(loop, linear) is None


def test_two_joints_under_gravity_have_a_level_each():
    arm = with_options(two_link((0.0, -9.81, 0.0), EI=40.0), foreshortening=None, damping=0.03)
    loop = observed(arm, [-1.2, 0.3], [-0.5, 0.9], STATED)
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
    found = noise_levels(loop, linear)

    assert found.torque_rms.shape == (2,)
    assert found.tip_rms > 0


def rms_of(readings, noise):
    """Root mean squares of tip and torque of an arm whose observer is sampled at 1 kHz."""
    gauges = {"strain_gauge": 1e-3} if "strain_gauge" in readings else {}
    stated = {"noise": {"torque": [0.2], "tip": 0.3} | gauges | noise}
    loop = observed(single_link(), [0.0], [0.6], stated, sample_time=1e-3, measures=readings)
    found = noise_levels(loop, linearise_loop(loop, loop.controller.reference.final, 0.0))
    return [found.tip_rms, *found.torque_rms]


def test_two_readings_of_one_position_are_as_noisy_as_their_best_mean():
    # 1/R = 1/R1 + 1/R2, of the filter and of the noise that it lets through
    first, second = 2e-4, 5e-4
    both = rms_of(
        ["encoder", "joint_encoder", "strain_gauge"],
        {"encoder": [first], "joint_encoder": [second]},
    )
    mean = rms_of(["encoder", "strain_gauge"], {"encoder": [1 / np.hypot(1 / first, 1 / second)]})

    np.testing.assert_allclose(both, mean, rtol=1e-7)


def test_a_reading_with_hardly_any_gain_adds_no_noise():
    noise = {"encoder": [1e-8], "tachometer": [10.0]}
    one = rms_of(["encoder"], {"encoder": [1e-8]})

    np.testing.assert_allclose(rms_of(["encoder", "tachometer"], noise), one, rtol=1e-6)
