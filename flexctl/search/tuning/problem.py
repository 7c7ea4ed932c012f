"""What tuning minimises: objective and limits of all arms, as pieces with their derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.loop import LinearPoses, linear_poses
from flexctl.search.nonsmooth import Pieces
from flexctl.search.tuning.goals import Goals
from flexctl.search.tuning.loops_of_arms import LostError, arm_loops
from flexctl.search.tuning.point import Point, RunFailed
from flexctl.search.tuning.spectra import Case
from flexctl.verdict import judge_stability

_SLIGHT = 1e-8  # of what is hardly unstable
_NO_LOOP = (LostError, *RunFailed)


class Problem(Goals):
    """Goals as functions of the place u (n,) of the free numbers on their scales."""

    def spectral_at(self, u: Array, *, slopes: bool = True) -> Pieces:
        """Return the limits of eigenvalues alone at u (n,), as an objective.

        Raises LostError where there is no loop.
        """
        values, gradients, _ = self.point(u, slopes=slopes).eigenvalues()
        return Pieces.of(values, gradients) if slopes else _without_slopes(values)

    def point(self, u: Array, *, slopes: bool = True) -> Point:
        """Return the loops at u (n,), with their derivatives or without."""
        return Point(problem=self, u=u, slopes=slopes)

    def at(self, u: Array, *, slopes: bool = True) -> Pieces:
        """Return objective and limits at u (n,); an infinite objective where there is no run."""
        return self.judged(self.point(u, slopes=slopes))[0]

    def spillover(self, u: Array) -> dict[Case, float]:
        """Return where on other truths the loop at u is unstable, and by how much.

        As a verdict finds it: on each order at rest at the end, and at the worst pose of the
        motion. Measured as in `spectral[0]`; 1 where there is no equilibrium, or no loop.
        """
        here, orders = self.point(u, slopes=False), arm_loops(self.study).other_orders
        try:
            poses = linear_poses(here.loop(0))
        except _NO_LOOP:
            return {Case(order=order): 1.0 for order in orders}
        return dict(lost for order in orders for lost in self._spilled(here, poses, order))

    def _spilled(self, here: Point, poses: LinearPoses, order: int) -> Iterator[tuple[Case, float]]:
        """Cases of one order in which the loop is unstable, and by how much."""
        try:
            judged = judge_stability(here.loop(0), poses, [here.on_order(order)])
            at_rest = judged.abscissae[judged.orders.index(order)]
            cases = [] if at_rest <= 0 else [Case(order=order)]
            cases += [Case(order=order, time=t) for _, t, _ in judged.spilling]
            for case in cases:
                poles = here.linear(case).poles
                yield case, max(float(self.spectral[0].measure(poles).max()), _SLIGHT)
        except _NO_LOOP:
            yield Case(order=order), 1.0

    def moving(self) -> Array:
        """Return whether the objective or a limit depends on each free number (n,).

        As the start tells: all where it has no loop, or no value of the objective.
        """
        here, every = self.point(self.free.start), np.ones(len(self.free), dtype=bool)
        try:
            here.eigenvalues()
            values, _ = here.objective()
            here.limits()
            return here.differs() if np.isfinite(values).all() else every
        except LostError:
            return every

    def value(self, here: Point) -> float:
        """Return the objective in its unit, on the arm where it is worst; infinite without one."""
        arms = here.arms(nominal=self.objective.nominal)
        keys = self.objective.keys
        try:
            return max(self.objective.value(here.metrics(arm, keys)) for arm in arms)
        except LostError:
            return np.inf

    def judged(self, here: Point, *, limits_alone: bool = False) -> tuple[Pieces, list[int]]:
        """Return `at`, and of each limit's piece the requirement, -1 for stability itself.

        Where limits alone count, derivatives of the objective are zero: nothing is run for them.
        """
        n = len(here.neighbours)
        none, flat = np.array([np.inf]), np.zeros((1, n))
        lost = Pieces(values=none, gradients=flat, constraints=none, constraint_gradients=flat)
        try:
            limits, gradients, owners = here.eigenvalues()
            unstable = any(x > 0 for x, k in zip(limits, owners, strict=True) if k < 0)
            if not here.stable or (self.exact and unstable):
                return lost, [-1]
            if limits_alone:
                values, _ = replace(here, slopes=False).objective()
                own = np.zeros((len(values), n))
            else:
                values, own = here.objective()
            more, more_gradients, more_owners = here.limits()
        except LostError:
            return lost, [-1]
        pieces = Pieces(
            values=values,
            gradients=own,
            constraints=np.concatenate([limits, more]),
            constraint_gradients=np.vstack([gradients, more_gradients]),
        )
        return pieces, owners + more_owners


def _without_slopes(values: Array) -> Pieces:
    flat = np.zeros((len(values), 0))
    return Pieces(
        values=values, gradients=flat, constraints=np.zeros(0), constraint_gradients=flat[:0]
    )
