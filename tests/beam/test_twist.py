"""The twist of a line against closed forms: uniform rods, a cone, a rod with a disc."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import spherical_jn, spherical_yn

from flexctl.beam.bases import TWIST_BASES
from flexctl.beam.line import FREE_TIP, Beam, PointMass, SectionProfile, TipLoad
from flexctl.beam.matrices import assemble_matrices, unit_mass_and_stiffness
from flexctl.beam.reduction import CraigBampton, drop_above
from flexctl.beam.twist import twist_elements, twist_modes, twist_roots
from flexctl.errors import InputError
from flexctl.model.profile import Profile

POLAR = 3e-4  # rho I_p / (rho A l^2)
UNIFORM = SectionProfile(rotary=Profile(value=(POLAR, POLAR)))


def relative(x, value, power=1):
    """A profile over its mean."""
    profile = Profile(x=tuple(x), value=tuple(value), power=power)
    return profile.scaled(1 / profile.mean)


def frequencies(section=UNIFORM, kind="modes", order=4, tip=FREE_TIP):
    """Lowest frequencies over sqrt(GJ / (rho I_p l^2)) of the means."""
    line = Beam(length=1.0, mass_per_length=1.0, EI={"twist": 1.0}, sections={"twist": section})
    shapes = TWIST_BASES[kind](order, tip, section)
    return assemble_matrices(line, "twist", shapes, tip).frequencies() * np.sqrt(POLAR)


def roots(function, count, step=0.01):
    """The lowest roots of a function, found on a grid that knows nothing of the answer."""
    found, left = [], step / 2
    while len(found) < count:
        if function(left) * function(left + step) < 0:
            found.append(brentq(function, left, left + step, xtol=1e-14, rtol=1e-15))
        left += step
    return np.array(found)


def test_a_rod_with_a_free_tip_has_odd_quarter_waves():
    assert frequencies() == pytest.approx(np.pi * (np.arange(4) + 0.5), rel=1e-12)


@pytest.mark.parametrize("inertia", [1e-6, 0.3, 1.0, 7.0, 1e6])
def test_the_roots_of_a_rod_with_an_inertia_satisfy_their_equation(inertia):
    beta = twist_roots(6, inertia)
    residual = np.cos(beta) - inertia * beta * np.sin(beta)
    assert np.abs(residual).max() < 1e-13 * max(1.0, 20 * inertia)
    assert (np.floor(2 * beta / np.pi) == 2 * np.arange(6)).all()


@pytest.mark.parametrize("inertia", [0.3, 7.0])
def test_modes_of_a_rod_with_an_inertia_at_its_tip_are_exact(inertia):
    expected = roots(lambda b: np.cos(b) - inertia * b * np.sin(b), 4)
    found = frequencies(tip=TipLoad(inertia=inertia * POLAR))
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("inertia", [0.0, 0.3])
def test_elements_converge_at_order_four_from_above(inertia):
    # mode 2 on 4 to 16 elements: errors 5e-4 to 2e-6, past the coarse range, above round-off
    tip, n = TipLoad(inertia=inertia * POLAR), np.array([4, 8, 16])
    found = np.array([frequencies(kind="elements", order=k, tip=tip)[1] for k in n])
    error = found / twist_roots(2, inertia)[1] - 1
    assert (error > 0).all()
    assert -np.polyfit(np.log(n), np.log(error), 1)[0] == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize(("kind", "order", "rel"), [("modes", 3, 1e-10), ("elements", 40, 2e-6)])
def test_a_cone_has_the_roots_of_spherical_bessel_functions(kind, order, rel):
    # (s^4 phi')' + b^2 s^4 phi = 0 from the apex on: phi = z_1(b s)/s, phi' = -b z_2(b s)/s
    root, tip = 1.0, 0.4  # diameters; the apex lies at s = 0
    taper = relative((0, 1), (root**4, tip**4), power=4)
    section = SectionProfile(bending=taper, rotary=taper.scaled(POLAR))
    s = np.array([root, tip]) / (root - tip)

    def determinant(b):
        return spherical_jn(1, b * s[0]) * spherical_yn(2, b * s[1]) - spherical_yn(
            1, b * s[0]
        ) * spherical_jn(2, b * s[1])

    assert frequencies(section, kind, order)[:3] == pytest.approx(roots(determinant, 3), rel=rel)


@pytest.mark.parametrize(("kind", "order", "rel"), [("modes", 3, 1e-10), ("elements", 40, 2e-6)])
def test_a_disc_on_a_stepped_rod(kind, order, rel):
    # GJ and rho I_p fall by 4 at a = 0.35, where a disc of J stands: waves of one wave number
    a, J, step = 0.35, 0.6, 4.0
    profile = relative((0, a, a, 1), (step, step, 1, 1))
    point_mass = PointMass(x=a, mass=0.0, inertia=J * POLAR)
    section = SectionProfile(
        bending=profile, rotary=profile.scaled(POLAR), point_masses=(point_mass,)
    )
    own = profile.value[0], profile.value[-1]

    def determinant(b):
        inner = own[0] * b * np.cos(b * a) - J * b**2 * np.sin(b * a)
        return inner * np.cos(b * (1 - a)) - np.sin(b * a) * own[1] * b * np.sin(b * (1 - a))

    assert frequencies(section, kind, order)[:3] == pytest.approx(roots(determinant, 3), rel=rel)


@pytest.mark.parametrize(
    "section", [UNIFORM, SectionProfile(bending=relative((0, 1), (3, 1)), rotary=UNIFORM.rotary)]
)
def test_modes_have_the_inertia_of_the_line_and_are_orthogonal(section):
    shapes = twist_modes(4, section=section)
    mass, stiffness = unit_mass_and_stiffness(shapes, section)
    assert mass == pytest.approx(POLAR * np.eye(4), abs=1e-12 * POLAR)
    off = stiffness - np.diag(np.diag(stiffness))
    assert np.abs(off).max() < 1e-10 * np.abs(stiffness).max()
    assert (shapes.rotation(1.0) > 0).all()


@pytest.mark.parametrize("basis", [twist_modes, twist_elements])
def test_nothing_deflects_and_slopes_are_derivatives(basis):
    shapes, xi, h = basis(3, section=UNIFORM), np.array([0.1, 0.45, 0.9]), 1e-6
    assert not shapes.value(xi).any()
    difference = (shapes.rotation(xi + h) - shapes.rotation(xi - h)) / (2 * h)
    assert shapes.bending(xi) == pytest.approx(difference, abs=1e-8)
    assert not shapes.rotation(0.0).any()


def test_coordinates_of_elements_are_the_angles_that_they_are_called():
    shapes = twist_elements(2, section=UNIFORM)
    assert shapes.names == ("middle1.angle", "node2.angle", "middle2.angle", "node3.angle")
    assert shapes.rotation([0.25, 0.5, 0.75, 1.0]) == pytest.approx(np.eye(4), abs=1e-15)


@pytest.mark.parametrize("kept", [0, 2])
@pytest.mark.parametrize(("basis", "order"), [(twist_modes, 9), (twist_elements, 6)])
def test_a_reduced_rod_is_at_its_tip_as_stiff_as_its_base(basis, order, kept):
    base = basis(order, section=UNIFORM)
    reduced = CraigBampton(base=base, kept=kept, section=UNIFORM)
    assert reduced.names == ("tip.angle", "1", "2")[: kept + 1]
    tips = [own.rotation(1.0)[:, 0] for own in (base, reduced)]
    K = [unit_mass_and_stiffness(own, UNIFORM)[1] for own in (base, reduced)]
    compliance = [tip @ np.linalg.solve(k, tip) for tip, k in zip(tips, K, strict=True)]
    assert compliance[1] == pytest.approx(compliance[0], rel=1e-10)


def test_what_is_dropped_is_faster_than_the_cutoff():
    # modes of a rod clamped at both ends are i pi: below 7 lie two
    line = Beam(length=1.0, mass_per_length=1.0, EI={"twist": 1.0}, sections={"twist": UNIFORM})
    base = twist_elements(12, section=UNIFORM)
    reduced = drop_above(base, line, "twist", 7 / np.sqrt(POLAR))
    assert reduced.names == ("tip.angle", "1", "2")
    found = assemble_matrices(line, "twist", reduced).frequencies()[:2] * np.sqrt(POLAR)
    excess = found / (np.pi * np.array([0.5, 1.5])) - 1
    assert (excess > 0).all()  # Rayleigh and Ritz
    assert excess[0] < 2e-3


def test_a_line_without_polar_inertia_has_no_modes():
    with pytest.raises(InputError, match="polar inertia"):
        twist_modes(2, section=SectionProfile())


@pytest.mark.parametrize("basis", [twist_modes, twist_elements])
def test_orders_are_whole_numbers(basis):
    with pytest.raises(InputError, match="order"):
        basis(0)
