"""Pinocchio, an independent library, says the same of rigid arms."""

import numpy as np
import pinocchio as pin
import pytest

from benchmarks.libraries.pinocchio_arm import pinocchio_arm

HUB = {"mass": 0.6, "com": [0.03, -0.02, 0.05], "inertia": [0.01, 0.012, 0.015]}
PAYLOAD = {"mass": 0.4, "com": [0.05, 0.02, -0.04], "inertia": [0.002, 0.003, 0.004]}
BASE = {"position": [0.3, -0.2, 0.5], "rotation_vector": [0.7, -1.1, 0.4]}
GRAVITY = (0.8, -3.0, -9.0)


def chain(make, planar, base=None):
    """Six links of unequal lengths, with hubs, joint inertias and a payload."""
    rng, links = np.random.default_rng(5), []
    for j in range(6):
        dh = {"a": rng.uniform(0.2, 0.6)}
        if not planar:
            dh |= {"alpha": rng.uniform(-2, 2), "d": rng.uniform(-0.3, 0.3), "theta": 0.3 * j}
        link = {"joint": "revolute", "dh": dh, "mass_per_length": rng.uniform(0.5, 2)}
        links.append(link | {"hub": HUB, "joint_inertia": 0.05 * j})
    return make["arm"](links, GRAVITY, PAYLOAD, **({"base": base} if base else {}))


RIGID = {
    "rrp": lambda make: make["rrp"](GRAVITY, EI=None),
    "planar": lambda make: chain(make, planar=True),
    "planar-turned": lambda make: chain(make, planar=True, base=BASE),
    "spatial": lambda make: chain(make, planar=False),
    "spatial-turned": lambda make: chain(make, planar=False, base=BASE),
    "hub-and-payload": lambda make: make["two-link"](GRAVITY, EI=None),
}


@pytest.fixture(scope="module", params=[*RIGID, "rigid-sliding"])
def pair(request, make, arms, plant_of):
    """An arm as our plant and as Pinocchio's model."""
    arm = RIGID[request.param](make) if request.param in RIGID else arms[request.param]
    return plant_of(arm), pinocchio_arm(arm).model


@pytest.fixture(params=range(3))
def state(request, pair, random_state):
    """Random q, v, a."""
    return random_state(pair[0], request.param)


def assert_same(found, other):
    """Agree to 1e-10 of the largest entry."""
    assert np.abs(other).max() > 0
    np.testing.assert_allclose(found, other, rtol=0, atol=1e-10 * np.abs(other).max())


@pytest.mark.slow_but("planar-turned-1", "spatial-turned-2", "planar-1")
def test_mass_matrix(pair, state):
    plant, model = pair
    upper = np.triu(pin.crba(model, model.createData(), state[0]))

    assert_same(plant.mass_matrix(state[0]), upper + np.triu(upper, 1).T)


def test_gravity(pair, state):
    plant, model = pair

    assert_same(
        plant.gravity(state[0]), pin.computeGeneralizedGravity(model, model.createData(), state[0])
    )


def test_coriolis_and_centrifugal_forces(pair, state):
    plant, model = pair
    q, v, _ = state
    data = model.createData()
    weight = pin.computeGeneralizedGravity(model, data, q).copy()

    assert_same(plant.bias(q, v), pin.rnea(model, data, q, v, 0 * v) - weight)


def test_inverse_dynamics(pair, state):
    plant, model = pair

    assert_same(plant.inverse_dynamics(*state), pin.rnea(model, model.createData(), *state))


def test_forward_dynamics(pair, state):
    plant, model = pair
    q, v, tau = state

    assert_same(plant.forward_dynamics(q, v, tau), pin.aba(model, model.createData(), q, v, tau))


def test_tip(pair, state):
    plant, model = pair
    data = model.createData()
    pin.framesForwardKinematics(model, data, state[0])

    assert_same(plant.tip(state[0]), data.oMf[model.getFrameId("tip")].translation)


def test_energies(pair, state):
    plant, model = pair
    q, v, _ = state
    data = model.createData()
    kinetic, strain, weight = plant.energies(q, v)
    own = pin.computeKineticEnergy(model, data, q, v)

    assert kinetic == pytest.approx(own, rel=1e-10)
    assert strain == 0
    assert weight == pytest.approx(pin.computePotentialEnergy(model, data, q), rel=1e-10)
