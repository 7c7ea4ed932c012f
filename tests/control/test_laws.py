"""The parts of laws on an arm that has weight, a rotor behind a spring and a bending link."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.control.laws import (
    joint_gains,
    law_signals,
    per_joint,
    rigid_forces,
    rigid_gravity_torque,
    rigid_torque,
    straight_arm,
)
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

K_SPRING, GRAVITY = 40.0, (0.0, -9.81, 0.0)
LENGTHS, MASSES = (0.5, 0.4), (0.7, 0.6)  # of rods
PAYLOAD = 0.3


@pytest.fixture(scope="module")
def arm(make):
    """Two rods in a vertical plane, a spring at the second joint; the first bends."""

    def build(gravity=GRAVITY, bends=True, spring=True):
        first = {"joint": "revolute", "length": LENGTHS[0], "dh": {"a": LENGTHS[0]}}
        first |= {"mass_per_length": MASSES[0] / LENGTHS[0]} | (
            {"EI": {"y": 25.0}} if bends else {}
        )
        second = {"joint": "revolute", "length": LENGTHS[1], "dh": {"a": LENGTHS[1]}}
        second |= {"mass_per_length": MASSES[1] / LENGTHS[1]}
        rotor = {"rotor_inertia": 0.01, "gear": 3.0, "stiffness": K_SPRING}
        second |= {"flexible_joint": rotor} if spring else {}
        return make["arm"]([first, second], gravity, {"mass": PAYLOAD})

    return build


def weight(q):
    """Torques that hold the straight arm against its weight, from the moments of its masses."""
    g, (a, b), (m1, m2) = 9.81, LENGTHS, MASSES
    along_1, along_2 = np.cos(q[0]), np.cos(q[0] + q[1])
    second = (m2 * b / 2 + PAYLOAD * b) * along_2
    first = (m1 * a / 2 + (m2 + PAYLOAD) * a) * along_1 + second
    return g * np.array([first, second])


def valued(expressions, inputs, values):
    """Numbers of expressions at values of their symbols."""
    found = ca.Function("f", inputs, expressions)(*values)
    return [np.array(x).ravel() for x in (found if isinstance(found, tuple) else (found,))]


POSE, RATE, PULL = np.array([0.4, -0.7]), np.array([0.9, -1.3]), np.array([2.0, 0.6])


def test_gravity_torques_are_the_moments_of_the_masses(arm, plant_of):
    plant, q = plant_of(arm(), order=1), ca.SX.sym("q", 2)
    (found,) = valued([rigid_gravity_torque(plant, q)], [q], [POSE])
    np.testing.assert_allclose(found, weight(POSE), rtol=1e-9)


def test_a_straight_arm_strains_nothing(arm, plant_of):
    plant, q = plant_of(arm(), order=2), ca.SX.sym("q", 2)
    (found,) = valued([straight_arm(plant, q)], [q], [POSE])
    np.testing.assert_allclose(found, [*POSE, POSE[1], 0, 0])  # the rotor stands at its joint


def test_what_the_torques_act_on_runs_ahead_by_the_weight_on_its_spring(arm, plant_of):
    signals = law_signals(plant_of(arm(), order=1), integral=False)
    inputs = [signals.q_d, signals.v_d, signals.a_d]
    position, rate, acceleration = valued(signals.driven, inputs, [POSE, RATE, PULL])

    def at(t):
        q = POSE + RATE * t + PULL * t * t / 2
        return q + np.array([0.0, weight(q)[1] / K_SPRING])

    h = 1e-4
    np.testing.assert_allclose(position, at(0.0), rtol=1e-12)
    np.testing.assert_allclose(rate, (at(h) - at(-h)) / (2 * h), rtol=1e-6)
    curve = (at(h) - 2 * at(0.0) + at(-h)) / h**2
    np.testing.assert_allclose(acceleration, curve, rtol=1e-5)
    assert abs(position[1] - POSE[1]) > 0.05


@pytest.mark.parametrize("change", [{"gravity": (0.0, 0.0, 0.0)}, {"spring": False}])
def test_without_weight_or_springs_it_is_the_joints(arm, plant_of, change):
    signals = law_signals(plant_of(arm(**change), order=1), integral=True)
    assert signals.driven[0] is signals.q_d
    assert signals.driven[1] is signals.v_d
    assert signals.driven[2] is signals.a_d


def test_errors_are_those_of_what_the_torques_act_on(arm, plant_of):
    signals = law_signals(plant_of(arm(), order=1), integral=True)
    rng = np.random.default_rng(1)
    q, v = rng.normal(size=(2, 4))
    inputs = [signals.q, signals.v, signals.q_d, signals.v_d]
    error, rate = valued([signals.error, signals.error_rate], inputs, [q, v, POSE, RATE])
    ahead = np.array([0.0, weight(POSE)[1] / K_SPRING])

    assert signals.z.numel() == 2
    np.testing.assert_allclose(error, q[[0, 2]] - POSE - ahead, rtol=1e-12)
    h = 1e-5
    moving = (weight(POSE + h * RATE) - weight(POSE - h * RATE))[1] / (2 * h * K_SPRING)
    np.testing.assert_allclose(rate, v[[0, 2]] - RATE - [0.0, moving], rtol=1e-8)


def test_rigid_forces_keep_the_arm_straight(arm, plant_of):
    plant = plant_of(arm(), order=2)
    q, v, a = (ca.SX.sym(name, 2) for name in "qva")
    forces, torque = valued(
        [rigid_forces(plant, q, v, a), rigid_torque(plant, q, v, a)],
        [q, v, a],
        [POSE, RATE, PULL],
    )
    straight = plant.straight
    expected = plant.inverse_dynamics(straight(POSE), straight(RATE), straight(PULL))
    np.testing.assert_allclose(forces, expected, rtol=1e-11)
    np.testing.assert_allclose(torque, [forces[0], forces[1] + forces[2]], rtol=1e-11)
    twin = plant_of(arm(bends=False, spring=False), order=1)
    rotor = np.array([0.0, 9 * 0.01 * PULL[1]])
    own = twin.inverse_dynamics(POSE, RATE, PULL) + rotor
    np.testing.assert_allclose(torque, own, rtol=1e-9)


@pytest.mark.parametrize("integral", [False, True])
def test_joint_pd_acts_on_rotors_and_carries_the_weight(arm, make, integral):
    gains = {"Gp": [30.0, 12.0], "Gv": [5.0, 2.0]} | ({"Gi": [3.0, 7.0]} if integral else {})
    design = make["design"](
        POSE, POSE + 0.5, "joint-pd", gains=gains, basis={"kind": "modes", "order": 1}
    )
    controller = design_controller(arm(), design)
    rng = np.random.default_rng(2)
    q, v = rng.normal(size=(2, 4))
    z = rng.normal(size=controller.n_state)
    tau, z_rate = controller.law(0.3, z, POSE, RATE, PULL, q, v)
    ahead = np.array([0.0, weight(POSE)[1] / K_SPRING])
    h = 1e-5
    moving = (weight(POSE + h * RATE) - weight(POSE - h * RATE)) / (2 * h * K_SPRING) * [0, 1]
    error, rate = q[[0, 2]] - POSE - ahead, v[[0, 2]] - RATE - moving
    expected = weight(POSE) - np.array([30.0, 12.0]) * error - np.array([5.0, 2.0]) * rate
    if integral:
        expected -= np.array([3.0, 7.0]) * z
        np.testing.assert_allclose(np.array(z_rate).ravel(), error, rtol=1e-10)

    assert controller.n_state == (2 if integral else 0)
    np.testing.assert_allclose(np.array(tau).ravel(), expected, rtol=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_an_integral_changes_from_the_reference_to_the_sag_with_the_second_loop(arm, make, share):
    gains = {"Gp": [30.0], "Gv": [12.0], "Gi": [5.0]}
    tables = {"gains": gains, "basis": {"kind": "modes", "order": 1}}
    second = {"weights": make["weights"] | {"effort": 1e-2}}
    design = make["design"](POSE - 0.5, POSE, second_loop=second, **tables)
    controller = design_controller(arm(), design)
    plant, (q, v) = controller.plant, np.random.default_rng(3).normal(size=(2, 4))
    sag = linearise(plant, plant.straight(POSE)).q0
    drives = list(plant.drives)
    reference = POSE + np.array([0.0, weight(POSE)[1] / K_SPRING])
    expected = q[drives] - (1 - share) * reference - share * sag[drives]
    z_rate = controller.law(share, np.zeros(2), POSE, RATE, PULL, q, v)[1]

    np.testing.assert_allclose(np.array(z_rate).ravel(), expected, rtol=1e-9)


def test_without_integral_action_a_law_integrates_nothing(arm, plant_of):
    plant = plant_of(arm(), order=1)
    for integral, size in ((False, (0, 1)), (True, (2, 1))):
        law = law_signals(plant, integral=integral).law(ca.SX.zeros(2))
        assert law.size_out(1) == size
        assert law.size_in(1)[0] == size[0]


def test_free_errors_of_the_stiffness_are_an_input_of_the_law(arm):
    free, choice = ("stiffness_error",), BasisChoice(kind="modes", order=1)
    plant = assemble_plant(arm(), choice, interpreted=True, parameters=free)
    signals = law_signals(plant, integral=False)
    law = signals.law(signals.driven[0])
    parts = len(plant.stiffness_parts)
    error = np.arange(1.0, parts + 1) / 10
    rest = np.zeros(plant.n)
    found = np.array(law(0.0, [], POSE, RATE, PULL, rest, rest, error)[0]).ravel()

    assert law.n_in() == 8
    softer = weight(POSE)[1] / (K_SPRING * (1 + error[0]))  # springs are the first parts
    np.testing.assert_allclose(found - POSE, [0.0, softer], rtol=1e-10)


@pytest.mark.parametrize("spring", [False, True])
def test_collocated_control_says_what_it_measures(arm, make, spring):
    design = make["design"](POSE, POSE + 0.5, "joint-pd", gains={"Gp": [30.0], "Gv": [5.0]})
    said = " ".join(design_controller(arm(spring=spring), design).assumptions)
    assert ("rotor" in said) == spring


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (None, None), ((0.0,), None), ((0.0, 0.0), None), ((2.0,), [2.0, 2.0]),
        ((0.0, 3.0), [0.0, 3.0]),
    ],
)  # fmt: skip
def test_integral_gains_are_there_if_any_is(written, expected):
    found = joint_gains(SimpleNamespace(Gp=(1.0,), Gv=(1.0,), Gi=written), 2).get("Gi")
    assert (found is None) == (expected is None)
    assert expected is None or found.tolist() == expected


def test_gains_are_one_for_all_joints_or_one_each():
    assert per_joint((4.0,), 3).tolist() == [4.0, 4.0, 4.0]
    assert per_joint((1.0, 2.0), 2).tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="broadcast"):
        per_joint((1.0, 2.0), 3)
