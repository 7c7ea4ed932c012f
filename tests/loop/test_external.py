"""Controllers from outside in a closed loop, against matrices and loops put together in NumPy."""

import casadi as ca
import control
import numpy as np
import pytest
import scipy.linalg

from flexctl.control import design_controller
from flexctl.control.wrapped import wrap_controller
from flexctl.errors import ComputationError, InputError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linear_model
from flexctl.plant.plant import assemble_plant
from flexctl.simulation.integrators import Tolerance
from flexctl.simulation.simulation import simulate
from tests.arms import rigid_link, single_link, sliding_arm, two_link
from tests.designs import make_design
from tests.loops import Stepper

EARTH = (0.0, -9.81, 0.0)


def elastic_joint(gravity):
    arm = load_model("romano-flexible-joint-link")
    return apply_settings(arm, [f"gravity={list(gravity)}", "payload.mass=0.05", "link1.EI=*10"])


@pytest.fixture(scope="module")
def arms():
    """Arms by name: flexible and rigid, sliding, with a flexible joint, under gravity or not."""
    return {
        "one joint, damped": lambda: single_link(damping=0.01),
        "one joint, undamped": lambda: single_link(damping=0.0),
        "two links under gravity": lambda: two_link(EARTH, EI=40.0),
        "sliding": lambda: sliding_arm((0.0, 0.0, -9.81)),
        "flexible joint": lambda: elastic_joint((0.0, 0.0, 0.0)),
        "flexible joint under gravity": lambda: elastic_joint(EARTH),
    }


FINAL = {"two links under gravity": [-1.2, 0.5], "sliding": [0.4, 0.6]}
KINDS = [
    *FINAL,
    "one joint, damped",
    "one joint, undamped",
    "flexible joint",
    "flexible joint under gravity",
]


def positions(plant):
    """Names of the outputs of `LinearPlant`, rotors after them, as a law measures them."""
    lines = [line.replace(".", "_") for line in plant.lines]
    return [*plant.joints, "tip_x", "tip_y", "tip_z", *lines, *plant.rotors]


def output_matrix(plant, q0, names):
    """C (k, 2n) of the named signals about q0: exact derivatives of the plant's own functions."""
    n, m = plant.n, plant.m
    rotors = np.eye(n)[m : plant.rigid]
    rows = np.vstack([np.eye(m, n), plant.tip_jacobian(q0), plant.deflections_jacobian(q0), rotors])
    C, known = np.zeros((len(names), 2 * n)), positions(plant)
    for k, name in enumerate(names):
        rate = name.endswith("_rate")
        C[k, n * rate :][:n] = rows[known.index(name.removesuffix("_rate"))]
    return C


def random_law(rng, plant, n_states):
    """A, B, C, D of a stable law with moderate gains, and what it measures."""
    known = positions(plant)
    chosen = list(rng.choice([*known, *(f"{name}_rate" for name in known)], 3, replace=False))
    names = [*plant.joints, *(f"{joint}_rate" for joint in plant.joints), *chosen]
    names = list(dict.fromkeys(names))
    m, p = plant.m, len(names)
    A = rng.normal(size=(n_states, n_states)) - 4 * np.eye(n_states)
    B, C = rng.normal(size=(n_states, p)), rng.normal(size=(m, n_states))
    D = 0.1 * rng.normal(size=(m, p))
    D[:, :m] += 30 * np.eye(m)
    D[:, m : 2 * m] += 8 * np.eye(m)
    return names, A, B, C, D


def assert_same_set(found, expected, rtol=1e-6):
    """Assert that two sets of poles are one, each to `rtol` of the size of the largest."""
    left = list(expected)
    for value in found:
        k = int(np.argmin(np.abs(np.array(left) - value)))
        assert abs(left.pop(k) - value) <= rtol * max(1.0, np.abs(expected).max())
    assert not left


def wrapped_loop(arm, plant, final, law, **options):
    names, A, B, C, D = law
    reference = {"kind": "setpoint", "from": [0.9 * x for x in final], "to": final}
    dt = options.pop("dt", 0)
    system = control.ss(A, B, C, D, dt)
    controller = wrap_controller(system, plant, reference, measures=names, **options)
    return close_around(controller, assemble_plant(arm, BasisChoice(order=2), interpreted=True))


@pytest.mark.slow_but("one joint, damped-1", "sliding-2", "sliding-1")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_poles_are_those_of_the_closed_loop_matrix(arms, kind, seed):
    arm = arms[kind]()
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    final = FINAL.get(kind, [0.6])
    law = random_law(np.random.default_rng(seed), plant, n_states=1 + seed)
    loop = wrapped_loop(arm, plant, final, law, feedforward="gravity" if seed % 2 else None)

    found = linearise_loop(loop, np.array(final), 0.0)

    names, A, B, C, D = law
    own = linear_model(loop.truth, found.rest.q, found.rest.tau)
    Y = output_matrix(loop.truth, found.rest.q, names)
    closed = np.block([[own.A_state - own.B_state @ D @ Y, own.B_state @ C], [-B @ Y, A]])
    assert_same_set(found.poles, np.linalg.eigvals(closed))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["one joint, undamped", "flexible joint", "sliding"])
def test_multipliers_of_a_sampled_law_are_those_of_the_one_sample_matrix(arms, kind, seed):
    arm, T = arms[kind](), 0.004
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    final = FINAL.get(kind, [0.6])
    names, A, B, C, D = random_law(np.random.default_rng(seed), plant, n_states=2)
    A = scipy.linalg.expm(A * T)
    loop = wrapped_loop(arm, plant, final, (names, A, B, C, D), dt=T)

    found = linearise_loop(loop, np.array(final), 0.0)

    own = linear_model(loop.truth, found.rest.q, found.rest.tau)
    n, m = own.B_state.shape
    pair = scipy.linalg.expm(np.block([[own.A_state * T, own.B_state * T], [np.zeros((m, n + m))]]))
    Phi, G = pair[:n, :n], pair[:n, n:]
    Y = output_matrix(loop.truth, found.rest.q, names)
    whole = np.block([[Phi - G @ D @ Y, G @ C], [-B @ Y, A]])
    assert_same_set(np.exp(found.poles * T), np.linalg.eigvals(whole))


@pytest.mark.parametrize("kind", ["two links under gravity", "flexible joint under gravity"])
def test_a_loop_rests_where_its_forces_and_its_states_do(arms, kind):
    arm = arms[kind]()
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    final = np.array(FINAL.get(kind, [0.6]))
    m = plant.m
    names = [*plant.joints, *(f"{joint}_rate" for joint in plant.joints)]
    integral = (np.zeros((m, m)), np.eye(m, 2 * m), 40 * np.eye(m), np.eye(m, 2 * m) * 200)
    law = (names, *integral[:3], np.hstack([200 * np.eye(m), 20 * np.eye(m)]))
    loop = wrapped_loop(arm, plant, list(final), law)

    rest = find_loop_equilibrium(loop, final, 0.0)

    truth = loop.truth
    force = truth.gravity(rest.q) + truth.elastic_force(rest.q)
    np.testing.assert_allclose(rest.q[:m], final, atol=1e-9)  # integral action: no offset
    np.testing.assert_allclose(force, truth.B @ (40 * rest.z), atol=1e-7 * np.abs(force).max())


def double_integrator(A, B, C, D, T, steps, reference, limit=np.inf, inertia=0.5):
    """Joint and law's states (.., steps + 1) of inertia q'' = tau under a sampled law, exactly."""
    x, z, found = np.zeros(2), np.zeros(len(A)), []
    for k in range(steps + 1):
        found.append([*x, *z])
        q_d, v_d = reference(k * T)
        e = np.array([q_d - x[0], v_d - x[1]])[: B.shape[1]]
        tau = float(np.clip(C @ z + D @ e, -limit, limit)[0])
        z = A @ z + B @ e
        x = np.array([x[0] + T * x[1] + T**2 / 2 * tau / inertia, x[1] + T * tau / inertia])
    return np.array(found).T


def cycloid(t, end=0.7, duration=0.5):
    s = np.clip(t / duration, 0, 1)
    rate = end / duration * (1 - np.cos(2 * np.pi * s)) * (t <= duration)
    return end * (s - np.sin(2 * np.pi * s) / (2 * np.pi)), rate


SAMPLED = {
    "states and feedthrough": ([[0.9, 0.1], [0.0, 0.8]], [[0.2, 0], [1, 0.1]], [[3, 2]], [[60, 8]]),
    "integral action": ([[1.0]], [[0.01, 0.0]], [[40.0]], [[60.0, 8.0]]),
    "no states": (np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((1, 0)), [[60.0, 8.0]]),
    "one sample late": ([[0.0, 0], [0, 0]], np.eye(2), [[60.0, 8.0]], [[0.0, 0.0]]),
}


@pytest.mark.slow_but("no states-None-compiled", "no states-3.0-compiled")
@pytest.mark.parametrize("compiler", ["compiled", "none"])
@pytest.mark.parametrize("torque", [None, 3.0])
@pytest.mark.parametrize("law", SAMPLED)
def test_a_sampled_law_runs_as_a_plain_loop_does(monkeypatch, law, torque, compiler):
    if compiler == "none":
        monkeypatch.setenv("FLEXCTL_CC", "none")
    T, steps = 0.005, 160
    arm = rigid_link(inertia=0.5, torque=torque)
    A, B, C, D = (np.atleast_2d(np.asarray(M, float)) for M in SAMPLED[law])
    reference = {"kind": "cycloid", "from": [0.0], "to": [0.7], "duration": 0.5}
    controller = wrap_controller(
        control.ss(A, B, C, D, T), arm, reference, measures=["joint1", "joint1_rate"], duration=0.8
    )
    truth = assemble_plant(arm, BasisChoice())
    times = T / 2 * np.arange(2 * steps + 1)

    run = simulate(close_around(controller, truth), times=times)

    expected = double_integrator(A, B, C, D, T, steps, cycloid, torque or np.inf)
    if torque:
        assert run.saturated[0] > 0.01
    np.testing.assert_allclose(run.q[0, ::2], expected[0], atol=1e-10)
    # between two samples the states are those that the first of them has moved on to
    np.testing.assert_allclose(run.z[:, 1::2], expected[2:, 1:], atol=1e-10)


def test_what_joints_and_tip_give_does_not_depend_on_the_basis_of_the_plant():
    arm = two_link(EARTH, EI=40.0)
    truth = assemble_plant(arm, BasisChoice(order=3), interpreted=True)
    names = ["joint1", "joint2", "joint1_rate", "joint2_rate", "tip_x", "tip_y_rate", "link2_y"]
    gains = np.random.default_rng(0).normal(size=(2, 7)) + 20 * np.eye(2, 7)
    reference = {"kind": "setpoint", "from": [-1.0, 0.3], "to": [-0.8, 0.4]}
    state = np.random.default_rng(1).normal(size=(2, truth.n)) * 0.1
    found = []
    for order in (1, 3):
        plant = assemble_plant(arm, BasisChoice(order=order), interpreted=True)
        controller = wrap_controller(gains, plant, reference, measures=names, feedforward="gravity")
        loop = close_around(controller, truth)
        zero = np.zeros(2)
        tau, _ = loop.law(0.0, np.zeros(0), [-0.8, 0.4], zero, zero, *state, loop.law_numbers)
        found.append(np.array(tau).ravel())

    np.testing.assert_allclose(*found, rtol=1e-13)


def test_a_gauge_reads_the_curvature_of_the_true_line():
    arm = single_link()
    truth = assemble_plant(arm, BasisChoice(kind="elements", order=4), interpreted=True)
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.1]}
    controller = wrap_controller(
        [[1.0]], plant, reference, measures=["link1_y_gauge2"], strain_gauges=[0.1, 0.3]
    )
    loop = close_around(controller, truth)
    q = np.zeros(truth.n)
    x = np.linspace(0, 1, 5)[1:]
    q[1::2], q[2::2] = 0.01 * x**2, 0.02 * x  # a line bent to w = 0.01 x^2

    tau, _ = loop.law(0.0, np.zeros(0), 0.0, 0.0, 0.0, q, np.zeros(truth.n), loop.law_numbers)

    assert float(tau) == pytest.approx(-0.02, rel=1e-9)  # error: nothing desired minus w''


def test_other_gauges_are_read_where_they_stand():
    arm = single_link()
    truth = assemble_plant(arm, BasisChoice(kind="elements", order=4), interpreted=True)
    plant = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.1]}

    def closed(place):
        measures = ["joint1", "joint1_rate", "link1_y_gauge1"]
        gains = [[20.0, 6.0, 1.0]]
        law = wrap_controller(gains, plant, reference, measures=measures, strain_gauges=[place])
        return close_around(law, truth)

    moved = closed(0.1).at({"loop.strain_gauges": [0.8]})
    joints = np.array([0.1])
    linear = [linearise_loop(loop, joints, 0.0).feedback for loop in (moved, closed(0.8))]

    np.testing.assert_allclose(*linear, rtol=1e-12)


def test_a_law_that_depends_on_time_runs_and_is_not_linearised():
    arm = rigid_link()
    symbols = [ca.SX.sym(name, k) for name, k in zip("tzqvay", (1, 0, 1, 1, 1, 1), strict=True)]
    torque = 2 * ca.sin(3 * symbols[0])
    law = ca.Function("law", symbols, [torque, ca.SX(0, 1)])
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.0]}
    controller = wrap_controller(law, arm, reference, measures=["joint1"], duration=1.0)
    loop = close_around(controller, assemble_plant(arm, BasisChoice()))

    run = simulate(loop, times=np.array([0.0, 1.0]))

    # 0.5 q'' = 2 sin 3t
    assert run.q[0, 1] == pytest.approx(4 * (1 / 3 - np.sin(3) / 9), rel=1e-9)
    with pytest.raises(ComputationError, match="depends on the time itself"):
        linearise_loop(loop, np.zeros(1), 0.0)


def test_a_casadi_law_with_states_is_the_same_as_its_matrices():
    arm = single_link()
    A, B, C, D = ([[-5.0, 1.0], [0.0, -3.0]], [[1.0, 0], [0.5, 1]], [[4.0, 2.0]], [[20.0, 6.0]])
    t, z, q_d, v_d, a_d, y = (
        ca.SX.sym(name, k) for name, k in zip("tzqvay", (1, 2, 1, 1, 1, 2), strict=True)
    )
    e = ca.vertcat(q_d, v_d) - y
    outputs = [ca.DM(C) @ z + ca.DM(D) @ e, ca.DM(A) @ z + ca.DM(B) @ e]
    law = ca.Function("law", [t, z, q_d, v_d, a_d, y], outputs)
    reference = {"kind": "cycloid", "from": [0.0], "to": [0.5], "duration": 0.3}
    truth = assemble_plant(arm, BasisChoice(order=2))
    runs = []
    for system in (law, control.ss(A, B, C, D)):
        controller = wrap_controller(system, arm, reference, measures=["joint1", "joint1_rate"])
        runs.append(simulate(close_around(controller, truth)))

    np.testing.assert_allclose(runs[0].q, runs[1].q, atol=1e-9)
    np.testing.assert_allclose(runs[0].z, runs[1].z, atol=1e-9)


def test_a_continuous_law_with_states_runs_as_scipy_runs_it():
    arm = single_link()
    system = control.ss([[-60.0, 5.0], [0.0, -3.0]], [[1.0, 0], [0.5, 1]], [[40.0, 2.0]], [[20, 6]])
    reference = {"kind": "cycloid", "from": [0.0], "to": [0.5], "duration": 0.3}
    controller = wrap_controller(system, arm, reference, measures=["joint1", "joint1_rate"])
    loop = close_around(controller, assemble_plant(arm, BasisChoice(order=2)))
    times = np.array([0.1, 0.3, 0.8])

    run = simulate(loop, times=times)

    found = np.vstack([run.q, run.v, run.z])
    np.testing.assert_allclose(found, Stepper(loop).continuous(times), atol=1e-8)


def test_the_midpoint_rule_refuses_states_that_may_be_fast():
    arm = single_link()
    system = control.ss([[-60.0]], [[1.0]], [[40.0]], [[20.0]])
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.5]}
    controller = wrap_controller(system, arm, reference, measures=["joint1"])
    loop = close_around(controller, assemble_plant(arm, BasisChoice(order=1)))

    with pytest.raises(InputError, match="there is an external law, whose states are as fast"):
        simulate(loop, integrator="midpoint", step=1e-3)


@pytest.mark.parametrize("pole", [6e1, 6e3, 6e6])
def test_esdirk_follows_laws_however_fast_they_are(pole):
    arm = single_link()
    system = control.ss([[-pole]], [[1.0]], [[pole]], [[20.0]])
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.5]}
    controller = wrap_controller(system, arm, reference, measures=["joint1"])
    loop = close_around(controller, assemble_plant(arm, BasisChoice(order=1)))
    times = np.linspace(0, 0.5, 11)
    run = simulate(loop, times=times, integrator="esdirk", tolerance=Tolerance.of(1e-8))

    assert run.steps < 2000
    expected = simulate(loop, times=times, integrator="bdf", tolerance=Tolerance.of(1e-9))
    np.testing.assert_allclose(run.q, expected.q, atol=1e-5)


def root_law(gain=20.0):
    """A law whose filtered error drives by its root: without derivative where it starts."""
    t, z, y = ca.SX.sym("t"), ca.SX.sym("z"), ca.SX.sym("y", 2)
    q_d, v_d, a_d = (ca.SX.sym(name) for name in ("q_d", "v_d", "a_d"))
    e = ca.vertcat(q_d, v_d) - y
    root = ca.sign(z) * ca.sqrt(ca.fabs(z))
    direct = ca.sign(e[0]) * ca.sqrt(ca.fabs(e[0]))
    tau = gain * root + 2 * direct + 6 * e[1]
    return ca.Function("law", [t, z, q_d, v_d, a_d, y], [tau, 50 * (e[0] - z)])


@pytest.mark.slow_but("None")
@pytest.mark.parametrize("friction", [None, {"model": "events", "coulomb": 0.05}])
def test_a_law_without_a_derivative_where_it_starts_runs(friction):
    arm = rigid_link(inertia=0.5, **({"friction": friction} if friction else {}))
    reference = {"kind": "cycloid", "from": [0.0], "to": [0.5], "duration": 0.4}
    controller = wrap_controller(root_law(), arm, reference, measures=["joint1", "joint1_rate"])
    loop = close_around(controller, assemble_plant(arm, BasisChoice()))
    times = np.linspace(0, 0.8, 9)

    run = simulate(loop, times=times, integrator="esdirk", tolerance=Tolerance.of(1e-8))

    expected = simulate(loop, times=times, integrator="explicit", tolerance=Tolerance.of(1e-9))
    np.testing.assert_allclose(run.q, expected.q, atol=1e-5)
    assert run.q[0, -1] == pytest.approx(0.5, abs=0.05)


def test_esdirk_counts_time_at_the_limit_of_a_law_with_states():
    """The filter's torque is limited: seconds at the limit are those of the explicit method."""
    arm = rigid_link(inertia=0.5, torque=2.0)
    system = control.ss([[-80.0]], [[1.0, 0.0]], [[80.0 * 30]], [[0.0, 6.0]])
    reference = {"kind": "setpoint", "from": [0.0], "to": [0.6]}
    controller = wrap_controller(system, arm, reference, measures=["joint1", "joint1_rate"])
    loop = close_around(controller, assemble_plant(arm, BasisChoice()))
    found = [
        simulate(loop, integrator=name, tolerance=Tolerance.of(1e-9)).saturated[0]
        for name in ("esdirk", "explicit")
    ]

    assert found[1] > 0.2
    assert found[0] == pytest.approx(found[1], abs=4e-3)  # of the steps


def test_the_delay_of_a_law_from_outside_is_that_of_a_designed_one():
    gains, loop = {"Gp": [20.0], "Gv": [6.0]}, {"sample_time": 0.01, "delay": 0.013}
    design = make_design([0.0], [0.4], "joint-pd", gains=gains, loop=loop)
    arm = single_link()
    plant = assemble_plant(arm, design.basis)
    wrapped = wrap_controller(
        [[20, 6]], plant, design, measures=["joint1", "joint1_rate"], sample_time=0.01, delay=0.013
    )
    runs = [
        simulate(close_around(controller, plant))
        for controller in (wrapped, design_controller(arm, design))
    ]

    np.testing.assert_array_equal(runs[0].q, runs[1].q)
