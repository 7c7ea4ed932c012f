"""Decoupling: on its own plant every joint obeys e'' + Gv e' + Gp e + Gi int(e) = 0."""

import numpy as np
import pytest

from flexctl.catalogue import Design
from flexctl.design import design_controller
from flexctl.errors import DesignError, InputError

NAMES = ["rrp", "two-link", "spatial", "sliding-first", "rigid-sliding", "rigid"]


def desired(m, seed):
    """Desired joints, rates and accelerations (m,) and integral states (m,)."""
    rng = np.random.default_rng(100 + seed)
    return rng.normal(size=(4, m))


def wanted_acceleration(design, q, v, q_d, v_d, a_d, z):
    """The joint accelerations (m,) that the gains ask for."""
    m = len(q_d)
    Gp, Gv = np.array(design.gains.Gp), np.array(design.gains.Gv)
    Gi = np.array(design.gains.Gi or np.zeros(m))
    return a_d - Gv * (v[:m] - v_d) - Gp * (q[:m] - q_d) - Gi * z


@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_joints_accelerate_as_their_gains_ask(controller_of, random_state, name, integral):
    controller = controller_of(name, "decoupling", integral)
    plant, m = controller.plant, controller.plant.m
    q, v = random_state(plant, 5)
    q_d, v_d, a_d, z = desired(m, 5)
    z = z if integral else np.zeros(0)
    tau, z_rate = controller.law(0.0, z, q_d, v_d, a_d, q, v)
    a = np.array(plant.forward_dynamics_function(q, v, tau)).ravel()
    asked = wanted_acceleration(controller.design, q, v, q_d, v_d, a_d, z if integral else 0)
    np.testing.assert_allclose(a[:m], asked, atol=1e-9 * max(1, np.abs(a).max()))
    if integral:
        np.testing.assert_allclose(np.array(z_rate).ravel(), q[:m] - q_d, rtol=1e-12)


@pytest.mark.parametrize("name", ["rrp", "two-link", "spatial", "sliding-first"])
def test_torques_are_those_of_the_schur_complement(controller_of, random_state, name):
    controller = controller_of(name)
    plant, m = controller.plant, controller.plant.m
    q, v = random_state(plant, 8)
    q_d, v_d, a_d, _ = desired(m, 8)
    functions = plant.casadi_functions
    M = np.array(functions["mass_matrix"](q))
    n = sum(
        np.array(term).ravel()
        for term in (
            functions["bias"](q, v),
            functions["gravity"](q),
            functions["elastic_force"](q),
            functions["damping"](q) @ v,
        )
    )
    u = wanted_acceleration(controller.design, q, v, q_d, v_d, a_d, 0)
    S = np.linalg.inv(M[m:, m:])
    tau = (M[:m, :m] - M[:m, m:] @ S @ M[m:, :m]) @ u + n[:m] - M[:m, m:] @ S @ n[m:]
    found = np.array(controller.law(0.0, [], q_d, v_d, a_d, q, v)[0]).ravel()
    np.testing.assert_allclose(found, tau, rtol=1e-8, atol=1e-8 * np.abs(tau).max())


def test_a_rigid_arm_gets_computed_torque(controller_of, random_state):
    controller = controller_of("rigid")
    plant = controller.plant
    q, v = random_state(plant, 2)
    q_d, v_d, a_d, _ = desired(2, 2)
    u = wanted_acceleration(controller.design, q, v, q_d, v_d, a_d, 0)
    wanted = np.array(plant.casadi_functions["inverse_dynamics"](q, v, u)).ravel()
    found = np.array(controller.law(0.0, [], q_d, v_d, a_d, q, v)[0]).ravel()
    assert plant.n == plant.m == 2
    np.testing.assert_allclose(found, wanted, rtol=1e-11)


@pytest.mark.parametrize("Gi", [2000.0, 2500.0])
def test_an_integral_gain_that_destabilises_a_joint_is_refused(make, Gi):
    # s^3 + 20 s^2 + 100 s + Gi is Hurwitz below Gi = 2000
    design = make["design"]([0.0], [1.0], gains={"Gp": [100.0], "Gv": [20.0], "Gi": [Gi]})
    with pytest.raises(DesignError, match=r"gains\.Gi.*2000"):
        design_controller(make["single"](), design)


def test_an_integral_gain_just_below_is_taken(make):
    design = make["design"]([0.0], [1.0], gains={"Gp": [100.0], "Gv": [20.0], "Gi": [1990.0]})
    assert design_controller(make["single"](), design).n_state == 1


def test_an_integral_that_only_the_second_loop_cannot_bear_is_refused(make):
    gains = {"Gp": [1e4], "Gv": [1e3], "Gi": [1e6]}
    weights = make["weights"] | {"effort": 10.0}
    design = make["design"]([0.0], [1.0], gains=gains, second_loop={"weights": weights})
    with pytest.raises(DesignError, match="second loop"):
        design_controller(make["single"](), design)


def test_the_controller_says_what_it_is(make):
    loop = {"sample_time": 0.002, "delay": 0.001}
    second = {"weights": make["weights"], "switch": {"blend": 0.05}}
    design = make["design"]([0.0], [1.0], loop=loop, second_loop=second, duration=0.7)
    arm = make["single"](limits={"torque": 3.0})
    controller = design_controller(arm, design)
    assert (controller.sample_time, controller.delay, controller.blend) == (0.002, 0.001, 0.05)
    assert controller.duration == pytest.approx(1.2)
    np.testing.assert_array_equal(controller.torque_limit, [3.0])
    assert controller.initial_state().shape == (0,)
    assert controller.feedback is not None
    assert controller.assumptions


def test_a_design_for_other_joints_is_refused(make):
    design = make["design"]([0.0, 0.0], [1.0, 1.0])
    with pytest.raises(InputError, match="joint"):
        design_controller(make["single"](), design)


def test_a_reference_beyond_the_beam_is_refused(make):
    arm = make["rrp"]()
    design = make["design"]([0.0, 0.0, 0.3], [1.0, 1.0, 1.4])
    with pytest.raises(InputError, match=r"reference\.to\[3\]"):
        design_controller(arm, Design.model_validate(design))
