"""Instruments of an arm: their readings of the state of a design plant, and their noise."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy.linalg

from flexctl import checks
from flexctl.beam import Shapes, gauss
from flexctl.body import free_length, scales
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.model import Noise
from flexctl.plant import Plant

_WORST_CONDITION = 1e8


@dataclass(frozen=True, kw_only=True)
class Instruments:
    """Readings y = C [q; v] + w of the n coordinates and their rates, w white noise."""

    names: tuple[str, ...]  # of the readings (p,), such as "encoder of joint1"
    C: Array  # (p, 2n)
    V: Array  # intensity of the noise (p, p) [square of the reading's unit, s]

    def __post_init__(self) -> None:
        p = len(self.names)
        checks.shape("C", self.C, (p, self.C.shape[1]))
        checks.definite("V", self.V, size=p)


def assemble_instruments(
    plant: Plant,
    kinds: tuple[str, ...],
    noise: Noise,
    joints: Array,
    gauges: tuple[float, ...] | None = None,
) -> Instruments:
    """Fit a design plant with instruments.

    Encoders and tachometers read position and rate on the motor side: of rigid joints and of the
    rotors of flexible ones. Joint encoders read the joints, behind the springs. Strain gauges give
    the elastic coordinates by least squares, and no rates.

    `noise` holds amplitude densities. Sliding links take their length for the gauges' noise at
    `joints` (m,). `gauges` are positions x/l on every elastic line, by default `gauge_positions`.
    """
    m, n = plant.m, plant.n
    rows = {
        "encoder": list(plant.drives),
        "tachometer": [n + drive for drive in plant.drives],
        "joint_encoder": list(range(m)),
        "strain_gauge": list(range(plant.rigid, n)),
    }

    def intensity(kind: str) -> Array:
        density = getattr(noise, kind)
        if kind == "strain_gauge":
            return _gauge_noise(plant, density, joints, gauges)
        return np.diag(np.broadcast_to(np.square(density), (m,)))

    states = (*plant.coordinates, *plant.coordinates)
    return Instruments(
        names=tuple(f"{kind} of {states[row]}" for kind in kinds for row in rows[kind]),
        C=np.eye(2 * n)[[row for kind in kinds for row in rows[kind]]],
        V=np.asarray(scipy.linalg.block_diag(*map(intensity, kinds))),
    )


def _gauge_noise(
    plant: Plant, density: float, joints: Array, gauges: tuple[float, ...] | None
) -> Array:
    """Intensity of the noise of the elastic coordinates, fitted to gauges with this noise density.

    A gauge reads the curvature C S delta / l^2, so that the fit has the error l^2 S^-1 C^+ w.
    """
    blocks = [np.zeros((0, 0))]
    for body, joint in zip(plant.bodies, joints, strict=True):
        for direction in body.planes:
            length = free_length(body, ca.SX(joint))
            shapes = body.shapes_at(direction, float(length))
            C = gauge_matrix(shapes, gauges, f"{body.link.name}.{direction}")
            scale = np.array(ca.evalf(length**2 / scales(shapes, length)))
            to_coordinates = scale * np.linalg.pinv(C)
            blocks.append(density**2 * to_coordinates @ to_coordinates.T)
    V = np.asarray(scipy.linalg.block_diag(*blocks))
    return (V + V.T) / 2


def gauge_matrix(shapes: Shapes, positions: tuple[float, ...] | None, line: str) -> Array:
    """Curvatures psi'' (gauges, n) of a line's shapes at its gauges, by default `gauge_positions`.

    Raises
    ------
    InputError
        When there are too few gauges, or gauges where the shapes have no curvature.
    """
    xi = np.array(positions or gauge_positions(shapes))
    C = shapes.bending(xi).T
    if len(xi) < C.shape[1]:
        raise InputError(
            f"loop.strain_gauges: expected at least {C.shape[1]} positions for the coordinates of "
            f"{line}, got {len(xi)}"
        )
    if np.linalg.cond(C) > _WORST_CONDITION:
        raise InputError(
            f"loop.strain_gauges: {xi.tolist()} cannot distinguish the shapes of {line}; "
            "spread the gauges, and put none where a shape has no curvature"
        )
    return C


def gauge_positions(shapes: Shapes) -> tuple[float, ...]:
    """Default gauges of a line with n coordinates: at least 10 and 2 n + 2, at Gauss points.

    With more gauges than coordinates the fit averages out faster modes that it does not include.
    """
    panels = len(shapes.breaks) - 1
    per_panel = -(-max(10, 2 * len(shapes.names) + 2) // panels)  # rounded up
    nodes, _ = gauss(per_panel)
    starts, widths = shapes.breaks[:-1, None], np.diff(shapes.breaks)[:, None]
    return tuple(float(x) for x in (starts + widths * nodes).ravel())
