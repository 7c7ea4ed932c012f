"""Discs that isolate eigenvalues: each holds what it says, however the others lie."""

import numpy as np
import pytest

from flexctl.loci.frames import SAMPLES, Frames, isolating_discs, move_frame, withstood
from flexctl.loci.spectrum import find_spectra


def distances(values):
    return np.abs(values[:, None] - values)


@pytest.mark.parametrize("seed", range(30))
def test_an_isolating_disc_holds_one_eigenvalue_and_no_other_for_all_smaller_couplings(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    centres = rng.standard_normal(n) + 1j * rng.standard_normal(n)
    coupling = 10.0 ** rng.uniform(-4, 0, (n, n)) * ~np.eye(n, dtype=bool) * rng.uniform(0.02, 0.3)

    isolated, radius = isolating_discs(
        coupling[None], distances(centres)[None], np.zeros(n), np.ones(n)
    )

    for share in (0.0, 0.5, 1.0):
        phases = np.exp(2j * np.pi * rng.uniform(size=(n, n)))
        values = np.linalg.eigvals(np.diag(centres) + share * coupling * phases)
        for k in np.flatnonzero(isolated[0]):
            assert (np.abs(values - centres[k]) <= radius[0, k] + 1e-12).sum() == 1


def test_far_eigenvalues_are_isolated_though_others_cannot_be_told_apart():
    centres = np.array([1.0, 1.001, 10.0, 20.0])
    coupling = 0.1 * ~np.eye(4, dtype=bool)

    isolated, radius = isolating_discs(
        coupling[None], distances(centres)[None], np.zeros(4), np.ones(4)
    )

    np.testing.assert_array_equal(isolated[0], [False, False, True, True])
    assert (radius[0, 2:] < 0.1).all()


@pytest.mark.parametrize("infinite", [np.inf, np.nan, 1e300])
def test_what_is_coupled_infinitely_is_not_isolated(infinite):
    centres = np.array([1.0, 2.0, 4.0])
    C = np.zeros((3, 3))
    C[0, 1] = C[1, 0] = infinite

    isolated, _ = isolating_discs(C[None], distances(centres)[None], np.zeros(3), np.ones(3))

    assert not isolated[0, :2].any()


def test_a_block_without_room_is_not_isolated_and_the_others_are():
    room = distances(np.array([1.0, 1.0, 3.0]))
    C = np.full((3, 3), 0.01) * ~np.eye(3, dtype=bool)

    isolated, _ = isolating_discs(C[None], room[None], np.full(3, 10.0), np.full(3, 4))

    np.testing.assert_array_equal(isolated[0], [False, False, False])
    isolated, _ = isolating_discs(C[None], room[None], np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(isolated[0], [False, False, True])


@pytest.mark.parametrize("coupling", [1e-2, 1e-3, 1e-4])
def test_the_radius_is_of_second_order_in_the_couplings(coupling):
    centres = np.array([1.0, 2.0, 4.0])
    C = coupling * ~np.eye(3, dtype=bool)

    _, radius = isolating_discs(C[None], distances(centres)[None], np.zeros(3), np.ones(3))

    assert (radius < 20 * coupling**2).all()


@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("departure", [0.0, 0.1, 3.0])
def test_no_perturbation_that_a_block_withstands_moves_an_eigenvalue_farther(m, departure):
    rng = np.random.default_rng(m)
    block = np.diag(rng.standard_normal(m) + 0j)
    if m > 1:
        above = np.triu(rng.standard_normal((m, m)), 1)
        block += departure * above / np.linalg.norm(above)
    own = np.diag(block)
    for distance in (1e-3, 0.1, 2.0):
        size = float(
            withstood(np.array([distance]), np.array([departure * (m > 1)]), np.array([m]))[0]
        )
        E = rng.standard_normal((m, m)) + 1j * rng.standard_normal((m, m))
        moved = np.linalg.eigvals(block + size * E / np.linalg.norm(E, 2))
        assert np.abs(moved[:, None] - own).min(axis=1).max() <= distance * (1 + 1e-9)


def test_a_single_eigenvalue_withstands_its_distance():
    distance = np.array([1e-6, 1.0, 1e6])

    np.testing.assert_array_equal(withstood(distance, np.zeros(3), np.ones(3)), distance)


@pytest.mark.parametrize("seed", range(5))
def test_the_moving_frame_in_real_numbers_is_that_in_complex_ones(seed):
    rng = np.random.default_rng(seed)
    A0 = rng.standard_normal((7, 7))
    A1, A2 = (A0 + 0.01 * rng.standard_normal((7, 7)) for _ in range(2))
    (one,) = find_spectra([0.0], A0[None])
    frames = Frames(V0=one.V[None], V1=one.V[None], W0=one.W[None], mates=one.mates[None])

    T, _, _ = move_frame((A0[None], A1[None], A2[None]), frames, SAMPLES)

    bend = A1 - (A0 + A2) / 2
    for t, found in zip(SAMPLES, T[:, 0], strict=True):
        A = (1 - t) * A0 + t * A2 + 4 * t * (1 - t) * bend
        np.testing.assert_allclose(found, one.W @ A @ one.V, atol=1e-12)
