"""The open-loop law: torques of the rigid arm, against moving point masses in NumPy."""

import numpy as np
import pytest

from flexctl.control import design_controller
from flexctl.model.lookup import load_model
from flexctl.plant.plant import assemble_plant

EARTH = np.array([1.0, -2.0, -9.81])
NODES = np.polynomial.legendre.leggauss(3)  # exact for a rod: its inertia is of degree two
H = 1e-3


def turned(axis, angle):
    c, s, R = np.cos(angle), np.sin(angle), np.eye(3)
    i, j = [(1, 2), (2, 0), (0, 1)][axis]
    R[i, i], R[i, j], R[j, i], R[j, j] = c, -s, s, c
    return R


def points(arm, q):
    """Masses (k,) and positions (k, 3) of the rigid arm at joint variables q (m,)."""
    R, p, masses, places = np.eye(3), np.zeros(3), [], []
    for link, value in zip(arm.links, q, strict=True):
        slides, dh = link.joint == "prismatic", link.dh
        R = R @ turned(2, dh.theta + (0 if slides else value))
        p = p + R[:, 2] * (dh.d + (value if slides else 0))
        twisted = R @ turned(0, dh.alpha)
        # a line ends at the tip; that of a sliding link reaches back through its hub
        along, end = (R[:, 2], p) if slides else (twisted[:, 0], p + twisted[:, 0] * link.length)
        p, R = p + R[:, 0] * dh.a, twisted
        for node, weight in zip(*NODES, strict=True):
            masses.append(link.mass_per_length * link.length * weight / 2)
            places.append(end - along * link.length * (1 - node) / 2)
    return np.array([*masses, arm.payload.mass]), np.array([*places, p])


def derivative(f, order):
    """First or second derivative of f at 0, by differences exact to the fourth order."""
    weights = {1: [1, -8, 0, 8, -1], 2: [-1, 16, -30, 16, -1]}[order]
    values = [w * f(k * H) for w, k in zip(weights, range(-2, 3), strict=True)]
    return sum(values) / (12 * H**order)


def torques(arm, q, v, a):
    """Joint torques (m,) by virtual power: masses times accelerations minus gravity."""
    masses, _ = points(arm, q)
    moved = derivative(lambda t: points(arm, q + v * t + a * t**2 / 2)[1], 2)
    force = masses[:, None] * (moved - np.array(arm.gravity))
    units = np.eye(len(q))
    power = [np.sum(force * derivative(lambda t, e=e: points(arm, q + e * t)[1], 1)) for e in units]
    return np.array(power) + a * [link.joint_inertia for link in arm.links]


@pytest.fixture(scope="module")
def arm_of(make):
    """Flexible arms of slender links, under gravity: arm_of(name)."""
    sliding = make["rrp"](tuple(EARTH))
    first = sliding.links[0].model_copy(update={"mass_per_length": 0.0})  # on its own axis
    arms = {"rrp": sliding.model_copy(update={"links": (first, *sliding.links[1:])})}
    for name in ("mohan-saha-canadarm", "mohan-saha-canadarm-spatial"):
        arms[name] = load_model(name).model_copy(update={"gravity": tuple(EARTH)})
    return arms.__getitem__


@pytest.mark.parametrize("name", ["rrp", "mohan-saha-canadarm", "mohan-saha-canadarm-spatial"])
def test_torques_are_those_of_the_rigid_arm_and_nothing_is_fed_back(arm_of, make, name):
    arm, rng = arm_of(name), np.random.default_rng(7)
    controller = design_controller(arm, make["design"]([0, 0, 0.5], [0.5, 0.4, 0.9], "feedforward"))
    q_d, v_d, a_d = np.array([0.3, -0.7, 0.8]), *rng.normal(size=(2, 3))
    n = controller.plant.n
    expected = torques(arm, q_d, v_d, a_d)
    for measured in (np.zeros((2, n)), rng.normal(size=(2, n))):
        tau, z_rate = controller.law(1.0, [], q_d, v_d, a_d, *measured)
        np.testing.assert_allclose(np.array(tau).ravel(), expected, rtol=1e-7)
    assert z_rate.numel() == controller.n_state == 0


def test_the_rigid_twin_is_where_the_undeflected_arm_is(make):
    arm = make["rrp"]()
    rigid, bent = assemble_plant(arm.rigid, make["design"]([0], [1]).basis), arm
    q = np.array([0.4, -0.3, 0.6])

    assert rigid.n == rigid.m == 3
    flexible = assemble_plant(bent, make["design"]([0], [1]).basis)
    np.testing.assert_allclose(rigid.tip(q), flexible.tip(flexible.straight(q)), atol=1e-15)
    M = flexible.mass_matrix(flexible.straight(q))[:3, :3]
    np.testing.assert_allclose(rigid.mass_matrix(q), M, atol=1e-14)


def test_it_says_that_nothing_is_measured(make):
    arm = load_model("mohan-saha-canadarm")
    controller = design_controller(arm, make["design"]([0] * 3, [1] * 3, "feedforward"))

    assert "nothing is measured" in controller.assumptions[0]
    assert controller.feedback is None
