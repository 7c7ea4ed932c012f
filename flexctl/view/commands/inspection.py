"""``flexctl inspect``: what an arm is, on its own and in a pose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from rich.console import Group, RenderableType

from flexctl.checks import Array
from flexctl.model import BasisChoice
from flexctl.plant import inspect_arm
from flexctl.view.json.inspection import inspection_json
from flexctl.view.options import InspectOptions
from flexctl.view.output import (
    Result,
    check_targets,
    notes,
    number,
    numbers,
    plain_table,
    shortened,
)
from flexctl.view.provenance import provenance
from flexctl.view.request import design_basis, load_arm, read_pose, warn_of_pose
from flexctl.view.words.numbers import arm_frequencies, basis_words, frequencies_under_gravity

_MOST_MODES = 12  # of which a table shows the frequency


def inspect_model(options: InspectOptions, model: str) -> Result:
    """Find what `flexctl inspect` prints."""
    check_targets(options)
    arm = load_arm(model, options)
    coordinates = read_pose(options.pose)
    inspection = inspect_arm(arm, design_basis(options) or BasisChoice(), coordinates)
    warn_of_pose(arm, coordinates)
    answer = inspection_json(inspection)

    def figure() -> Any:
        from flexctl.view.figures.pages import plot_inspection

        return plot_inspection(inspection, answer)

    return Result(
        answer=answer,
        table=lambda: _table(answer),
        figure=figure,
        provenance=provenance(model),
    )


def _table(answer: Mapping[str, Any]) -> RenderableType:
    """Make tables of an inspection: facts, flexible joints, friction, frequencies, assumptions."""
    title = f"{answer['model']}: {basis_words(answer['basis'])} per link and plane"
    pose = ", ".join(f"{name} = {value:.4g}" for name, value in answer["pose"].items())
    names, inertia = answer["coordinates"], map(numbers, answer["rigid_inertia"])
    rows = [
        ("coordinates", shortened(names), f"{len(names)} in all"),
        ("pose", pose, "rad, m"),
        ("tip", numbers(answer["tip"]), "m"),
        ("mass", f"{answer['mass']:.4g}", "kg"),
        ("inertia seen by joints", next(inertia), "kg m^2, kg m, kg"),
        *(("", row, "") for row in inertia),
        *_rest_rows(answer["at_rest"]),
        ("evaluated by", answer["backend"], ""),
    ]
    facts = plain_table(title, "", "", "", rows=rows)
    facts.show_header = False
    springs = [_springs(answer["flexible_joints"])] if "flexible_joints" in answer else []
    frequencies = [_frequencies(name, list(values)) for name, values in _frequency_rows(answer)]
    table = plain_table("Natural frequencies", "", "rad/s", "Hz", rows=frequencies)
    motors = [_motors(answer["motors"])] if "motors" in answer else []
    friction = [_friction(answer["friction"])] if "friction" in answer else []
    followed = _followed(answer["filter_frequencies"]) if len(answer["actuators"]) > 1 else []
    tables = (facts, *springs, *motors, *friction, table, *followed)
    return Group(*tables, *notes(answer["assumptions"]))


def _followed(frequencies: Mapping[str, Mapping[str, float]]) -> list[RenderableType]:
    """Make the table of frequencies [rad/s] that filters follow, if there are any."""
    modes = list(dict.fromkeys(name for own in frequencies.values() for name in own))
    rows = [
        (mode, *(f"{own[mode]:.5g}" if mode in own else "is held" for own in frequencies.values()))
        for mode in modes[:_MOST_MODES]
    ]
    rows += [("...", *[""] * len(frequencies))] if len(modes) > _MOST_MODES else []
    heads = [name if name != "all" else 'held = "all"' for name in frequencies]
    title = "Filters follow [rad/s], by their joint: its drive free, others held"
    table = plain_table(title, "frequency =", *heads, rows=rows, numeric=range(1, 1 + len(heads)))
    return [table] if rows else []


def _frequencies(name: str, values: list[float]) -> tuple[str, str, str]:
    """Write the first frequencies [rad/s], also in Hz."""
    shown, more = values[:6], "  ..." if len(values) > 6 else ""
    hertz = [value / (2 * np.pi) for value in shown]
    return name, numbers(shown, 5) + more, numbers(hertz) + more


def _springs(joints: Mapping[str, Any]) -> RenderableType:
    """Make the table of the flexible joints."""
    heads = ("rotor I_r", "gear", "J = gear^2 I_r", "stiffness", "damping")
    title = "Flexible joints [kg m^2, N m/rad, N m s/rad; sliding: kg, N/m, N s/m]"
    keys = ("rotor_inertia", "gear", "inertia", "stiffness", "damping")
    rows = []
    for name, data in joints.items():
        carrier = "its own spin and the link before" if data["carried"] else "its own spin"
        rows.append((name, *(number(data[key]) for key in keys), carrier))
    return plain_table(title, "", *heads, "turns with", rows=rows, numeric=range(1, 6))


def _friction(joints: Mapping[str, Any]) -> RenderableType:
    """Make the table of the friction of joints, in units of their sides."""
    heads = ("viscous", "Coulomb", "static", "at", "model")
    title = "Friction, in units of its side [N m s/rad, N m; sliding, at the link: N s/m, N]"
    keys = ("viscous", "coulomb", "static")
    rows = [
        (name, *(number(own[key]) for key in keys), own["side"], own["model"])
        for name, own in joints.items()
    ]
    return plain_table(title, "", *heads, rows=rows, numeric=range(1, 4))


def _motors(joints: Mapping[str, Any]) -> RenderableType:
    """Make the table of the motors."""
    title = "Motors, behind the gear [N m, N m s/rad; sliding: N, N s/m]"
    heads = ("command", "gear", "torque per V, A", "damper of back-EMF", "largest at rest")
    rows = [
        (
            name,
            f"{data['command']} [{data['unit']}]",
            *(number(data[key]) for key in ("gear", "torque_per_command", "damping")),
            "no limit" if data["limit"] is None else number(data["limit"]),
        )
        for name, data in joints.items()
    ]
    return plain_table(title, "", *heads, rows=rows, numeric=range(2, 6))


def _frequency_rows(answer: Mapping[str, Any]) -> list[tuple[str, Array]]:
    """Return label and frequencies [rad/s] of lines alone, the arm, and about its equilibrium."""
    alone = [
        (f"{link} alone, {plane}", values)
        for link, planes in answer["link_frequencies"].items()
        for plane, values in planes.items()
    ]
    return [*alone, *arm_frequencies(answer), *frequencies_under_gravity(answer)]


def _rest_rows(rest: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what a person reads of it: label, value and unit; nothing without gravity."""
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
        rows.append(("holding torque", numbers(rest["holding_torque"]), "N m, N"))
    if rest["load_share"] is not None:
        rows.append(("load over buckling load", f"{100 * rest['load_share']:.3g}", "%"))
    if rest["reason"]:
        rows.append(("under gravity", rest["reason"], ""))
    return rows
