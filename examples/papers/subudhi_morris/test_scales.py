"""(67) of Subudhi and Morris as it should be: rows of the fast subsystem from the mass matrix."""

from functools import cache

import numpy as np
import pytest

from examples.papers.subudhi_morris.scales import fast_state
from flexctl.control.singular_perturbation import separate_time_scales
from tests.arms import plant_of
from tests.two_scales import ARMS, HEAVY, arm_of, pose_of

pytestmark = pytest.mark.usefixtures("no_compiler")


@cache
def scales_of(name):
    plant = plant_of(arm_of(name))
    return plant, separate_time_scales(plant, pose_of(plant.arm), "rotor")


@pytest.mark.slow_but("subudhi-morris", "rigid-links", "heavy-sliding")
@pytest.mark.parametrize("name", [*ARMS, *HEAVY])
def test_fast_time_is_time_over_mu(name):
    _, scales = scales_of(name)
    found, expected = (
        np.linalg.eigvals(fast_state(scales)) / scales.mu,
        np.linalg.eigvals(scales.fast[0]),
    )
    np.testing.assert_allclose(np.sort_complex(found), np.sort_complex(expected), rtol=1e-7)
    assert scales.k_c == scales.K_z.diagonal().min() == pytest.approx(1 / scales.mu**2)


def blocks_of_67():
    """H11, H12, H21, H22, J^-1 and scaled stiffnesses, from the mass matrix in q, theta, alpha."""
    plant, scales = scales_of("subudhi-morris")
    M = plant.mass_matrix(plant.straight(pose_of(plant.arm)))
    links, rotors = [0, 1, 4, 5, 6, 7], [2, 3]
    H, J = np.linalg.inv(M[np.ix_(links, links)]), np.linalg.inv(M[np.ix_(rotors, rotors)])
    K = scales.K_z / scales.k_c
    return scales, (H[:2, :2], H[:2, 2:], H[2:, :2], H[2:, 2:]), J, (K[:2, :2], K[2:, 2:])


def test_the_springs_rows_of_67_hold_what_accelerates_the_links_too():
    scales, (H11, H12, _, _), J, (K_s, K_w) = blocks_of_67()
    rows = fast_state(scales)[6:8, :6]
    np.testing.assert_allclose(rows[:, :2], -(H11 + J) @ K_s, rtol=1e-10)
    np.testing.assert_allclose(rows[:, 2:], H12 @ K_w, rtol=1e-10)


def test_the_modes_rows_of_67_are_as_printed():
    scales, (_, _, H21, H22), J, (K_s, K_w) = blocks_of_67()
    rows = fast_state(scales)[8:, :6]
    np.testing.assert_allclose(rows[:, :2], H21 @ K_s, rtol=1e-10)
    np.testing.assert_allclose(rows[:, 2:], -H22 @ K_w, rtol=1e-10)
    np.testing.assert_allclose(scales.fast[1][6:8], J, rtol=1e-10, atol=1e-9)
    assert np.abs(scales.fast[1][8:]).max() < 1e-10


def test_67_as_printed_has_other_frequencies_than_the_arm():
    scales, (_, _, H21, H22), J, (K_s, K_w) = blocks_of_67()
    printed = np.block([[J @ K_s, np.zeros((2, 4))], [-H21 @ K_s, H22 @ K_w]])
    found, expected = (
        np.sqrt(np.sort(np.linalg.eigvals(A).real)) for A in (printed, -fast_state(scales)[6:, :6])
    )
    # the rotors alone, on springs held at the far end: sqrt(k_s / J), twice
    assert np.isclose(found / scales.mu, np.sqrt(100 / 0.02), rtol=1e-8).sum() == 2
    assert np.abs(found / expected - 1).max() > 0.5
