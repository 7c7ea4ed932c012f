"""What tuning answers: the design, what became of the limits, how it was found and verified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flexctl.checks import ComplexArray
from flexctl.model import Design
from flexctl.plant import ShapeChange
from flexctl.records import Summary
from flexctl.robustness import Certificate
from flexctl.search.samples import Spec
from flexctl.search.tuning.free_numbers import FreeNumber
from flexctl.search.tuning.local_search import Found
from flexctl.search.tuning.requirements import Objective, Requirement
from flexctl.verdict import Evaluation, Metric


@dataclass(frozen=True, kw_only=True)
class Constraint:
    """A limit and what became of it, on the arm where it is worst.

    Attributes
    ----------
    requirement
        The limit.
    before, value
        Of the metric, before and after.
    met, was_met
        Whether it is kept on all arms, now and before.
    violation
        Relative to the limit, 0 where it is kept; of a settling time log(e/band) of the largest tip
        error e after the limit.
    """

    requirement: Requirement
    before: float
    value: float
    met: bool
    violation: float
    was_met: bool = False


@dataclass(frozen=True, kw_only=True)
class Relief:
    """What it buys to give a limit up, where not all can be kept.

    Attributes
    ----------
    requirement
        The limit that is given up.
    violation
        The least violation of the others that a short search finds, as of `Constraint`.
    worst
        The limit that is violated most there; None where it is stability, or nothing.
    objective, evaluations
        There, and of that search.
    """

    requirement: Requirement
    violation: float
    worst: Requirement | None
    objective: float
    evaluations: int


@dataclass(frozen=True, kw_only=True)
class Unseen:
    """Arms that tuning had not seen: how many, and the one on which the design does worst.

    Attributes
    ----------
    n, met
        Number of arms, and of those on which all limits are kept.
    worst
        Numbers by key of the worst arm.
    violation
        There, as of `Constraint`.
    lost
        The limit that is violated most there; None where there is no stable loop, or none is.
    objective
        On the arm where it is worst; of a quantile on that share of the arms.
    """

    n: int
    met: int
    worst: Mapping[str, float]
    violation: float
    lost: Requirement | None
    objective: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Tuning(Summary):
    """A tuned design beside the one that it started from.

    Attributes
    ----------
    model
        Name of the arm.
    design, tuned
        Before and after; the same where nothing better was found.
    before, after
        Verdicts on them, on the nominal arm.
    values
        By name of a free number its values before and after.
    free, untied, over, scaled
        Free numbers with their bounds; whether equal gains may become different; by key how the
        true arm varies, and keys of arms whose values are factors of what the file has.
    quantile
        Share of these arms on which the limits are kept and the objective is reached; None where
        it is all of them.
    objective, objective_before, objective_after
        What was minimised, and its values on the arm where it is worst.
    nearby
        By name of a free number the worst objective where it is 1 % off, the others as they are;
        empty where nothing better was found, the search was interrupted, or margins are minimised.
    constraints
        Limits, with their values before and after.
    feasible
        Whether all limits are kept.
    conflict
        Where they are not: limits that stand against each other, and what it buys to give one up.
    starts
        Searches: those that ended at the answer, then the others, the best first.
    arms
        Arms over which the design was tuned, the nominal one first.
    unseen
        What was found on other arms; None without variations of the arm.
    evaluations, seconds
        Cost.
    certificate
        Proof that the nominal loop of the tuned design is stable where it rests at the end; None
        where it has no equilibrium there.
    shape_error
        As of `sweep`, where modes keep their shapes over the arms; else None.
    interrupted
        Whether it was ended before its time.
    resumed
        Number of results that its ledger had at the beginning.
    judged_on
        Arms on which all limits were verified, the nominal one first.
    worst_arm
        That of these, of the share that counts, which violates limits most; where none does, that
        of the largest objective.
    worst_before, worst_after
        Metrics of both designs, each on the arm and the joint where it is worst; NaN where an arm
        has none.
    counted_before, counted_after
        Metrics of both designs on each arm that counts, the nominal one first.
    no_verdict
        An arm on which the result could not be judged fully, and why; None where there is none.
    eigenvalues
        Of the nominal loop at the final pose (k, n) [rad/s], each column on the way from the first
        design to the second.

    Examples
    --------
    >>> import flexctl
    >>> found = flexctl.tune(
    ...     "single-link-hub", "hub-pd", {"gains.Gv": (1.0, 10.0)},
    ...     minimise="stability.spectral_abscissa", subject_to=[], starts=1, jobs=1,
    ... )
    >>> found.objective_after < found.objective_before
    True
    """

    model: str
    design: Design
    tuned: Design
    before: Evaluation = field(repr=False)
    after: Evaluation = field(repr=False)
    values: Mapping[str, tuple[float, float]]
    free: tuple[FreeNumber, ...] = field(repr=False)
    untied: bool
    over: Mapping[str, Spec] = field(repr=False)
    quantile: float | None = field(repr=False)
    scaled: frozenset[str] = field(repr=False)
    objective: Objective
    objective_before: float
    objective_after: float
    constraints: tuple[Constraint, ...]
    feasible: bool
    conflict: tuple[Relief, ...]
    starts: tuple[Found, ...] = field(repr=False)
    arms: tuple[Mapping[str, float], ...]
    unseen: Unseen | None
    evaluations: int
    seconds: float
    judged_on: tuple[Mapping[str, float], ...]
    worst_before: Mapping[str, float] = field(repr=False)
    worst_after: Mapping[str, float] = field(repr=False)
    counted_before: tuple[Mapping[str, Metric], ...] = field(repr=False)
    counted_after: tuple[Mapping[str, Metric], ...] = field(repr=False)
    eigenvalues: ComplexArray = field(repr=False)
    nearby: Mapping[str, float] = field(default_factory=dict, repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    shape_error: tuple[ShapeChange, str, float] | None = None
    interrupted: bool = False
    resumed: int = 0
    no_verdict: tuple[Mapping[str, float], str] | None = None
    worst_arm: Mapping[str, float] = field(default_factory=dict, repr=False)

    def _facts(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "design": self.design.name,
            "objective": str(self.objective),
            "before": self.objective_before,
            "after": self.objective_after,
            "feasible": self.feasible,
            "evaluations": self.evaluations,
        }

    @property
    def improved(self) -> bool:
        """Whether the design is better than it was."""
        return self.tuned != self.design
