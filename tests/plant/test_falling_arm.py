"""An arm held at its drives stands or falls by its springs: both sides of the known limit."""

import numpy as np
import pytest

from flexctl.errors import ComputationError
from flexctl.plant.linearisation import linearise

G, LENGTH, MASS, PAYLOAD = 9.81, 0.6, 0.8, 0.5
UP = np.pi / 2
CRITICAL = G * LENGTH * (MASS / 2 + PAYLOAD)  # moment per angle of what stands upright


def rod(**more):
    link = {"joint": "revolute", "length": LENGTH, "dh": {"a": LENGTH}}
    return link | {"mass_per_length": MASS / LENGTH, "joint_inertia": 0.01} | more


def spring(stiffness):
    return {"rotor_inertia": 0.02, "gear": 5.0, "stiffness": stiffness}


def one(stiffness):
    return [rod(flexible_joint=spring(stiffness))], [UP]


def on_a_rigid_joint(stiffness):
    return [rod(), rod(flexible_joint=spring(stiffness))], [UP, 0.0]


def on_a_bending_link(stiffness):
    return [rod(EI={"y": 1e6}), rod(flexible_joint=spring(stiffness))], [UP, 0.0]


@pytest.mark.parametrize("links", [one, on_a_rigid_joint, on_a_bending_link])
def test_a_spring_holds_what_stands_on_it_from_its_moment_on(make, plant_of, links):
    for factor in (0.99, 1.01):
        table, pose = links(factor * CRITICAL)
        arm = make["arm"](table, (0.0, -G, 0.0), {"mass": PAYLOAD})
        plant = plant_of(arm, "modes", 1)
        q = plant.straight(np.array(pose))
        if factor < 1:
            with pytest.raises(ComputationError, match="joints' stiffness"):
                linearise(plant, q)
        else:
            assert linearise(plant, q).tau0.shape == (len(table),)


def test_a_hanging_arm_needs_no_stiffness_to_speak_of(make, plant_of):
    table, _ = one(1e-3 * CRITICAL)
    plant = plant_of(make["arm"](table, (0.0, -G, 0.0), {"mass": PAYLOAD}), "modes", 1)
    assert linearise(plant, plant.straight(np.array([-UP]))).K[0, 0] > CRITICAL
