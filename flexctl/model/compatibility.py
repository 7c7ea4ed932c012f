"""Whether a design fits an arm: joint counts, and a reference that the joints can reach."""

from collections.abc import Iterator, Sequence
from math import cos, inf, pi

import numpy as np

from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.law import ObserverChoice
from flexctl.model.link import Link
from flexctl.model.record import NOTHING, Faults, Unquoted, shown
from flexctl.model.refusals import nearest, refuse
from flexctl.model.samples import reference_samples

_SAMPLES = 501  # of a motion that is a function
_SLACK = 1e-12  # relative: a reference may end exactly where the beam does


def check_design(arm: Arm, design: Design, reached: Sequence[float] | None = None) -> None:
    """Check a design against an arm, the one that it names or another.

    How far a shaped spin-up goes depends on the arm: only with `reached`, the positions [rad or m]
    at the end of its run, they are checked.

    Raises
    ------
    InputError
        If reference, gains or noise are for another number of joints, if there is no link for
        strain gauges, if a sliding beam would be driven out of (0, total length], or a joint out
        of its limits.
    """
    for key, expected, got in _faults(arm, design, reached):
        raise refuse(design.label, key, expected=expected, got=got)


def _faults(arm: Arm, design: Design, reached: Sequence[float] | None) -> Faults:
    joints = len(arm.links)
    each = f"{joints} number{'s' * (joints != 1)}, one per joint of {arm.name}"
    one_or_each = "one number" + f", or {joints}, one per joint of {arm.name}" * (joints > 1)
    gains = design.gains.model_dump(exclude_none=True) if design.gains else {}
    for key, gain in gains.items():
        if len(gain) not in (1, joints):
            yield f"gains.{key}", one_or_each, gain
    yield from _instrument_faults(arm, design)
    if design.friction_compensation and not arm.has_friction:
        expected = f"no such table, as no joint of {arm.name} has friction"
        yield "friction_compensation", expected, design.friction_compensation.table()
    cascade = design.cascade.model_dump(exclude_none=True) if design.cascade else {}
    for key, gain in cascade.items():
        if isinstance(gain, tuple) and len(gain) not in (1, joints):
            yield f"cascade.{key}", one_or_each, gain
    names = [f"joint{j + 1}" for j in range(joints)]
    for table in ("filters", "position_feedback"):
        for k, one in enumerate(getattr(design, table)):
            if one.joint is not None and one.joint not in names:
                expected = f"a joint of {arm.name} ({', '.join(names)})"
                yield f"{table}[{k + 1}].joint", expected, one.joint
    if design.ideal_instruments or design.instruments:
        if "strain_gauge" in design.ideal_instruments and not any(
            link.flexible for link in arm.links
        ):
            expected = f"no strain_gauge, as no link of {arm.name} bends"
            yield "loop.measures", expected, design.ideal_instruments
        observer = design.observer or ObserverChoice()
        for key in ("encoder", "tachometer", "joint_encoder", "torque"):
            if len(values := getattr(observer.noise, key)) not in (1, joints):
                yield f"observer.noise.{key}", one_or_each, values
        if observer.start_error is not None and len(observer.start_error) != joints:
            yield "observer.start_error", each, observer.start_error
    for key, positions in _positions(design, reached):
        if len(positions) != joints:
            yield key, each, Unquoted(f"{len(positions)} number" + "s" * (len(positions) != 1))
        for i, (link, extremes) in enumerate(zip(arm.links, positions, strict=True)):
            for position in extremes:
                yield from _position_faults(link, f"{key}[{i + 1}]", position, arm)


def _instrument_faults(arm: Arm, design: Design) -> Faults:
    """Yield instruments on no part of the arm."""
    joints = {f"joint{j + 1}": link for j, link in enumerate(arm.links)}
    lines = [f"{link.name}.{plane}" for link in arm.links for plane in link.EI]
    springs = [name for name, link in joints.items() if link.flexible_joint]
    for k, one in enumerate(design.instruments):
        key = f"instruments[{k + 1}]"
        if one.joint is not None and one.joint not in joints:
            expected = f"a joint of {arm.name} ({nearest(one.joint, list(joints))})"
            yield f"{key}.joint", expected, one.joint
        if one.at_line and not lines:
            yield (
                f"{key}.kind",
                f"an instrument of a joint, as no link of {arm.name} bends",
                one.kind,
            )
        if one.line is not None and one.line not in lines:
            yield f"{key}.line", f"a line of {arm.name} ({nearest(one.line, lines)})", one.line
        if one.kind == "torque" and not (one.joint in springs if one.joint else springs):
            lacks = (
                f"{one.joint} of {arm.name} has no"
                if one.joint
                else f"no joint of {arm.name} has a"
            )
            expected = f"a flexible joint, as {lacks} spring whose torque could be read"
            yield f"{key}.joint", expected, one.joint or NOTHING


def _positions(
    design: Design, reached: Sequence[float] | None
) -> Iterator[tuple[str, list[tuple[float, ...]]]]:
    """Yield key and, joint by joint, the positions that bound the motion [rad or m].

    A cycloid or quintic stays between its ends, so that the ends are enough; a spin-up between its
    start and where it is when the run ends.
    """
    reference = design.reference
    if design.reference_file is not None:
        joint = reference_samples(design).joint
        yield "reference.file", [(float(q.min()), float(q.max())) for q in joint]
    if reference.motion is not None:
        joint = reference.motion.sample(np.linspace(0, reference.motion.duration, _SAMPLES))[0]
        yield "reference", [(float(q.min()), float(q.max())) for q in joint]
    for key, positions in (("from", reference.from_), ("to", reference.to)):
        if positions is not None:
            yield f"reference.{key}", [(position,) for position in positions]
    if reference.rate is not None and not (reference.shaper and reached is None):
        yield "reference.rate", [(position,) for position in reached or _reached(design)]


def _reached(design: Design) -> list[float]:
    """Position of each joint [rad or m] at the end of the run of a spin-up, which never stops."""
    reference, positions = design.reference, []
    end = design.loop.duration or max(reference.durations) + 0.5
    motions = zip(reference.from_ or (), reference.rate or (), reference.durations, strict=True)
    for start, rate, T in motions:
        s = min(end / T, 1.0)
        gained = s**2 / 2 + (cos(2 * pi * s) - 1) / (4 * pi**2)
        positions.append(start + rate * (T * gained + max(end - T, 0.0)))
    return positions


def _position_faults(link: Link, key: str, position: float, arm: Arm) -> Faults:
    lowest, highest = link.limits.position or (-inf, inf)
    if not lowest <= position <= highest:
        where = f"limits.position of {link.name} of {arm.name}"
        yield key, f"{lowest:.12g} to {highest:.12g} ({where})", position
    if link.joint == "prismatic" and link.total_length is not None:
        free = position + link.dh.d
        if not 0 < free <= link.total_length * (1 + _SLACK):
            beam = f"within (0, {link.total_length:.12g}] m, the beam of {link.name} of {arm.name}"
            got = shown(position) if link.dh.d == 0 else f"{position:.12g} + {link.dh.d:.12g}"
            yield key, f"a free length (joint + dh.d) {beam}", Unquoted(got)
