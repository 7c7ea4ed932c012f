"""Lines that vary along themselves against closed forms and a transfer matrix of their own."""

import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import brentq
from scipy.special import iv, jv, kv, yv

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.bases import BASES
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import FREE_TIP, Beam, PointMass, SectionProfile, TipLoad
from flexctl.beam.matrices import assemble_matrices, unit_mass_and_stiffness
from flexctl.beam.reduction import drop_above
from flexctl.errors import InputError
from flexctl.model.profile import Profile


def relative(x, value, power=1):
    """A profile over its mean."""
    profile = Profile(x=tuple(x), value=tuple(value), power=power)
    return profile.scaled(1 / profile.mean)


def frequencies(section, kind="modes", order=4, tip=FREE_TIP):
    """Lowest frequencies over sqrt(EI / (rho A l^4)) of the means."""
    line = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0}, sections={"y": section})
    shapes = BASES[kind](order, tip, section)
    return assemble_matrices(line, "y", shapes, tip).frequencies()


def roots(function, count, step, start=0.05):
    """The lowest roots of a function, found on a grid that knows nothing of the answer."""
    x, found = start, []
    while len(found) < count:
        if function(x) * function(x + step) < 0:
            found.append(brentq(function, x, x + step, xtol=1e-14, rtol=1e-15))
        x += step
    return np.array(found)


# Bars whose height alone (wedge, n = 1) or height and width (cone, n = 2) grow in proportion to the
# distance s from an apex: (s^(n+2) w'')'' = b^4 s^n w has w = s^(-n/2) Z_n(2 b sqrt(s)) with Z any
# of J, Y, I, K; every derivative raises the index by one. Source: [ConwayBeckerDubil64].


def tapered_bar(n, c):
    """Determinant of a bar from the clamped end s = 1 to the free one s = c, as a function of b."""
    kinds = [(jv, -1, 1), (yv, -1, 1), (iv, 1, 1), (kv, -1, -1)]

    def determinant(b):
        z, y = 2 * b, 2 * b * np.sqrt(c)
        rows = [
            [Z(n, z) for Z, _, _ in kinds],
            [sign * Z(n + 1, z) for Z, sign, _ in kinds],
            [Z(n + 2, y) for Z, _, _ in kinds],
            [sign * Z(n + 1, y) for Z, _, sign in kinds],
        ]
        scale = np.exp([0, 0, -z, y])
        return np.linalg.det(np.array(rows) * scale)

    return determinant


def pointed_bar(n):
    """The same of a bar that ends in the apex: Y and K are infinite there."""
    return lambda b: jv(n, 2 * b) * iv(n + 1, 2 * b) + iv(n, 2 * b) * jv(n + 1, 2 * b)


def taper(n, c):
    """Course from the thick clamped end, and how its unit of frequency follows from that end's."""
    mass, bending = relative([0, 1], [1, c**n], n), relative([0, 1], [1, c ** (n + 2)], n + 2)
    unit = np.sqrt(mass.value[0] / bending.value[0]) / (1 - c) ** 2
    return SectionProfile(mass=mass, bending=bending), unit


# figures of the textbooks, to the digits in print: omega sqrt(m / EI) l^2 of the clamped end
@pytest.mark.parametrize(
    ("n", "printed"), [(1, [5.315, 15.207, 30.020]), (2, [8.719, 21.146, 38.453])]
)
def test_pointed_bars_have_the_frequencies_in_print(n, printed):
    section, unit = taper(n, 0.0)
    assert frequencies(section)[:3] * unit == pytest.approx(printed, rel=1e-4)


@pytest.mark.slow_but("1")
@pytest.mark.parametrize("n", [1, 2])
def test_pointed_bars_have_the_frequencies_of_bessel_functions(n):
    section, unit = taper(n, 0.0)
    exact = roots(pointed_bar(n), 6, 0.1) ** 2
    assert frequencies(section, order=6) * unit == pytest.approx(exact, rel=1e-11)


@pytest.mark.parametrize("c", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 2])
def test_truncated_bars_have_the_frequencies_of_bessel_functions(n, c):
    section, unit = taper(n, c)
    first = 1.2 / np.sqrt(1 - c)  # below it the four functions can hardly be told apart
    exact = roots(tapered_bar(n, c), 4, 0.05 / (1 - c), first) ** 2 * (1 - c) ** 2
    assert frequencies(section) * unit * (1 - c) ** 2 == pytest.approx(exact, rel=1e-9)


# A transfer matrix that knows pieces, masses and sections: with w, phi, M = EI phi' and
# V = kGA (w' - phi), V' = rho A w'', M' + V = rho I phi''. Source: [PestelLeckie63].


def transferred(w, pieces, point_masses):
    """Moment and shear at the free tip for unit ones at the clamped root: their determinant.

    pieces: (end, EI, rho A, rho I, 1/kGA); lumps: (x, m, J).
    """
    T, x, waiting = np.eye(4), 0.0, sorted(point_masses)
    for end, EI, rho_A, rho_I, softness in pieces:
        A = np.zeros((4, 4))
        A[0, 1], A[0, 3], A[1, 2], A[2, 3] = 1, softness, 1 / EI, -1
        A[2, 1], A[3, 0] = -rho_I * w**2, -rho_A * w**2
        while waiting and waiting[0][0] <= end:
            place, m, J = waiting.pop(0)
            jump = np.eye(4)
            jump[3, 0], jump[2, 1] = -m * w**2, -J * w**2
            T, x = jump @ scipy.linalg.expm(A * (place - x)) @ T, place
        T, x = scipy.linalg.expm(A * (end - x)) @ T, end
    return np.linalg.det(T[2:, 2:])


LINES = {
    "stepped": (
        SectionProfile(
            mass=relative([0, 0.4, 0.4, 1], [2, 2, 1, 1]),
            bending=relative([0, 0.4, 0.4, 1], [8, 8, 1, 1]),
        ),
        [(0.4, 8 / 3.8, 2 / 1.4, 0, 0), (1.0, 1 / 3.8, 1 / 1.4, 0, 0)],
        [],
    ),
    "mass at midspan": (
        SectionProfile(point_masses=(PointMass(x=0.5, mass=0.8),)),
        [(1.0, 1, 1, 0, 0)],
        [(0.5, 0.8, 0)],
    ),
    "masses that turn": (
        SectionProfile(
            point_masses=(
                PointMass(x=0.3, mass=0.8, inertia=0.02),
                PointMass(x=1.0, mass=0.1, inertia=0.01),
            )
        ),
        [(1.0, 1, 1, 0, 0)],
        [(0.3, 0.8, 0.02), (1.0, 0.1, 0.01)],
    ),
    "Rayleigh": (SectionProfile(rotary=Profile(value=(0.003, 0.003))), [(1.0, 1, 1, 0.003, 0)], []),
    "shear alone": (
        SectionProfile(shear=Profile(value=(90.0, 90.0))),
        [(1.0, 1, 1, 0, 1 / 90)],
        [],
    ),
    "Timoshenko": (
        SectionProfile(rotary=Profile(value=(0.003, 0.003)), shear=Profile(value=(90.0, 90.0))),
        [(1.0, 1, 1, 0.003, 1 / 90)],
        [],
    ),
    "everything in steps": (
        SectionProfile(
            mass=relative([0, 0.6, 0.6, 1], [3, 3, 2, 2]),
            bending=relative([0, 0.6, 0.6, 1], [5, 5, 1, 1]),
            point_masses=(PointMass(x=0.25, mass=0.3, inertia=0.004),),
            rotary=Profile(x=(0, 0.6, 0.6, 1), value=(0.004, 0.004, 0.001, 0.001)),
            shear=Profile(x=(0, 0.6, 0.6, 1), value=(120.0, 120.0, 60.0, 60.0)),
        ),
        [(0.6, 5 / 3.4, 3 / 2.6, 0.004, 1 / 120), (1.0, 1 / 3.4, 2 / 2.6, 0.001, 1 / 60)],
        [(0.25, 0.3, 0.004)],
    ),
}


@pytest.fixture(params=LINES, scope="module")
def line(request):
    """A course and its exact lowest four frequencies."""
    section, pieces, point_masses = LINES[request.param]
    return section, roots(lambda w: transferred(w, pieces, point_masses), 4, 0.4)


def test_modes_have_the_frequencies_of_the_transfer_matrix(line):
    section, exact = line
    assert frequencies(section) == pytest.approx(exact, rel=1e-9)


def test_elements_come_down_on_the_frequencies_of_the_transfer_matrix(line):
    # errors 1e-8 .. 1e-1: above the round-off 1e-10 of both
    section, exact = line
    coarse, fine = (frequencies(section, "elements", n)[:3] / exact[:3] - 1 for n in (6, 24))
    assert (fine > 0).all()
    assert (coarse > 3 * fine).all()


def test_timoshenkos_frequencies_are_those_of_the_closed_form():
    # clamped and free, below the cut-off b r s = 1. Source: [Huang61]
    r2, s2 = 0.003, 1 / 90

    def equation(b):
        root = np.sqrt((r2 - s2) ** 2 + 4 / b**2)
        alpha, beta = np.sqrt((root - r2 - s2) / 2), np.sqrt((root + r2 + s2) / 2)
        waves = np.cosh(b * alpha) * np.cos(b * beta), np.sinh(b * alpha) * np.sin(b * beta)
        factor = b * (r2 + s2) / np.sqrt(1 - b**2 * r2 * s2)
        return 2 + (b**2 * (r2 - s2) ** 2 + 2) * waves[0] - factor * waves[1]

    section = LINES["Timoshenko"][0]
    assert frequencies(section) == pytest.approx(roots(equation, 4, 0.4), rel=1e-10)


def error_of(section, exact, counts, mode):
    """Relative errors of one frequency by number of elements."""
    found = [frequencies(section, "elements", n)[mode] for n in counts]
    return np.array(found) / exact - 1


@pytest.mark.parametrize(
    ("name", "order"),
    [("stepped", 4), ("mass at midspan", 4), ("Rayleigh", 4), ("Timoshenko", 2)],
)
def test_elements_converge_at_their_order(name, order):
    # 10 to 40 elements: past the coarse range, errors (1e-2 .. 5e-8) above round-off. A rotation of
    # degree two leaves a shear strain that is constant on an element: order two where it counts.
    section, pieces, point_masses = LINES[name]
    exact = roots(lambda w: transferred(w, pieces, point_masses), 2, 0.4)[1]
    counts = np.array([10, 20, 40])  # nodes at 0.4 and 0.5
    error = error_of(section, exact, counts, 1)
    assert (error > 0).all()
    assert -np.polyfit(np.log(counts), np.log(error), 1)[0] == pytest.approx(order, abs=0.1)


@pytest.mark.parametrize("rotary", [0.0, 0.3])
@pytest.mark.parametrize("mode", [0, 1])
def test_shear_that_grows_along_an_element_is_all_that_elements_with_shear_lack(rotary, mode):
    # w too high by b^4 / (24 s n^2) beside Hermite's b^4 / (1440 n^4), b^4 = w^2: they meet at
    # n^2 = s / 60. 8 and 16 elements of s = 1e4: errors 2e-4 to 3e-7, both parts in them.
    s, n = 1e4, np.array([8, 16])
    section = {"rotary": Profile(value=(rotary / s, rotary / s))} if rotary else {}
    section = SectionProfile(shear=Profile(value=(s, s)), **section)
    exact = frequencies(section)[mode]
    hermite = error_of(SectionProfile(), clamped_mass_roots(2)[mode] ** 2, n, mode)
    excess = error_of(section, exact, n, mode) - hermite
    assert excess == pytest.approx(exact**2 / (24 * s * n**2), rel=0.04)


def test_elements_of_a_tapered_bar_converge_at_order_four():
    section, _ = taper(2, 0.3)
    exact = frequencies(section)[1]
    counts = np.array([16, 32, 64])  # errors 1e-5 .. 4e-8: past a coarse range that the taper makes
    error = error_of(section, exact, counts, 1)
    assert -np.polyfit(np.log(counts), np.log(error), 1)[0] == pytest.approx(4, abs=0.1)


@pytest.mark.parametrize("load", [TipLoad(), TipLoad(mass=0.5, inertia=0.1, offset=-0.2)], ids=str)
def test_a_uniform_line_written_in_pieces_has_its_closed_form_modes(load):
    section = SectionProfile(mass=relative([0, 0.37, 1], [1, 1, 1]))
    assert not section.plain
    found, exact = assumed_modes(5, load, section), assumed_modes(5, load)
    xi = np.linspace(0, 1, 41)
    assert found.frequencies == pytest.approx(clamped_mass_roots(5, load) ** 2, rel=1e-12)
    np.testing.assert_allclose(found.value(xi), exact.value(xi), atol=1e-9)
    np.testing.assert_allclose(found.slope(xi), exact.slope(xi), atol=1e-8)


@pytest.mark.parametrize("name", LINES)
def test_modes_share_the_mass_of_their_line(name):
    section = LINES[name][0]
    M, K = unit_mass_and_stiffness(assumed_modes(4, section=section), section)
    w = frequencies(section)
    np.testing.assert_allclose(M, np.eye(4), atol=1e-9)
    np.testing.assert_allclose(K, np.diag(w**2), atol=1e-8 * w[-1] ** 2)


@pytest.mark.slow_but("mass at midspan-elements", "stepped-elements", "Timoshenko-elements")
@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("name", LINES)
def test_a_line_in_a_tip_load_counts_it_as_a_mass_at_its_end(name, kind):
    section = LINES[name][0]
    load, point_mass = TipLoad(mass=0.5, inertia=0.02), PointMass(x=1.0, mass=0.5, inertia=0.02)
    more = SectionProfile(
        mass=section.mass,
        bending=section.bending,
        point_masses=(*section.point_masses, point_mass),
        rotary=section.rotary,
        shear=section.shear,
    )
    as_load = frequencies(section, kind, 4, load)
    assert frequencies(more, kind, 4)[:3] == pytest.approx(as_load[:3], rel=1e-9)


@pytest.mark.parametrize("name", LINES)
def test_craig_bampton_keeps_the_slow_modes_of_any_line(name):
    section = LINES[name][0]
    line = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0}, sections={"y": section})
    base = hermite_elements(16, section=section)
    reduced = drop_above(base, line, "y", 250.0)
    whole = assemble_matrices(line, "y", base).frequencies()
    kept = assemble_matrices(line, "y", reduced).frequencies()
    assert len(kept) < len(whole) / 2
    assert kept[0] == pytest.approx(whole[0], rel=1e-4)
    assert (kept >= whole[: len(kept)] * (1 - 1e-10)).all()


def test_nodes_stand_on_steps_and_lumps():
    section = SectionProfile(
        mass=relative([0, 0.4, 0.4, 1], [2, 2, 1, 1]), point_masses=(PointMass(x=0.5, mass=1.0),)
    )
    shapes = hermite_elements(7, section=section)
    assert {0.0, 0.4, 0.5, 1.0} <= set(shapes.breaks)
    assert len(shapes.names) == 14


def test_with_fewer_elements_than_pieces_they_are_equal():
    section = SectionProfile(
        mass=relative([0, 0.4, 0.4, 1], [2, 2, 1, 1]), point_masses=(PointMass(x=0.5, mass=1.0),)
    )
    assert hermite_elements(2, section=section).breaks == pytest.approx([0, 0.5, 1])


def test_a_mean_other_than_one_is_refused():
    with pytest.raises(InputError, match="mass: expected a profile of mean 1, got 2"):
        SectionProfile(mass=Profile(value=(2.0, 2.0)))


@pytest.mark.parametrize("wrong", [{"x": 1.5, "mass": 1.0}, {"x": 0.5, "mass": -1.0}], ids=str)
def test_an_impossible_lump_is_refused(wrong):
    with pytest.raises(InputError, match="expected"):
        PointMass(**wrong)


@pytest.mark.parametrize("apart", [1e-2, 1e-4, 1e-7, 1e-11])
def test_two_masses_close_together_are_nearly_one(apart):
    pair = SectionProfile(
        point_masses=(PointMass(x=0.3, mass=0.1), PointMass(x=0.3 + apart, mass=0.1))
    )
    one = SectionProfile(point_masses=(PointMass(x=0.3 + apart / 2, mass=0.2),))
    # what is left is their inertia about the middle, 0.2 (apart / 2)^2 beside a mass of 1
    limit = 1e-12 + 20 * apart**2
    found, expected = (frequencies(section, order=3) for section in (pair, one))
    assert found == pytest.approx(expected, rel=limit)


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-6])
def test_a_short_soft_piece_is_a_hinge_with_a_spring(width):
    # Its compliance width / (EI of the piece) is 1.
    ends = (0.0, width, width, 1.0)
    soft = Profile(x=ends, value=(width, width, 1.0, 1.0))
    w = frequencies(SectionProfile(bending=soft.scaled(1 / soft.mean)), order=1)[0]
    b = brentq(lambda b: sprung_root(b, 1.0), 0.5, 1.875, xtol=1e-14)
    assert w * soft.mean**0.5 == pytest.approx(b**2, rel=5 * width)


def sprung_root(b, compliance):
    """Frequency equation of a uniform line on a pinned root with a rotary spring."""
    ch, sh, c, s = np.cosh(b), np.sinh(b), np.cos(b), np.sin(b)
    return 1 + ch * c - compliance * b * (ch * s - sh * c)


def test_places_that_agree_but_for_round_off_are_one():
    point_masses = tuple(PointMass(x=x, mass=0.1) for x in (0.3, 0.1 + 0.2, 1 - 1e-16, 1e-16))
    assert SectionProfile(point_masses=point_masses).breaks == pytest.approx([0, 0.3, 1], abs=0)


def test_an_element_too_short_to_be_told_from_a_rigid_one_is_refused():
    point_masses = (PointMass(x=0.3, mass=0.1), PointMass(x=0.3001, mass=0.1))
    with pytest.raises(InputError, match=r"at least 0\.0005 of its length"):
        hermite_elements(5, section=SectionProfile(point_masses=point_masses))
