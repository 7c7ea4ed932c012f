"""Signals that an external law measures, by name, and their values along the reference.

Positions are the joints, the rotors of flexible joints, the tip, the deflections of the ends of the
lines and the curvatures at strain gauges, all of the true arm, and the elastic coordinates of the
design plant, which gauges measure. Names are those of python-control, with _ for every dot; rates
end in _rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import casadi as ca

from flexctl.control.laws import driven_motion, straight_arm
from flexctl.model import Design, Unquoted, nearest, refuse
from flexctl.plant import Plant

Kind = Literal["error", "measured", "desired"]
TIP = ("tip_x", "tip_y", "tip_z")
_RATE = "_rate"


@dataclass(frozen=True, kw_only=True)
class LawInput:
    """An input of a law: a position or its rate, as error, measured or desired value."""

    position: str
    rate: bool = False
    kind: Kind = "error"


def plain_name(name: str) -> str:
    """Name of a signal in python-control, which accepts no dots."""
    return name.replace(".", "_")


def gauge_names(line: str, gauges: tuple[float, ...] | None) -> tuple[str, ...]:
    """Names of the strain gauges of a line, in the order of their positions."""
    return tuple(f"{plain_name(line)}_gauge{k + 1}" for k in range(len(gauges or ())))


def measurable(plant: Plant, gauges: tuple[float, ...] | None) -> tuple[str, ...]:
    """Names of all positions that can be measured, with strain gauges at x/l of every line."""
    names = (*plant.joints, *plant.rotors, *TIP, *plant.lines)
    curvatures = (name for line in plant.lines for name in gauge_names(line, gauges))
    elastic = plant.coordinates[plant.rigid :]
    return tuple(map(plain_name, (*names, *curvatures, *elastic)))


def read_input(name: str, known: tuple[str, ...]) -> LawInput | None:
    """Parse the name of an input such as ``joint1_rate`` or ``desired_joint1``; None if unknown."""
    rest, kind = plain_name(name), "error"
    for prefix in ("measured", "desired"):
        if rest.startswith(f"{prefix}_"):
            rest, kind = rest.removeprefix(f"{prefix}_"), prefix
    rate = rest.endswith(_RATE) and rest not in known
    position = rest.removesuffix(_RATE) if rate else rest
    if position not in known:
        return None
    return LawInput(position=position, rate=rate, kind=kind)  # pyright: ignore[reportArgumentType]


def read_inputs(plant: Plant, design: Design, names: tuple[str, ...]) -> tuple[LawInput, ...]:
    """Read the names of a law's inputs; refuse those that are not signals of the arm."""
    known, inputs = measurable(plant, design.loop.strain_gauges), []
    for k, name in enumerate(names):
        read = read_input(name, known)
        if read is None:
            key, hint = f"state_space.measures[{k + 1}]", nearest(plain_name(name), known)
            expected = f"a signal of {plant.arm.name}, or its {_RATE} ({hint})"
            if "gauge" in name and not design.loop.strain_gauges:
                expected += "; gauges stand at loop.strain_gauges"
            raise refuse(design.label, key, expected=expected, got=Unquoted(name))
        inputs.append(read)
    return tuple(inputs)


def desired_signals(
    plant: Plant, positions: tuple[str, ...], desired: tuple[ca.SX, ca.SX, ca.SX], *, gravity: bool
) -> tuple[ca.SX, ca.SX]:
    """Positions (p, 1) and their rates of the straight arm on its reference q_d, v_d, a_d (m, 1).

    Desired elastic coordinates are zero. With `gravity` rotors lead by the deflection of the
    springs under gravity.
    """
    q_d, v_d, _ = desired
    driven = driven_motion(plant, *desired)[:2] if gravity else (q_d, v_d)
    tip = plant.casadi_functions["tip"](straight_arm(plant, q_d), *plant.free_input)
    tip_rate = ca.jtimes(tip, q_d, v_d)
    known = {name: (q_d[j], v_d[j]) for j, name in enumerate(plant.joints)}
    rotors = zip(plant.rotors, plant.arm.rotors, strict=True)
    known |= {name: (driven[0][j], driven[1][j]) for name, j in rotors}
    known |= {name: (tip[j], tip_rate[j]) for j, name in enumerate(TIP)}
    position, speed = ca.SX.zeros(len(positions)), ca.SX.zeros(len(positions))
    for k, name in enumerate(positions):
        position[k], speed[k] = known.get(name, (0, 0))
    return position, speed
