"""What tuning is to reach: free numbers, an objective and limits, on some arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flexctl.checks import Array
from flexctl.errors import ComputationError, DesignError, InputError
from flexctl.loop import ClosedLoop
from flexctl.search.study import Study
from flexctl.search.tuning.arms import ArmSet
from flexctl.search.tuning.free_numbers import FreeNumbers
from flexctl.search.tuning.loops_of_arms import LostError, arm_loops, loop_at
from flexctl.search.tuning.requirements import (
    SETTLING,
    Objective,
    Requirement,
    is_spectral,
)
from flexctl.search.tuning.spectra import SpectralLimit
from flexctl.verdict import OF_RUNS


@dataclass(frozen=True, kw_only=True)
class Goals:
    """Free numbers, objective and limits, over some arms.

    Attributes
    ----------
    study
        Arm and design; its variations are the numbers in which arms differ.
    free
        Numbers that may change.
    arms
        Numbers by key of each arm; the first, empty, is nominal.
    objective
        To be made small.
    requirements
        Limits that are to be kept.
    spectral
        Limits of eigenvalues: that all loops are stable, then one for each requirement that is
        `by_eigenvalues`.
    of_eigenvalues
        The objective, where it is one of eigenvalues.
    scale
        Of the objective.
    aim
        Settling time [s] that is tried, where that is the objective.
    runs_on
        Arms on which the run must not fail, by index, beside those that limits are of.
    possible
        All arms that there may be.
    exact
        Whether limits of margins are those of the exact margins, not of eigenvalues of some cases;
        a loop that is not stable then does not exist.
    rounded
        Whether runs have rounded torques and readings, as those of verdicts have.
    reserves
        By requirement, how much more than its limit is to be kept, in the unit of `violation`: what
        the run of a verdict differs by.
    """

    study: Study
    free: FreeNumbers
    arms: tuple[Mapping[str, float], ...]
    objective: Objective
    requirements: tuple[Requirement, ...]
    spectral: tuple[SpectralLimit, ...]
    of_eigenvalues: SpectralLimit | None = None
    scale: float = 1.0
    aim: float | None = None
    runs_on: frozenset[int] = field(default_factory=frozenset)
    possible: ArmSet = field(default_factory=ArmSet, repr=False)
    exact: bool = False
    rounded: bool = False
    reserves: Mapping[Requirement, float] = field(default_factory=dict)

    @property
    def rounds(self) -> bool:
        """Whether the law rounds torques or readings."""
        controller = self.loop(0).controller
        readings = controller.fitted.readings if controller.fitted else ()
        rounded = bool(controller.design.loop.torque_resolution)
        return rounded or any(one.resolution for one in readings)

    @property
    def settles(self) -> bool:
        """Whether the objective is the settling time alone."""
        return self.objective.metric == SETTLING

    def by_eigenvalues(self, one: Requirement) -> bool:
        """Whether a limit is one of eigenvalues here."""
        return is_spectral(one) and not (self.exact and one.is_margin)

    @property
    def linear(self) -> bool:
        """Whether objective and limits are those of the linear loop alone: nothing is run."""
        keys = (*self.objective.keys, *(one.key for one in self.requirements))
        return not self.runs_on and not any(key.startswith(OF_RUNS) for key in keys)

    def loop(self, arm: int, u: Array | None = None) -> ClosedLoop:
        """Return the loop of an arm with the free numbers at u (n,); by default as in the file.

        Raises LostError where there is no such arm, or no controller with these numbers. What is
        wrong with the file's design on the nominal arm is raised as it is.
        """
        try:
            base = arm_loops(self.study).base(self.arms[arm])
        except (DesignError, ComputationError, InputError) as error:
            if not arm:  # no place of the search has a loop then
                raise
            raise LostError(str(error)) from error
        return base if u is None else loop_at(base, self.free.values(u))
