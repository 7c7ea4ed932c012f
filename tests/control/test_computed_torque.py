"""Computed torque: on a rigid arm every joint obeys e'' + Gv e' + Gp e + Gi int(e) = 0."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.errors import DesignError
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant
from tests.two_scales import arm_of, design_of, stiff_twin

FLEXIBLE = ["rrp", "two-link", "spatial", "sliding-first"]


def desired(m, seed):
    """Desired joints, rates and accelerations (m,) and integral states (m,)."""
    return np.random.default_rng(100 + seed).normal(size=(4, m))


def asked_for(design, y, rate, q_d, v_d, a_d, z):
    """The accelerations (m,) that the gains ask for."""
    m = len(q_d)
    Gi = np.array(design.gains.Gi or np.zeros(m))
    Gp, Gv = np.array(design.gains.Gp), np.array(design.gains.Gv)
    return a_d - Gv * (rate - v_d) - Gp * (y - q_d) - Gi * z


@pytest.mark.parametrize("integral", [False, True])
@pytest.mark.parametrize("name", ["rigid", "rigid-sliding"])
def test_joints_of_a_rigid_arm_accelerate_as_their_gains_ask(
    controller_of, random_state, name, integral
):
    controller = controller_of(name, "computed-torque", integral)
    plant, m = controller.plant.folded, controller.plant.m
    q, v = random_state(plant, 5)
    q_d, v_d, a_d, z = desired(m, 5)
    tau, z_rate = controller.law(0.0, z if integral else [], q_d, v_d, a_d, q, v)

    a = plant.forward_dynamics(q, v, np.array(tau).ravel())

    asked = asked_for(controller.design, q, v, q_d, v_d, a_d, z)
    assert a == pytest.approx(asked, abs=1e-9 * max(1, np.abs(a).max()))
    assert np.array(z_rate).ravel() == pytest.approx(q - q_d if integral else [], rel=1e-12)


@pytest.mark.parametrize("name", ["rigid", "rigid-sliding"])
def test_on_a_rigid_arm_it_is_the_law_of_decoupling(controller_of, random_state, name):
    one, other = controller_of(name, "computed-torque"), controller_of(name, "decoupling")
    q, v = random_state(one.plant.folded, 3)
    q_d, v_d, a_d, _ = desired(one.plant.m, 3)

    found = [np.array(c.law(0.0, [], q_d, v_d, a_d, q, v)[0]).ravel() for c in (one, other)]

    assert found[0] == pytest.approx(found[1], rel=1e-10)


@pytest.mark.slow_but("two-link", "sliding-first")
@pytest.mark.parametrize("name", FLEXIBLE)
def test_torques_are_those_of_the_same_arm_with_rigid_links(controller_of, random_state, name):
    # a plant of its own, without elastic coordinates, is the witness
    controller = controller_of(name, "computed-torque", True)
    m, arm = controller.plant.m, controller.plant.arm.rigid
    rigid = assemble_plant(arm, BasisChoice(), interpreted=True)
    q, v = random_state(controller.plant.folded, 8)
    q_d, v_d, a_d, z = desired(m, 8)
    u = asked_for(controller.design, q[:m], v[:m], q_d, v_d, a_d, z)

    tau = np.array(controller.law(0.0, z, q_d, v_d, a_d, q, v)[0]).ravel()

    assert rigid.n == m
    assert tau == pytest.approx(rigid.inverse_dynamics(q[:m], v[:m], u), rel=1e-9)


@pytest.mark.parametrize("name", ["heavy-sliding", "heavy-spatial", "mixed"])
def test_of_flexible_joints_it_reads_the_rotors_alone(name, random_state):
    arm = arm_of(name)
    controller = design_controller(arm, design_of(arm, method="computed-torque", slow_loop=None))
    plant, m = controller.plant.folded, controller.plant.m
    q, v = random_state(plant, 4)
    q_d, v_d, a_d, _ = desired(m, 4)
    moved = q.copy()
    moved[[row for row in range(plant.n) if row not in plant.drives]] += 0.01

    first, second = (controller.law(0.0, [], q_d, v_d, a_d, x, v)[0] for x in (q, moved))

    assert np.array(first) == pytest.approx(np.array(second), rel=1e-12)
    assert controller.collocated


def test_rotors_follow_what_the_weight_winds_up():
    # about r = q_d + c_r/k, as it moves, with the torques of the arm whose joints are stiff
    arm = arm_of("heavy-sliding")
    design = design_of(arm, method="computed-torque", slow_loop=None, gains=(80.0, 15.0))
    controller = design_controller(arm, design, interpreted=True)
    plant, m = controller.plant.folded, controller.plant.m
    twin = assemble_plant(stiff_twin(arm).rigid, BasisChoice(), interpreted=True)
    k = np.array([j.flexible_joint.stiffness if j.flexible_joint else np.inf for j in arm.links])

    def joints(t):
        return np.array([0.4, 0.6]) + np.array([0.9, 0.05]) * np.sin(5 * t + 1 + np.arange(m))

    def driven(t):
        return joints(t) + plant.gravity(plant.straight(joints(t)))[:m] / k

    h, at = 3e-4, {}
    for name, f in (("joints", joints), ("driven", driven)):
        before, now, after = f(-h), f(0.0), f(h)
        at[name] = now, (after - before) / (2 * h), (after - 2 * now + before) / h**2
    rng = np.random.default_rng(6)
    q, v = plant.straight(joints(0.0)) + rng.normal(size=plant.n) / 50, rng.normal(size=plant.n)
    rows = list(plant.drives)
    r, rate, a = at["driven"]
    u = a - 15.0 * (v[rows] - rate) - 80.0 * (q[rows] - r)

    tau = np.array(controller.law(0.0, [], *at["joints"], q, v)[0]).ravel()

    # differences are off by h^2 w^2/12 = 2e-7, and r'' from q_d'' by some per mille
    exact = twin.inverse_dynamics(q[rows], v[rows], u)
    assert tau == pytest.approx(exact, abs=1e-5 * np.abs(exact).max())
    assert np.abs(a - at["joints"][2]).max() > 1e-2


def test_an_integral_gain_that_destabilises_a_joint_is_refused(make):
    gains = {"Gp": [100.0], "Gv": [20.0], "Gi": [2000.0]}
    design = make["design"]([0.0], [1.0], "computed-torque", gains=gains)
    with pytest.raises(DesignError, match=r"gains\.Gi.*2000"):
        design_controller(make["single"](), design)
