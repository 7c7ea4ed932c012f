"""Section 2.1.1 of [TG95]: what links carry, which modes follow from it, and what they cost."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np
import scipy.linalg

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.frequencies import END, EQUAL, LINE, RRP, sliding_roots
from flexctl.beam.frequency_equation import roots_along
from flexctl.beam.line import TipLoad
from flexctl.beam.load_path import LoadPath
from flexctl.beam.moving_modes import MovingModes, find_moving_modes
from flexctl.beam.sliding_shapes import RootShapes, fit_root_shapes, fit_sliding_shapes
from flexctl.checks import Array
from flexctl.model.arm import Arm
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.assembly import inertia_beyond, load_beyond
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import assemble_plant

THREE_R = "planar-3r"
RANGE = (0.095, 1.365)  # lengths of the RRP arm's modes [m]
LENGTHS = np.linspace(0.1, 1.3, 13)


@cache
def _by_roots() -> RootShapes:
    return fit_root_shapes(2, LINE, *RANGE)


@cache
def _arm_multiplications() -> int:
    plant = assemble_plant(load_model(RRP), BasisChoice(order=2), interpreted=True)
    return _multiplications(plant.casadi_functions["forward_dynamics"])


def _multiplications(function: ca.Function) -> int:
    return count_operations(function).mul


def root_finding() -> Claim:
    """Count what root finding adds to one evaluation of the equations of motion."""
    own, s = _by_roots(), ca.SX.sym("s")
    roots = ca.vertcat(*own.modes.roots_at([s], own.load_at(s)))
    found = count_operations(ca.Function("roots", [s], [roots], {"cse": True}))
    exact = [own.modes.roots_at([x], own.load_at(x)) for x in np.log(LENGTHS)]
    off = float(np.abs(np.array(exact) / roots_along(2, LINE.loads(LENGTHS)) - 1).max())
    mul, arm = found.mul, _arm_multiplications()
    return Claim(
        id="section 2.1.1, root finding",
        paper="root finding at each step leads to a considerable increase of computational time",
        ours=f"three steps of Newton's method from a coarse table give both roots within {off:.1g} "
        f"for {mul} multiplications and {found.other} other functions; the forward "
        f"dynamics of the arm with fixed modes takes {arm} multiplications",
        verdict=judge(mul > 0.2 * arm),
        why="the root is cheap, what follows from it is not: shapes, their integrals and their "
        "changes with the length, which the differential form needs just as well. Dear it becomes "
        "where Newton's steps are differentiated: findings.md has all ways beside each other",
        numbers={"multiplications": mul, "arm": arm, "off": off},
    )


def table_look_up() -> Claim:
    """Count the numbers that a table of the shapes keeps."""
    table = fit_sliding_shapes(2, LINE, *RANGE, 1e-9)
    s = ca.SX.sym("s")
    mix = ca.vertcat(*[ca.horzcat(*row) for row in table.mix_at(s)])
    mul = _multiplications(ca.Function("mix", [s], [mix], {"cse": True}))
    size = table.mix.size + table.base.curvatures.size
    error = float((table.error / sliding_roots(END) ** 2).max())
    return Claim(
        id="section 2.1.1, table",
        paper="a table takes a large storage space for the accuracy that is asked",
        ours=f"{size} numbers hold both modes for {RANGE[0]:g} to {RANGE[1]:g} m, psi'' within "
        f"{error:.1g} of its size, proven; an evaluation takes {mul} multiplications",
        verdict=judge(size > 1e4),
        why="modes are analytic in ln l, so that Chebyshev series converge geometrically; a table "
        "of values with linear interpolation would need thousands of lengths",
        numbers={"numbers": size, "error": error, "multiplications": mul},
    )


def neglecting() -> Claim:
    """Compare frequencies of one pose's modes with exact ones along the slide and a turn."""
    lengths = LINE.loads([0.1, 0.3, 1.3]).value
    one, two = (
        max(overestimates(_modes(n, LINE.loads([1.0]).value[0]), load)[-1] for load in lengths)
        for n in (1, 2)
    )
    turning = _one_pose()
    return Claim(
        id="section 4.2, neglecting",
        paper="neglecting the time-dependent terms may lead to inaccurate shapes and "
        "over-estimated frequencies",
        ours="frequencies of the sliding link in modes of l = 1 m are too high by up to "
        f"{100 * one:.2g} % (first, one mode) and {100 * two:.2g} % (second, two modes) at 0.1 to "
        "1.3 m; those of link 1 of a 3R arm in one mode of one pose by up to "
        f"{100 * turning:.2g} %",
        verdict=judge(min(one, two, turning) > 0),
        why="too high by Rayleigh's principle, and hardly: what matters is that the load is in the "
        "shapes at all (see findings.md)",
        numbers={"one": float(one), "two": float(two), "turning": turning},
    )


def overestimates(fixed: MovingModes, load: Array) -> Array:
    """Relative errors (n,) of clamped frequencies in n fixed shapes under a load M, J, D (3,)."""
    xi, weights = fixed.quadrature()
    shapes, bent = (fixed.evaluate(xi, d)[0] for d in (0, 2))
    tip, slope = (fixed.tip(d)[0] for d in (0, 1))
    M, J, D = load
    mass = (shapes * weights) @ shapes.T + M * np.outer(tip, tip) + J * np.outer(slope, slope)
    mass += D * (np.outer(tip, slope) + np.outer(slope, tip))
    squares = scipy.linalg.eigh((bent * weights) @ bent.T, mass, eigvals_only=True)
    return np.sqrt(squares) / _modes(len(tip), load).beta[0] ** 2 - 1


def _modes(n: int, load: Array) -> MovingModes:
    M, J, D = load
    return find_moving_modes(n, LoadPath.through(TipLoad(mass=M, inertia=J, offset=D)))


def _loads(arm: Arm, theta_2: float, theta_3: float) -> Array:
    """M_L [kg], J_L [kg m^2] and M_DL [kg m] of link 1 of a 3R arm."""
    inertia = inertia_beyond(arm, 0, np.array([0.0, theta_2, theta_3]))
    return np.array(load_beyond(arm, 0, "y", inertia), dtype=float)


def _one_pose() -> float:
    """Return the largest error of link 1's first frequency in one mode of the file's pose."""
    arm = load_model(THREE_R)
    link = arm.links[0]
    sizes = link.mass_per_length * link.length ** np.array([1, 3, 2])
    choice = link.tip_load.reference_pose if link.tip_load else {}
    fixed = _modes(1, _loads(arm, choice["joint2"], choice["joint3"]) / sizes)
    poses = [_loads(arm, 0.6, angle) / sizes for angle in np.linspace(0, 2.9, 5)]
    return max(float(overestimates(fixed, load)[0]) for load in poses)


def inertia_3r() -> Claim:
    """Compare J_L of a planar 3R arm as printed with that of bars and of point masses."""
    arm, angles = load_model(THREE_R), (0.0, 1.0, 2.0)
    bars, points = _bars(arm), _points(arm)
    off = [_printed(a, 1.3, 1.3) / _loads(bars, 0.3, a)[1] - 1 for a in angles]
    right = max(abs(_printed(a, 0.7, 1.1) / _loads(points, 0.3, a)[1] - 1) for a in angles)
    return Claim(
        id="section 2.1.1, J_L of the 3R arm",
        paper="J_L = I_2 + I_3 + m_2 l_2^2 + m_3 (l_2^2 + l_3^2 + 2 l_2 l_3 cos theta_3)",
        ours=f"exact (within {right:.1g}) where links 2 and 3 are point masses at their ends; of "
        f"uniform bars it is {100 * off[0]:.3g} % too much stretched out and "
        f"{100 * off[2]:.3g} % at theta_3 = 2",
        verdict=judge(max(np.abs(off)) < EQUAL),
        why="the flexible links of the paper are uniform: m_2 l_2^2 / 3 + m_3 (l_2^2 + l_3^2 / 3 + "
        "l_2 l_3 cos theta_3)",
        numbers={"points": float(right), "stretched": float(off[0]), "folded": float(off[2])},
    )


def _printed(angle: float, m_2: float, m_3: float) -> float:
    """J_L as printed for links of 1 m, joint inertias left out."""
    return m_2 + m_3 * (2 + 2 * np.cos(angle))


def _bars(arm: Arm) -> Arm:
    """Return the arm without motors and payload."""
    hub = arm.links[0].hub.model_copy(update={"mass": 0.0, "inertia": (0.0, 0.0, 0.0)})
    links = [link.model_copy(update={"hub": hub}) for link in arm.links]
    payload = arm.payload.model_copy(update={"mass": 0.0, "inertia": (0.0, 0.0, 0.0)})
    return arm.model_copy(update={"links": tuple(links), "payload": payload})


def _points(arm: Arm) -> Arm:
    """Return the arm with 0.7 kg at joint 3 and 1.1 kg at the tip, and links without mass."""
    bare = _bars(arm)
    links = [link.model_copy(update={"mass_per_length": 0.0}) for link in bare.links]
    hub = links[2].hub.model_copy(update={"mass": 0.7})
    links[2] = links[2].model_copy(update={"hub": hub})
    payload = bare.payload.model_copy(update={"mass": 1.1})
    return bare.model_copy(update={"links": tuple(links), "payload": payload})


def configuration() -> Claim:
    """Ask which joints M, J and D of link 1 depend on."""
    arm = load_model(THREE_R)
    poses = [(0.2, 0.4), (1.1, 0.4), (0.2, 2.0)]
    start, second, third = (_loads(arm, *pose) for pose in poses)
    by_2, by_3 = np.abs(second / start - 1), np.abs(third / start - 1)
    J = [_loads(arm, 0.0, angle)[1] for angle in (0.0, np.pi)]
    return Claim(
        id="section 2.1.1, configuration",
        paper="M_L is constant, M_DL a function of the configuration of successive links, and with "
        "more than two links J_L too",
        ours=f"link 1 of the catalogue's 3R arm: M_L moves by {max(by_2[0], by_3[0]):.1g}; M_DL by "
        f"{100 * by_2[2]:.3g} % with theta_2 and {100 * by_3[2]:.3g} % with theta_3; J_L not with "
        f"theta_2 ({by_2[1]:.1g}), with theta_3 from {J[0]:.3g} to {J[1]:.3g} kg m^2",
        verdict=judge(max(by_2[:2]) < EQUAL and min(by_2[2], by_3[1], by_3[2]) > 0.01),
        why="as printed",
        numbers={"offset": float(by_2[2]), "inertia": float(J[0] / J[1])},
    )
