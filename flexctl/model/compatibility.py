"""Whether a design fits an arm: joint counts, and a reference that the joints can reach."""

from collections.abc import Iterator
from math import cos, inf, pi

import numpy as np

from flexctl.model.arm import Arm
from flexctl.model.design import Design
from flexctl.model.link import Link
from flexctl.model.observer import ObserverChoice
from flexctl.model.record import Unquoted, shown
from flexctl.model.refusals import refuse
from flexctl.model.samples import load_samples

_SAMPLES = 501  # of a motion that is a function
_SLACK = 1e-12  # relative: a reference may end exactly where the beam does


def check_design(arm: Arm, design: Design) -> None:
    """Check a design against an arm, the one that it names or another.

    Raises
    ------
    InputError
        If reference, gains or noise are for another number of joints, if there is no link for
        strain gauges, if a sliding beam would be driven out of (0, total length], or a joint out
        of its limits.
    """
    _check_gains(arm, design)
    _check_instruments(arm, design)
    joints = len(arm.links)
    for key, values in _positions(design):
        if len(values) != joints:
            expected = f"{joints} number{'s' * (joints != 1)}, one per joint of {arm.name}"
            raise refuse(design.label, key, expected=expected, got=_counted(values))
        for i, (link, extremes) in enumerate(zip(arm.links, values, strict=True)):
            for position in extremes:
                _check_position(link, f"{key}[{i + 1}]", position, arm, design)


def _check_gains(arm: Arm, design: Design) -> None:
    if design.gains is None:
        return
    joints = len(arm.links)
    gains = {"Gp": design.gains.Gp, "Gv": design.gains.Gv, "Gi": design.gains.Gi}
    for key, gain in gains.items():
        if gain is not None and len(gain) not in (1, joints):
            expected = f"one number, or {joints}, one per joint of {arm.name}"
            raise refuse(design.label, f"gains.{key}", expected=expected, got=gain)


def _check_instruments(arm: Arm, design: Design) -> None:
    if not design.instruments:
        return
    joints = len(arm.links)
    if "strain_gauge" in design.instruments and not any(link.flexible for link in arm.links):
        expected = f"no strain_gauge, as no link of {arm.name} bends"
        raise refuse(design.label, "loop.measures", expected=expected, got=design.instruments)
    observer = design.observer or ObserverChoice()
    noise, error = observer.noise, observer.start_error
    for name in ("encoder", "tachometer", "joint_encoder", "torque"):
        values = getattr(noise, name)
        if len(values) not in (1, joints):
            expected = f"one number, or {joints}, one per joint of {arm.name}"
            raise refuse(design.label, f"observer.noise.{name}", expected=expected, got=values)
    if error is not None and len(error) != joints:
        expected = f"{joints} number{'s' * (joints != 1)}, one per joint of {arm.name}"
        raise refuse(design.label, "observer.start_error", expected=expected, got=error)


def _positions(design: Design) -> Iterator[tuple[str, list[tuple[float, ...]]]]:
    """Yield key and, joint by joint, the positions that bound the motion [rad or m].

    A cycloid or quintic stays between its ends, so that the ends are enough; a spin-up between its
    start and where it is when the run ends.
    """
    reference = design.reference
    if design.reference_file is not None:
        joint = load_samples(design.reference_file).joint
        yield "reference.file", [(float(q.min()), float(q.max())) for q in joint]
    if reference.motion is not None:
        joint = reference.motion.sample(np.linspace(0, reference.motion.duration, _SAMPLES))[0]
        yield "reference", [(float(q.min()), float(q.max())) for q in joint]
    for key, positions in (("from", reference.from_), ("to", reference.to)):
        if positions is not None:
            yield f"reference.{key}", [(position,) for position in positions]
    if reference.rate is not None:
        yield "reference.rate", [(position,) for position in _reached(design)]


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


def _check_position(link: Link, key: str, position: float, arm: Arm, design: Design) -> None:
    lowest, highest = link.limits.position or (-inf, inf)
    if not lowest <= position <= highest:
        expected = f"{lowest:.12g} to {highest:.12g} (limits.position of {link.name} of {arm.name})"
        raise refuse(design.label, key, expected=expected, got=position)
    if link.joint == "prismatic" and link.total_length is not None:
        free = position + link.dh.d
        if not 0 < free <= link.total_length * (1 + _SLACK):
            beam = f"within (0, {link.total_length:.12g}] m, the beam of {link.name} of {arm.name}"
            expected = f"a free length (joint + dh.d) {beam}"
            got = shown(position) if link.dh.d == 0 else f"{position:.12g} + {link.dh.d:.12g}"
            raise refuse(design.label, key, expected=expected, got=Unquoted(got))


def _counted(values: list[tuple[float, ...]]) -> Unquoted:
    return Unquoted(f"{len(values)} number" + "s" * (len(values) != 1))
