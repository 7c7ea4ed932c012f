"""What tuning minimises: objective and limits of all arms, as pieces with their derivatives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError
from flexctl.loop import linear_poses
from flexctl.search.nonsmooth import Pieces
from flexctl.search.tuning.goals import Goals
from flexctl.search.tuning.loops_of_arms import LostError, arm_loops
from flexctl.search.tuning.point import Point
from flexctl.search.tuning.spectra import Case
from flexctl.verdict import judge_stability

_SLIGHT = 1e-8  # of what is hardly unstable


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
        """Return where on finer truths the loop at u is unstable, and by how much.

        As a verdict finds it: on each order at rest at the end, and at the worst pose of the
        motion. Measured as in `spectral[0]`; 1 where there is no equilibrium, or no loop.
        """
        here, loops = self.point(u, slopes=False), arm_loops(self.study)
        try:
            loop = here.loop(0)
            finer = [here.on_finer(order) for order in loops.finer]
            judged = judge_stability(loop, linear_poses(loop), finer)
        except (LostError, ComputationError, DesignError):
            return {Case(order=order): 1.0 for order in loops.finer}
        at_rest = zip(judged.orders, judged.abscissae, strict=True)
        lost = [Case(order=k) for k, rate in at_rest if k in loops.finer and not rate <= 0]
        lost += [Case(order=k, time=t) for k, t, _ in judged.spilling]
        return {case: self._by_how_much(here, case) for case in lost}

    def _by_how_much(self, here: Point, case: Case) -> float:
        try:
            poles = here.linear(case).poles
        except ComputationError:
            return 1.0
        return max(float(self.spectral[0].measure(poles).max()), _SLIGHT)

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
