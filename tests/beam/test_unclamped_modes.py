"""Pinned and free modes: closed forms, and what [TG95] 1.1 reports of the controlled end."""

import numpy as np
import pytest
import scipy.linalg
from scipy.optimize import brentq

from flexctl.beam.assumed_modes import assumed_modes, free_modes, pinned_modes
from flexctl.beam.elements import hermite_elements
from flexctl.beam.line import PointMass, SectionProfile, TipLoad
from flexctl.beam.matrices import unit_mass_and_stiffness
from flexctl.model.profile import Profile


def roots(function, count, step=0.05, start=0.3):
    """The lowest roots of a function on a grid that knows nothing of the answer."""
    x, found = start, []
    while len(found) < count:
        if function(x) * function(x + step) < 0:
            found.append(brentq(function, x, x + step, xtol=1e-14, rtol=1e-15))
        x += step
    return np.array(found)


def pinned(b):
    """tan b = tanh b, multiplied out."""
    return np.sin(b) - np.cos(b) * np.tanh(b)


def free(b):
    """1 = cosh b cos b, divided by cosh b."""
    return 1 / np.cosh(b) - np.cos(b)


CLOSED = {pinned_modes: pinned, free_modes: free}


@pytest.mark.parametrize("basis", CLOSED)
def test_frequencies_of_a_uniform_line_are_those_of_the_closed_form(basis):
    found = basis(5).frequencies
    assert found == pytest.approx(roots(CLOSED[basis], 5, start=2.0) ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("basis", "whole"),
    [
        (pinned_modes, lambda b, x: np.sin(b * x) + np.sin(b) / np.sinh(b) * np.sinh(b * x)),
        (
            free_modes,
            lambda b, x: (
                (np.cosh(b) - np.cos(b)) * (np.sinh(b * x) + np.sin(b * x))
                - (np.sinh(b) - np.sin(b)) * (np.cosh(b * x) + np.cos(b * x))
            ),
        ),
    ],
)
def test_shapes_are_the_closed_form_less_its_tangent_at_the_root(basis, whole):
    b, h = roots(CLOSED[basis], 3, start=2.0), 1e-30
    xi = np.linspace(0, 1, 21)
    exact = np.array([whole(k, xi) - whole(k, 0.0) - xi * np.imag(whole(k, 1j * h)) / h for k in b])
    found = basis(3).value(xi)
    ratio = np.sum(found * exact, axis=1) / np.sum(exact**2, axis=1)
    np.testing.assert_allclose(found, ratio[:, None] * exact, atol=1e-8)


# A line on a hub of inertia h (over m l^2) whose joint is held by a spring kappa (over EI/l), as
# position control does: what it does as a whole, with n shapes of a kind beside the joint variable.


def on_hub(shapes, h, kappa=0.0):
    """Frequencies with shapes and the rigid turn xi: all but the rigid motion."""
    xi, weights = shapes.quadrature()
    turn, psi = xi, shapes.value(xi)
    M, K = unit_mass_and_stiffness(shapes)
    cross = psi @ (weights * turn)
    mass = np.block([[np.array([[1 / 3 + h]]), cross[None]], [cross[:, None], M]])
    stiffness = scipy.linalg.block_diag(kappa, K)
    w2 = scipy.linalg.eigh(stiffness, mass, eigvals_only=True)
    return np.sqrt(w2[1:] if kappa == 0 else w2)


def exact_on_hub(count, h, kappa=0.0):
    """Roots of the frequency equation of a line whose root turns, w = b^2.

    At the root phi'' = (kappa - h b^4) phi', phi = 0; the tip is free. With phi = A (sin + sinh)
    + B (sin - sinh) + C (cosh - cos) in b xi: A 2 b = phi', C 2 b^2 = phi''.
    """

    def determinant(b):
        s, c, sh, ch = np.sin(b), np.cos(b), np.sinh(b), np.cosh(b)
        ratio = (kappa - h * b**4) / b  # C / A
        moment = [-s + sh + ratio * (ch + c), -s - sh]
        shear = [-c + ch + ratio * (sh - s), -c - ch]
        return np.linalg.det(np.array([moment, shear])) / ch

    return roots(determinant, count, 0.02) ** 2


@pytest.mark.slow_but(
    "hermite_elements-counts1-4-0.3-1.0-5.0",
    "hermite_elements-counts1-4-0.3-0.01-5.0",
    "assumed_modes-counts0-7-0.5-0.01-0.0",
)
@pytest.mark.parametrize("kappa", [0.0, 5.0])
@pytest.mark.parametrize("h", [0.01, 1.0])
@pytest.mark.parametrize(
    ("basis", "counts", "order", "by"),
    [
        (assumed_modes, [4, 6, 8], 7, 0.5),
        (hermite_elements, [4, 8, 16], 4, 0.3),
        (pinned_modes, [8, 16, 32], 1, 0.1),
        (free_modes, [16, 32, 64], 1, 0.3),
    ],
)
def test_bases_come_down_on_the_exact_frequencies_at_their_order(
    basis, counts, order, by, h, kappa
):
    # No pinned or free mode bends at the root, where a hub does bend the line: a curvature that n
    # modes follow to 1/n in frequency. Errors 1e-1 .. 5e-11: the ranges are those above round-off.
    exact = exact_on_hub(2, h, kappa)[1]
    error = np.array([on_hub(basis(n), h, kappa)[1] / exact - 1 for n in counts])
    assert (error > 0).all()
    assert -np.polyfit(np.log(counts), np.log(error), 1)[0] == pytest.approx(order, abs=by)


def errors(h, kappa=0.0, n=2):
    """Largest relative error of the two lowest bending frequencies, clamped and pinned modes."""
    exact = exact_on_hub(2, h, kappa)
    return [
        np.abs(on_hub(basis(n), h, kappa)[:2] / exact - 1).max()
        for basis in (assumed_modes, pinned_modes)
    ]


@pytest.mark.parametrize("beam_to_hub", [0.01, 0.03, 0.1])
def test_clamped_modes_are_the_better_ones_on_a_heavy_hub(beam_to_hub):
    # [HastingsBook86]: at a ratio of the beam's inertia m l^2 / 3 to the hub's of 0.1 and less
    clamped, pinned = errors(1 / 3 / beam_to_hub)
    assert clamped < pinned / 10


@pytest.mark.parametrize("beam_to_hub", [300.0, 1000.0, 1e4])
def test_pinned_modes_are_the_better_ones_on_a_light_hub_that_is_free(beam_to_hub):
    clamped, pinned = errors(1 / 3 / beam_to_hub)
    assert pinned < clamped


def test_pinned_modes_are_exact_without_a_hub():
    assert on_hub(pinned_modes(2), 0.0) == pytest.approx(exact_on_hub(2, 0.0), rel=1e-10)


def test_clamped_modes_are_the_better_ones_under_stiff_position_control():
    clamped, pinned = errors(0.001, kappa=300.0)
    assert clamped < pinned


def test_both_frames_span_the_same_motions():
    # [BellezzaLanariUlivi90]: in the frame of the tangent and in that of the pinned line the
    # exact modes of a line on its hub are the same motions. Here: the pinned modes with their own
    # rigid turn, with the hub at phi'(0), against the same modes seen from the tangent.
    h, shapes = 0.2, pinned_modes(4)
    b = np.sqrt(shapes.frequencies)
    xi, weights = shapes.quadrature()
    x, k = xi[None], b[:, None]
    whole = np.sin(k * x) + np.sin(k) / np.sinh(k) * np.sinh(k * x)
    bent = -np.sin(k * x) + np.sin(k) / np.sinh(k) * np.sinh(k * x)
    root = b * (1 + np.sin(b) / np.sinh(b))
    phi = np.vstack([xi, whole])
    at_hub = np.append(1.0, root)
    mass = (phi * weights) @ phi.T + h * np.outer(at_hub, at_hub)
    stiffness = scipy.linalg.block_diag(0.0, (k**2 * bent * weights) @ (k**2 * bent).T)
    w = np.sqrt(scipy.linalg.eigh(stiffness, mass, eigvals_only=True)[1:])
    assert on_hub(shapes, h) == pytest.approx(w, rel=1e-9)


@pytest.mark.parametrize("basis", [pinned_modes, free_modes])
def test_a_load_at_the_tip_and_a_mass_there_give_the_same_modes(basis):
    shear = Profile(value=(80.0, 80.0))
    load, point_mass = TipLoad(mass=0.4, inertia=0.02), PointMass(x=1.0, mass=0.4, inertia=0.02)
    one = basis(3, load, SectionProfile(shear=shear))
    other = basis(3, section=SectionProfile(shear=shear, point_masses=(point_mass,)))
    assert one.frequencies == pytest.approx(other.frequencies, rel=1e-10)
