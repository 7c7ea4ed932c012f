"""Motors as actuators of an arm: volts and amperes beside the same arm under torques."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.model import Arm
from flexctl.model.refusals import build
from flexctl.plant.linearisation import linearise
from tests.arms import make_arm, plant_of, rigid_link, spatial, two_link, with_motors

pytestmark = pytest.mark.usefixtures("no_compiler")

VOLTS = {"command": "voltage", "resistance": 2.6, "torque_constant": 0.077, "back_emf": 0.09}
AMPERES = {"command": "current", "torque_constant": 0.12}
SPRING = {"rotor_inertia": 2e-4, "gear": 50.0, "stiffness": 900.0, "damping": 0.4}


def driven():
    """A spatial arm: volts through a gear of rad/m on its slide, and volts on a rotor."""
    motors = ({**VOLTS, "gear": 20.0}, {**VOLTS, "gear": 300.0}, VOLTS)
    return with_motors(spatial(), *motors, springs=(None, None, SPRING))


def torque_arm():
    return with_motors(spatial(), springs=(None, None, SPRING))


GEARS = np.array([20.0, 300.0, 50.0])


def motor_torques(u, w, gears=GEARS, limit=np.inf):
    """Torques of the motors VOLTS by their circuit."""
    i = np.clip((u - VOLTS["back_emf"] * gears * w) / VOLTS["resistance"], -limit, limit)
    return gears * VOLTS["torque_constant"] * i


@pytest.fixture(scope="module")
def state():
    plant = plant_of(torque_arm())
    rng = np.random.default_rng(5)
    q = plant.pose({"joint1": 0.4, "joint2": 0.5, "joint3": -0.7, "rotor3": -0.68})
    q[plant.rigid :] = 1e-3 * rng.normal(size=plant.n - plant.rigid)
    return q, 0.3 * rng.normal(size=plant.n), rng.normal(size=plant.n), 5 * rng.normal(size=3)


@pytest.mark.slow_but("lagrange")
@pytest.mark.parametrize("engine", ["recursion", "lagrange"])
def test_an_arm_under_volts_is_the_arm_under_the_torques_of_its_motors(engine, state):
    q, v, a, u = state
    plant, bare = plant_of(driven(), engine=engine), plant_of(torque_arm())
    w = v[list(plant.drives)]
    torque = motor_torques(u, w)

    np.testing.assert_allclose(plant.torque(v, u), torque, rtol=1e-12)
    expected = bare.forward_dynamics(q, v, torque)
    np.testing.assert_allclose(plant.forward_dynamics(q, v, u), expected, rtol=1e-9, atol=1e-9)
    # inverse dynamics: M a + ... + D v = B u with the torques of the bare arm
    force = plant.inverse_dynamics(q, v, a) - plant.B @ u
    expected = bare.inverse_dynamics(q, v, a) - bare.B @ torque
    np.testing.assert_allclose(force, expected, rtol=1e-10, atol=1e-10)


def test_back_emf_is_a_damper_of_the_driven_coordinates(state):
    q = state[0]
    plant, bare = plant_of(driven()), plant_of(torque_arm())
    dampers = GEARS**2 * VOLTS["torque_constant"] * VOLTS["back_emf"] / VOLTS["resistance"]

    added = plant.damping(q) - bare.damping(q)
    np.testing.assert_allclose(added, bare.B @ np.diag(dampers) @ bare.B.T, rtol=1e-12)
    np.testing.assert_allclose(plant.motor_damping, dampers, rtol=1e-12)


@pytest.mark.slow_but("100.0")
@pytest.mark.parametrize("current", [0.1, 100.0])
def test_an_amplifier_limits_the_current(state, current):
    q, v, _, u = state
    limited = {"current_limit": current}
    motors = ({**VOLTS, **limited, "gear": 20.0}, None, {**VOLTS, **limited})
    arm = with_motors(spatial(), *motors, springs=(None, None, SPRING))
    plant, bare = plant_of(arm), plant_of(torque_arm())
    w = v[list(plant.drives)]
    torque = np.array([*motor_torques(u, w, limit=current)])
    torque[1] = u[1]

    np.testing.assert_allclose(plant.torque(v, u), torque, rtol=1e-12)
    expected = bare.forward_dynamics(q, v, torque)
    np.testing.assert_allclose(plant.forward_dynamics(q, v, u), expected, rtol=1e-9, atol=1e-9)


def test_a_torque_limit_of_a_motor_under_volts_limits_its_current(state):
    v = state[1]
    arm = with_motors(spatial(), {**VOLTS, "gear": 20.0}, limits=({"torque": 0.05},))
    both = with_motors(
        spatial(), {**VOLTS, "gear": 20.0, "current_limit": 0.01}, limits=({"torque": 0.05},)
    )
    own = v[: plant_of(arm).n], np.array([9.0, 0.0, 0.0])

    assert plant_of(arm).torque(*own)[0] == pytest.approx(0.05, rel=1e-12)
    assert plant_of(both).torque(*own)[0] == pytest.approx(20 * 0.077 * 0.01, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("current", [None, 0.1], ids=["free", "at the limit"])
def test_derivatives_are_those_of_differences(state, current):
    q, v, _, u = state
    more = {} if current is None else {"current_limit": current}
    motors = ({**VOLTS, "gear": 20.0, **more}, {**AMPERES, "gear": 100.0}, VOLTS)
    plant = plant_of(with_motors(spatial(), *motors, springs=(None, None, SPRING)))
    u, h = np.array([4.0, 0.5, -0.3]), 1e-6

    def slopes(move, count):
        columns = []
        for k in range(count):
            step = np.zeros(count)
            step[k] = h
            columns.append((move(step) - move(-step)) / (2 * h))
        return np.array(columns).T

    by_q, by_v, by_u = plant.derivatives(q, v, u)
    n = plant.n
    expected = slopes(lambda d: plant.forward_dynamics(q, v + d, u), n)
    np.testing.assert_allclose(by_v, expected, rtol=1e-6, atol=1e-5 * np.abs(expected).max())
    expected = slopes(lambda d: plant.forward_dynamics(q, v, u + d), 3)
    np.testing.assert_allclose(by_u, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())
    expected = slopes(lambda d: plant.forward_dynamics(q + d, v, u), n)
    np.testing.assert_allclose(by_q, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())
    assert (by_u[:, 0] == 0).all() == (current is not None)


@pytest.mark.slow
def test_the_numbers_of_a_motor_are_free(state):
    q, v, _, u = state
    names = ("link1.motor", "link3.motor.torque_constant")
    plant = plant_of(driven(), parameters=names)
    changed = {"link1.motor.back_emf": 0.05, "link1.motor.resistance": 1.3}
    changed |= {"link3.motor.torque_constant": 0.2}
    first = VOLTS | {"back_emf": 0.05, "resistance": 1.3, "gear": 20.0}
    motors = (first, {**VOLTS, "gear": 300.0}, VOLTS | {"torque_constant": 0.2})
    anew = plant_of(with_motors(spatial(), *motors, springs=(None, None, SPRING)))

    moved = plant.at(changed)
    np.testing.assert_allclose(
        moved.forward_dynamics(q, v, u), anew.forward_dynamics(q, v, u), rtol=1e-12
    )
    np.testing.assert_allclose(moved.B, anew.B, rtol=1e-15)
    np.testing.assert_allclose(moved.torque(v, u), anew.torque(v, u), rtol=1e-12)
    with pytest.raises(InputError, match=r"link1\.motor\.resistance: expected a number above 0"):
        plant.at({"link1.motor.resistance": 0.0})


def test_commands_hold_an_arm_at_rest():
    gravity = (0.0, -9.81, 0.0)
    arm = two_link(gravity, EI=40.0)
    motors = ({**VOLTS, "gear": 100.0}, {**AMPERES, "gear": 80.0})
    plant, bare = plant_of(with_motors(arm, *motors)), plant_of(arm)
    rest, expected = linearise(plant, {"joint1": 0.3}), linearise(bare, {"joint1": 0.3})

    per_command = np.array([100 * 0.077 / 2.6, 80 * 0.12])
    np.testing.assert_allclose(rest.tau0 * per_command, expected.tau0, rtol=1e-12)
    np.testing.assert_allclose(rest.q0, expected.q0, rtol=1e-12)
    np.testing.assert_allclose(rest.B, expected.B * per_command, rtol=1e-15)
    still = np.zeros(plant.n)
    balance = plant.inverse_dynamics(rest.q0, still, still) - plant.B @ rest.tau0
    assert np.abs(balance).max() < 1e-9


def test_several_states_at_once_have_their_torques():
    plant = plant_of(driven(), parameters=("link1.motor.back_emf",))
    rng = np.random.default_rng(2)
    v, u = rng.normal(size=(plant.n, 4)), rng.normal(size=(3, 4))

    columns = [plant.torque(v[:, k], u[:, k]) for k in range(4)]
    np.testing.assert_allclose(plant.torque(v, u), np.array(columns).T, rtol=1e-14)


LINK = {"joint": "revolute", "joint_inertia": 0.5}


@pytest.mark.parametrize(
    ("motor", "more", "message"),
    [
        (VOLTS | {"gear": 2.0}, {"flexible_joint": SPRING},
         r"link\[1\]\.motor\.gear: expected no such key, as flexible_joint has the gear, got 2"),
        ({"command": "voltage", "torque_constant": 0.1, "back_emf": 0.1}, {},
         r"motor\.resistance: expected a number, as the command is a voltage, got nothing"),
        ({"command": "voltage", "torque_constant": 0.1, "resistance": 1.0}, {},
         r"motor\.back_emf: expected a number, as the command is a voltage, got nothing"),
        (AMPERES | {"voltage_limit": 24.0}, {},
         r"motor\.voltage_limit: expected no such key, as the command is a current, got 24"),
        (AMPERES | {"torque_constant": 0.0}, {}, r"torque_constant: expected more than 0, got 0"),
        (AMPERES | {"command": "volts"}, {}, r"motor\.command: expected"),
        (AMPERES | {"restistance": 1.0}, {}, r"motor\.restistance: .*resistance"),
    ],
)  # fmt: skip
def test_what_is_no_motor_is_refused_in_one_line(motor, more, message):
    table = {"name": "arm", "summary": "s", "source": "own", "gravity": [0.0, 0.0, 0.0]}
    with pytest.raises(InputError, match=message) as refused:
        build(Arm, table | {"link": [LINK | more | {"motor": motor}]}, "arm")
    assert "\n" not in str(refused.value)


def test_a_motor_without_a_command_takes_torques():
    arm = make_arm([LINK | {"motor": {"torque_constant": 0.1, "gear": 10.0, "current_limit": 2.0}}])
    plant = plant_of(arm)

    np.testing.assert_array_equal(plant.B, [[1.0]])
    assert arm.links[0].command_limit == pytest.approx(2.0, rel=1e-15)
    np.testing.assert_array_equal(plant.torque(np.ones(1), np.array([3.0])), [3.0])


def test_limits_of_commands_are_no_part_of_the_equations():
    def content(torque, **motor):
        own = {"torque": torque}
        return plant_of(with_motors(rigid_link(), VOLTS | motor, limits=[own])).content

    amperes = {"command": "current", "current_limit": 3.0}
    assert content(5.0, **amperes) == content(6.0, **amperes | {"current_limit": 4.0})
    assert content(5.0, voltage_limit=24.0) == content(5.0, voltage_limit=12.0)
    assert content(5.0) != content(6.0)  # the amplifier's: part of the arm
    assert content(5.0, current_limit=3.0) != content(5.0, current_limit=4.0)
