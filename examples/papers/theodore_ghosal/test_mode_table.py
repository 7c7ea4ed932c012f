"""Tables of a sliding line's modes: the proven bound at random lengths, CasADi, refusals."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from examples.papers.theodore_ghosal.mode_rates import with_rates
from examples.papers.theodore_ghosal.mode_table import tabulate_modes
from examples.papers.theodore_ghosal.moving_integrals import INTEGRALS, shape_integrals
from flexctl.beam.chebyshev import chebyshev_sum
from flexctl.beam.load_path import SlidingLine
from flexctl.beam.moving_modes import find_moving_modes
from flexctl.errors import ComputationError, InputError

# models/theodore-ghosal-rrp.toml, link 3 and payload, in its range; and a body whose modes 2 and 3
# lift the tip on one side at one length and on the other side at another
CASES = {
    "rrp": (4, SlidingLine(mass_per_length=0.331, mass=0.0828), 0.1, 1.3),
    "body": (
        3,
        SlidingLine(mass_per_length=0.331, mass=0.0828, inertia=1e-3, first_moment=5e-3),
        0.5,
        1.0,
    ),
}
NAMES = ["beta", "tip", "tip_slope", *INTEGRALS]
ROUND_OFF = 3e-14  # of the scale: in the values at nodes and in those compared with

each_case = pytest.mark.parametrize("case", CASES)


@cache
def table(case):
    return tabulate_modes(*CASES[case])


@cache
def at_random_lengths(case):
    """A thousand lengths and the exact values there, signs made those of the table."""
    n, line, shortest, longest = CASES[case]
    random = np.random.default_rng(6)
    lengths = np.sort(np.exp(random.uniform(np.log(shortest), np.log(longest), 1000)))
    modes = find_moving_modes(n, line.loads(lengths))
    sign = np.sign(modes.tip(0) * table(case).evaluate("tip", lengths))
    return lengths, shape_integrals(with_rates(modes.times(sign)))


@pytest.mark.slow_but("shortening_first-body")
@each_case
@pytest.mark.parametrize("name", NAMES)
def test_the_error_stays_below_its_bound_at_a_thousand_lengths(case, name):
    lengths, exact = at_random_lengths(case)
    error = np.abs(table(case).evaluate(name, lengths) - exact[name].values).max(axis=0)
    assert (error <= table(case).error[name] + ROUND_OFF * table(case).scale[name]).all()


@each_case
@pytest.mark.parametrize("name", NAMES)
def test_the_bound_meets_the_tolerance(case, name):
    assert (table(case).error[name] <= 1e-12 * table(case).scale[name]).all()


def test_signs_do_not_jump_where_the_tip_passes_through_rest():
    tip = table("body").evaluate("tip", np.linspace(0.5, 1.0, 200))
    passing = (np.sign(tip[1:]) != np.sign(tip[:-1])).any(axis=0)
    assert passing.any()
    assert np.abs(np.diff(tip, axis=0)).max() < 0.05 * np.abs(tip).max()


@each_case
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_the_polynomials_are_the_exact_ones(case, order):
    lengths, _ = at_random_lengths(case)
    n, line = CASES[case][:2]
    modes = with_rates(find_moving_modes(n, line.loads(lengths[::50])))
    exact = (modes.beta_rate, modes.beta_second)[order - 1]
    # Markov: a derivative multiplies the error by degree^2 at most, here up to 400 each
    found = table(case).evaluate("beta", lengths[::50], derivative=order)
    np.testing.assert_allclose(found, exact, rtol=0, atol=1e-12 * modes.beta.max() * 400**order)


def test_the_growth_of_the_mass_is_what_is_carried():
    # an identity of the integrals, between the polynomials' own derivatives
    lengths = np.linspace(0.1, 1.3, 40)
    found = table("rrp").evaluate("mass", lengths)
    found = found + table("rrp").evaluate("mass", lengths, derivative=1)
    crossed = table("rrp").evaluate("value_carried", lengths)
    np.testing.assert_allclose(found, crossed + crossed.swapaxes(1, 2), atol=1e-9)


def casadi_table(name, i, derivative):
    length = ca.SX.sym("l")
    t = table("rrp").argument(ca.log(length))
    value = chebyshev_sum(table("rrp").coefficients[name][:, i], t)
    for _ in range(derivative):
        value = length * ca.gradient(value, length)  # d/ds
    return ca.Function("f", [length], [value])


@pytest.mark.parametrize("name", ["beta", "tip", "mean"])
@pytest.mark.parametrize("derivative", [0, 1, 2])
def test_casadi_evaluates_and_differentiates_the_same_polynomials(name, derivative):
    lengths = np.array([0.1, 0.37, 1.0, 1.3])
    f = casadi_table(name, 1, derivative)
    found = [float(f(length)) for length in lengths]
    exact = table("rrp").evaluate(name, lengths, derivative)[:, 1]
    np.testing.assert_allclose(found, exact, rtol=1e-11, atol=1e-12)


def test_less_accuracy_takes_fewer_coefficients():
    _, line, shortest, longest = CASES["rrp"]
    coarse = tabulate_modes(2, line, shortest, longest, tolerance=1e-6)
    assert len(coarse.coefficients["mass"]) < 0.7 * len(table("rrp").coefficients["mass"])
    lengths = np.linspace(shortest, longest, 50)
    fine = table("rrp").evaluate("mass", lengths)[:, :2, :2]
    error = np.abs(coarse.evaluate("mass", lengths) - fine).max()
    assert 1e-9 < error <= 1e-6


def test_a_line_without_a_load_needs_no_degree():
    free = tabulate_modes(2, SlidingLine(mass_per_length=1.0), 0.1, 1.0)
    np.testing.assert_allclose(free.coefficients["beta"][0], [1.875104068711961, 4.694091132974175])
    assert np.abs(free.coefficients["mass"][1:]).max() < 1e-14


@pytest.mark.parametrize("length", [0.0999, 1.3001, [0.5, 2.0]])
def test_lengths_out_of_range_are_refused(length):
    with pytest.raises(InputError, match=r"length: expected 0\.1 \.\. 1\.3 m, got"):
        table("rrp").evaluate("beta", length)


def test_an_unknown_name_is_refused():
    with pytest.raises(InputError, match=r"name: expected one of .*, got 'bet'"):
        table("rrp").evaluate("bet", 0.5)


@pytest.mark.parametrize("ends", [(0.0, 1.0), (1.0, 1.0), (1.0, 0.5), (0.1, np.inf)])
def test_a_range_that_is_none_is_refused(ends):
    with pytest.raises(InputError, match="lengths: expected 0 < shortest < longest"):
        tabulate_modes(2, CASES["rrp"][1], *ends)


@pytest.mark.parametrize("tolerance", [0.0, 1e-15, 1.0, np.nan])
def test_an_impossible_tolerance_is_refused(tolerance):
    with pytest.raises(InputError, match="tolerance: expected"):
        tabulate_modes(2, CASES["rrp"][1], 0.1, 1.0, tolerance=tolerance)


@pytest.mark.parametrize(
    ("inertia", "message"),
    [(0.025, "expected at most 20000 lengths for the proof"), (0.02, "too small; a shorter range")],
    ids=["close to a point", "a point"],
)
def test_a_proof_that_is_too_long_is_refused(inertia, message):
    far = SlidingLine(mass_per_length=0.331, mass=0.5, inertia=inertia, first_moment=0.1)
    with pytest.raises(ComputationError, match=message):
        tabulate_modes(4, far, 0.1, 1.3)


def test_more_digits_than_there_are_are_refused():
    with pytest.raises(ComputationError, match="round-off is greater"):
        tabulate_modes(4, CASES["rrp"][1], 0.1, 1.3, tolerance=1e-14)
