"""Modes of a line with varying section or shear deformation, by Ritz's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeVar

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from flexctl.beam.line import SectionProfile, TipLoad
from flexctl.beam.matrices import tip_mass, unit_mass_and_stiffness
from flexctl.beam.piecewise import IntegratedPolynomials, points
from flexctl.beam.shapes import Shapes, mode_names
from flexctl.checks import Array
from flexctl.errors import InputError

_AGREEMENT = 1e-10  # of the frequencies with those of half as many more functions per piece
_MOST_FUNCTIONS = 1500


class _Modes(Protocol):
    @property
    def frequencies(self) -> Array: ...


T = TypeVar("T", bound=_Modes)


@dataclass(frozen=True, kw_only=True, eq=False)
class RitzModes(Shapes):
    """Modes of a line as polynomials on its pieces: psi = C' f, rotation = R' g.

    Parameters
    ----------
    deflections, rotations
        The functions f (N,), and g (m,) where sections shear; None: rotation = psi'.
    C, R
        Coefficients (N, n) and (m, n) [-].
    frequencies
        Of the line with its tip load, divided by sqrt(EI / (rho A l^4)) (n,) [-].
    """

    deflections: IntegratedPolynomials
    rotations: IntegratedPolynomials | None
    C: Array
    R: Array
    frequencies: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on."""
        return mode_names(self.C.shape[1])

    @property
    def breaks(self) -> Array:
        """Ends of the pieces."""
        return np.array(self.deflections.nodes)

    @property
    def points_per_panel(self) -> int:
        """2 p: exact to degree 4 p - 1; two running integrals of slopes squared have 4 p - 2."""
        return 2 * self.deflections.degree

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all deflections at xi (k,), (n, k)."""
        return self.C.T @ self.deflections.evaluate(xi, derivative)

    def rotation(self, xi: ArrayLike) -> Array:
        """Return the rotation of the sections times l at xi (k,), (n, k)."""
        if self.rotations is None:
            return self.slope(xi)
        return self.R.T @ self.rotations.evaluate(points(xi), 0)

    def bending(self, xi: ArrayLike) -> Array:
        """Return the derivative of `rotation` by xi, (n, k)."""
        if self.rotations is None:
            return self.curvature(xi)
        return self.R.T @ self.rotations.evaluate(points(xi), 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _WithRigidMotions(Shapes):
    """Clamped shapes preceded by the first 0, 1 or 2 rigid motions: rotation xi, translation 1."""

    base: RitzModes
    motions: int

    @property
    def names(self) -> tuple[str, ...]:
        return (*("turn", "shift")[: self.motions], *self.base.names)

    @property
    def breaks(self) -> Array:
        return self.base.breaks

    @property
    def points_per_panel(self) -> int:
        return self.base.points_per_panel

    def evaluate(self, xi: Array, derivative: int) -> Array:
        nothing = np.zeros_like(xi)
        turn = (xi, nothing + 1, nothing, nothing)[derivative]
        shift = nothing + (derivative == 0)
        return np.vstack([*(turn, shift)[: self.motions], self.base.evaluate(xi, derivative)])

    def rotation(self, xi: ArrayLike) -> Array:
        own = self.base.rotation(xi)
        rigid = [np.ones(own.shape[1]), np.zeros(own.shape[1])]
        return np.vstack([*rigid[: self.motions], own])

    def bending(self, xi: ArrayLike) -> Array:
        own = self.base.bending(xi)
        return np.vstack([np.zeros((self.motions, own.shape[1])), own])


@lru_cache(maxsize=256)
def ritz_modes(order: int, tip: TipLoad, section: SectionProfile, motions: int = 0) -> RitzModes:
    """Return the lowest modes of a line of this section with a load at its tip.

    Minimum of strain over kinetic energy among all polynomials on the pieces, whose degree grows
    until the frequencies have converged: their error falls exponentially with it. The root is
    clamped, or it turns freely (1 rigid motion), or turns and translates (2). Modes phi of an
    unclamped root are described relative to the moving tangent at the root, phi(xi) - phi(0) -
    phi'(0) xi, so that they are clamped shapes like all others: together with the rigid motions
    they span the same space as phi. Normalisation: int mu psi^2 dxi + sum m psi^2 + rotary = 1 with
    point masses and rotary inertia included, so that int psi^2 dm over the whole line is rho A l,
    its mass without point masses. psi(1) > 0, or psi''(0) > 0 if the tip is nearly at rest.

    Raises InputError if the order is out of range, or so many modes cannot be computed to ten
    digits. Source: [Szabo91].
    """
    pieces = len(section.breaks) - 1
    first = 6 + math.ceil(2 * (order + motions) / pieces)
    return grown(lambda degree: _modes(order, tip, section, degree, motions), first, pieces, order)


def uniform_functions(order: int) -> RitzModes:
    """Return polynomials that give `order` modes of a clamped uniform line to ten digits.

    Their degree is the second that `ritz_modes` tries.
    """
    return _space(SectionProfile(), math.ceil(1.5 * (6 + 2 * order)))


def grown(modes: Callable[[int], T], degree: int, pieces: int, order: int) -> T:
    """Return the modes once half as many more functions no longer change their frequencies.

    Raises InputError if so many modes cannot be computed to ten digits.
    """
    coarser = modes(degree)
    while pieces * degree <= _MOST_FUNCTIONS:
        degree = math.ceil(1.5 * degree)
        finer = modes(degree)
        if (np.abs(coarser.frequencies / finer.frequencies - 1) < _AGREEMENT).all():
            return finer
        coarser = finer
    raise InputError(
        f"order: expected modes that polynomials of degree {degree} on {pieces} pieces give to ten "
        f"digits, got {order!r}; take fewer modes, or elements"
    )


def _modes(
    order: int, tip: TipLoad, section: SectionProfile, degree: int, motions: int
) -> RitzModes:
    """Find the modes among polynomials of one degree."""
    space = _space(section, degree)
    w, phi = slowest(_WithRigidMotions(base=space, motions=motions), order, tip, section, motions)
    vectors = phi[motions:]
    mass = unit_mass_and_stiffness(space, section)[0]
    sign = np.sign(_reference(space, vectors))
    vectors = vectors * sign / np.sqrt(squares(mass, vectors))
    return RitzModes(
        deflections=space.deflections,
        rotations=space.rotations,
        C=space.C @ vectors,
        R=space.R @ vectors,
        frequencies=w,
    )


def slowest(
    space: Shapes, order: int, tip: TipLoad, section: SectionProfile, motions: int = 0
) -> tuple[Array, Array]:
    """Return frequencies (n,) [-] and coefficients (N, n) of the slowest elastic modes.

    `motions` functions of the space are rigid motions.
    """
    mass, stiffness = unit_mass_and_stiffness(space, section)
    loaded, size = mass + tip_mass(space, tip), len(mass)
    # The compliances of the slow modes are large, and Rayleigh's quotient squares their error.
    # An unclamped line is held by a spring on its mass, which does not change the modes.
    held = stiffness + loaded if motions else stiffness
    kept = (size - order - motions, size - motions - 1)
    slow = scipy.linalg.eigh(loaded, held, subset_by_index=kept)[1][:, ::-1]
    return np.sqrt(squares(stiffness, slow) / squares(loaded, slow)), slow


def squares(A: Array, vectors: Array) -> Array:
    """Return x' A x of every column x, (n,)."""
    return np.einsum("in,in->n", vectors, A @ vectors)


def _reference(space: RitzModes, vectors: Array) -> Array:
    """Return the quantity that decides the sign (n,): tip deflection, or curvature at the root."""
    tip, root = space.value(1.0)[:, 0] @ vectors, space.bending(0.0)[:, 0] @ vectors
    largest = np.abs(space.value(np.linspace(0, 1, 101)).T @ vectors).max(axis=0)
    return np.where(np.abs(tip) > 1e-9 * largest, tip, root)


def _space(section: SectionProfile, degree: int) -> RitzModes:
    """Return all functions of a section profile as if each were a mode.

    With shear deformation, the first functions bend the line without shear, the others are shear
    alone.
    """
    nodes = tuple(section.breaks.tolist())
    shears = section.shear is not None
    families = (2, 1) if shears else (2,)
    w = IntegratedPolynomials(nodes=nodes, degree=degree, families=families)
    phi = IntegratedPolynomials(nodes=nodes, degree=degree - 1, families=(1,)) if shears else None
    unit = np.eye(w.size)
    return RitzModes(
        deflections=w,
        rotations=phi,
        C=unit,
        R=unit[: phi.size if phi else 0],
        frequencies=np.ones(w.size),
    )
