"""What plants return has the shape they state; what has no answer is refused."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from flexctl.errors import FlexctlError, InputError
from flexctl.plant.linearisation import linearise


@pytest.fixture(scope="module")
def rod(make, plant_of):
    """One rigid link: one coordinate, the smallest plant there is."""
    arm = make["arm"]([{"joint": "revolute", "dh": {"a": 1.0}, "mass_per_length": 3.0}])
    return plant_of(arm)


@pytest.mark.parametrize("name", ["hub-file", "rrp", "rigid-sliding"])
@pytest.mark.parametrize(
    ("method", "shape"),
    [
        ("mass_matrix", "nn"),
        ("damping", "nn"),
        ("tangent_stiffness", "nn"),
        ("gravity", "n"),
        ("elastic_force", "n"),
        ("tip", "3"),
        ("tip_jacobian", "3n"),
        ("line_tips", "3m"),
        ("deflections_jacobian", "dn"),
    ],
)
def test_results_have_the_shapes_that_are_stated(name, method, shape, plant_named):
    plant = plant_named(name)
    sizes = {"n": plant.n, "m": plant.m, "3": 3, "d": len(plant.lines)}

    assert getattr(plant, method)(plant.pose()).shape == tuple(sizes[s] for s in shape)


@pytest.mark.parametrize(
    ("method", "shape"),
    [
        ("mass_matrix", (1, 1)),
        ("damping", (1, 1)),
        ("tangent_stiffness", (1, 1)),
        ("tip_jacobian", (3, 1)),
        ("line_tips", (3, 1)),
    ],
)
def test_results_of_a_plant_with_one_coordinate_are_not_squeezed(method, shape, rod):
    assert getattr(rod, method)(rod.pose()).shape == shape


def test_a_rigid_rod_has_its_moment_of_inertia_and_can_be_linearised(rod):
    lin = linearise(rod, {"joint1": 0.2})

    assert pytest.approx(np.array([[1.0]])) == lin.M
    assert lin.poles() == pytest.approx(np.zeros(2))


def test_arguments_of_a_wrong_size_are_refused_not_broadcast(plant_named):
    with pytest.raises((FlexctlError, ValueError)):
        plant_named("rrp").tip(np.array([0.7]))


def test_names_are_those_of_the_contract(plant_named):
    assert plant_named("rrp-file", "elements", 1).coordinates == (
        *("joint1", "joint2", "joint3"),
        *("link2.y.node2.deflection", "link2.y.node2.slope"),
        *("link2.z.node2.deflection", "link2.z.node2.slope"),
        *("link3.x.node2.deflection", "link3.x.node2.slope"),
        *("link3.y.node2.deflection", "link3.y.node2.slope"),
    )
    assert plant_named("hub-file").coordinates == ("joint1", "link1.y.1", "link1.y.2")


def test_a_named_pose_sets_what_it_names(plant_named):
    plant = plant_named("rrp")
    q = plant.pose({"joint2": 0.4, "link3.y.2": 1e-3})

    assert q[1] == 0.4
    assert q[plant.coordinates.index("link3.y.2")] == 1e-3
    assert np.count_nonzero(q) == 3  # and the sliding link, which has no zero pose


def test_an_unknown_coordinate_of_a_pose_is_refused_with_the_nearest(plant_named):
    with pytest.raises(InputError, match=r"joint9.*joint"):
        plant_named("rrp").pose({"joint9": 0.3})


@pytest.mark.parametrize("value", [1.31, 0.0, -0.2, np.nan])
def test_a_sliding_link_beyond_its_beam_is_refused(value, plant_named):
    with pytest.raises(InputError, match="joint3"):
        plant_named("rrp").pose({"joint3": value})


@pytest.mark.parametrize("key", ["joint1", "link2.y.1"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pose_that_is_no_number_is_refused(key, value, plant_named):
    with pytest.raises(InputError, match=key):
        plant_named("rrp").pose({key: value})


def test_a_sliding_link_may_be_all_outside_its_hub(plant_named):
    assert plant_named("rrp").pose({"joint3": 1.3})[2] == 1.3


def test_an_arm_without_inertia_has_no_accelerations(make, plant_of):
    plant = plant_of(make["arm"]([{"joint": "revolute", "dh": {"a": 1.0}}]))

    with pytest.raises(FlexctlError):
        plant.forward_dynamics(np.zeros(1), np.zeros(1), np.ones(1))


@pytest.mark.parametrize("vector", [[0.0, 0.0, 7.0], [0.5, -0.4, 0.3], [4.0, 4.0, 4.0]])
def test_the_base_stands_as_its_rotation_vector_says(vector, make, plant_of):
    # also beyond half a turn: a rotation vector is any three numbers
    links = [{"joint": "revolute", "dh": {"a": 1.0, "d": 0.2}, "mass_per_length": 1.0}]
    plant = plant_of(make["arm"](links, base={"rotation_vector": vector}))
    expected = Rotation.from_rotvec(vector).apply([1.0, 0.0, 0.2])

    assert plant.tip(np.zeros(1)) == pytest.approx(expected, abs=1e-12)
