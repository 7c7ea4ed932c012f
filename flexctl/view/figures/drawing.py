"""Where the material points of an arm's links are, for drawing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from flexctl.body import (
    Body,
    Local,
    elementary_rotation,
    free_length,
    joint_turn,
    move_body,
    shortening,
    spread,
)
from flexctl.checks import Array
from flexctl.plant import Plant

N_POINTS = 25  # per elastic line
_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, kw_only=True)
class Skeleton:
    """The lines of an arm as a function of its coordinates.

    Attributes
    ----------
    function
        CasADi function q (n,) -> one (3, k) array of points [m] per link, base frame; a link's
        line starts at its input frame.
    derivative
        CasADi function (q, d) -> derivative of these points along a direction d (n,).
    hidden
        CasADi function q -> (3, 2 s): ends of the part of every sliding beam inside its hub.
    n_coordinates, n_rigid
        Sizes of q, and of what comes before its elastic part: joints and rotors.
    """

    function: ca.Function
    derivative: ca.Function
    hidden: ca.Function
    n_coordinates: int
    n_rigid: int

    def lines(self, q: Array, exaggeration: float = 1.0) -> list[Array]:
        """Return points (3, k) [m] of every link, elastic coordinates times `exaggeration`."""
        return [np.array(points) for points in self.function.call([self._scaled(q, exaggeration)])]

    def displacements(self, q: Array, direction: Array) -> list[Array]:
        """Return how the points of every link move along a direction (n,), to first order."""
        return [np.array(points) for points in self.derivative.call([q, direction])]

    def hidden_lines(self, q: Array, exaggeration: float = 1.0) -> list[Array]:
        """Return the ends (3, 2) [m] of what lies inside the hubs."""
        ends = np.array(self.hidden(self._scaled(q, exaggeration)))
        return [ends[:, k : k + 2] for k in range(0, ends.shape[1], 2)]

    def _scaled(self, q: Array, exaggeration: float) -> Array:
        scale = np.where(np.arange(self.n_coordinates) < self.n_rigid, 1.0, exaggeration)
        return np.asarray(q) * scale


def make_skeleton(plant: Plant) -> Skeleton:
    """Make the lines of a plant; the last point of the last link is the arm's tip."""
    q = ca.SX.sym("q", plant.n)
    base = plant.arm.base
    R = ca.SX(ca.DM(Rotation.from_rotvec(base.rotation_vector).as_matrix()))
    p = ca.SX(ca.DM(base.position))
    lines, hidden, start = [], [], plant.rigid
    for j, body in enumerate(plant.bodies):
        size = len(body.coordinates)
        elastic = ca.reshape(q[start : start + size], size, 1)  # a slice may be a row
        start += size
        tip_rotation, tip_position = _tip_frame(body, q[j], elastic)
        points = ca.horzcat(_line(body, q[j], elastic), tip_position)
        lines.append(_placed(R, p, points))
        if body.sliding:
            hidden.append(_placed(R, p, _inside_hub(body, q[j])))
        R, p = R @ tip_rotation, p + R @ tip_position
    d = ca.SX.sym("d", plant.n)
    moved = [ca.reshape(ca.jtimes(ca.vec(line), q, d), *line.shape) for line in lines]
    inside = ca.horzcat(*hidden) if hidden else ca.SX(3, 0)
    return Skeleton(
        function=ca.Function("lines", [q], lines),
        derivative=ca.Function("derivative", [q, d], [ca.densify(line) for line in moved]),
        hidden=ca.Function("hidden", [q], [ca.densify(inside)]),
        n_coordinates=plant.n,
        n_rigid=plant.rigid,
    )


def is_planar(skeleton: Skeleton, poses: Sequence[Array], others: Sequence[Array] = ()) -> bool:
    """Tell whether the arm in all poses, and other points (3, k), lie in a plane of constant z."""
    lines = [line for q in poses for line in skeleton.lines(q)]
    z = np.hstack([line[2] for line in (*lines, *others)])
    return bool(np.ptp(z) < 1e-9)


def _placed(R: ca.SX, p: ca.SX, points: ca.SX) -> ca.SX:
    return ca.densify(R @ points + ca.repmat(p, 1, points.shape[1]))


def _tip_frame(body: Body, joint: ca.SX, elastic: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return rotation and position of the tip frame in the input frame, bent as q says."""
    still = ca.SX.zeros(3)
    x, d = ca.SX.sym("x"), ca.SX.sym("d", elastic.numel())
    local = Local(
        joint=x, elastic=d, joint_rate=ca.SX(0), elastic_rate=ca.SX.zeros(elastic.numel())
    )
    motion, R = move_body(body, local, (still, still)), joint_turn(body, x).matrix
    tip = [R @ motion.rotation, R @ motion.position]
    rotation, position = ca.substitute(tip, [x, d], [joint, elastic])
    return rotation, position


def _line(body: Body, joint: ca.SX, elastic: ca.SX) -> ca.SX:
    """Return points (3, k) of a link's line in its input frame, from there on outwards."""
    R, p = _root(body, joint)
    xi = np.linspace(0.0, 1.0, N_POINTS if body.planes else 2)
    length = _length(body, joint)
    rows = [ca.SX.zeros(1, len(xi)) for _ in range(3)]
    rows[body.axis] = length * ca.DM(xi).T
    deltas, start = [], 0
    for direction, shapes in body.bent.items():  # they come before the twist
        count = len(body.names(direction))
        deltas.append(spread(body, direction, length) @ elastic[start : start + count])
        start += count
        rows[_AXES[direction]] = deltas[-1].T @ ca.DM(shapes.value(xi))
    if body.bent and body.link.foreshortening:
        table = shortening(tuple(body.bent.values()), xi)
        rows[body.axis] += table.coordinates(deltas).T @ ca.DM(table.shapes) / length
    return ca.horzcat(ca.SX.zeros(3), _placed(R, p, ca.vertcat(*rows)))


def _length(body: Body, joint: ca.SX) -> ca.SX:
    """Return the length of a link's line; a rigid one without mass there goes to its tip only."""
    massless = body.on_axis or not body.link.mass_per_length
    if massless and not body.planes and not body.sliding:
        return ca.SX(body.link.dh.a)
    return free_length(body, joint)


def _root(body: Body, joint: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Return the frame of the line's root in the input frame, by its DH parameters."""
    dh = body.link.dh
    if body.sliding:
        return elementary_rotation(2, dh.theta), ca.SX.zeros(3)
    R = elementary_rotation(2, joint + dh.theta) @ elementary_rotation(0, dh.alpha)
    return R, ca.SX(ca.DM([0, 0, dh.d]))


def _inside_hub(body: Body, joint: ca.SX) -> ca.SX:
    """Return the ends (3, 2) of the part of a sliding beam inside its hub, in the input frame."""
    back = free_length(body, joint) - body.link.length
    return ca.horzcat(ca.vertcat(0, 0, back), ca.SX.zeros(3))
