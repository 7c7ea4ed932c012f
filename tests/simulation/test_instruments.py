"""Runs with instruments: seeded noise, the same in all integrators; rounding; known statistics."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise
from flexctl.loop.linear_loop import sampled_loop
from flexctl.model.record import BasisChoice
from flexctl.simulation.many import simulate_many
from flexctl.simulation.simulation import simulate
from flexctl.verdict.delay_margin import sampled_delay

T = 0.01
NOISY = {"kind": "encoder", "noise": 1e-4}


def closed(make, instruments, arm=None, start=0.0, end=0.0, duration=1.0, **tables):
    tables = {"gains": {"Gp": [20.0], "Gv": [4.0]}, **tables}
    loop = {"sample_time": T, "duration": duration, **tables.pop("loop", {})}
    tables |= {"instruments": instruments, "loop": loop, "kind": "setpoint"}
    design = make["design"]([start], [end], "joint-pd", **tables)
    arm = arm or make["rigid-link"]()
    controller = design_controller(arm, design, BasisChoice(kind="modes", order=2))
    return close_around(controller, controller.plant)


BOTH = [NOISY | {"resolution": 1e-4}, {"kind": "difference", "time_constant": 0.02}]


@pytest.fixture(scope="module")
def loop(make):
    return closed(make, BOTH, make["single"](), end=0.1, loop={"seed": 3, "delay": 0.004})


@pytest.fixture(scope="module")
def run(loop):
    return simulate(loop, times=np.linspace(0, 1, 21))


@pytest.mark.slow_but("rk4", "adams", "midpoint")
@pytest.mark.parametrize("integrator", ["esdirk", "rk4", "midpoint", "bdf", "adams"])
def test_all_integrators_see_the_same_noise(loop, run, integrator):
    step = {"step": 2e-4} if integrator in ("rk4", "midpoint") else {}
    other = simulate(loop, times=run.t, integrator=integrator, **step)
    np.testing.assert_allclose(other.tau, run.tau, atol=2e-5)  # a rounded reading would be 2e-3
    np.testing.assert_allclose(other.q, run.q, atol=1e-5)


def test_without_a_compiler_too(loop, run, monkeypatch):
    monkeypatch.setenv("FLEXCTL_CC", "none")
    other = simulate(loop, times=run.t)
    np.testing.assert_allclose(other.tau, run.tau, atol=1e-9)


def test_several_arms_at_once_see_their_own_noise(loop, run):
    seeds = [loop.at({"loop.seed": seed}) for seed in (3, 4, 5)]
    many = simulate_many(seeds, times=run.t)
    np.testing.assert_allclose(many[0].q, run.q, atol=1e-9)
    for own, one in zip(seeds[1:], many[1:], strict=True):
        np.testing.assert_allclose(one.q, simulate(own, times=run.t).q, atol=1e-9)
        assert np.abs(one.q - run.q).max() > 1e-6


def test_equal_seeds_give_equal_runs_and_longer_ones_go_on(loop, run):
    again = simulate(loop, times=run.t)
    assert (again.q == run.q).all()
    longer = simulate(loop, times=[*run.t, 1.5])
    np.testing.assert_allclose(longer.q[:, :-1], run.q, atol=1e-12)


def test_noise_is_white_of_its_density_and_rounding_uniform(make):
    # the state "encoder before" holds the last reading; the arm moves through many steps of it
    step, N = 1e-3, 2000
    for own, rms in (({"resolution": step}, step / np.sqrt(12)), ({"noise": 1e-4}, 1e-4 / T**0.5)):
        made = [{"kind": "encoder", **own}, {"kind": "difference"}]
        loop = closed(make, made, start=0.0, end=1.0, gains={"Gp": [0.05], "Gv": [0.02]})
        taken = T * np.arange(N)
        times = np.sort(np.concatenate([taken, taken + T / 2]))
        run = simulate(loop, times=times, duration=N * T)
        error = run.z[0, 1::2] - run.q[0, ::2]
        # of N samples of a variance: 1/sqrt(2 N) of a Gaussian's deviation, less of a uniform one's
        assert np.sqrt(np.mean(error**2)) == pytest.approx(rms, rel=5 / np.sqrt(2 * N))
        if "resolution" in own:
            assert np.abs(error).max() <= step / 2 * (1 + 1e-9)
            on_grid = run.z[0, 1::2] / step
            np.testing.assert_allclose(on_grid, np.round(on_grid), atol=1e-9)
        correlation = np.mean(error[1:] * error[:-1]) / rms**2
        assert abs(correlation) < 5 / np.sqrt(N)


def test_torques_are_rounded_to_their_steps(make):
    loop = closed(make, BOTH, end=0.3, loop={"torque_resolution": 0.05})
    run = simulate(loop)
    np.testing.assert_allclose(run.tau / 0.05, np.round(run.tau / 0.05), atol=1e-9)
    finer = loop.at({"loop.torque_resolution": 0.01})
    assert finer.law_key == loop.law_key
    assert len(np.unique(simulate(finer).tau)) > len(np.unique(run.tau))


@pytest.mark.slow_but("difference")
@pytest.mark.parametrize("way", ["difference", "observer"])
def test_the_rms_of_a_long_run_is_that_of_the_lyapunov_equation(make, way):
    # x+ = A x + G w with A of the linear loop, w in the states that hold the noise of a sample
    own = [NOISY | {"delay": T}]
    tables = {"observer": {}} if way == "observer" else {}
    own += [] if tables else [{"kind": "difference", "time_constant": 0.02}]
    seconds = 400.0
    loop = closed(make, own, loop={"seed": 11, "delay": 0.004}, **tables)
    linear = linearise(loop)
    A, n = sampled_loop(linear, T, linear.delay), 2 * loop.truth.n
    rows = loop.controller.noise_rows
    G = A[:, n + rows.start : n + rows.stop] * 1e-4 / np.sqrt(T)
    P = scipy.linalg.solve_discrete_lyapunov(A, G @ G.T)
    run = simulate(loop, times=np.arange(0, seconds, T), duration=seconds)
    q = run.q[0, 500:]
    # sampling error of a mean square: 2/N sum of squared correlations
    rho, power = [1.0], P
    for _ in range(1000):
        power = A @ power
        rho.append(power[0, 0] / P[0, 0])
    error = np.sqrt(2 / len(q) * (2 * np.sum(np.square(rho)) - 1))
    assert error < 0.1
    assert np.mean(q**2) / P[0, 0] == pytest.approx(1, abs=4 * error)


@pytest.mark.slow_but("1.01")
@pytest.mark.parametrize("share", [0.99, 1.01])
def test_growth_changes_sign_within_a_per_cent_of_the_delay_margin(make, share):
    own = [{"kind": "encoder", "delay": T}, {"kind": "difference", "time_constant": 0.02}]
    linear = linearise(closed(make, own))
    margin = sampled_delay(linear, [0])
    late = closed(make, own, loop={"delay": share * margin}, duration=60.0)
    times = np.linspace(0, 60, 6001)
    start = (np.array([1e-3]), np.zeros(1))
    run = simulate(late, times=times, start=start, duration=60.0)
    thirds = [np.abs(run.q[0, (times > a) & (times <= b)]).max() for a, b in ((10, 20), (50, 60))]
    assert (thirds[1] > thirds[0]) == (share > 1)
    rate = np.log(thirds[1] / thirds[0]) / 40
    assert rate == pytest.approx(linearise(late).poles.real.max(), abs=2e-3)


def test_a_start_beside_rest_has_readings_that_were_there(make):
    # the instruments have read the arm at rest where it starts, so that nothing jumps
    loop = closed(
        make, [{"kind": "encoder", "delay": 3 * T}, {"kind": "difference"}], start=0.4, end=0.4
    )
    run = simulate(loop, times=[0.0, 0.5])
    np.testing.assert_allclose(run.q, 0.4, atol=1e-12)


def test_a_joint_that_sticks_sees_the_same_noise(make):
    # the events of friction are found by SciPy, between the samples of the law
    friction = {"model": "events", "coulomb": 0.2, "static": 0.25, "stribeck_velocity": 0.01}
    link = make["rigid-link"]().table()["link"][0] | {"friction": friction}
    own = [NOISY | {"resolution": 1e-4}, {"kind": "difference", "time_constant": 0.02}]
    loop = closed(make, own, make["arm"]([link]), end=0.3)
    runs = [simulate(one, times=[0.1, 0.5]) for one in (loop, loop, loop.at({"loop.seed": 1}))]
    assert (runs[0].q == runs[1].q).all()
    assert (runs[0].q != runs[2].q).any()
    assert "friction" in runs[0].integrator
