"""Which underestimate on purpose to advise: by rest, by arms of other stiffness, and by runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from flexctl.loop.margin.bias_run import BiasRun, BiasRuns, largest_served, try_biases
from flexctl.loop.margin.case import Case
from flexctl.loop.margin.interval import Interval
from flexctl.loop.margin.other_arms import borne_by_other_arms
from flexctl.loop.margin.record import Margin
from flexctl.loop.margin.remedies import Bias, borne_with, margin_bias, margin_intervals


@dataclass(frozen=True, kw_only=True)
class OfferedBias:
    """A bias and what a loop bears with it.

    Attributes
    ----------
    bias, tolerates
        As in `Bias`.
    lower, upper
        K_file/K - 1 that are borne by the arm of the file lie between; infinite above: any.
    other_arms
        Error up to which it serves on softer and stiffer arms: `borne_by_other_arms`; None where
        none were tried, as no underestimate is offered.
    """

    bias: float
    tolerates: float
    lower: float
    upper: float
    other_arms: float | None


@dataclass(frozen=True, kw_only=True)
class BiasAdvice:
    """What is known about underestimating on purpose.

    Attributes
    ----------
    at_rest
        The bias that makes the two-sided margin at rest largest.
    runs
        The run without bias and those with one, in the order made; empty where none were asked for
        or `at_rest` is no underestimate that other arms bear.
    advised
        `at_rest` if its run serves, else the largest underestimate whose run does; None where none
        does, and where nothing was run.
    """

    at_rest: OfferedBias
    runs: tuple[BiasRun, ...] = ()
    advised: OfferedBias | None = None


def advise_bias(
    case: Case,
    found: Margin,
    runs: BiasRuns | None = None,
    progress: Callable[[str], None] | None = None,
) -> BiasAdvice | None:
    """Choose a bias for the judged pose and the whole motion; None where a pose is unstable.

    Parameters
    ----------
    case
        Arm, design, and how many poses of the motion are judged on other arms.
    found
        The loop's margin as it is.
    runs
        Where the bias is run; nothing leaves that out.
    progress
        Called with a sentence before every longer piece of work.
    """
    say = progress or (lambda _words: None)
    best = margin_bias(found)
    if best is None:
        return None
    known = [interval for interval in margin_intervals(found) if interval]
    if best.bias >= 0:
        return BiasAdvice(at_rest=_offered(known, best, None))
    say("underestimating on purpose, on arms of other stiffness")
    at_rest = _offered(known, best, borne_by_other_arms(case, best))
    if runs is None or not at_rest.other_arms:
        return BiasAdvice(at_rest=at_rest)
    say("underestimating on purpose, in motion")
    tried = try_biases(runs, best.bias)
    served = largest_served(tried)
    if served is None:
        return BiasAdvice(at_rest=at_rest, runs=tried)
    advised = at_rest if served == best.bias else _smaller(case, known, served)
    return BiasAdvice(at_rest=at_rest, runs=tried, advised=advised)


def _smaller(case: Case, known: list[Interval], bias: float) -> OfferedBias:
    lower, upper = borne_with(known, bias)
    less = Bias(bias=bias, tolerates=min(-lower, upper, 1.0))
    return _offered(known, less, borne_by_other_arms(case, less))


def _offered(known: list[Interval], bias: Bias, other_arms: float | None) -> OfferedBias:
    lower, upper = borne_with(known, bias.bias)
    return OfferedBias(
        bias=bias.bias,
        tolerates=bias.tolerates,
        lower=lower,
        upper=upper,
        other_arms=other_arms,
    )
