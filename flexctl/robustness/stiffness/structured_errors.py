"""Independent errors of a closed loop at a pose: which there are, and what they tolerate."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, linearise_loop, name_modes
from flexctl.robustness.lft import (
    ENDLESS,
    LARGEST,
    Deadline,
    ErrorGroup,
    MuBounds,
    UncertainLoop,
    WorstCase,
    find_mu_bounds,
)
from flexctl.robustness.stiffness.arm_errors import (
    ArmError,
    add_arm_errors,
    damping_errors,
    payload_error,
)
from flexctl.robustness.stiffness.interval import guaranteed_errors
from flexctl.robustness.stiffness.model_errors import by_link, by_mode, pull_out
from flexctl.robustness.stiffness.moved_errors import IndependentErrors, follow_errors
from flexctl.robustness.stiffness.record import IndependentErrorsAt

_BEYOND = 1.05  # of the worst case: there it grows visibly
_NOT_BOUNDED = MuBounds(
    guaranteed_fraction=LARGEST,
    mu_peak=1 / LARGEST,
    frequency=np.inf,
    proven=False,
    not_proven=(),
    worst_case=None,
    grid=np.zeros(0),
    mu=np.zeros(0),
    cover=None,
    notes=("One real error: the guaranteed fraction is where the loop is lost.",),
)
_BEFORE = 0.5  # of the time: for bounds at one equilibrium, where it is followed after them
_LEAST_LEFT = -0.999  # a stiffness is positive
_OF_THE_ARM = {"payload": payload_error, "damping": damping_errors}
ERRORS = ("modes", "links", "damping", "payload")


def structured_loop(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, errors: Mapping[str, float]
) -> UncertainLoop:
    """Pull independent errors out of a loop at a pose.

    Parameters
    ----------
    closed
        A loop whose controller's stiffness is unknown.
    joints, second_loop_weight
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
    uncertain = pull_out(closed, joints, second_loop_weight, _groups(closed, errors))
    linear = linearise_loop(closed, joints, second_loop_weight).plant
    own: list[ArmError] = []
    for kind, find in _OF_THE_ARM.items():
        if kind in errors:
            there = find(closed.truth, linear, errors[kind])
            if not there:
                raise InputError(
                    f"{closed.truth.arm.label}: errors.{kind}: expected an arm with {kind}, got "
                    "one without"
                )
            own += there
    return add_arm_errors(uncertain, linear, own) if own else uncertain


def _groups(closed: ClosedLoop, errors: Mapping[str, float]) -> tuple[ErrorGroup, ...]:
    """Parts of the stiffness that are wrong by themselves."""
    plant = closed.controller.plant
    groups = by_mode(plant, errors["modes"]) if "modes" in errors else ()
    return by_link(plant, errors["links"]) if "links" in errors else groups


def check_errors(errors: Mapping[str, float]) -> None:
    """Refuse errors that are unknown or contradict each other, with what was expected."""
    unknown = [name for name in errors if name not in ERRORS]
    if unknown or not errors:
        got = ", ".join(unknown) or "none"
        raise InputError(f"errors: expected some of {', '.join(ERRORS)}, got {got}")
    if "modes" in errors and "links" in errors:
        raise InputError("errors: expected modes or links, got both, though links hold their modes")
    for name, size in errors.items():
        if not 0 < size < np.inf:
            raise InputError(f"errors.{name}: expected a size above 0, got {size:g}")


def bound_errors(
    closed: ClosedLoop,
    joints: Array,
    second_loop_weight: float,
    errors: Mapping[str, float],
    *,
    t: float,
    where: str,
    deadline: Deadline = ENDLESS,
    reach: float = np.inf,
    say: Callable[[str], None] = lambda _words: None,
) -> IndependentErrorsAt:
    """Bound independent errors of a stable loop from both sides: see `find_mu_bounds`.

    Errors that move the equilibrium are followed up to `reach` times their sizes [-].
    """
    loop = structured_loop(closed, joints, second_loop_weight, errors)
    independent = IndependentErrors(
        closed=closed,
        joints=joints,
        second_loop_weight=second_loop_weight,
        loop=loop,
        groups=_groups(closed, errors),
    )
    moves, loss = independent.moves(), None
    bounds = (
        _NOT_BOUNDED  # one error is followed all the way: bounds at the old equilibrium add nothing
        if moves and len(loop.parameters) == 1
        else find_mu_bounds(
            loop,
            prove=not moves,  # of the equilibrium that they move nothing needs a proof
            deadline=deadline.part(_BEFORE) if moves else deadline,
            say=lambda words: say(f"independent errors at {where}: {words}"),
        )
    )
    if moves:
        say(f"independent errors at {where}: the equilibrium that they move")
        bounds, loss = follow_errors(independent, bounds, deadline, reach)
    worst = bounds.worst_case
    return IndependentErrorsAt(
        t=t,
        where=where,
        second_loop=bool(second_loop_weight),
        bounds=bounds,
        mode=loss.mode if loss else _mode(closed, joints, loop, worst),
        ends=loss.ends if loss else "",
        guaranteed=guaranteed_errors(bounds.guaranteed_fraction, errors),
        worst_errors=_own_errors(loop, worst) if worst else {},
    )


def _mode(closed: ClosedLoop, joints: Array, loop: UncertainLoop, worst: WorstCase | None) -> str:
    """Motion with the largest part in what a worst case loses."""
    if worst is None:
        return ""
    names = name_modes(closed, joints, loop.size)
    return names.name(loop.matrix(worst.delta), worst.eigenvalue)


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
        expected, got = "errors of modes or of links alone, to be run", ", ".join(errors)
        raise InputError(f"run: expected {expected}, got {got}")
    deltas = zip(worst.names, worst.delta.tolist(), strict=True)
    return {name: max(_BEYOND * delta * size, _LEAST_LEFT) for name, delta in deltas}
