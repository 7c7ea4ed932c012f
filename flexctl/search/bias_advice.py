"""Advice on a deliberate underestimate: by stability at rest, on other arms, and by runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from flexctl.errors import ComputationError
from flexctl.loop import ClosedLoop, describe_equilibrium, final_loop_weight, find_loop_equilibrium
from flexctl.robustness import ERROR, Case, Interval, StiffnessMargin
from flexctl.search.bias_run import BiasRun, BiasRuns, largest_served, try_biases
from flexctl.search.other_arms import tolerated_by_other_arms
from flexctl.search.remedies import Bias, bias_for, margin_bias, margin_intervals, tolerated_with


@dataclass(frozen=True, kw_only=True)
class OfferedBias:
    """A bias and the errors that a loop tolerates with it.

    Attributes
    ----------
    bias, tolerates
        As in `Bias`.
    lower, upper
        Range of K_file/K - 1 [-] that is tolerated on the arm of the file; `upper` may be infinite.
    other_arms
        Error [-] up to which softer and stiffer arms are tolerated, see `tolerated_by_other_arms`;
        None where the bias is no underestimate, which is not tried.
    tip_at_rest
        Tip offset from the reference at rest with the bias, by gravity [m]; None where the loop has
        no rest with the bias.
    """

    bias: float
    tolerates: float
    lower: float
    upper: float
    other_arms: float | None
    tip_at_rest: float | None = None


@dataclass(frozen=True, kw_only=True)
class BiasAdvice:
    """Advice on a deliberate underestimate, with its evidence.

    Attributes
    ----------
    at_rest
        The bias that makes both sides of the margin at rest equal, and so the smaller one largest.
    smallest
        The smallest underestimate with which an overestimate of 10 % is tolerated at rest at all
        poses; None where none is needed, or none suffices.
    enough
        Whether that overestimate is tolerated without a bias.
    own_tip_at_rest
        As `OfferedBias.tip_at_rest`, without a bias.
    runs
        The run without bias and those with a bias, in the order made; empty without runs, or where
        no underestimate tolerates other arms.
    advised
        `smallest`, or `at_rest` where there is none, if its run serves; else the largest
        underestimate whose run serves. None where none serves, and without runs.
    """

    at_rest: OfferedBias
    smallest: OfferedBias | None = None
    enough: bool = False
    own_tip_at_rest: float | None = None
    runs: tuple[BiasRun, ...] = ()
    advised: OfferedBias | None = None


def advise_bias(
    case: Case,
    margin: StiffnessMargin,
    runs: BiasRuns | None = None,
    progress: Callable[[str], None] | None = None,
) -> BiasAdvice | None:
    """Choose a bias for the judged pose and the whole motion; None where a pose is unstable.

    Parameters
    ----------
    case
        Arm, design, and the number of poses of the motion that are judged on other arms.
    margin
        The stiffness margin of the unchanged loop.
    runs
        Runs of the case, to simulate the bias; None for no simulation.
    progress
        Called with a sentence before every longer piece of work.
    """
    say = progress or (lambda _words: None)
    best = margin_bias(margin)
    if best is None:
        return None
    known = [interval for interval in margin_intervals(margin) if interval]
    offers = _Offers(case=case, known=known)
    if best.bias >= 0:
        return BiasAdvice(at_rest=offers.untried(best))
    say("deliberate underestimates, on arms of other stiffness")
    least = bias_for(known, ERROR)
    smallest = offers.tried(least) if least and least > best.bias else None
    advice = BiasAdvice(
        at_rest=offers.tried(best.bias),
        smallest=smallest,
        enough=least == 0.0,
        own_tip_at_rest=offers.tip_at_rest(0.0),
    )
    aim = smallest or advice.at_rest
    if runs is None or not aim.other_arms:
        return advice
    say("deliberate underestimates, in motion")
    tried = try_biases(runs, aim.bias)
    served = largest_served(tried)
    advised = aim if served == aim.bias else served and offers.tried(served)
    return replace(advice, runs=tried, advised=advised or None)


@dataclass(frozen=True, kw_only=True)
class _Offers:
    """Biases offered for a loop with `known` stable intervals of its poses."""

    case: Case
    known: list[Interval]

    def tried(self, bias: float) -> OfferedBias:
        """Offer a bias, tried on arms of other stiffness and at rest."""
        lower, upper = tolerated_with(self.known, bias)
        two_sided = Bias(bias=bias, tolerates=max(min(-lower, upper, 1.0), 0.0))
        offer = self.untried(two_sided, tolerated_by_other_arms(self.case, two_sided))
        return replace(offer, tip_at_rest=self.tip_at_rest(bias))

    def untried(self, bias: Bias, other_arms: float | None = None) -> OfferedBias:
        """Offer a bias with the errors that it tolerates on the arm of the file."""
        lower, upper = tolerated_with(self.known, bias.bias)
        return OfferedBias(
            bias=bias.bias,
            tolerates=bias.tolerates,
            lower=lower,
            upper=upper,
            other_arms=other_arms,
        )

    def tip_at_rest(self, bias: float) -> float | None:
        """Tip offset at rest with a bias [m]; None where the loop has no rest."""
        if not any(self.case.setup.true_arm.gravity):
            return 0.0
        loop = self._closed
        final, weight = loop.controller.reference.final, final_loop_weight(loop.controller)
        errors = np.full(len(loop.controller.plant.stiffness_parts), bias)
        try:
            equilibrium = find_loop_equilibrium(loop, final, weight, errors)
        except ComputationError:
            return None
        rest = describe_equilibrium(loop, equilibrium)
        return None if rest.falls or not rest.holds else rest.tip_offset

    @cached_property
    def _closed(self) -> ClosedLoop:
        return self.case.close()
