"""Modes of turning links that follow the pose, against material points and closed forms."""

from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from examples.papers.theodore_ghosal.pose_modes import assemble_pose_plant
from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.beam.piecewise import gauss
from flexctl.errors import InputError
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings, with_options
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

ARM = with_options(load_model("planar-3r"), foreshortening=None, damping=0.0)
LENGTH, UNIT = 1.0, 1.3  # of every link [m], [kg/m]
MOTOR, MOTOR_J, PAYLOAD, PAYLOAD_J = 0.5, 0.001, 1.0, 0.001
JOINT_J = 0.02  # hub of joint 1
Y = np.array([0.3, 0.5, 1.4, 0.03, -0.02, 0.004])
V = np.array([0.7, -1.1, 1.9, 0.2, -0.3, 0.1])


@cache
def plant_of(counted=True):
    plant = assemble_pose_plant(ARM, BasisChoice(order=1))
    return plant if counted else replace(plant_of(), counted=False)


def evaluated(plant, name, *arguments):
    found = [np.array(x).squeeze() for x in plant.function(name).call([*map(ca.DM, arguments)])]
    return found[0] if len(found) == 1 else found


def loads(theta_2, theta_3):
    """M, J and D of links 1 and 2 by hand: point masses and uniform bars in the plane."""
    bar = UNIT * LENGTH
    second = {
        "M": MOTOR + bar + PAYLOAD,
        "J": MOTOR_J + bar * LENGTH**2 / 3 + PAYLOAD * LENGTH**2 + PAYLOAD_J,
        "D": (bar * LENGTH / 2 + PAYLOAD * LENGTH) * np.cos(theta_3),
    }
    beyond = bar * LENGTH / 2 + PAYLOAD * LENGTH  # first moment of link 3 about its joint
    along = bar * LENGTH / 2 + (MOTOR + bar + PAYLOAD) * LENGTH
    first = {
        "M": 2 * (MOTOR + bar) + PAYLOAD,
        "J": MOTOR_J
        + bar * LENGTH**2 / 3
        + (MOTOR + bar + PAYLOAD) * LENGTH**2
        + 2 * LENGTH * beyond * np.cos(theta_3)
        + second["J"],
        "D": along * np.cos(theta_2) + beyond * np.cos(theta_2 + theta_3),
    }
    sizes = np.array([bar, bar * LENGTH**2, bar * LENGTH])
    return [np.array([x["M"], x["J"], x["D"]]) / sizes for x in (first, second)]


def modes_of(value):
    tip = TipLoad(mass=value[0], inertia=value[1], offset=value[2])
    return find_moving_modes(1, LoadPath.through(tip))


class Chain:
    """Material points of the planar arm: position, and what turns, at coordinates y."""

    def __init__(self, signs):
        self.signs = signs  # of link 1's and link 2's mode, against psi(1) > 0
        self.xi, self.weights = gauss(40)

    def at(self, y):
        """Positions of all points (2, N), their masses (N,), angles of the rigid bodies."""
        shapes = [modes_of(x) for x in loads(y[1], y[2])] + [LAST]
        p, angle, points, masses, angles = np.zeros(2), 0.0, [], [], []
        for j, (modes, sign) in enumerate(zip(shapes, [*self.signs, 1.0], strict=True)):
            angle += y[j]
            along, across = (
                np.array([np.cos(angle), np.sin(angle)]),
                np.array([-np.sin(angle), np.cos(angle)]),
            )
            w = sign * modes.evaluate(self.xi)[0, 0] * SCALES[j] * y[3 + j]
            points.append(p[:, None] + np.outer(along, LENGTH * self.xi) + np.outer(across, w))
            masses.append(UNIT * LENGTH * self.weights)
            angles.append(angle)  # of the motor at the joint
            points.append(p[:, None])
            masses.append([MOTOR if j else 0.0])
            tip = sign * SCALES[j] * y[3 + j]
            p = p + LENGTH * along + across * tip * modes.tip(0)[0, 0]
            angle += tip * modes.tip(1)[0, 0] / LENGTH
        angles.append(angle)
        points.append(p[:, None])
        masses.append([PAYLOAD])
        return np.hstack(points), np.concatenate(masses), np.array(angles)


LAST = modes_of(np.array([PAYLOAD / UNIT, PAYLOAD_J / UNIT, 0.0]))
_XI, _W = LAST.quadrature()
# modes that rest have int psi^2 dxi = 1, those that follow the pose m(psi, psi) = 1
SCALES = (1.0, 1.0, 1 / np.sqrt(LAST.evaluate(_XI)[0, 0] ** 2 @ _W))


def signs_of(plant, y):
    """Signs of the modes of links 1 and 2 against psi(1) > 0."""
    C = [plant.modes_at(line, y[:3])[:, 0] for line in ("link1.y", "link2.y")]
    tips = [b.planes["y"].value(1.0)[:, 0] @ c for b, c in zip(plant.fine.bodies, C, strict=False)]
    return np.sign(tips)


def test_the_kinetic_energy_is_that_of_all_material_points():
    plant, h = plant_of(), 1e-5
    chain = Chain(signs_of(plant, Y))
    (p, mass, angle), (P, _, turned) = chain.at(Y - h * V), chain.at(Y + h * V)
    speed, spin = (P - p) / (2 * h), (turned - angle) / (2 * h)
    inertias = np.array([JOINT_J, MOTOR_J, MOTOR_J, PAYLOAD_J])
    expected = (mass @ (speed**2).sum(axis=0) + inertias @ spin**2) / 2
    # the central difference errs by h^2 V^3 / 6, about 1e-9
    assert evaluated(plant, "energies", Y, V)[0] == pytest.approx(expected, rel=1e-8)


def test_left_out_terms_miss_some_of_the_kinetic_energy():
    whole, part = (evaluated(plant_of(c), "energies", Y, V)[0] for c in (True, False))
    assert abs(part / whole - 1) > 1e-4


def power(plant, y, v, tau):
    """Rate of kinetic and strain energy less the torques' power, over that power [-]."""
    a = evaluated(plant, "forward_dynamics", y, v, tau)
    Y, V = ca.SX.sym("y", plant.n), ca.SX.sym("v", plant.n)
    E = sum(plant.function("energies")(Y, V))
    rate = ca.Function("rate", [Y, V], [ca.jtimes(E, ca.vertcat(Y, V), ca.vertcat(*v, *a))])
    return float(rate(y, v)) / (tau @ v[:3]) - 1


def test_power_is_balanced():
    assert power(plant_of(), Y, V, np.array([3.0, -1.0, 2.0])) == pytest.approx(0, abs=1e-8)


def test_power_is_not_balanced_without_the_terms():
    assert abs(power(plant_of(False), Y, V, np.array([3.0, -1.0, 2.0]))) > 1e-2


def test_forward_and_inverse_dynamics_undo_each_other():
    plant, tau = plant_of(), np.array([3.0, -1.0, 2.0])
    a = evaluated(plant, "forward_dynamics", Y, V, tau)
    found = evaluated(plant, "inverse_dynamics", Y, V, a)
    np.testing.assert_allclose(found, [*tau, 0, 0, 0], atol=1e-9)


def test_a_pose_that_rests_has_the_plant_of_its_reference_shapes():
    pose = "{ joint2 = 0.5, joint3 = 1.4 }"
    settings = [f"link{j}.tip_load.reference_pose={pose}" for j in (1, 2)]
    arm = apply_settings(ARM, settings)
    fixed = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    moving = plant_of()
    joints = np.array([0.0, 0.5, 1.4])
    found, expected = (
        np.linalg.eigvals(np.linalg.solve(M, K))
        for M, K in (
            (
                evaluated(moving, "mass_matrix", np.append(joints, np.zeros(3)))[3:, 3:],
                stiffness(moving, joints),
            ),
            (
                fixed.mass_matrix(fixed.straight(joints))[3:, 3:],
                fixed.elastic_stiffness(fixed.straight(joints))[3:, 3:],
            ),
        )
    )
    np.testing.assert_allclose(np.sort(found.real), np.sort(expected.real), rtol=1e-9)


def stiffness(plant, joints):
    """Columns of the linear elastic forces of the elastic coordinates."""
    n = plant.n - 3
    columns = [
        evaluated(plant, "elastic_force", np.concatenate([joints, 1e-3 * e]))[3:] / 1e-3
        for e in np.eye(n)
    ]
    return np.array(columns).T


def test_free_motion_keeps_momentum_and_energy_with_the_terms_and_not_without():
    drifts = {}
    for counted in (True, False):
        plant = plant_of(counted)
        a = plant.function("forward_dynamics")
        run = solve_ivp(
            lambda _, x, a=a: np.append(x[6:], np.array(a(x[:6], x[6:], 0)).ravel()),
            (0, 0.2),
            np.append(Y, V),
            method="DOP853",
            rtol=1e-9,
            atol=1e-10,
        )
        ends = run.y[:, [0, -1]].T
        energy = [sum(evaluated(plant, "energies", x[:6], x[6:])) for x in ends]
        momentum = [(evaluated(plant, "mass_matrix", x[:6]) @ x[6:])[0] for x in ends]
        drifts[counted] = [abs(x[1] / x[0] - 1) for x in (energy, momentum)]
    assert max(drifts[True]) < 1e-7
    assert min(drifts[False]) > 1e-5


def test_a_line_that_twists_keeps_the_modes_of_twist_of_its_reference_pose():
    first = ARM.table()["link"][0]
    first = first | {"torsion": {"GJ": 50.0, "polar_inertia": 2e-3}}
    first["dh"] = first["dh"] | {"alpha": 0.4}
    links = [first, *ARM.table()["link"][1:]]
    arm = Arm.model_validate(ARM.table() | {"name": "x", "link": links})
    pose = assemble_pose_plant(arm, BasisChoice(order=1))
    fixed = assemble_plant(arm, BasisChoice(order=1), interpreted=True)
    y = fixed.straight([0.0, np.pi / 4, np.pi / 2])  # the reference pose of links 1 and 2

    assert pose.coordinates == fixed.coordinates
    M = evaluated(pose, "mass_matrix", y)[3:, 3:]
    K = np.array([evaluated(pose, "elastic_force", y + d)[3:] for d in np.eye(pose.n)[3:]])
    model = linearise(fixed, y)
    expected = np.linalg.eigvals(np.linalg.solve(model.M[3:, 3:], model.K[3:, 3:])).real
    found = np.linalg.eigvals(np.linalg.solve(M, K)).real
    assert np.sort(found) == pytest.approx(np.sort(expected), rel=1e-8)


def without_limits():
    last = ARM.links[2]
    limits = last.limits.model_copy(update={"position": None})
    last = last.model_copy(update={"limits": limits})
    return ARM.model_copy(update={"links": (*ARM.links[:2], last)})


@pytest.mark.parametrize(
    ("arm", "basis", "said"),
    [
        (ARM, BasisChoice(kind="elements"), 'basis.kind: expected "modes"'),
        (without_limits(), BasisChoice(), r"link3\.limits\.position: expected the range"),
        (
            apply_settings(ARM, ["link1.masses=[{ x = 0.5, mass = 0.2 }]"]),
            BasisChoice(),
            "link1: expected a uniform link",
        ),
    ],
    ids=["elements", "limits", "masses"],
)
def test_what_cannot_follow_the_pose_is_refused(arm, basis, said):
    with pytest.raises(InputError, match=said):
        assemble_pose_plant(arm, basis)
