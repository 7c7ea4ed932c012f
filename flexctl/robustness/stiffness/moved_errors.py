"""Independent errors that move the equilibrium: bounds at the old one, corrected along rays.

What is proven of independent errors is proven of the loop at the equilibrium without them. Where
they move it, under gravity without integral action, that is no proof: the loop is then followed to
where it rests with them, along single errors, all alike, corners and the worst case found, and what
is lost nearer replaces what was said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from flexctl.checks import Array
from flexctl.loop import ClosedLoop, LinearLoop
from flexctl.robustness.lft import LARGEST, Deadline, ErrorGroup, MuBounds, UncertainLoop, WorstCase
from flexctl.robustness.stiffness.arm_errors import damping_errors
from flexctl.robustness.stiffness.followed import FARTHEST, ErrorFamily
from flexctl.robustness.stiffness.interval import StabilityLimit

_CORNERS = 4  # errors up to which all corners of their box are tried
_RANDOM = 16  # corners tried of more errors
_LEFT = 0.999  # of the range in which errors have a meaning: its end has none


@dataclass(frozen=True, kw_only=True)
class IndependentErrors:
    """A loop at a pose under the errors of an `UncertainLoop`, at the rest that it has with them.

    Attributes
    ----------
    closed, joints, second_loop_weight
        As in `linearise_loop`; the controller's stiffness is unknown.
    loop
        The loop with its errors pulled out at the equilibrium without them.
    groups
        Parts of the stiffness that the first errors are of.
    """

    closed: ClosedLoop
    joints: Array
    second_loop_weight: float
    loop: UncertainLoop
    groups: Sequence[ErrorGroup]

    def along(self, direction: Array) -> ErrorFamily:
        """Loops over t in which the errors are t times `direction` (p,)."""
        own = direction * np.array([one.range for one in self.loop.parameters])
        parts, count = np.zeros(len(self.closed.controller.plant.stiffness_parts)), len(self.groups)
        for group, error in zip(self.groups, own[:count], strict=True):
            parts[list(group.parts)] = error
        names = [one.name for one in self.loop.parameters[count:]]
        named = dict(zip(names, own[count:].tolist(), strict=True))
        load = named.pop("payload", 0.0)
        truth = self.closed.truth

        def loop_with(t: float) -> tuple[ClosedLoop, Array]:
            if not load:
                return self.closed, t * parts
            return replace(self.closed, truth=truth.loaded(1 + t * load)), t * parts

        def damped(linear: LinearLoop, t: float) -> LinearLoop:
            errors = damping_errors(self.closed.truth, linear.plant)
            D = linear.plant.D + sum(t * named[one.name] * one.D for one in errors)
            return replace(linear, plant=replace(linear.plant, D=D))

        spans = [one.times(x) for one, x in zip(self.loop.parameters, direction, strict=True)]
        farthest = FARTHEST / np.abs(own).max()
        return ErrorFamily(
            closed=self.closed,
            joints=self.joints,
            second_loop_weight=self.second_loop_weight,
            loop_with=loop_with,
            adjusted=damped if any(named.values()) else None,
            lowest=max(-farthest, *(_LEFT * low for low, _ in spans)),
            highest=min(farthest, *(_LEFT * high for _, high in spans)),
        )

    def moves(self) -> bool:
        """Whether these errors move the equilibrium."""
        return self.along(np.ones(len(self.loop.parameters))).moves()

    @property
    def single(self) -> list[Array]:
        """Directions (p,) of one error alone, either way: without them nothing is known."""
        each = np.eye(len(self.loop.parameters))
        return [sign * one for one in each for sign in (1.0, -1.0)]

    def directions(self, bounds: MuBounds) -> Iterator[Array]:
        """Errors (p,) to follow, the largest of each 1: single ones, the worst case, corners."""
        p = len(self.loop.parameters)
        yield from self.single
        if bounds.worst_case is not None and p > 1:
            worst = bounds.worst_case.delta / bounds.worst_case.gamma
            yield from (worst, -worst)
        if p > 1:
            yield from _corners(p)


def follow_errors(
    errors: IndependentErrors, bounds: MuBounds, deadline: Deadline, reach: float = np.inf
) -> tuple[MuBounds, StabilityLimit | None]:
    """Correct bounds of independent errors by what is lost along rays that follow the equilibrium.

    Where the time is over before every single error was followed either way, nothing is
    guaranteed: the old bounds are those of an equilibrium that the loop does not keep. What lies
    beyond `reach` [-] is not looked for.

    Returns
    -------
    tuple
        The bounds, no longer proven, with the nearest loss found for a worst case; and that loss,
        None where nothing is lost.
    """
    best, loss, at, tried = _nearest(errors, bounds, deadline, reach)
    late = tried < len(errors.single)
    whole = len(errors.loop.parameters) == 1
    fraction = min(best, LARGEST) if whole else min(bounds.guaranteed_fraction, best)
    fraction = 0.0 if late else fraction
    corrected = replace(
        bounds,
        guaranteed_fraction=fraction,
        mu_peak=1 / fraction if fraction else np.inf,
        proven=False,
        not_proven=(),
        followed=True,
        stopped=_late(deadline) if late else bounds.stopped,
        notes=(*bounds.notes, _note(tried, stopped=deadline.passed)),
    )
    if loss is None:
        return replace(corrected, worst_case=None), None
    worst = WorstCase(
        gamma=best,
        names=tuple(one.name for one in errors.loop.parameters),
        delta=best * at,
        eigenvalue=complex(0, loss.frequency),
        frequency=loss.frequency,
        verified=True,
        tried=tried,
    )
    return replace(corrected, worst_case=worst, frequency=loss.frequency), loss


def _nearest(
    errors: IndependentErrors, bounds: MuBounds, deadline: Deadline, reach: float
) -> tuple[float, StabilityLimit | None, Array, int]:
    """Return the nearest loss along all directions: how far [-], what, where (p,), how many tried.

    `reach` and None where nothing is lost up to there.
    """
    best, loss, at, tried = reach, None, np.zeros(0), 0
    for direction in errors.directions(bounds):
        if deadline.passed:
            break
        family = errors.along(direction)
        end = replace(family, highest=min(family.highest, best)).end(1)
        tried += 1
        if end is not None and end.alpha < best:
            best, loss, at = end.alpha, end, direction
    return best, loss, at, tried


def _late(deadline: Deadline) -> str:
    return f"{deadline.reached} before the loop was followed along each single error"


def _note(tried: int, *, stopped: bool) -> str:
    """Say what was done in place of a proof."""
    rays = f"{tried} directions" if tried > 1 else f"{tried} direction"
    early = " until the time limit was reached" if stopped else ""
    return (
        f"these errors move the equilibrium: it was followed along {rays} of error{early}; between "
        "these nothing is proven"
    )


def _corners(p: int) -> Iterator[Array]:
    """Corners of the box of p errors: all of few, else all alike and random ones."""
    if p <= _CORNERS:
        yield from map(np.array, product((1.0, -1.0), repeat=p))
        return
    yield from (np.ones(p), -np.ones(p))
    yield from np.random.default_rng(0).choice([-1.0, 1.0], size=(_RANDOM, p))
