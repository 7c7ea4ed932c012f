"""Independent errors of a closed loop at a pose: which there are, and what they bear."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop.closed_loop import ClosedLoop
from flexctl.loop.margin.arm_errors import ArmError, add_arm_errors, damping_errors, payload_error
from flexctl.loop.margin.guaranteed import guaranteed_errors
from flexctl.loop.margin.mode_names import name_modes
from flexctl.loop.margin.model_errors import by_link, by_mode, pull_out
from flexctl.loop.margin.record import StructuredAt
from flexctl.loop.uncertainty.deadline import ENDLESS, Deadline
from flexctl.loop.uncertainty.growth import without_fixed_of_all
from flexctl.loop.uncertainty.real_crossings import is_small, stable_interval, unstable_at
from flexctl.loop.uncertainty.structured import structured
from flexctl.loop.uncertainty.uncertain import UncertainLoop
from flexctl.loop.uncertainty.worst_case import WorstCase
from flexctl.plant import linearise

_BEYOND = 1.05  # of the worst case: there it grows visibly
_LEAST_LEFT = -0.999  # a stiffness is positive
_ALIKE = 0.25  # of the time: for errors alone and alike
_OF_THE_ARM = {"payload": payload_error, "damping": damping_errors}
ERRORS = ("modes", "links", "damping", "payload")


def structured_loop(
    closed: ClosedLoop, joints: Array, share: float, errors: Mapping[str, float]
) -> UncertainLoop:
    """Pull independent errors out of a loop at a pose.

    Parameters
    ----------
    closed
        A loop whose controller's stiffness is unknown.
    joints, share
        As in `linearise_loop`.
    errors
        What may be wrong, and by how much [-] an error of 1 is: of the controller's stiffness,
        "modes" by themselves or "links" as a whole, springs always by themselves; of the arm
        beside what the controller knows, "damping" by link, "payload".

    Raises
    ------
    InputError
        When an error is not known, or modes and links are named, or none is; or when the arm has
        nothing that could be wrong in this way.
    """
    check_errors(errors)
    plant = closed.controller.plant
    groups = by_mode(plant, errors["modes"]) if "modes" in errors else ()
    groups = by_link(plant, errors["links"]) if "links" in errors else groups
    found = pull_out(closed, joints, share, groups)
    linear = linearise(closed.truth, closed.truth.straight(joints))
    own: list[ArmError] = []
    for kind, find in _OF_THE_ARM.items():
        if kind in errors:
            there = find(closed.truth, linear, errors[kind])
            if not there:
                raise InputError(f"errors.{kind}: wanted an arm with {kind}, came one without")
            own += there
    return add_arm_errors(found, linear, own) if own else found


def check_errors(errors: Mapping[str, float]) -> None:
    """Refuse errors that are unknown or contradict each other, with what was wanted."""
    unknown = [name for name in errors if name not in ERRORS]
    if unknown or not errors:
        came = ", ".join(unknown) or "none"
        raise InputError(f"errors: wanted some of {', '.join(ERRORS)}, came {came}")
    if "modes" in errors and "links" in errors:
        raise InputError("errors: wanted modes or links, came both, though links hold their modes")
    for name, size in errors.items():
        if not 0 < size < np.inf:
            raise InputError(f"errors.{name}: wanted a size above 0, came {size:g}")


def bound_errors(
    closed: ClosedLoop,
    joints: Array,
    share: float,
    errors: Mapping[str, float],
    *,
    t: float,
    where: str,
    deadline: Deadline = ENDLESS,
    say: Callable[[str], None] = lambda _words: None,
) -> StructuredAt:
    """Bound independent errors of a stable loop from both sides: see `structured`.

    Errors alone and all alike are known exactly, so that the worst case is none larger.
    """
    loop = structured_loop(closed, joints, share, errors)
    known = list(_known(loop, deadline.share(_ALIKE)))
    found = structured(
        loop,
        crossings=[frequency for _, frequency in known],
        known=np.array([delta for delta, _ in known]) if known else None,
        deadline=deadline,
        say=lambda words: say(f"independent errors at {where}: {words}"),
    )
    worst = found.worst_case
    mode = ""
    if worst:
        names = name_modes(closed, joints, loop.size)
        mode = names.name(loop.matrix(worst.delta), worst.eigenvalue)
    return StructuredAt(
        t=t,
        where=where,
        second_loop=bool(share),
        found=found,
        mode=mode,
        guaranteed=guaranteed_errors(found.guaranteed_fraction, errors),
        worst_errors=_own_errors(loop, worst) if worst else {},
    )


def _own_errors(loop: UncertainLoop, worst: WorstCase) -> dict[str, float]:
    """Errors of a worst case, relative to what they are errors of [-]."""
    pairs = zip(loop.parameters, worst.delta.tolist(), strict=True)
    return {parameter.name: parameter.range * delta for parameter, delta in pairs}


def worst_stiffness(worst: WorstCase, errors: Mapping[str, float]) -> dict[str, float]:
    """Relative errors of the stiffness, by part or link, a little beyond a worst case.

    Raises
    ------
    InputError
        When the arm itself is wrong too, which a run does not take.
    """
    size = errors.get("modes", errors.get("links"))
    if size is None or len(errors) > 1:
        wanted, came = "errors of modes or of links alone, to be run", ", ".join(errors)
        raise InputError(f"run: wanted {wanted}, came {came}")
    deltas = zip(worst.names, worst.delta.tolist(), strict=True)
    return {name: max(_BEYOND * delta * size, _LEAST_LEFT) for name, delta in deltas}


def _known(loop: UncertainLoop, deadline: Deadline) -> Iterator[tuple[Array, float]]:
    """Errors (p,) that destabilise a loop and the frequency [rad/s] there, by exact intervals.

    Of each error alone, of those of a kind all alike, and of all of them; what is too large or
    too ill-conditioned for an exact interval is left out.
    """
    if len(loop.parameters) < 2:  # its margin is exact anyway
        return
    loop = without_fixed_of_all(loop)
    for direction in _alike(loop):
        along = loop.along(direction)
        if deadline.passed or not is_small(along):
            continue
        try:
            found = stable_interval(along)
        except (DesignError, ComputationError):
            continue
        for t, end in ((found.lower, found.at_lower), (found.upper, found.at_upper)):
            if t and (end or unstable_at(along, t)):
                yield t * direction, end.frequency if end else 0.0


def _alike(loop: UncertainLoop) -> Iterator[Array]:
    """Directions (p,) that move something: each error alone, a kind as a whole, all of them.

    A kind as a whole is the same relative error of all that it names.
    """
    owned = np.isin(np.arange(len(loop.parameters)), loop.owner)
    ranges = np.array([parameter.range for parameter in loop.parameters])
    kinds = np.array([parameter.kind for parameter in loop.parameters])
    wholes = [(kinds == kind) / ranges for kind in dict.fromkeys(kinds.tolist())]
    seen: set[tuple[float, ...]] = set()
    for direction in (*np.eye(len(ranges)), *wholes, np.ones(len(ranges))):
        moving = direction * owned
        unit = moving / np.abs(moving).max() if moving.any() else moving
        if moving.any() and (key := tuple(unit.tolist())) not in seen:
            seen.add(key)
            yield unit
