"""Modes of a sliding line and their derivatives by the length, against fifty digits."""

from functools import cache, partial

import mpmath
import numpy as np
import pytest

from examples.papers.theodore_ghosal.mode_rates import varying, with_rates
from examples.papers.theodore_ghosal.root_rate import root_rate
from flexctl.beam.assumed_modes import assumed_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.frequency_equation import clamped_mass_roots, count_roots_below, roots_along
from flexctl.beam.line import Beam, TipLoad
from flexctl.beam.load_path import LoadPath, SlidingLine
from flexctl.beam.matrices import assemble_matrices
from flexctl.beam.moving_modes import find_moving_modes
from tests.beam import sliding_witness

LINES = {
    "free": SlidingLine(mass_per_length=0.331),
    "point": SlidingLine(mass_per_length=0.331, mass=0.0828),
    "body": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.02, first_moment=0.09),
    "behind": SlidingLine(mass_per_length=0.331, mass=0.5, inertia=0.05, first_moment=-0.09),
    "heavy": SlidingLine(mass_per_length=0.331, mass=4e3, inertia=50.0, first_moment=-100.0),
    "far point": SlidingLine(
        mass_per_length=0.331, mass=0.5, inertia=0.5 * 0.2**2, first_moment=0.5 * 0.2
    ),
}
LENGTHS = np.array([0.1, 0.3, 0.7, 1.3])
XI = np.array([0.0, 0.3, 0.55, 1.0])

each_line = pytest.mark.parametrize("line", LINES.values(), ids=LINES)


def moving_with_rates(n, load):
    return with_rates(find_moving_modes(n, load))


def form(modes, weights_of, first, second):
    """M p P + D (p S + s P) + J s S of tips (k, n) for columns M, J, D."""
    M, J, D = (weights_of[:, i : i + 1] for i in range(3))
    (p, s), (P, S) = ((modes.tip(0, order), modes.tip(1, order)) for order in (first, second))
    return M * p * P + D * (p * S + s * P) + J * s * S


@pytest.mark.slow_but(
    "1-beta_rate-1e-10-0.9-point", "1-beta_rate-1e-10-0.9-free", "1-beta_rate-1e-10-0.1-behind"
)
@each_line
@pytest.mark.parametrize("length", [0.1, 0.9])
@pytest.mark.parametrize(
    ("order", "name", "rtol"),
    [(0, "beta", 4e-15), (1, "beta_rate", 1e-10), (2, "beta_second", 1e-10)],
)
def test_roots_and_their_derivatives_agree_with_fifty_digits(line, length, order, name, rtol):
    modes = moving_with_rates(3, line.loads([length]))
    with mpmath.workdps(50):
        s = mpmath.log(mpmath.mpf(length))
        roots = [partial(sliding_witness.root, line, near=near) for near in modes.beta[0]]
        exact = [float(mpmath.diff(root, s, order)) for root in roots]
    np.testing.assert_allclose(getattr(modes, name)[0], exact, rtol=rtol, atol=1e-13)


@cache
def shapes_at_fifty_digits(line, i, length):
    """psi, psi' and psi'' at XI and their first two derivatives by s, (3, 3, 4)."""
    near = roots_along(3, line.loads([length]))[0, i]
    with mpmath.workdps(50):
        s, h = mpmath.log(mpmath.mpf(length)), mpmath.mpf(10) ** -14
        shapes = [sliding_witness.mode(line, s + k * h, near) for k in (-1, 0, 1)]
        points = [(xi, k) for k in range(3) for xi in XI]
        below, here, above = (np.array([shape(*x) for x in points]) for shape in shapes)
        exact = [here, (above - below) / (2 * h), (above - 2 * here + below) / h**2]
    return np.array(exact, dtype=float).reshape(3, 3, XI.size)


@pytest.mark.slow_but("1-2-SlidingLine(mass_per_length=0.*", "0-0-SlidingLine(mass_per_length=0.*")
@pytest.mark.parametrize("line", [LINES["point"], LINES["behind"], LINES["far point"]], ids=str)
@pytest.mark.parametrize("i", range(3))
@pytest.mark.parametrize("order", range(3))
def test_shapes_and_their_derivatives_agree_with_fifty_digits(line, i, order):
    modes = moving_with_rates(3, line.loads([0.4]))
    found = np.array([modes.evaluate(XI, k, order)[0, i] for k in range(3)])
    whole = [modes.evaluate(np.linspace(0, 1, 40), k)[0, i] for k in range(3)]
    size = np.abs(whole).max(axis=1, keepdims=True)
    exact = shapes_at_fifty_digits(line, i, 0.4)[order]
    np.testing.assert_allclose(found / size, exact / size, rtol=0, atol=1e-11)


@each_line
def test_rates_of_the_roots_are_those_of_the_differential_form(line):
    modes = moving_with_rates(20, line.loads(LENGTHS))
    # one ulp of beta moves M J beta^4, the largest term of the equation, by beta 1e-16 of itself
    np.testing.assert_allclose(
        modes.beta_rate, root_rate(modes.beta, modes.load), rtol=1e-7, atol=1e-10
    )


@each_line
def test_modes_are_orthonormal_with_their_load(line):
    modes = find_moving_modes(6, line.loads(LENGTHS))
    xi, weights = modes.quadrature()
    value = modes.evaluate(xi)
    tips = np.stack([modes.tip(0), modes.tip(1)], axis=-1)  # (k, n, 2)
    M, J, D = (x[..., None] for x in (modes.load.mass, modes.load.inertia, modes.load.offset))
    L = np.block([[M, D], [D, J]])
    gram = np.einsum("kig,kjg,g->kij", value, value, weights) + tips @ L @ np.swapaxes(tips, 1, 2)
    np.testing.assert_allclose(gram, np.broadcast_to(np.eye(6), gram.shape), atol=1e-11)


@each_line
def test_derivatives_keep_the_modes_orthonormal(line):
    # the first two derivatives of m(psi, psi) = 1
    modes = moving_with_rates(6, line.loads(LENGTHS))
    load = modes.load
    xi, weights = modes.quadrature()
    psi, first, second = (modes.evaluate(xi, 0, order) for order in range(3))
    once = 2 * (psi * first) @ weights + 2 * form(modes, load.value, 0, 1)
    once += form(modes, load.rate, 0, 0)
    twice = 2 * (first**2 + psi * second) @ weights + form(modes, load.second, 0, 0)
    twice += 2 * (form(modes, load.value, 1, 1) + form(modes, load.value, 0, 2))
    twice += 4 * form(modes, load.rate, 0, 1)
    np.testing.assert_allclose(once, 0, atol=1e-12)
    np.testing.assert_allclose(twice, 0, atol=1e-11)


@each_line
def test_derivatives_of_the_modes_obey_the_differentiated_equation(line):
    # psi_s'''' = lambda psi_s + lambda_s psi, clamped at the root
    modes = moving_with_rates(6, line.loads(LENGTHS))
    lam, rate = modes.beta**4, 4 * modes.beta**3 * modes.beta_rate
    xi = np.linspace(0, 1, 23)
    right = lam[..., None] * modes.evaluate(xi, 0, 1) + rate[..., None] * modes.evaluate(xi)
    size = lam[..., None]
    np.testing.assert_allclose(modes.evaluate(xi, 4, 1) / size, right / size, atol=1e-11)


@each_line
@pytest.mark.parametrize("derivative", [0, 1])
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_the_modes_are_clamped_at_the_root(line, derivative, order):
    modes = moving_with_rates(6, line.loads(LENGTHS))
    assert np.abs(modes.evaluate(np.zeros(1), derivative, order)).max() < 1e-11


@each_line
def test_frequencies_agree_with_sixty_four_elements(line):
    shapes = hermite_elements(64)
    beam = Beam(length=1.0, mass_per_length=1.0, EI={"y": 1.0})
    roots = roots_along(4, line.loads(LENGTHS))
    tips = [line.tip(length) for length in LENGTHS]
    w = np.array([assemble_matrices(beam, "y", shapes, tip).frequencies()[:4] for tip in tips])
    np.testing.assert_allclose(roots, np.sqrt(w), rtol=1e-6)


@each_line
def test_modes_at_a_length_are_the_assumed_modes_but_for_their_scale(line):
    modes = find_moving_modes(5, line.loads([0.6]))
    shapes = assumed_modes(5, line.tip(0.6))
    xi, weights = modes.quadrature()
    value = modes.evaluate(xi)[0]
    value /= np.sqrt(value**2 @ weights)[:, None]
    value *= np.sign((value * shapes.value(xi)) @ weights)[:, None]
    np.testing.assert_allclose(value, shapes.value(xi), atol=1e-11)


@pytest.mark.slow_but("free", "point")
@each_line
def test_no_root_is_missed_along_the_path(line):
    load = line.loads(np.geomspace(0.05, 3.0, 200))
    beta = roots_along(30, load)
    i = np.broadcast_to(np.arange(30), beta.shape)
    np.testing.assert_array_equal(count_roots_below(beta * (1 - 1e-12), load), i)
    np.testing.assert_array_equal(count_roots_below(beta * (1 + 1e-12), load), i + 1)


@each_line
def test_roots_along_a_path_are_those_found_one_by_one(line):
    found = roots_along(12, line.loads(LENGTHS))
    alone = [clamped_mass_roots(12, line.tip(length)) for length in LENGTHS]
    # the loads themselves are rounded differently
    np.testing.assert_allclose(found, alone, rtol=4e-15)


@pytest.mark.parametrize(
    ("mass", "inertia", "slow", "published"),
    [
        (0.0, 0.0, 0, [1.8751, 4.6941, 7.8548, 10.9955]),  # clamped-free
        (1e12, 0.0, 1, [3.9266, 7.0686, 10.2102, 13.3518]),  # clamped-pinned
        (0.0, 1e12, 1, [2.3650, 5.4978, 8.6394, 11.7810]),  # clamped-sliding
        (1e12, 1e12, 2, [4.7300, 7.8532, 10.9956, 14.1372]),  # clamped-clamped
    ],
    ids=["free", "pinned", "sliding", "clamped"],
)
def test_roots_reach_the_published_limits(mass, inertia, slow, published):
    # as many roots as the load has coordinates go to zero; the others are in every handbook
    line = SlidingLine(mass_per_length=1.0, mass=mass, inertia=inertia)
    modes = find_moving_modes(slow + 4, line.loads([1.0]))
    np.testing.assert_allclose(modes.beta[0, slow:], published, atol=5.1e-5)
    assert (modes.beta[0, :slow] < 0.002).all()


def test_a_line_without_a_load_does_not_change():
    modes = moving_with_rates(6, LINES["free"].loads(LENGTHS))
    assert np.abs(modes.beta_rate).max() == 0
    assert np.abs(modes.evaluate(XI, 0, 1)).max() < 1e-12


def test_sixty_modes_meet_the_differentiated_conditions_at_the_tip():
    modes = moving_with_rates(60, LINES["body"].loads([0.3]))
    lam, load = modes.beta**4, modes.load
    lam_rate = 4 * lam * modes.kappa
    w, slope, moment, shear = (modes.tip(d, 1) for d in range(4))
    p, s = modes.tip(0, 0), modes.tip(1, 0)
    M, J, D = (lam * load.value[:, i : i + 1] for i in range(3))
    M_rate, J_rate, D_rate = (
        lam_rate * load.value[:, i : i + 1] + lam * load.rate[:, i : i + 1] for i in range(3)
    )
    in_moment = np.array([moment, -J * slope, -D * w, -J_rate * s, -D_rate * p])
    in_shear = np.array([shear, M * w, D * slope, M_rate * p, D_rate * s])
    assert (np.abs(in_moment.sum(0)) <= 1e-10 * np.abs(in_moment).sum(0)).all()
    assert (np.abs(in_shear.sum(0)) <= 1e-10 * np.abs(in_shear).sum(0)).all()


def turning(angle):
    """Load of link 1 of a planar 3R arm, by the angle of joint 3."""
    c, s = np.cos(angle), np.sin(angle)
    tip = TipLoad(mass=1.2, inertia=0.5 + 0.3 * c, offset=0.35 + 0.2 * c)
    rate, second = (0.0, -0.3 * s, -0.2 * s), (0.0, -0.3 * c, -0.2 * c)
    return varying(LoadPath.through(tip), rate, second)


TURNING = [moving_with_rates(4, turning(1.0 + k * 1e-4)) for k in (-1, 0, 1)]


@pytest.mark.parametrize(("low", "high"), [("beta", "beta_rate"), ("beta_rate", "beta_second")])
def test_rates_of_the_roots_of_a_turning_load_agree_with_differences(low, high):
    below, here, above = TURNING
    slope = (getattr(above, low) - getattr(below, low)) / 2e-4
    np.testing.assert_allclose(getattr(here, high), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("order", [0, 1])
def test_rates_of_the_modes_of_a_turning_load_agree_with_differences(order):
    below, here, above = TURNING
    slope = (above.evaluate(XI, 0, order) - below.evaluate(XI, 0, order)) / 2e-4
    np.testing.assert_allclose(here.evaluate(XI, 0, order + 1), slope, atol=1e-6)
