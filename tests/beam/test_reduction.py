"""Leaving out fast modes: statics stay, low frequencies stay, the rest goes."""

import numpy as np
import pytest

from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import assemble_matrices, unit_mass_and_stiffness
from flexctl.beam.reduction import CraigBampton, drop_above
from flexctl.errors import InputError

BEAM = Beam(length=0.8, mass_per_length=0.3, EI={"y": 2.5})
UNIT = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0})
BASE = {"elements": hermite_elements(10), "modes": assumed_modes(14)}
LOADS = [TipLoad(), TipLoad(mass=0.5, inertia=0.02, offset=0.05)]
CLAMPED_CLAMPED = np.array([22.3733, 61.6728, 120.9034])  # closed form, roots of cosh cos = 1


@pytest.fixture(params=BASE)
def base(request):
    return BASE[request.param]


def tip_compliance(shapes):
    """Tip deflection and slope for a unit tip force and moment, (2, 2)."""
    K = assemble_matrices(BEAM, "y", shapes).stiffness
    rows = np.vstack([shapes.value(1.0)[:, 0], shapes.slope(1.0)[:, 0] / BEAM.length])
    rows = rows * BEAM.length**shapes.power
    return rows @ np.linalg.solve(K, rows.T)


@pytest.mark.parametrize("kept", [0, 1, 4])
def test_statics_of_the_tip_are_those_of_the_base(base, kept):
    reduced = CraigBampton(base=base, kept=kept)
    np.testing.assert_allclose(tip_compliance(reduced), tip_compliance(base), rtol=1e-9)


@pytest.mark.parametrize("kept", [0, 3])
def test_the_first_two_coordinates_are_the_tip(base, kept):
    reduced = CraigBampton(base=base, kept=kept)
    assert reduced.names[:2] == ("tip.deflection", "tip.slope")
    unit = np.eye(2, kept + 2)
    np.testing.assert_allclose(reduced.value(1.0)[:, 0], unit[0], atol=1e-10)
    np.testing.assert_allclose(reduced.slope(1.0)[:, 0], unit[1], atol=1e-10)


def test_over_elements_the_static_shapes_are_the_cubics():
    reduced, xi = CraigBampton(base=BASE["elements"], kept=0), np.linspace(0, 1, 41)
    cubics = np.array([3 * xi**2 - 2 * xi**3, xi**3 - xi**2])
    np.testing.assert_allclose(reduced.value(xi), cubics, atol=1e-12)


def test_kept_modes_are_those_with_both_ends_clamped():
    # ten elements: the third is (beta h)^4 / 720 = 2e-3 / 6 too high
    M, K = unit_mass_and_stiffness(CraigBampton(base=BASE["elements"], kept=3))
    np.testing.assert_allclose(M[2:, 2:], np.eye(3), atol=1e-10)
    np.testing.assert_allclose(np.sqrt(np.diag(K)[2:]), CLAMPED_CLAMPED, rtol=1e-3)
    np.testing.assert_allclose(K[:2, 2:], 0, atol=1e-8)


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_keeping_every_mode_changes_nothing(base, load):
    whole = CraigBampton(base=base, kept=len(base.names) - 2)
    np.testing.assert_allclose(
        assemble_matrices(BEAM, "y", whole, load).frequencies(),
        assemble_matrices(BEAM, "y", base, load).frequencies(),
        rtol=1e-7,
    )


@pytest.mark.parametrize("load", LOADS, ids=str)
@pytest.mark.parametrize("cutoff", [300.0, 1000.0])
def test_frequencies_far_below_the_cutoff_stay_and_none_falls(base, load, cutoff):
    reduced = drop_above(base, UNIT, "y", cutoff)
    assert len(reduced.names) < len(base.names)
    found = assemble_matrices(UNIT, "y", reduced, load).frequencies()
    before = assemble_matrices(UNIT, "y", base, load).frequencies()[: found.size]
    assert (found >= before * (1 - 1e-8)).all()
    slow = before < cutoff / 4
    assert slow.sum() >= 2
    # of the order of (w / cutoff)^2 times the small part that the dropped modes take in the motion
    assert (found[slow] / before[slow] - 1 < 0.1 * (before[slow] / cutoff) ** 2).all()


@pytest.mark.parametrize(
    ("cutoff", "kept"), [(22.0, 0), (23.0, 1), (61.0, 1), (62.0, 2), (120.0, 2), (121.5, 3)]
)
def test_the_cutoff_counts_modes_with_both_ends_clamped(cutoff, kept):
    # in rad/s of the line in question; free modes would need hundreds to clamp their tip
    cutoff *= BEAM.frequency_unit("y")
    assert drop_above(BASE["elements"], BEAM, "y", cutoff).kept == kept


def test_nothing_to_drop_gives_back_the_base(base):
    assert drop_above(base, BEAM, "y", 1e12) is base


@pytest.mark.parametrize("small", [hermite_elements(1), assumed_modes(1), assumed_modes(2)])
def test_a_basis_that_only_places_the_tip_is_left_alone(small):
    shapes = small
    assert drop_above(shapes, BEAM, "y", 1.0) is shapes


def test_many_elements_reduced_lose_their_fast_modes_and_keep_the_exact_ones():
    fine = hermite_elements(40)
    reduced = drop_above(fine, UNIT, "y", 2000.0)
    matrices = assemble_matrices(UNIT, "y", reduced)
    assert matrices.frequencies()[-1] < 1e4
    assert assemble_matrices(UNIT, "y", fine).frequencies()[-1] > 9e4
    # 0.1 (w / cutoff)^2 as above, 1e-8 .. 4e-4
    exact = clamped_mass_roots(4) ** 2
    error = matrices.frequencies()[:4] / exact - 1
    assert (error < 0.1 * (exact / 2000.0) ** 2 + 1e-7).all()


@pytest.mark.parametrize("kept", [-1, 19])
def test_impossible_numbers_of_kept_modes_are_refused(kept):
    with pytest.raises(InputError, match=r"expected 0 \.\. 18"):
        CraigBampton(base=BASE["elements"], kept=kept)


@pytest.mark.parametrize("cutoff", [0.0, -1.0, np.nan])
def test_impossible_cutoffs_are_refused(base, cutoff):
    with pytest.raises(InputError, match="cutoff"):
        drop_above(base, BEAM, "y", cutoff)
