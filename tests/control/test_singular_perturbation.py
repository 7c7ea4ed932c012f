"""Two time scales of several arms: closed forms and identities."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from flexctl.control.singular_perturbation import separate_time_scales, slow_fast_map
from flexctl.errors import InputError
from flexctl.plant.linearisation import linearise
from tests.arms import plant_of
from tests.two_scales import ARMS, HEAVY, arm_of, pose_of, stiff_twin

EVERY = [*ARMS, *HEAVY]
ANGLES = ["link", "rotor"]


@cache
def plant_named(name, **more):
    return plant_of(arm_of(name), **more)


@cache
def scales_of(name, angle="rotor", **more):
    plant = plant_named(name, **more)
    return plant, separate_time_scales(plant, pose_of(plant.arm), angle)


@pytest.mark.slow_but("heavy-spatial-rotor", "mixed-rotor", "rigid-links-rotor")
@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", EVERY)
def test_slow_motions_strain_nothing(name, angle):
    plant, scales = scales_of(name, angle)
    K = plant.elastic_stiffness(plant.straight(pose_of(plant.arm)))
    assert np.abs(K @ scales.T[:, : plant.m]).max() <= 1e-12 * np.abs(K).max()


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", EVERY)
def test_torques_act_on_the_slow_coordinates_as_on_a_rigid_arm(name, angle):
    plant, scales = scales_of(name, angle)
    np.testing.assert_array_equal(scales.B_T[: plant.m], np.eye(plant.m))


@pytest.mark.parametrize("name", EVERY)
def test_the_fast_subsystem_is_the_same_beside_either_angle(name):
    (_, a), (_, b) = (scales_of(name, angle) for angle in ANGLES)
    parts = [np.hstack([s.H_f, s.b_f, s.K_z, s.D_z]) for s in (a, b)]
    np.testing.assert_allclose(parts[0], parts[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ARMS)
def test_fast_frequencies_are_the_natural_ones_of_the_free_arm(name):
    # at rest without gravity the free joints are cyclic, so nothing is left out
    plant, scales = scales_of(name)
    found = np.sort(np.sqrt(np.linalg.eigvals(scales.H_f @ scales.K_z).real))
    natural = linearise(plant, plant.straight(pose_of(plant.arm))).frequencies()
    np.testing.assert_allclose(found, natural[plant.m :], rtol=1e-7)


@pytest.mark.parametrize("name", ["subudhi-morris", "rigid-links", "sliding"])
def test_the_slow_mass_is_that_of_the_arm_with_rigid_joints(name):
    _, scales = scales_of(name)
    twin = stiff_twin(arm_of(name))
    np.testing.assert_allclose(
        scales.M_s, plant_of(twin).mass_matrix(pose_of(twin)), rtol=1e-12, atol=1e-14
    )


@pytest.mark.parametrize("name", HEAVY)
def test_gravity_is_part_of_the_slow_subsystem(name):
    plant, scales = scales_of(name)
    joints, S, step = pose_of(plant.arm), plant.straight(np.eye(plant.m)), 1e-6
    columns = [
        S.T @ (plant.gravity(S @ (joints + d)) - plant.gravity(S @ (joints - d))) / (2 * step)
        for d in step * np.eye(plant.m)
    ]
    np.testing.assert_allclose(scales.G_s, np.array(columns).T, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ARMS)
def test_gravity_is_none_of_the_fast_subsystem(name):
    _, scales = scales_of(name)
    assert not scales.G_s.any()


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize("name", ARMS)
def test_the_manifold_balances_the_slow_motion(name, angle):
    # the nonlinear inverse dynamics of the bent arm leaves no force that is not a torque's
    plant, scales = scales_of(name, angle)
    u = 1e-6 * np.arange(1, plant.m + 1)
    z, S = scales.manifold @ u, scales.T[:, : plant.m]
    q = plant.straight(pose_of(plant.arm)) + scales.T[:, plant.m :] @ z
    forces = plant.inverse_dynamics(q, np.zeros(plant.n), S @ u)
    rest = forces - plant.B @ (S.T @ forces)
    assert np.abs(rest).max() <= 1e-5 * np.abs(forces).max()


def test_a_sliding_links_stiffness_falls_with_the_cube_of_its_length():
    plant = plant_of(arm_of("sliding"))
    near, far = (
        separate_time_scales(plant, np.array([0.5, length])).K_z[1:, 1:] for length in (0.4, 0.8)
    )
    np.testing.assert_allclose(near, 8 * far, rtol=1e-12)


def test_an_arm_that_does_not_give_way_has_one_time_scale(make):
    plant = plant_of(make["rigid"]())
    with pytest.raises(InputError, match="expected an arm with a flexible link"):
        separate_time_scales(plant, np.zeros(2))


def test_without_flexible_joints_both_angles_are_one():
    plant = plant_of(arm_of("rigid-joints"))
    link, rotor = (slow_fast_map(plant, angle) for angle in ANGLES)
    np.testing.assert_array_equal(link, rotor)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"names": ("rotor1",)}, "names: expected 6 fast positions, got 1"),
        ({"D_z": -np.eye(6)}, "D_z: expected a positive semidefinite matrix"),
        ({"K_z": np.zeros((6, 6))}, "K_z: expected a positive definite matrix"),
    ],
)
def test_time_scales_that_contradict_themselves_are_refused(change, words):
    _, scales = scales_of("mixed")
    with pytest.raises(InputError, match=f"^{words}"):
        replace(scales, **change)
