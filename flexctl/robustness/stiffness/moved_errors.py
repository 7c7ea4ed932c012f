"""Independent errors that move the equilibrium: bounds corrected by continuation along rays.

Bounds of independent errors hold for the loop at the equilibrium without errors. Where the errors
move it, under gravity without integral action, they are no proof. The loop is then followed along
its equilibria for single errors, equal errors, corners of the box and the worst case, and a nearer
loss of stability replaces the bounds.
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

_ALL_CORNERS = 4  # largest number of errors for which all corners of the box are tried
_RANDOM_CORNERS = 16  # tried with more errors
_WITHIN = 0.999  # of the physical range, whose end is excluded


@dataclass(frozen=True, kw_only=True)
class IndependentErrors:
    """A loop at one pose under the errors of an `UncertainLoop`, at its equilibrium with them.

    Attributes
    ----------
    closed, joints, second_loop_weight
        As in `linearise_loop`; the controller has the errors of its stiffness as inputs.
    loop
        The loop with its errors pulled out at the equilibrium without errors.
    groups
        Parts of the stiffness to which the first errors of `loop` belong.
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
            lowest=max(-farthest, *(_WITHIN * low for low, _ in spans)),
            highest=min(farthest, *(_WITHIN * high for _, high in spans)),
        )

    def moves(self) -> bool:
        """Whether these errors move the equilibrium."""
        return self.along(np.ones(len(self.loop.parameters))).moves()

    @property
    def single(self) -> list[Array]:
        """Directions (p,) of one error alone, in both signs."""
        each = np.eye(len(self.loop.parameters))
        return [sign * one for one in each for sign in (1.0, -1.0)]

    def directions(self, bounds: MuBounds) -> Iterator[Array]:
        """Directions (p,) of largest entry 1 to follow: single errors, the worst case, corners."""
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
    """Correct bounds of independent errors by continuation of the equilibrium along rays.

    If the deadline passes before every single error was followed in both signs, nothing is
    guaranteed, as the bounds belong to an equilibrium that the loop does not keep. Errors beyond
    `reach` [-] are not searched.

    Returns
    -------
    tuple
        The bounds, no longer proven, with the nearest stability limit as the worst case; and that
        limit, None where there is none.
    """
    best, limit, at, tried = _nearest(errors, bounds, deadline, reach)
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
        end = replace(family, highest=min(family.highest, best)).end(1)
        tried += 1
        if end is not None and end.alpha < best:
            best, limit, at = end.alpha, end, direction
    return best, limit, at, tried


def _late(deadline: Deadline) -> str:
    """Why nothing is guaranteed, in words."""
    return f"{deadline.reached} before the loop was followed along each single error"


def _note(tried: int, *, stopped: bool) -> str:
    """Sentence on the continuation, which replaces a proof."""
    rays = f"{tried} directions" if tried > 1 else f"{tried} direction"
    early = " until the time limit was reached" if stopped else ""
    return (
        f"these errors move the equilibrium: it was followed along {rays} of error{early}; between "
        "these nothing is proven"
    )


def _corners(p: int) -> Iterator[Array]:
    """Corners of the box of p errors: all for few errors, else equal errors and random corners."""
    if p <= _ALL_CORNERS:
        yield from map(np.array, product((1.0, -1.0), repeat=p))
        return
    yield from (np.ones(p), -np.ones(p))
    yield from np.random.default_rng(0).choice([-1.0, 1.0], size=(_RANDOM_CORNERS, p))
