"""Independent errors of a closed loop at one pose: their form, and bounds of what is tolerated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from flexctl import checks
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

_BEYOND = 1.05  # of the worst case: there the mode grows visibly
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
    notes=("One real error: the guaranteed fraction is where stability or the equilibrium ends.",),
)
_BOUNDS_TIME = 0.5  # of the time left, for bounds before the equilibrium is followed
_LOWEST = -0.999  # relative error of a stiffness, which must stay positive
_OF_THE_ARM = {"payload": payload_error, "damping": damping_errors}
ERRORS = ("modes", "links", "damping", "payload")


def structured_loop(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, errors: Mapping[str, float]
) -> UncertainLoop:
    """Pull independent errors out of a loop at a pose.

    Parameters
    ----------
    closed
        A loop whose controller has the errors of its stiffness as inputs.
    joints, second_loop_weight
        As in `linearise_loop`.
    errors
        Kinds of errors, and the relative error [-] at delta = 1 of each. Of the controller's
        stiffness: "modes", each mode and spring, or "links", each link as a whole and each spring.
        Of the arm, unknown to the controller: "damping", each link and spring, and "payload".

    Raises
    ------
    InputError
        When a kind is unknown, modes and links are both named, no kind is named, or the arm has no
        such damping or payload.
    """
    check_errors(errors)
    uncertain = pull_out(closed, joints, second_loop_weight, _groups(closed, errors))
    linear = linearise_loop(closed, joints, second_loop_weight).plant
    own: list[ArmError] = []
    for kind, find in _OF_THE_ARM.items():
        if kind in errors:
            of_kind = find(closed.truth, linear, errors[kind])
            if not of_kind:
                raise InputError(
                    f"{closed.truth.arm.label}: errors.{kind}: expected an arm with {kind}, got "
                    "one without"
                )
            own += of_kind
    return add_arm_errors(uncertain, linear, own) if own else uncertain


def _groups(closed: ClosedLoop, errors: Mapping[str, float]) -> tuple[ErrorGroup, ...]:
    """Parts of the stiffness that have independent errors."""
    plant = closed.controller.plant
    groups = by_mode(plant, errors["modes"]) if "modes" in errors else ()
    return by_link(plant, errors["links"]) if "links" in errors else groups


def check_errors(errors: Mapping[str, float]) -> None:
    """Refuse unknown kinds of errors, no kind, modes together with links, and sizes not above 0."""
    checks.kind("errors", errors, Mapping)
    unknown = [name for name in errors if name not in ERRORS]
    if unknown or not errors:
        got = ", ".join(unknown) or "none"
        raise InputError(f"errors: expected some of {', '.join(ERRORS)}, got {got}")
    if "modes" in errors and "links" in errors:
        raise InputError(
            "errors: expected modes or links, got both, though links include their modes"
        )
    for name, size in errors.items():
        if not 0 < checks.number(f"errors.{name}", size) < np.inf:
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
    """Bound the independent errors that a stable loop tolerates: see `find_mu_bounds`.

    Where errors move the equilibrium, the loop is followed there, for errors up to `reach` times
    their sizes [-].
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
        _NOT_BOUNDED  # a single error is followed to its limit, without bounds
        if moves and len(loop.parameters) == 1
        else find_mu_bounds(
            loop,
            prove=not moves,  # no proof at an equilibrium that the errors move
            deadline=deadline.part(_BOUNDS_TIME) if moves else deadline,
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
    """Name of the mode that becomes unstable in a worst case; empty without one."""
    if worst is None:
        return ""
    names = name_modes(closed, joints, loop.size)
    return names.name(loop.matrix(worst.delta), worst.eigenvalue)


def _own_errors(loop: UncertainLoop, worst: WorstCase) -> dict[str, float]:
    """Relative errors of the physical quantities in a worst case [-]."""
    pairs = zip(loop.parameters, worst.delta.tolist(), strict=True)
    return {parameter.name: parameter.range * delta for parameter, delta in pairs}


def worst_stiffness(worst: WorstCase, errors: Mapping[str, float]) -> dict[str, float]:
    """Relative errors of the stiffness, by part or link, slightly beyond a worst case.

    Raises
    ------
    InputError
        When there are other kinds of errors, of the arm, which a run does not support.
    """
    size = errors.get("modes", errors.get("links"))
    if size is None or len(errors) > 1:
        expected, got = "errors of modes or of links alone", ", ".join(errors)
        raise InputError(f"run: expected {expected}, got {got}")
    deltas = zip(worst.names, worst.delta.tolist(), strict=True)
    return {name: max(_BEYOND * delta * size, _LOWEST) for name, delta in deltas}
