"""Laws for motors: torques of models become commands, gains are per volt or ampere."""

import numpy as np
import pytest

from flexctl.control import design_controller, separate_time_scales
from flexctl.control.observer import disturbance
from flexctl.loop.closed_loop import close_around
from flexctl.loop.linear import linearise_loop
from flexctl.model.lookup import load_design, load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.verdict.comparison import baseline_design
from tests.arms import with_motors
from tests.two_scales import arm_of, design_of, pose_of, weights

PER_AMPERE = 4.0  # N m/A or N/A at every joint
VOLTS = {"command": "voltage", "resistance": 2.6, "torque_constant": 0.08, "back_emf": 0.09}
EQUAL = {"order": 2}


def amperes(arm):
    """Motors of the same torque per ampere at every joint, whatever its gear."""
    motors = []
    for link in arm.links:
        gear = {} if link.flexible_joint else {"gear": 20.0}
        ratio = link.flexible_joint.gear if link.flexible_joint else 20.0
        motors.append({"command": "current", "torque_constant": PER_AMPERE / ratio} | gear)
    return with_motors(arm, *motors)


def volts(arm, **more):
    motors = [VOLTS | ({} if link.flexible_joint else {"gear": 40.0}) | more for link in arm.links]
    return with_motors(arm, *motors)


def per_ampere(table):
    """The tables of a design whose gains make torques, for gains that make amperes."""
    table = {**table}
    if fast := table.get("fast_loop"):
        cost = {**fast["weights"], "effort": fast["weights"]["effort"] * PER_AMPERE**2}
        table["fast_loop"] = {**fast, "weights": cost}
    if table["method"] in ("joint-pd", "pid"):
        gains = table["gains"]
        table["gains"] = gains | {k: gains[k] / PER_AMPERE for k in gains if k.startswith("G")}
    if cascade := table.get("cascade"):
        gain = cascade["velocity_gain"] / PER_AMPERE
        table["cascade"] = {**cascade, "velocity_gain": gain}
    if table["method"] == "composite" and (second := table.get("second_loop")):
        cost = {**second["weights"], "effort": second["weights"]["effort"] * PER_AMPERE**2}
        table["second_loop"] = {**second, "weights": cost}
    return table


SECOND = {"joint_error": 30.0, "joint_rate": 0.3, "strain_energy": 1.0, "kinetic_energy": 1.0}
SECOND |= {"effort": 1e-3}
LAWS = {
    "joint-pd": {"method": "joint-pd", "gains": {"Gp": 9.0, "Gv": 4.0, "Gi": 2.0}},
    "pid": {
        "method": "pid",
        "gains": {"Gp": 9.0, "Gv": 4.0, "Gi": 2.0, "derivative_filter": 40.0},
    },
    "cascade": {
        "method": "cascade",
        "gains": None,
        "cascade": {
            "position_gain": 3.0,
            "velocity_gain": 4.0,
            "integral_time": 0.5,
            "torque_feedforward": "rigid",
        },
    },
    "decoupling": {"method": "decoupling", "gains": {"Gp": 9.0, "Gv": 4.0, "Gi": 2.0}},
    "second loop": {"method": "decoupling", "second_loop": {"weights": SECOND}},
    "composite": {"fast_loop": weights()},
    "scheduled fast loop": {"fast_loop": weights(schedule=5)},
    "second loop after": {"fast_loop": weights(), "second_loop": {"weights": SECOND}},
    "scheduled": {"second_loop": {"weights": SECOND, "schedule": 9}},
    "feedforward": {"method": "feedforward", "gains": None},
}


def designs(arm, law):
    """The design for torques, and for amperes."""
    table = design_of(arm).table() | LAWS[law]
    if table["method"] != "composite":
        table.pop("slow_loop", None)
    table = {k: part for k, part in table.items() if part is not None}
    build = type(design_of(arm)).model_validate
    return tuple(build({"name": "trial", **t}) for t in (table, per_ampere(table)))


@pytest.mark.slow_but("pid-heavy-sliding", "pid-mixed", "composite-mixed")
@pytest.mark.parametrize("name", ["mixed", "heavy-sliding"])
@pytest.mark.parametrize("law", LAWS)
def test_commands_in_amperes_are_torques_over_a_constant(name, law):
    arm = arm_of(name)
    pair = zip((arm, amperes(arm)), designs(arm, law), strict=True)
    torques, currents = (design_controller(*one) for one in pair)
    rng, n, m = np.random.default_rng(4), torques.plant.n, torques.plant.m
    q_d, (v_d, a_d) = 0.9 * pose_of(arm), 0.5 * rng.normal(size=(2, m))
    q = torques.plant.straight(q_d) + 1e-3 * rng.normal(size=n)
    v, z = 0.1 * rng.normal(size=n), 0.01 * rng.normal(size=torques.n_state)

    for share in (0.0, 1.0):
        first, rate = torques.evaluate("law", share, z, q_d, v_d, a_d, q, v)
        second, other = currents.evaluate("law", share, z, q_d, v_d, a_d, q, v)
        np.testing.assert_allclose(
            second.ravel() * PER_AMPERE, first.ravel(), rtol=2e-6, atol=1e-8 * np.abs(first).max()
        )
        np.testing.assert_allclose(np.ravel(other), np.ravel(rate), rtol=1e-12, atol=1e-15)


@pytest.mark.slow_but("sliding")
@pytest.mark.parametrize("name", ["mixed", "sliding", "spatial"])
def test_decoupling_under_volts_gives_the_accelerations_it_asks_for(name):
    arm = volts(arm_of(name))
    controller = design_controller(arm, designs(arm, "decoupling")[0])
    plant, rng = controller.plant, np.random.default_rng(6)
    q_d, (v_d, a_d) = 0.9 * pose_of(arm), rng.normal(size=(2, plant.m))
    q = plant.straight(q_d) + 1e-3 * rng.normal(size=plant.n)
    v, z = 0.5 * rng.normal(size=plant.n), np.zeros(plant.m)
    u, _ = controller.evaluate("law", 0.0, z, q_d, v_d, a_d, q, v)
    drives = list(plant.drives)
    a = plant.forward_dynamics(q, v, u)[drives]

    moved, _ = controller.evaluate("law", 0.0, z, q_d, v_d, a_d + 1.0, q, v)
    assert plant.torque(v, u) != pytest.approx(u)
    np.testing.assert_allclose(plant.forward_dynamics(q, v, moved)[drives] - a, 1.0, atol=1e-6)
    faster = v.copy()
    faster[drives] += 1.0  # e'' + Gv e' + Gp e = 0, although the back-EMF rises by k_e G
    again, _ = controller.evaluate("law", 0.0, z, q_d, v_d, a_d, q, faster)
    change = plant.forward_dynamics(q, faster, again)[drives] - a
    np.testing.assert_allclose(change, -4.0, atol=1e-6)


@pytest.mark.parametrize("method", ["feedforward", "composite"])
def test_inverse_dynamics_feeds_the_back_emf_forward(method):
    # a rigid motion needs G k_t (u - k_e G w)/R = torque, for each motor by itself
    arm = volts(arm_of("mixed"))
    bare = arm_of("mixed")
    law = "feedforward" if method == "feedforward" else "composite"
    table = designs(arm, law)[0]
    if method == "composite":
        table = table.model_copy(update={"fast_loop": None})
    driven, torques = design_controller(arm, table), design_controller(bare, table)
    rng, plant = np.random.default_rng(8), driven.plant
    q_d, (v_d, a_d) = 0.9 * pose_of(arm), rng.normal(size=(2, plant.m))
    state = (plant.straight(q_d), plant.straight(v_d))
    u, _ = driven.evaluate("law", 0.0, np.zeros(0), q_d, v_d, a_d, *state)
    torque, _ = torques.evaluate("law", 0.0, np.zeros(0), q_d, v_d, a_d, *state)

    gears = np.array([40.0, 1.0, 12.0])
    current = (u.ravel() - 0.09 * gears * v_d) / 2.6
    np.testing.assert_allclose(gears * 0.08 * current, torque.ravel(), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("back_emf", [0.0, 0.09])
@pytest.mark.parametrize("name", ["rrp-stiff", "rrp-scheduled"])
def test_the_poles_of_decoupling_do_not_depend_on_the_motors(name, back_emf):
    # The law knows the motors, and its damper cancels that of their back-EMF. A filter would
    # delay it.
    arm = load_model("theodore-ghosal-rrp")
    design = load_design(name).model_copy(update={"filters": ()})
    driven = volts(arm, back_emf=back_emf)
    final, poles = np.array(design.reference.to), []
    for one in (arm, driven):
        controller = design_controller(one, design, interpreted=True)
        loop = close_around(controller, assemble_plant(one, design.basis, interpreted=True))
        poles.append(np.sort_complex(linearise_loop(loop, final, 1.0).poles))

    np.testing.assert_allclose(poles[1], poles[0], rtol=1e-5)


def test_time_scales_of_a_driven_arm_are_those_of_its_torques():
    arm, basis = arm_of("mixed"), BasisChoice(**EQUAL)
    bare, driven = (assemble_plant(a, basis, interpreted=True) for a in (arm, volts(arm)))
    pose = pose_of(arm)
    one, other = (separate_time_scales(p, pose) for p in (bare, driven))

    np.testing.assert_allclose(other.B_T, one.B_T * driven.torque_per_command, rtol=1e-12)
    np.testing.assert_allclose(other.B_z, one.B_z, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(other.manifold, one.manifold, rtol=1e-12, atol=1e-18)


def test_process_noise_at_the_actuators_stays_a_torque():
    arm = arm_of("mixed")
    design = load_design("rrp-observer")
    noise = design.observer.noise
    plants = [assemble_plant(a, BasisChoice(**EQUAL), interpreted=True) for a in (arm, volts(arm))]
    found = [disturbance(plant, linearise(plant, pose_of(arm)), noise) for plant in plants]

    np.testing.assert_allclose(found[1], found[0], rtol=1e-10)


def test_the_baseline_of_a_comparison_has_the_same_stiffness_in_volts():
    arm = arm_of("rigid-links")
    driven = volts(arm)
    own, other = (baseline_design(a, designs(a, "decoupling")[0]) for a in (arm, driven))
    per_volt = np.array([link.torque_per_command for link in driven.links])

    np.testing.assert_allclose(np.array(other.gains.Gp) * per_volt, own.gains.Gp, rtol=1e-12)
    np.testing.assert_allclose(np.array(other.gains.Gv) * per_volt, own.gains.Gv, rtol=1e-12)
