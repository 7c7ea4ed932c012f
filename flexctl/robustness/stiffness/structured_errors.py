"""Independent errors of a closed loop at one pose: their form, and bounds of what is tolerated.

Bounds of independent errors hold for the loop at the equilibrium without errors. Where the errors
move it, under gravity without integral action, they are no proof, and neither are those of an
approximate form of a sampled loop, or of the main channels of one that has too many for bounds in a
reasonable time. The loop is then followed, along its equilibria, for single errors, equal errors,
corners of the box and the worst case, and a nearer loss of stability replaces the bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from flexctl import checks
from flexctl.checks import Array
from flexctl.errors import InputError
from flexctl.loop import ClosedLoop, LinearLoop, linearise_loop, name_modes
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness.lft import (
    ENDLESS,
    LARGEST,
    Deadline,
    ErrorGroup,
    MuBounds,
    UncertainLoop,
    WorstCase,
    cost_of_scalings,
    find_mu_bounds,
    in_main_channels,
)
from flexctl.robustness.stiffness.arm_errors import ArmError, damping_errors, payload_error
from flexctl.robustness.stiffness.followed_equilibria import FARTHEST, ErrorFamily
from flexctl.robustness.stiffness.model_errors import by_link, by_mode, pull_out
from flexctl.robustness.stiffness.record import (
    IndependentErrorsAt,
    StabilityLimit,
    guaranteed_errors,
)

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
_HOPELESS = 30_000  # cost of scalings: a step of their search then takes as long as all may
_BOUNDS_TIME = 0.5  # of the time left, for bounds before the equilibrium is followed
_ALL_CORNERS = 4  # largest number of errors for which all corners of the box are tried
_RANDOM_CORNERS = 16  # tried with more errors
_WITHIN = 0.999  # of the physical range, whose end is excluded
_OF_THE_ARM = {"payload": payload_error, "damping": damping_errors}
ERRORS = ("modes", "links", "damping", "payload")


def structured_loop(
    closed: ClosedLoop, joints: Array, second_loop_weight: float, errors: Mapping[str, float]
) -> UncertainLoop:
    """Pull independent errors out of a loop at a pose.

    `errors` are kinds of errors, and the relative error [-] at delta = 1 of each. Of the
    controller's stiffness, whose errors must be free: "modes", each mode and spring, or
    "links", each link as a whole and each spring. Of the arm, unknown to the controller: "damping",
    each link and spring, and "payload".

    Raises
    ------
    InputError
        When a kind is unknown, modes and links are both named, no kind is named, or the arm has no
        such damping or payload.
    """
    check_errors(errors)
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
    return pull_out(closed, joints, second_loop_weight, _groups(closed, errors), of_arm=own)


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
    bounds, loss = _bounds(
        independent, deadline, reach, lambda words: say(f"independent errors at {where}: {words}")
    )
    worst, mode, worst_errors = bounds.worst_case, loss.mode if loss else "", {}
    if worst:
        if not loss:
            names = name_modes(closed, joints, loop.size)
            mode = names.name(loop.matrix(worst.delta), worst.eigenvalue)
        pairs = zip(loop.parameters, worst.delta.tolist(), strict=True)
        worst_errors = {one.name: one.range * delta for one, delta in pairs}
    return IndependentErrorsAt(
        t=t,
        where=where,
        second_loop=bool(second_loop_weight),
        bounds=bounds,
        mode=mode,
        ends=loss.ends if loss else "",
        guaranteed=guaranteed_errors(bounds.guaranteed_fraction, errors),
        worst_errors=worst_errors,
    )


def _bounds(
    errors: IndependentErrors, deadline: Deadline, reach: float, say: Callable[[str], None]
) -> tuple[MuBounds, StabilityLimit | None]:
    """Bounds of the errors, and the stability limit that was found by continuation, if any."""
    loop = errors.loop
    moves = errors.moves()
    too_many = len(loop.parameters) > 1 and cost_of_scalings(loop) > _HOPELESS
    if not (moves or loop.approximate or too_many):
        return find_mu_bounds(loop, prove=True, deadline=deadline, say=say), None
    bounds = _NOT_BOUNDED  # a single error is followed to its limit, without bounds
    if len(loop.parameters) > 1:  # no proof is possible: so in time, and near enough to follow
        part = deadline.part(_BOUNDS_TIME)
        bounds = find_mu_bounds(in_main_channels(loop), prove=False, deadline=part, say=say)
    say("the equilibrium that they move" if moves else "the loop itself")
    return follow_errors(errors, bounds, deadline, reach, moves=moves)


@dataclass(frozen=True, kw_only=True)
class IndependentErrors:
    """A loop at one pose, at its equilibrium with the errors of `loop`.

    These errors were pulled out at the equilibrium without errors; the first ones belong to the
    `groups` of parts of the stiffness, whose errors are free in the controller.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    loop: UncertainLoop
    groups: Sequence[ErrorGroup]

    def along(self, direction: Array) -> ErrorFamily:
        """Family of loops over t, with the errors t times `direction` (p,)."""
        own = direction * np.array([one.range for one in self.loop.parameters])
        parts, count = np.zeros(len(self.closed.controller.plant.stiffness_parts)), len(self.groups)
        for group, error in zip(self.groups, own[:count], strict=True):
            parts[list(group.parts)] = error
        names = [one.name for one in self.loop.parameters[count:]]
        named = dict(zip(names, own[count:].tolist(), strict=True))
        load = named.pop("payload", 0.0)
        truth = self.closed.truth

        def loop_with(t: float) -> ClosedLoop:
            wrong = self.closed.at({STIFFNESS_ERROR: t * parts})
            return replace(wrong, truth=truth.loaded(1 + t * load)) if load else wrong

        def damped(linear: LinearLoop, t: float) -> LinearLoop:
            errors = damping_errors(self.closed.truth, linear.plant)
            D = linear.plant.D + sum(t * named[one.name] * one.D for one in errors)
            return linear.with_plant(replace(linear.plant, D=D))

        spans = [one.times(x) for one, x in zip(self.loop.parameters, direction, strict=True)]
        farthest = FARTHEST / np.abs(own).max()
        return ErrorFamily(
            closed=self.closed,
            joints=self.joints,
            second_loop_weight=self.second_loop_weight,
            loop_with=loop_with,
            adjusted=damped if any(named.values()) else None,
            lowest=max(-farthest, *(_WITHIN * low for low, _ in spans)),
            highest=min(farthest, *(_WITHIN * high for _, high in spans)),
            parts=parts,
        )

    def moves(self) -> bool:
        """Whether these errors move the equilibrium."""
        return self.along(np.ones(len(self.loop.parameters))).moves()

    def directions(self, bounds: MuBounds) -> Iterator[Array]:
        """Directions (p,) of largest entry 1 to follow: single errors, the worst case, corners."""
        p = len(self.loop.parameters)
        for one in np.eye(p):
            yield from (one, -one)
        if bounds.worst_case is not None and p > 1:
            worst = bounds.worst_case.delta / bounds.worst_case.gamma
            yield from (worst, -worst)
        if p > 1:
            yield from _corners(p)


def follow_errors(
    errors: IndependentErrors,
    bounds: MuBounds,
    deadline: Deadline,
    reach: float = np.inf,
    *,
    moves: bool = True,
) -> tuple[MuBounds, StabilityLimit | None]:
    """Correct bounds of independent errors by continuation of the equilibrium along rays.

    If the deadline passes before every single error was followed in both signs, nothing is
    guaranteed, as the bounds belong to an equilibrium that the loop does not keep. Errors beyond
    `reach` [-] are not searched; `moves` is whether they move the equilibrium.

    Returns
    -------
    tuple
        The bounds, no longer proven, with the nearest stability limit as the worst case; and that
        limit, None where there is none.
    """
    best, limit, at, tried = _nearest(errors, bounds, deadline, reach)
    count = len(errors.loop.parameters)
    fraction, stopped = min(bounds.guaranteed_fraction, best), bounds.stopped
    if count == 1:
        fraction = min(best, LARGEST)
    if tried < 2 * count:
        fraction = 0.0
        stopped = f"{deadline.reached} before the loop was followed along each single error"
    corrected = replace(
        bounds,
        guaranteed_fraction=fraction,
        mu_peak=1 / fraction if fraction else np.inf,
        proven=False,
        not_proven=(),
        followed=True,
        stopped=stopped,
        notes=(*bounds.notes, _note(errors, tried, stopped=deadline.passed, moves=moves)),
    )
    if limit is None:
        return replace(corrected, worst_case=None), None
    worst = WorstCase(
        gamma=best,
        names=tuple(one.name for one in errors.loop.parameters),
        delta=best * at,
        eigenvalue=complex(0, limit.frequency),
        frequency=limit.frequency,
        verified=True,
        tried=tried,
    )
    return replace(corrected, worst_case=worst, frequency=limit.frequency), limit


def _nearest(
    errors: IndependentErrors, bounds: MuBounds, deadline: Deadline, reach: float
) -> tuple[float, StabilityLimit | None, Array, int]:
    """Find the nearest stability limit along all directions.

    Returns its size [-], the limit, its direction (p,), and the number of directions tried; `reach`
    and None where there is no limit within `reach`.
    """
    best, limit, at, tried = reach, None, np.zeros(0), 0
    for direction in errors.directions(bounds):
        if deadline.passed:
            break
        family = errors.along(direction)
        end = family.end(1, best)
        tried += 1
        if end is not None and end.alpha < best:
            best, limit, at = end.alpha, end, direction
    return best, limit, at, tried


def _note(errors: IndependentErrors, tried: int, *, stopped: bool, moves: bool) -> str:
    """Sentence on the continuation, which replaces a proof."""
    rays = f"{tried} directions" if tried > 1 else f"{tried} direction"
    early = " until the time limit was reached" if stopped else ""
    loop, cycle = errors.loop, errors.closed.controller.cycle
    if moves:
        why = "these errors move the equilibrium: it"
    elif loop.approximate and cycle == 1:
        why = "modes of the arm turn too far in a sample for bounds of such errors: the loop"
    else:
        after = f" in the {cycle} samples after which it repeats" if cycle > 1 else ""
        why = (
            f"the errors act in {len(loop.D)} places{after}, too many for bounds of them: the loop"
        )
    return f"{why} was followed along {rays} of error{early}; between these nothing is proven"


def _corners(p: int) -> Iterator[Array]:
    """Corners of the box of p errors: all for few errors, else equal errors and random corners."""
    if p <= _ALL_CORNERS:
        yield from map(np.array, product((1.0, -1.0), repeat=p))
        return
    yield from (np.ones(p), -np.ones(p))
    yield from np.random.default_rng(0).choice([-1.0, 1.0], size=(_RANDOM_CORNERS, p))
