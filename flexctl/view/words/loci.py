"""What is said of eigenvalue loci: units, values of the parameter, stability limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flexctl.loci import AxisCrossing, EigenvalueLoci, Variation
from flexctl.loop import in_words
from flexctl.view.words.limits import figure
from flexctl.view.words.numbers import listed

_STEADY = 1e-9  # |Im| beside |lambda|: below, nothing oscillates
_FEW = 2  # stability limits in a sentence

_INSTANT = (
    "; the time-varying loop is frozen at each instant, so that these eigenvalues alone do not "
    "decide stability"
)
_SAID = {
    "run": f"exact Jacobians on the nonlinear run{_INSTANT}",
    "reference": f"exact Jacobians about the reference as it moves, links straight{_INSTANT}",
    "rest": "frozen at rest at the poses of the reference",
}


def assumed_words(how: str | None, varied: Variation | None) -> str:
    """Say what is linearised: along a motion taken as `how`, or over the number that is varied."""
    if varied is None:
        return _SAID[how or "rest"]
    pose = "at rest at the final pose, under the second loop if there is one"
    if varied.of_design:
        return f"{pose}; the law is made anew for every {varied.key}"
    if varied.redesign:
        return f"{pose}; arm and law are made anew for every {varied.key}: the law knows it"
    kept = "the law is that of the arm as in the file"
    return f"{pose}; {kept}, only the true arm's {varied.key} changes"


def parameter_words(answer: Mapping[str, Any]) -> str:
    """Name the parameter with its unit, for the label of an axis."""
    if answer["parameter"] == "t":
        return "time [s]"
    if answer["scaled"]:
        return f"{answer['parameter']} / nominal [-]"
    unit = answer["unit"]
    return f"{answer['parameter']} [{unit}]" if unit else str(answer["parameter"])


def value_words(value: float, answer: Mapping[str, Any]) -> str:
    """Write a value of the parameter with its unit: ``1.23 kg``, ``0.8 of nominal``."""
    if answer["scaled"]:
        return "nominal" if value == 1 else f"{figure(value, 4)} of nominal"
    unit = "" if answer["unit"] == "-" else answer["unit"]
    return f"{figure(value, 4)} {unit}".strip()


def limit_name(crossing: AxisCrossing, loci: EigenvalueLoci) -> str:
    """Name what is lost at a stability limit: ``flutter of joint1 at 12.3 rad/s``."""
    name = in_words(loci.branches[crossing.branch].label)
    omega = abs(crossing.value.imag)
    if omega <= _STEADY * loci.branches[crossing.branch].frequency.max():
        return f"divergence of {name}"
    return f"flutter of {name} at {figure(omega, 4)} rad/s"


def stability_words(loci: EigenvalueLoci, answer: Mapping[str, Any]) -> str:
    """Say in a sentence over which range of the parameter the loop is stable, and what ends it."""
    name = "t" if loci.parameter == "t" else loci.parameter
    frozen = "Frozen at each instant, " if loci.parameter == "t" else ""
    if not loci.stable:
        said = f"unstable for every {name} followed."
    elif not any(one.whole for one in loci.crossings):
        said = f"stable for every {name} followed."
    else:
        ranges = [_range(low, high, loci, answer) for low, high in loci.stable]
        ends = [one for one in loci.crossings if one.whole]
        limits = [f"at {value_words(one.s, answer)} {limit_name(one, loci)}" for one in ends]
        said = f"stable for {name} {listed(ranges)}"
        said += f"; {listed(limits)}." if len(ends) <= _FEW else "."
    said = f"{frozen}{said}"
    return said[0].upper() + said[1:]


def least_damped_words(loci: EigenvalueLoci, answer: Mapping[str, Any]) -> str:
    """Name the pair with the least damping ratio of all, and where it has it."""
    pairs = [one for one in loci.branches if (one.values.imag > _STEADY * one.frequency).any()]
    if not pairs:
        return "No eigenvalue oscillates."
    branch = min(pairs, key=lambda one: float(one.damping.min()))
    k = int(branch.damping.argmin())
    return (
        f"Least damped: {in_words(branch.label)}, {100 * branch.damping[k]:.3g} % at "
        f"{figure(float(branch.frequency[k]))} rad/s ({value_words(float(loci.s[k]), answer)})."
    )


def _range(low: float, high: float, loci: EigenvalueLoci, answer: Mapping[str, Any]) -> str:
    first, last = low <= loci.s[0], high >= loci.s[-1]
    if first and not last:
        return f"below {value_words(high, answer)}"
    if last and not first:
        return f"above {value_words(low, answer)}"
    return f"from {value_words(low, answer)} to {value_words(high, answer)}"


def lost_words(answer: Mapping[str, Any]) -> list[str]:
    """Say from where on there is no equilibrium to follow; nothing where there is one all along."""
    above, below = answer["no_rest_from"], answer["no_rest_below"]
    if answer["parameter"] == "t" and above is not None:
        return [
            f"Warning: from t = {above:.4g} s of the motion on the loop has no equilibrium at its "
            "reference: the arm leaves it, and eigenvalues are followed only up to there."
        ]
    sides = [(above, "above"), (below, "below")]
    return [
        f"Warning: {side} {answer['parameter']} = {value_words(edge, answer)} the loop has no "
        "equilibrium at its reference: the arm leaves it, and eigenvalues are followed only up to "
        "there."
        for edge, side in sides
        if edge is not None
    ]
