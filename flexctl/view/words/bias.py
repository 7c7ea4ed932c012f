"""What is said of a deliberate underestimate of the stiffness."""

from __future__ import annotations

from flexctl.robustness import ERROR
from flexctl.search import FARTHEST, BiasAdvice, BiasRun, OfferedBias
from flexctl.view.words.numbers import length, most_tolerated, percent, tolerated_below

_SAME = 1e-9


def advice_words(advice: BiasAdvice | None, *, along: bool) -> str:
    """Say which underestimate is effective, as far as tried, and what it costs; else why none.

    `along` tells whether poses along the motion were judged.
    """
    if advice is None or advice.at_rest.other_arms is None:
        return ""
    offered = advice.smallest or advice.at_rest
    if not advice.runs:
        return _not_run(advice, offered, along=along) if offered.other_arms else ""
    own = advice.runs[0]
    if own.failed:
        why = f"without one {own.failed}"
        return f" No deliberate underestimate is advised, as its run cannot be compared: {why}."
    if advice.advised is None or not advice.advised.other_arms:
        return _none(advice)
    run = _run_of(advice, advice.advised.bias)
    tried = _tried(advice.advised, along=along)
    said = f" A deliberate underestimate of {percent(-advice.advised.bias)} is effective: {tried}"
    cost = f"{strays(run, own)}{_smaller(advice)}{_at_rest(advice, advice.advised)}"
    return f"{said}; in a run with it {cost}."


def _not_run(advice: BiasAdvice, offered: OfferedBias, *, along: bool) -> str:
    """Say what a bias would do at rest, and that it costs accuracy."""
    size = percent(-offered.bias)
    if advice.smallest is None:
        if advice.enough:
            return f" No deliberate underestimate is needed for an error of {percent(ERROR)}."
        what = f"makes the margin symmetric, +-{percent(offered.tolerates)}"
    else:
        what = f"is the least with which an overestimate of {percent(ERROR)} is tolerated"
    cost = "it makes tracking worse (--run tells by how much)"
    rest = _at_rest(advice, offered)
    tried = _tried(offered, along=along)
    return f" A deliberate underestimate of {size} {what}: {tried}; but {cost}{rest}."


def _at_rest(advice: BiasAdvice, offered: OfferedBias) -> str:
    """Say what a bias does to the pose in which the arm rests; nothing without gravity."""
    own, biased = advice.own_tip_at_rest, offered.tip_at_rest
    if own is None or own == biased:
        return ""
    if biased is None:
        return "; with it the arm does not rest at its reference"
    return f"; with it the tip rests {length(biased)} from its reference, without it {length(own)}"


def _tried(offered: OfferedBias, *, along: bool) -> str:
    place = "at all these poses, held still" if along else "there (no other pose was judged)"
    size = percent(offered.other_arms)
    return f"on arms for which K_file is off by up to +-{size} the loop is stable {place}"


def _smaller(advice: BiasAdvice) -> str:
    """Say why the bias that was tried first is not advised, and what the smaller one tolerates."""
    aim = advice.smallest or advice.at_rest
    if advice.advised is None or advice.advised == aim:
        return ""
    size, offered = percent(-aim.bias), advice.advised
    first, own = _run_of(advice, aim.bias), advice.runs[0]
    before = (1 + offered.upper) * (1 + offered.bias) - 1
    above = f"up to {percent(offered.upper)} instead of {most_tolerated(before)}"
    below = tolerated_below(offered.lower)
    ends = f"it then tolerates a K_file too high by {above}, too low by {below}"
    return f"; {ends}. With {size} {strays(first, own)}"


def _none(advice: BiasAdvice) -> str:
    """Say that no bias is effective, by the smallest bias that was tried and is not."""
    if advice.advised is not None:
        size = percent(-advice.advised.bias)
        most = f"with {size}, the most that its run allows, no error of K_file is tolerated"
        return f" No deliberate underestimate is effective here: {most}."
    least = max(advice.runs[1:], key=lambda run: run.bias)
    said = f"already with {percent(-least.bias)} {strays(least, advice.runs[0])}"
    return f" No deliberate underestimate is effective here: {said}."


def _run_of(advice: BiasAdvice, bias: float) -> BiasRun:
    return next(run for run in advice.runs if run.bias == bias)


def strays(run: BiasRun, own: BiasRun | None = None) -> str:
    """Say the tip error of a run, beside one without bias: ``31 mm instead of 22 mm``."""
    if run.failed:
        return run.failed
    if run.tip_error_max is None or run.times is None:
        return "the tip error cannot be compared"
    far = f"the tip error is {length(run.tip_error_max)}"
    if own is None or own.tip_error_max is None:
        serves = "" if run.serves else f", at most {FARTHEST:g} times is accepted"
        return f"{far}, {run.times:.3g} times that without it{serves}"
    far += f" instead of {length(own.tip_error_max)}"
    if run.tip_error_end is None or own.tip_error_end is None or not _end_decides(run, own):
        return far
    ends = f"{length(run.tip_error_end)} instead of {length(own.tip_error_end)}"
    return f"{far} (at the end {ends})"


def _end_decides(run: BiasRun, own: BiasRun) -> bool:
    moving = (run.tip_error_max or 0.0) / (own.tip_error_max or 1.0)
    return (run.times or 0.0) > moving * (1 + _SAME)
