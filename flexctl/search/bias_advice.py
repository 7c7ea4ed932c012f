"""Advice on a deliberate underestimate: by stability at rest, on other arms, and by runs.

A loop that is stable for l < K_hat/K - 1 < u tolerates with K_hat = (1 + b) K_file

    (1 + l)/(1 + b) - 1 < K_file/K - 1 < (1 + u)/(1 + b) - 1.

This is exact for an arm with the dynamics of K_file. If the file is wrong, K_file = (1 + e) K, the
arm is softer by 1/(1 + e) and has other frequencies and dampers too: such arms are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from flexctl.errors import ComputationError, InputError, NoEquilibriumError
from flexctl.loop import (
    close_around,
    describe_equilibrium,
    find_loop_equilibrium,
    judge_poles,
    linearise_loop,
)
from flexctl.model import soften_arm
from flexctl.plant import STIFFNESS_ERROR, assemble_plant
from flexctl.robustness import ERROR, Case, Interval, StiffnessMargin
from flexctl.search.bias_run import BiasRun, BiasRuns, largest_served, try_biases
from flexctl.search.one_number import judged_poses

_STEPS = (0.25, 0.5, 0.75, 1.0)  # of the largest error, tried in both directions
_LARGEST = 0.9  # largest error tried: arms ten times or half as stiff as in the file
_STEP = 0.05  # by which a bias is lowered until it suffices
_RESOLUTION = 0.005  # of a bias
_LOWEST_BIAS = -0.9


@dataclass(frozen=True, kw_only=True)
class Bias:
    """A deliberate error of the controller's stiffness, and the error that is then tolerated.

    Attributes
    ----------
    bias
        b [-]: the controller computes with K_hat = (1 + b) K_file.
    tolerates
        Largest t [-] for which the loop is stable under |K_file/K - 1| < t, at most 1, where the
        lower end means no stiffness, on an arm with the dynamics of K_file.
    """

    bias: float
    tolerates: float

    def __post_init__(self) -> None:
        """Check that the biased stiffness is positive, and that `tolerates` is in 0 .. 1."""
        if not self.bias > -1:
            raise InputError(f"bias: expected one above -1, got {self.bias:g}")
        if not 0 <= self.tolerates <= 1:
            raise InputError(f"tolerates: expected one in 0 .. 1, got {self.tolerates:g}")


def best_bias(intervals: Iterable[Interval | None]) -> Bias | None:
    """Choose the bias that makes the two-sided margin largest at several poses at once.

    Both sides are equal at 1 + b = (2 + u + l)/2, where they are (u - l)/(2 + u + l). Gains do not
    change, and only stability is judged. Without an upper limit an underestimate gains nothing:
    b = 0. None where the loop is unstable at a pose without an error, and for no poses.
    """
    ends = _common_ends(intervals)
    if ends is None:
        return None
    lower, upper = ends
    if not np.isfinite(upper):
        return Bias(bias=0.0, tolerates=-lower)
    total = 2 + upper + lower
    return Bias(bias=total / 2 - 1, tolerates=min((upper - lower) / total, 1.0))


def bias_for(intervals: Iterable[Interval | None], expected: float) -> float | None:
    """Smallest underestimate b <= 0 with which all poses tolerate an overestimate of `expected`.

    1 + b = (1 + u)/(1 + expected). None where the loop would be unstable with the right K_file,
    b < l, or is unstable without an error.
    """
    ends = _common_ends(intervals)
    if ends is None:
        return None
    lower, upper = ends
    bias = min((1 + upper) / (1 + expected) - 1, 0.0)
    return bias if bias > lower or not bias else None


def tolerated_with(intervals: Iterable[Interval], bias: float) -> tuple[float, float]:
    """Return the ends of K_file/K - 1 that all poses tolerate with a bias; the upper may be inf."""
    ends = _common_ends(intervals)
    assert ends is not None
    lower, upper = ends
    return (1 + lower) / (1 + bias) - 1, (1 + upper) / (1 + bias) - 1


def _common_ends(intervals: Iterable[Interval | None]) -> tuple[float, float] | None:
    """Limits l and u common to all poses; None where one is unstable, and for no poses."""
    every = list(intervals)
    known = [interval for interval in every if interval]
    if not known or len(known) < len(every):
        return None
    lower = max(interval.alpha_lower for interval in known)
    return lower, min(interval.alpha_upper for interval in known)


def margin_intervals(margin: StiffnessMargin) -> list[Interval | None]:
    """Stable intervals of the judged pose and of the poses of the motion."""
    return [margin.exact, *(pose.interval for pose in margin.path)]


def stable_on_arm(case: Case, bias: float, error: float) -> bool:
    """Whether the loop with K_hat = (1 + bias) K_file, K_file = (1 + error) K is stable.

    At all poses; damping ratios of the links and all masses are those of the file.
    """
    controller = case.closed.controller.at({STIFFNESS_ERROR: bias})
    arm = soften_arm(case.setup.true_arm, 1 / (1 + error))
    loop = close_around(controller, assemble_plant(arm, case.truth.basis, interpreted=True))
    try:
        return all(
            judge_poles(linearise_loop(loop, joints, second_loop_weight).poles) is True
            for joints, second_loop_weight in judged_poses(loop, case.n_path)
        )
    except NoEquilibriumError:  # no equilibrium at the reference
        return False


def tolerated_by_other_arms(case: Case, bias: Bias) -> float:
    """Largest error e [-] for which the loop is stable on arms softer and stiffer by up to e.

    Tried at quarters of `bias.tolerates`, at most of 90 %; 0 where the first is not tolerated.
    """
    tolerated = 0.0
    for error in min(bias.tolerates, _LARGEST) * np.array(_STEPS):
        if not all(stable_on_arm(case, bias.bias, e) for e in (error, -error)):
            break
        tolerated = float(error)
    return tolerated


def bias_on_softer_arms(case: Case, start: float, expected: float) -> float | None:
    """Smallest deliberate underestimate with which arms softer by up to `expected` are tolerated.

    Biases start at `start` <= 0, which the arm of the file requires, and decrease in steps of 5 %,
    the last of which is bisected. They are tried without error and at quarters of `expected`. None
    where no bias down to -90 % suffices.
    """
    errors = [0.0, *(expected * np.array(_STEPS))][::-1]

    def serves(bias: float) -> bool:
        return all(stable_on_arm(case, bias, error) for error in errors)

    fails = start
    for bias in np.arange(start, _LOWEST_BIAS, -_STEP).tolist():
        if serves(bias):
            return _narrowed(serves, bias, fails)
        fails = bias
    return None


def _narrowed(serves: Callable[[float], bool], bias: float, fails: float) -> float:
    """Bisect between a bias that serves and a smaller underestimate that fails."""
    while fails - bias > _RESOLUTION:
        middle = (bias + fails) / 2
        bias, fails = (middle, fails) if serves(middle) else (bias, middle)
    return bias


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
    best = best_bias(margin_intervals(margin))
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
        loop = self.case.closed.at({STIFFNESS_ERROR: bias})
        final, weight = loop.controller.reference.final, loop.controller.final_second_loop_weight
        try:
            equilibrium = find_loop_equilibrium(loop, final, weight)
        except ComputationError:
            return None
        rest = describe_equilibrium(loop, equilibrium)
        return None if rest.falls or not rest.holds else rest.tip_offset
