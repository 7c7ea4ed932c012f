"""Links of the arm of [SM02], each clamped alone with what it carries: an own derivation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

from examples.papers.subudhi_morris.arm import arm
from flexctl.checks import Array

_SCAN = np.linspace(0.2, 8.0, 400)  # beta l: the first two roots lie well within


def line() -> tuple[float, float, float]:
    """Length [m], mass per length [kg/m] and EI [N m^2] of both links."""
    link = arm().links[0]
    return link.length, link.mass_per_length, link.EI["y"]


def loads() -> tuple[float, float, float]:
    """M [kg], I [kg m^2] and M_D [kg m] that link 1 carries at theta_2 = 0: (47)."""
    length, rho, _ = line()
    m, J, payload = rho * length, _rotor_inertia(), arm().payload
    inertia = m * length**2 / 3 + J + payload.inertia[2] + payload.mass * length**2
    return m + payload.mass, inertia, m * length / 2 + payload.mass * length


def _rotor_inertia() -> float:
    spring = arm().links[1].flexible_joint
    return spring.inertia if spring else 0.0


def clamped_frequencies(moment: tuple[float, float], shear: tuple[float, float]) -> Array:
    """First two frequencies [rad/s] of a clamped link by the conditions (29), (30) at its tip.

    EI v'' = w^2 (a v + b v') with `moment` (a, b), EI v''' = -w^2 (a v + b v') with `shear`.
    Right are (M_D, I) and (M, M_D): a tip body's angular and linear momentum.
    """
    length, rho, EI = line()

    def determinant(b: float) -> float:
        beta = b / length
        c, s, ch, sh = np.cos(b), np.sin(b), np.cosh(b), np.sinh(b)
        v = np.array([c - ch, s - sh])
        slope = beta * np.array([-s - sh, c - ch])
        bending = beta**2 * np.array([-c - ch, -s - sh])
        force = beta**3 * np.array([s - sh, -c - ch])
        w2 = EI / rho * beta**4
        rows = [
            EI * bending - w2 * (moment[0] * v + moment[1] * slope),
            EI * force + w2 * (shear[0] * v + shear[1] * slope),
        ]
        return float(np.linalg.det(rows))

    return np.sqrt(EI / rho) * (find_roots(determinant, 2) / length) ** 2


def find_roots(function: Callable[[float], float], count: int) -> Array:
    """Return the first roots beta l (count,) of a frequency equation."""
    values = np.array([function(b) for b in _SCAN])
    signs = np.flatnonzero(np.diff(np.sign(values)))[:count]
    return np.array([brentq(function, _SCAN[k], _SCAN[k + 1], xtol=1e-14) for k in signs])


def right_frequencies() -> Array:
    """Two frequencies [rad/s] of link 1, clamped, with its load at theta_2 = 0."""
    M, inertia, D = loads()
    return clamped_frequencies((D, inertia), (M, D))


def link_alone() -> Array:
    """Two frequencies [rad/s] of link 1, then of link 2, each clamped with its load, (4,)."""
    payload = arm().payload
    outer = clamped_frequencies((0.0, payload.inertia[2]), (payload.mass, 0.0))
    return np.concatenate([right_frequencies(), outer])
