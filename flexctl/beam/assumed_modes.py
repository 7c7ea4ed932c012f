"""Assumed modes of a line: clamped with a load at its tip, pinned, free."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from flexctl.beam.frequency_equation import clamped_mass_roots
from flexctl.beam.line import FREE_TIP, PLAIN, SectionProfile, TipLoad
from flexctl.beam.load_path import LoadPath
from flexctl.beam.ritz import ritz_modes
from flexctl.beam.shapes import Shapes, check_order, mode_names
from flexctl.beam.waves import clamped_waves, null_direction
from flexctl.checks import Array


def assumed_modes(order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN) -> Shapes:
    """Return the `order` (1 .. 200) lowest modes of the clamped line with this load at its tip.

    Those of a uniform line are closed forms, those of any other section come from Ritz's method.
    Raises InputError if the number is out of range.  Source: [TG95], (9)-(11).
    """
    check_order(order)
    return _modes(order, tip) if section.plain else ritz_modes(order, tip, section)


def pinned_modes(order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN) -> Shapes:
    """Return the lowest modes of a line that turns freely at its root, tan b = tanh b if uniform.

    Arguments are those of `assumed_modes`. With the joint variable these shapes span what pinned
    modes and the angle of a rigid link span, but the joint variable stays the angle of the hub.
    They suit a hub that is light compared with the line.
    Source: [HastingsBook86], [BellezzaLanariUlivi90].
    """
    check_order(order)
    return ritz_modes(order, tip, section, motions=1)


def free_modes(order: int, tip: TipLoad = FREE_TIP, section: SectionProfile = PLAIN) -> Shapes:
    """Return the lowest modes of a line free at both ends, 1 = cosh b cos b if uniform.

    Arguments are those of `assumed_modes`.  Source: [BaruhTadikonda89].
    """
    check_order(order)
    return ritz_modes(order, tip, section, motions=2)


@lru_cache(maxsize=256)
def _modes(order: int, tip: TipLoad) -> Shapes:
    """Compute the modes once: the links of an arm, design and truth, often share them."""
    beta = clamped_mass_roots(order, tip)
    amplitudes = null_direction(beta[None], LoadPath.through(tip))[0]
    return _normalised(ModeShapes(beta=beta, amplitudes=amplitudes))


@dataclass(frozen=True, kw_only=True, eq=False)
class ModeShapes(Shapes):
    """psi_i = amplitudes_i0 a(xi; beta_i) + amplitudes_i1 b(xi; beta_i), with `clamped_waves` a, b.

    Parameters
    ----------
    beta
        Wave numbers (n,) [-]: psi'''' = beta^4 psi.
    amplitudes
        Amplitudes (n, 2) [-] of the two waves.
    """

    beta: Array
    amplitudes: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names "1", "2" and so on."""
        return mode_names(self.beta.size)

    @property
    def points_per_panel(self) -> int:
        """4 n + 20.

        Four slopes of mode n oscillate like exp(4 i pi n xi), which Gauss's rule resolves to
        round-off from pi n points on; the added points resolve the boundary layers at the ends.
        """
        return 4 * self.beta.size + 20

    def evaluate(self, xi: Array, derivative: int) -> Array:
        """Return the derivative of all shapes at xi (k,), (n, k)."""
        waves = clamped_waves(self.beta, xi, derivative)
        return np.einsum("iw,wik->ik", self.amplitudes, waves)


def _normalised(shapes: ModeShapes) -> ModeShapes:
    """Scale to int psi^2 dxi = 1 and psi(1) > 0, or psi''(0) > 0 if the tip is nearly at rest."""
    xi, weights = shapes.quadrature()
    norm = np.sqrt(shapes.value(xi) ** 2 @ weights)
    at_tip = shapes.value(1.0)[:, 0] / norm
    sign = np.where(np.abs(at_tip) > 1e-9, np.sign(at_tip), np.sign(shapes.curvature(0.0)[:, 0]))
    return replace(shapes, amplitudes=shapes.amplitudes * (sign / norm)[:, None])
