"""Runs with friction beside closed forms and the same motion integrated by SciPy."""

import itertools

import numpy as np
import pytest
import scipy.integrate

from flexctl.errors import InputError
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from flexctl.simulation.step_size import fastest_friction

MASS = 2.0
TOLERANCE = Tolerance.of(1e-8)


@pytest.fixture(scope="module")
def slider(make):
    """slider(friction, ...): a mass that slides along z, under a joint PD unless told."""

    def build(friction, end=0.1, kind="cycloid", gravity=(0.0, 0.0, 0.0), **tables):
        link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": friction}
        method = tables.pop("method", "joint-pd")
        design = make["design"]([0.0], [end], method, kind=kind, **tables)
        return make["close"](make["arm"]([link], gravity), design)

    return build


@pytest.fixture(scope="module")
def stiff_slider(slider):
    """A PD loop whose joint breaks away, moves and sticks."""
    friction = {"viscous": 0.5, "coulomb": 0.6, "static": 1.0, "stribeck_velocity": 0.01}
    gains = {"Gp": [50.0], "Gv": [10.0]}
    return slider(friction, gains=gains, loop={"duration": 1.5}), friction


def witness(friction, loop, times):
    """Positions and rates (2, N) by SciPy's Radau on the formula written out."""
    c, s, v_S = friction["coulomb"], friction["static"], friction["stribeck_velocity"]
    sample = loop.controller.reference.sample

    def rate(t, x):
        r, r_rate, _ = (part[0, 0] for part in sample(np.array([t])))
        level = c + (s - c) * np.exp(-((x[1] / v_S) ** 2))
        force = friction["viscous"] * x[1] + level * np.tanh(x[1] / 1e-3)
        return [x[1], (-50 * (x[0] - r) - 10 * (x[1] - r_rate) - force) / MASS]

    ends = [0.0, 0.5, times[-1]]  # of the motion, where its acceleration may jump
    x, found = np.zeros(2), []
    for a, b in itertools.pairwise(ends):
        own = times[(times > a) & (times <= b)] if a else times[times <= b]
        done = scipy.integrate.solve_ivp(
            rate, (a, b), x, "Radau", t_eval=[*own[own < b], b], rtol=1e-8, atol=1e-11
        )
        found.append(done.y)
        x = done.y[:, -1]
    return np.hstack(found)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["auto", "bdf"])
def test_a_run_agrees_with_scipy(stiff_slider, integrator):
    loop, friction = stiff_slider
    times = np.linspace(0.0, 1.5, 16)
    run = simulate(loop, times=times, integrator=integrator, tolerance=TOLERANCE)
    expected = witness(friction, loop, times)
    # both have errors of 1e-8 of the motion a step, some hundred steps
    np.testing.assert_allclose(run.q[0], expected[0], atol=1e-7)
    np.testing.assert_allclose(run.v[0], expected[1], atol=1e-6)
    assert run.energy.imbalance < 1e-5
    assert run.energy.dissipated[-1] > 0


def test_a_run_without_compiler_is_the_same(stiff_slider, monkeypatch):
    loop, _ = stiff_slider
    compiled = simulate(loop, times=np.array([0.3, 1.5]), tolerance=TOLERANCE)
    monkeypatch.setenv("FLEXCTL_CC", "none")
    run = simulate(loop, times=np.array([0.3, 1.5]), tolerance=TOLERANCE)
    assert "Radau" in run.integrator
    np.testing.assert_allclose(run.q, compiled.q, atol=1e-7)


def test_midpoint_tends_to_the_same(stiff_slider):
    loop, _ = stiff_slider
    exact = simulate(loop, times=np.array([0.5, 1.5]), tolerance=TOLERANCE)
    steps = np.array([1e-3, 5e-4])
    off = [
        np.abs(
            simulate(loop, times=np.array([0.5, 1.5]), integrator="midpoint", step=h).q - exact.q
        ).max()
        for h in steps
    ]
    assert off[1] < 0.35 * off[0] < 1e-5  # of order 2


@pytest.mark.parametrize("integrator", ["explicit", "adams", "rk4"])
def test_explicit_integrators_are_refused_with_the_rate_of_friction(stiff_slider, integrator):
    loop, friction = stiff_slider
    rate = friction["static"] / 1e-3 / MASS
    assert fastest_friction(loop, np.zeros(1)) == pytest.approx(rate, rel=1e-12)
    step = 1e-5 if integrator == "rk4" else None
    with pytest.raises(InputError, match=r"one of auto, esdirk, midpoint, bdf, as .* 500 1/s"):
        simulate(loop, integrator=integrator, step=step)


def test_viscous_friction_alone_leaves_the_choice_free(slider):
    loop = slider({"viscous": 0.5})
    assert "Dormand" in simulate(loop, times=np.array([0.5])).integrator


def test_a_mass_on_a_belt_sticks_and_slips_as_its_closed_form_says(slider):
    # A spring k pulls the mass at the rate V. It slips with x' = V (1 - cos wt) + w D sin wt, D =
    # (F_s - F_c)/k, until that is zero again, then it sticks for 2 D/V. Until the rate has grown to
    # v_S, in a time of sqrt(2 m v_S/(k V)), the spring pulls by 0.4 % of F_s more than F_s.
    k, V, F_s, F_c = 50.0, 0.1, 1.0, 0.6
    friction = {"coulomb": F_c, "static": F_s, "stribeck_velocity": 1e-6}
    friction |= {"smoothing_velocity": 5e-9}
    loop = slider(
        friction,
        V,
        "spin-up",
        gains={"Gp": [k], "Gv": [1e-6]},
        loop={"duration": 5.5},
        duration=0.2,
    )
    times = np.linspace(0.0, 5.5, 11001)
    run = simulate(loop, times=times, tolerance=TOLERANCE)
    w, D = np.sqrt(k / MASS), (F_s - F_c) / k
    period = (2 * np.pi - 2 * np.arctan(w * D / V)) / w + 2 * D / V
    slips = run.v[0] > V / 100
    begins = times[1:][slips[1:] & ~slips[:-1]]
    assert np.diff(begins)[1:] == pytest.approx(period, rel=3e-3)
    late = times > begins[1]
    swing = np.hypot(k * V / w, F_s - F_c)
    assert run.tau[0, late].max() == pytest.approx(F_c + swing, rel=5e-3)
    assert run.tau[0, late].min() == pytest.approx(F_c - swing, abs=5e-3)
    assert run.v[0, late].max() == pytest.approx(V + np.hypot(V, w * D), rel=3e-3)


def test_a_joint_that_friction_holds_creeps_at_the_rate_that_is_stated(slider):
    # gravity along the axis pulls with 0.5 N; the loop feeds it forward but for a wrong payload
    friction = {"coulomb": 1.0, "smoothing_velocity": 1e-3}
    loop = slider(
        friction,
        0.0,
        "setpoint",
        (0.0, 0.0, -0.25),
        gains={"Gp": [1e-6], "Gv": [1e-6]},
        loop={"duration": 0.5},
    )
    heavier = loop.at({"truth.gravity": [0.0, 0.0, -0.5]})
    run = simulate(heavier, times=np.array([0.5]), start=(np.zeros(1), np.zeros(1)))
    assert run.v[0, 0] == pytest.approx(-1e-3 * np.arctanh(0.5), rel=1e-5)
    said = [line for line in loop.assumptions if "creeps" in line]
    assert said == [
        "friction of joint1 is smoothed: where it should stick it creeps (0.00055 m/s under half "
        "of its static friction, 0.00055 m/s under the weight at the last pose)"
    ]


def test_the_creep_under_the_weight_is_that_of_the_torque_whatever_is_commanded(make):
    link = {"joint": "prismatic", "hub": {"mass": MASS}, "friction": {"coulomb": 1.0}}
    motor = {"command": "current", "torque_constant": 0.02}  # 25 A carry the weight of 0.5 N
    arm = make["arm"]([link | {"motor": motor}], (0.0, 0.0, -0.25))
    loop = make["close"](arm, make["design"]([0.0], [0.0], "joint-pd", kind="setpoint"))

    assert any("0.00055 m/s under the weight" in line for line in loop.assumptions)


def test_free_numbers_of_friction_reach_runs_and_the_design_knows_none(slider):
    loop = slider({"coulomb": 0.6}, gains={"Gp": [50.0], "Gv": [10.0]})
    other = loop.at({"link1.friction.coulomb": 0.1})
    anew = slider({"coulomb": 0.1}, gains={"Gp": [50.0], "Gv": [10.0]})
    times = np.array([0.2, 1.0])
    np.testing.assert_allclose(
        simulate(other, times=times).q, simulate(anew, times=times).q, atol=1e-9
    )
    assert not loop.controller.plant.friction
    assert loop.controller.plant.damping(np.zeros(1)) == 0.0


@pytest.mark.slow_but("motor")
@pytest.mark.parametrize("side", ["motor", "link"])
def test_a_flexible_joint_rubs_on_either_side(make, side):
    # two masses and a spring by hand; friction of the motor in its own units
    gear, I_r, k_s, J = 50.0, 1e-4, 200.0, 0.4
    unit = gear if side == "motor" else 1.0
    own = {"viscous": 0.3 / unit**2, "coulomb": 2.0 / unit, "smoothing_velocity": 0.01 * unit}
    spring = {"rotor_inertia": I_r, "gear": gear, "stiffness": k_s, "damping": 0.5}
    link = {"joint": "revolute", "hub": {"inertia": [0.0, 0.0, J]}, "flexible_joint": spring}
    arm = make["arm"]([link | {"friction": own | {"side": side}}])
    design = make["design"]([0.0], [1.0], "joint-pd", gains={"Gp": [100.0], "Gv": [10.0]})
    loop = make["close"](arm, design)
    sample = loop.controller.reference.sample

    def rate(t, x):
        r, r_rate, _ = (part[0, 0] for part in sample(np.array([t])))
        (theta, alpha), (w, u) = x[:2], x[2:]
        moved = u if side == "motor" else w
        force = 0.3 * moved + 2.0 * np.tanh(moved / 0.01)
        drive = k_s * (alpha - theta) + 0.5 * (u - w)
        tau = -100 * (alpha - r) - 10 * (u - r_rate)
        on_motor, on_link = (force, 0.0) if side == "motor" else (0.0, force)
        return [w, u, (drive - on_link) / J, (tau - drive - on_motor) / (gear**2 * I_r)]

    done = scipy.integrate.solve_ivp(rate, (0, 0.5), np.zeros(4), "Radau", rtol=1e-8, atol=1e-10)
    run = simulate(loop, times=np.array([0.5]), tolerance=TOLERANCE)
    np.testing.assert_allclose(run.q[:, 0], done.y[:2, -1], atol=2e-7)
    np.testing.assert_allclose(run.v[:, 0], done.y[2:, -1], atol=2e-6)


@pytest.mark.parametrize(
    "more",
    [{"sample_time": 0.004, "delay": 0.002}, {"measures": ["encoder"]}],
    ids=["sampled", "observer"],
)
def test_laws_of_all_kinds_run_with_friction(slider, more):
    gains = {"Gp": [50.0 / MASS], "Gv": [10.0 / MASS]}
    friction = {"coulomb": 0.6, "static": 0.8, "stribeck_velocity": 0.01}
    loop = slider(friction, method="decoupling", gains=gains, loop={"duration": 1.5, **more})
    run = simulate(loop, tolerance=TOLERANCE)
    assert run.energy.imbalance < 1e-4
    assert abs(run.v[0, -1]) < 3e-3  # it creeps
    assert abs(run.q[0, -1] - 0.1) < 0.8 / 50  # within F_s/k of its reference
