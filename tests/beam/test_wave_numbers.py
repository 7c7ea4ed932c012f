"""Wave numbers of the clamped line with a tip load: closed forms, published figures, elements."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots, count_roots_below
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.matrices import assemble_matrices
from flexctl.errors import InputError

UNIT = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0})
LOADS = [
    TipLoad(mass=0.5),
    TipLoad(inertia=0.3),
    TipLoad(mass=0.8, inertia=0.1, offset=0.2),
    TipLoad(mass=0.8, inertia=0.1, offset=-0.2),
    TipLoad(mass=2.0, inertia=2.0 * 0.3**2, offset=2.0 * 0.3),
    TipLoad(mass=2.0, inertia=2.0 * 0.3**2, offset=-2.0 * 0.3),
    TipLoad(mass=3.8, inertia=4500.0, offset=-93.0),
    TipLoad(mass=4400.0, inertia=0.15, offset=20.0),
    TipLoad(mass=1e4, inertia=1e4),
    TipLoad(mass=1e4, inertia=1e4, offset=-9999.0),
    TipLoad(mass=1e4, inertia=1e4, offset=9999.0),
]


def frequency_equation(beta, load):
    """Left side of (11) of [TG95], as printed, divided by cosh(beta)."""
    M, J, D = load.mass, load.inertia, load.offset
    e, t, s, c = 1 / np.cosh(beta), np.tanh(beta), np.sin(beta), np.cos(beta)
    return (
        (e + c)
        - M * beta * (s - t * c)
        - J * beta**3 * (s + t * c)
        + M * J * beta**4 * (e - c)
        - D**2 * beta**4 * (e - c)
        - 2 * D * beta**2 * t * s
    )


def test_first_clamped_free_roots_to_the_last_digit():
    # Meirovitch's table continued to 17 digits: roots of cos(b) cosh(b) = -1
    exact = [1.8751040687119611664, 4.6940911329741745764, 7.8547574382376125649]
    np.testing.assert_allclose(clamped_mass_roots(3), exact, rtol=1e-15)


def test_high_clamped_free_roots_reach_their_limit():
    # root i differs from (i - 1/2) pi by 2 exp(-beta): below round-off from i = 12 on
    i = np.arange(12, 201)
    np.testing.assert_allclose(clamped_mass_roots(200)[11:], (i - 0.5) * math.pi, rtol=1e-15)


@pytest.mark.parametrize(
    ("mass", "published"),
    [
        (0.0, [3.5160, 22.0345, 61.697]),
        (0.1, [2.9678, 19.3558, 55.5182]),
        (0.5, [2.0163, 16.9014, 51.7009]),
        (1.0, [1.5573, 16.2501, 50.8958]),
        (5.0, [0.7569, 15.6023]),
    ],
)
def test_tip_mass_frequencies_match_published_figures(mass, published):
    # four decimals are published, the third clamped-free frequency with three
    found = clamped_mass_roots(len(published), TipLoad(mass=mass)) ** 2
    np.testing.assert_allclose(found, published, rtol=1.5e-5, atol=5.1e-5)


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_roots_agree_with_many_elements(load):
    # 80 elements: mode 4 is (beta h)^4 / 1440 = 2.6e-7 too high, round-off about 1e-8
    fine = assemble_matrices(UNIT, "y", hermite_elements(80), load)
    found = np.sqrt(fine.frequencies()[:4])
    np.testing.assert_allclose(clamped_mass_roots(4, load), found, rtol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.floats(-3, 4), st.floats(-3, 4), st.floats(-1, 1))
def test_roots_of_any_load_agree_with_many_elements(log_mass, log_inertia, correlation):
    mass, inertia = 10**log_mass, 10**log_inertia
    load = TipLoad(mass=mass, inertia=inertia, offset=correlation * math.sqrt(mass * inertia))
    fine = assemble_matrices(UNIT, "y", hermite_elements(64), load)
    found = np.sqrt(fine.frequencies()[:3])
    np.testing.assert_allclose(clamped_mass_roots(3, load), found, rtol=1e-6)


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_the_printed_equation_changes_sign_across_every_root(load):
    # 1e-7 to either side is far above round-off of the printed form from the third root on
    beta = clamped_mass_roots(60, load)[2:]
    below, above = (frequency_equation(beta * (1 + e), load) for e in (-1e-7, 1e-7))
    assert (below * above < 0).all()


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_no_root_is_missed_between_those_of_the_clamped_tip(load):
    # Two conditions more: beta_i <= root i of the clamped tip <= beta_(i + 2), by interlacing.
    beta = clamped_mass_roots(62, load)
    clamped_tip = clamped_mass_roots(62, TipLoad(mass=1e12, inertia=1e12))[2:]
    slack = 1e-11  # the clamped tip is one with a finite load here
    assert (beta[:60] <= clamped_tip * (1 + slack)).all()
    assert (clamped_tip <= beta[2:] * (1 + slack)).all()


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_count_steps_by_one_at_each_root(load):
    beta = clamped_mass_roots(60, load)
    i = np.arange(60)
    np.testing.assert_array_equal(count_roots_below(beta * (1 - 1e-12), load), i)
    np.testing.assert_array_equal(count_roots_below(beta * (1 + 1e-12), load), i + 1)


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_two_slow_roots_of_a_heavy_load_follow_from_static_stiffness(ratio):
    # the line is then a spring [12, -6; -6, 4]; its own mass changes the roots by about 1 / load
    load = TipLoad(mass=1e10, inertia=1e10 * ratio / (1 + ratio), offset=0.0)
    spring = np.array([[12.0, -6.0], [-6.0, 4.0]])
    inverse = np.diag([1 / load.mass, 1 / load.inertia])
    squares = np.sort(np.linalg.eigvals(inverse @ spring).real)
    rtol = 1 / load.inertia + 1e-9  # and 1e-9 is what the 2 by 2 eigenvalues are good for
    np.testing.assert_allclose(clamped_mass_roots(2, load) ** 4, squares, rtol=rtol)


@pytest.mark.parametrize("n", [0, -1, 201, 2.0, True, "3"])
def test_impossible_numbers_of_roots_are_refused(n):
    with pytest.raises(InputError, match=r"expected a whole number in 1 \.\. 200"):
        clamped_mass_roots(n)
