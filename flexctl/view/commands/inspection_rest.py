"""``flexctl inspect``: how an arm rests under gravity, and its frequencies there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from flexctl.errors import ComputationError
from flexctl.plant import LinearPlant, LoadShares, Plant, linearise

Array = NDArray[np.float64]
_RESTS = ("sag", "holding_torque", "frequencies_locked", "frequencies_free")


def at_rest_json(
    plant: Plant, q: Array, weightless: LinearPlant, shares: LoadShares
) -> dict[str, Any]:
    """Describe the equilibrium under gravity with the joints of q (n,) held, where there is one.

    What does not exist is None, and `reason` says why in a line. `weightless` is the linear model
    without gravity, which is that of the equilibrium where there is none.
    """
    asked = {
        "joint": q[: plant.m],
        "gravity": plant.arm.gravity,
        "lines": plant.lines,
        "load_share": shares.largest,
        "load_shares": {"arm": shares.arm, "lateral": shares.lateral},
    }
    try:
        linear = linearise(plant, q) if any(plant.arm.gravity) else weightless
    except ComputationError as error:
        return asked | dict.fromkeys(_RESTS) | {"reason": str(error)}
    free, reason = _free(plant, linear)
    return asked | {
        "sag": plant.deflections(linear.q0)[0],
        "holding_torque": linear.tau0,
        "frequencies_locked": linear.frequencies(np.arange(plant.n) >= plant.rigid),
        "frequencies_free": free,
        "reason": reason,
    }


def _free(plant: Plant, linear: LinearPlant) -> tuple[Array | None, str | None]:
    """Frequencies with joints free and rotors held [rad/s], rigid motions left out; or why none."""
    rows = np.arange(plant.n)
    squares = linear.modes((rows < plant.m) | (rows >= plant.rigid))[0]
    if len(squares) and squares[0] < 0:
        return None, (
            "with its joints free the arm falls from there (growth rate "
            f"{np.sqrt(-squares[0]):.3g} 1/s): no frequencies"
        )
    return np.sqrt(squares[squares > 0]), None


def rest_sentences(answer: Mapping[str, Any], shares: LoadShares) -> list[str]:
    """Say what the figures about the equilibrium assume, and what they neglect."""
    if not any(answer["at_rest"]["gravity"]):
        return []
    about = "under gravity: undamped, about the sagged arm with the joints of the pose held"
    return [
        *([about] if answer["at_rest"]["sag"] is not None else []),
        *(f"in this pose {sentence}" for sentence in shares.missing),
    ]


def rest_rows(rest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what a person reads of it: label, value and unit; nothing without gravity."""
    from flexctl.view.tables import numbers

    if not any(rest["gravity"]):
        return []
    rows = []
    if rest["sag"] is not None:
        twisted = [line.endswith(".twist") for line in rest["lines"]]
        for unit, kind in (("m", False), ("rad", True)):
            shown = [
                f"{line} {numbers([value], 3)}"
                for line, value, twist in zip(rest["lines"], rest["sag"], twisted, strict=True)
                if twist is kind
            ]
            rows += [("sag of link tips, joints held", ", ".join(shown), unit)] if shown else []
        rows.append(("holding torque", numbers(list(rest["holding_torque"])), "N m, N"))
    if rest["load_share"] is not None:
        rows.append(("load over buckling load", f"{100 * rest['load_share']:.3g}", "%"))
    if rest["reason"]:
        rows.append(("under gravity", rest["reason"], ""))
    return rows


def rest_frequencies(rest: Mapping[str, Any]) -> list[tuple[str, Array]]:
    """Return label and frequencies [rad/s] about the equilibrium, where there are any."""
    if not any(rest["gravity"]):
        return []
    labels = {"frequencies_locked": "joints held", "frequencies_free": "joints free"}
    return [
        (f"under gravity, {label}", rest[key])
        for key, label in labels.items()
        if rest[key] is not None
    ]
