"""Sampled laws: zero-order hold and delay, against exact discrete motion and direct stepping."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.loop.linear import linearise_loop
from flexctl.loop.linear_loop import sampled_loop
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate

FINE = Tolerance(relative=1e-9, position=1e-14, rate=1e-12)
T = 0.01
# no delay, a part of a period, the period itself, between, two and a half, three whole ones
DELAYS = [0.0, 0.004, 0.01, 0.013, 0.025, 0.03]
IDS = [f"{delay / T:g} periods" for delay in DELAYS]


def sampled_run(loop, stepper, times):
    """States (2n + n_z, N) by stepping from event to event, whole multiples of T/10."""
    witness, period = stepper(loop), loop.controller.sample_time
    tick = period / 10
    late = round(loop.controller.delay / tick)
    x, pending, found = witness.start(), {}, []
    tau = loop.truth.inverse_dynamics(x[: witness.n], 0 * x[: witness.n], 0 * x[: witness.n])
    tau = tau[: witness.m]
    for k in range(round(times[-1] / tick) + 1):
        if k in [round(t / tick) for t in times]:
            found.append(x.copy())
        if k % 10 == 0:
            after = k * tick > loop.controller.reference.duration - 1e-9
            u, z_rate = witness.torque(k * tick, witness.share(k * tick, after), x)
            x[2 * witness.n :] += period * z_rate
            pending[k + late] = u
        tau = pending.pop(k, tau)
        x = witness.move(
            lambda _t, y, tau=tau: witness.rates(y, tau, np.zeros(witness.n_z)), 0, tick, x, 1e-9
        )
    return np.array(found).T


def single_loop(make, delay, integral=False, step=1e-4, **more):
    """Sampled joint PD on the flexible link: small motion, so linear to 1e-8 of itself."""
    gains = {"Gp": [20.0], "Gv": [6.0]} | ({"Gi": [15.0]} if integral else {})
    sampling = {"sample_time": T, "delay": delay, "duration": 0.6}
    design = make["design"](
        [0.0], [step], "joint-pd", kind="setpoint", gains=gains, loop=sampling, **more
    )
    return make["close"](make["single"](), design, order=2)


def motion_by_map(loop, steps):
    """Joint, elastic coordinates and rates at the samples (2n, steps + 1), by `sampled_loop`."""
    end = loop.controller.reference.final
    linear = linearise_loop(loop, end, 0.0)
    step = sampled_loop(linear, T, loop.controller.delay)
    x = np.zeros(len(step))
    x[:1] = -end  # at rest where the reference is not; past torques are zero, as the arm rests
    states = [x]
    for _ in range(steps):
        states.append(step @ states[-1])
    states = np.array(states).T[: 2 * loop.truth.n]
    states[:1] += end[:, None]
    return states


@pytest.mark.slow_but("PD-0.4 periods", "PID-2.5 periods", "PD-1 periods")
@pytest.mark.parametrize("delay", DELAYS, ids=IDS)
@pytest.mark.parametrize("integral", [False, True], ids=["PD", "PID"])
def test_a_sampled_run_is_the_exact_discrete_motion(make, delay, integral):
    loop = single_loop(make, delay, integral)
    times = T * np.arange(51)
    run = simulate(loop, times=times, tolerance=FINE)
    exact = motion_by_map(loop, 50)
    n = loop.truth.n
    np.testing.assert_allclose(run.q, exact[:n], atol=1e-6 * np.abs(exact[:n]).max())
    np.testing.assert_allclose(run.v, exact[n:], atol=1e-6 * np.abs(exact[n:]).max())


@pytest.mark.parametrize("delay", [0.0, 0.008, 0.04], ids=["none", "part", "two periods"])
@pytest.mark.slow_but("part")
def test_a_nonlinear_sampled_run_agrees_with_stepping(two_link_loop, stepper, delay):
    sampling = {"sample_time": 0.02, "delay": delay, "duration": 0.4}
    gains = {"Gp": [60.0], "Gv": [15.0], "Gi": [40.0]}
    loop = two_link_loop(gains=gains, loop=sampling, duration=0.3)
    times = np.array([0.0, 0.1, 0.3, 0.4])
    run = simulate(loop, times=times, tolerance=Tolerance.of(1e-9))
    exact = sampled_run(loop, stepper, times)
    n = loop.truth.n
    np.testing.assert_allclose(run.q, exact[:n], atol=1e-6)
    np.testing.assert_allclose(run.v, exact[n : 2 * n], atol=1e-5)


def test_compiled_and_interpreted_sampled_runs_agree(make, monkeypatch):
    loop, times = single_loop(make, 0.013, integral=True), np.linspace(0, 0.3, 61)
    compiled = simulate(loop, times=times, tolerance=FINE)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    other = simulate(
        loop, times=times, tolerance=Tolerance(relative=1e-8, position=1e-12, rate=1e-10)
    )
    np.testing.assert_allclose(compiled.q, other.q, atol=1e-9)
    np.testing.assert_allclose(compiled.tau, other.tau, atol=1e-7)


def test_torques_are_held_between_the_samples(make):
    loop = single_loop(make, 0.004)
    times = np.linspace(0, 0.2, 4001) + 2e-5  # so that no event falls on one
    tau = simulate(loop, times=times, tolerance=FINE).tau[0]
    changes = times[1:][np.abs(np.diff(tau)) > 1e-12 * np.abs(tau).max()]
    np.testing.assert_allclose((changes - 0.004) % T, 2e-5, atol=1e-9)
    assert not tau[times < 0.004].any()


def test_a_fast_sampled_law_is_nearly_the_continuous_one(make):
    runs = []
    for period in (0.0, 1e-3, 5e-4):
        design = make["design"](
            [0.0],
            [0.5],
            "joint-pd",
            gains={"Gp": [20.0], "Gv": [6.0]},
            loop={"sample_time": period},
        )
        loop = make["close"](make["single"](), design, order=2)
        runs.append(simulate(loop, times=np.linspace(0, 1, 21)).q)
    coarse, fine = (np.abs(run - runs[0]).max() for run in runs[1:])
    assert fine < 2e-3
    assert coarse / fine == pytest.approx(2, rel=0.1)  # the hold delays by half a period


@pytest.mark.parametrize("delay", [0.0, 0.007, 0.02, 0.033, 0.04, 0.051])
@pytest.mark.parametrize("integral", [False, True])
def test_the_one_sample_map_is_brute_force_stepping(make, delay, integral):
    # thousandths of a second: every event is at a whole number of them
    rng, period, tick = np.random.default_rng(7), 0.02, 1e-3
    C = rng.normal(size=(3, 3))
    by_z = rng.normal(size=(2, 2)) if integral else None
    loop = make["linear"](
        np.eye(3) + 0.1 * C @ C.T,
        0.1 * np.eye(3),
        5 * C @ C.T,
        rng.normal(size=(2, 3)),
        rng.normal(size=(2, 3)),
        by_z,
    )
    A, B = loop.plant.A_state, loop.plant.B_state
    pair = scipy.linalg.expm(np.block([[A, B], [np.zeros((2, 8))]]) * tick)
    late, n_z = round(delay / tick), 2 if integral else 0
    step = sampled_loop(loop, period, delay)
    x, z, u = rng.normal(size=6), rng.normal(size=n_z), np.zeros(2)
    state = np.concatenate([x, z, np.zeros(len(step) - 6 - n_z)])
    pending = {}
    for k in range(round(12 * period / tick)):
        if k % 20 == 0:
            np.testing.assert_allclose(state[:6], x, rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(state[6 : 6 + n_z], z, rtol=1e-8, atol=1e-9)
            pending[k + late] = loop.feedback @ x + (by_z @ z if integral else 0)
            z = z + period * x[:n_z]
            state = step @ state
        u = pending.pop(k, u)
        x = (pair @ np.concatenate([x, u]))[:6]
    assert len(step) == 6 + n_z + 2 * int(np.ceil(round(delay / period, 9)))


def test_poles_of_a_sampled_loop_decay_as_its_runs_do(make):
    loop = single_loop(make, 0.0)
    poles = linearise_loop(loop, loop.controller.reference.final, 0.0).poles
    step = sampled_loop(linearise_loop(loop, loop.controller.reference.final, 0.0), T)
    np.testing.assert_allclose(
        np.sort(np.abs(np.exp(poles * T))), np.sort(np.abs(np.linalg.eigvals(step))), rtol=1e-9
    )


def test_torques_at_the_sampling_instants_are_those_before_however_the_times_are_rounded(make):
    design = make["design"]([0.0], [0.3], "joint-pd", duration=0.5, loop={"sample_time": 0.01})
    loop = make["close"](make["single"](), design, order=1)
    product = np.arange(51) * 0.01
    steps = [np.cumsum(np.full(51, 0.01)) - 0.01, np.arange(0, 0.5001, 0.01), product]

    torques = [simulate(loop, times=np.abs(times), duration=0.5 + 1e-9).tau for times in steps]

    for tau in torques:
        np.testing.assert_allclose(tau, torques[-1], rtol=1e-9, atol=1e-12)
    after = simulate(loop, times=product[:-1] + 1e-6, duration=0.5).tau
    np.testing.assert_allclose(torques[-1][:, 2:], after[:, 1:], rtol=1e-9)
