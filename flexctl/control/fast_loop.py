"""The fast loop of composite control: gains of the fast positions, given or designed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.beam import (
    ModeShapes,
    RitzModes,
    RitzTwist,
    SectionProfile,
    SineTwist,
    chebyshev_sum,
    unit_mass_and_stiffness,
)
from flexctl.checks import Array, ComplexArray
from flexctl.control.lqr import StateFeedback, design_scaled_lqr, modal_scaling
from flexctl.control.path_schedule import (
    PathTable,
    pose_at,
    require_frozen_stability,
    table_of,
)
from flexctl.control.reference import ReferenceMotion
from flexctl.control.singular_perturbation import TwoTimeScales, separate_time_scales
from flexctl.errors import DesignError
from flexctl.model import Design, FastLoop, FastWeights, Unquoted, refuse
from flexctl.plant import Plant

_Modes = ModeShapes | RitzModes | SineTwist | RitzTwist
_SCHEDULE_ERROR = 0.02  # of interpolated gains beside designed ones, Frobenius norms


@dataclass(frozen=True, kw_only=True)
class FastFeedback:
    """tau_f = -Kp (z - z_qs) - Kv z', with the fast subsystem that it closes.

    `gains` are coefficients of Chebyshev's polynomials T_0 .. T_(k-1) in 2 p - 1, with the path
    parameter p in [0, 1]; k = 1 if they are constant. The rest holds at the final pose.
    """

    gains: Array  # [Kp Kv] (k, m, 2 n_z) [commands per unit of z and of its rate]
    scales: TwoTimeScales
    poles: ComplexArray  # of the fast subsystem with these gains [rad/s], (2 n_z,), in time t
    lqr: StateFeedback | None  # None if the gains are given
    interpolation_error: float  # largest relative one between the poses; 0 without schedule

    def __post_init__(self) -> None:
        n_z, m = self.scales.b_f.shape
        checks.shape("gains", self.gains, (len(self.gains), m, 2 * n_z))

    def at(self, share: float) -> Array:
        """Gains [Kp Kv] (m, 2 n_z) at a path parameter in [0, 1]."""
        return chebyshev_sum(self.gains, 2 * share - 1)

    @property
    def Kp(self) -> Array:
        """Gains (m, n_z) of the fast positions at the final pose."""
        return self.at(1.0)[:, : len(self.scales.names)]

    @property
    def Kv(self) -> Array:
        """Gains (m, n_z) of their rates at the final pose."""
        return self.at(1.0)[:, len(self.scales.names) :]


def make_fast_loop(
    plant: Plant, design: Design, loop: FastLoop, reference: ReferenceMotion
) -> FastFeedback:
    """Gains of the fast loop of a design file on its plant, given or designed.

    Raises InputError where given gains do not fit the plant, DesignError as `design_lqr` or where a
    schedule has too few poses.
    """

    def at(share: float) -> TwoTimeScales:
        return separate_time_scales(plant, pose_at(reference, share), design.slow_angle)

    scales = at(1.0)
    if loop.weights is None:
        return _closed(scales, _gains_of_file(plant, loop, scales, design.label)[None])
    weights, lqr = loop.weights, design_fast_loop(scales, loop.weights)
    if not loop.schedule:
        return _closed(scales, lqr.gain[None], lqr)
    gains = table_of(lambda p: design_fast_loop(at(p), weights).gain, loop.schedule)
    _require_accurate(gains, loop.schedule)
    require_frozen_stability(lambda p: at(p).fast, gains, loop.schedule, "fast_loop")
    return _closed(scales, gains.coefficients, lqr, gains.error)


def _closed(
    scales: TwoTimeScales, gains: Array, lqr: StateFeedback | None = None, error: float = 0.0
) -> FastFeedback:
    A, B = scales.fast
    poles = np.linalg.eigvals(A - B @ chebyshev_sum(gains, 1.0)).astype(complex)
    return FastFeedback(gains=gains, scales=scales, poles=poles, lqr=lqr, interpolation_error=error)


def design_fast_loop(scales: TwoTimeScales, weights: FastWeights) -> StateFeedback:
    """Optimal feedback tau_f = -G [z - z_qs; z'] of the fast subsystem.

    Minimises the integral of strain_energy (1/2 z^T K_z z) + kinetic_energy (1/2 v^T M_f v, with
    v = dz/dt) + effort |tau_f|^2. Scaling the stiffness by s, the damping by sqrt(s) and the effort
    by 1/s leaves the gains in scaled variables unchanged. Raises as `design_lqr`.
    """
    K, M = weights.strain_energy * scales.K_z / 2, weights.kinetic_energy * scales.M_f / 2
    return design_scaled_lqr(
        *scales.fast,
        np.asarray(scipy.linalg.block_diag(K, M)),
        weights.effort * np.eye(scales.m),
        modal_scaling(scales.M_f, scales.K_z),
        positions=tuple(f"mode {k + 1} of the fast subsystem" for k in range(len(K))),
        loop="fast loop",
    )


def _require_accurate(table: PathTable, count: int) -> None:
    """Refuse a schedule whose gains differ too much from designed ones between its poses."""
    if table.error > _SCHEDULE_ERROR:
        raise DesignError(
            f"fast_loop.schedule: expected gains interpolated within {_SCHEDULE_ERROR:.0%} of the "
            f"designed ones, got {table.error:.1%} from {count} poses; take more poses"
        )


def _gains_of_file(plant: Plant, loop: FastLoop, scales: TwoTimeScales, label: str) -> Array:
    """[Kp Kv] (m, 2 n_z) for the plant's own coordinates, of gains as a file gives them."""
    columns = loop.columns or ()
    if sorted(columns) != sorted(scales.names):
        names = ", ".join(scales.names)
        expected = f"each fast position of the design plant once ({names})"
        raise refuse(
            label, "fast_loop.columns", expected=expected, got=Unquoted(", ".join(columns))
        )
    unit = _units(plant, loop, label)
    k_c = float((np.diag(scales.K_z) * unit**2).min()) if loop.scaled else 1.0
    order = [columns.index(name) for name in scales.names]
    parts = []
    for key, rows, scale in (("Kp", loop.Kp, k_c), ("Kv", loop.Kv, np.sqrt(k_c))):
        gains = np.array(rows)
        if len(gains) != plant.m:
            expected = f"{plant.m} rows, one per joint of {plant.arm.name}"
            raise refuse(label, f"fast_loop.{key}", expected=expected, got=len(gains))
        parts.append(gains[:, order] * scale / unit)
    return np.hstack(parts)


def _units(plant: Plant, loop: FastLoop, label: str) -> Array:
    """Return the size (n_z,), in the plant's coordinates, of one unit of each fast position."""
    units = [np.ones(len(plant.rotors))]
    for body in plant.bodies:
        for direction, shapes in body.planes.items():
            if loop.modes is None:
                units.append(np.ones(len(body.names(direction))))
                continue
            if not isinstance(shapes, _Modes):
                mixed = direction in body.mixes
                basis = 'sliding other than "fixed"' if mixed else 'kind "elements"'
                expected, got = f"no such key with basis.{basis}", Unquoted(loop.modes)
                raise refuse(label, "fast_loop.modes", expected=expected, got=got)
            units.append(_mode_units(shapes, body.section(direction), loop.modes))
    return np.concatenate(units)


def _mode_units(shapes: _Modes, section: SectionProfile, modes: str) -> Array:
    """Own coordinates (n,) per unit of the coordinates in another normalisation.

    "tip": psi(1) = 1. "mass": the modal mass of line and tip load, m int psi''^2 dxi / beta^4, is
    the line's mass m; beta^2 is the dimensionless frequency.  For twist the mass is an inertia, int
    r psi^2 plus that at the tip, and the line's is int r.
    """
    twist = isinstance(shapes, SineTwist | RitzTwist)
    if modes == "tip":
        return 1 / (shapes.rotation(1.0) if twist else shapes.value(1.0))[:, 0]
    if twist or isinstance(shapes, RitzModes):
        own = section.rotary.mean if twist and section.rotary else 1.0
        square = np.diag(unit_mass_and_stiffness(shapes, section)[1])
        return shapes.frequencies * np.sqrt(own / square)
    xi, weights = shapes.quadrature()
    return shapes.beta**2 / np.sqrt(shapes.curvature(xi) ** 2 @ weights)
