"""Slopes of lines: admitted as far as the theory of the beam and the rotation series hold."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flexctl.body.rotation import rotation_matrix
from flexctl.errors import ComputationError, InputError
from flexctl.model.record import BasisChoice
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant
from flexctl.plant.validity import STEEPEST_NODE

LENGTH, DENSITY, RIGIDITY, LOAD = 1.2, 0.5, 4.0, 0.3


def heavy(make, gravity):
    """A level cantilever without foreshortening: its sag is in proportion to gravity."""
    link = {"joint": "revolute", "length": LENGTH, "mass_per_length": DENSITY}
    link |= {"EI": {"y": RIGIDITY}, "foreshortening": False}
    return make["arm"]([link], (0.0, -gravity, 0.0), {"mass": LOAD})


def test_a_slope_of_half_a_radian_is_taken(plant_named):
    assert plant_named("spatial", "elements").pose({"link1.y.node3.slope": 0.5})[10] == 0.5


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("elements", "link1.y.node3.slope", -0.501), ("modes", "link2.x.1", 0.9)],
)
def test_a_pose_beyond_the_theory_of_the_beam_is_refused(plant_named, kind, name, value):
    line = name.rsplit(".", 1)[0] if kind == "modes" else "link1.y"
    with pytest.raises(InputError, match=rf"^pose\.{line}: expected .* 0\.5 rad.* got"):
        plant_named("spatial", kind).pose({name: value})


@pytest.mark.parametrize("free", ["payload.mass", "stiffness_error"])
def test_poses_of_plants_with_free_numbers_are_checked_too(make, free):
    basis = BasisChoice(kind="modes", order=1)
    plant = assemble_plant(heavy(make, 9.81), basis, interpreted=True, parameters=(free,))

    assert plant.pose({"link1.y.1": 0.1})[1] == 0.1
    with pytest.raises(InputError, match=r"^pose\.link1\.y: expected"):
        plant.pose({"link1.y.1": 0.5})


@pytest.mark.parametrize("slope", [0.499, 0.501])
def test_a_sag_beyond_the_theory_of_the_beam_is_no_equilibrium(make, plant_of, slope):
    # EI w'(l) = g (rho l^3/6 + M l^2/2)
    gravity = slope * RIGIDITY / (DENSITY * LENGTH**3 / 6 + LOAD * LENGTH**2 / 2)
    plant = plant_of(heavy(make, gravity), "elements", 2)
    if slope < 0.5:
        found = plant.deflections(linearise(plant).q0)[1]
        assert found == pytest.approx([-slope], rel=1e-8)
        return
    with pytest.raises(ComputationError, match=r"link1\.y sags beyond .* is -0\.501 rad"):
        linearise(plant)


@pytest.mark.parametrize("signs", [(1, 1, 1), (1, -1, 1), (-1, 1, -1)])
def test_the_rotation_of_a_tip_is_exact_as_far_as_slopes_are_admitted(plant_named, signs):
    plant = plant_named("spatial", "elements")
    slopes = [name.endswith(".slope") for name in plant.coordinates]
    reach = plant.valid_range[1][slopes].max()
    phi = reach * np.array(signs)
    x = ca.SX.sym("x", 3)
    R = np.array(ca.Function("R", [x], [ca.densify(rotation_matrix(x))])(phi))

    assert reach == STEEPEST_NODE
    assert pytest.approx(Rotation.from_rotvec(phi).as_matrix(), abs=5e-14) == R
