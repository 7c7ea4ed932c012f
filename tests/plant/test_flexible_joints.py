"""Joints with rotors and springs, against closed forms, a chain that has the rotor as a link, and
the rigid joint that a stiff spring tends to."""

import numpy as np
import pytest

from flexctl.plant.linearisation import linearise
from tests.arms import chain_plant

BEAM = {"joint": "revolute", "length": 0.5, "mass_per_length": 0.2, "EI": {"y": 1.0}}
TWISTED = BEAM | {"dh": {"alpha": 0.8}, "EI": {"y": 1.0, "z": 2.0}}
LOAD = {"mass": 0.1, "com": [0.02, 0.01, 0.0], "inertia": [0.001, 0.002, 0.0025]}
HUB = {"mass": 0.3, "com": [0.02, 0.0, 0.01], "inertia": [0.001, 0.001, 0.0015]}


def rotor(**changes):
    return {"flexible_joint": {"rotor_inertia": 0.02, "stiffness": 100.0} | changes}


def state(plant, seed=3):
    """Random q, v and a (n,): joints anywhere, springs wound up, links bent a little."""
    rng = np.random.default_rng(seed)
    q = np.append(rng.normal(size=plant.rigid), 0.02 * rng.normal(size=plant.n - plant.rigid))
    return q, rng.normal(size=plant.n), rng.normal(size=plant.n)


def test_names_say_which_joint_a_rotor_drives():
    plant = chain_plant([BEAM, BEAM | rotor(), BEAM])

    assert plant.coordinates[:5] == ("joint1", "joint2", "joint3", "rotor2", "link1.y.1")
    assert plant.drives == (0, 3, 2)


@pytest.mark.parametrize("gear", [1.0, 7.0])
def test_a_rigid_link_on_a_spring_is_a_two_mass_oscillator(gear):
    rod = {"joint": "revolute", "dh": {"a": 0.5}, "mass_per_length": 0.6}
    plant = chain_plant([rod | rotor(gear=gear)])
    arm, J, k = 0.6 * 0.5**3 / 3, gear**2 * 0.02, 100.0
    linear = linearise(plant)

    assert linear.frequencies()[1] == pytest.approx(np.sqrt(k * (1 / arm + 1 / J)), rel=1e-12)
    held = linear.frequencies(np.array([True, False]))
    assert held == pytest.approx([np.sqrt(k / arm)], rel=1e-12)


def test_the_springs_damper_takes_what_its_rates_differ_by():
    plant = chain_plant([BEAM | rotor(damping=0.3)])
    v = np.array([0.7, -0.4, 0.0, 0.0])

    assert v @ plant.damping(np.zeros(4)) @ v == pytest.approx(0.3 * 1.1**2, rel=1e-14)


# A carried rotor with gear 1 is a link of its own: carrier - rotor joint - joint between rotor and
# link. That chain has beta = theta - alpha in the place of theta, and no spring.
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.slow_but("1")
def test_a_carried_rotor_is_a_link_between_its_neighbours(place):
    links = [TWISTED, TWISTED | {"hub": HUB}, TWISTED]
    sprung = [*links]
    sprung[place] = links[place] | rotor(carried=True)
    spindle = {"joint": "revolute", "hub": {"inertia": [0.0, 0.0, 0.02]}}
    chain = chain_plant([*links[:place], spindle, *links[place:]], payload=LOAD)
    plant = chain_plant(sprung, payload=LOAD)
    q, v, _ = state(plant)
    T = np.zeros((plant.n, plant.n))  # from (theta, alpha, delta) to the chain's coordinates
    T[:place, :place] = np.eye(place)
    T[place, 3] = 1.0
    T[place + 1, [place, 3]] = 1.0, -1.0
    T[place + 2 : 4, place + 1 : 3] = np.eye(2 - place)
    T[4:, 4:] = np.eye(plant.n - 4)

    M, h = chain.mass_matrix(T @ q), chain.bias(T @ q, T @ v)
    assert plant.mass_matrix(q) == pytest.approx(T.T @ M @ T, rel=1e-11, abs=1e-14)
    assert plant.bias(q, v) == pytest.approx(T.T @ h, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("carried", [False, True])
def test_the_momentum_of_a_geared_rotor_counts_its_turns_on_the_carrier(carried):
    # planar: the second rotor's carrier turns with theta1' and the slope's rate at its tip
    free = chain_plant([BEAM, BEAM])
    plant = chain_plant([BEAM, BEAM | rotor(gear=5.0, carried=carried)])
    q, v, _ = state(plant)
    others = np.delete(np.arange(plant.n), 2)
    ahead, behind = (plant.deflections(q + h * v)[1][0] for h in (1e-6, -1e-6))
    turn = 5.0 * v[2] + carried * (v[0] + (ahead - behind) / 2e-6)
    own = plant.energies(q, v)[0] - free.energies(q[others], v[others])[0]

    assert own == pytest.approx(0.02 * turn**2 / 2, rel=1e-8)


@pytest.mark.parametrize("carried", [False, True])
def test_without_strain_the_arm_is_the_one_with_rigid_joints(carried):
    if carried:  # gear 1: the rotor then turns with its link
        hub = {"hub": {"inertia": [0.0, 0.0, 0.02]}}
        rigid = chain_plant([TWISTED | hub, TWISTED | hub], gravity=(0.0, -9.81, 1.0), payload=LOAD)
    else:
        rigid = chain_plant(
            [TWISTED | {"joint_inertia": 0.02}] * 2, gravity=(0.0, -9.81, 1.0), payload=LOAD
        )
    plant = chain_plant(
        [TWISTED | rotor(carried=carried)] * 2, gravity=(0.0, -9.81, 1.0), payload=LOAD
    )
    q, v, a = state(rigid)
    S = np.insert(np.eye(rigid.n), 2, np.eye(rigid.n)[:2], axis=0)  # rotors with their joints

    found = S.T @ plant.inverse_dynamics(S @ q, S @ v, S @ a)
    assert found == pytest.approx(rigid.inverse_dynamics(q, v, a), rel=1e-11, abs=1e-12)


def test_frequencies_tend_to_those_of_rigid_joints_as_one_over_the_stiffness():
    rigid = linearise(chain_plant([BEAM | {"joint_inertia": 0.02}] * 2, payload=LOAD)).frequencies()
    stiffness = np.array([1e5, 1e6, 1e7])  # past 2e3, where springs are as fast as the modes
    found = [
        linearise(chain_plant([BEAM | rotor(stiffness=k)] * 2, payload=LOAD)).frequencies()
        for k in stiffness
    ]
    error = np.array([np.abs(w[2:6] / rigid[2:6] - 1).max() for w in found])

    assert -np.polyfit(np.log(stiffness), np.log(error), deg=1)[0] == pytest.approx(1, abs=0.02)


def test_under_gravity_springs_wind_up_by_the_torque_that_holds_the_joint():
    plant = chain_plant([BEAM | {"EI": {"y": 30.0}} | rotor()] * 2, gravity=(0.0, -9.81, 0.0))
    linear = linearise(plant, {"joint1": 0.3, "joint2": -0.8})
    rest = np.zeros(plant.n)

    wind_up = linear.q0[2:4] - linear.q0[:2]
    assert wind_up == pytest.approx(linear.tau0 / 100.0, rel=1e-12)
    balance = plant.inverse_dynamics(linear.q0, rest, rest) - plant.B @ linear.tau0
    assert np.abs(balance).max() < 1e-13
    assert linear.q0[:2] == pytest.approx([0.3, -0.8], rel=1e-15)


@pytest.mark.parametrize("carried", [False, True])
def test_a_sliding_joint_has_a_rotor_too(carried):
    slide = {"joint": "prismatic", "total_length": 0.9, "mass_per_length": 0.4, "EI": {"y": 3.0}}
    screw = rotor(gear=200.0, rotor_inertia=1e-4, stiffness=5e3, carried=carried)
    plant = chain_plant([BEAM | {"dh": {"alpha": 0.4}}, slide | screw], payload=LOAD)
    q, v, a = state(plant)
    q[1], q[2] = 0.5, 0.51
    force = plant.inverse_dynamics(q, v, a)

    own = 1e-4 * 200.0**2 * a[2] + 5e3 * 0.01
    if not carried:
        assert force[2] == pytest.approx(own, rel=1e-12)
    tau = np.array([0.3, -4.0])
    again = plant.inverse_dynamics(q, v, plant.forward_dynamics(q, v, tau))
    assert np.abs(again - plant.B @ tau).max() < 1e-9
