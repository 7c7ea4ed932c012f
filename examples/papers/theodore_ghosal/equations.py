"""Sections 4.4 to 6 of [TG95]: number of equations, and what simulation and control cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from examples.papers.claim import Claim, judge
from examples.papers.theodore_ghosal.arm import STIFF, choice, design, held_squares
from examples.papers.theodore_ghosal.writings import Kind, bare_arm, shaped
from flexctl.control import design_controller
from flexctl.model.lookup import load_model
from flexctl.model.record import BasisChoice
from flexctl.plant.assembly import tip_load
from flexctl.plant.operations import count_operations
from flexctl.plant.plant import assemble_plant

CPU = {"modes": 1533.34, "elements": 2036.89}  # s, section 5
_ORDERS = (1, 2, 3)
_KINDS: tuple[Kind, ...] = ("elements", "modes")


def _coordinates(name: str, kind: Kind, order: int) -> int:
    bodies = shaped(bare_arm(name), kind, order)
    return len(bodies) + sum(len(body.coordinates) for body in bodies)


def equations() -> Claim:
    """Count the coordinates of the planar and of the spatial arm over the order."""
    per_line: dict[Kind, int] = {"modes": 1, "elements": 2}
    off = [
        _coordinates(name, kind, order) - (joints + 2 * planes * count * order)
        for name, joints, planes in (("rr", 2, 1), ("rrp", 3, 2))
        for kind, count in per_line.items()
        for order in _ORDERS
    ]
    return Claim(
        id="section 4.4, equations",
        paper="m elements per flexible link give 4 m n_f + n second-order equations in space, "
        "2 m n_f + n in the plane; m modes 2 m n_f + n and m n_f + n",
        ours="as many coordinates, RR in the plane and RRP in space, m = 1 to 3: RRP has "
        f"{_coordinates('rrp', 'elements', 2)} with two elements and "
        f"{_coordinates('rrp', 'modes', 2)} with two modes",
        verdict=judge(not any(off)),
        why="an element adds a node with deflection and slope, a mode one amplitude",
        numbers={"off": float(np.abs(off).max())},
    )


def frequency_equations() -> Claim:
    """Count the frequency equations that differ, and what exact sliding modes add to the state."""
    arm = load_model("theodore-ghosal-rrp")
    loads = {
        (j, tip_load(arm, j, direction))
        for j, link in enumerate(arm.links)
        for direction in link.EI
    }
    fixed, exact = (
        assemble_plant(arm, BasisChoice(order=2, sliding=sliding), interpreted=True).n
        for sliding in ("fixed", "exact")
    )
    return Claim(
        id="section 4.4, frequency equations",
        paper="modes need 2 n_f transcendental frequency equations in space besides, or "
        "2 m n_f first-order differential equations by the method of section 4.2",
        ours=f"RRP has {len(loads)} that differ, as a point mass loads both planes of link 3 "
        f"alike; its modes of every length, from a table made beforehand, take {exact} "
        f"coordinates, those of one length {fixed}",
        verdict=judge(exact > fixed),
        why="the roots are functions of the length alone: to carry them along as states is "
        "possible, not needed, and they drift (section 4.2)",
        numbers={"equations": float(len(loads)), "further": float(exact - fixed)},
    )


def first_order() -> Claim:
    """Count first-order equations with and without those of the frequencies."""
    m, lines = 2, 4
    elements, modes = (2 * _coordinates("rrp", kind, m) for kind in _KINDS)
    return Claim(
        id="section 4.4, first-order equations",
        paper="elements have 2 m n_f first-order equations more than modes",
        ours=f"RRP, m = 2: {elements} against {modes}, or {modes + m * lines} with those of the "
        f"frequencies: {elements - modes - m * lines} more with these, {elements - modes} without",
        verdict=judge(elements - modes - m * lines == m * lines),
        why="it counts the differential equations of the frequencies among those of modes; without "
        "them it is 4 m n_f",
        numbers={"more": float(elements - modes - m * lines), "without": float(elements - modes)},
    )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Coordinates; highest frequency [rad/s]; multiplications of forward dynamics and law."""

    n: int
    frequency: float
    forward: int
    law: int

    @property
    def explicit(self) -> float:
        """Multiplications per second of motion times the constant of an explicit method."""
        return self.frequency * (self.forward + self.law)


@cache
def costs(kind: Kind, order: int) -> Cost:
    """Find what the paper's RRP arm under its law takes, its joints held for the frequency."""
    arm = load_model("theodore-ghosal-rrp")
    basis = choice(kind, order)
    plant = assemble_plant(arm, basis, interpreted=True)
    law = design_controller(arm, design(STIFF), basis, interpreted=True).law
    return Cost(
        n=plant.n,
        frequency=float(np.sqrt(held_squares(plant).max())),
        forward=count_operations(plant.casadi_functions["forward_dynamics"]).mul,
        law=count_operations(law).mul,
    )


def simulation() -> Claim:
    """Compare what an explicit integrator pays for modes and for elements."""
    modes, elements, finer = costs("modes", 2), costs("elements", 2), costs("modes", 4)
    frequency, ratio = elements.frequency / modes.frequency, elements.explicit / modes.explicit
    equal = elements.explicit / finer.explicit
    return Claim(
        id="sections 4.4 and 5, simulation time",
        paper="a simulation takes longer with elements, as there are more equations: "
        f"{CPU['elements']:g} s against {CPU['modes']:g} s, {CPU['elements'] / CPU['modes']:.2f} "
        "times",
        ours=f"two elements to two modes of RRP: {frequency:.3g} times the highest frequency along "
        f"the motion ({elements.frequency:.3g} rad/s) and "
        f"{(elements.forward + elements.law) / (modes.forward + modes.law):.3g} times the "
        f"multiplications, so {ratio:.3g} times the work where stability sets an explicit "
        f"method's step, not {CPU['elements'] / CPU['modes']:.2f} times; {equal:.2g} times that "
        "of four modes, which have as many equations",
        verdict=judge(ratio > 1 and equal > 1),
        why="not for the number of equations but for their frequencies: two elements have four per "
        "line, and the upper ones are no mode's. What is paid where accuracy sets the step are the "
        "multiplications alone. Times of both at equal accuracy, in one run: findings.md, by "
        "benchmarks/discretisations.py",
        numbers={
            "frequency": frequency,
            "work": ratio,
            "equal": equal,
            "modes": float(modes.n),
            "elements": float(elements.n),
            "finer": float(finer.n),
        },
    )


def real_time() -> Claim:
    """Count the decoupling law with modes and with elements."""
    modes, elements = costs("modes", 2), costs("elements", 2)
    return Claim(
        id="sections 4.4 and 6, real time",
        paper="elements are more suitable for real-time control, as the model takes significantly "
        "fewer operations",
        ours=f"the decoupling law of RRP, with its payload, takes {elements.law} multiplications "
        f"with two elements per link, {modes.law} with two modes, "
        f"{elements.law / modes.law:.2f} times as many; "
        f"forward dynamics {elements.forward} and {modes.forward}",
        verdict=judge(elements.law < modes.law),
        why="a law needs M, its forces and a solution for as many accelerations as there are "
        "coordinates, of which elements have 19 and modes 11; table 2 counts M alone, written out",
        numbers={"law": elements.law / modes.law, "forward": elements.forward / modes.forward},
    )


CLAIMS: tuple[Callable[[], Claim], ...] = (
    equations,
    frequency_equations,
    first_order,
    simulation,
    real_time,
)
