"""The elastic line of a link: position and motion of its points, and its strain energy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from flexctl.beam import Shapes, density_rule, gauss, merged
from flexctl.body.body import Body, Local, free_length
from flexctl.body.foreshortening import shortening
from flexctl.body.segment import Field, Fields, Segment, present, product_integral, sparse
from flexctl.checks import Array
from flexctl.model import TWIST

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line in the frame of its root.

    Attributes
    ----------
    segments
        Its mass: the free part and, of a sliding link, the part hidden in the hub.
    strain
        Strain energy [J].
    end, end_rotation
        Position (3, 1) [m] and rotation vector (3, 1) [rad] of the tip.
    deflection, slope
        At the tip, by direction [m], [-]; of "twist" both are its angle [rad].
    """

    segments: tuple[Segment, ...]
    strain: ca.SX
    end: ca.SX
    end_rotation: ca.SX
    deflection: Mapping[str, ca.SX]
    slope: Mapping[str, ca.SX]


def lay_line(body: Body, local: Local) -> Line:
    """Lay out the line of a body: its mass, its tip and its strain energy.

    A rigid body has no planes, and its line is straight.
    """
    points = _points(body, local)
    deltas = _deltas(body, local, points.length)
    fields = [_NOTHING] * 3
    end, end_rotation = ca.SX(3, 1), ca.SX(3, 1)
    deflection, slope, strain = {}, {}, ca.SX(0)
    for direction, shapes in body.bent.items():
        i, delta = _AXES[direction], deltas[direction]
        fields[i] = points.moving(_Curve.of(shapes, points.xi), delta)
        deflection[direction] = end[i] = ca.dot(ca.DM(shapes.value(1.0)), delta)
        slope[direction] = points.over_length(shapes.rotation(1.0).T, delta)
        # phi = axis x direction times the slope: the rotation that tilts the axis towards it
        sign = 1 if (i - body.axis) % 3 == 1 else -1
        end_rotation[3 - i - body.axis] = sign * slope[direction]
    if shapes := body.planes.get(TWIST):
        # the mass lies on the axis, which twist does not move
        angle = points.over_length(shapes.rotation(1.0).T, deltas[TWIST])
        deflection[TWIST] = slope[TWIST] = end_rotation[body.axis] = angle
    for direction, delta in deltas.items():
        strain += _strain_energy(body, direction, delta, points.length)
    fields[body.axis], end[body.axis] = _along(body, points, deltas)
    return Line(
        segments=_segments(body, points, fields),
        strain=strain,
        end=ca.densify(end),
        end_rotation=ca.densify(end_rotation),
        deflection=deflection,
        slope=slope,
    )


def scales(shapes: Shapes, length: ca.SX) -> ca.SX:
    """Return l^power (n, 1): a node's slope times l is a length."""
    return ca.vertcat(*[length ** int(power) for power in shapes.power])


def spread(body: Body, direction: str, length: ca.SX) -> ca.SX:
    """Return S (k, n) in delta = S d: from coordinates d to those of a plane's k shapes, lengths.

    It is diag(l^power), or of modes that follow the length their mix C(ln l).  Only S depends on
    the length, so its derivatives give all terms d(psi)/dl.
    """
    mixed = body.mixes.get(direction)
    if mixed is None:
        return ca.diag(scales(body.planes[direction], length))
    return ca.vertcat(*[ca.horzcat(*row) for row in mixed.mix_at(ca.log(length))])


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """Shapes (n, g) along the line with their first and second derivatives by xi."""

    value: Array
    slope: Array
    curvature: Array

    @staticmethod
    def of(shapes: Shapes, xi: Array) -> _Curve:
        value, slope, curvature = (shapes.evaluate(xi, k) for k in range(3))
        return _Curve(value=value, slope=slope, curvature=curvature)


@dataclass(frozen=True, kw_only=True)
class _Component:
    """Position, velocity and drift along one axis; as sums of parts (shapes, coordinates)."""

    position: tuple[tuple[Array, ca.SX], ...] = ()
    velocity: tuple[tuple[Array, ca.SX], ...] = ()
    drift: tuple[tuple[Array, ca.SX], ...] = ()

    def plus(self, other: _Component) -> _Component:
        return _Component(
            position=self.position + other.position,
            velocity=self.velocity + other.velocity,
            drift=self.drift + other.drift,
        )


_NOTHING = _Component()


@dataclass(frozen=True, kw_only=True)
class _Points:
    """Points of a line's mass and how they move: xi, weights (g,), free length l, rate l'.

    The weights are fractions of the line's own mass; masses fixed to it are additional points.
    """

    xi: Array
    weights: Array
    length: ca.SX
    slide: ca.SX
    local: Local

    @cached_property
    def stretch(self) -> ca.SX:
        """l'/l [1/s]: a mass point's xi changes at the rate (1 - xi) l'/l."""
        return self.slide * self.per_length

    @cached_property
    def per_length(self) -> ca.SX:
        """1/l [1/m]: a number unless the line slides."""
        return 1 / self.length

    def over_length(self, numbers: Array, x: ca.SX) -> ca.SX:
        """Numbers (k, n) times x (n, 1) over the length; folded into them if it is constant."""
        if self.per_length.is_constant():
            return (sparse(numbers) * self.per_length) @ x
        return self.per_length * (sparse(numbers) @ x)

    def moving(self, curve: _Curve, coordinates: ca.SX) -> _Component:
        """Component value(xi) c of the position with its velocity and drift at fixed mass points.

        With z = l'/l and y = 1 - xi: u = psi c' + y psi' z c, and without accelerations
        u' = psi c'' + y psi' (2 z c' - 2 z^2 c) + y^2 psi'' z^2 c.
        """
        z, rate = self.stretch, self.local.rate(coordinates)
        y = 1 - self.xi
        return _Component(
            position=((curve.value, coordinates),),
            velocity=((curve.value, rate), (y * curve.slope, z * coordinates)),
            drift=(
                (curve.value, self.local.rate(rate)),
                (y * curve.slope, 2 * z * (rate - z * coordinates)),
                (y**2 * curve.curvature, z**2 * coordinates),
            ),
        )

    def field(self, parts: tuple[tuple[Array, ca.SX], ...]) -> Field:
        """Sum up the parts of one component."""
        nothing = (np.zeros((0, len(self.xi))), ca.SX(0, 1))
        return Field.stack(nothing, *parts)


def _points(body: Body, local: Local) -> _Points:
    xi, weights = _mass_points(body)
    slide = local.joint_rate if body.sliding else ca.SX(0)
    length = free_length(body, local.joint)
    return _Points(xi=xi, weights=weights, length=length, slide=slide, local=local)


def _segments(body: Body, points: _Points, components: list[_Component]) -> tuple[Segment, ...]:
    link, density = body.link, body.numbers.mass_per_length
    if body.on_axis or not present(density):
        return ()
    free = _segment(density * points.length, points, components)
    if not body.sliding:
        return (free,)
    hidden = link.length - points.length
    xi, weights = gauss(2)
    behind = _Points(xi=xi, weights=weights, length=hidden, slide=-points.slide, local=points.local)
    axial = _Component(
        position=((xi[None, :] - 1, hidden),), velocity=((np.ones((1, 2)), points.slide),)
    )
    components = [axial if i == body.axis else _NOTHING for i in range(3)]
    return free, _segment(density * hidden, behind, components)


def _segment(density: ca.SX, points: _Points, components: list[_Component]) -> Segment:
    def fields(name: str) -> Fields:
        x, y, z = (points.field(getattr(component, name)) for component in components)
        return x, y, z

    return Segment(
        density=density,
        weights=points.weights,
        position=fields("position"),
        velocity=fields("velocity"),
        drift=fields("drift"),
    )


def _deltas(body: Body, local: Local, length: ca.SX) -> dict[str, ca.SX]:
    """Coordinates of every plane's shapes, delta = S d (k, 1) [m]."""
    return {
        direction: spread(body, direction, length) @ local.elastic[rows]
        for direction, rows in body.rows.items()
    }


def _strain_energy(body: Body, direction: str, delta: ca.SX, length: ca.SX) -> ca.SX:
    """Strain energy 1/2 EI / l^3 int (sum psi'' delta)^2 dxi [J], or that of `SectionProfile`.

    Of twist 1/2 GJ / l^3 int (sum psi' delta)^2 dxi, l phi_x = sum psi delta.
    """
    shapes, section = body.planes[direction], body.section(direction)
    xi, weights = section.rule(shapes)
    bending = Field(shapes=shapes.bending(xi), coordinates=delta)
    square = product_integral(bending, bending, weights * section.bending.at(xi))
    if section.shear is not None:
        shear = Field(shapes=shapes.slope(xi) - shapes.rotation(xi), coordinates=delta)
        square += product_integral(shear, shear, weights * section.shear.at(xi))
    return square / 2 * body.numbers.rigidities[direction] / length**3


def _along(body: Body, points: _Points, deltas: Mapping[str, ca.SX]) -> tuple[_Component, ca.SX]:
    """Component along the axis and its end: l xi, the slide, and the foreshortening."""
    xi, length = points.xi, points.length
    slide = _Component(
        position=((xi[None, :], length),), velocity=((np.ones((1, len(xi))), points.slide),)
    )
    if not (body.link.foreshortening and body.bent):
        return slide, length
    table = shortening(tuple(body.bent.values()), xi)
    products = table.coordinates([deltas[direction] for direction in body.bent])
    amount = points.over_length(np.eye(len(table.tip)), products)
    curve = _Curve(value=table.shapes, slope=table.slopes, curvature=table.curvatures)
    return slide.plus(points.moving(curve, amount)), length + ca.dot(ca.DM(table.tip), amount)


def _mass_points(body: Body) -> tuple[Array, Array]:
    """Points and weights of a line's mass: Gauss's times the density, then the fixed masses."""
    if body.link.plain:
        return _quadrature(body.bent)
    link, shapes = body.link, tuple(body.bent.values())
    profile_breaks = [body.section(direction).breaks for direction in body.bent]
    density, masses = link.profile("mass_per_length"), link.masses
    breaks = merged(
        np.array([0.0, *density.breaks, 1.0]), *profile_breaks, *(own.breaks for own in shapes)
    )
    xi, weights = density_rule(breaks, max((own.points_per_panel for own in shapes), default=2))
    places, fixed = [m.x for m in masses], np.array([m.mass for m in masses])
    shares = fixed / (link.mass_per_length * link.length)
    return np.concatenate([xi, places]), np.concatenate([weights * density.at(xi), shares])


def _quadrature(planes: Mapping[str, Shapes]) -> tuple[Array, Array]:
    """Gauss points and weights for all planes: those of the plane that needs most."""
    rules = [shapes.quadrature() for shapes in planes.values()]
    return max(rules, key=lambda rule: len(rule[0])) if rules else gauss(2)
