"""The elastic line of a link: where its points are, how they move, and its energies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Shapes, gauss
from flexctl.body.body import Body, Local, free_length
from flexctl.body.fields import Field, integral, product_integral, shortening
from flexctl.checks import Array

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line in the frame of its root, of which a part may be hidden in a hub.

    Attributes
    ----------
    axis
        Axis along which it lies undeflected: x (0), or z (2) if it slides.
    mass
        Of the whole line [kg].
    density
        Mass of the free line [kg], rho A l: the integrals over xi are multiplied by it.
    hidden_length, hidden_mass
        Of the part inside the hub [m], [kg]; it is straight and moves along the axis only.
    slide
        Rate l' at which the line moves along its axis [m/s].
    weights
        Quadrature weights (g,) of the fields' points.
    position, velocity
        Components along x, y, z in the root's axes; the velocity is relative to the root.
    strain
        Strain energy [J].
    end, end_rotation
        Position (3, 1) [m] and rotation vector (3, 1) [rad] of the tip.
    deflection, slope
        At the tip, by direction [m], [-].
    """

    axis: int
    mass: float
    density: ca.SX
    hidden_length: ca.SX
    hidden_mass: ca.SX
    slide: ca.SX
    weights: Array
    position: tuple[Field, Field, Field]
    velocity: tuple[Field, Field, Field]
    strain: ca.SX
    end: ca.SX
    end_rotation: ca.SX
    deflection: Mapping[str, ca.SX]
    slope: Mapping[str, ca.SX]

    @property
    def moment(self) -> ca.SX:
        """First moment about the root, S = int r dm (3, 1) [kg m]."""
        S = [self.density * integral(a, self.weights) for a in self.position]
        S[self.axis] -= self.hidden_mass * self.hidden_length / 2
        return ca.vertcat(*S)

    def kinetic(self, v: ca.SX, omega: ca.SX) -> ca.SX:
        """Kinetic energy [J] when the root moves with v [m/s] and omega [rad/s], (3, 1) each.

        T = 1/2 m v^2 + v.(w x S + P) + 1/2 w.(tr(R) I - R) w + w.H + 1/2 E.
        """
        if not self.mass:
            return ca.SX(0)
        R, H = self._second_moments(), self._angular_momentum()
        P = [self.density * integral(a, self.weights) for a in self.velocity]
        P[self.axis] += self.hidden_mass * self.slide
        E = self.hidden_mass * self.slide**2
        for a in self.velocity:
            E += self._product(a, a)
        turning = (ca.trace(R) * ca.dot(omega, omega) - ca.dot(omega, R @ omega)) / 2
        coupled = ca.dot(v, ca.cross(omega, self.moment) + ca.vertcat(*P))
        return self.mass * ca.dot(v, v) / 2 + coupled + turning + ca.dot(omega, H) + E / 2

    def _second_moments(self) -> ca.SX:
        """R = int r r^T dm (3, 3) [kg m^2]."""
        r, R = self.position, ca.SX(3, 3)
        for i in range(3):
            for j in range(i, 3):
                R[i, j] = R[j, i] = self._product(r[i], r[j])
        R[self.axis, self.axis] += self.hidden_mass * self.hidden_length**2 / 3
        return R

    def _angular_momentum(self) -> ca.SX:
        """H = int r x r' dm (3, 1) [kg m^2/s]; the hidden part moves along itself and has none."""
        r, u, H = self.position, self.velocity, ca.SX(3, 1)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            H[i] = self._product(r[j], u[k]) - self._product(r[k], u[j])
        return H

    def _product(self, a: Field, b: Field) -> ca.SX:
        return self.density * product_integral(a, b, self.weights)


@dataclass(frozen=True, kw_only=True)
class _Points:
    """Quadrature points of a line and how they move: xi, weights (g,), free length l, rate l'."""

    xi: Array
    weights: Array
    length: ca.SX
    slide: ca.SX
    local: Local

    def moving(self, value: Array, slope: Array, coordinates: ca.SX) -> Field:
        """Velocity at fixed material points of the field value(xi) * coordinates.

        A material point's xi changes at the rate (1 - xi) l'/l, hence the second part.
        """
        drift = coordinates * (self.slide / self.length)
        rates = self.local.rate(coordinates)
        if drift.is_zero():
            return Field(shapes=value, coordinates=rates)
        return Field.stack((value, rates), ((1 - self.xi) * slope, drift))

    def nothing(self) -> Field:
        """Return a component that is always zero."""
        return Field(shapes=np.zeros((0, len(self.xi))), coordinates=ca.SX(0, 1))


def lay_line(body: Body, local: Local) -> Line:
    """Lay out the line of a body: its fields, its tip and its strain energy.

    Parameters
    ----------
    body
        Link and shapes; a rigid one has no planes, and its line is straight.
    local
        Joint variable, elastic coordinates and their rates; symbols.
    """
    link, length = body.link, free_length(body, local.joint)
    xi, weights = _quadrature(body.planes)
    slide = local.joint_rate if body.sliding else ca.SX(0)
    points = _Points(xi=xi, weights=weights, length=length, slide=slide, local=local)
    deltas = _deltas(body, local, length)
    position, velocity = [points.nothing()] * 3, [points.nothing()] * 3
    end, end_rotation = ca.SX(3, 1), ca.SX(3, 1)
    deflection, slope, strain = {}, {}, ca.SX(0)
    for direction, shapes in body.planes.items():
        i, delta = _AXES[direction], deltas[direction]
        position[i] = Field(shapes=shapes.value(xi), coordinates=delta)
        velocity[i] = points.moving(shapes.value(xi), shapes.slope(xi), delta)
        deflection[direction] = end[i] = ca.dot(ca.DM(shapes.value(1.0)), delta)
        slope[direction] = ca.dot(ca.DM(shapes.slope(1.0)), delta) / length
        strain += _bending_energy(shapes, delta, points) * link.EI[direction] / length**3
        # phi = axis x direction times the slope: the turn that tilts the axis towards it
        sign = 1 if (i - body.axis) % 3 == 1 else -1
        end_rotation[3 - i - body.axis] = sign * slope[direction]
    position[body.axis], velocity[body.axis], end[body.axis] = _along(body, points, deltas)
    hidden = link.length - length if body.sliding else ca.SX(0)
    return Line(
        axis=body.axis,
        mass=0.0 if body.on_axis else link.mass_per_length * link.length,
        density=link.mass_per_length * (ca.SX(0) if body.on_axis else length),
        hidden_length=hidden,
        hidden_mass=link.mass_per_length * hidden,
        slide=slide,
        weights=weights,
        position=(position[0], position[1], position[2]),
        velocity=(velocity[0], velocity[1], velocity[2]),
        strain=strain,
        end=ca.densify(end),
        end_rotation=ca.densify(end_rotation),
        deflection=deflection,
        slope=slope,
    )


def scales(shapes: Shapes, length: ca.SX) -> ca.SX:
    """Return l^power (n, 1): a node's slope times l is a length."""
    return ca.vertcat(*[length ** int(power) for power in shapes.power])


def _deltas(body: Body, local: Local, length: ca.SX) -> dict[str, ca.SX]:
    """Coordinates of every plane scaled to lengths, delta = l^power d (n, 1) [m]."""
    deltas, start = {}, 0
    for direction, shapes in body.planes.items():
        stop = start + len(shapes.names)
        deltas[direction] = scales(shapes, length) * local.elastic[start:stop]
        start = stop
    return deltas


def _bending_energy(shapes: Shapes, delta: ca.SX, points: _Points) -> ca.SX:
    """1/2 int (sum psi'' delta)^2 dxi [m^2]; times EI / l^3 it is the strain energy."""
    bending = Field(shapes=shapes.curvature(points.xi), coordinates=delta)
    return product_integral(bending, bending, points.weights) / 2


def _along(body: Body, points: _Points, deltas: Mapping[str, ca.SX]) -> tuple[Field, Field, ca.SX]:
    """Position, velocity and end along the axis: l xi, the slide, and the foreshortening."""
    xi, length = points.xi, points.length
    position, velocity, end = [(xi, length)], [(np.ones_like(xi), points.slide)], length
    if body.link.foreshortening and body.planes:
        table = shortening(tuple(body.planes.values()), xi)
        amount = table.products(tuple(deltas.values())) / length
        position.append((table.shapes, amount))
        part = points.moving(table.shapes, table.slopes, amount)
        velocity.append((part.shapes, part.coordinates))
        end += ca.dot(ca.DM(table.tip), amount)
    return Field.stack(*position), Field.stack(*velocity), end


def _quadrature(planes: Mapping[str, Shapes]) -> tuple[Array, Array]:
    """Gauss points and weights that serve all planes: those of the plane that needs most."""
    rules = [shapes.quadrature() for shapes in planes.values()]
    return max(rules, key=lambda rule: len(rule[0])) if rules else gauss(2)
