"""Algorithm 1 of [TG95]: the mass matrix from positions with small rotations, part by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from flexctl.body.body import Body, Local
from flexctl.body.line import Line, lay_line
from flexctl.body.motion import joint_turn, root_frame
from flexctl.body.rotation import elementary_rotation, skew
from flexctl.body.segment import Field, Segment, product_integral


@dataclass(frozen=True, kw_only=True)
class LaidLine:
    """A line whose root has the axes R (3, 3) and the place p (3, 1) [m] in the base frame."""

    line: Line
    R: ca.SX
    p: ca.SX


@dataclass(frozen=True, kw_only=True)
class SmallChain:
    """An arm whose tips turn by small rotations, E = I + skew(phi): (1) to (6) of [TG95].

    Attributes
    ----------
    q, v
        Joint variables and elastic coordinates, body by body, and their rates (n, 1).
    lines
        From the base outwards.
    tip
        End of the arm in the base frame (3, 1) [m].
    spin
        Energy of the inertias that turn with a joint alone [J].
    """

    q: ca.SX
    v: ca.SX
    lines: tuple[LaidLine, ...]
    tip: ca.SX
    spin: ca.SX

    def rate(self, expression: ca.SX) -> ca.SX:
        """Time derivative of an expression in q."""
        return ca.jtimes(expression, self.q, self.v)


def lay_chain(bodies: Sequence[Body]) -> SmallChain:
    """Lay out the lines of an arm without hubs, whose base is the base frame.

    A first link on its own joint axis carries no mass that moves.
    """
    n, start = len(bodies) + sum(len(body.coordinates) for body in bodies), len(bodies)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    R, p, spin, lines = ca.SX.eye(3), ca.SX.zeros(3), ca.SX(0), []
    for j, body in enumerate(bodies):
        rows = slice(start, start + len(body.coordinates))
        start = rows.stop
        local = Local(joint=q[j], elastic=q[rows], joint_rate=v[j], elastic_rate=v[rows])
        root, line = root_frame(body), lay_line(body, local)
        R = R @ joint_turn(body, q[j]).matrix
        R, p = R @ root.R, p + R @ root.p
        lines.append(LaidLine(line=line, R=R, p=p))
        spin += body.link.joint_inertia * v[j] ** 2 / 2
        rigid_end = ca.SX(ca.DM([body.link.dh.a, 0, 0]))
        p += R @ (line.end if body.planes or body.sliding else rigid_end)
        R = R @ (ca.SX.eye(3) + skew(line.end_rotation))
        R = R @ elementary_rotation(0, body.link.dh.alpha) if body.sliding else R
    return SmallChain(q=q, v=v, lines=tuple(lines), tip=p, spin=spin)


def link_matrix(chain: SmallChain) -> ca.Function:
    """Return M(q) of links and joints: S6 and Algorithm 2."""
    parts = [(laid, part) for laid in chain.lines for part in laid.line.segments]
    return _matrix(chain, sum((_kinetic(chain, *part) for part in parts), chain.spin))


def element_matrices(chain: SmallChain, count: int) -> list[ca.Function]:
    """Return M(q) of every element by itself, each line cut into `count` equal pieces."""
    pieces = [
        (laid, replace(part, weights=part.weights * (_pieces(part, count) == k)))
        for laid in chain.lines
        for part in laid.line.segments
        for k in range(count)
    ]
    return [_matrix(chain, _kinetic(chain, *piece)) for piece in pieces]


def payload_matrix(chain: SmallChain, mass: float) -> ca.Function:
    """Return M(q) of a mass [kg] at the tip."""
    velocity = chain.rate(chain.tip)
    return _matrix(chain, mass * ca.dot(velocity, velocity) / 2)


def _pieces(part: Segment, count: int) -> np.ndarray:
    """Piece in which each Gauss point of equal panels lies; of a straight line all in the first."""
    n = len(part.weights)
    return np.arange(n) * count // n if n > count else np.zeros(n, dtype=int)


def _kinetic(chain: SmallChain, laid: LaidLine, part: Segment) -> ca.SX:
    """Kinetic energy [J] of a piece: 1/2 int |R' r + R u + p'|^2 dm, component by component."""
    R_rate, p_rate = chain.rate(laid.R), chain.rate(laid.p)
    one, energy = np.ones((1, len(part.weights))), ca.SX(0)
    for i in range(3):
        terms = [(one, p_rate[i])]
        for k in range(3):
            r, u = part.position[k], part.velocity[k]
            terms += [(r.shapes, R_rate[i, k] * r.coordinates)] if len(r.shapes) else []
            terms += [(u.shapes, laid.R[i, k] * u.coordinates)] if len(u.shapes) else []
        velocity = Field.stack(*terms)
        energy += part.density * product_integral(velocity, velocity, part.weights) / 2
    return energy


def _matrix(chain: SmallChain, energy: ca.SX) -> ca.Function:
    """Return d2T/dv2 as a function of q, its lower triangle row by row (n (n + 1)/2, 1)."""
    M, n = ca.hessian(energy, chain.v)[0], chain.q.shape[0]
    entries = [M[i, j] for i in range(n) for j in range(i + 1)]
    return ca.Function("mass_matrix", [chain.q], [ca.densify(ca.vertcat(*entries))])
