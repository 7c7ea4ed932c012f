"""What is said of eigenvalue loci: units, values of the parameter, stability limits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flexctl.loci import AxisCrossing, Branch, EigenvalueLoci, Loci, LocusEvent
from flexctl.loop import in_words
from flexctl.view.words.numbers import basis_words, figure, listed

_STEADY = 1e-9  # |Im| beside |lambda|: below, nothing oscillates
_FEW = 2  # stability limits in a sentence
STILL = 1e-6  # share of itself that an eigenvalue moves by round-off

_INSTANT = (
    "; the time-varying loop is frozen at each instant, so that these eigenvalues alone do not "
    "decide stability"
)
_SAID = {
    "run": f"exact Jacobians on the nonlinear run{_INSTANT}",
    "reference": f"exact Jacobians about the reference as it moves, links straight{_INSTANT}",
    "rest": "frozen at rest at the poses of the reference",
}


def loci_words(record: EigenvalueLoci) -> str:
    """Say for what values the loop is stable, what ends it, what decays last, and what is open."""
    said = " ".join([verdict_words(record), *lost_words(record)])
    return f"{record.design} on {record.model}: {said}"


def verdict_words(record: EigenvalueLoci) -> str:
    """Say for what values the loop is stable, what decays last, and whether all is certain."""
    loci, frozen = record.loci, record.frozen
    families = [loci, *([frozen] if frozen and frozen is not loci else [])]
    unsafe = [event for family in families for event in family.unsafe]
    labels = [_doubt(event, family) for family in families for event in family.unsafe]
    sure = _doubts(labels, unsafe[0].why) if unsafe else _sure(families)
    if all(np.ptp(one.values) <= STILL * one.frequency.max() for one in loci.branches):
        sure = f"No eigenvalue depends on {record.parameter} there."
    slowest = max(loci.branches, key=lambda one: float(one.values.real.max()))
    k = int(slowest.values.real.argmax())
    rate = float(slowest.values.real[k])
    at = f"{record.parameter} = {value_words(float(record.s[k]), record)}"
    state = "Fastest growth" if rate > 0 else "Slowest decay"
    decay = f"{state}: {branch_words(slowest)}, {figure(abs(rate))} 1/s at {at}."
    return f"{stability_words(record)} {decay} {sure}"


def _sure(families: Sequence[Loci]) -> str:
    """Say how all branches were continued, and whether that is proven."""
    if not any(family.unproven for family in families):
        return "All branches were continued unambiguously."
    return (
        "All branches were continued unambiguously by their eigenvectors; --proven (proven=True) "
        "proves that no two were swapped."
    )


def _doubt(event: LocusEvent, family: Loci) -> str:
    labels = dict.fromkeys(family.branches[k].label for k in event.branches)
    return f"{family.parameter} = {event.start:.6g} ({', '.join(labels)})"


def _doubts(events: Sequence[str], why: str) -> str:
    more = f" and {len(events) - 4} more" if len(events) > 4 else ""
    return (
        "Branches could not be continued unambiguously at "
        f"{', '.join(events[:4])}{more}: {why}; all others were."
    )


def assumed_words(record: EigenvalueLoci) -> str:
    """Say what is linearised: along a motion, or over the number that is varied."""
    if record.varied == "time":
        return _SAID[record.motion or "rest"]
    key, pose = record.parameter, "at rest at the final pose, under the second loop if there is one"
    if record.varied == "law":
        return f"{pose}; the controller is designed with each value of {key}"
    if record.varied == "arm and law":
        return (
            f"{pose}; the arm changes, and the controller is redesigned for each value of {key}, "
            "which it knows"
        )
    kept = "the controller stays as designed for the arm of the file"
    return f"{pose}; {kept}, only {key} of the true arm changes"


def subject_words(record: EigenvalueLoci) -> str:
    """Say what is followed over what, and whether the controller changes with it."""
    sampled = ", sampled: rates log(z)/T" if record.sampled else ""
    if record.varied == "time":
        return f"closed-loop eigenvalues along the motion{sampled}"
    law = {
        "true arm": "controller fixed",
        "arm and law": "controller redesigned for each value",
        "law": "a number of the controller",
    }[record.varied]
    return f"closed-loop eigenvalues over {record.parameter}, {law}{sampled}"


def branch_words(branch: Branch) -> str:
    """Name a branch: ``link2's second mode in y (1)``."""
    name = " + ".join(map(in_words, branch.motions))
    return f"{name} ({branch.number})" if branch.number else name


def parameter_words(record: EigenvalueLoci) -> str:
    """Name the parameter with its unit, for the label of an axis."""
    if record.varied == "time":
        return "time [s]"
    if record.scaled:
        return f"{record.parameter} / nominal [-]"
    return f"{record.parameter} [{record.unit}]" if record.unit else record.parameter


def value_words(value: float, record: EigenvalueLoci) -> str:
    """Write a value of the parameter with its unit: ``1.23 kg``, ``0.8 of nominal``."""
    if record.scaled:
        return "nominal" if value == 1 else f"{figure(value, 4)} of nominal"
    unit = "" if record.unit == "-" else record.unit
    return f"{figure(value, 4)} {unit}".strip()


def design_words(record: EigenvalueLoci) -> str:
    """Name the design value: ``design: 1.25 kg``, of factors ``design: nominal``; "" of none."""
    value = record.design_value
    return "" if value is None else f"design: {value_words(value, record)}"


def basis_of(record: EigenvalueLoci) -> str:
    """Name the discretisation: that of the arm, and that of the law if it is another."""
    arm, law = (basis_words(one.described()) for one in (record.truth, record.basis))
    return arm if arm == law else f"{arm}, law on {law}"


def limit_name(crossing: AxisCrossing, loci: Loci) -> str:
    """Name what is lost at a stability limit: ``flutter of joint1 at 12.3 rad/s``."""
    name = branch_words(loci.branches[crossing.branch])
    omega = abs(crossing.value.imag)
    if omega <= _STEADY * loci.branches[crossing.branch].frequency.max():
        return f"divergence of {name}"
    return f"flutter of {name} at {figure(omega, 4)} rad/s"


def stability_words(record: EigenvalueLoci) -> str:
    """Say in a sentence over which range of the parameter the loop is stable, and what ends it."""
    name, limits = record.parameter, record.stability_limits
    along = record.varied == "time"
    frozen = "Frozen at each instant, the loop is " if along else ""
    everywhere = "all along the motion" if along else f"for all values of {name} in the range"
    if not record.stable:
        said = f"unstable {everywhere}."
    elif not limits:
        said = f"stable {everywhere}."
    else:
        ranges = [_range(low, high, record) for low, high in record.stable]
        ends = [
            f"at {value_words(one.s, record)}, {limit_name(one, record.loci)}" for one in limits
        ]
        said = f"stable for {name} {listed(ranges)}"
        said += f"; {listed(ends)}." if len(limits) <= _FEW else "."
    said = f"{frozen}{said}"
    return said[0].upper() + said[1:]


def least_damped_words(record: EigenvalueLoci) -> str:
    """Name the dominant pair with the least damping ratio, and where it has it."""
    branches = [record.branches[k] for k in record.dominant]
    pairs = [one for one in branches if (one.values.imag > _STEADY * one.frequency).any()]
    if not pairs:
        return "No dominant branch oscillates."
    branch = min(pairs, key=lambda one: float(one.damping.min()))
    k = int(branch.damping.argmin())
    return (
        f"Least damped dominant branch: {branch_words(branch)}, {100 * branch.damping[k]:.3g} % at "
        f"{figure(float(branch.frequency[k]))} rad/s ({value_words(float(record.s[k]), record)})."
    )


def _range(low: float, high: float, record: EigenvalueLoci) -> str:
    first, last = low <= record.s[0], high >= record.s[-1]
    if first and not last:
        return f"below {value_words(high, record)}"
    if last and not first:
        return f"above {value_words(low, record)}"
    return f"from {value_words(low, record)} to {value_words(high, record)}"


def lost_words(record: EigenvalueLoci) -> list[str]:
    """Say where there is no equilibrium to follow; nothing where there is one all along."""
    above, below = record.no_rest_above, record.no_rest_below
    if record.varied == "time" and above is not None:
        return [
            f"Warning: from t = {above:.4g} s of the motion on the loop has no equilibrium at its "
            "reference: the arm leaves it, and eigenvalues are followed only up to there."
        ]
    return [
        f"Warning: {side} {record.parameter} = {value_words(edge, record)} the loop has no "
        "equilibrium at its reference: the arm leaves it, and eigenvalues are followed only up to "
        "there."
        for edge, side in ((above, "above"), (below, "below"))
        if edge is not None
    ]
