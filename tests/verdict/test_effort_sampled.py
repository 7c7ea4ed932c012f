"""Effort of a law that is sampled: all torques that it holds count, figured by hand for a hub."""

import numpy as np
import pytest

from flexctl import evaluate
from flexctl.control import design_controller
from flexctl.loop.closed_loop import close_around
from flexctl.simulation import Tolerance, simulate
from flexctl.verdict.performance import judge_effort, run_times
from tests.arms import make_arm, plant_of, rigid_link
from tests.designs import make_design

T, LATE, END, TARGET = 2e-4, 8e-5, 0.25, 0.3
GP, GV, INERTIA = 8.0, 1.1, 1.2 * 0.5**3 / 3 + 0.1
MOTOR = {"command": "voltage", "torque_constant": 0.05, "resistance": 2.0, "back_emf": 0.04}


def loop_of(motor, duration=END):
    link = {"joint": "revolute", "dh": {"a": 0.5}, "length": 0.5, "mass_per_length": 1.2}
    link |= {"joint_inertia": 0.1} | ({"motor": motor | {"gear": 20.0}} if motor else {})
    arm = make_arm([link])
    noisy = [{"kind": "encoder", "noise": 2e-5}, {"kind": "tachometer", "noise": 5e-3}]
    design = make_design(
        [0.0],
        [TARGET],
        "joint-pd",
        reference={"kind": "setpoint", "from": [0.0], "to": [TARGET]},
        gains={"Gp": GP, "Gv": GV},
        instruments=noisy,
        loop={"sample_time": T, "delay": LATE, "duration": duration, "seed": 7},
    )
    return close_around(design_controller(arm, design), plant_of(arm, "modes", 1))


def held(motor):
    """Commands (N,), how long each acts (N,), and the work of each, from the hub's solution."""
    gain, damper = 1.0, 0.0
    if motor:
        gain = 20.0 * motor["torque_constant"] / motor["resistance"]
        damper = 20.0 * gain * motor["back_emf"]
    count = round(END / T)
    w = [np.random.default_rng([7, k]).standard_normal(count) for k in range(2)]
    w = np.array([2e-5, 5e-3])[:, None] / np.sqrt(T) * w
    commands, spans, work = [0.0], [], []
    q = v = 0.0

    def move(u, span):
        nonlocal q, v
        t = np.linspace(0, span, 41)
        if damper:
            final, pace = gain * u / damper, damper / INERTIA
            rate = final + (v - final) * np.exp(-pace * t)
            q += final * span + (v - final) * (1 - np.exp(-pace * span)) / pace
        else:
            rate = v + gain * u / INERTIA * t
            q += v * span + gain * u / INERTIA * span**2 / 2
        work.append(np.trapezoid(np.abs((gain * u - damper * rate) * rate), t))
        spans.append(span)
        v = rate[-1]

    for k in range(count):
        u = -GP * (q + w[0, k] - TARGET) - GV * (v + w[1, k])
        move(commands[-1], LATE)
        commands.append(u)
        move(u, T - LATE)
    of = np.repeat(commands, 2)[1:-1]  # the one before, for LATE, then the new one
    return of, np.array(spans), np.array(work)


@pytest.mark.slow
@pytest.mark.parametrize("motor", [None, MOTOR], ids=["torque", "voltage"])
@pytest.mark.usefixtures("no_compiler")
def test_every_torque_counts_that_is_held(motor):
    loop = loop_of(motor)
    run = simulate(loop, times=run_times(loop), tolerance=Tolerance.of(1e-8))
    found, (u, spans, work) = judge_effort(run, loop.truth), held(motor)

    # the noise makes neighbours differ: of 1001 instants the rms is off by about a per cent
    assert found.peak[0] == pytest.approx(np.abs(u).max(), rel=1e-6)
    assert found.rms[0] == pytest.approx(np.sqrt(u**2 @ spans / END), rel=1e-6)
    # it errs where the power changes its sign within a sample
    assert found.energy == pytest.approx(work.sum(), rel=1e-4)


@pytest.mark.usefixtures("no_compiler")
def test_a_run_is_looked_at_where_torques_jump():
    t = run_times(loop_of(None))
    jumps = LATE + T * np.arange(round(END / T))

    assert (np.diff(t) > 1e-10).all()
    assert (t[0], t[-1]) == (0.0, END)
    assert np.abs(t[:, None] - jumps).min(axis=0).max() < 1e-11


@pytest.mark.slow
@pytest.mark.usefixtures("no_compiler")
def test_all_torques_of_a_long_run_are_looked_at():
    t = run_times(loop_of(None, duration=20.1))

    assert len(t) > 20.1 / T


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("step", [0.0, 0.7, 1.0, 2.4, 50.0])
@pytest.mark.usefixtures("no_compiler")
def test_torques_in_steps_are_at_their_limit_at_what_it_is_rounded_to(step, sign):
    # a step of 1 rad asks for 20 N m, of which the actuator holds what 3.6 is rounded to, at most
    # 3.6; halves are rounded up
    reference = {"kind": "setpoint", "from": [0.0], "to": [sign * 1.0]}
    timing = {"sample_time": 2e-3, "duration": 0.1, "torque_resolution": step}
    gains = {"Gp": 20.0, "Gv": 3.0}
    design = make_design([0.0], [sign], "joint-pd", reference=reference, gains=gains, loop=timing)
    arm = rigid_link(torque=3.6)
    loop = close_around(design_controller(arm, design), plant_of(arm, "modes", 1))
    run = simulate(loop, times=run_times(loop))

    largest = {0.0: 3.6, 0.7: 3.5, 1.0: 3.6, 2.4: 3.6 if sign > 0 else 2.4, 50.0: 0.0}[step]
    assert np.abs(run.tau).max() == pytest.approx(largest, rel=1e-12)
    assert run.saturated[0] == pytest.approx(0.1 if largest else 0.0, abs=2e-3)


@pytest.mark.parametrize("step", [0.0, 1.0, 50.0])
def test_a_joint_that_steps_leave_without_torque_is_named(step):
    timing = {"sample_time": 2e-3, "duration": 0.1, "torque_resolution": step}
    gains = {"Gp": 20.0, "Gv": 3.0}
    design = make_design([0.0], [1.0], "joint-pd", gains=gains, loop=timing)

    arm = rigid_link(torque=3.6)

    judged = evaluate(close_around(design_controller(arm, design), plant_of(arm, "modes", 1)))

    said = "receives no torque: none reaches half a step of 50 N m"
    assert any(said in note for note in judged.assumptions) == (step == 50.0)
