"""What is minimised: the largest of several smooth pieces, where the constraints are met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl.checks import Array


@dataclass(frozen=True, kw_only=True)
class Pieces:
    """Objective and constraints at one point of n variables, each the largest of its pieces.

    A piece is one eigenvalue, one pose, one peak of a frequency response. Besides the largest,
    those belong here that are largest somewhere near; more than that does no harm.

    Attributes
    ----------
    values, gradients
        Of the objective, (k,) and (k, n), k >= 1: max(values) is minimised. Infinite where the
        objective does not exist; its gradient is then not used.
    constraints, constraint_gradients
        (l,) and (l, n): met where all are <= 0. All of a size, as the largest counts.
    differentiate
        Of pieces whose gradients cost much and are not yet computed: returns them with gradients.
        It is called where a step is taken; gradients are not read before.
    """

    values: Array
    gradients: Array
    constraints: Array
    constraint_gradients: Array
    differentiate: Callable[[], Pieces] | None = None

    @classmethod
    def of(
        cls,
        values: Array,
        gradients: Array,
        constraints: Array | None = None,
        constraint_gradients: Array | None = None,
    ) -> Pieces:
        """Make pieces of arrays; without constraints unless they are given."""
        rows = np.atleast_2d(np.asarray(gradients, dtype=float))
        n = rows.shape[1]
        none = constraints is None or constraint_gradients is None
        return cls(
            values=np.atleast_1d(np.asarray(values, dtype=float)),
            gradients=rows,
            constraints=np.zeros(0) if none else np.atleast_1d(np.asarray(constraints, float)),
            constraint_gradients=np.zeros((0, n))
            if none
            else np.asarray(constraint_gradients, float).reshape(-1, n),
        )

    @cached_property
    def objective(self) -> float:
        """The largest of the objective's pieces; infinity where one is no number."""
        top = float(self.values.max())
        return top if np.isfinite(top) else np.inf

    @cached_property
    def violation(self) -> float:
        """How far the worst constraint is above zero; 0 where all are met."""
        if not self.constraints.size:
            return 0.0
        top = float(self.constraints.max())
        return max(top, 0.0) if np.isfinite(top) else np.inf

    @property
    def without_objective(self) -> Pieces:
        """The constraints alone, with an objective of 0 where there is one."""
        value = np.array([0.0 if np.isfinite(self.objective) else np.inf])
        return replace(self, values=value, gradients=np.zeros((1, self.gradients.shape[1])))


Functions = Callable[[Array], Pieces]


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The best point so far, after so many evaluations."""

    evaluations: int
    x: Array
    objective: float
    violation: float


@dataclass(frozen=True, kw_only=True)
class Minimum:
    """The best point found, with what is known of it.

    Attributes
    ----------
    x
        (n,).
    objective, violation
        There; violation is 0 where all constraints are met.
    pieces
        There.
    stationarity
        Norm of the smallest element of the convex hull of the objective's gradients within `radius`
        of x, plus any non-negative combination of gradients of active constraints and bounds
        (the residual of the Karush-Kuhn-Tucker conditions): change of the objective, in its unit,
        per unit of scaled variable. Where constraints are violated, the same of the violation.
    radius
        In which the gradients were gathered, in scaled variables.
    weights, multipliers
        Of the objective's and the constraints' pieces in that combination, (k,) and (l,), those of
        neighbours of x added to the piece of the same number. A multiplier is what the objective
        gains per unit by which a constraint gives way; where constraints cannot be met, those that
        stand against each other have the multipliers above zero, which add up to 1.
    evaluations
        Of the functions.
    status
        ``stationary``, ``target`` reached, ``stopped`` by the callback, ``limit`` of evaluations
        reached, or ``stalled``: no descent found, and no certificate either.
    history
        The points at which the best improved, in order.
    """

    x: Array
    objective: float
    violation: float
    pieces: Pieces
    stationarity: float
    radius: float
    weights: Array
    multipliers: Array
    evaluations: int
    status: str
    history: tuple[Progress, ...]
