"""How far a point is from stationary, by all gradients that are known near it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from flexctl.checks import Array
from flexctl.search.nonsmooth.combination import smallest_combination
from flexctl.search.nonsmooth.evaluations import Point
from flexctl.search.nonsmooth.steps import LinearModel

_VIOLATED = 1e-7  # of a constraint with its clearance, or all of that: what is violated


@dataclass(frozen=True, kw_only=True)
class Stationarity:
    """Norm of the smallest element, its weights by pieces (k,) and constraints (l,).

    `of_violation`: constraints are violated, and it is the violation that is combined.
    """

    norm: float
    of_violation: bool
    weights: Array
    multipliers: Array


def measure_stationarity(
    point: Point, near: list[Point], radius: float, box: tuple[Array, Array]
) -> Stationarity:
    """Combine what is active within `radius` of the point: pieces, constraints and bounds.

    A piece below the largest by less than 2 radius |gradient| may be largest within the radius. Of
    the points `near`, which lie within the radius, the largest piece counts. Source:
    [BurkeLewisOverton05], for constraints [CurtisOverton12].
    """
    p = point.pieces
    sides = _bounds(point.z, radius, box)
    others = [one.pieces for one in near if one is not point]
    top = _active(p.values, p.gradients, p.objective, radius)
    worst = float(p.constraints.max(initial=-np.inf))
    acting = _active(p.constraints, p.constraint_gradients, max(worst, 0.0), radius)
    pushing = [
        one
        for one in others
        if one.constraints.size
        and one.constraints.max() >= -_reach(one.constraint_gradients, radius).max()
    ]
    limits = [one.constraint_gradients[int(one.constraints.argmax())] for one in pushing]
    which = [*acting, *(int(one.constraints.argmax()) for one in pushing)]
    weights, multipliers = np.zeros(len(p.values)), np.zeros(len(p.constraints))
    violated = worst > max(_VIOLATED, point.clearance)
    if violated:  # no point without violation is known near: of the violation alone
        hull = np.vstack([p.constraint_gradients[acting], *limits])
        element, of_limits, _ = smallest_combination(hull, sides)
    else:
        tops = [one.gradients[int(one.values.argmax())] for one in others]
        hull = np.vstack([p.gradients[top], *tops])
        cone = np.vstack([p.constraint_gradients[acting], *limits, sides])
        element, of_hull, of_limits = smallest_combination(hull, cone)
        _add(weights, [*top, *(int(one.values.argmax()) for one in others)], of_hull)
    _add(multipliers, which, of_limits)
    return Stationarity(
        norm=float(np.linalg.norm(element)),
        of_violation=violated,
        weights=weights,
        multipliers=multipliers,
    )


def _add(totals: Array, indices: list[int], parts: Array) -> None:
    """Add parts to the pieces of these numbers, which neighbours have too if they are in order."""
    for index, part in zip(indices, parts, strict=False):
        if index < len(totals):
            totals[index] += part


def gather_model(point: Point, near: list[Point], box: tuple[Array, Array]) -> LinearModel:
    """Pieces at the point, with the largest ones of its neighbours as if they were at the point."""
    p = point.pieces
    others = [one.pieces for one in near if one is not point]
    if not others:
        return LinearModel(
            values=p.values,
            gradients=p.gradients,
            constraints=p.constraints,
            constraint_gradients=p.constraint_gradients,
            lowest=box[0] - point.z,
            highest=box[1] - point.z,
        )
    values = [*p.values, *([p.objective] * len(others))]
    gradients = [p.gradients, *(one.gradients[int(one.values.argmax())] for one in others)]
    constraints, rows = list(p.constraints), [p.constraint_gradients]
    if constraints:  # some points have none: a limit that is far from there is not evaluated
        limited = [one for one in others if one.constraints.size]
        constraints += [float(p.constraints.max())] * len(limited)
        rows += [one.constraint_gradients[int(one.constraints.argmax())] for one in limited]
    return LinearModel(
        values=np.array(values),
        gradients=np.vstack(gradients),
        constraints=np.array(constraints),
        constraint_gradients=np.vstack(rows),
        lowest=box[0] - point.z,
        highest=box[1] - point.z,
    )


def _reach(gradients: Array, radius: float) -> Array:
    return 2 * radius * np.linalg.norm(gradients, axis=1)


def _active(values: Array, gradients: Array, top: float, radius: float) -> Array:
    """Find the indices of the pieces that may be at `top` within the radius."""
    return np.flatnonzero(values >= top - np.maximum(_reach(gradients, radius), 1e-12 * abs(top)))


def _bounds(z: Array, radius: float, box: tuple[Array, Array]) -> Array:
    """Gradients of the bounds that are within the radius, one a row."""
    unit = np.eye(len(z))
    return np.vstack([-unit[z - box[0] <= radius], unit[box[1] - z <= radius]])
