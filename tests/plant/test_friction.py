"""Friction of the joints as forces of a plant, on either side of the springs."""

import numpy as np
import pytest

from flexctl.errors import InputError
from flexctl.plant.parameters import nonzero_numbers
from flexctl.plant.plant import assemble_plant

pytestmark = pytest.mark.usefixtures("no_compiler")

MOTOR = {"viscous": 1e-3, "coulomb": 0.02, "static": 0.03, "stribeck_velocity": 2.0}
MOTOR |= {"smoothing_velocity": 0.1}
LINK = {"viscous": 0.3, "coulomb": 1.5, "smoothing_velocity": 0.02, "side": "link"}
GEAR = 50.0


@pytest.fixture(scope="module")
def arm(make):
    """A flexible link on a carried rotor that rubs, then a rigid one that rubs behind its spring,
    then a sliding one."""
    spring = {"rotor_inertia": 1e-4, "gear": GEAR, "stiffness": 500.0, "damping": 0.3}
    line = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0}
    links = [
        line | {"EI": {"y": 40.0}, "flexible_joint": spring | {"carried": True}, "friction": MOTOR},
        line | {"dh": {"a": 1.0, "alpha": 1.0}, "flexible_joint": spring, "friction": LINK},
        {"joint": "prismatic", "hub": {"mass": 0.7}, "friction": LINK | {"side": "motor"}},
    ]
    return make["arm"](links, (0.0, -9.81, 0.0), {"mass": 0.3})


@pytest.fixture(scope="module", params=["recursion", "lagrange"])
def plant(arm, request):
    free = nonzero_numbers(arm)
    return assemble_plant(arm, modes=2, engine=request.param, interpreted=True, parameters=free)


@pytest.fixture(scope="module")
def state(arm):
    rng = np.random.default_rng(4)
    n = assemble_plant(arm, modes=2, interpreted=True).n
    q = rng.normal(size=n) * np.r_[np.full(5, 0.5), np.full(n - 5, 1e-3)]
    return q, rng.normal(size=n) * 0.03, rng.normal(size=3)


def friction(v):
    """Forces (n,) by hand: joints 0 to 2, rotors 3 and 4, modes."""

    def F(own, rate):
        level = own["coulomb"]
        if "static" in own:
            drop = np.exp(-((rate / own["stribeck_velocity"]) ** 2))
            level += (own["static"] - own["coulomb"]) * drop
        return own["viscous"] * rate + level * np.tanh(rate / own["smoothing_velocity"])

    force = np.zeros(len(v))
    force[3] = GEAR * F(MOTOR, GEAR * v[3])
    force[1], force[2] = F(LINK, v[1]), F(LINK, v[2])
    return force


def test_inverse_dynamics_have_the_friction_of_the_hand_made_formula(plant, state):
    q, v, _ = state
    a = np.linspace(-1.0, 1.0, plant.n)
    added = plant.inverse_dynamics(q, v, a) - plant.without_friction.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(added, friction(v), atol=1e-10)


def test_forward_dynamics_undo_inverse_dynamics(plant, state):
    q, v, tau = state
    a = plant.forward_dynamics(q, v, tau)
    force = plant.inverse_dynamics(q, v, a)
    np.testing.assert_allclose(force, plant.B @ tau, atol=1e-8)


def test_both_engines_agree(arm, state):
    q, v, tau = state
    one, other = (
        assemble_plant(arm, modes=2, engine=engine, interpreted=True).forward_dynamics(q, v, tau)
        for engine in ("recursion", "lagrange")
    )
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_dissipation_is_the_power_of_damping_and_friction(plant, state):
    q, v, tau = state
    _, power = plant.casadi_functions["power"](q, v, tau, plant.numbers)
    damping = plant.without_friction.damping(q)
    assert float(power) == pytest.approx(v @ damping @ v + v @ friction(v), rel=1e-12)


def test_momentum_balance_has_the_friction(plant, state):
    q, v, tau = state
    _, force = plant.casadi_functions["momentum"](q, v, tau, plant.numbers)
    without = plant.without_friction.casadi_functions["momentum"](q, v, tau, plant.numbers)[1]
    np.testing.assert_allclose(
        np.array(without - force).ravel(), friction(v), atol=1e-9 * abs(tau).max()
    )


def test_newtons_matrix_has_the_true_slope_of_friction(plant, state):
    q, v, _ = state
    n, h = plant.n, 1e-6
    _, D, _ = (np.array(part) for part in plant.casadi_functions["terms"](q, v, plant.numbers))
    sides = [friction(v + s * h) for s in np.eye(n)], [friction(v - s * h) for s in np.eye(n)]
    slope = (np.array(sides[0]) - np.array(sides[1])).T / (2 * h)
    expected = plant.without_friction.damping(q) + slope
    np.testing.assert_allclose(D, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_linear_models_keep_viscous_friction_alone(plant, state):
    q, v, tau = state
    viscous = np.zeros(plant.n)
    viscous[[3, 1, 2]] = GEAR**2 * MOTOR["viscous"], LINK["viscous"], LINK["viscous"]
    D = plant.damping(q)
    np.testing.assert_allclose(D - plant.without_friction.damping(q), np.diag(viscous), atol=1e-12)
    M = plant.mass_matrix(q)
    np.testing.assert_allclose(M @ plant.derivatives_at_rest(q)[1], -D, atol=1e-8 * D.max())
    still = plant.derivatives(q, 0 * v, tau)[1]  # also where tanh is steepest
    np.testing.assert_allclose(M @ still, -D, atol=1e-8 * D.max())


def test_numbers_of_friction_are_free(arm, plant, state):
    values = {"link1.friction.static": 0.05, "link2.friction.coulomb": 0.7}
    values |= {"link3.friction.viscous": 0.9, "link1.friction.stribeck_velocity": 1.0}
    q, v, tau = state
    table = arm.table()
    for key, value in values.items():
        link, _, number = key.split(".")
        table["link"][int(link[-1]) - 1]["friction"][number] = value
    anew = assemble_plant(
        type(arm).model_validate({**table, "name": "arm"}), modes=2, interpreted=True
    )
    np.testing.assert_allclose(
        plant.at(values).forward_dynamics(q, v, tau), anew.forward_dynamics(q, v, tau), rtol=1e-8
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"link1.friction.static": 0.01}, "static: expected at least coulomb"),
        ({"link1.friction.stribeck_velocity": 0.0}, "expected a number above 0"),
        ({"link1.friction.smoothing_velocity": 3.0}, "expected less than stribeck_velocity"),
        ({"link1.friction.coulomb": -0.1}, "expected a number of at least 0"),
    ],
)
def test_free_numbers_that_do_not_fit_are_refused(plant, values, message):
    with pytest.raises(InputError, match=message):
        plant.at(values)


def test_a_plant_without_friction_shares_nothing_with_it(arm):
    plant = assemble_plant(arm, modes=1, interpreted=True)
    without = plant.without_friction
    assert without.content != plant.content
    assert without.without_friction is without
