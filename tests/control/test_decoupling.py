"""Decoupling: on its own plant every joint obeys e'' + Gv e' + Gp e + Gi int(e) = 0."""

import numpy as np
import pytest

from flexctl.control import controller_at, design_controller
from flexctl.control.decoupling import require_stable_joints
from flexctl.errors import DesignError, InputError
from flexctl.model.design import Design
from flexctl.plant.equilibrium import find_equilibrium
from tests.two_scales import arm_of, design_of

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


@pytest.mark.slow_but("two-link-True", "rigid-sliding-True", "sliding-first-True")
@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_joints_accelerate_as_their_gains_ask(controller_of, random_state, name, integral):
    controller = controller_of(name, "decoupling", integral)
    plant, m = controller.plant.folded, controller.plant.m
    q, v = random_state(plant, 5)
    q_d, v_d, a_d, z = desired(m, 5)
    z = z if integral else np.zeros(0)
    tau, z_rate = controller.law(0.0, z, q_d, v_d, a_d, q, v)
    a = np.array(plant.forward_dynamics_function(q, v, tau)).ravel()
    asked = wanted_acceleration(controller.design, q, v, q_d, v_d, a_d, z if integral else 0)
    np.testing.assert_allclose(a[:m], asked, atol=1e-9 * max(1, np.abs(a).max()))
    if integral:
        np.testing.assert_allclose(np.array(z_rate).ravel(), q[:m] - q_d, rtol=1e-12)


@pytest.mark.slow_but("two-link", "sliding-first")
@pytest.mark.parametrize("name", ["rrp", "two-link", "spatial", "sliding-first"])
def test_torques_are_those_of_the_schur_complement(controller_of, random_state, name):
    controller = controller_of(name)
    plant, m = controller.plant.folded, controller.plant.m
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
    plant = controller.plant.folded
    q, v = random_state(plant, 2)
    q_d, v_d, a_d, _ = desired(2, 2)
    u = wanted_acceleration(controller.design, q, v, q_d, v_d, a_d, 0)
    expected = np.array(plant.casadi_functions["inverse_dynamics"](q, v, u)).ravel()
    found = np.array(controller.law(0.0, [], q_d, v_d, a_d, q, v)[0]).ravel()
    assert plant.n == plant.m == 2
    np.testing.assert_allclose(found, expected, rtol=1e-11)


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


def test_joint_gains_that_a_schedule_replaces_need_not_bear_its_integral(make):
    gains, second = {"Gp": [1.0], "Gv": [1.0], "Gi": [2.0]}, {"weights": make["weights"]}
    scheduled = make["design"]([0.0], [1.0], gains=gains, second_loop=second | {"schedule": 3})
    controller = design_controller(make["single"](), scheduled)
    assert controller.feedback.schedule.slowest < 0
    with pytest.raises(DesignError, match="less than Gp Gv = 1 for joint1, got 2"):
        design_controller(make["single"](), make["design"]([0.0], [1.0], gains=gains))


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


def flexible_joint_design(arm, integral, **more):
    """Decoupling with gains 80 and 15 of every joint, and 7 if it integrates."""
    design = design_of(arm, gains=(80.0, 15.0), slow_loop=None, method="decoupling", **more)
    gains = design.gains.model_copy(update={"Gi": (7.0,)} if integral else {})
    return design.model_copy(update={"gains": gains})


def moving(m, t):
    """A way of the joints (m,) that curves at every time."""
    return np.linspace(0.6, 0.4, m) + np.sin(1.3 * t + np.arange(m)) / 10


def driven_reference(plant, joints):
    """Where joints or rotors (m,) stand when the joints do as desired: q_d, or q_d + c_r/k."""
    weight = plant.gravity(plant.straight(joints))
    springs = [link.flexible_joint for link in plant.arm.links]
    ahead = [weight[j] / s.stiffness if s else 0.0 for j, s in enumerate(springs)]
    return joints + np.array(ahead)


def differentiated(f, h=5e-3):
    """Value, rate and acceleration at 0 of f(t) (m,), by differences of sixth order."""
    at = np.array([f(k * h) for k in range(-3, 4)])
    first = np.array([-1, 9, -45, 0, 45, -9, 1]) / (60 * h)
    second = np.array([2, -27, 270, -490, 270, -27, 2]) / (180 * h**2)
    return at[3], first @ at, second @ at


@pytest.mark.slow_but("mixed-True", "heavy-sliding-True", "heavy-spatial-True")
@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize("name", ["heavy-sliding", "heavy-spatial", "mixed"])
def test_rotors_accelerate_about_their_own_reference_under_gravity(name, integral, random_state):
    # q_d + c_r/k moves otherwise than q_d: with the joints' acceleration rotors were 6e-4 rad off
    arm = arm_of(name)
    controller = design_controller(arm, flexible_joint_design(arm, integral), interpreted=True)
    plant, m, rows = controller.plant.folded, controller.plant.m, list(controller.plant.drives)
    q_d, v_d, a_d = differentiated(lambda t: moving(m, t))
    r, r_rate, r_acceleration = differentiated(lambda t: driven_reference(plant, moving(m, t)))
    q, v = random_state(plant, 3)
    z = np.full(m if integral else 0, 0.3)

    tau, z_rate = controller.law(0.0, z, q_d, v_d, a_d, q, v)
    a = plant.forward_dynamics(q, v, np.array(tau).ravel())[rows]

    asked = r_acceleration - 15.0 * (v[rows] - r_rate) - 80.0 * (q[rows] - r) - integral * 7.0 * 0.3
    assert a == pytest.approx(asked, abs=1e-6)
    assert np.array(z_rate).ravel() == pytest.approx((q[rows] - r) if integral else [], abs=1e-12)


@pytest.mark.parametrize("error", [None, 0.3])
def test_the_second_loop_and_its_integral_rest_in_the_nominal_sag(error):
    # links that sag load the springs by more than c_r: an integral that knew c_r alone pulled the
    # joints 1.5 mrad off their target, against the second loop
    arm = arm_of("heavy-spatial")
    second = {"weights": {"joint_error": 50.0, "joint_rate": 1.0, "effort": 1e-3}}
    second["weights"] |= {"strain_energy": 1.0, "kinetic_energy": 1.0}
    design = flexible_joint_design(arm, True, second_loop=second)
    controller = design_controller(arm, design, interpreted=True, parameters=("stiffness_error",))
    nominal = controller.plant.nominal
    controller = controller_at(controller, {"stiffness_error": error}) if error else controller
    joints = controller.reference.final
    q0, tau0 = find_equilibrium(nominal, nominal.straight(joints))
    zero = np.zeros(nominal.m)

    tau, z_rate = controller.law(1.0, zero, joints, zero, zero, q0, np.zeros(nominal.n))

    assert np.abs(np.array(z_rate)).max() < 1e-12
    if error is None:
        assert np.array(tau).ravel() == pytest.approx(tau0, abs=1e-9)


@pytest.mark.parametrize(
    ("Gi", "joint"),
    [
        ([1999.0, 599.0, 1199.0], None),
        ([10.0, 601.0, 1300.0], 3),
        ([10.0, 601.0, 1000.0], 2),
        ([2001.0, 10.0, 10.0], 1),
        ([10.0, 600.0, 10.0], 2),
    ],
)
def test_the_joint_whose_integral_is_farthest_beyond_its_limit_is_named(Gi, joint):
    Gp, Gv = np.array([100.0, 60.0, 40.0]), np.array([20.0, 10.0, 30.0])
    if joint is None:
        return require_stable_joints(Gp, Gv, np.array(Gi))
    with pytest.raises(DesignError) as error:
        require_stable_joints(Gp, Gv, np.array(Gi))
    limit, own = Gp[joint - 1] * Gv[joint - 1], Gi[joint - 1]
    assert all(part in str(error.value) for part in (f"joint{joint}", f"{limit:g}", f"{own:g}"))
    return None
