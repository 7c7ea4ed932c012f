"""Loops of the arms that tuning looks at, derived and compiled once in a process."""

from __future__ import annotations

from collections.abc import Mapping

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, FlexctlError
from flexctl.loop import LADDER, ClosedLoop, close_around
from flexctl.robustness import with_free_stiffness
from flexctl.search.study import Study
from flexctl.simulation import compile_verdict


class LostError(FlexctlError):
    """At these numbers there is no controller, no equilibrium, or no run."""


def loop_at(base: ClosedLoop, values: Mapping[str, Array]) -> ClosedLoop:
    """Return a loop with numbers of its design; LostError where there is no controller."""
    try:
        return base.at(values)
    except (DesignError, ComputationError) as error:
        raise LostError(str(error)) from error


class ArmLoops:
    """Loops of a study's arms, derived once in a process."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self._loops = dict[tuple[tuple[str, float], ...], ClosedLoop]()
        self._free = dict[tuple[tuple[str, float], ...], ClosedLoop]()
        self._finer = dict[int, ClosedLoop]()

    def base(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return the loop of the file's design on an arm, compiled."""
        key = tuple(arm.items())
        if key not in self._loops:
            loop = self._study.loop(0, arm)
            compile_verdict(loop)
            self._loops[key] = loop
        return self._loops[key]

    def of_free_stiffness(self, arm: Mapping[str, float]) -> ClosedLoop:
        """Return it with free errors of the stiffness that the law computes with."""
        key = tuple(arm.items())
        if key not in self._free:
            self._free[key] = with_free_stiffness(self.base(arm))
        return self._free[key]

    @property
    def finer(self) -> tuple[int, ...]:
        """Orders of finer truths, on which a verdict looks for spillover."""
        own = self._study.setup.truth_basis.order
        return tuple(order for order in LADDER if order > own)

    def on_finer(self, order: int) -> ClosedLoop:
        """Return the loop of the nominal arm on a finer truth, for its eigenvalues alone."""
        if order not in self._finer:
            truth = self._study.setup.truth(order, interpreted=True)
            self._finer[order] = close_around(self.base({}).controller, truth)
        return self._finer[order]


_loops: dict[str, ArmLoops] = {}


def arm_loops(study: Study) -> ArmLoops:
    """Return the loops of a study, kept in this process."""
    if study.content not in _loops:
        _loops.clear()
        _loops[study.content] = ArmLoops(study)
    return _loops[study.content]
