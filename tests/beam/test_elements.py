"""Cubic elements: [TG95]'s Table 1, the shapes at the nodes, order of convergence."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import assemble_matrices

LINK_2 = Beam(length=1.0, mass_per_length=0.331, EI={"y": 1165.4916})
BEAM = Beam(length=0.8, mass_per_length=0.3, EI={"y": 2.5})
TABLE_1 = {  # [TG95], Table 1, in rad/s; mode 1 of three elements corrected from 2.0886e2
    "exact": (assumed_modes(6), [208.64, 1307.5, 3661.1, 7174.2, 11860, 17716]),
    "1 element": (hermite_elements(1), [209.63, 2065.4]),
    "2 elements": (hermite_elements(2), [208.73, 1318.6, 4459.7, 12944]),
    "3 elements": (hermite_elements(3), [208.66, 1311.8, 3706.7, 8347.3, 15709, 31318]),
}
ENTRIES = [(name, i) for name, (_, column) in TABLE_1.items() for i in range(len(column))]


@pytest.mark.parametrize(("name", "i"), ENTRIES)
def test_table_1_of_theodore_and_ghosal(name, i):
    shapes, column = TABLE_1[name]
    found = assemble_matrices(LINK_2, "y", shapes).frequencies()
    assert found.size == len(column)
    assert found[i] == pytest.approx(column[i], rel=5e-5)


def test_table_1_has_eighteen_entries():
    assert len(ENTRIES) == 18


@pytest.mark.parametrize("n_elements", [1, 2, 5])
def test_coordinates_are_deflection_and_slope_at_the_nodes(n_elements):
    shapes = hermite_elements(n_elements)
    nodes = np.arange(1, n_elements + 1) / n_elements
    np.testing.assert_allclose(shapes.value(nodes)[0::2], np.eye(n_elements), atol=1e-14)
    np.testing.assert_allclose(shapes.slope(nodes)[1::2], np.eye(n_elements), atol=1e-14)
    np.testing.assert_allclose(shapes.value(nodes)[1::2], 0, atol=1e-14)
    np.testing.assert_allclose(shapes.slope(nodes)[0::2], 0, atol=1e-13)


@pytest.mark.parametrize("n_elements", [1, 3])
def test_any_clamped_cubic_is_represented(n_elements):
    # xi^2 - 2 xi^3 and its derivatives, its coordinates being its own deflections and slopes
    shapes, xi = hermite_elements(n_elements), np.linspace(0, 1, 37)
    nodes = np.arange(1, n_elements + 1) / n_elements
    delta = np.stack([nodes**2 - 2 * nodes**3, 2 * nodes - 6 * nodes**2], axis=1).ravel()
    np.testing.assert_allclose(delta @ shapes.value(xi), xi**2 - 2 * xi**3, atol=1e-14)
    np.testing.assert_allclose(delta @ shapes.slope(xi), 2 * xi - 6 * xi**2, atol=1e-13)
    np.testing.assert_allclose(delta @ shapes.curvature(xi), 2 - 12 * xi, atol=1e-12)


def test_names_count_nodes_from_the_clamped_root():
    assert hermite_elements(2).names == (
        "node2.deflection",
        "node2.slope",
        "node3.deflection",
        "node3.slope",
    )


def test_elements_ignore_the_tip_load():
    load = TipLoad(mass=1.0)
    assert hermite_elements(3, load) == hermite_elements(3)


def test_one_element_has_the_matrices_of_the_textbook():
    # consistent mass and stiffness of [Przemieniecki68] without the clamped end
    L, m, EI = BEAM.length, BEAM.mass_per_length, BEAM.rigidity("y")
    matrices = assemble_matrices(BEAM, "y", hermite_elements(1))
    mass = m * L / 420 * np.array([[156, -22 * L], [-22 * L, 4 * L**2]])
    stiffness = EI / L**3 * np.array([[12, -6 * L], [-6 * L, 4 * L**2]])
    np.testing.assert_allclose(matrices.mass, mass, rtol=1e-13)
    np.testing.assert_allclose(matrices.stiffness, stiffness, rtol=1e-13)


@pytest.mark.parametrize("load", [TipLoad(), TipLoad(mass=0.5, inertia=0.1, offset=-0.2)], ids=str)
def test_third_frequency_converges_at_order_four_from_above(load):
    # 8 to 32 elements: past the coarse range, and errors (6e-4 .. 3e-6) well above round-off.
    n_elements = np.array([8, 16, 32])
    exact = BEAM.frequency_unit("y") * clamped_mass_roots(3, load)[2] ** 2
    found = [
        assemble_matrices(BEAM, "y", hermite_elements(n), load).frequencies()[2] for n in n_elements
    ]
    error = np.array(found) / exact - 1
    assert (error > 0).all(), f"a Rayleigh-Ritz frequency lies above the exact one: {error}"
    order = -np.polyfit(np.log(n_elements), np.log(error), deg=1)[0]
    assert order == pytest.approx(4, abs=0.1)
