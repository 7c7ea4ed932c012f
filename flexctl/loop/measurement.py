"""What a controller of one order sees of a truth plant of another: ideal strain gauges.

Gauges at stated points x/l of every elastic line measure its curvature in each plane; the
controller's elastic coordinates are the least-squares fit of its own shapes' curvatures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.beam import Shapes
from flexctl.body import free_length, scales
from flexctl.checks import Array
from flexctl.design import gauge_matrix, gauge_positions
from flexctl.plant import Plant


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Map from the truth plant's coordinates to those of the design plant.

    Attributes
    ----------
    function
        CasADi function (q, v) of the truth plant -> (q, v) of the design plant.
    gauges
        Positions x/l of the strain gauges by line, such as ``link2.y``; empty for full state.
    """

    function: ca.Function
    gauges: dict[str, tuple[float, ...]]

    @cached_property
    def jacobian(self) -> ca.Function:
        """(q, v) of the truth plant -> derivative of the measured [q; v] by them, (2n, 2N)."""
        n = self.function.numel_in(0)
        q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
        seen = ca.vertcat(*self.function(q, v))
        return ca.Function("measured", [q, v], [ca.jacobian(seen, ca.vertcat(q, v))])

    @property
    def assumption(self) -> str:
        """What is measured, in a sentence."""
        if not self.gauges:
            return "the controller measures the truth plant's full state (same discretisation)"
        return (
            "the controller sees joints exactly, and of the links the least-squares fit of its "
            f"shapes to ideal strain gauges and their rates ({self._places})"
        )

    @property
    def gauge_assumption(self) -> str:
        """What strain gauges alone give, in a sentence."""
        if not self.gauges:
            return "strain gauges give the links' coordinates exactly (same discretisation)"
        return f"strain gauges give the least-squares fit of the design's shapes ({self._places})"

    @property
    def _places(self) -> str:
        lines: dict[tuple[float, ...], list[str]] = {}
        for line, positions in self.gauges.items():
            lines.setdefault(positions, []).append(line)
        return "; ".join(
            f"{', '.join(names)} at x/l = " + ", ".join(f"{x:.3g}" for x in positions)
            for positions, names in lines.items()
        )


def make_measurement(
    design: Plant, truth: Plant, positions: tuple[float, ...] | None = None
) -> Measurement:
    """Build the measurement of a truth plant for a controller made on a design plant.

    Parameters
    ----------
    design, truth
        Plants of the same arm (data may differ), discretised alike or not.
    positions
        Gauge positions x/l on every line; by default the full state where both plants have the
        same shapes, else `gauge_positions` of the design's.

    Raises
    ------
    InputError
        When the gauges are too few, or where the design's shapes have no curvature.
    """
    q, v = ca.SX.sym("q", truth.n), ca.SX.sym("v", truth.n)
    alike = design.coordinates == truth.coordinates and _same_shapes(design, truth)
    if positions is None and alike:
        return Measurement(function=ca.Function("measure", [q, v], [q, v]), gauges={})
    start = truth.rigid
    parts, gauges = [q[:start]], {}
    for j, (seen, real) in enumerate(zip(design.bodies, truth.bodies, strict=True)):
        for direction, shapes in seen.planes.items():
            line = f"{seen.link.name}.{direction}"
            count = len(real.planes[direction].names)
            gauges[line] = positions or gauge_positions(shapes)
            F = _fit(shapes, real.planes[direction], gauges[line], line)
            lengths = free_length(seen, q[j]), free_length(real, q[j])
            parts.append(_fitted(F, shapes, real.planes[direction], lengths, q[start:][:count]))
            start += count
    seen_q = ca.vertcat(*parts)
    function = ca.Function("measure", [q, v], [seen_q, ca.jtimes(seen_q, q, v)])
    return Measurement(function=function, gauges=gauges)


def _same_shapes(design: Plant, truth: Plant) -> bool:
    """Whether equal coordinates also mean equal shapes (tip loads move modes)."""
    xi = np.linspace(0.1, 1.0, 7)
    return all(
        np.allclose(shapes.bending(xi), real.planes[direction].bending(xi), rtol=1e-9)
        for seen, real in zip(design.bodies, truth.bodies, strict=True)
        for direction, shapes in seen.planes.items()
    )


def _fit(seen: Shapes, real: Shapes, positions: tuple[float, ...], line: str) -> Array:
    """Least-squares map (n_seen, n_real) of scaled coordinates through curvatures at gauges."""
    C = gauge_matrix(seen, positions, line)
    return np.linalg.lstsq(C, real.bending(positions).T, rcond=None)[0]


def _fitted(F: Array, seen: Shapes, real: Shapes, lengths: tuple[ca.SX, ca.SX], d: ca.SX) -> ca.SX:
    """Physical coordinates of the design's shapes: S_seen^-1 (l_seen / l_real)^2 F S_real d.

    Gauges measure the curvature d2w/dx2 = psi'' delta / l^2, each with its own length.
    """
    own, actual = lengths
    scaled = ca.sparsify(ca.DM(F)) @ (scales(real, actual) * d) * (own / actual) ** 2
    return scaled / scales(seen, own)
