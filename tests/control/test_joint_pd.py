"""Collocated joint PD: signs, gravity fed forward, integral."""

import numpy as np
import pytest


@pytest.mark.parametrize("name", ["rigid", "rigid-sliding"])
def test_gravity_fed_forward_holds_a_rigid_arm_where_it_should_be(controller_of, name):
    controller = controller_of(name, "joint-pd")
    plant, m = controller.plant.folded, controller.plant.m
    q_d, rest = controller.reference.final, np.zeros(m)
    tau, _ = controller.law(0.0, [], q_d, rest, rest, q_d, rest)
    a = np.array(plant.forward_dynamics_function(q_d, rest, tau)).ravel()
    np.testing.assert_allclose(a, 0, atol=1e-9)
    assert np.abs(np.array(tau)).max() > 0.1


@pytest.mark.parametrize("name", ["two-link", "spatial"])
def test_torques_oppose_errors_and_know_joints_only(controller_of, random_state, name):
    controller = controller_of(name, "joint-pd", True)
    plant, m = controller.plant.folded, controller.plant.m
    q, v = random_state(plant, 4)
    rng = np.random.default_rng(4)
    q_d, v_d, a_d, z = rng.normal(size=(4, m))
    gains = controller.design.gains
    straight = np.concatenate([q_d, np.zeros(plant.n - m)])
    gravity = np.array(plant.casadi_functions["gravity"](straight)).ravel()[:m]
    expected = gravity - np.array(gains.Gp) * (q[:m] - q_d) - np.array(gains.Gv) * (v[:m] - v_d)
    expected -= np.array(gains.Gi) * z
    tau, z_rate = controller.law(0.0, z, q_d, v_d, a_d, q, v)
    np.testing.assert_allclose(np.array(tau).ravel(), expected, rtol=1e-11)
    np.testing.assert_allclose(np.array(z_rate).ravel(), q[:m] - q_d, rtol=1e-12)


def test_without_an_integral_gain_there_is_no_state(controller_of):
    controller = controller_of("rigid", "joint-pd")
    assert controller.n_state == 0
    assert controller.feedback is None
