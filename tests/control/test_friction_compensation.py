"""Feedforward of the friction of the desired motion."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import InputError
from flexctl.loop.closed_loop import close_loop
from flexctl.loop.linear import linear_poses
from flexctl.simulation.simulation import simulate

pytestmark = pytest.mark.usefixtures("no_compiler")

RUBS = {"viscous": 0.3, "coulomb": 1.0, "static": 1.4, "stribeck_velocity": 0.05}
RUBS |= {"smoothing_velocity": 0.01}
FULL = {"fraction": 1.0}


@pytest.fixture(scope="module")
def arm(make):
    line = {"joint": "revolute", "length": 0.5, "mass_per_length": 1.0, "dh": {"a": 0.5}}
    links = [line | {"friction": RUBS}, line | {"friction": RUBS | {"coulomb": 0.4}}]
    return make["arm"](links, (0.0, -9.81, 0.0))


@pytest.fixture(scope="module")
def designed(make, arm):
    """designed(compensation, ...): a controller of two joints."""

    def build(compensation, method="decoupling", own=arm, **tables):
        if compensation is not None:
            tables["friction_compensation"] = compensation
        return design_controller(own, make["design"]([0.1, 0.2], [0.6, -0.3], method, **tables))

    return build


def _close(controller, arm):
    return close_loop(controller, arm, modes=1)


def friction(rates, gear=1.0, rounding=None, coulomb=(1.0, 0.4)):
    """Friction by hand (2,), in units of the output."""
    v = gear * np.asarray(rates)
    level = np.array(coulomb)
    level = level + (1.4 - level) * np.exp(-((v / 0.05) ** 2))
    return gear * (0.3 * v + level * np.tanh(v / (rounding or 0.01)))


@pytest.mark.parametrize("method", ["decoupling", "joint-pd", "feedforward"])
@pytest.mark.parametrize("share", [1.0, 0.7])
def test_it_adds_a_share_of_the_friction_at_the_desired_rates(designed, method, share):
    with_it, without = (designed(own, method) for own in ({"fraction": share}, None))
    rng = np.random.default_rng(2)
    q, v, q_d, v_d, a_d = rng.normal(size=(5, 2)) * 0.1
    arguments = [np.zeros(1), np.zeros(0), q_d, v_d, a_d, q, v]
    added = with_it.evaluate("law", *arguments)[0] - without.evaluate("law", *arguments)[0]
    np.testing.assert_allclose(added.ravel(), share * friction(v_d), atol=1e-10)
    at_rest = [*arguments[:3], 0 * v_d, *arguments[4:]]
    np.testing.assert_allclose(
        with_it.evaluate("law", *at_rest)[0], without.evaluate("law", *at_rest)[0], atol=1e-12
    )


def test_a_wider_smoothing_velocity_replaces_that_of_the_file(designed):
    with_it = designed({"fraction": 1.0, "smoothing_velocity": 0.2})
    v_d = np.array([0.04, -0.3])
    arguments = [np.zeros(1), np.zeros(0), 0 * v_d, v_d, 0 * v_d, 0 * v_d, v_d]
    added = with_it.evaluate("law", *arguments)[0] - designed(None).evaluate("law", *arguments)[0]
    np.testing.assert_allclose(added.ravel(), friction(v_d, rounding=0.2), atol=1e-10)


def test_friction_of_motors_is_that_of_their_rates(designed, arm):
    spring = {"rotor_inertia": 1e-3, "gear": 20.0, "stiffness": 500.0}
    table = arm.table()
    for link in table["link"]:
        link["flexible_joint"] = spring
    own = type(arm).model_validate({**table, "name": "arm"})
    with_it, without = (designed(c, "joint-pd", own) for c in (FULL, None))
    v_d = np.array([0.02, -0.07])
    arguments = [np.zeros(1), np.zeros(0), 0 * v_d, v_d, 0 * v_d, np.zeros(4), np.zeros(4)]
    added = with_it.evaluate("law", *arguments)[0] - without.evaluate("law", *arguments)[0]
    np.testing.assert_allclose(added.ravel(), friction(v_d, gear=20.0), atol=1e-9)


@pytest.mark.slow  # two stiff runs
def test_full_compensation_of_the_true_friction_leaves_no_error(designed, arm):
    table = arm.table()
    for link in table["link"]:  # falling friction would let round-off grow
        link["friction"] = {"viscous": 0.3, "coulomb": 1.0, "smoothing_velocity": 0.01}
    own, times = type(arm).model_validate({**table, "name": "arm"}), np.linspace(0, 0.5, 21)
    worst = [
        np.abs(simulate(_close(designed(share, own=own), own), times=times).joint_error).max()
        for share in (FULL, None)
    ]
    assert worst[0] < 1e-7
    assert worst[1] > 5e-3  # about friction over inertia and Gp, 1/0.3/100


def test_it_leaves_the_linear_loop_as_it_is(designed, arm):
    poles = [
        np.sort_complex(linear_poses(_close(designed(own), arm)).final.poles)
        for own in (FULL, None)
    ]
    np.testing.assert_allclose(*poles, rtol=1e-9)


def test_its_share_and_the_friction_are_free_numbers(designed, arm):
    loop = _close(designed(FULL), arm)
    other = loop.at({"friction_compensation.fraction": 0.5, "link1.friction.viscous": 0.6})
    v_d = np.array([0.3, -0.2])
    arguments = [np.zeros(1), np.zeros(0), 0 * v_d, v_d, 0 * v_d, 0 * v_d, v_d]
    tau = other.controller.evaluate("law", *arguments)[0].ravel()
    plain = designed(None).evaluate("law", *arguments)[0].ravel()
    expected = 0.5 * (friction(v_d) + np.array([0.3 * v_d[0], 0.0]))
    np.testing.assert_allclose(tau - plain, expected, atol=1e-10)
    assert other.controller.recipe.key(other.controller.plant) == loop.controller.recipe.key(
        loop.controller.plant
    )


@pytest.mark.slow
def test_it_goes_with_an_observer(designed, arm):
    loop = {"measures": ["encoder"]}
    run = simulate(_close(designed(FULL, loop=loop), arm), times=np.linspace(0, 0.5, 11))
    worse = simulate(_close(designed(None, loop=loop), arm), times=np.linspace(0, 0.5, 11))
    assert np.abs(run.joint_error).max() < 0.3 * np.abs(worse.joint_error).max()


@pytest.mark.parametrize("sampled", [{}, {"sample_time": 0.01, "delay": 0.004}])
def test_an_observer_predicts_with_what_is_left_beyond_friction(designed, sampled):
    with_it, without = (
        designed(own, loop={"measures": ["encoder"]} | sampled) for own in (FULL, None)
    )
    n, rng = with_it.plant.n, np.random.default_rng(4)
    z, q, v = 0.1 * rng.normal(size=with_it.n_state), *0.1 * rng.normal(size=(2, n))
    q_d, v_d, a_d = 0.1 * rng.normal(size=(3, 2))
    (tau, moved), (plain, expected) = (
        one.evaluate("law", np.zeros(1), z, q_d, v_d, a_d, q, v) for one in (with_it, without)
    )
    np.testing.assert_allclose((tau - plain).ravel(), friction(v_d), atol=1e-10)
    estimate = slice(with_it.n_state - 2 * n, None)
    if sampled:  # what acts meanwhile was asked for before, and moves an arm that rubs now
        assert np.abs(moved[estimate] - expected[estimate]).max() > 1e-3
        z[:2] += friction(v_d)
        moved = with_it.evaluate("law", np.zeros(1), z, q_d, v_d, a_d, q, v)[1]
    np.testing.assert_allclose(moved[estimate], expected[estimate], atol=1e-9)


def test_an_arm_without_friction_has_none_to_compensate(make, designed):
    with pytest.raises(InputError, match=r"friction_compensation: expected no such table, as no"):
        designed(FULL, own=make["rigid"]())


def test_methods_without_desired_rates_refuse_it(designed):
    with pytest.raises(ValueError, match="no such table, as method is torque"):
        designed(FULL, "torque")


def test_a_law_without_rates_of_its_reference_refuses_it(designed):
    reference = {"kind": "cycloid", "from": [0.1, 0.2], "to": [0.6, -0.3], "duration": 0.5}
    with pytest.raises(ValueError, match="no such table, as the law gets no rates"):
        designed(FULL, reference=reference | {"feed_forward": "position"})


def test_motors_get_it_in_their_commands(designed, arm):
    table = arm.table()
    for link in table["link"]:
        link["motor"] = {"command": "current", "torque_constant": 0.05, "gear": 40.0}
    own = type(arm).model_validate({**table, "name": "arm"})
    with_it, without = (designed(c, own=own) for c in (FULL, None))
    v_d = np.array([0.3, -0.2])
    arguments = [np.zeros(1), np.zeros(0), 0 * v_d, v_d, 0 * v_d, 0 * v_d, v_d]
    added = with_it.evaluate("law", *arguments)[0] - without.evaluate("law", *arguments)[0]
    np.testing.assert_allclose(added.ravel(), friction(v_d) / (0.05 * 40.0), atol=1e-10)
