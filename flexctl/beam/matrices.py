"""Mass, stiffness and damping of one elastic line on its own, clamped at the root."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from flexctl.beam.line import FREE_TIP, PLAIN, Beam, SectionProfile, TipLoad
from flexctl.beam.shapes import Shapes
from flexctl.beam.vibration import natural_modes
from flexctl.checks import Array
from flexctl.errors import InputError

_ROUND_OFF = 1e-10  # of asymmetry, where the diagonal is scaled to 1


@dataclass(frozen=True, kw_only=True, eq=False)
class BeamMatrices:
    """Mass M and stiffness K of a line in its physical coordinates d.

    Parameters
    ----------
    mass
        M (n, n), kinetic energy 1/2 d'' M d' [kg, kg m, kg m^2].
    stiffness
        K (n, n), strain energy 1/2 d' K d [N/m, N, N m].

    Raises
    ------
    InputError
        If one is not a square of numbers, not symmetric or not positive definite beyond
        round-off.
    """

    mass: Array
    stiffness: Array

    def __post_init__(self) -> None:
        """Check shape, symmetry and definiteness of both."""
        for name, A in (("mass", self.mass), ("stiffness", self.stiffness)):
            _check_definite(name, A)
        if self.mass.shape != self.stiffness.shape:
            raise InputError(
                f"stiffness: expected the shape of mass {self.mass.shape}, "
                f"got {self.stiffness.shape}"
            )

    def frequencies(self) -> Array:
        """Return the natural frequencies (n,) [rad/s], ascending."""
        return self._solve()[0]

    def modes(self) -> Array:
        """Return the modes Phi (n, n) as columns, ascending: Phi' M Phi = I."""
        return self._solve()[1]

    def _solve(self) -> tuple[Array, Array]:
        squares, Phi = natural_modes(self.stiffness, self.mass)
        return np.sqrt(squares), Phi


def _check_definite(name: str, A: Array) -> None:
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.size == 0:
        raise InputError(f"{name}: expected a square matrix, got shape {A.shape}")
    diagonal = np.diag(A)
    if not (np.isfinite(A).all() and (diagonal > 0).all()):
        raise InputError(f"{name}: expected finite entries and a positive diagonal, got {A}")
    scale = 1 / np.sqrt(diagonal)
    unit = scale[:, None] * A * scale
    if (asymmetry := np.abs(unit - unit.T).max()) > _ROUND_OFF:
        raise InputError(f"{name}: expected a symmetric matrix, got asymmetry {asymmetry:.3g}")
    if (lowest := np.linalg.eigvalsh(unit)[0]) <= len(unit) * np.finfo(float).eps:
        raise InputError(f"{name}: expected positive definite, got scaled eigenvalue {lowest:.3g}")


def unit_mass_and_stiffness(shapes: Shapes, section: SectionProfile = PLAIN) -> tuple[Array, Array]:
    """Return int psi psi' dxi and int psi'' psi''' dxi, both (n, n) [-], of the unit line.

    Of a line that is not uniform: the sums of squares that `SectionProfile` gives.
    """
    if not section.plain:
        return _profile_matrices(shapes, section)
    xi, weights = shapes.quadrature()
    w = shapes.value(xi) * np.sqrt(weights)
    curvature = shapes.curvature(xi) * np.sqrt(weights)
    return w @ w.T, curvature @ curvature.T


def _profile_matrices(shapes: Shapes, section: SectionProfile) -> tuple[Array, Array]:
    xi, weights = section.rule(shapes)
    places = [point_mass.x for point_mass in section.point_masses]
    rotary = np.zeros_like(xi) if section.rotary is None else section.rotary.at(xi)
    moving = [
        _gram(shapes.value(xi), weights * section.mass.at(xi)),
        _gram(shapes.rotation(xi), weights * rotary),
        _gram(
            shapes.value(places), np.array([point_mass.mass for point_mass in section.point_masses])
        ),
        _gram(
            shapes.rotation(places),
            np.array([point_mass.inertia for point_mass in section.point_masses]),
        ),
    ]
    stiff = _gram(shapes.bending(xi), weights * section.bending.at(xi))
    if section.shear is not None:
        shear = shapes.slope(xi) - shapes.rotation(xi)
        stiff = stiff + _gram(shear, weights * section.shear.at(xi))
    return sum(moving, np.zeros_like(stiff)), stiff


def _gram(rows: Array, weights: Array) -> Array:
    """Return sum over points k of weight_k row_ik row_jk, exactly symmetric (n, n)."""
    root = rows * np.sqrt(weights)
    return root @ root.T


def assemble_matrices(
    beam: Beam, direction: str, shapes: Shapes, tip: TipLoad = FREE_TIP
) -> BeamMatrices:
    """Assemble the matrices of a line with a load at its tip.

    M = rho A l S (int psi psi^T dxi + M p p^T + D (p s^T + s p^T) + J s s^T) S with p = psi(1), s =
    psi'(1), S = diag(l^power);  K = EI / l^3 S (int psi'' psi''^T dxi) S; with the integrals of
    `unit_mass_and_stiffness` if the line is not uniform.

    Parameters
    ----------
    beam
        The line.
    direction
        Direction of deflection, "x", "y" or "z".
    shapes
        n shapes of any basis.
    tip
        Load at the tip; without one it is free.

    Returns
    -------
    BeamMatrices
        Both (n, n), in the physical coordinates: deflections [m] and slopes [-].

    Raises
    ------
    InputError
        If the line is rigid in that direction.  Source: [Meirovitch86].
    """
    mass, stiffness = unit_mass_and_stiffness(shapes, beam.section(direction))
    S = beam.length**shapes.power
    inertia = beam.mass_per_length * beam.length
    rigidity = beam.rigidity(direction) / beam.length**3
    return BeamMatrices(
        mass=inertia * S[:, None] * (mass + tip_mass(shapes, tip)) * S,
        stiffness=rigidity * S[:, None] * stiffness * S,
    )


def tip_mass(shapes: Shapes, tip: TipLoad) -> Array:
    """Return M p p' + D (p s' + s p') + J s s' (n, n) [-]: p deflects the tip, s turns it."""
    return tip_mass_of(shapes.value(1.0)[:, 0], shapes.rotation(1.0)[:, 0], tip)


def tip_mass_of(p: Array, s: Array, tip: TipLoad) -> Array:
    """Return `tip_mass` of shapes that have deflections p and rotations s at the tip, (n,) [-]."""
    cross = np.outer(p, s)
    own = tip.mass * np.outer(p, p) + tip.inertia * np.outer(s, s)
    return own + tip.offset * (cross + cross.T)


def modal_damping(matrices: BeamMatrices, ratios: float | Sequence[float]) -> Array:
    """Return D = M Phi diag(2 zeta w) Phi' M: modal damping of the line on its own.

    Parameters
    ----------
    matrices
        Mass and stiffness (n, n) of the line.
    ratios
        Damping ratios zeta [-] of its modes, ascending; the last holds for all further modes.

    Returns
    -------
    Array
        D (n, n), symmetric, positive semidefinite; force D d' [N, N m].

    Raises
    ------
    InputError
        If a ratio is negative or not finite, or there is none.
    """
    listed = np.atleast_1d(np.asarray(ratios, dtype=float))
    if listed.ndim != 1 or listed.size == 0 or not (np.isfinite(listed) & (listed >= 0)).all():
        raise InputError(f"damping ratios: expected finite numbers of at least 0, got {ratios!r}")
    w, Phi = matrices.frequencies(), matrices.modes()
    zeta = listed[np.minimum(np.arange(w.size), listed.size - 1)]
    factor = matrices.mass @ Phi * np.sqrt(2 * zeta * w)
    return factor @ factor.T
