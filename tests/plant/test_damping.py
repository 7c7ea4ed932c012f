"""Damping is a property of the link: ratios of its own clamped modes, in every basis."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.plant.linearisation import linearise

RATIOS = [0.01, 0.03, 0.02]


def clamped(plant, joints):
    """Frequencies and damping ratios of a plant whose joints are locked, ascending."""
    q = np.concatenate([joints, np.zeros(plant.n - plant.m)])
    f = np.arange(plant.n) >= plant.m
    lin = linearise(plant, q)
    M, D, K = (A[np.ix_(f, f)] for A in (lin.M, lin.D, lin.K))
    squares, Phi = scipy.linalg.eigh(K, M)
    modal, w = Phi.T @ D @ Phi, np.sqrt(squares)
    assert np.abs(modal - np.diag(np.diag(modal))).max() < 1e-7 * np.abs(modal).max()
    return w, np.diag(modal) / (2 * w)


def single(make, joint, **more):
    link = {"joint": joint, "mass_per_length": 0.4, "damping_ratio": RATIOS}
    link |= {"EI": {"y": 6.0}} | more
    return make["arm"]([link])


@pytest.mark.parametrize("basis", [("modes", 4), ("elements", 3)])
def test_ratios_are_those_of_the_file_and_the_last_holds_for_all_further(basis, make, plant_of):
    plant = plant_of(single(make, "revolute", length=0.7), *basis)
    _, ratios = clamped(plant, [0.3])

    assert ratios == pytest.approx(RATIOS + [0.02] * (len(ratios) - 3), rel=1e-6)


@pytest.mark.parametrize("basis", [("modes", 3), ("elements", 2)])
@pytest.mark.parametrize("free", [0.3, 0.8, 1.2])
def test_ratios_of_a_sliding_link_hold_at_every_length(basis, free, make, plant_of):
    plant = plant_of(single(make, "prismatic", total_length=1.2), *basis)
    w, ratios = clamped(plant, [free])

    assert ratios[:3] == pytest.approx(RATIOS, rel=1e-6)
    exact = 1.875104068711961**2 * np.sqrt(6.0 / 0.4) / free**2
    assert w[0] == pytest.approx(exact, rel=1e-3)


def test_the_matrix_is_the_same_in_every_basis_as_it_is_refined(make, plant_of):
    # Power that a given bent shape loses: shape of the tip force, at rest, as its rate
    def lost(kind, order):
        plant = plant_of(single(make, "revolute", length=0.7), kind, order)
        q = np.zeros(plant.n)
        lin = linearise(plant, q)
        rate = np.linalg.solve(lin.K[1:, 1:], plant.deflections_jacobian(q)[0, 1:])
        return rate @ lin.D[1:, 1:] @ rate

    assert lost("modes", 6) == pytest.approx(lost("elements", 5), rel=1e-3)


def test_a_tip_load_of_the_shapes_does_not_change_the_damping_of_the_link(make, plant_of):
    # both bases span nearly the same; the load that the shapes assume is no part of the link
    def lost(**more):
        arm = make["arm"](
            [single(make, "revolute", length=0.7).table()["link"][0] | more],
            payload={"mass": 0.2},
        )
        plant = plant_of(arm, "modes", 6)
        q = np.zeros(plant.n)
        lin = linearise(plant, q)
        rate = np.linalg.solve(lin.K[1:, 1:], plant.deflections_jacobian(q)[0, 1:])
        return rate @ lin.D[1:, 1:] @ rate

    assert lost(tip_load={}) == pytest.approx(lost(), rel=1e-3)


@pytest.mark.parametrize("name", ["rrp", "two-link", "spatial"])
def test_damping_has_no_part_on_joint_rows_and_takes_energy(name, plant_named, random_state):
    plant = plant_named(name)
    D = plant.damping(random_state(plant, 1)[0])

    assert not D[: plant.m].any()
    assert not D[:, : plant.m].any()
    assert np.linalg.eigvalsh((D + D.T) / 2)[0] > -1e-12 * max(np.abs(D).max(), 1e-300)
