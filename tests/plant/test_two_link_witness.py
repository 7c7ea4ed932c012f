"""The plant of planar two-link arms against a derivation by hand that shares no code with it."""

from functools import cache

import numpy as np
import pytest

from tests.arms import make_arm, plant_of
from tests.plant.two_link_witness import Link, TwoLink

SM = {"length": 0.5, "rho": 0.2, "EI": 1.0}  # [SM02], table 1
SM_LOAD = {"payload_mass": 0.1, "payload_inertia": 0.005, "include": "MJD"}
ONE = {"length": 0.63, "rho": 0.37, "EI": 2.3, "damping_ratio": 0.03}
ONE |= {"hub_mass": 0.8, "hub_inertia": 0.011, "joint_inertia": 0.04}
TWO = {"length": 0.41, "rho": 0.23, "EI": 0.9, "damping_ratio": 0.07}
TWO |= {"hub_mass": 0.6, "hub_inertia": 0.017, "joint_inertia": 0.025}
LOAD = {"payload_mass": 0.13, "payload_inertia": 0.0021, "theta_2": 0.9}

ROTOR = {"rotor": (0.02, 1.0, 100.0, 0.0, False)}
SOFT = {"rotor": (0.003, 2.5, 14.0, 0.06, False)}
CARRIED = {"rotor": (0.0008, 6.0, 21.0, 0.09, True)}

ARMS = {
    "sm-rigid-joints": TwoLink(
        first=Link(**SM, joint_inertia=0.02), second=Link(**SM, joint_inertia=0.02), **SM_LOAD
    ),
    "random-rigid-joints": TwoLink(first=Link(**ONE), second=Link(**TWO), **LOAD, include="MJD"),
    "random-unloaded-shapes": TwoLink(first=Link(**ONE), second=Link(**TWO), **LOAD),
    "sm": TwoLink(
        first=Link(**SM, **ROTOR), second=Link(**SM, **ROTOR), **SM_LOAD | {"include": "MJDR"}
    ),
    "random-flexible-joints": TwoLink(
        first=Link(**ONE, **CARRIED), second=Link(**TWO, **SOFT), **LOAD, include="MR"
    ),
    "random-carried-rotor": TwoLink(
        first=Link(**ONE, **SOFT), second=Link(**TWO, **CARRIED), **LOAD, include="MJDR"
    ),
    "one-flexible-joint": TwoLink(
        first=Link(**ONE), second=Link(**TWO, **CARRIED), **LOAD, include="MJ"
    ),
    "rigid-drive-in-the-shapes": TwoLink(
        first=Link(**ONE), second=Link(**TWO), **LOAD, include="JR"
    ),
}


def table_of(link, arm):
    """A link's table as a model file holds it."""
    keys = ("rotor_inertia", "gear", "stiffness", "damping", "carried")
    rotor = dict(zip(keys, link.rotor, strict=True)) if link.rotor else None
    load = {"reference_pose": {"joint2": arm.theta_2}, "include": list(arm.include)}
    return {
        "joint": "revolute",
        "length": link.length,
        "mass_per_length": link.rho,
        "EI": {"y": link.EI},
        "damping_ratio": link.damping_ratio,
        "foreshortening": False,
        "hub": {"mass": link.hub_mass, "inertia": [0.0, 0.0, link.hub_inertia]},
        "joint_inertia": link.joint_inertia,
        "tip_load": load,
    } | ({"flexible_joint": rotor} if rotor else {})


@pytest.fixture(scope="module")
def plant():
    """plant(name, engine): flexctl's plant of the witness' arm."""

    @cache
    def made(name, engine):
        arm = ARMS[name]
        payload = {"mass": arm.payload_mass, "inertia": [0.0, 0.0, arm.payload_inertia]}
        links = [table_of(link, arm) for link in (arm.first, arm.second)]
        return plant_of(make_arm(links, payload=payload), engine=engine)

    return made


def state(arm, seed):
    """Random q, v, a (n,) and tau (2,): bent by a tenth, turning fast."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(-0.05, 0.05, arm.n)
    q[:2] = rng.uniform(-3, 3, 2)
    for joint, row, _rotor in arm.rotors:
        q[row] = q[joint] + rng.uniform(-0.2, 0.2)
    return q, rng.normal(size=arm.n), rng.normal(size=arm.n), rng.normal(size=2)


def off(found, expected):
    """Error against the witness, in units of its norm."""
    return np.linalg.norm(found - expected) / np.linalg.norm(expected)


pytestmark = pytest.mark.parametrize("seed", range(5))
on_both_engines = pytest.mark.parametrize("engine", ["recursion", "lagrange"])
on_all_arms = pytest.mark.parametrize("name", ARMS)


@pytest.mark.slow_but(
    "random-unloaded-shapes-recursion-3", "random-unloaded-shapes-recursion-4", "sm-lagrange-2"
)
@on_both_engines
@on_all_arms
def test_the_mass_matrix_is_that_of_the_derivation_by_hand(plant, name, engine, seed):
    q, *_ = state(ARMS[name], seed)

    assert off(plant(name, engine).mass_matrix(q), ARMS[name].mass_matrix(q)) < 1e-11


@pytest.mark.slow_but(
    "random-rigid-joints-lagrange-3",
    "random-rigid-joints-recursion-3",
    "random-unloaded-shapes-lagrange-3",
)
@on_both_engines
@on_all_arms
def test_the_bias_is_that_of_christoffel_symbols_by_hand(plant, name, engine, seed):
    q, v, *_ = state(ARMS[name], seed)

    assert off(plant(name, engine).bias(q, v), ARMS[name].bias(q, v)) < 1e-11


@on_both_engines
@on_all_arms
def test_inverse_dynamics_are_those_of_the_derivation_by_hand(plant, name, engine, seed):
    q, v, a, _ = state(ARMS[name], seed)
    found = plant(name, engine).inverse_dynamics(q, v, a)

    assert off(found, ARMS[name].inverse_dynamics(q, v, a)) < 1e-11


@pytest.mark.slow_but(
    "random-carried-rotor-recursion-2",
    "random-rigid-joints-lagrange-2",
    "random-carried-rotor-lagrange-1",
)
@on_both_engines
@on_all_arms
def test_forward_dynamics_are_those_of_the_derivation_by_hand(plant, name, engine, seed):
    q, v, _, tau = state(ARMS[name], seed)
    found = plant(name, engine).forward_dynamics(q, v, tau)

    assert off(found, ARMS[name].forward_dynamics(q, v, tau)) < 1e-11
