"""The record of mass and stiffness, closed forms, and damping that belongs to the line."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.bases import BASES
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import (
    BeamMatrices,
    assemble_matrices,
    modal_damping,
    unit_mass_and_stiffness,
)
from flexctl.errors import InputError

BEAM = Beam(length=0.8, mass_per_length=0.3, EI={"y": 2.5, "z": 10.0})


def element():
    """Mass and stiffness of one clamped element, fresh copies."""
    good = assemble_matrices(BEAM, "y", hermite_elements(1))
    return {"mass": good.mass.copy(), "stiffness": good.stiffness.copy()}


@pytest.mark.parametrize("which", ["mass", "stiffness"])
@pytest.mark.parametrize("entry", [(0, 1), (1, 0)])
def test_wrong_sign_in_either_triangle_is_caught(which, entry):
    matrices = element()
    matrices[which][entry] *= -1
    with pytest.raises(InputError, match=f"{which}: expected a symmetric matrix"):
        BeamMatrices(**matrices)


@pytest.mark.parametrize("which", ["mass", "stiffness"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.ones(4), "square"),
        (np.ones((2, 3)), "square"),
        (np.empty((0, 0)), "square"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "finite"),
        (np.diag([1.0, -1.0]), "positive diagonal"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
    ],
)
def test_impossible_matrices_are_refused(which, wrong, message):
    with pytest.raises(InputError, match=f"{which}: .*{message}"):
        BeamMatrices(**{**element(), which: wrong})


def test_matrices_of_different_sizes_are_refused():
    with pytest.raises(InputError, match="shape of mass"):
        BeamMatrices(mass=np.eye(2), stiffness=np.eye(3))


@pytest.mark.parametrize("direction", [1.0, -1.0])
def test_definiteness_within_round_off_is_refused(direction):
    nearly = np.ones((2, 2)) + direction * np.diag([1e-16, 1e-16])
    with pytest.raises(InputError, match="mass: expected positive definite"):
        BeamMatrices(mass=nearly, stiffness=np.eye(2))


def test_slow_and_fast_frequencies_are_both_accurate_when_far_apart():
    # 2 by 2 blocks with known squares 1 and 3 times the scale, 1e18 between slow and fast,
    # mixed by a change of coordinates that leaves no zero in either matrix
    block = np.array([[2.0, 1.0], [1.0, 2.0]])
    T = np.eye(4) + 0.3 * np.tril(np.ones((4, 4)), -1)
    heavy = np.diag([1e9, 1e9, 1.0, 1.0])
    K = np.kron(np.diag([1.0, 1e9]), block)
    found = BeamMatrices(mass=T.T @ heavy @ T, stiffness=T.T @ K @ T).frequencies()
    np.testing.assert_allclose(found**2, [1e-9, 3e-9, 1e9, 3e9], rtol=1e-6)


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("n", [3, 40])
def test_modes_are_normalised_by_mass_and_diagonalise_stiffness(kind, n):
    matrices = assemble_matrices(BEAM, "z", BASES[kind](n), TipLoad(mass=0.4))
    w, Phi = matrices.frequencies(), matrices.modes()
    assert (np.diff(w) > 0).all()
    np.testing.assert_allclose(Phi.T @ matrices.mass @ Phi, np.eye(w.size), atol=1e-8)
    K = Phi.T @ matrices.stiffness @ Phi / np.outer(w, w)
    np.testing.assert_allclose(K, np.eye(w.size), atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_a_force_and_a_moment_at_the_tip_bend_elements_as_the_closed_form_says(n):
    # l^3/3EI, l^2/2EI, l/EI: cubics hold the exact solution; 50 elements lose n^4 eps
    K = assemble_matrices(BEAM, "y", hermite_elements(n)).stiffness
    L, EI = BEAM.length, BEAM.rigidity("y")
    exact = np.array([[L**3 / 3, L**2 / 2], [L**2 / 2, L]]) / EI
    np.testing.assert_allclose(np.linalg.inv(K)[-2:, -2:], exact, rtol=1e-8)


def test_frequencies_scale_with_the_data_of_the_line():
    # same shapes, other length, mass and rigidity: sqrt(EI / (rho A l^4)) and nothing else
    shapes, load = hermite_elements(4), TipLoad(mass=0.3, inertia=0.02, offset=0.05)
    other = Beam(length=2.1, mass_per_length=1.7, EI={"y": 55.0})
    ratio = (
        assemble_matrices(BEAM, "z", shapes, load).frequencies()
        / assemble_matrices(other, "y", shapes, load).frequencies()
    )
    expected = np.sqrt((10.0 / 55.0) * (1.7 / 0.3)) * (2.1 / 0.8) ** 2
    np.testing.assert_allclose(ratio, expected, rtol=1e-10)


def test_de_luca_and_siciliano_frequencies_of_the_second_link():
    # [DeLucaSiciliano91]: 2.18 and 15.91 Hz, with the payload as mass and inertia, printed so
    link = Beam(length=0.5, mass_per_length=0.2, EI={"y": 1.0})
    m, L = link.mass_per_length * link.length, link.length
    load = TipLoad(mass=0.1 / m, inertia=0.0005 / (m * L**2))
    found = link.frequency_unit("y") * clamped_mass_roots(2, load) ** 2 / (2 * np.pi)
    np.testing.assert_allclose(found, [2.18, 15.91], atol=0.0051)


def test_unit_mass_and_stiffness_of_modes_are_the_identity_and_the_fourth_powers():
    shapes = assumed_modes(10)
    M, K = unit_mass_and_stiffness(shapes)
    np.testing.assert_allclose(M, np.eye(10), atol=1e-13)
    np.testing.assert_allclose(K / shapes.beta**2 / shapes.beta[:, None] ** 2, M, atol=1e-12)


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        (0.02, [0.02] * 4),
        ([0.01, 0.03], [0.01, 0.03, 0.03, 0.03]),
        ((0.5, 0.4, 0.3, 0.2, 0.1), [0.5, 0.4, 0.3, 0.2]),
    ],
)
def test_damping_is_diagonal_in_the_modes_with_the_stated_ratios(kind, ratios, expected):
    matrices = assemble_matrices(BEAM, "y", BASES[kind](4))
    w, Phi = matrices.frequencies(), matrices.modes()
    D = modal_damping(matrices, ratios)
    np.testing.assert_array_equal(D, D.T)
    modal = Phi.T @ D @ Phi / np.sqrt(np.outer(w, w)) / 2
    np.testing.assert_allclose(modal[:4, :4], np.diag(expected), atol=1e-10)


@pytest.mark.parametrize("ratios", [-0.01, [0.01, -0.1], [], np.nan, [np.inf], [[0.1]]])
def test_impossible_damping_ratios_are_refused(ratios):
    with pytest.raises(InputError, match="damping ratios"):
        modal_damping(assemble_matrices(BEAM, "y", assumed_modes(2)), ratios)


@pytest.mark.parametrize("speed", [0.7, 1.0, 5.0])
def test_damped_tip_response_does_not_depend_on_the_basis_as_it_is_refined(speed):
    # tip deflection per tip force at a frequency in units of the first one, at resonance as well
    found = [_tip_response(shapes, speed) for shapes in (assumed_modes(40), hermite_elements(20))]
    # what 40 modes lack is the static part of the rest, about 1/(3 pi^4 40^3) of 1/3: 5e-7
    assert abs(found[0] / found[1] - 1) < 1e-4
    assert abs(found[0].imag) > 1e-3 * abs(found[0])


def _tip_response(shapes, speed):
    matrices = assemble_matrices(BEAM, "y", shapes)
    D = modal_damping(matrices, [0.01, 0.02])
    w = speed * BEAM.frequency_unit("y") * 1.8751040687119611664**2
    tip = BEAM.length**shapes.power * shapes.value(1.0)[:, 0]
    dynamic = matrices.stiffness + 1j * w * D - w**2 * matrices.mass
    return tip @ np.linalg.solve(dynamic, tip)
