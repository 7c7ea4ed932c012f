"""How fast every mode grows under a small error of the stiffness: why the lemma is no margin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike

from flexctl import checks
from flexctl.checks import Array, ComplexArray
from flexctl.errors import ComputationError
from flexctl.plant.linearisation import LinearPlant
from flexctl.robustness.stiffness.driven_mass import split_mass

_REPEATED = 1e-6  # frequencies that differ by less, relatively, are one


@dataclass(frozen=True, kw_only=True)
class StiffnessGrowth:
    """What an error t dK of the stiffness does to every mode of the decoupled arm, to first order.

    Attributes
    ----------
    frequencies
        w (n_f,) [rad/s], ascending, of M_ff f'' + K_ff f = 0: what torques act on moves exactly
        as wanted, as if it were clamped.
    coupling
        h (n_f,) [-]: phi'H M_ff phi for rigid joints without gravity and dK = K.
    shift
        ds/dt (n_f,) [1/s], complex: growth and change of frequency per unit t.
    decay
        phi'D_ff phi / 2 (n_f,) [1/s], by which damping, which the law knows, lets it decay.
    shapes
        phi (n_f, n_f), in columns, phi'M_ff phi = 1.
    """

    frequencies: Array
    coupling: Array
    shift: ComplexArray
    decay: Array
    shapes: Array

    @property
    def rate(self) -> Array:
        """Growth Re ds/dt (n_f,) [1/s] per unit error."""
        return self.shift.real

    @property
    def first_margin(self) -> float:
        """Smallest error at which a mode grows as fast as it decays, to first order; inf if none.

        An estimate for light damping, below which errors are small.
        """
        growing = self.rate > 0
        return float(np.min(self.decay[growing] / self.rate[growing], initial=np.inf))


def stiffness_growth(
    linear: LinearPlant,
    drives: Sequence[int],
    *,
    Gp: ArrayLike,
    Gv: ArrayLike,
    Gi: ArrayLike = 0.0,
    dK: Array | None = None,
) -> StiffnessGrowth:
    """Growth of every mode per unit error of the stiffness, decoupling without a second loop.

    With u = -(Gv s + Gp + Gi/s) r and the error t dK, see `design.overestimation`,

        C(s) r = t S_r^-1 [I, -F'] dK_:f f + O(t^2),   (M_ff s^2 + K_ff) f = -(M_fr s^2 + K_fr) r,

    C = s^2 + Gv s + Gp + Gi/s. Multiplied by phi' at s = i w,

        ds/dt = -b'C(i w)^-1 S_r^-1 c / (2 i w),   b = (K_rf - w^2 M_rf) phi,
                                                   c = (dK_rf - F'dK_ff) phi:

    b are the torques [N m] that hold the drives still in the mode, c those that the error adds. For
    dK = K without gravity c = b, and with scalar gains

        Re ds/dt = h gv w^4 / (2 ((w^2 - gp)^2 + gv^2 w^2)),   h = b'S_r^-1 b / w^4 >= 0,

    h = phi'H M_ff phi where joints are rigid: every mode that torques feel grows. Of drives that
    are rotors b is not zero though M_fr be: there the lemma sees nothing. Modes of one frequency
    are those that the error tells apart.

    Parameters
    ----------
    linear
        Linear plant with n coordinates.
    drives
        Rows (m,) on which torques act.
    Gp, Gv, Gi
        Gains of the joints [1/s^2], [1/s] and [1/s^3], one number or (m,).
    dK
        Error (n, n), symmetric; by default the stiffness of links and joints.

    Raises
    ------
    ComputationError
        When the links buckle with their drives held.
    """
    mass = split_mass(linear.M, drives)
    error = linear.K_elastic if dK is None else checks.symmetric("dK", dK, len(linear.M))
    K_rf, K_ff = mass.blocks(linear.K)
    w, Phi = _modes(mass.M_ff, K_ff)
    weight = np.linalg.solve(mass.S_r, mass.error_torque(error))
    gains = [np.broadcast_to(np.asarray(G, dtype=float), (len(drives),)) for G in (Gp, Gv, Gi)]
    h, shift = np.zeros(len(w)), np.zeros(len(w), dtype=complex)
    for same in _groups(w):
        w_0 = float(np.mean(w[same]))
        b = (K_rf - w_0**2 * mass.M_fr.T) @ Phi[:, same]
        c = weight @ Phi[:, same]
        coupled = b.T @ c / w_0**4
        turn = np.linalg.eigh((coupled + coupled.T) / 2)[1]
        Phi[:, same], b, c = Phi[:, same] @ turn, b @ turn, c @ turn
        h[same] = (b * c).sum(axis=0) / w_0**4
        shift[same] = np.linalg.eigvals(_shift(b, c, w_0, gains))
    return StiffnessGrowth(
        frequencies=w,
        coupling=h,
        shift=shift,
        decay=(Phi * (mass.blocks(linear.D)[1] @ Phi)).sum(axis=0) / 2,
        shapes=Phi,
    )


def _shift(b: Array, c: Array, w: float, gains: Sequence[Array]) -> Array:
    """-b'C(i w)^-1 c / (2 i w) of modes of one frequency (k, k), b and c (m, k)."""
    Gp, Gv, Gi = gains
    C = Gp - w**2 + 1j * (Gv * w - Gi / w)
    return -b.T @ (c / C[:, None]) / (2j * w)


def _modes(M: Array, K: Array) -> tuple[Array, Array]:
    """Frequencies (n,) and mass-normalised shapes (n, n), of coordinates scaled to unit masses."""
    d = np.sqrt(np.diag(M))
    squares, Phi = scipy.linalg.eigh(K / np.outer(d, d), M / np.outer(d, d))
    if squares[0] <= 0:
        raise ComputationError(
            "growth: the arm buckles or falls at this pose with its drives held, so that it has "
            "no modes; check EI and gravity"
        )
    return np.sqrt(squares), Phi / d[:, None]


def _groups(w: Array) -> list[Array]:
    """Group the indices of frequencies that are one, ascending."""
    apart = np.flatnonzero(np.diff(w) > _REPEATED * w[1:]) + 1
    return np.split(np.arange(len(w)), apart)
