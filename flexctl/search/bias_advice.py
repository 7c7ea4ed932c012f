"""Advice on a deliberate underestimate: by stability at rest, on other arms, and by runs.

A loop that is stable for l < K_hat/K - 1 < u tolerates with K_hat = (1 + b) K_file

    (1 + l)/(1 + b) - 1 < K_file/K - 1 < (1 + u)/(1 + b) - 1.

This is exact for an arm with the dynamics of K_file. If the file is wrong, K_file = (1 + e) K, the
arm is softer by 1/(1 + e) and has other frequencies and dampers too: such arms are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile

import numpy as np

from flexctl.errors import ComputationError, NoEquilibriumError
from flexctl.loop import describe_equilibrium, find_loop_equilibrium, judge_poles
from flexctl.plant import STIFFNESS_ERROR
from flexctl.robustness import ERROR, Case, StiffnessMargin
from flexctl.search.bias_run import BiasRun, BiasRuns, try_biases
from flexctl.search.changed_loops import over_bias
from flexctl.search.one_number import first_serving, narrow

_STEPS = np.array([0.25, 0.5, 0.75, 1.0])  # of the largest error, tried in both directions
_LARGEST = 0.9  # largest error tried: arms ten times or half as stiff as in the file
_STEP = 0.05  # by which a bias is lowered until it suffices
_RESOLUTION = 0.005  # of a bias
_LOWEST_BIAS = -0.9

Ends = tuple[float, float]
"""Limits l and u of an error K_hat/K - 1 [-] within which a loop is stable; u may be infinite."""


def common_ends(margin: StiffnessMargin) -> Ends | None:
    """Limits common to the judged pose and the motion; None where a pose is unstable."""
    intervals = [margin.exact, *(pose.interval for pose in margin.path)]
    known = [interval for interval in intervals if interval]
    if len(known) < len(intervals):
        return None
    lower = max(interval.alpha_lower for interval in known)
    return lower, min(interval.alpha_upper for interval in known)


def best_bias(ends: Ends) -> float:
    """Choose the bias that makes the two-sided margin largest.

    Both sides are equal at 1 + b = (2 + u + l)/2, where they are (u - l)/(2 + u + l). Gains do not
    change, and only stability is judged. Without an upper limit an underestimate gains nothing:
    b = 0.
    """
    return sum(ends) / 2 if np.isfinite(ends[1]) else 0.0


def bias_for(ends: Ends, expected: float) -> float | None:
    """Smallest underestimate b <= 0 with which an overestimate of `expected` is tolerated.

    1 + b = (1 + u)/(1 + expected). None where the loop would be unstable with the right K_file,
    b < l.
    """
    lower, upper = ends
    bias = min((1 + upper) / (1 + expected) - 1, 0.0)
    return bias if bias > lower or not bias else None


def tolerated_with(ends: Ends, bias: float) -> Ends:
    """Return the ends of K_file/K - 1 that are tolerated with a bias."""
    lower, upper = ends
    return (1 + lower) / (1 + bias) - 1, (1 + upper) / (1 + bias) - 1


def stable_on_arms(case: Case, errors: Iterable[float]) -> Callable[[float], bool]:
    """Whether the loop with a bias is stable on all arms of these errors: see `over_bias`."""
    arms = [over_bias(case, error) for error in errors]

    def stable(bias: float) -> bool:
        try:
            return all(judge_poles(loop.poles) is True for loops in arms for loop in loops(bias))
        except NoEquilibriumError:  # no equilibrium at the reference
            return False

    return stable


def tolerated_by_other_arms(case: Case, bias: float, most: float) -> float:
    """Largest error e [-] for which the loop is stable on arms softer and stiffer by up to e.

    Tried at quarters of `most`, or of 90 %; 0 where the first is not tolerated.
    """
    errors = (min(most, _LARGEST) * _STEPS).tolist()
    return max(takewhile(lambda e: stable_on_arms(case, (e, -e))(bias), errors), default=0.0)


def bias_on_softer_arms(case: Case, start: float, expected: float) -> float | None:
    """Smallest deliberate underestimate with which arms softer by up to `expected` are tolerated.

    Biases start at `start` <= 0, which the arm of the file requires, and decrease in steps of 5 %,
    the last of which is bisected. They are tried without error and at quarters of `expected`. None
    where no bias down to -90 % suffices.
    """
    serves = stable_on_arms(case, [*(expected * _STEPS[::-1]), 0.0])
    biases = np.arange(start, _LOWEST_BIAS, -_STEP).tolist()
    return first_serving(serves, biases, partial(narrow, serves, width=_RESOLUTION))[0]


@dataclass(frozen=True, kw_only=True)
class OfferedBias:
    """A deliberate error of the controller's stiffness, and the errors that are then tolerated.

    Attributes
    ----------
    bias
        b [-]: the controller computes with K_hat = (1 + b) K_file.
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
    lower: float
    upper: float
    other_arms: float | None = None
    tip_at_rest: float | None = None

    @property
    def tolerates(self) -> float:
        """Largest t [-] for which the loop is stable under |K_file/K - 1| < t, at most 1.

        On an arm with the dynamics of K_file; the lower end of 1 means no stiffness.
        """
        return max(min(-self.lower, self.upper, 1.0), 0.0)


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
    ends = common_ends(margin)
    if ends is None:
        return None
    offered, best = partial(_offered, case, ends), best_bias(ends)
    if best >= 0:
        return BiasAdvice(at_rest=offered(best))
    say("deliberate underestimates, on arms of other stiffness")
    least = bias_for(ends, ERROR)
    smallest = offered(least) if least and least > best else None
    advice = BiasAdvice(
        at_rest=offered(best),
        smallest=smallest,
        enough=least == 0.0,
        own_tip_at_rest=_tip_at_rest(case, 0.0),
    )
    aim = smallest or advice.at_rest
    if runs is None or not aim.other_arms:
        return advice
    say("deliberate underestimates, in motion")
    tried, served = try_biases(runs, aim.bias)
    advised = aim if served == aim.bias else served and offered(served)
    return replace(advice, runs=tried, advised=advised or None)


def _offered(case: Case, ends: Ends, bias: float) -> OfferedBias:
    """Offer a bias; an underestimate is tried on arms of other stiffness and at rest."""
    lower, upper = tolerated_with(ends, bias)
    offer = OfferedBias(bias=bias, lower=lower, upper=upper)
    if bias >= 0:
        return offer
    other_arms = tolerated_by_other_arms(case, bias, offer.tolerates)
    return replace(offer, other_arms=other_arms, tip_at_rest=_tip_at_rest(case, bias))


def _tip_at_rest(case: Case, bias: float) -> float | None:
    """Tip offset at rest with a bias [m]; None where the loop has no rest."""
    if not any(case.setup.true_arm.gravity):
        return 0.0
    loop = case.closed.at({STIFFNESS_ERROR: bias})
    final, weight = loop.controller.reference.final, loop.controller.final_second_loop_weight
    try:
        equilibrium = find_loop_equilibrium(loop, final, weight)
    except ComputationError:
        return None
    rest = describe_equilibrium(loop, equilibrium)
    return None if rest.falls or not rest.holds else rest.tip_offset
