"""Horizontal arms under gravity sag and pull as beam theory says."""

import numpy as np
import pytest

from flexctl.plant.equilibrium import find_equilibrium
from flexctl.plant.linearisation import linearise

LENGTH, DENSITY, RIGIDITY, LOAD = 1.2, 0.5, 40.0, 0.3
WEAK = 1e-4  # so weak a gravity that deflections are small: squares of slopes about 1e-10


def cantilever(make, direction, gravity):
    link = {"joint": "revolute", "length": LENGTH, "mass_per_length": DENSITY}
    link |= {"EI": {direction: RIGIDITY}}
    return make["arm"]([link], gravity, {"mass": LOAD})


@pytest.mark.parametrize(
    ("direction", "down"), [("y", (0.0, -WEAK, 0.0)), ("z", (0.0, 0.0, -WEAK))]
)
def test_a_horizontal_cantilever_sags_as_beam_theory_says(direction, down, make, plant_of):
    plant = plant_of(cantilever(make, direction, down), "elements", 2)
    lin = linearise(plant, {"joint1": 0.0})
    sag = WEAK * (DENSITY * LENGTH**4 / 8 + LOAD * LENGTH**3 / 3) / RIGIDITY
    slope = WEAK * (DENSITY * LENGTH**3 / 6 + LOAD * LENGTH**2 / 2) / RIGIDITY
    deflection, tip_slope = plant.deflections(lin.q0)

    # cubic elements are exact at their nodes, whatever their number
    assert deflection == pytest.approx([-sag], rel=1e-8)
    assert tip_slope == pytest.approx([-slope], rel=1e-8)
    assert plant.tip(lin.q0)["xyz".index(direction)] == pytest.approx(-sag, rel=1e-8)


def test_the_holding_torque_is_the_moment_of_the_weights(make, plant_of):
    plant = plant_of(cantilever(make, "y", (0.0, -WEAK, 0.0)), "elements", 2)
    moment = WEAK * (DENSITY * LENGTH**2 / 2 + LOAD * LENGTH)

    assert linearise(plant, {"joint1": 0.0}).tau0 == pytest.approx([moment], rel=1e-8)


def test_a_sliding_arm_sags_with_its_free_length_and_is_held_by_its_weight(make, plant_of):
    link = {"joint": "prismatic", "total_length": 1.5, "mass_per_length": DENSITY}
    link |= {"EI": {"x": RIGIDITY, "y": RIGIDITY}}
    arm = make["arm"]([link], (-WEAK, 0.0, -2.0), {"mass": LOAD})
    plant = plant_of(arm, "elements", 2)
    lin = linearise(plant, {"joint1": 0.9})
    sag = WEAK * (DENSITY * 0.9**4 / 8 + LOAD * 0.9**3 / 3) / RIGIDITY
    # the pull 2 m/s^2 inwards presses the beam: it sags by a little more than without
    pressed = 2.0 * (DENSITY * 0.9 + LOAD) * 0.9**2 / RIGIDITY

    assert -plant.deflections(lin.q0)[0][0] == pytest.approx(sag, rel=pressed)
    assert -plant.deflections(lin.q0)[0][0] > sag
    assert plant.deflections(lin.q0)[0][1] == pytest.approx(0, abs=1e-14)
    assert lin.tau0 == pytest.approx([2.0 * (DENSITY * 1.5 + LOAD)], rel=1e-8)


@pytest.mark.parametrize("name", ["rrp", "two-link", "spatial", "sliding-first"])
@pytest.mark.slow_but("two-link", "sliding-first")
def test_holding_torques_do_the_work_of_the_weights_as_the_joints_turn(
    name, plant_named, witness_of
):
    # dV/dq_j at rest, the elastic coordinates being in equilibrium: no strain, no work of theirs
    plant, points = plant_named(name), witness_of(name)
    lin = linearise(plant)
    V = points.gradient(points.weight_energy, lin.q0) + points.gradient(points.strain, lin.q0)

    assert lin.tau0 == pytest.approx(V[: plant.m], abs=1e-9 * np.abs(V[: plant.m]).max())
    assert np.abs(V[plant.m :]).max() < 1e-9 * np.abs(plant.gravity(lin.q0)).max()


def test_a_hanging_beam_swings_faster_and_a_standing_one_slower(make, plant_of):
    # Axial load: w^2 changes by g times a positive form; only foreshortening can show it.
    def clamped(angle):
        plant = plant_of(cantilever(make, "y", (9.81, 0.0, 0.0)), "elements", 4)
        return linearise(plant, {"joint1": angle}).frequencies(np.arange(plant.n) > 0)[0]

    hanging, level, standing = clamped(0.0) ** 2, clamped(np.pi / 2) ** 2, clamped(np.pi) ** 2
    assert hanging > level > standing


def test_a_standing_beam_buckles_under_greenhills_weight(make, plant_of):
    # rho g l^3 / EI = 7.8373 (Greenhill 1881): the stiffness of the upright beam is singular
    link = {"joint": "revolute", "length": 1.0, "mass_per_length": 1.0, "EI": {"y": 1.0}}

    def lowest(load):
        plant = plant_of(make["arm"]([link], (-load, 0.0, 0.0)), "elements", 4)
        K = plant.tangent_stiffness(np.zeros(plant.n))[1:, 1:]
        return np.linalg.eigvalsh(K)[0]

    assert lowest(7.8373 * 0.999) > 0 > lowest(7.8373 * 1.001)


def test_an_equilibrium_that_is_known_cannot_be_changed_by_who_asked_for_it(make, plant_of):
    plant = plant_of(cantilever(make, "y", (0.0, -9.81, 0.0)), "elements", 2)
    q, tau = find_equilibrium(plant, np.zeros(plant.n))
    kept = q.copy(), tau.copy()
    q += 1.0
    tau += 1.0
    for again, expected in zip(find_equilibrium(plant, np.zeros(plant.n)), kept, strict=True):
        np.testing.assert_array_equal(again, expected)
