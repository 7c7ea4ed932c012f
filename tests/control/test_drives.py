"""PID, cascade and positive position feedback: laws against their formulas, and their poles."""

import control
import numpy as np
import pytest
import scipy.linalg
import scipy.signal

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_around
from flexctl.loop.equilibrium import find_loop_equilibrium
from flexctl.loop.linear import linearise_loop
from flexctl.model.design import Design
from flexctl.model.lookup import load_design, load_model
from flexctl.model.refusals import build_file
from tests.arms import middle_pose, plant_of, rigid_sliding, single_link, sliding_arm, two_link

EARTH = (0.0, -9.81, 0.0)
ROTOR = {"rotor_inertia": 0.05, "stiffness": 60.0, "damping": 0.05}
PID = {"Gp": [60.0], "Gv": [12.0], "Gi": [30.0], "derivative_filter": [150.0]}
CASCADE = {"position_gain": 5.0, "velocity_gain": 12.0, "integral_time": 0.4}
FEEDBACK = {"mode": "link1.y.1", "joint": "joint1", "frequency": 15.0, "gain": 20.0}
ARMS = {
    "single": single_link,
    "joint": lambda: single_link(flexible_joint=ROTOR),
    "two-link": lambda: two_link(EARTH, EI=40.0),
    "sliding": lambda: sliding_arm(EARTH),
    "rigid": rigid_sliding,
}
METHODS = {
    "pid": {"gains": PID},
    "cascade": {"gains": None, "cascade": CASCADE},
    "positive-position-feedback": {"gains": {"Gp": [60.0], "Gv": [12.0]}},
}


def close(make, name, method, **tables):
    arm = ARMS[name]()
    end = middle_pose(arm)
    given = METHODS[method] | tables
    if method == "positive-position-feedback":
        line = plant_of(arm).lines[0]
        own = FEEDBACK | {"mode": f"{line}.1", "joint": f"joint{line[4]}"}
        given = {"position_feedback": [own]} | given
    controller = design_controller(arm, make["design"](end * 0.9, end, method, **given))
    return close_around(controller, plant_of(arm))


def gravity(plant, joints):
    """Weight of the undeflected arm at the joints (m,)."""
    return plant.gravity(plant.straight(joints))[: plant.m]


def desired_drives(plant, joints):
    """Positions of motors with the joints at these values: rotors lead by the weight."""
    lead = gravity(plant, joints)
    own = joints.copy()
    for j in plant.arm.rotors:
        own[j] += lead[j] / plant.arm.links[j].flexible_joint.stiffness
    return own


@pytest.mark.parametrize("name", ["single", "joint", "two-link", "sliding", "rigid"])
@pytest.mark.parametrize("method", ["pid", "cascade"])
def test_laws_are_their_formulas_at_random_states(make, name, method):
    controller = close(make, name, method).controller
    plant, rng = controller.plant, np.random.default_rng(3)
    m, n = plant.m, plant.n
    q_d, q = middle_pose(plant.arm), rng.normal(scale=0.1, size=n)
    q[:m] += q_d
    v, z = rng.normal(size=n), rng.normal(size=controller.n_state)
    tau, rate = controller.law(0.0, z, q_d, np.zeros(m), np.zeros(m), q, v)
    tau, rate = np.array(tau).ravel(), np.array(rate).ravel()
    drives, c = list(plant.drives), gravity(plant, q_d)
    e, v_r = q[drives] - desired_drives(plant, q_d), v[drives]
    if method == "pid":
        slope = 150 * (e - z[m:])
        np.testing.assert_allclose(tau, c - 60 * e - 12 * slope - 30 * z[:m], rtol=1e-9)
        np.testing.assert_allclose(rate, [*e, *(150 * (e - z[m:]))], rtol=1e-8, atol=1e-9)
    else:
        w = v_r + 5 * e
        np.testing.assert_allclose(tau, c - 12 * (w + z / 0.4), rtol=1e-9)
        np.testing.assert_allclose(rate, w, rtol=1e-8, atol=1e-10)


def test_the_cascade_feeds_the_rigid_arm_forward(make):
    own = CASCADE | {"torque_feedforward": "rigid", "velocity_feedforward": 0.5}
    controller = close(make, "two-link", "cascade", cascade=own).controller
    plant, rng = controller.plant, np.random.default_rng(5)
    q_d, v_d, a_d = middle_pose(plant.arm), rng.normal(size=2), rng.normal(size=2)
    S = plant.straight
    tau, _ = controller.law(0.0, np.zeros(2), q_d, v_d, a_d, S(q_d), S(v_d))
    expected = plant.inverse_dynamics(S(q_d), S(v_d), S(a_d))[:2] - 12 * (1 - 0.5) * v_d
    np.testing.assert_allclose(np.array(tau).ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["single", "joint", "two-link"])
def test_the_poles_of_pid_are_those_of_its_transfer_function(make, name):
    loop = close(make, name, "pid")
    linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
    A, B = linear.plant.A_state, linear.plant.B_state
    m, n = loop.truth.m, loop.truth.n
    C = np.eye(2 * n)[list(loop.truth.drives)]
    # K(s) = Gp + Gi/s + Gv s/(1 + s/N) by SciPy, one for each joint
    parts = [scipy.signal.tf2ss([60 + 12 * 150, 60 * 150 + 30, 30 * 150], [1, 150, 0])] * m
    a, b, c, d = (scipy.linalg.block_diag(*matrices) for matrices in zip(*parts, strict=True))
    whole = np.block([[A - B @ d @ C, -B @ c], [b @ C, a]])
    expected = np.sort_complex(np.linalg.eigvals(whole))
    np.testing.assert_allclose(np.sort_complex(linear.poles), expected, rtol=1e-5, atol=1e-7)
    assert n == len(A) / 2


@pytest.mark.parametrize("method", ["pid", "cascade"])
@pytest.mark.parametrize("name", ["two-link", "joint", "sliding"])
def test_integral_action_leaves_no_error_of_the_motors(make, name, method):
    loop = close(make, name, method)
    final, plant = loop.controller.reference.final, loop.truth
    rest = find_loop_equilibrium(loop, final, 0.0)
    error = rest.q[list(plant.drives)] - desired_drives(plant, final)
    np.testing.assert_allclose(error, 0, atol=1e-10)
    assert loop.controller.collocated


def test_positive_position_feedback_has_the_root_locus_of_its_formula(make):
    gains = (-40.0, -10.0, 0.0, 15.0, 60.0)
    for gain in gains:
        own = FEEDBACK | {"gain": gain, "damping_ratio": 0.4}
        loop = close(make, "single", "positive-position-feedback", position_feedback=[own])
        linear = linearise_loop(loop, loop.controller.reference.final, 0.0)
        plant, n = loop.truth, loop.truth.n
        # tip deflection in the first mode of the clamped line, without load
        Phi = plant.bodies[0].modes("y", 1.0)
        tip = plant.deflections_jacobian(plant.straight(np.array([0.5])))[0, 1:] @ Phi[:, 0]
        W = np.zeros(2 * n)
        W[1:n] = tip * np.linalg.inv(Phi)[0]
        A, B = linear.plant.A_state, linear.plant.B_state
        K = np.zeros((1, 2 * n))
        K[0, 0], K[0, n] = 60.0, 12.0
        w, zeta = 15.0, 0.4
        whole = np.zeros((2 * n + 2, 2 * n + 2))
        whole[: 2 * n, : 2 * n], whole[: 2 * n, 2 * n] = A - B @ K, gain * B[:, 0]
        whole[2 * n, 2 * n + 1] = 1
        whole[2 * n + 1] = [*(w**2 * W), -(w**2), -2 * zeta * w]
        expected = np.sort_complex(np.linalg.eigvals(whole))
        np.testing.assert_allclose(np.sort_complex(linear.poles), expected, rtol=1e-7, atol=1e-9)


def test_the_catalogue_damps_by_feedback_what_the_joint_loop_leaves():
    # on the design plant: with and without, by the gain
    design = load_design("hub-position-feedback")
    arm = load_model(design.model)
    plant, ratios = plant_of(arm), []
    for factor in (0.0, 0.5, 1.0, 3.0):
        own = design.position_feedback[0].model_copy(update={"gain": 65.0 * factor})
        changed = design.model_copy(update={"position_feedback": (own,)})
        loop = close_around(design_controller(arm, changed), plant)
        poles = linearise_loop(loop, np.array([np.pi / 2]), 0.0).poles
        slow = poles[np.abs(poles) < 50]
        ratios.append((-slow.real / np.abs(slow)).min())
    assert ratios[0] < 0.1 < ratios[1] < ratios[2]
    assert ratios[2] > 0.25
    assert ratios[3] < ratios[2]  # too much is worse


def test_under_gravity_feedback_does_not_move_the_rest(make):
    # the sag of its design plant is what it feeds back nothing of
    loop = close(make, "two-link", "positive-position-feedback")
    final = loop.controller.reference.final
    plain = close(make, "two-link", "positive-position-feedback", position_feedback=[
        FEEDBACK | {"gain": 0.0}
    ])  # fmt: skip
    own, other = (find_loop_equilibrium(one, final, 0.0) for one in (loop, plain))
    assert np.abs(own.q - other.q).max() < 1e-2 * np.abs(other.offset).max() + 1e-6


@pytest.mark.parametrize("discretisation", ["exact", "tustin"])
@pytest.mark.parametrize("method", METHODS)
def test_sampled_laws_tend_to_continuous_ones(make, method, discretisation):
    poles, errors = [], []
    for period in (0.0, 2e-4, 1e-4):
        more = {"sample_time": period, "discretisation": discretisation} if period else {}
        loop = close(make, "single", method, loop=more)
        poles.append(linearise_loop(loop, loop.controller.reference.final, 0.0).poles)
    slow = poles[0][np.abs(poles[0]) < 60]
    errors = [np.abs(own[:, None] - slow[None]).min(0).max() for own in poles[1:]]
    assert errors[0] / errors[1] == pytest.approx(2, rel=0.1)  # the hold is late by T/2


@pytest.mark.parametrize("prewarp", [None, 30.0])
def test_by_tustins_rule_pid_is_that_of_python_control(make, prewarp):
    T = 0.01
    timed = {"sample_time": T, "discretisation": "tustin"}
    timed |= {} if prewarp is None else {"prewarp": prewarp}
    controller = close(make, "single", "pid", loop=timed).controller
    n, still, end = controller.plant.n, np.zeros(1), controller.reference.final
    given = 0.0, np.zeros(controller.n_state), end, still, still, np.zeros(n), np.zeros(n)
    K, L, E, F = map(np.array, controller.evaluate("law_jacobian", *given))
    own = control.ss(np.eye(2) + T * F, T * E[:, :1], L, K[:, :1], T)
    s = control.tf("s")
    pid = -(60 + 30 / s + 12 * 150 * s / (s + 150))
    theirs = control.c2d(pid, T, "bilinear", prewarp_frequency=prewarp)
    w = np.geomspace(0.1, 300, 20)
    expected = theirs(np.exp(1j * w * T))
    np.testing.assert_allclose(own(np.exp(1j * w * T)), expected, rtol=1e-9)
    assert any("integrals are discretised by Tustin's rule" in x for x in controller.assumptions)


@pytest.mark.parametrize("name", ["two-link", "sliding"])
def test_integrals_by_tustins_rule_hold_the_arm_as_others_do(make, name):
    # the rule changes how the error is summed, not where the sum comes to rest
    loops = [
        close(make, name, "pid", loop={"sample_time": 1e-3, "discretisation": rule})
        for rule in ("exact", "tustin")
    ]
    final = loops[0].controller.reference.final
    exact, own = (find_loop_equilibrium(one, final, 0.0) for one in loops)
    np.testing.assert_allclose(own.q, exact.q, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.z, exact.z, rtol=1e-8, atol=1e-12)


TABLE = {"summary": "x", "source": "own", "model": "a"}
TABLE["reference"] = {"kind": "setpoint", "from": [0.0], "to": [1.0]}
GAINS = {"Gp": 1.0, "Gv": 1.0}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"method": "pid", "gains": GAINS}, "gains.derivative_filter: expected a value"),
        (
            {"method": "joint-pd", "gains": GAINS | {"derivative_filter": 9.0}},
            "gains.derivative_filter: expected no such key, as method is not pid",
        ),
        (
            {
                "method": "pid",
                "gains": GAINS | {"derivative_filter": 900.0},
                "loop": {"sample_time": 0.01},
            },
            "gains.derivative_filter: expected less than 314.159 rad/s",
        ),
        ({"method": "cascade"}, "cascade: expected a value, as method is cascade, got nothing"),
        ({"method": "joint-pd", "gains": GAINS, "cascade": CASCADE}, "cascade: expected no such"),
        (
            {"method": "positive-position-feedback", "gains": GAINS},
            "position_feedback: expected a value",
        ),
        (
            {"method": "pid", "gains": GAINS | {"derivative_filter": 9.0}}
            | {"loop": {"measures": ["encoder"]}},
            "loop.measures: expected",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(table, message):
    with pytest.raises(InputError, match=message):
        build_file(Design, TABLE | table, "trial", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "link1.z.1"}, r"mode: expected a mode of a line of arm"),
        ({"joint": "joint2"}, r"position_feedback\[1\].joint: expected a joint of arm \(joint1\)"),
    ],
)
def test_a_feedback_of_what_is_not_there_is_refused(make, change, message):
    with pytest.raises(InputError, match=message):
        close(make, "single", "positive-position-feedback", position_feedback=[FEEDBACK | change])


def test_a_rotor_has_no_strain(make):
    own = FEEDBACK | {"mode": "rotor1"}
    with pytest.raises(InputError, match=r"expected a mode of a line of .*, got rotor1"):
        close(make, "joint", "positive-position-feedback", position_feedback=[own])
