"""The recursion against Lagrange's equations, which it shares no formula of motion with."""

import casadi as ca
import numpy as np
import pytest

from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.plant import assemble_plant

N_STATES = 200
HUB = {"mass": 7.0, "com": [0.3, -0.2, 0.1], "inertia": [1.1, 1.2, 1.5]}
PAYLOAD = {"mass": 30.0, "com": [0.2, 0.1, -0.3], "inertia": [2.0, 3.0, 4.0]}


def bare(arm, make, foreshortening):
    """Return the arm as it is, but for foreshortening."""
    table = arm.model_dump(by_alias=True, exclude_unset=True)
    for link in table["link"]:
        link["foreshortening"] = foreshortening
    return make["arm"](table["link"], tuple(table["gravity"]), table.get("payload"))


def laden(arm, make, foreshortening):
    """Return the arm with gravity, a payload, and hubs, joint inertia and damping everywhere."""
    table = bare(arm, make, foreshortening).model_dump(by_alias=True, exclude_unset=True)
    for link in table["link"]:
        link |= {"hub": HUB, "joint_inertia": 2.5, "damping_ratio": 0.02}
    return make["arm"](table["link"], (1.0, -9.0, 4.0), PAYLOAD)


def sprung(arm, make, foreshortening):
    """Return the laden arm with springs at all joints but one, every second rotor carried."""
    table = laden(arm, make, foreshortening).model_dump(by_alias=True, exclude_unset=True)
    for j, link in enumerate(table["link"]):
        if j != 1:
            rotor = {"rotor_inertia": 0.7, "gear": 3.0, "carried": j % 2 == 0}
            link["flexible_joint"] = rotor | {"stiffness": 400.0, "damping": 5.0}
    return make["arm"](table["link"], (1.0, -9.0, 4.0), PAYLOAD)


def mixed(make):
    """Rigid and flexible links in turn: one on its axis, one that slides, one bent in one plane."""
    first = {"joint": "revolute", "dh": {"alpha": 1.2, "d": 0.4}, "mass_per_length": 9.0}
    second = {"joint": "revolute", "length": 0.8, "mass_per_length": 2.0, "dh": {"alpha": -0.7}}
    second |= {"EI": {"y": 90.0, "z": 60.0}}
    third = {"joint": "prismatic", "dh": {"a": 0.2, "alpha": 0.8}, "total_length": 0.9}
    third |= {"mass_per_length": 3.0}
    fourth = {"joint": "revolute", "length": 0.6, "mass_per_length": 1.0, "EI": {"z": 20.0}}
    fifth = {"joint": "revolute", "dh": {"a": 0.3, "d": 0.1}, "mass_per_length": 1.5}
    return make["arm"]([first, second, third, fourth, fifth])


ARMS = {
    "planar-canadarm": (lambda _: load_model("mohan-saha-canadarm"), "modes"),
    "spatial-canadarm": (lambda _: load_model("mohan-saha-canadarm-spatial"), "modes"),
    "rrp-modes": (lambda make: make["rrp"](), "modes"),
    "rrp-elements": (lambda make: make["rrp"](), "elements"),
    "mixed": (mixed, "modes"),
}


def states(plant):
    """Random q, v, a (n, N) and tau (m, N): bent by about a hundredth of a length, turning fast."""
    rng = np.random.default_rng(7)
    shape = (plant.n, N_STATES)
    q, v, a = rng.uniform(-0.02, 0.02, shape), rng.normal(size=shape), rng.normal(size=shape)
    for j, link in enumerate(plant.arm.links):
        free = link.length * rng.uniform(0.35, 0.95, N_STATES) - link.dh.d
        q[j] = free if link.joint == "prismatic" else rng.uniform(-3, 3, N_STATES)
    return q, v, a, 100 * rng.normal(size=(plant.m, N_STATES))


def evaluate(plant, name, *signals):
    """Results (k, N), of a matrix its entries column by column."""
    function = plant.casadi_functions[name]
    inputs = function.sx_in()
    column = ca.Function(name, inputs, [ca.vec(function(*inputs))])
    return np.array(column.map(N_STATES)(*signals))


@pytest.fixture(scope="module")
def found(make):
    """found(name, change, foreshortening): results of both engines by function, made once."""
    made = {}

    def results(name, change, foreshortening):
        key = (name, change, foreshortening)
        if key not in made:
            arm, kind = ARMS[name][0](make), ARMS[name][1]
            arm = change(arm, make, foreshortening)
            basis = BasisChoice(kind=kind, order=2)
            made[key] = [
                _of(assemble_plant(arm, basis, engine=e)) for e in ("recursion", "lagrange")
            ]
        return made[key]

    return results


def _of(plant):
    q, v, a, tau = states(plant)
    signals = {
        "forward_dynamics": (q, v, tau),
        "inverse_dynamics": (q, v, a),
        "mass_matrix": (q,),
        "bias": (q, v),
    }
    return {name: evaluate(plant, name, *given) for name, given in signals.items()}


@pytest.mark.slow_but("inverse_dynamics-planar-canadarm-s*")
@pytest.mark.parametrize("foreshortening", [True, False])
@pytest.mark.parametrize("change", [bare, laden, sprung])
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize(
    "function", ["forward_dynamics", "inverse_dynamics", "mass_matrix", "bias"]
)
def test_recursion_and_lagrange_agree_at_random_states(
    found, name, change, foreshortening, function
):
    recursion, lagrange = (r[function] for r in found(name, change, foreshortening))
    error = np.linalg.norm(recursion - lagrange, axis=0) / np.linalg.norm(lagrange, axis=0)

    assert error.max() < 1e-11
