"""One moving link with its joint: where its points are, and its energies.

A body starts at its input frame (the tip frame of the body before). Its joint frame is
Rot(z, theta) Trans(z, d). A revolute link's line starts there, along x after the twist alpha; a
prismatic link's line runs along z through a hub at the input frame, of which the length d is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import casadi as ca
import numpy as np

from flexctl.beam import Beam, Shapes, assemble_matrices, modal_damping
from flexctl.body.fields import Array, Field, integral, product_integral, shortening, sparse
from flexctl.body.rotation import body_rate, elementary_rotation, rotation_matrix
from flexctl.catalogue import Link, RigidBody

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, kw_only=True)
class Body:
    """A link of an arm with the bases of its planes.

    Attributes
    ----------
    link
        Continuous data of the link, from the model file.
    planes
        Shapes by direction of deflection; empty for a rigid link.
    """

    link: Link
    planes: Mapping[str, Shapes]

    @property
    def sliding(self) -> bool:
        """Whether the beam slides through its hub (prismatic joint)."""
        return self.link.joint == "prismatic"

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the elastic coordinates, such as ``link2.y.1``."""
        return tuple(
            f"{self.link.name}.{direction}.{name}"
            for direction, shapes in self.planes.items()
            for name in shapes.names
        )

    @property
    def axis(self) -> int:
        """Axis of the line in the body frame: x (0), or z (2) for a prismatic link."""
        return 2 if self.sliding else 0

    def beam(self, length: float) -> Beam:
        """Return the line as a beam of the given free length [m]."""
        return Beam(length=length, mass_per_length=self.link.mass_per_length, EI=self.link.EI)


@dataclass(frozen=True, kw_only=True)
class BodyMotion:
    """Energies and tip motion of one body, given the twist of its input frame.

    Attributes
    ----------
    kinetic, strain
        Kinetic and strain energy [J]; scalars.
    mass, moment
        Mass [kg] and first moment about the input frame's origin, in its axes (3, 1) [kg m].
    rotation, position
        Tip frame in the input frame: R (3, 3), p (3, 1) [m].
    line_tip
        End of the elastic line in the input frame (3, 1) [m].
    deflection, slope
        Deflection [m] and slope [-] at the line's end, by direction; scalars.
    twist
        Velocity [m/s] and angular velocity [rad/s] of the tip frame in its own axes, each (3, 1).
    """

    kinetic: ca.SX
    strain: ca.SX
    mass: float
    moment: ca.SX
    rotation: ca.SX
    position: ca.SX
    line_tip: ca.SX
    deflection: Mapping[str, ca.SX]
    slope: Mapping[str, ca.SX]
    twist: tuple[ca.SX, ca.SX]


@dataclass(frozen=True, kw_only=True)
class Local:
    """Local coordinates of a body and their rates: joint variable, elastic coordinates."""

    joint: ca.SX
    elastic: ca.SX
    joint_rate: ca.SX
    elastic_rate: ca.SX

    def rate(self, expression: ca.SX) -> ca.SX:
        """Time derivative of an expression in the local coordinates."""
        coordinates = ca.vertcat(self.joint, self.elastic)
        rates = ca.vertcat(self.joint_rate, self.elastic_rate)
        return ca.jtimes(expression, coordinates, rates)


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A frame fixed in the input frame's successor: R (3, 3), p (3, 1), and its twist."""

    R: ca.SX
    p: ca.SX
    v: ca.SX
    omega: ca.SX


def move_body(body: Body, local: Local, twist: tuple[ca.SX, ca.SX]) -> BodyMotion:
    """Energies and tip motion of a body whose input frame moves with `twist`.

    Parameters
    ----------
    body
        Link and bases.
    local
        Joint variable [rad or m], elastic coordinates (n, 1) [m or rad] and their rates; symbols.
    twist
        Velocity (3, 1) [m/s] and angular velocity (3, 1) [rad/s] of the input frame, in its axes.

    Notes
    -----
    T = 1/2 m v^2 + v.(w x S + P) + 1/2 w.(tr(R) I - R) w + w.H + 1/2 E with first moment S, second
    moments R = int r r^T dm, P = int r' dm, H = int r x r' dm and E = int r'.r' dm of the line.
    """
    joint = _joint_frame(body.link, local, twist)
    root = _turned(joint, elementary_rotation(0, body.link.dh.alpha)) if not body.sliding else joint
    line = _Line(body, local)
    solid = _solid_parts(body, local, joint)
    tip = _tip_frame(body, local, root, line)
    return BodyMotion(
        kinetic=line.kinetic(root) + solid[0] + _spin(body.link, local),
        strain=line.strain(),
        mass=line.mass + solid[1],
        moment=root.R @ line.moment + line.mass * root.p + solid[2],
        rotation=tip.R,
        position=tip.p,
        line_tip=root.p + root.R @ line.end,
        deflection=line.tip_deflection,
        slope=line.tip_slope,
        twist=(tip.v, tip.omega),
    )


def damping_matrix(body: Body, joint: ca.SX) -> ca.SX:
    """Modal damping D of the elastic coordinates (n, n), of the clamped link without tip load.

    For a uniform line D = sqrt(rho A EI) / l S D_1 S with S = diag(l^power): D_1 is found at l = 1.
    """
    link = body.link
    blocks = []
    for direction, shapes in body.planes.items():
        unit = Beam(length=1.0, mass_per_length=1.0, EI={direction: 1.0})
        D = modal_damping(assemble_matrices(unit, direction, shapes), link.damping_ratio)
        S = ca.diag(_scales(shapes, free_length(body, joint)))
        stiffness = np.sqrt(link.mass_per_length * link.EI[direction])
        blocks.append(stiffness / free_length(body, joint) * (S @ sparse(D) @ S))
    return ca.diagcat(*blocks) if blocks else ca.SX(0, 0)


def free_length(body: Body, joint: ca.SX) -> ca.SX:
    """Length of the elastic line [m]: of a sliding link, the part outside its hub."""
    return body.link.dh.d + joint if body.sliding else ca.SX(body.link.length)


def _joint_frame(link: Link, local: Local, twist: tuple[ca.SX, ca.SX]) -> _Frame:
    """Return the frame in which the line rests: after the joint, for a sliding link at the hub."""
    v, omega = twist
    if link.joint == "prismatic":
        R = elementary_rotation(2, link.dh.theta)
        return _Frame(R=R, p=ca.SX.zeros(3), v=R.T @ v, omega=R.T @ omega)
    R = elementary_rotation(2, local.joint + link.dh.theta)
    p = ca.SX(ca.DM([0, 0, link.dh.d]))
    omega_joint = R.T @ omega + ca.vertcat(0, 0, local.joint_rate)
    return _Frame(R=R, p=p, v=R.T @ (v + ca.cross(omega, p)), omega=omega_joint)


def _turned(frame: _Frame, R: ca.SX) -> _Frame:
    return _Frame(R=frame.R @ R, p=frame.p, v=R.T @ frame.v, omega=R.T @ frame.omega)


def _tip_frame(body: Body, local: Local, root: _Frame, line: _Line) -> _Frame:
    """Frame at the end of the deflected link, where the next body starts."""
    dh = body.link.dh
    end = line.end
    if not body.sliding and not body.planes:
        end = ca.SX(ca.DM([dh.a, 0, 0]))  # the drawn line of a rigid link may end elsewhere
    velocity = root.v + ca.cross(root.omega, end) + local.rate(end)
    phi = line.tip_rotation
    R = rotation_matrix(phi) if body.planes else ca.SX.eye(3)
    omega = R.T @ root.omega
    if body.planes:
        omega += body_rate(phi, local.rate(phi))
    tip = _Frame(R=root.R @ R, p=root.p + root.R @ end, v=R.T @ velocity, omega=omega)
    if not body.sliding:
        return tip
    offset = ca.SX(ca.DM([dh.a, 0, 0]))
    beyond = _Frame(
        R=tip.R, p=tip.p + tip.R @ offset, v=tip.v + ca.cross(omega, offset), omega=omega
    )
    return _turned(beyond, elementary_rotation(0, dh.alpha))


def _spin(link: Link, local: Local) -> ca.SX:
    """Energy of the inertia that turns (or slides) with the joint alone: 1/2 J q'^2."""
    return link.joint_inertia * local.joint_rate**2 / 2


def solid_energy(mass: float, com: ca.SX, inertia: ca.SX, v: ca.SX, omega: ca.SX) -> ca.SX:
    """Kinetic energy [J] of a rigid body: m/2 |v + w x c|^2 + 1/2 w.I w, all in its frame's axes.

    `com` (3, 1) [m] from the frame's origin, `inertia` (3, 3) [kg m^2] about the centre of mass,
    `v` (3, 1) [m/s] of the origin, `omega` (3, 1) [rad/s].
    """
    v_com = v + ca.cross(omega, com)
    return mass * ca.dot(v_com, v_com) / 2 + ca.dot(omega, inertia @ omega) / 2


def _solid_parts(body: Body, local: Local, joint: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Kinetic energy, mass and first moment (input axes) of the hub and of an axial rigid link."""
    kinetic, mass, moment = _hub(body, body.link.hub, local, joint)
    if not _lies_on_axis(body):
        return kinetic, mass, moment
    link = body.link
    m, length = link.mass_per_length * link.length, np.copysign(link.length, link.dh.d)
    com = ca.SX(ca.DM([0, 0, length / 2 - link.dh.d]))  # the line starts at the input frame
    inertia = m * link.length**2 / 12 * ca.SX(ca.DM(np.diag([1.0, 1.0, 0.0])))
    kinetic += solid_energy(m, com, inertia, joint.v, joint.omega)
    return kinetic, mass + m, moment + m * (joint.p + joint.R @ com)


def _hub(body: Body, hub: RigidBody, local: Local, joint: _Frame) -> tuple[ca.SX, float, ca.SX]:
    """Return energy, mass and first moment of the hub, rigid on the joint's link side."""
    slide = ca.vertcat(0, 0, free_length(body, local.joint)) if body.sliding else ca.SX.zeros(3)
    rate = ca.vertcat(0, 0, local.joint_rate) if body.sliding else ca.SX.zeros(3)
    com = slide + ca.SX(ca.DM(hub.com))
    inertia = ca.SX(ca.DM(np.diag(hub.inertia)))
    kinetic = solid_energy(hub.mass, com, inertia, joint.v + rate, joint.omega)
    return kinetic, hub.mass, hub.mass * (joint.p + joint.R @ com)


def _lies_on_axis(body: Body) -> bool:
    """Whether the line lies along the joint axis: rigid, revolute, without a but with d."""
    dh = body.link.dh
    return not body.sliding and not body.planes and dh.a == 0 and dh.d != 0


def _scales(shapes: Shapes, length: ca.SX) -> ca.SX:
    """l^power (n, 1): a node's slope times l is a length."""
    return ca.vertcat(*[length ** int(power) for power in shapes.power])


class _Line:
    """Position and velocity fields of a line in the frame of its root, and their integrals."""

    def __init__(self, body: Body, local: Local) -> None:
        self._body = body
        self._local = local
        self._length = free_length(body, local.joint)
        self._xi, self._weights = _quadrature(body)
        self._deltas = self._scaled_coordinates()
        self._build_fields()

    def _scaled_coordinates(self) -> dict[str, ca.SX]:
        deltas, start = {}, 0
        for direction, shapes in self._body.planes.items():
            n = len(shapes.names)
            d = self._local.elastic[start : start + n]
            deltas[direction] = _scales(shapes, self._length) * d
            start += n
        return deltas

    def _build_fields(self) -> None:
        """Components of position and velocity; a component that is not there is None.

        At a fixed material point d(xi)/dt = (1 - xi) l'/l, hence the second part of a velocity.
        """
        self._position: list[Field | None] = [None, None, None]
        self._velocity: list[Field | None] = [None, None, None]
        self.end = ca.SX(3, 1)
        self.tip_rotation = ca.SX(3, 1)
        self.tip_deflection: dict[str, ca.SX] = {}
        self.tip_slope: dict[str, ca.SX] = {}
        for direction, shapes in self._body.planes.items():
            self._add_plane(_AXES[direction], direction, shapes)
        self._add_axis()
        self.end, self.tip_rotation = ca.densify(self.end), ca.densify(self.tip_rotation)

    def _add_plane(self, component: int, direction: str, shapes: Shapes) -> None:
        delta, xi, tip = self._deltas[direction], self._xi, np.array([1.0])
        value, slope = shapes.value(xi), shapes.slope(xi)
        self._position[component] = Field(shapes=value, coordinates=delta)
        self._velocity[component] = self._moving(value, slope, delta)
        self.end[component] = ca.dot(ca.DM(shapes.value(tip)), delta)
        tip_slope = ca.dot(ca.DM(shapes.slope(tip)), delta) / self._length
        self.tip_deflection[direction], self.tip_slope[direction] = self.end[component], tip_slope
        # a right-handed turn: phi = axis x (direction of deflection) times the slope
        normal = 3 - component - self._body.axis
        sign = 1 if (component - self._body.axis) % 3 == 1 else -1
        self.tip_rotation[normal] = sign * tip_slope

    def _add_axis(self) -> None:
        axis, xi, length = self._body.axis, self._xi, self._length
        along: list[tuple[Array, ca.SX]] = [(xi, length)]
        moving: list[tuple[Array, ca.SX]] = []
        self.end[axis] = length
        if self._body.sliding:
            moving.append((np.ones_like(xi), self._local.joint_rate))
        if self._body.link.foreshortening and self._body.planes:
            table = shortening(tuple(self._body.planes.values()), xi)
            amount = table.products(tuple(self._deltas.values())) / length
            along.append((table.shapes, amount))
            part = self._moving(table.shapes, table.slopes, amount)
            moving.append((part.shapes, part.coordinates))
            self.end[axis] += ca.dot(ca.DM(table.tip), amount)
        self._position[axis] = Field.stack(*along)
        self._velocity[axis] = Field.stack(*moving) if moving else None

    def _moving(self, value: Array, slope: Array, coordinates: ca.SX) -> Field:
        """Velocity at a fixed material point of the field value(xi) * coordinates."""
        rates = self._local.rate(coordinates)
        if not self._body.sliding:
            return Field(shapes=value, coordinates=rates)
        drift = coordinates * (self._local.joint_rate / self._length)
        return Field.stack((value, rates), ((1 - self._xi) * slope, drift))

    @property
    def mass(self) -> float:
        """Mass of the whole line [kg], with the part inside the hub."""
        link = self._body.link
        if _lies_on_axis(self._body):
            return 0.0
        return link.mass_per_length * link.length

    @property
    def moment(self) -> ca.SX:
        """First moment about the root (3, 1) [kg m]."""
        S = [self._once(a) for a in self._position]
        S[self._body.axis] -= self._hidden_mass * self._hidden_length / 2
        return ca.vertcat(*S) if self.mass else ca.SX.zeros(3)

    @property
    def _density(self) -> ca.SX:
        """Mass of the free line [kg]: rho A l."""
        return self._body.link.mass_per_length * self._length

    @property
    def _hidden_length(self) -> ca.SX:
        return self._body.link.length - self._length if self._body.sliding else ca.SX(0)

    @property
    def _hidden_mass(self) -> ca.SX:
        return self._body.link.mass_per_length * self._hidden_length

    def _once(self, a: Field | None) -> ca.SX:
        return ca.SX(0) if a is None else self._density * integral(a, self._weights)

    def _twice(self, a: Field | None, b: Field | None) -> ca.SX:
        if a is None or b is None:
            return ca.SX(0)
        return self._density * product_integral(a, b, self._weights)

    def kinetic(self, root: _Frame) -> ca.SX:
        """Kinetic energy [J] of the line, root frame moving with its twist; see `move_body`."""
        if not self.mass:
            return ca.SX(0)
        r, u, axis = self._position, self._velocity, self._body.axis
        S = self.moment
        P = ca.vertcat(*[self._once(a) for a in u])
        R = ca.SX(3, 3)
        H = ca.SX(3, 1)
        for i in range(3):
            j, k = (i + 1) % 3, (i + 2) % 3
            R[i, i] = self._twice(r[i], r[i])
            R[j, k] = R[k, j] = self._twice(r[j], r[k])
            H[i] = self._twice(r[j], u[k]) - self._twice(r[k], u[j])
        E = sum((self._twice(a, a) for a in u), ca.SX(0))
        # the part inside the hub is straight and moves along the axis only
        R[axis, axis] += self._hidden_mass * self._hidden_length**2 / 3
        if self._body.sliding:
            P[axis] += self._hidden_mass * self._local.joint_rate
            E += self._hidden_mass * self._local.joint_rate**2
        v, w = root.v, root.omega
        turning = (ca.trace(R) * ca.dot(w, w) - ca.dot(w, R @ w)) / 2
        linear = self.mass * ca.dot(v, v) / 2 + ca.dot(v, ca.cross(w, S) + P)
        return linear + turning + ca.dot(w, H) + E / 2

    def strain(self) -> ca.SX:
        """Strain energy [J]: 1/2 EI/l^3 int (sum psi'' delta)^2 dxi in every plane."""
        total = ca.SX(0)
        for direction, shapes in self._body.planes.items():
            bending = Field(shapes=shapes.curvature(self._xi), coordinates=self._deltas[direction])
            EI = self._body.link.EI[direction]
            unit = product_integral(bending, bending, self._weights)
            total += EI / self._length**3 * unit / 2
        return total


def _quadrature(body: Body) -> tuple[Array, Array]:
    """Gauss points and weights that serve all planes: those of the plane that needs most."""
    rules = [shapes.quadrature() for shapes in body.planes.values()]
    if not rules:
        nodes, weights = np.polynomial.legendre.leggauss(2)
        return (nodes + 1) / 2, weights / 2
    return max(rules, key=lambda rule: len(rule[0]))
