"""What is said of underestimating the stiffness on purpose."""

from __future__ import annotations

from flexctl.loop.margin.bias_advice import BiasAdvice, OfferedBias
from flexctl.loop.margin.bias_run import FARTHEST, BiasRun
from flexctl.view.margin_words import borne_above, borne_below, percent

_SAME = 1e-9


def advice_words(advice: BiasAdvice | None, *, along: bool) -> str:
    """Advise an underestimate, as far as it was tried on other arms and run; else say why none.

    `along` tells whether poses along the motion were judged.
    """
    if advice is None or not advice.at_rest.other_arms:
        return ""
    if not advice.runs:
        size = percent(-advice.at_rest.bias)
        best = f" Underestimating on purpose by {size} suits rest best: "
        but = "but in motion the joints then stray from their reference, which was not run (--run)"
        return f"{best}{_tried(advice.at_rest, along=along)}; {but}."
    own = advice.runs[0]
    if own.failed:
        why = f"without one {own.failed}"
        return f" No underestimate on purpose is advised, as it cannot be compared: {why}."
    if advice.advised is None or not advice.advised.other_arms:
        return _none(advice)
    run = _run_of(advice, advice.advised.bias)
    tried = _tried(advice.advised, along=along)
    size = percent(-advice.advised.bias)
    said = f" Underestimate on purpose by {size}: {tried}; in its run {strays(run, own)}"
    return f"{said}{_not_the_best(advice)}."


def _tried(offered: OfferedBias, *, along: bool) -> str:
    place = "at all these poses at rest" if along else "there at rest, no other pose being judged"
    borne = f"tried on arms that K_file misses by +-{percent(offered.other_arms)}"
    return f"{borne}, it is stable {place}"


def _not_the_best(advice: BiasAdvice) -> str:
    """Say what keeps from the bias that rest alone asks for, and what the smaller one bears."""
    if advice.advised is None or advice.advised == advice.at_rest:
        return ""
    size, offered = percent(-advice.at_rest.bias), advice.advised
    best, own = _run_of(advice, advice.at_rest.bias), advice.runs[0]
    before = (1 + offered.upper) * (1 + offered.bias) - 1
    above = f"{percent(offered.upper)} in place of {borne_above(before).removeprefix('up to ')}"
    bears = f"it then bears a K_file too high by {above}, too low by {borne_below(offered.lower)}"
    return f"; {bears}. With the {size} that rest alone asks for {strays(best, own)}"


def _none(advice: BiasAdvice) -> str:
    """Say that nothing helps, by the smallest bias that was tried and does not serve."""
    if advice.advised is not None:
        size = percent(-advice.advised.bias)
        most = f"{size}, the most that its run takes, bears nothing on arms that K_file misses"
        return f" No underestimate on purpose helps here: {most}."
    least = max(advice.runs[1:], key=lambda run: run.bias)
    said = f"already with {percent(-least.bias)} {strays(least, advice.runs[0])}"
    return f" No underestimate on purpose helps here: {said}."


def _run_of(advice: BiasAdvice, bias: float) -> BiasRun:
    return next(run for run in advice.runs if run.bias == bias)


def strays(run: BiasRun, own: BiasRun | None = None) -> str:
    """Say how far the tip strays in a run, beside one without bias: ``31 mm in place of 22 mm``."""
    if run.failed:
        return run.failed
    if run.tip_error_max is None or run.times is None:
        return "the tip has nothing to be compared with"
    far = f"the tip strays {_mm(run.tip_error_max)}"
    if own is None or own.tip_error_max is None:
        serves = "" if run.serves else f", too far: at most {FARTHEST:g} times are taken"
        return f"{far}, {run.times:.3g} times as far as without{serves}"
    far += f" in place of {_mm(own.tip_error_max)}"
    if run.tip_error_end is None or own.tip_error_end is None or not _end_decides(run, own):
        return far
    ends = f"{_mm(run.tip_error_end)} in place of {_mm(own.tip_error_end)}"
    return f"{far} (at the end {ends})"


def _end_decides(run: BiasRun, own: BiasRun) -> bool:
    moving = (run.tip_error_max or 0.0) / (own.tip_error_max or 1.0)
    return (run.times or 0.0) > moving * (1 + _SAME)


def _mm(length: float) -> str:
    return f"{1e3 * length:.3g} mm"
