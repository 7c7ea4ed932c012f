"""Section 2.1 of [TG95]: transformations of bent links, their slopes, elements, the arm itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.arm import TWO_MODES, arm, plant, poses
from flexctl.beam.elements import hermite_elements
from flexctl.checks import Array
from flexctl.model.settings import apply_settings
from flexctl.plant.plant import Plant, assemble_plant

# Rotation phi (3,) of a tip frame whose line bends with slopes (u', v', w') along x, y, z.
Turning = Callable[[Array, bool], Array]

_STEP = 1e-6  # of central differences
_SAME = 1e-7  # what they may differ by from exact derivatives


def _right(slopes: Array, sliding: bool) -> Array:
    """Return w x slope of a line along x, or of one along z."""
    u, v, w = slopes
    return np.array([-v, u, 0.0]) if sliding else np.array([0.0, -w, v])


def _equation_15(slopes: Array, _sliding: bool) -> Array:
    """As printed: phi_x = u', phi_y = v', phi_z = w'."""
    return slopes


def transform(theta: float, alpha: float, a: float, d: float) -> Array:
    """Return A (4, 4) of (1), by Denavit and Hartenberg's parameters [rad, m]."""
    ct, st, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
    return np.array(
        [
            [ct, -st * ca, st * sa, a * ct],
            [st, ct * ca, -ct * sa, a * st],
            [0.0, sa, ca, d],
            [0.0, 0.0, 0.0, 1.0],
        ]
    )


def deformation(phi: Array, delta: Array) -> Array:
    """Return E (4, 4) of (2), by rotation phi (3,) [rad] and translation delta (3,) [m]."""
    E = np.eye(4)
    E[:3, :3] += np.array([[0, -phi[2], phi[1]], [phi[2], 0, -phi[0]], [-phi[1], phi[0], 0]])
    E[:3, 3] = delta
    return E


def _tip(own: Plant, q: Array, turning: Turning, by_length: bool) -> Array:
    """Return the tip (3,) [m] by the product (4); slopes by x, or by eta = x/l as in (8)."""
    T, first = np.eye(4), own.m
    for j, body in enumerate(own.bodies):
        dh = body.link.dh
        theta, d = (dh.theta, dh.d + q[j]) if body.sliding else (dh.theta + q[j], dh.d)
        T = T @ transform(theta, dh.alpha, dh.a, d)
        length = d if body.sliding else body.link.length
        delta, slopes = np.zeros(3), np.zeros(3)
        for direction, shapes in body.planes.items():
            xi = q[first : first + len(shapes.names)]
            axis, first = "xyz".index(direction), first + len(xi)
            delta[axis] = float(xi @ shapes.value(1.0)[:, 0])
            slopes[axis] = float(xi @ shapes.slope(1.0)[:, 0]) / (length if by_length else 1.0)
        T = T @ deformation(turning(slopes, body.sliding), delta)
    return T[:3, 3]


def _off(turning: Turning, *, by_length: bool = True, own: Plant | None = None) -> float:
    """Compare derivatives of the tip by q with those of the arm, over their largest.

    Straight, in the middle of the motion.
    """
    own = own or plant()
    q = own.straight(poses()[:, 5])
    ahead, behind = (
        [_tip(own, q + sign * step, turning, by_length) for step in _STEP * np.eye(own.n)]
        for sign in (1, -1)
    )
    ours = own.tip_jacobian(q)
    found = np.subtract(ahead, behind).T / (2 * _STEP)
    return float(np.abs(found - ours).max() / np.abs(ours).max())


def transformations() -> Claim:
    """Compare the product of A and E with the tip of flexctl's arm, to first order."""
    off = _off(_right)
    return Claim(
        id="figure 1, equations 1 to 6",
        paper="T_j = A_1 E_1 ... A_j E_j, E = I + [phi]x with the deflection of the tip",
        ours="the derivatives of the tip by all coordinates are those of this product with phi "
        f"= axis x slope, to {off:.0e}; flexctl turns by the exact rotation with this vector",
        verdict=judge(off < _SAME),
        why="right to first order in the slopes, which is all that the paper asks for; I + [phi]x "
        "is no rotation: it stretches what lies beyond by phi^2/2",
        numbers={"off": off},
    )


def slopes_of_modes() -> Claim:
    """Leave 1/l out of the slope at the tip, as (8) does, of an arm with a shorter link 2."""
    half = apply_settings(arm(), ["link2.length=0.5", "link2.dh.a=0.5"])
    short = assemble_plant(half, TWO_MODES, interpreted=True)
    right = _off(_right, own=short)
    printed = _off(_right, by_length=False, own=short)
    return Claim(
        id="equation 8, slopes",
        paper="the rotation at the tip is the derivative of psi by eta = x/l",
        ours=f"were link 2 half a metre long, derivatives of the tip by its coordinates would be "
        f"wrong by {printed:.2g} of the largest, with the derivative by x by {right:.0e}",
        verdict=judge(printed < _SAME),
        why="misprint: 1/l is missing; harmless for the paper's own arm, whose link 2 is 1 m long "
        "and whose link 3 carries a point at its tip",
        numbers={"right": right, "printed": printed},
    )


def axes_of_slopes() -> Claim:
    """Turn the tip about the axes that (15) gives, and (8)."""
    printed = _off(_equation_15)
    return Claim(
        id="equations 8, 15, axes",
        paper="phi_x, phi_y, phi_z of a tip are the slopes of u, v, w; in (8), as far as "
        "our copy shows it, phi_y = u', phi_x = w'",
        ours=f"derivatives of the tip by link 2's coordinates are then wrong by {printed:.2g} of "
        "the largest: the slope of a line along x would twist it",
        verdict=judge(printed < _SAME),
        why="misprint: a line along x that bends to y turns about z (phi_z = v', phi_y = -w'), "
        "one along z has phi_y = u', phi_x = -v'; (8) and (15) contradict each other too",
        numbers={"printed": printed},
    )


def hermite() -> Claim:
    """Compare the interpolation of (14) with flexctl's elements."""
    x, shapes = np.linspace(0, 1, 9), hermite_elements(order=2)
    ours = shapes.value(x / 2)[:2]  # node 2 is the far end of element 1, of length 1/2
    scale = 2.0  # coordinates are l times slopes, the element's length is half of it
    printed = np.array([x**2 * (3 - 2 * x), x**2 * (x - 1) / scale])
    off = float(np.abs(ours - printed).max())
    return Claim(
        id="figure 2, equations 12 to 14",
        paper="cubic interpolation of deflections and slopes at the nodes of an element",
        ours=f"the shapes of flexctl's elements are these, to {max(off, 1e-16):.0e}",
        verdict=judge(off < _SAME),
        why="",
        numbers={"off": off},
    )


def data() -> Claim:
    """Compare the lines of table 3 with table 1."""
    link, sliding = arm().links[1], arm().links[2]
    first = 1.87510407**2 * float(np.sqrt(link.EI["y"] / link.mass_per_length)) / link.length**2
    ratio = sliding.mass_per_length / link.mass_per_length
    return Claim(
        id="table 3, links",
        paper="m_2 = 0.331 kg on 1 m, m_3 = 0.4303 kg on 1.3 m, EI = 1165.4916 N m^2",
        ours=f"both links are of one profile ({ratio:.5f} of the mass per length) and EI/(rho A) "
        f"gives {first:.2f} rad/s, the first frequency of table 1",
        verdict=judge(abs(first - 208.64) < 5e-3 and abs(ratio - 1) < 1e-4),
        why="",
        numbers={"first": first, "ratio": ratio},
    )
