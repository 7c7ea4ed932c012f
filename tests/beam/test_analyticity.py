"""Discs of analyticity: complex lengths of many elements, followed around the discs' edges."""

import numpy as np
import pytest
import scipy.linalg

from flexctl.beam.analyticity import analytic_discs, analytic_ellipse
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.matrices import unit_mass_and_stiffness

LINES = {
    "point": SlidingLine(mass_per_length=0.331, mass=0.0828),
    "body": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.02, first_moment=0.09),
    "behind": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.05, first_moment=-0.09),
    "far point": SlidingLine(
        mass_per_length=0.331, mass=0.5, inertia=0.5 * 0.2**2, first_moment=0.5 * 0.2
    ),
}
N_MODES, STEPS = 3, 24
SHAPES = hermite_elements(12)  # three modes to 1e-5, the bounds have more in hand
MASS, STIFFNESS = unit_mass_and_stiffness(SHAPES)
TIP = np.stack([SHAPES.value(1.0)[:, 0], SHAPES.slope(1.0)[:, 0]])

each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES)
each_length = pytest.mark.parametrize("length", [0.1, 0.5, 1.3])


def complex_mass(line, length):
    """Mass matrix of the elements at any complex length."""
    M = line.mass / (line.mass_per_length * length)
    J = line.inertia / (line.mass_per_length * length**3)
    D = line.first_moment / (line.mass_per_length * length**2)
    return MASS + TIP.T @ np.array([[M, D], [D, J]]) @ TIP


def around(line, start, centre):
    """Eigenvalues and |psi''| (steps + 1, n) on a circle of s, each followed from a real s."""
    values, sizes = [], []
    last = roots_along(N_MODES, line.loads([np.exp(start)]))[0] ** 4
    for angle in np.linspace(0, 2 * np.pi, STEPS + 1):
        M = complex_mass(line, np.exp(centre + (start - centre) * np.exp(1j * angle)))
        inverse, modes = scipy.linalg.eig(M, STIFFNESS)
        own = np.abs(1 / inverse[:, None] - last).argmin(0)
        last, modes = 1 / inverse[own], modes[:, own]
        modes = modes / np.sqrt(np.einsum("ji,jk,ki->i", modes, M, modes))
        values.append(last)
        sizes.append(np.sqrt(np.einsum("ji,jk,ki->i", modes.conj(), STIFFNESS, modes).real))
    return np.array(values), np.array(sizes)


@each_line
@each_length
def test_eigenvalues_return_after_a_way_around_a_disc(line, length):
    radius = analytic_discs(N_MODES, line.loads([length]))[0][0]
    values, _ = around(line, np.log(length) + radius, np.log(length))
    np.testing.assert_allclose(values[-1], values[0], rtol=1e-9)
    own = roots_along(N_MODES, line.loads([length]))[0] ** 4
    assert (np.abs(values - own) <= 0.5 * own).all()


@each_line
@each_length
def test_modes_stay_below_their_bound_on_a_disc(line, length):
    radii, bounds = analytic_discs(N_MODES, line.loads([length]))
    _, sizes = around(line, np.log(length) + radii[0], np.log(length))
    assert (sizes <= bounds[0]).all()


def test_an_eigenvalue_comes_back_as_another_around_a_branch_point():
    # so that the tests above can fail: M(beta) of (38) is stationary at beta = 2.766 + 0.911 i
    mass = -0.22346281 - 0.079978753j
    branch = np.log(0.0828 / 0.331) - np.log(-mass) + 1j * np.pi
    # the circle goes through real s and misses its mirror image at Im s = 2 pi - Im branch
    values, _ = around(LINES["point"], branch.real, branch.real + 0.5j * np.pi)
    assert values[-1, 0] == pytest.approx(values[0, 1], rel=1e-9)
    assert branch.imag > analytic_discs(2, LINES["point"].loads([np.exp(branch.real)]))[0][0]


@pytest.mark.parametrize("line", [LINES["point"], LINES["behind"]], ids=["point", "behind"])
def test_the_ellipse_lies_in_the_discs(line):
    ellipse = analytic_ellipse(N_MODES, line, 0.2, 1.3)
    half = np.log(1.3 / 0.2) / 2
    angle = np.linspace(0, np.pi, 100)
    z = np.exp(1j * angle)
    edge = np.log(0.2 * 1.3) / 2 + half * (ellipse.rho * z + 1 / (ellipse.rho * z)) / 2
    radii = analytic_discs(N_MODES, line.loads(np.exp(edge.real)))[0]
    assert (edge.imag < radii).all()


def test_a_line_without_a_load_is_analytic_everywhere():
    assert analytic_ellipse(2, SlidingLine(mass_per_length=1.0), 0.1, 1.0).rho == np.inf
