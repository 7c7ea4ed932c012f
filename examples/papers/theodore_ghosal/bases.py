"""Section 1.1 and footnote 1 of [TG95]: the controlled end of a link, and its torsion."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph
from scipy.optimize import brentq

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.arm import arm, poses
from flexctl.beam.assumed_modes import assumed_modes, free_modes, pinned_modes
from flexctl.beam.matrices import unit_mass_and_stiffness
from flexctl.beam.shapes import Shapes
from flexctl.checks import Array
from flexctl.model.record import BasisChoice
from flexctl.model.settings import apply_settings
from flexctl.plant.linearisation import linearise
from flexctl.plant.plant import assemble_plant

ENDS: dict[str, Callable[[int], Shapes]] = {
    "clamped": assumed_modes,
    "pinned": pinned_modes,
    "free": free_modes,
}
RATIOS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # inertia m l^2 / 3 of the beam over the hub's
_HEAVY = 0.1
_EXACT = 30  # clamped modes beside the joint: below 1e-9 of the lowest three frequencies
_ROUND_OFF = 1e-9
_COUPLED = 1e-9  # of an entry of the mass matrix, coordinates scaled to unit masses
_LITTLE = 0.05  # what may be neglected of a frequency
# Aluminium, as [TG95] names no material: Poisson's ratio, density [kg/m^3], modulus [N/m^2].
POISSON, DENSITY, YOUNG = 0.33, 2700.0, 6.9e10


def on_hub(shapes: Shapes, hub: float) -> tuple[Array, Array]:
    """Mass and stiffness (1 + n, 1 + n) [-] of a uniform line on a free hub, joint first.

    The shapes are seen from the tangent at the root, which the joint turns; `hub` is the hub's
    inertia over m l^2.
    """
    xi, weights = shapes.quadrature()
    inner, stiffness = unit_mass_and_stiffness(shapes)
    cross = shapes.value(xi) @ (weights * xi)
    mass = np.block([[np.array([[1 / 3 + hub]]), cross[None]], [cross[:, None], inner]])
    return mass, np.asarray(scipy.linalg.block_diag(0.0, stiffness))


def bending_frequencies(shapes: Shapes, hub: float) -> Array:
    """Frequencies (n,) [-] of the line on its hub, without the rigid turn."""
    mass, stiffness = on_hub(shapes, hub)
    return np.sqrt(scipy.linalg.eigh(stiffness, mass, eigvals_only=True)[1:])


@cache
def error(end: str, n: int, ratio: float) -> float:
    """Largest relative error of the n lowest frequencies with n shapes of one end."""
    hub = 1 / 3 / ratio
    exact = bending_frequencies(assumed_modes(_EXACT), hub)[:n]
    return float(np.abs(bending_frequencies(ENDS[end](n), hub)[:n] / exact - 1).max())


@cache
def turning_point(n: int) -> float:
    """Inertia ratio of beam and hub from which on n pinned modes err less than n clamped ones."""

    def lead(power: float) -> float:
        return float(np.log(error("clamped", n, 10**power) / error("pinned", n, 10**power)))

    power: Any = brentq(lead, 0.0, 4.0, xtol=1e-3)
    return float(10**power)


def controlled_end() -> Claim:
    """Compare shapes of a clamped, a pinned and a free root over inertias of the hub.

    Source: [HastingsBook86], [BarbieriOzguner88].
    """
    worst = max(error("clamped", n, _HEAVY) for n in (1, 2, 3))
    least = min(error("pinned", n, _HEAVY) for n in (1, 2, 3))
    turns = {n: turning_point(n) for n in (1, 2, 3)}
    return Claim(
        id="section 1.1, clamped and pinned",
        paper="if the beam-to-hub inertia ratio is very small (0.1 or less), the clamped condition "
        "yields better results compared with pinned",
        ours=f"at {_HEAVY:g} 1 to 3 clamped modes have as many frequencies of a line on a free hub "
        f"to {worst:.0e}, pinned ones to {least:.2g} at best, free ones to "
        f"{min(error('free', n, _HEAVY) for n in (1, 2, 3)):.2g}; clamped ones stay the better up "
        f"to a ratio of {turns[1]:.2g} (1 mode), {turns[2]:.3g} (2) and {turns[3]:.3g} (3)",
        verdict=judge(all(_better(n, r) for n in (1, 2, 3) for r in (0.01, 0.03, _HEAVY))),
        why="0.1 is far on the safe side: no pinned mode bends at the root, where any hub bends "
        "the line, so that they come down on the frequencies as 1/n and clamped ones as n^-7",
        numbers={
            "clamped": worst,
            "pinned": least,
            **{f"turn_{n}": ratio for n, ratio in turns.items()},
            **{
                f"{end}_{n}_at_{ratio:g}": error(end, n, ratio)
                for end in ENDS
                for n in (1, 2, 3)
                for ratio in RATIOS
            },
        },
    )


def _better(n: int, ratio: float) -> bool:
    return error("clamped", n, ratio) < error("pinned", n, ratio)


@cache
def frames(n: int, hub: float) -> float:
    """Largest relative difference between n modes of a line on its hub and the same as shapes.

    The modes phi turn with their frame in one description, the pinned one. In the other they are
    seen from the tangent at the root, phi - phi'(0) xi, beside the joint: n + 1 coordinates.
    """
    mass, stiffness = on_hub(assumed_modes(_EXACT), hub)
    squares, modes = scipy.linalg.eigh(stiffness, mass)
    seen = np.zeros((1 + _EXACT, 1 + n))
    seen[0, 0], seen[1:, 1:] = 1.0, modes[1:, 1 : n + 1]
    found = scipy.linalg.eigh(seen.T @ stiffness @ seen, seen.T @ mass @ seen, eigvals_only=True)
    return float(np.abs(found[1:] / squares[1 : n + 1] - 1).max()) / 2


def equivalence() -> Claim:
    """Compare the two frames with the same modes, and with modes of their own.

    Source: [BellezzaLanariUlivi90].
    """
    same = max(frames(n, 1 / 3 / ratio) for n in (1, 2, 3) for ratio in (0.1, 1.0, 100.0))
    pinned = {n: _second("pinned", n) for n in (2, 8, 32)}
    return Claim(
        id="section 1.1, equivalence",
        paper="an interesting equivalence of these two cases is reported by Bellezza et al.",
        ours=f"n exact modes of a line on its hub, seen from the pinned line or beside the joint "
        f"from the tangent at the root, have the same frequencies to {max(same, 1e-16):.0e}; sets "
        f"cut off are not the same: at a ratio of 1 the second frequency is off by "
        f"{_second('clamped', 2):.0e} with 2 clamped modes, with pinned ones by {pinned[2]:.2g} "
        f"(2), {pinned[8]:.2g} (8) and {pinned[32]:.2g} (32)",
        verdict=judge(same < _ROUND_OFF),
        why="they are equivalent as frames, which span the same motions of the same modes, and "
        "in the limit of all modes; with few modes it counts whether these bend at the root",
        numbers={"same": same, **{f"pinned_{n}": off for n, off in pinned.items()}},
    )


@cache
def _second(end: str, n: int) -> float:
    """Relative error of the second frequency with n shapes, hub as inert as the beam."""
    exact = bending_frequencies(assumed_modes(_EXACT), 1 / 3)[1]
    return float(bending_frequencies(ENDS[end](n), 1 / 3)[1] / exact - 1)


@cache
def tube() -> tuple[float, float]:
    """GJ [N m^2] and rho I_p [kg m] of a round aluminium tube with the EI of link 2."""
    EI = arm().links[1].EI["z"]
    return EI / (1 + POISSON), 2 * EI * DENSITY / YOUNG


@cache
def swings(twisting: bool, length: float) -> tuple[float, float]:
    """Lowest frequencies [rad/s] of links 2 and 3 out of their plane, joints held and free.

    `length` of link 3 [m]. The motions are those that the twist of link 2 takes part in.
    """
    GJ, polar = tube()
    twisted = apply_settings(arm(), [f"link2.torsion={{GJ={GJ!r}, polar_inertia={polar!r}}}"])
    plant = assemble_plant(twisted, BasisChoice(order=3), interpreted=True)
    found = linearise(plant, plant.straight(np.array([0.0, 0.0, length])))
    size = np.sqrt(np.diag(found.M))
    coupled = np.abs(found.M / np.outer(size, size)) > _COUPLED
    groups = scipy.sparse.csgraph.connected_components(coupled)[1]
    twists = np.array([name.startswith("link2.twist") for name in plant.coordinates])
    group = groups == groups[np.argmax(twists)]
    joints = np.arange(plant.n) < plant.m
    held = np.flatnonzero(group & ~joints & (twisting | ~twists))
    free = np.flatnonzero(group & (twisting | ~twists))
    turns = int((group & joints).sum())
    return _lowest(found.M, found.K, held, 0), _lowest(found.M, found.K, free, turns)


def _lowest(M: Array, K: Array, rows: Array, rigid: int) -> float:
    """Lowest frequency [rad/s] of some rows but for so many rigid motions."""
    own = np.ix_(rows, rows)
    squares = scipy.linalg.eigh(K[own], M[own], eigvals_only=True)
    return float(np.sqrt(squares[rigid]))


def footnote_1() -> Claim:
    """Let link 2 twist and see what becomes of the frequencies at the end of the motion.

    Arms whose bending is accompanied by torsion are those of [SakawaLuo89].
    """
    length, EI = float(poses()[2, -1]), arm().links[1].EI["z"]
    (held, free), (held_twisting, free_twisting) = swings(False, length), swings(True, length)
    loss = 1 - held_twisting / held, 1 - free_twisting / free
    own = arm().links[1]
    axial = np.pi / 2 * np.sqrt(YOUNG / DENSITY) / own.length
    bending = 1.87510407**2 * np.sqrt(EI / own.mass_per_length) / own.length**2
    return Claim(
        id="footnote 1",
        paper="for most robotic manipulators in general, we can neglect the axial and torsional "
        "vibration components of the links",
        ours=f"axial ones: link 2's first is at {axial:.0f} rad/s, {axial / bending:.0f} times its "
        f"first bending. Torsional ones not: link 3, across link 2, twists it. With the torsional "
        f"stiffness of a round tube of the same EI the first swing out of the plane of both falls "
        f"from {held:.4g} to {held_twisting:.4g} rad/s with joints held ({100 * loss[0]:.0f} %), "
        f"from {free:.4g} to {free_twisting:.4g} with joints free ({100 * loss[1]:.0f} %)",
        verdict=judge(max(loss) < _LITTLE),
        why="a load at link 3's end yields (l^3 + a^3)/3EI by bending and a^2 l/GJ by twist, three "
        "times as much in all where a = l; no section of this EI in both planes is stiffer in "
        f"torsion than the tube, GJ = EI/(1 + {POISSON:g}), as J <= I_p",
        numbers={
            "held": held,
            "held_twisting": held_twisting,
            "free": free,
            "free_twisting": free_twisting,
            "axial": float(axial / bending),
        },
    )
